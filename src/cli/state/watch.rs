//! `state list --watch`: the table again and again; drawn anew on a terminal, printed anew elsewhere when it has changed.

use std::cell::LazyCell;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use crate::cli::exit::Exit;
use crate::cli::foreign;
use crate::cli::out::Out;
use crate::cli::state::list::{self, Table, Which};
use crate::cli::state::{Book, Desk, stdout_columns};
use crate::cli::trouble::Trouble;
use crate::engine::Standing;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);
/// The cursor goes home, and what is below it is cleared.
const HOME: &str = "\x1b[H\x1b[J";

/// Prints until nobody reads any more; Ctrl-C ends it as it ends any program that has nothing to save.
pub(crate) fn run(
    which: Which,
    book: &dyn Book,
    standing: &dyn Fn() -> Standing,
    cwd: &Path,
    say: &dyn Fn(&str),
) -> Result<Exit, Trouble> {
    let stdout = Out::stdout();
    let terminal = std::io::stdout().is_terminal();
    let mut last = String::new();
    loop {
        let quiet = |_: &str| Ok(());
        let desk = Desk {
            book,
            now: foreign::now(),
            standing: LazyCell::new(Box::new(standing)),
            cwd,
            out: &quiet,
            columns: stdout_columns(),
            say,
        };
        let table = match list::table_of(&desk, which)? {
            Table::Rows(text) => text,
            Table::Empty { complete } => list::nothing(complete) + "\n",
        };
        let text = if terminal { format!("{HOME}{table}") } else { format!("{table}\n") };
        if terminal || text != last {
            stdout.write(text.as_bytes()).map_err(|e| Trouble::io("write to", Path::new("standard output"), &e))?;
        }
        last = text;
        if !stdout.rest(EVERY) {
            return Ok(Exit::Complete);
        }
    }
}
