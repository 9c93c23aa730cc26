//! The program: everything is in the library; see `cli`.

fn main() -> std::process::ExitCode {
    persxfer::cli::main(std::env::args_os())
}
