//! `tor[:base=S]` and `tor:spec`: the decorrelated jitter of Tor's dir-spec, section 5.5.
//!
//! Each delay is drawn from `[lower, max(lower + 1, 3 * previous))`, with `lower = max(1, base)`, in whole seconds, the
//! low end included and the high end not, as C tor does. So the first delay is always exactly `lower`, and a delay can
//! be shorter than the one before it: typical growth is a tenth a step.
//!
//! The two differ in the cap. `tor` cuts the *range* at 1 day, so that no draw bunches at the cap. `tor:spec` takes the
//! text at its word: the *draw* is cut, at C's INT_MAX, which stands for never. `base` is 0 by default, as for most
//! of Tor's downloads: that is impolite to a single server, which is one reason why this is not the default policy.

use std::ops::Range;

use super::{Bounds, draw};
use crate::core::time::Delay;

/// The cap of `tor`.
const CAP: Delay = Delay::from_days(1);

/// C's INT_MAX in seconds, some 68 years: the cap of dir-spec, and its infinity.
pub(super) const INT_MAX: u64 = 2_147_483_647;

/// The policy's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tor {
    /// `base_delay` in seconds, at most [`INT_MAX`].
    pub(super) base: u64,
    pub(super) capping: Capping,
}

/// What the cap cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capping {
    /// The range that is drawn from.
    Range,
    /// What was drawn: the letter of dir-spec.
    Draw,
}

/// The integer rule in whatever unit: seconds in dir-spec and in C tor, milliseconds in Arti.
#[derive(Clone, Copy, Debug)]
struct Rule {
    lower: u64,
    cap: u64,
    capping: Capping,
}

impl Tor {
    pub(super) fn own_bounds(self) -> Bounds {
        let min = Delay::from_secs(self.base.max(1));
        let max = match self.capping {
            Capping::Draw => Delay::from_secs(INT_MAX),
            Capping::Range if min < CAP => CAP,
            // A base was asked for that is longer than the cap, which was not.
            Capping::Range => min.saturating_mul(2),
        };
        Bounds { min, max }
    }

    /// The delay after the previous one.
    pub(super) fn draw(self, previous: Delay, bounds: Bounds, rng: &mut dyn rand::Rng) -> Delay {
        let unit = Unit::of(bounds);
        let rule = Rule { lower: unit.count(bounds.min), cap: unit.count(bounds.max), capping: self.capping };
        unit.delay(rule.draw(unit.count(previous), rng))
    }

    /// Is this delay, drawn under the policy's own bounds, the infinity of dir-spec?
    pub(super) fn is_never(self, drawn: Delay) -> bool {
        self.capping == Capping::Draw && drawn >= Delay::from_secs(INT_MAX)
    }
}

impl Rule {
    fn draw(self, previous: u64, rng: &mut dyn rand::Rng) -> u64 {
        let range = self.range(previous);
        draw::integer(range.start, range.end, rng).min(self.cap)
    }

    /// What the next delay is drawn from; never empty.
    fn range(self, previous: u64) -> Range<u64> {
        let tripled = match self.capping {
            Capping::Draw => previous.saturating_mul(3),
            // C tor's condition, to the unit: INT_MAX is odd, and a third of it no whole number.
            Capping::Range if previous < self.cap / 3 => previous * 3,
            Capping::Range => self.cap,
        };
        self.lower..tripled.max(self.lower.saturating_add(1))
    }
}

/// What delays are counted in: seconds, as dir-spec does, unless bounds were given that are no whole seconds.
#[derive(Clone, Copy)]
enum Unit {
    Seconds,
    Micros,
}

impl Unit {
    fn of(bounds: Bounds) -> Self {
        let whole = |d: Delay| Delay::from_secs(d.as_secs()) == d;
        if whole(bounds.min) && whole(bounds.max) { Self::Seconds } else { Self::Micros }
    }

    fn count(self, delay: Delay) -> u64 {
        match self {
            Self::Seconds => delay.as_secs(),
            Self::Micros => delay.as_micros(),
        }
    }

    fn delay(self, count: u64) -> Delay {
        match self {
            Self::Seconds => Delay::from_secs(count),
            Self::Micros => Delay::from_micros(count),
        }
    }
}

#[cfg(test)]
mod tests;
