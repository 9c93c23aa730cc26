//! `boinc` and `boinc:exact`: BOINC's persistent file transfer as first documented.
//!
//! `max(MIN, min(MAX, exp(rand(0,1) * n)))` seconds, MIN 1 minute, MAX 4 hours. By its letter the first four failures
//! wait one minute exactly, and most of a long outage four hours exactly, so that a fleet that failed together returns
//! together. `boinc` therefore spreads the draw a little inside a bound that binds; `boinc:exact` keeps the letter.

use super::{Bounds, draw};
use crate::core::time::Delay;

/// MIN and MAX of the document.
pub(super) const BOUNDS: Bounds = Bounds { min: Delay::from_mins(1), max: Delay::from_hours(4) };

/// What becomes of a draw that a bound cuts off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// It is spread inside the bound, up to 1.25 MIN or down to 0.75 MAX.
    Spread,
    /// It is the bound: the letter of the document.
    Exact,
}

impl Form {
    /// The delay after `n` failed passes in a row.
    pub(super) fn draw(self, n: u32, bounds: Bounds, rng: &mut dyn rand::Rng) -> Delay {
        let raw = Delay::from_secs_f64((draw::fraction(rng) * f64::from(n)).exp());
        match self {
            Self::Exact => raw.clamp(bounds.min, bounds.max),
            Self::Spread if raw < bounds.min => bounds.spread_at_min(rng),
            Self::Spread if raw > bounds.max => bounds.spread_at_max(rng),
            Self::Spread => raw,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{draws_after, seeded, share};
    use super::*;

    #[test]
    fn the_letter_keeps_the_first_four_failures_at_a_minute() {
        // e^4 is 54.6 s: the minimum binds whatever is drawn.
        for n in 1..=4 {
            assert!(draws_after("boinc:exact", n).iter().all(|d| *d == Delay::from_mins(1)), "after {n}");
        }
        assert!(share(&draws_after("boinc:exact", 5), |d| d > Delay::from_mins(1)) > 0.1);
    }

    #[test]
    fn the_letter_follows_the_exponential_between_the_bounds() {
        // After n failures a share of 1 - ln(t)/n waits longer than t seconds.
        for (n, secs) in [(8, 100_u64), (8, 1_000), (20, 1_000), (20, 10_000)] {
            let expected = 1.0 - (secs as f64).ln() / f64::from(n);
            let found = share(&draws_after("boinc:exact", n), |d| d > Delay::from_secs(secs));
            assert!((found - expected).abs() < 0.02, "n {n}, over {secs} s: {found}, expected {expected}");
        }
    }

    #[test]
    fn the_letter_bunches_at_the_maximum_and_the_default_does_not() {
        let at_max = |d: Delay| d == Delay::from_hours(4);
        assert!(share(&draws_after("boinc:exact", 100), at_max) > 0.8);
        assert!(share(&draws_after("boinc", 100), at_max) < 0.001);
        assert!(share(&draws_after("boinc", 100), |d| d >= Delay::from_hours(3)) > 0.8);
    }

    #[test]
    fn the_default_spreads_a_first_failure_over_a_quarter_of_a_minute() {
        let draws = draws_after("boinc", 1);
        assert!(draws.iter().all(|d| (Delay::from_secs(60)..=Delay::from_secs(75)).contains(d)));
        let early = share(&draws, |d| d < Delay::from_millis(67_500));
        assert!((0.47..0.53).contains(&early), "{early} in the lower half");
    }

    #[test]
    fn the_spread_stays_inside_bounds_that_leave_little_room() {
        let tight = Bounds { min: Delay::from_millis(190), max: Delay::from_millis(200) };
        for n in [0, 1, 50] {
            let drawn = Form::Spread.draw(n, tight, &mut seeded(1));
            assert!((tight.min..=tight.max).contains(&drawn), "{drawn}");
        }
    }

    #[test]
    fn an_endless_row_of_failures_stays_at_the_maximum() {
        assert!(Form::Exact.draw(u32::MAX, BOUNDS, &mut seeded(2)) <= BOUNDS.max);
        assert!(Form::Spread.draw(u32::MAX, BOUNDS, &mut seeded(2)) <= BOUNDS.max);
    }
}
