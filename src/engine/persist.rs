//! When records are written. Changes are gathered: what is urgent is written within the turn, the rest within a second,
//! all of it in one write.

use std::collections::BTreeSet;

use crate::core::pers_xfer::Urgency;
use crate::core::pers_xfer::record::{Record, Status, XferId};
use crate::core::time::{Delay, Mono};
use crate::io::part;
use crate::io::state_file::{StateError, StateFile};

/// So long a change may wait for company.
const GATHER: Delay = Delay::from_secs(1);

/// The records that are to be written.
#[derive(Debug)]
pub(super) struct Persist {
    file: StateFile,
    dirty: BTreeSet<XferId>,
    /// Of transfers that an earlier run finished.
    done: Vec<Record>,
    due: Option<Mono>,
}

impl Persist {
    pub(super) fn new(file: StateFile) -> Self {
        Self { file, dirty: BTreeSet::new(), done: Vec::new(), due: None }
    }

    /// This record differs from what is stored.
    pub(super) fn mark(&mut self, id: XferId, urgency: Urgency, now: Mono) {
        self.dirty.insert(id);
        let due = match urgency {
            Urgency::Now => now,
            Urgency::Later => now + GATHER,
        };
        self.due = Some(self.due.map_or(due, |d| d.min(due)));
    }

    /// The transfer was found done: an earlier run may have ended before it could store that.
    pub(super) fn done_before(&mut self, record: &Record, now: Mono) {
        self.done.push(record.clone());
        self.due = Some(self.due.map_or(now, |due| due.min(now)));
    }

    /// When the next write is due.
    pub(super) fn due(&self) -> Option<Mono> {
        self.due
    }

    /// Writes what is dirty, in one write. What cannot be written stays dirty.
    pub(super) fn flush<'a>(&mut self, record: impl Fn(XferId) -> Option<&'a Record>) -> Result<(), StateError> {
        if self.dirty.is_empty() && self.done.is_empty() {
            return Ok(());
        }
        let dirty: Vec<&Record> = self.dirty.iter().filter_map(|id| record(*id)).chain(&self.done).collect();
        self.file.commit(|document| dirty.iter().for_each(|record| document.put(record)))?;
        let done = dirty.iter().filter(|record| record.status == Status::Done);
        done.filter_map(|record| record.path.as_deref()).for_each(part::tidy);
        self.dirty.clear();
        self.done.clear();
        self.due = None;
        Ok(())
    }
}
