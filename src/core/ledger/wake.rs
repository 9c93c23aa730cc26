//! Fresh activity: what is seen now weighs more than what failed long ago.
//!
//! A wake brings a record on, to the soonest moment that its last attempt, its server's word and its host allow. It is
//! the lesser of that and when it was due anyway, so no wake puts anything off, and wakes in whatever order and number
//! come to the same.

use crate::core::ledger::class::Kind;
use crate::core::ledger::pace::Bucket;
use crate::core::ledger::record::{Record, State};
use crate::core::ledger::table::Table;
use crate::core::time::{Delay, Epoch};

/// How wakes are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manners {
    /// Those woken at once are spread over so long.
    pub spread: Delay,
}

impl Default for Manners {
    fn default() -> Self {
        Self { spread: Delay::from_secs(30) }
    }
}

/// What somebody saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Of what kind.
    pub kind: Kind,
    /// When.
    pub at: Epoch,
}

/// What came of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// It is due sooner than it was.
    Sooner,
    /// It would not have been due later anyway.
    Anyway,
    /// It is kept in mind: somebody works on the record right now.
    Later,
    /// It was seen before the last attempt, which knew better.
    Old,
    /// Nothing of that kind wakes a record of that class.
    Foreign,
    /// There is nothing to wake: the file is here.
    Done,
}

impl Record {
    /// Somebody saw something. `host_floor` is when its host may be asked again; a wake that has an effect is taken from
    /// the `budget`, and what is beyond it comes later, but comes.
    pub fn observe(
        &mut self,
        seen: Seen,
        now: Epoch,
        host_floor: Option<Epoch>,
        table: &Table,
        manners: Manners,
        budget: &mut Bucket,
    ) -> Woken {
        if self.state == State::Done {
            return Woken::Done;
        }
        if self.last_attempt.is_some_and(|last| seen.at <= last) {
            return Woken::Old;
        }
        if self.class.is_some_and(|class| !table.rule(class).wakes.holds(seen.kind)) {
            return Woken::Foreign;
        }
        let gap = self.class.map_or(Delay::ZERO, |class| table.rule(class).gap);
        let rested = self.last_attempt.map_or(now, |last| last + gap);
        let soonest = [self.floor_at, host_floor].into_iter().flatten().fold(now.max(rested), Epoch::max);
        let target = soonest + manners.spread.mul_f64(f64::from(self.luck) / 65_536.0);
        self.step_down(table);
        let known = match &self.state {
            State::Leased(lease) => lease.wake_at,
            _ => Some(self.due_at),
        };
        if known.is_some_and(|known| known <= target) {
            return Woken::Anyway;
        }
        let target = target.max(budget.next(now));
        if known.is_some_and(|known| known <= target) {
            return Woken::Anyway;
        }
        budget.take(1, now);
        self.woken_at = Some(self.woken_at.map_or(now, |known| known.max(now)));
        match &mut self.state {
            State::Leased(lease) => {
                lease.wake_at = Some(target);
                Woken::Later
            }
            _ => {
                self.due_at = target;
                Woken::Sooner
            }
        }
    }

    /// What failed long ago weighs less.
    fn step_down(&mut self, table: &Table) {
        if let Some(class) = self.class {
            self.rungs.set(class, table.rule(class).rung_when_woken(self.rungs.of(class)));
        }
    }
}
