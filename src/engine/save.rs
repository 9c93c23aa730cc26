//! What is written, and what a write meets: other processes' words, and what is stored by now.

use crate::engine::EngineError;
use crate::engine::claims::Keep;
use crate::engine::persist::{Flush, Met, Said, Traffic};
use crate::engine::supervisor::Supervisor;

impl Supervisor<'_> {
    pub(super) fn persist_if_due(&mut self) -> Result<(), EngineError> {
        let now = self.clock.now().mono;
        if self.persist.due().is_some_and(|due| due <= now) || self.keeper.is_to_be_stored(now) {
            self.save(Keep::Ours)?;
        }
        Ok(())
    }

    /// Writes what differs from what is stored.
    pub(super) fn save(&mut self, keep: Keep) -> Result<(), EngineError> {
        let now = self.clock.now();
        let transfers = &self.transfers;
        let live = |id| transfers.get(&id).map(|t| (t.record(), t.obeyed.as_slice()));
        let hosts = (self.hosts.snapshot(now), &self.heard_of);
        let (traffic, today) = self.keeper.unstored(now);
        let traffic = Traffic { by_day: &traffic, today, is_due: self.keeper.is_to_be_stored(now.mono) };
        let said = Said { mode: self.keeper.said_mode(), report_to: self.keeper.report_url() };
        let flush = Flush { live: &live, keep, hosts, traffic, said, rng: &mut *self.rng };
        let mut met = self.persist.flush(flush, &self.clock)?;
        if let Some((history, reports)) = met.stored.take() {
            self.keeper.stored(history);
            self.meet_reports(&reports);
        }
        self.uploads.stored();
        self.meet(met);
        Ok(())
    }

    fn meet(&mut self, met: Met) {
        self.watch.revived(met.revived);
        for (id, loss) in met.lost {
            self.lose(id, loss);
        }
    }
}
