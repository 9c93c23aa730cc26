//! `man`: the manual page of the program, or of one command.

use clap::CommandFactory;

use crate::cli::args::Cli;
use crate::cli::trouble::Trouble;

/// The page in roff, of the command that these words name; of the program where there are none.
pub(crate) fn page(words: &[String]) -> Result<Vec<u8>, Trouble> {
    let mut command = Cli::command();
    command.build();
    for word in words {
        let unknown = || Trouble::option("man", words.join(" "), "there is no such command; see persxfer --help");
        command = command.find_subcommand(word).ok_or_else(unknown)?.clone();
    }
    let mut page = Vec::new();
    let man = clap_mangen::Man::new(command).manual("persxfer");
    man.render(&mut page).map_err(|e| Trouble::Usage(format!("the page cannot be made: {e}")))?;
    Ok(page)
}
