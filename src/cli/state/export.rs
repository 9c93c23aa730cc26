//! `state export`: every transfer whole, one JSON object a line, without secrets.

use crate::cli::exit::Exit;
use crate::cli::state::Desk;
use crate::cli::state::json::{self, Around, Story};
use crate::cli::trouble::Trouble;

/// Prints them.
pub(super) fn run(desk: &Desk<'_>) -> Result<Exit, Trouble> {
    let contents = desk.load()?;
    for record in &contents.records {
        let story = Story::new(record, &contents.hosts, Around::of(desk, record));
        (desk.out)(&format!("{}\n", json::text(&story)))?;
    }
    Ok(Exit::Complete)
}
