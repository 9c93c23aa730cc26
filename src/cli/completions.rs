//! `completions`: what a shell needs to complete our command lines.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::args::Cli;

/// The script for a shell.
pub(crate) fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "persxfer", &mut script);
    script
}
