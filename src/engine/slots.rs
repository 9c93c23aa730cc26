//! Slots: who waits for one, and who gets it. Whose turn it is is decided in [`crate::core::schedule`].

use crate::core::hosts::HostKey;
use crate::core::pers_xfer::record::XferId;
use crate::core::prefs::Sessions;
use crate::core::schedule::{Ask, Limits, Priority, Queue};
use crate::core::time::Delay;
use crate::engine::Settings;
use crate::engine::supervisor::Supervisor;

/// A session of which nothing was heard for so long does not keep others from starting. Longer than any healthy server
/// needs to begin its answer, and short beside the time after which one that is dead is given up.
const QUIET: Delay = Delay::from_secs(1);

/// So many silent sessions, for each that may be busy: as many dead hosts cost the healthy ones nothing.
const SILENT: usize = 2;

/// How many sessions at once.
pub(super) fn limits(settings: &Settings, sessions: &Sessions) -> Limits {
    let all = sessions.all.unwrap_or(settings.max_transfers);
    Limits {
        all,
        per_host: sessions.per_host.unwrap_or(settings.max_per_host),
        per_direction: sessions.per_direction,
        silent: all.saturating_mul(SILENT),
        // Where a rate is shared, those who wait for their share are silent too.
        quiet: settings.limit_rate.is_none().then_some(QUIET),
    }
}

impl Supervisor<'_> {
    /// A transfer waits for a session with this host.
    pub(super) fn wait_for_slot(&mut self, id: XferId, key: HostKey, queue: Queue) {
        let most = self.keeper.sessions_of(&key.origin);
        self.slots.set_host_limit(&key.origin, most);
        self.slots.wait(Ask { id, key, queue, priority: Priority::default() });
    }
}
