//! What the ends of sessions say of their hosts, and what the hosts' backoff is told of it.

use crate::core::file_xfer::Outcome;
use crate::core::hosts::HostKey;
use crate::core::pers_xfer::record::{Direction, XferId};
use crate::core::time::{Delay, Now};
use crate::core::url::Origin;
use crate::engine::supervisor::Supervisor;

/// What a session's end says of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostNews {
    /// It does not do its work; it may have asked to wait.
    Failing { floor: Option<Delay> },
    /// It answered.
    Good,
    /// Nothing.
    Nothing,
}

impl Supervisor<'_> {
    pub(super) fn report_to_host(&mut self, id: XferId, host: &Origin, outcome: &Outcome, now: Now) {
        let Some(transfer) = self.transfers.get(&id) else { return };
        let key = key_of(host);
        match transfer.host_news(outcome) {
            HostNews::Failing { floor } => {
                self.hosts.failed(&key, now, &mut *self.rng);
                if let Some(floor) = floor {
                    self.hosts.hold_until(&key, now.mono + floor);
                }
            }
            HostNews::Good => {
                self.hosts.succeeded(&key);
            }
            HostNews::Nothing => self.hosts.probe_abandoned(&key),
        }
    }
}

pub(super) fn key_of(host: &Origin) -> HostKey {
    HostKey { origin: host.clone(), direction: Direction::Download }
}
