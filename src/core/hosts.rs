//! Hosts: which of them back off as a whole, and which have asked us to wait.
//!
//! Three failures in a row *of the host* (unreachable, 5xx, 429, a stall; the caller knows) and it is left alone, in
//! one direction, for every transfer: an outage costs one step of one backoff, however many files it hits. When the
//! time has come one session probes it. If the host answers, it is open to all at once; if not, it rests one step
//! longer. Beside that, a host's Retry-After keeps it closed until then. After BOINC's project-wide backoff, but by
//! host.
//!
//! The steps are those of today's BOINC client (`boinc-7`), from the first one on, inside the bounds of the run.

use std::collections::BTreeMap;

use crate::core::backoff::{Backoff, BadPolicy, Policy};
use crate::core::pers_xfer::record::Direction;
use crate::core::retry_after::RETRY_AFTER_CAP;
use crate::core::time::{Delay, Epoch, Mono, Now};
use crate::core::url::Origin;

/// Failures in a row before a host backs off as a whole (BOINC's number).
const PATIENCE: u32 = 3;
/// When to ask again while a probe is under way: its outcome is not known beforehand.
const RECHECK: Delay = Delay::from_secs(1);
/// A probe that has not reported by then is given up, so that a lost one does not close its host for ever. Longer than
/// any session is silent.
const PROBE_LIFE: Delay = Delay::from_mins(10);

/// So many hosts of which nothing is known but how fast they are.
const MOST_RATES: usize = 256;

/// A host, and which way the bytes go.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostKey {
    /// The origin that answers.
    pub origin: Origin,
    /// Uploads and downloads back off apart: a host can be full, and well able to serve.
    pub direction: Direction,
}

/// May a session begin?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Yes.
    Open,
    /// Yes, this one, to find out whether the host is back. Its outcome must be told: [`Hosts::succeeded`] with the
    /// first good answer, [`Hosts::failed`], or [`Hosts::probe_abandoned`] where neither is known.
    Probe,
    /// No.
    Closed {
        /// When to ask again.
        until: Mono,
        /// Why.
        why: Closure,
    },
}

/// Why a host is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closure {
    /// It asked us to wait.
    RetryAfter,
    /// It backs off as a whole.
    Backoff,
    /// A probe is under way.
    Probing,
}

/// What a report changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing that others must know.
    None,
    /// The host is open again: whoever waits for it can be told at once.
    Opened,
    /// The host backs off until then.
    Closed(Mono),
}

/// What is known of a host, as the state file keeps it: plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRecord {
    /// Which.
    pub key: HostKey,
    /// Failures in a row, before it began to back off.
    pub failures: u32,
    /// The last of them, in a word: a status, or a class.
    pub last: Option<String>,
    /// How far its backoff has gone.
    pub backoff: Backoff,
    /// It backs off until then; `None` where it does not.
    pub closed_until: Option<Epoch>,
    /// It asked us to wait until then.
    pub not_before: Option<Epoch>,
    /// What one connection to it brought of late, in bytes per second.
    pub rate: Option<u64>,
}

impl HostRecord {
    /// Failures in a row, those of probes among them.
    pub fn failures_in_a_row(&self) -> u32 {
        self.failures.saturating_add(self.backoff.n.saturating_sub(1))
    }
}

/// All hosts of a run.
#[derive(Clone, Debug)]
pub struct Hosts {
    policy: Policy,
    hosts: BTreeMap<HostKey, Host>,
}

#[derive(Clone, Debug, Default)]
struct Host {
    failures: u32,
    last: Option<String>,
    outage: Option<Outage>,
    not_before: Option<Mono>,
    rate: Option<u64>,
}

#[derive(Clone, Debug)]
struct Outage {
    backoff: Backoff,
    until: Mono,
    /// When the probe began, while there is one.
    probe: Option<Mono>,
}

impl Hosts {
    /// No hosts known; delays within the bounds of the run, else those of `boinc-7` (2 minutes to 6 hours).
    ///
    /// # Errors
    /// As [`Policy::with_bounds`].
    pub fn new(min: Option<Delay>, max: Option<Delay>) -> Result<Self, BadPolicy> {
        Ok(Self { policy: Policy::BOINC_7.with_bounds(min, max)?, hosts: BTreeMap::new() })
    }

