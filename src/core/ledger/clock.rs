//! A wall clock that jumped, and times that no rule can have set.

use crate::core::ledger::lease::Terms;
use crate::core::ledger::record::{Record, State};
use crate::core::ledger::table::Table;
use crate::core::time::{Delay, Epoch};

/// A clock set back by no more is one that was corrected a little.
const SLACK: Delay = Delay::from_mins(5);

/// What the wall clock says, against the latest time that the ledger has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// It is that time, or later; how much later means nothing, for the program may not have run.
    Onward,
    /// It was set back: what is stored is measured from now on, and no lease ends by it.
    SetBack,
}

/// Compares the clock with the latest time that was seen.
pub fn read(latest: Epoch, now: Epoch) -> Reading {
    if latest.since(now) > SLACK { Reading::SetBack } else { Reading::Onward }
}

/// Was a stored time cut?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clamped {
    /// It was one that no rule gives: it is as if it had been set now.
    Yes,
    /// It may stand.
    No,
}

impl Record {
    /// A time further ahead than the longest wait was stored by a clock that was wrong, or was damaged: it is cut to the
    /// longest wait, and a lease to the longest lease.
    pub fn clamp(&mut self, now: Epoch, table: &Table, terms: Terms) -> Clamped {
        let longest = match self.state {
            State::Done => return Clamped::No,
            State::Leased(_) => terms.longest(),
            State::Waiting | State::Parked => table.longest(),
        };
        let wait = table.longest();
        let mut cut = Clamped::No;
        let mut at_most = |time: &mut Epoch, most: Epoch| {
            if *time > most {
                *time = most;
                cut = Clamped::Yes;
            }
        };
        at_most(&mut self.due_at, now + longest);
        self.floor_at.iter_mut().for_each(|floor| at_most(floor, now + wait));
        self.mirrors.iter_mut().filter_map(|m| m.bad_until.as_mut()).for_each(|until| at_most(until, now + wait));
        // A last attempt that lies ahead would make all that is seen until then old.
        self.last_attempt.iter_mut().for_each(|last| at_most(last, now));
        if let State::Leased(held) = &mut self.state {
            at_most(&mut held.due_before, now + wait);
        }
        cut
    }
}
