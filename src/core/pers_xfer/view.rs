//! View: what a transfer does just now, or why it does nothing, for people.

use crate::core::failure::LocalFault;
use crate::core::mirrors::HeldBy;
use crate::core::pers_xfer::machine::{Net, PersFileXfer, State};
use crate::core::pers_xfer::record::Status;
use crate::core::pers_xfer::waiting::{Reason, Wait};
use crate::core::time::Mono;
use crate::core::url::Origin;

/// What a transfer does just now, or why it does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// Its time has come; it has not been woken yet.
    Ready,
    /// The backoff after a failed pass.
    Backoff {
        /// When it is over.
        until: Mono,
        /// Passes that failed, in this life.
        retries: u32,
        /// The last failure, for people.
        last: Option<String>,
    },
    /// The moment between a session that made progress and was cut, and the next.
    Resuming {
        /// When it is over.
        until: Mono,
    },
    /// Every usable mirror is held back, this one by its server's Retry-After.
    RetryAfter {
        /// The server.
        origin: Origin,
        /// When it may be asked.
        until: Mono,
    },
    /// Every usable mirror is held back, this one by the backoff of its host.
    Host {
        /// The host.
        origin: Origin,
        /// When it may be asked.
        until: Mono,
    },
    /// It has wished for a session and waits for a slot.
    Slot {
        /// With which mirror, by its position.
        mirror: usize,
    },
    /// Trouble on this machine.
    Local {
        /// Which.
        fault: LocalFault,
        /// When it is tried again.
        until: Mono,
    },
    /// A person suspended it.
    Suspended,
    /// Nothing can be tried: no network, or the program is about to end.
    Paused,
    /// A session runs.
    Running {
        /// With which mirror, by its position.
        mirror: usize,
    },
    /// It is done, or failed for good.
    Over,
}

impl PersFileXfer {
    /// What it does just now, or why it does nothing.
    pub fn view(&self) -> View {
        match &self.state {
            State::Over => View::Over,
            State::Running(session) => View::Running { mirror: session.mirror },
            _ if self.record.status == Status::Suspended => View::Suspended,
            _ if self.net == Net::Down => View::Paused,
            State::Wished(mirror) => View::Slot { mirror: *mirror },
            State::Waiting(wait) | State::Resting(wait) => self.view_of(wait),
        }
    }

    fn view_of(&self, wait: &Wait) -> View {
        let until = wait.due;
        match &wait.reason {
            Reason::Ready => View::Ready,
            Reason::Backoff => {
                let last = self.record.history.last().map(|past| past.text.clone());
                View::Backoff { until, retries: self.record.num_retries, last }
            }
            Reason::Resuming => View::Resuming { until },
            Reason::Held(HeldBy::Server, origin) => View::RetryAfter { origin: origin.clone(), until },
            Reason::Held(HeldBy::HostBackoff, origin) => View::Host { origin: origin.clone(), until },
            Reason::Local(fault) => View::Local { fault: fault.clone(), until },
        }
    }
}
