//! `state check`: is the state file whole, do the part files hold what it says, is there one that nobody owns, and are the files
//! of uploads those that were begun with? Each
//! thing found comes with what to do. Damage is exit status 3; a finished file that is gone is told too, and is none.

mod finding;
mod parts;
mod repair;
mod sources;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::cli::exit::Exit;
use crate::cli::foreign::{BookError, Warning, counted, human_size, orphans, printable};
use crate::cli::state::check::finding::{Finding, Kind, Outcome, Overview};
use crate::cli::state::check::parts::Seen;
use crate::cli::state::json::{self, Form};
use crate::cli::state::{Desk, pick};
use crate::cli::trouble::Trouble;
use crate::core::pers_xfer::record::Record;

/// What to do about damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// Tell it.
    Tell,
    /// Let go of what is damaged.
    Repair,
}

impl Deed {
    /// `--repair` stands there, or not.
    pub(super) const fn of(repair: bool) -> Self {
        if repair { Self::Repair } else { Self::Tell }
    }
}

/// Prints each part file that holds something, each thing found, and a verdict.
pub(super) fn run(desk: &Desk<'_>, deed: Deed, form: Form) -> Result<Exit, Trouble> {
    let contents = match desk.book.load() {
        Ok(contents) => contents,
        Err(BookError::Damaged { damage, path, .. }) => return unreadable(desk, form, &path, &damage),
        Err(other) => return Err(other.into()),
    };
    let mut overview = Overview::of(desk.book.path(), contents.records.len());
    overview.findings.extend(contents.warnings.iter().map(of_state));
    for record in &contents.records {
        let Some(seen) = parts::look(desk, record) else { continue };
        take_in(&mut overview, desk, deed, record, seen)?;
    }
    overview.findings.extend(contents.records.iter().filter_map(|record| sources::look(desk, record)));
    overview.findings.extend(ownerless(desk, &contents.records));
    overview.findings.extend(missing(desk, &contents.records));
    finish(desk, form, &overview)
}

/// One part file: what is damaged is repaired where that is wanted.
fn take_in(
    overview: &mut Overview,
    desk: &Desk<'_>,
    deed: Deed,
    record: &Record,
    mut seen: Seen,
) -> Result<(), Trouble> {
    if deed == Deed::Repair && seen.findings.iter().any(Finding::wants_repair) {
        repair::repair(desk, record, &mut seen)?;
    }
    overview.files.extend(seen.file);
    overview.findings.extend(seen.findings);
    Ok(())
}

fn finish(desk: &Desk<'_>, form: Form, overview: &Overview) -> Result<Exit, Trouble> {
    (desk.out)(&match form {
        Form::Text => overview.text(),
        Form::Json => json::text(&overview.json()) + "\n",
    })?;
    Ok(overview.exit())
}

/// Damage of the state file that was survived.
fn of_state(warning: &Warning) -> Finding {
    Finding { path: Some(warning.file.clone()), ..Finding::damage(Kind::State, warning.to_string(), "") }
}

/// No generation of the file is sound.
fn unreadable(desk: &Desk<'_>, form: Form, path: &Path, damage: &[Warning]) -> Result<Exit, Trouble> {
    let mut overview = Overview::of(path, 0);
    overview.findings.extend(damage.iter().map(of_state));
    overview.outcome = Outcome::Unreadable;
    finish(desk, form, &overview)
}

/// Finished files that are not where they were written: people move files, which is worth knowing, and no damage.
fn missing(desk: &Desk<'_>, records: &[Record]) -> Vec<Finding> {
    let gone = records.iter().filter(|record| desk.book.is_missing(record));
    let found = |record: &Record| {
        let text = format!("{}: complete, and not there any more", pick::place(record));
        let advice = "if it was moved, all is well; `persxfer retry` has it fetched again, `persxfer state forget` drops its \
                      record";
        Finding { id: Some(record.id), path: record.path.clone(), ..Finding::note(Kind::Moved, text, advice) }
    };
    gone.map(found).collect()
}

/// Part files in the folders of the transfers that belong to none of them, and that no process works on.
fn ownerless(desk: &Desk<'_>, records: &[Record]) -> Vec<Finding> {
    let parts: BTreeSet<PathBuf> = records.iter().flat_map(|r| desk.book.parts(r)).collect();
    let folders: BTreeSet<&Path> = parts.iter().filter_map(|part| part.parent()).collect();
    let found = folders.into_iter().flat_map(orphans).filter(|path| !parts.contains(path));
    let line = |path: PathBuf| {
        let size = path.symlink_metadata().map_or(0, |meta| meta.len());
        let text = format!("{}: no transfer here owns it", path.display());
        let advice = format!("delete it ({}), unless it belongs to another state file", human_size(size));
        Finding { path: Some(path), ..Finding::damage(Kind::Orphan, text, advice) }
    };
    found.map(line).collect()
}

/// `/s/client_state.xml: 2 transfers`.
fn title(path: &Path, transfers: usize) -> String {
    format!("{}: {}", printable(&path.display().to_string()), counted(transfers, "transfer"))
}
