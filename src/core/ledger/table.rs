//! The class table: what each class of failures means. Configuration; the defaults are those of the document, with the
//! jitter on every rung.

use crate::core::backoff::{draw, ladder};
use crate::core::ledger::class::{Class, Kind, Kinds};
use crate::core::time::Delay;

/// What becomes of a record that failed so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Twice as long each time, from the first delay up to the second, then the ladder from its first rung on.
    Doubling(Delay, Delay),
    /// The ladder, from this rung on (1 is the first).
    Ladder(u32),
    /// As long as the server asked for, else this long; its rung stays.
    Asked(Delay),
    /// It is parked, and probed after this long.
    Park(Delay),
    /// The record is as it was before it was claimed; everybody pauses this long.
    Pause(Delay),
}

/// What one class means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// How long it waits.
    pub step: Step,
    /// No wait is longer than this and a quarter of it.
    pub limit: Delay,
    /// What wakes it.
    pub wakes: Kinds,
    /// No wake brings it on sooner than this after its last attempt.
    pub gap: Delay,
}

/// What all classes mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    rules: [Rule; Class::ALL.len()],
    /// A mirror whose bytes were wrong is not asked for that file for so long.
    pub bad_mirror: Delay,
}

/// Of a wait, at most so much is added by chance.
const JITTER: f64 = 0.20;
/// The longest limit.
const MONTH: Delay = Delay::from_days(30);

/// What a file being there somewhere is told by.
const SEEN: [Kind; 4] = [Kind::Announce, Kind::Listed, Kind::Mirror, Kind::User];

impl Default for Table {
    fn default() -> Self {
        Self { rules: Class::ALL.map(default_rule), bad_mirror: Delay::from_days(1) }
    }
}

fn default_rule(class: Class) -> Rule {
    let rule = |step, gap, wakes| Rule { step, limit: MONTH, wakes, gap };
    let (minute, of) = (Delay::from_mins(1), Kinds::of);
    match class {
        Class::Interrupted => rule(Step::Doubling(minute, Delay::from_mins(30)), minute, Kinds::ANY),
        Class::Unreachable => {
            let also =
                [Kind::Announce, Kind::Listed, Kind::Mirror, Kind::User, Kind::HostUp, Kind::NetworkBack, Kind::Config];
            rule(Step::Ladder(1), Delay::from_mins(5), of(&also))
        }
        Class::Throttled => {
            let limit = Delay::from_days(1);
            Rule { limit, ..rule(Step::Asked(Delay::from_mins(5)), Delay::from_mins(5), Kinds::ANY) }
        }
        Class::Missing => rule(Step::Ladder(3), Delay::from_mins(10), of(&SEEN)),
        Class::Gone => rule(Step::Ladder(6), Delay::from_mins(30), of(&SEEN)),
        Class::Unsupported => rule(
            Step::Ladder(5),
            minute,
            of(&[Kind::Capability, Kind::Config, Kind::Version, Kind::Mirror, Kind::User]),
        ),
        Class::Corrupt => rule(Step::Ladder(5), minute, of(&[Kind::Digest, Kind::Mirror, Kind::User])),
        Class::Denied => rule(Step::Park(MONTH), minute, of(&[Kind::Credential, Kind::Config, Kind::User])),
        Class::LocalFault => {
            let limit = Delay::from_hours(1);
            Rule { limit, ..rule(Step::Pause(Delay::from_mins(5)), Delay::ZERO, Kinds::ANY) }
        }
        Class::Crash => rule(Step::Ladder(3), Delay::from_mins(30), of(&[Kind::Version, Kind::User])),
    }
}

impl Table {
    /// What this class means.
    pub const fn rule(&self, class: Class) -> &Rule {
        &self.rules[class as usize]
    }

    /// The same, to be changed.
    pub const fn rule_mut(&mut self, class: Class) -> &mut Rule {
        &mut self.rules[class as usize]
    }

    /// The longest wait that any rule gives: a record that is due later was stored by a clock that was wrong.
    pub fn longest(&self) -> Delay {
        let limits = self.rules.iter().map(|rule| match rule.step {
            Step::Park(probe) => probe.max(rule.limit),
            _ => rule.limit,
        });
        limits.max().unwrap_or(MONTH).mul_f64(1.25)
    }
}

impl Rule {
    /// The wait after the failure that put a record on this rung of the class (1 is the first), jitter and all.
    pub(super) fn wait(&self, rung: u32, asked: Option<Delay>, rng: &mut dyn rand::Rng) -> Delay {
        let most = self.limit.mul_f64(1.25);
        let wait = match self.step {
            Step::Doubling(first, last) => match doubled(first, last, rung) {
                Some(wait) => jittered(wait, rng),
                None => ladder::rung(rung.saturating_sub(doublings(first, last)), rng),
            },
            Step::Ladder(from) => ladder::rung(from.saturating_add(rung).saturating_sub(1), rng),
            Step::Asked(otherwise) => jittered(asked.unwrap_or(otherwise).min(self.limit), rng),
            Step::Park(wait) | Step::Pause(wait) => jittered(wait, rng),
        };
        wait.min(most)
    }

    /// The rung of a record that stood on this one when it was woken: what follows is 8 hours on the ladder, not 30 days,
    /// unless the class begins higher up.
    pub(super) fn rung_when_woken(&self, rung: u32) -> u32 {
        let most = match self.step {
            Step::Ladder(from) => (ladder::RUNG_WHEN_WOKEN + 1).saturating_sub(from),
            _ => ladder::RUNG_WHEN_WOKEN,
        };
        rung.min(most)
    }
}

/// The wait on this rung while it doubles; none once it is as long as the last.
fn doubled(first: Delay, last: Delay, rung: u32) -> Option<Delay> {
    (rung <= doublings(first, last)).then(|| draw::doubled(first, rung.saturating_sub(1)))
}

/// How many waits are shorter than the last.
fn doublings(first: Delay, last: Delay) -> u32 {
    (0..64).find(|n| draw::doubled(first, *n) >= last).unwrap_or(64)
}

/// At least this long: what is added never takes from what was asked.
fn jittered(wait: Delay, rng: &mut dyn rand::Rng) -> Delay {
    draw::between(wait, wait.mul_f64(1.0 + JITTER), rng)
}
