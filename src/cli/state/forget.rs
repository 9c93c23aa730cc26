//! `state forget`: drops records and their part files. A finished file stays where it is, and so does one that was to be
//! uploaded.

use crate::cli::exit::Exit;
use crate::cli::foreign::Left;
use crate::cli::leftovers::{After, clean_up_at_servers};
use crate::cli::state::{Desk, pick};
use crate::cli::trouble::Trouble;
use crate::core::pers_xfer::record::{Record, XferId};

/// Forgets all of them, or, where one is unknown, ambiguous or in use, none.
pub(super) fn run(desk: &Desk<'_>, words: &[String]) -> Result<Exit, Trouble> {
    let contents = desk.load()?;
    let mut chosen: Vec<&Record> = Vec::new();
    for word in words {
        let record = pick::one(&contents.records, word, desk.cwd)?;
        if let Some(holder) = desk.book.holder(record) {
            return Err(Trouble::InUse { name: pick::place(record), holder });
        }
        if !chosen.iter().any(|r| r.id == record.id) {
            chosen.push(record);
        }
    }
    // What another process works on, by way of another state file, is found before anything is gone.
    let held = chosen.iter().map(|record| desk.book.hold_parts(record)).collect::<Result<Vec<_>, _>>()?;
    clean_up_at_servers(desk.book.path(), &chosen, After::Forget, desk.say);
    // The records go first: a part file without a record is harmless, a record without its part file is not.
    let ids: Vec<XferId> = chosen.iter().map(|r| r.id).collect();
    desk.book.remove(&ids)?;
    for (record, remove) in chosen.into_iter().zip(held) {
        let parts = match remove()? {
            Left::Parts => ", with its part file",
            Left::Nothing => "",
        };
        (desk.say)(&format!("{}: forgotten{parts}", pick::place(record)));
    }
    Ok(Exit::Complete)
}
