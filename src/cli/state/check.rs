//! `state check`: is the state file whole, and do the part files hold what it says? Damage is exit status 3.

use crate::cli::exit::Exit;
use crate::cli::foreign::{BookError, human_size, printable};
use crate::cli::state::{Desk, pick};
use crate::cli::trouble::Trouble;
use crate::core::pers_xfer::record::{Record, Status};

/// Prints a line for each damage, and one at the end.
pub(super) fn run(desk: &Desk<'_>) -> Result<Exit, Trouble> {
    let (records, mut findings) = match desk.book.load() {
        Ok(contents) => (contents.records, contents.warnings.iter().map(ToString::to_string).collect()),
        Err(BookError::Damaged { path, damage }) => (Vec::new(), unreadable(&path, &damage)),
        Err(other) => return Err(other.into()),
    };
    for record in records.iter().filter(|r| r.status == Status::Pending || r.status == Status::Suspended) {
        findings.extend(part(desk, record));
    }
    for finding in &findings {
        (desk.out)(&format!("{}\n", printable(finding)))?;
    }
    let file = printable(&desk.book.path().display().to_string());
    let verdict = match findings.len() {
        0 => format!("{file}: {} transfers, no damage\n", records.len()),
        n => format!("{file}: {} transfers, {n} damaged places\n", records.len()),
    };
    (desk.out)(&verdict)?;
    Ok(if findings.is_empty() { Exit::Complete } else { Exit::Failed })
}

fn unreadable(path: &std::path::Path, damage: &[crate::cli::foreign::Warning]) -> Vec<String> {
    let advice = format!(
        "{}: no generation of it can be read; nothing overwrites it. Move it away to begin anew: part files without a record \
         are fetched again, not continued",
        path.display()
    );
    damage.iter().map(ToString::to_string).chain([advice]).collect()
}

/// Does the part file of a transfer hold the bytes that its record counts on?
fn part(desk: &Desk<'_>, record: &Record) -> Option<String> {
    let held = record.dossier.part.held.0;
    if held == 0 || desk.book.holder(record).is_some() {
        return None;
    }
    let path = desk.book.parts(record).into_iter().next()?;
    let trouble = match std::fs::symlink_metadata(&path) {
        Ok(m) if !m.is_file() => "it is no regular file; move it away".into(),
        Ok(m) if m.len() < held => format!("it has {}, {} are recorded", human_size(m.len()), human_size(held)),
        Ok(_) => return None,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => format!("it is gone, with {}", human_size(held)),
        Err(e) => format!("it cannot be read: {e}"),
    };
    let then = "the next session finds out and fetches again what is missing; nothing else is to be done";
    Some(format!("{}: part file of {}: {trouble}; {then}", path.display(), pick::place(record)))
}
