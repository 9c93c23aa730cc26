//! `state report`: BOINC's `<file_xfer_error>` for each transfer that failed for good, as BOINC's client sends it with the
//! result that needed the file.

use crate::cli::exit::Exit;
use crate::cli::foreign::printable;
use crate::cli::state::Desk;
use crate::cli::trouble::Trouble;
use crate::core::pers_xfer::record::{Record, Status};

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
    let name = escape(&record.name);
    let meaning = name_of(*code).map(|text| format!(" ({text})")).unwrap_or_default();
    let message = escape(message);
    Some(format!(
        "<file_xfer_error>\n  <file_name>{name}</file_name>\n  <error_code>{code}{meaning}</error_code>\n  \
         <error_message>{message}</error_message>\n</file_xfer_error>\n"
    ))
}

/// What BOINC calls an error number that a transfer can end with.
const fn name_of(code: i32) -> Option<&'static str> {
    Some(match code {
        -119 => "MD5 check failed",
        -120 => "signature verification failed",
        -131 => "file size too big",
        -182 => "timeout",
        -184 => "transient HTTP error",
        -197 => "aborted by user",
        -200 | -221 => "wrong size",
        -224 => "permanent HTTP error",
        _ => return None,
    })
}

fn escape(text: &str) -> String {
    printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