    /// Takes up what was stored, in addition. A time further ahead than the longest delay is an error of some clock:
    /// it is cut to that. A probe that was under way is not any more.
    pub fn restore(&mut self, records: impl IntoIterator<Item = HostRecord>, now: Now) {
        let longest = self.policy.longest();
        for record in records {
            let outage = record.closed_until.map(|until| Outage {
                backoff: record.backoff,
                until: due(until, longest, now),
                probe: None,
            });
            let not_before = record.not_before.map(|until| due(until, RETRY_AFTER_CAP, now));
            self.hosts.insert(
                record.key,
                Host { failures: record.failures, last: record.last, outage, not_before, rate: record.rate },
            );
        }
    }

    /// What to store. Hosts of which nothing is left to say are forgotten.
    pub fn snapshot(&mut self, now: Now) -> Vec<HostRecord> {
        self.hosts.retain(|_, host| !host.is_blank(now.mono));
        self.forget_rates(now.mono);
        self.hosts.iter().map(|(key, host)| host.record(key.clone(), now)).collect()
    }

    /// Of hosts of which nothing is known but a rate, the fastest are remembered.
    fn forget_rates(&mut self, now: Mono) {
        let only = |host: &Host| Host { rate: None, ..host.clone() }.is_blank(now);
        let mut rated: Vec<_> =
            self.hosts.iter().filter(|(_, host)| only(host)).map(|(k, h)| (h.rate, k.clone())).collect();
        rated.sort();
        let many = rated.len().saturating_sub(MOST_RATES);
        rated.drain(..many).for_each(|(_, key)| _ = self.hosts.remove(&key));
    }

    /// Asks whether a session with this host may begin now. [`Gate::Probe`] is given to one asker at a time.
    pub fn gate(&mut self, key: &HostKey, now: Now) -> Gate {
        self.hosts.get_mut(key).map_or(Gate::Open, |host| host.gate(now.mono, self.policy.shortest()))
    }

    /// A session failed by the host's fault. While the host backs off that is no news, unless it was the probe.
    pub fn failed(&mut self, key: &HostKey, now: Now, rng: &mut dyn rand::Rng) -> Change {
        let host = self.hosts.entry(key.clone()).or_default();
        let backoff = match host.outage.take() {
            None => {
                host.failures = host.failures.saturating_add(1);
                if host.failures < PATIENCE {
                    return Change::None;
                }
                Backoff::default()
            }
            Some(outage) if outage.probe.is_none() => {
                host.outage = Some(outage);
                return Change::None;
            }
            Some(outage) => outage.backoff,
        };
        Change::Closed(host.back_off(backoff, &self.policy, now.mono, rng))
    }

    /// What a failure that is about to be told of was, in a word. Of a host that backs off, the probe's.
    pub fn blame(&mut self, key: &HostKey, word: &str) {
        let host = self.hosts.entry(key.clone()).or_default();
        if host.outage.as_ref().is_none_or(|outage| outage.probe.is_some()) {
            host.last = Some(word.to_owned());
        }
    }

    /// The host answered as it should: what was counted against it is forgotten, and it is open to all. Its own
    /// Retry-After stands.
    pub fn succeeded(&mut self, key: &HostKey) -> Change {
        let Some(host) = self.hosts.get_mut(key) else { return Change::None };
        host.failures = 0;
        host.last = None;
        if host.outage.take().is_some() { Change::Opened } else { Change::None }
    }

    /// The probe ended without a word on the host (cancelled, a local fault): the next asker probes.
    pub fn probe_abandoned(&mut self, key: &HostKey) {
        if let Some(outage) = self.hosts.get_mut(key).and_then(|host| host.outage.as_mut()) {
            outage.probe = None;
        }
    }

    /// A person wants it asked now: the next asker probes. Its own Retry-After stands.
    pub fn try_now(&mut self, key: &HostKey) {
        if let Some(outage) = self.hosts.get_mut(key).and_then(|host| host.outage.as_mut()) {
            outage.until = Mono::ZERO;
        }
    }

