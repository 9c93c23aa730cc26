//! What all records of a host share: its outages, its word to wait, the gap between two attempts.

use crate::core::backoff::{Backoff, Policy};
use crate::core::ledger::fail::Aftermath;
use crate::core::time::{Delay, Epoch};

/// Failures in a row before a host backs off as a whole.
const PATIENCE: u32 = 3;

/// A host, as the store keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Failures of its own in a row.
    pub penalty: u32,
    /// None of its records is handed out before then.
    pub not_before: Option<Epoch>,
}

/// How hosts are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Courtesy {
    /// Between two attempts at a host.
    pub gap: Delay,
    /// So many of a host's records are worked on at once.
    pub at_once: u32,
}

impl Default for Courtesy {
    fn default() -> Self {
        Self { gap: Delay::ZERO, at_once: 2 }
    }
}

impl Host {
    /// An attempt at one of its records ended so.
    pub fn heard(&mut self, aftermath: Aftermath, now: Epoch, rng: &mut dyn rand::Rng) {
        match aftermath {
            Aftermath::Alone | Aftermath::Pause => {}
            Aftermath::HostAnswered => self.answered(),
            Aftermath::HostWaits(until) => self.wait(until),
            Aftermath::HostFailed => {
                self.penalty = self.penalty.saturating_add(1);
                if self.penalty >= PATIENCE {
                    self.wait(now + outage(self.penalty - PATIENCE, rng));
                }
            }
        }
    }

    /// It does its work.
    pub const fn answered(&mut self) {
        self.penalty = 0;
    }

    /// So many of its records were handed out.
    pub fn handed_out(&mut self, count: u32, courtesy: Courtesy, now: Epoch) {
        if courtesy.gap > Delay::ZERO && count > 0 {
            self.wait(now + courtesy.gap.saturating_mul(u64::from(count)));
        }
    }

    /// How many of its records may be handed out, where so many are worked on.
    pub fn room(&self, inflight: u32, courtesy: Courtesy, now: Epoch) -> u32 {
        if self.not_before.is_some_and(|until| until > now) {
            return 0;
        }
        let most = courtesy.at_once.saturating_sub(inflight);
        if courtesy.gap > Delay::ZERO { most.min(1) } else { most }
    }

    fn wait(&mut self, until: Epoch) {
        self.not_before = Some(self.not_before.map_or(until, |known| known.max(until)));
    }
}

/// How long a host rests after so many steps of an outage: as today's BOINC client backs off, 2 minutes to 6 hours.
fn outage(steps: u32, rng: &mut dyn rand::Rng) -> Delay {
    let mut backoff = Backoff { n: steps, previous: Delay::ZERO, position: steps };
    backoff.fail(&Policy::BOINC_7, rng).unwrap_or(Policy::BOINC_7.longest())
}
