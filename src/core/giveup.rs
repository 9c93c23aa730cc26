//! Giving up: how long a transfer has been patient, and when its window has passed.
//!
//! BOINC's first document asks "later than what?". Here: than the last progress, or the first session where there was
//! none; and only time counts in which something could be tried. Suspended, offline, asleep (the monotonic clock stands
//! still then): not counted. While the program does not run, no more than the wait that was due when it ended is
//! counted, however long it was away and whatever became of the wall clock meanwhile. `--give-up-from first-request` is
//! BOINC's own rule: wall time since the first session, paused or not.
//!
//! A window can pass by a clock's word alone, while the program is not running. Such a transfer is tried once more
//! before it ends: it is given a short grace, which is not given twice.

use crate::core::time::{Delay, Epoch, Mono, Now};

/// The longest grace of a transfer whose window passed while the program did not run.
const GRACE: Delay = Delay::from_mins(1);
/// The grace of a short window, as a part of it.
const GRACE_PART: f64 = 0.1;

/// What the give-up window counts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GiveUpFrom {
    /// The last progress, or the first session where there was none; idle time does not count.
    #[default]
    LastProgress,
    /// The first session, wall time: BOINC's own rule.
    FirstRequest,
}

/// How much of its give-up window a transfer has used up.
///
/// Stored as [`Patience::used`], together with the wall time at which it was asked for and the `next_request_time`
/// then due; [`Patience::restore`] takes it up again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patience {
    window: Delay,
    from: GiveUpFrom,
    /// Used up before the clock that is running now, if one is.
    settled: Delay,
    clock: Clock,
    /// The window does not end before this moment.
    grace_until: Option<Mono>,
}

/// Does time count?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// No session has begun.
    NotBegun,
    /// Since this moment.
    Running(Mono),
    /// Nothing can be tried. By BOINC's rule time counts all the same, since this moment; but a transfer that rests
    /// is not ended.
    Paused(Mono),
}

impl Patience {
    /// Of a transfer without a past. A window of [`Delay::MAX`] never ends.
    pub fn new(window: Delay, from: GiveUpFrom) -> Self {
        Self { window, from, settled: Delay::ZERO, clock: Clock::NotBegun, grace_until: None }
    }

    /// Of a transfer as the record tells it, running from now on; call [`Patience::pause`] where nothing can be tried.
    ///
    /// `used` is what had been used up at `at`, and `next_request_time` the next session then due: `None` for a
    /// transfer that was suspended, because it waited for nothing. The caller has cut `next_request_time` to the
    /// longest possible delay after `at`. Without `at` and `first_request_time` the transfer has not begun; with the
    /// latter alone (a record that BOINC wrote) the window counts from now on.
    pub fn restore(
        window: Delay,
        from: GiveUpFrom,
        used: Delay,
        at: Option<Epoch>,
        next_request_time: Option<Epoch>,
        first_request_time: Option<Epoch>,
        now: Now,
    ) -> Self {
        if at.or(first_request_time).is_none() {
            return Self::new(window, from);
        }
        let settled = match from {
            GiveUpFrom::LastProgress => used.saturating_add(counted_while_away(at, next_request_time, now)),
            // A clock set back does not take time away that has been seen to pass.
            GiveUpFrom::FirstRequest => first_request_time.map_or(used, |first| now.wall.since(first).max(used)),
        };
        let mut restored = Self { window, from, settled, clock: Clock::Running(now.mono), grace_until: None };
        if !restored.is_past(used) {
            restored.allow_one_try(now);
        }
        restored
    }

    /// A session begins. Time counts from the first one on, and again where it did not.
    pub fn start(&mut self, now: Now) {
        match self.clock {
            Clock::NotBegun => self.clock = Clock::Running(now.mono),
            Clock::Running(_) => {}
            Clock::Paused(_) => self.unpause(now),
        }
    }

    /// The transfer made progress: its window begins anew (not so by BOINC's rule).
    pub fn progress(&mut self, now: Now) {
        self.start(now);
        if self.from == GiveUpFrom::LastProgress {
            self.settled = Delay::ZERO;
            self.clock = Clock::Running(now.mono);
            self.grace_until = None;
        }
    }

    /// Nothing can be tried from now on: suspended, offline, about to end.
    pub fn pause(&mut self, now: Now) {
        if let Clock::Running(_) = self.clock {
            self.settled = self.used(now);
            self.clock = Clock::Paused(now.mono);
        }
    }

    /// Something can be tried again.
    pub fn unpause(&mut self, now: Now) {
        if let Clock::Paused(_) = self.clock {
            let before = self.settled;
            self.settled = self.used(now);
            self.clock = Clock::Running(now.mono);
            if !self.is_past(before) {
                self.allow_one_try(now);
            }
        }
    }

    /// How much of the window is used up; can be more than the window.
    pub fn used(&self, now: Now) -> Delay {
        match (self.clock, self.from) {
            (Clock::NotBegun, _) => Delay::ZERO,
            (Clock::Paused(_), GiveUpFrom::LastProgress) => self.settled,
            (Clock::Running(since) | Clock::Paused(since), _) => self.settled.saturating_add(now.mono.since(since)),
        }
    }

    /// What is left of the window, grace included.
    pub fn left(&self, now: Now) -> Delay {
        let grace = self.grace_until.map_or(Delay::ZERO, |until| until.since(now.mono));
        self.end().saturating_sub(self.used(now)).max(grace)
    }

    /// The moment at which the window will have passed, for a timer; `None` while the transfer rests or has not begun,
    /// and where the window never ends.
    pub fn ends_at(&self, now: Now) -> Option<Mono> {
        let counts = matches!(self.clock, Clock::Running(_)) && self.window < Delay::MAX;
        counts.then(|| now.mono + self.left(now))
    }

    /// Has the window passed? Never while the transfer rests.
    pub fn is_over(&self, now: Now) -> bool {
        self.ends_at(now).is_some_and(|end| end <= now.mono)
    }

    /// How much use ends the window. BOINC's comparison is strict.
    fn end(&self) -> Delay {
        match self.from {
            GiveUpFrom::LastProgress => self.window,
            GiveUpFrom::FirstRequest => self.window.saturating_add(Delay::from_micros(1)),
        }
    }

    fn is_past(&self, used: Delay) -> bool {
        used >= self.end()
    }

    /// Where the window passed while nothing could be tried: time for one try.
    fn allow_one_try(&mut self, now: Now) {
        if self.is_past(self.settled) {
            self.grace_until = Some(now.mono + GRACE.min(self.window.mul_f64(GRACE_PART)));
        }
    }
}

/// What counts of the time in which the program did not run: no more than the wait that was due.
fn counted_while_away(at: Option<Epoch>, next_request_time: Option<Epoch>, now: Now) -> Delay {
    let Some((at, next)) = at.zip(next_request_time) else { return Delay::ZERO };
    now.wall.since(at).min(next.since(at))
}

#[cfg(test)]
mod tests;