    /// The host asked not to be asked before then. A floor: a later one stands.
    pub fn hold_until(&mut self, key: &HostKey, until: Mono) {
        let host = self.hosts.entry(key.clone()).or_default();
        host.not_before = host.not_before.max(Some(until));
    }

    /// One connection to the host brought so many bytes per second. Half of what is kept is the latest word.
    pub fn measured(&mut self, key: &HostKey, rate: u64) {
        let host = self.hosts.entry(key.clone()).or_default();
        host.rate = Some(host.rate.map_or(rate, |known| known.midpoint(rate)));
    }

    /// Failures of the host in a row.
    pub fn failures(&self, key: &HostKey) -> u32 {
        self.hosts.get(key).map_or(0, |host| if host.outage.is_some() { PATIENCE } else { host.failures })
    }

    /// What one connection to the host brought of late, in bytes per second.
    pub fn rate(&self, key: &HostKey) -> Option<u64> {
        self.hosts.get(key).and_then(|host| host.rate)
    }

    /// Until when the host is closed, and why, without asking for admission: to show it.
    pub fn closed(&self, key: &HostKey, now: Now) -> Option<(Mono, Closure)> {
        self.hosts.get(key).and_then(|host| host.closed(now.mono, self.policy.shortest()))
    }

    /// The next moment at which a host that is closed now may be asked for again; `None` where none is.
    pub fn next_opening(&self, now: Now) -> Option<Mono> {
        let shortest = self.policy.shortest();
        self.hosts.values().filter_map(|host| host.closed(now.mono, shortest)).map(|(until, _)| until).min()
    }
}

impl Host {
    fn gate(&mut self, now: Mono, shortest: Delay) -> Gate {
        if let Some((until, why)) = self.closed(now, shortest) {
            return Gate::Closed { until, why };
        }
        match &mut self.outage {
            None => Gate::Open,
            Some(outage) => {
                outage.probe = Some(now);
                Gate::Probe
            }
        }
    }

    /// Until when nobody is let in, as far as it is known. Where both keep it closed, the later one tells.
    fn closed(&self, now: Mono, shortest: Delay) -> Option<(Mono, Closure)> {
        let held = self.not_before.map(|until| (until, Closure::RetryAfter));
        let resting = self.outage.as_ref().map(|outage| match outage.probe {
            None => (outage.until, Closure::Backoff),
            Some(began) => ((began + PROBE_LIFE).min(now + RECHECK.min(shortest)), Closure::Probing),
        });
        held.into_iter().chain(resting).filter(|(until, _)| *until > now).max_by_key(|(until, _)| *until)
    }

    fn back_off(&mut self, mut backoff: Backoff, policy: &Policy, now: Mono, rng: &mut dyn rand::Rng) -> Mono {
        // `boinc-7` has no never; the longest delay is what it would mean.
        let delay = backoff.fail(policy, rng).unwrap_or(policy.longest());
        let until = now + delay;
        self.outage = Some(Outage { backoff, until, probe: None });
        until
    }

    fn is_blank(&self, now: Mono) -> bool {
        self.failures == 0
            && self.outage.is_none()
            && self.rate.is_none()
            && self.not_before.is_none_or(|until| until <= now)
    }

    fn record(&self, key: HostKey, now: Now) -> HostRecord {
        HostRecord {
            key,
            failures: self.failures,
            last: self.last.clone().filter(|_| self.failures > 0),
            backoff: self.outage.as_ref().map(|outage| outage.backoff.clone()).unwrap_or_default(),
            closed_until: self.outage.as_ref().map(|outage| now.wall_of(outage.until)),
            not_before: self.not_before.filter(|until| *until > now.mono).map(|until| now.wall_of(until)),
            rate: self.rate,
        }
    }
}

/// A stored moment on the clock that waits run on, at most `longest` ahead.
fn due(stored: Epoch, longest: Delay, now: Now) -> Mono {
    now.mono + stored.since(now.wall).min(longest)
}

#[cfg(test)]
mod tests;
