//! What servers keep of uploads that end here before they are whole.

use std::path::Path;

use crate::cli::foreign::{self, Dropped, printable};
use crate::cli::state::pick;
use crate::core::pers_xfer::record::{Record, XferId};

/// What becomes of the records of what was not cleaned up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// They stay, so that servers can be asked again.
    Abort,
    /// They go.
    Forget,
}

/// These uploads are aborted or forgotten: servers that have something of them are asked to drop it, for ten seconds at most.
/// Their records, which know what that is called there, are still in the state file. What may stay there is told.
pub(crate) fn clean_up_at_servers(state_file: &Path, records: &[&Record], after: After, say: &dyn Fn(&str)) {
    let begun: Vec<XferId> = records.iter().filter(|r| !r.uploads.is_empty()).map(|r| r.id).collect();
    if begun.is_empty() {
        return;
    }
    let place = |id: XferId| records.iter().find(|r| r.id == id).map_or_else(String::new, |r| pick::place(r));
    match foreign::abandon(state_file, &begun) {
        Ok(cleaned) => {
            for one in &cleaned {
                let (place, server) = (place(one.id), &one.server);
                let why = match &one.how {
                    Dropped::Done => continue,
                    Dropped::Refused(why) => format!("did not drop what it has ({})", printable(why)),
                    Dropped::Late => "did not answer in time".to_owned(),
                    Dropped::NotAsked(fault) => format!("was not asked to drop it: {}", printable(&fault.to_string())),
                };
                let then = match after {
                    After::Abort => format!(": `persxfer abort {}` asks again", one.id),
                    After::Forget => ", and is not known here any more".to_owned(),
                };
                say(&format!("{place}: {server} {why}; what was sent there may still lie there{then}"));
            }
        }
        Err(error) => say(&format!("servers were not cleaned up: {}", printable(&error.to_string()))),
    }
}
