//! `state report`: BOINC's `<file_xfer_error>` for each transfer that failed for good, as BOINC's client sends it with the
//! result that needed the file.

use crate::cli::exit::Exit;
use crate::cli::state::Desk;
use crate::cli::trouble::Trouble;
use crate::core::pers_xfer::record::{Record, Status};
use crate::core::report;

/// Prints them.
pub(super) fn run(desk: &Desk<'_>) -> Result<Exit, Trouble> {
    let contents = desk.load()?;
    let text: String = contents.records.iter().filter_map(element).collect();
    if text.is_empty() {
        (desk.say)("no transfer has failed for good");
    }
    (desk.out)(&text)?;
    Ok(Exit::Complete)
}

fn element(record: &Record) -> Option<String> {
    let Status::Failed { code, message } = &record.status else { return None };
    Some(report::element(&record.name, *code, message))
}
