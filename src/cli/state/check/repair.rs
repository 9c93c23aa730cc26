//! `state check --repair`: damaged bytes are held no more, so that the next session fetches them again, and no others. What
//! a process works on is left alone.

use crate::cli::foreign::human_size;
use crate::cli::state::Desk;
use crate::cli::state::check::finding::{Finding, Grade, Kind};
use crate::cli::state::check::parts::{self, Seen};
use crate::cli::trouble::Trouble;
use crate::core::failure::LocalFault;
use crate::core::pers_xfer::record::Record;
use crate::core::range::RangeSet;

/// Lets go of what is damaged in one part file, and says so in what was found. Looks again afterwards: what is still
/// damaged then stays a fault.
pub(super) fn repair(desk: &Desk<'_>, record: &Record, seen: &mut Seen) -> Result<(), Trouble> {
    if seen.findings.iter().any(|finding| finding.kind == Kind::Busy) {
        seen.findings.iter_mut().for_each(|finding| keep(finding, "not repaired: stop that process first"));
        return Ok(());
    }
    let left = match desk.book.repair(record, &seen.damaged) {
        Ok(left) => left,
        Err(fault) => {
            refuse(seen, &fault);
            return Ok(());
        }
    };
    desk.book.holds_only(record.id, &left)?;
    let mut after = record.clone();
    after.holds_only(&left);
    let again = parts::look(desk, &after);
    if again.as_ref().is_none_or(|again| again.findings.iter().all(|finding| finding.grade != Grade::Damage)) {
        done(seen, &left);
    }
    seen.findings.retain(|finding| finding.kind != Kind::Unchecked);
    if let Some(again) = again {
        // What lies beyond a gap that was made has no sums any more.
        seen.findings.extend(again.findings.into_iter().filter(|finding| finding.kind == Kind::Unchecked));
        seen.file = again.file;
    } else {
        seen.file = None;
    }
    Ok(())
}

fn done(seen: &mut Seen, left: &RangeSet) {
    for finding in seen.findings.iter_mut().filter(|finding| finding.wants_repair()) {
        finding.grade = Grade::Repaired;
        let held = human_size(left.length().0);
        finding.advice = format!("repaired: {held} are still held, the next session fetches what is missing");
    }
}

/// This machine does not let us.
fn refuse(seen: &mut Seen, fault: &LocalFault) {
    let why = format!("not repaired: {fault}");
    seen.findings.iter_mut().filter(|finding| finding.wants_repair()).for_each(|finding| keep(finding, &why));
}

fn keep(finding: &mut Finding, why: &str) {
    finding.grade = Grade::Kept;
    finding.advice = why.to_owned();
}
