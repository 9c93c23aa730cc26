//! `state export`: every transfer whole, one JSON object a line, without secrets.

use crate::cli::exit::Exit;
use crate::cli::state::Desk;
use crate::cli::state::json::{self, Around, Story};
use crate::cli::trouble::Trouble;

/// Prints them.
pub(super) fn run(desk: &Desk<'_>) -> Result<Exit, Trouble> {
    for record in &desk.load()?.records {
        (desk.out)(&format!("{}\n", json::text(&Story::new(record, Around::of(desk.book, record)))))?;
    }
    Ok(Exit::Complete)
}
