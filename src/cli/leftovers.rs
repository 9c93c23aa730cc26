//! What servers keep of uploads that end here before they are whole.

use crate::cli::foreign::{counted, human_size};
use crate::cli::state::pick;
use crate::core::pers_xfer::record::{Record, Status};
use crate::core::upload::UploadSession;

/// These uploads are aborted or forgotten: servers that have something of them may clean up. Their records, which know what
/// that is called there, are still in the state file.
///
/// This is the one place for asking servers to clean up. Nothing asks them yet, so what stays there is told.
pub(crate) fn clean_up_at_servers(records: &[&Record], say: &dyn Fn(&str)) {
    for record in records.iter().filter(|record| record.status != Status::Done) {
        let begun: Vec<&UploadSession> = record.uploads.iter().filter(|session| session.confirmed.0 > 0).collect();
        if let Some(most) = begun.iter().map(|session| session.confirmed.0).max() {
            let (place, servers, most) = (pick::place(record), counted(begun.len(), "server"), human_size(most));
            let verb = if begun.len() == 1 { "keeps" } else { "keep" };
            say(&format!("{place}: {servers} {verb} up to {most} of it until it is forgotten there"));
        }
    }
}
