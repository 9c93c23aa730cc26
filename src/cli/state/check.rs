//! `state check`: is the state file whole, do the part files hold what it says, and is there one that nobody owns? What is
//! found is exit status 3. A finished file that is gone is told too, and is none of that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::cli::exit::Exit;
use crate::cli::foreign::{BookError, Warning, counted, human_size, orphans, plain_error, printable};
use crate::cli::state::{Desk, pick};
use crate::cli::trouble::Trouble;
use crate::core::pers_xfer::record::{Record, Status};

/// Prints a line for each thing found, and one at the end.
pub(super) fn run(desk: &Desk<'_>) -> Result<Exit, Trouble> {
    let contents = match desk.book.load() {
        Ok(contents) => contents,
        Err(BookError::Damaged { damage, path, .. }) => return unreadable(desk, &path, &damage),
        Err(other) => return Err(other.into()),
    };
    let mut findings: Vec<_> = contents.warnings.iter().map(ToString::to_string).collect();
    let open = |r: &&Record| matches!(r.status, Status::Pending | Status::Suspended);
    findings.extend(contents.records.iter().filter(open).filter_map(|record| part(desk, record)));
    findings.extend(ownerless(desk, &contents.records));
    tell(desk, &findings)?;
    // People move files: that is worth knowing, and no damage.
    tell(desk, &missing(desk, &contents.records))?;
    let transfers = counted(contents.records.len(), "transfer");
    let file = printable(&desk.book.path().display().to_string());
    let verdict = match findings.len() {
        0 => format!("{file}: {transfers}, no damage\n"),
        n => format!("{file}: {transfers}, {} found\n", counted(n, "fault")),
    };
    (desk.out)(&verdict)?;
    Ok(if findings.is_empty() { Exit::Complete } else { Exit::Failed })
}

fn tell(desk: &Desk<'_>, findings: &[String]) -> Result<(), Trouble> {
    findings.iter().try_for_each(|finding| (desk.out)(&format!("{}\n", printable(finding))))
}

/// No generation of the file is sound.
fn unreadable(desk: &Desk<'_>, path: &Path, damage: &[Warning]) -> Result<Exit, Trouble> {
    tell(desk, &damage.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let file = printable(&path.display().to_string());
    (desk.out)(&format!(
        "{file}: damaged, there is no sound copy of it, and nothing was changed. Repair that place or restore a backup; or \
         move the file away to begin anew: part files without a record are fetched again, not continued\n"
    ))?;
    Ok(Exit::Failed)
}

/// Does the part file of a transfer hold the bytes that its record counts on?
fn part(desk: &Desk<'_>, record: &Record) -> Option<String> {
    let held = record.dossier.part.held.0;
    if held == 0 || desk.book.holder(record).is_some() {
        return None;
    }
    let path = desk.book.parts(record).into_iter().next()?;
    let trouble = match std::fs::symlink_metadata(&path) {
        Ok(m) if !m.is_file() => "is no regular file; move it away".into(),
        Ok(m) if m.len() < held => {
            format!("holds {} of the {} that are recorded; {REFETCHED}", human_size(m.len()), human_size(held))
        }
        Ok(_) => return None,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            format!("is gone, with the {} that are recorded; {REFETCHED}", human_size(held))
        }
        Err(e) => format!("cannot be read: {}", plain_error(&e)),
    };
    Some(format!("{}: the part file of {} {trouble}", path.display(), pick::place(record)))
}

/// Finished files that are not where they were written.
fn missing(desk: &Desk<'_>, records: &[Record]) -> Vec<String> {
    let gone = records.iter().filter(|record| desk.book.is_missing(record));
    let line = |record: &Record| {
        format!(
            "{}: complete, and not there any more; if it was moved, all is well; `persxfer retry` has it fetched again, \
             `persxfer state forget` drops its record",
            pick::place(record)
        )
    };
    gone.map(line).collect()
}

const REFETCHED: &str = "the next session fetches again what is missing, nothing is to be done";

/// Part files in the folders of the transfers that belong to none of them, and that no process works on.
fn ownerless(desk: &Desk<'_>, records: &[Record]) -> Vec<String> {
    let parts: BTreeSet<PathBuf> = records.iter().flat_map(|r| desk.book.parts(r)).collect();
    let folders: BTreeSet<&Path> = parts.iter().filter_map(|part| part.parent()).collect();
    let found = folders.into_iter().flat_map(orphans).filter(|path| !parts.contains(path));
    let line = |path: PathBuf| {
        format!("{}: no transfer here owns it; delete it, unless it belongs to another state file", path.display())
    };
    found.map(line).collect()
}
