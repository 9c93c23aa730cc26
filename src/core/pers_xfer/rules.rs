//! Rules: what a user may set about a transfer's patience, and the numbers nobody needs to set.

use crate::core::backoff::Policy;
use crate::core::giveup::GiveUpFrom;
use crate::core::pers_xfer::options::Options;
use crate::core::range::Length;
use crate::core::time::Delay;

/// Progress: the high-water mark of confirmed bytes has risen by so much since the last time (design section 2). Less
/// proves nothing: a server that always breaks off at the same place, and an overlap that is fetched again, gain a little too.
pub const PROGRESS: Length = Length(64 << 10);

/// The pause between a session that made progress and was cut, and the next.
pub const RESUME_AFTER: Delay = Delay::from_secs(1);

/// How often something is tried again that failed for trouble on this machine.
pub const LOCAL_AGAIN: Delay = Delay::from_secs(30);

/// A wall clock that differs by more than this from what the monotonic one says has been set.
pub(super) const CLOCK_SET: Delay = Delay::from_secs(2);

/// How patient a transfer is: by its options, and by how the run goes about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// The delays between failed passes.
    pub policy: Policy,
    /// The give-up window.
    pub give_up: Delay,
    /// What the window counts from.
    pub give_up_from: GiveUpFrom,
    /// How often each mirror is tried before the transfer rests.
    pub rounds: Rounds,
    /// What follows on trouble on this machine.
    pub on_local_fault: OnLocalFault,
    /// Further statuses that count as transient (`--retry-on`).
    pub retry_on: Vec<u16>,
}

/// How often each mirror is tried before the transfer rests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounds {
    /// Until the transfer ends, one way or the other.
    #[default]
    UntilDone,
    /// One session a mirror, and none before its time (`--once`).
    Once,
}

/// What follows on trouble on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLocalFault {
    /// The transfer rests and says so: a person waits in front of it.
    #[default]
    Rest,
    /// It is tried again every [`LOCAL_AGAIN`]: nobody watches.
    TryAgain,
}

impl Rules {
    /// Those that the options of a transfer set.
    pub fn of(options: &Options) -> Self {
        Self {
            policy: options.policy.clone(),
            give_up: options.give_up,
            give_up_from: options.give_up_from,
            retry_on: options.retry_on.clone(),
            ..Self::default()
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            give_up: Delay::from_days(14),
            give_up_from: GiveUpFrom::default(),
            rounds: Rounds::default(),
            on_local_fault: OnLocalFault::default(),
            retry_on: Vec::new(),
        }
    }
}
