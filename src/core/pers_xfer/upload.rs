//! Uploads: what their sessions leave in the record, which server is asked first, and what is left at others in the end.

use crate::core::machine::Cx;
use crate::core::pers_xfer::machine::{PersFileXfer, State};
use crate::core::pers_xfer::record::{Direction, Record, Status, error_code};
use crate::core::pers_xfer::{Action, Urgency};
use crate::core::range::{Length, Offset};
use crate::core::upload::{Persist, Source, UploadSession};

/// The server that holds most goes first where it holds more than this part of the file (facts of uploads, 8.4).
const WORTH_RETURNING: (u64, u64) = (1, 4);

impl PersFileXfer {
    /// The running session has changed what is to be kept of it.
    pub(super) fn kept(&mut self, session: UploadSession, persist: Persist, cx: &mut Cx<'_, Action>) {
        let confirmed = session.confirmed.as_length();
        if let Some(old) = self.record.uploads.iter_mut().find(|old| is_same_place(old, &session)) {
            let another_file = !is_same_file(&old.source, &session.source);
            *old = session;
            if another_file {
                self.begin_another_file();
            }
        } else {
            self.record.uploads.push(session);
        }
        if confirmed > Length::ZERO {
            self.progressed(confirmed, cx.now);
        }
        self.return_to_most();
        match persist {
            Persist::Not => {}
            Persist::Soon => cx.out.push(Action::Save(Urgency::Later)),
            Persist::Now => cx.out.push(Action::Save(Urgency::Now)),
        }
    }

    /// Of the file as it is now nothing was confirmed yet.
    fn begin_another_file(&mut self) {
        (self.record.confirmed, self.record.progress_mark) = (Length::ZERO, Length::ZERO);
        if let State::Running(session) = &mut self.state {
            session.begins_from_nothing();
        }
    }

    /// The server that holds most is asked first, where that is worth it.
    pub(super) fn return_to_most(&mut self) {
        if self.record.direction != Direction::Upload {
            return;
        }
        let worth = |confirmed: u64, size: u64| confirmed > size / WORTH_RETURNING.1 * WORTH_RETURNING.0;
        let size = self.record.nbytes.unwrap_or_default().0;
        let most = self.record.uploads.iter().max_by_key(|session| session.confirmed);
        let most = most.filter(|session| worth(session.confirmed.0, size));
        let place = most.and_then(|session| self.record.mirrors.iter().position(|m| m.url == session.server));
        self.order = place.into_iter().collect();
    }

    /// The file is at this server: what is kept of the session there has done its duty.
    pub(super) fn delivered_to(&mut self, mirror: usize) {
        let Some(url) = self.record.mirrors.get(mirror).map(|m| m.url.clone()) else { return };
        self.record.uploads.retain(|session| session.server != url);
    }
}

impl Record {
    /// At any server, what an older version of the source left ends no later than here: servers may share a store.
    pub fn stale(&self) -> Offset {
        self.uploads.iter().map(|session| session.stale).max().unwrap_or_default()
    }

    /// What is to be cleaned up at servers, now that nobody will go on with it: the transfer was delivered elsewhere, or
    /// a person wants it gone.
    pub fn abandoned(&self) -> &[UploadSession] {
        match self.status {
            Status::Done | Status::Failed { code: error_code::ABORTED, .. } => &self.uploads,
            _ => &[],
        }
    }
}

/// Of the same server, by the same protocol.
fn is_same_place(a: &UploadSession, b: &UploadSession) -> bool {
    a.server == b.server && a.protocol == b.protocol
}

/// A digest decides, where both are known.
fn is_same_file(a: &Source, b: &Source) -> bool {
    match (&a.digest, &b.digest) {
        (Some(one), Some(other)) if one.algorithm == other.algorithm => one == other,
        _ => a.stamp == b.stamp,
    }
}
