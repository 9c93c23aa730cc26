//! `state forget`: drops records and their part files. A finished file stays where it is.

use std::path::Path;

use crate::cli::exit::Exit;
use crate::cli::state::{Desk, pick};
use crate::cli::trouble::Trouble;
use crate::core::pers_xfer::record::{Record, Status, XferId};

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
    // The records go first: a part file without a record is harmless, a record without its part file is not.
    let ids: Vec<XferId> = chosen.iter().map(|r| r.id).collect();
    desk.book.remove(&ids)?;
    for record in chosen {
        let deleted = delete_parts(desk, record)?;
        let parts = if deleted > 0 { ", with its part file" } else { "" };
        (desk.say)(&format!("{}: forgotten{parts}", pick::place(record)));
    }
    Ok(Exit::Complete)
}

/// Deletes what stands beside the file of an unfinished transfer; answers how much there was.
fn delete_parts(desk: &Desk<'_>, record: &Record) -> Result<usize, Trouble> {
    if record.status == Status::Done {
        return Ok(0);
    }
    let mut deleted = 0;
    for part in desk.book.parts(record) {
        deleted += usize::from(delete(&part)?);
    }
    Ok(deleted)
}

fn delete(part: &Path) -> Result<bool, Trouble> {
    match std::fs::remove_file(part) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Trouble::io("delete", part, &e)),
    }
}
