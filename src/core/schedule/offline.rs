//! Is there a network at all? Learned from how sessions end, because a machine may have no other way to know.
//!
//! One host that cannot be reached says nothing of the others. So the network is thought to be down only where session
//! after session ended without reaching even the network, or a resolver, and none was answered in between: at two hosts at
//! least, or at the only one that was asked. From then on nothing counts against any host, and single sessions probe it,
//! one at a time and ever more seldom; each goes to whoever is next, so that one host that is gone for good does not keep
//! the rest. One answer, from anybody, and all is as before. Word from the system that its network has changed has the
//! next probe go at once.

use std::collections::BTreeSet;

use crate::core::failure::{Failure, NO_NETWORK};
use crate::core::time::{Delay, Mono};
use crate::core::url::Origin;

/// So many sessions in a row that did not reach the network.
const PATIENCE: usize = 2;
/// The first probe goes after so long,
const FIRST_PROBE: Delay = Delay::from_secs(5);
/// and each later one after twice the time, up to this.
const LAST_PROBE: Delay = Delay::from_mins(5);
/// A probe that is not heard of by then is lost.
const PROBE_LIFE: Delay = Delay::from_mins(10);

/// What the end of a session, or an answer within it, says of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A server, a proxy or at least its system answered, be it with a refusal.
    Reached,
    /// The system has no way to the network, or no resolver answers.
    NoNetwork,
    /// Nothing.
    Nothing,
}

/// What a failure says of the network.
pub fn sign_of(failure: &Failure) -> Sign {
    match failure {
        Failure::Connect { detail } if NO_NETWORK.iter().any(|words| detail.contains(words)) => Sign::NoNetwork,
        // The system's word for a resolver that does not answer. Of a name that never has an address (RFC 6761), it says
        // nothing.
        Failure::Resolve { host, detail } if detail.contains("Temporary failure") && !host.ends_with(".invalid") => {
            Sign::NoNetwork
        }
        Failure::Connect { detail } if detail.contains("refused") => Sign::Reached,
        Failure::Status { .. } | Failure::Cut(_) | Failure::Redirect(_) | Failure::BadAnswer(_) => Sign::Reached,
        Failure::Certificate { .. } | Failure::Digest { .. } | Failure::OddMirror { .. } => Sign::Reached,
        _ => Sign::Nothing,
    }
}

/// What a sign has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turned {
    /// Nothing.
    No,
    /// The network is thought to be down.
    Down,
    /// It is there again.
    Up,
}

/// What is known of the network.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// The hosts at which sessions ended without it since the last answer, and how many did.
    without: BTreeSet<Origin>,
    in_a_row: usize,
    down: Option<Down>,
}

#[derive(Clone, Copy, Debug)]
struct Down {
    pause: Delay,
    next: Mono,
    /// When the probe under way is given up.
    probe: Option<Mono>,
}

impl Network {
    /// A session with this host tells something; `asked` are the hosts that transfers of this run go to just now.
    pub fn sign(&mut self, host: &Origin, sign: Sign, asked: usize, now: Mono) -> Turned {
        match sign {
            Sign::Reached => self.reached(),
            Sign::Nothing => {
                self.abandon(now);
                Turned::No
            }
            Sign::NoNetwork => self.without(host, asked, now),
        }
    }

    /// Nobody goes and probes after all, or the one who did says nothing: another one goes soon.
    pub fn abandon(&mut self, now: Mono) {
        if let Some(down) = &mut self.down
            && down.probe.take().is_some()
        {
            down.next = now + FIRST_PROBE;
        }
    }

    fn reached(&mut self) -> Turned {
        let was_down = self.down.is_some();
        *self = Self::default();
        if was_down { Turned::Up } else { Turned::No }
    }

    fn without(&mut self, host: &Origin, asked: usize, now: Mono) -> Turned {
        if let Some(down) = &mut self.down {
            // Sessions that were under way when it went down end so too, and are no probes.
            if down.probe.take().is_some() {
                down.pause = down.pause.saturating_mul(2).min(LAST_PROBE);
                down.next = now + down.pause;
            }
            return Turned::No;
        }
        self.in_a_row += 1;
        self.without.insert(host.clone());
        if self.in_a_row < PATIENCE || self.without.len() < asked.min(PATIENCE) {
            return Turned::No;
        }
        self.down = Some(Down { pause: FIRST_PROBE, next: now + FIRST_PROBE, probe: None });
        self.without.clear();
        Turned::Down
    }

    /// The system says that its network has changed: where it was down, it is tried at once.
    pub fn changed(&mut self, now: Mono) {
        if let Some(down) = &mut self.down {
            *down = Down { pause: FIRST_PROBE, next: now, probe: None };
        }
    }

    /// Is it thought to be down? Then when it is tried again.
    pub fn offline(&self) -> Option<Mono> {
        self.down.map(|down| down.probe.unwrap_or(down.next))
    }

    /// Is a probe under way?
    pub fn is_probing(&self) -> bool {
        self.down.is_some_and(|down| down.probe.is_some())
    }

    /// May one session go and probe? It has gone then; how it ended must be told by [`Network::sign`].
    pub fn probe(&mut self, now: Mono) -> bool {
        let Some(down) = &mut self.down else { return false };
        let may = down.probe.map_or(down.next, |lost| lost) <= now;
        if may {
            down.probe = Some(now + PROBE_LIFE);
        }
        may
    }
}
