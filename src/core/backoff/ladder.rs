//! `ladder`: the rungs of BT9G's long-term retry scheduler.
//!
//! 30 minutes, 2 hours, 8 hours, 1 day, 7 days, then 30 days for ever. Its author jitters the last rung only; here each
//! rung has jitter, above it and never below: up to a fifth, a quarter on the last. Cohorts that failed together
//! otherwise come back together.

use super::{Bounds, draw};
use crate::core::time::Delay;

/// The delays by rung.
const RUNGS: [Delay; 6] = [
    Delay::from_mins(30),
    Delay::from_hours(2),
    Delay::from_hours(8),
    Delay::from_days(1),
    Delay::from_days(7),
    Delay::from_days(30),
];

/// Jitter above a rung, as a share of it.
const JITTER: f64 = 0.20;
/// The same on the last rung.
const LAST_JITTER: f64 = 0.25;

/// From the first rung to the last with its jitter: 30 days and a quarter.
pub(super) const BOUNDS: Bounds = Bounds { min: RUNGS[0], max: Delay::from_hours(900) };

/// Where fresh activity puts a record that stood higher: the next failure waits 8 hours, not 30 days.
pub(crate) const RUNG_WHEN_WOKEN: u32 = 2;

/// The delay on this rung, counted from 1, within no other bounds than its own.
pub(crate) fn rung(rung: u32, rng: &mut dyn rand::Rng) -> Delay {
    draw(rung, BOUNDS, rng)
}

/// The delay on this rung, counted from 1.
pub(super) fn draw(rung: u32, bounds: Bounds, rng: &mut dyn rand::Rng) -> Delay {
    let last = RUNGS.len() - 1;
    let index = usize::try_from(rung.saturating_sub(1)).unwrap_or(last).min(last);
    let jitter = if index == last { LAST_JITTER } else { JITTER };
    let low = RUNGS[index].max(bounds.min);
    if low >= bounds.max {
        return bounds.spread_at_max(rng);
    }
    draw::between(low, low.mul_f64(1.0 + jitter).min(bounds.max), rng)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{draws_after, seeded};
    use super::super::{Backoff, Policy};
    use super::*;

    #[test]
    fn the_longest_delay_is_the_last_rung_with_its_jitter() {
        assert_eq!(BOUNDS.max, RUNGS[5].mul_f64(1.0 + LAST_JITTER));
    }

    #[test]
    fn eight_failures_climb_the_rungs_and_none_comes_earlier() {
        let secs = [1_800, 7_200, 28_800, 86_400, 604_800, 2_592_000, 2_592_000, 2_592_000];
        for (n, rung) in (1..).zip(secs) {
            let low = Delay::from_secs(rung);
            let high = low.mul_f64(if n < 6 { 1.20 } else { 1.25 });
            let draws = draws_after("ladder", n);
            assert!(draws.iter().all(|d| (low..high).contains(d)), "failure {n}");
            assert!(
                draws.iter().any(|d| *d > low.saturating_add(high.saturating_sub(low).mul_f64(0.9))),
                "no jitter on {n}"
            );
        }
    }

    #[test]
    fn fresh_activity_lowers_the_rung_and_never_raises_it() {
        let policy = Policy::parse("ladder").expect("a policy");
        let mut state = Backoff { n: 9, previous: Delay::from_days(30), position: 9 };
        state.woken();
        assert_eq!((state.n, state.position), (9, 2));
        let next = state.fail(&policy, &mut seeded(3)).expect("a delay");
        assert!((Delay::from_hours(8)..Delay::from_hours(10)).contains(&next), "{next}");

        let mut low = Backoff { n: 1, previous: Delay::from_mins(30), position: 1 };
        low.woken();
        assert_eq!(low.position, 1);
    }
}
