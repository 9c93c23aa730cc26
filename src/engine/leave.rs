//! The end of a run: sessions are told to end, what they hold is written, everything is nobody's.

use std::path::Path;

use crate::core::pers_xfer::Urgency;
use crate::core::pers_xfer::record::XferId;
use crate::core::time::Delay;
use crate::engine::EngineError;
use crate::engine::claims::Keep;
use crate::engine::ended::{self, Why};
use crate::engine::supervisor::{Supervisor, sleep_until};
use crate::io::service_manager::{self, Word};

/// After a wish to stop, sessions have so long to write out what they hold.
const DRAIN: Delay = Delay::from_millis(1_500);

impl Supervisor<'_> {
    /// Tells every session to end, and waits a moment for what they hold.
    pub(super) async fn drain(&mut self) {
        let now = self.clock.now();
        let until = now.mono + DRAIN;
        if self.service.is_some() {
            service_manager::tell(Word::Stopping);
        }
        let ids: Vec<XferId> = self.transfers.keys().copied().collect();
        ids.into_iter().for_each(|id| self.pause(id, now));
        while self.slots.running() > 0 {
            let now = self.clock.now().mono;
            if now >= until {
                break;
            }
            tokio::select! {
                mail = self.mailbox.recv() => self.receive(mail),
                () = sleep_until(Some(until), now) => {}
            }
        }
    }

    /// The download to this path ends as if its run did: what it holds is written, and its record is nobody's.
    pub(super) fn let_go_of(&mut self, path: &Path) {
        let ours = self.transfers.iter().find(|(_, transfer)| transfer.record().path.as_deref() == Some(path));
        if let Some((id, transfer)) = ours {
            let id = *id;
            match &transfer.running {
                Some(running) => {
                    running.stop.cancel();
                    self.leaving.insert(id);
                }
                None => self.finish(id, &Why::Interrupted),
            }
            return;
        }
        let waiting = self.fresh.iter().filter_map(|id| self.seen.get(*id)).find(|r| r.path.as_deref() == Some(path));
        if let Some(record) = waiting {
            self.fresh.remove(&record.id);
            let report = ended::report(&record, ended::ending(&record, &Why::Interrupted));
            self.free(record);
            self.tell_end(report);
        }
    }

    /// Everything that is not over is stored as it stands, and is nobody's from then on.
    pub(super) fn leave(&mut self) -> Result<(), EngineError> {
        let now = self.clock.now();
        for transfer in self.transfers.values().filter(|t| t.is_to_be_stored()) {
            self.persist.mark(transfer.id(), Urgency::Now, now.mono);
        }
        self.save(Keep::Free)?;
        let why = self.why().clone();
        let left = std::mem::take(&mut self.transfers);
        for (id, mut transfer) in left {
            transfer.let_go();
            self.ended.extend(transfer.report(&why).map(|report| (id, report)));
        }
        Ok(())
    }
}
