//! What a reported failure leads to.

use crate::core::backoff::draw;
use crate::core::ledger::class::Class;
use crate::core::ledger::lease::LeaseLost;
use crate::core::ledger::record::{Record, Resting, Token};
use crate::core::ledger::table::{Rule, Step, Table};
use crate::core::range::Length;
use crate::core::time::{Delay, Epoch};

/// So many bytes more than before are progress, however large the file.
const PROGRESS: Length = Length(1 << 20);

/// What an attempt came to that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Why.
    pub class: Class,
    /// A server's Retry-After.
    pub asked: Option<Delay>,
    /// The mirror that failed, where one did: of [`Class::Corrupt`], the one whose bytes were wrong.
    pub mirror: Option<String>,
    /// So many bytes are held now.
    pub bytes_done: Length,
}

/// What else a failure leads to, beside its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aftermath {
    /// Nothing.
    Alone,
    /// The host did not do its work.
    HostFailed,
    /// The host answered; what it lacks is this file.
    HostAnswered,
    /// The host is left alone until then.
    HostWaits(Epoch),
    /// This machine is in trouble: nobody gets anything until it has been looked at again.
    Pause,
}

impl Record {
    /// The holder's attempt failed.
    ///
    /// # Errors
    /// The sender is not the holder any more.
    pub fn fail(
        &mut self,
        token: Token,
        failed: &Failed,
        now: Epoch,
        table: &Table,
        rng: &mut dyn rand::Rng,
    ) -> Result<Aftermath, LeaseLost> {
        let lease = self.held_by(token)?;
        self.lost = 0;
        let rule = table.rule(failed.class);
        if let Step::Pause(_) = rule.step {
            let due = lease.wake_at.map_or(lease.due_before, |wake| wake.min(lease.due_before));
            self.rest(lease.before, due);
            return Ok(Aftermath::Pause);
        }
        self.failures = self.failures.saturating_add(1);
        self.last_attempt = Some(now);
        self.woken_at = lease.wake_at.map(|_| now);
        self.luck = rand::RngExt::random(rng);
        let others = self.note_mirror(failed, now, table, rng);
        let due = self.climb(failed, rule, others, now, rng);
        let woken = lease.wake_at.map(|wake| wake.max(now + rule.gap));
        let due = woken.map_or(due, |woken| woken.min(due));
        self.class = Some(failed.class);
        // One that was tried before its park was over, without a wake, stays parked as long as it was.
        let parked_still = lease.before == Resting::Parked && lease.due_before > now && lease.wake_at.is_none();
        match rule.step {
            Step::Park(_) => self.rest(Resting::Parked, if parked_still { due.max(lease.due_before) } else { due }),
            _ if parked_still && lease.due_before > due => {
                self.class = Some(Class::Denied);
                self.rest(Resting::Parked, lease.due_before);
            }
            _ => self.rest(Resting::Waiting, due),
        }
        Ok(self.aftermath(failed.class))
    }

    /// Bytes that were wrong are not used again, nor is the mirror that sent them, for a while.
    fn note_mirror(&mut self, failed: &Failed, now: Epoch, table: &Table, rng: &mut dyn rand::Rng) -> Others {
        if failed.class != Class::Corrupt {
            return Others::None;
        }
        let until = now + draw::between(table.bad_mirror, table.bad_mirror.mul_f64(1.2), rng);
        for mirror in &mut self.mirrors {
            if failed.mirror.as_ref().is_none_or(|url| *url == mirror.url) {
                mirror.bad_until = Some(until);
            }
        }
        if self.usable(now).next().is_some() { Others::Some } else { Others::None }
    }

    /// The next rung, and when that makes it due.
    fn climb(&mut self, failed: &Failed, rule: &Rule, others: Others, now: Epoch, rng: &mut dyn rand::Rng) -> Epoch {
        let (class, before) = (failed.class, self.bytes_done);
        self.bytes_done = if class == Class::Corrupt { Length::ZERO } else { failed.bytes_done };
        if others == Others::Some {
            self.step = Delay::ZERO;
            return now;
        }
        if class == Class::Interrupted && is_progress(before, failed.bytes_done, self.size) {
            self.rungs.set(class, 0);
        }
        let rung = match rule.step {
            Step::Asked(_) => self.rungs.of(class),
            _ => self.rungs.of(class).saturating_add(1),
        };
        self.rungs.set(class, rung);
        self.step = rule.wait(rung, failed.asked, rng);
        if let (Step::Asked(_), Some(asked)) = (rule.step, failed.asked) {
            let floor = now + asked.min(rule.limit);
            self.floor_at = Some(self.floor_at.map_or(floor, |known| known.max(floor)));
        }
        now + self.step
    }

    fn aftermath(&self, class: Class) -> Aftermath {
        match class {
            Class::Unreachable => Aftermath::HostFailed,
            Class::Throttled => Aftermath::HostWaits(self.floor_at.unwrap_or(self.due_at)),
            Class::Missing | Class::Gone | Class::Denied | Class::Unsupported | Class::Corrupt => {
                Aftermath::HostAnswered
            }
            Class::Interrupted | Class::LocalFault | Class::Crash => Aftermath::Alone,
        }
    }

    /// Too many holders vanished with it.
    pub(super) fn crash(&mut self, now: Epoch, table: &Table, rng: &mut dyn rand::Rng) {
        let rule = table.rule(Class::Crash);
        let rung = self.rungs.of(Class::Crash).saturating_add(1);
        self.rungs.set(Class::Crash, rung);
        self.class = Some(Class::Crash);
        self.step = rule.wait(rung, None, rng);
        self.luck = rand::RngExt::random(rng);
        self.last_attempt = Some(now);
        self.woken_at = None;
        // The next holder that vanishes is again one too many.
        self.lost = super::lease::POISON - 1;
        self.rest(Resting::Waiting, now + self.step);
    }
}

/// Whether a file can still be had elsewhere at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Others {
    /// From another mirror.
    Some,
    /// From nobody.
    None,
}

/// One byte more is no progress; a mebibyte is, or a hundredth of the file.
fn is_progress(before: Length, after: Length, size: Option<Length>) -> bool {
    let more = after.0.saturating_sub(before.0);
    let hundredth = size.map_or(u64::MAX, |size| (size.0 / 100).max(1));
    more >= PROGRESS.0.min(hundredth)
}
