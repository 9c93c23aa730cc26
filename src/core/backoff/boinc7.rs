//! `boinc-7`: what the BOINC client does today.
//!
//! `min(MAX, MIN * 2^n) * U[0.5, 1]`, MIN 2 minutes, MAX 6 hours, `n` counted with the failure that has just happened.
//! The cap comes before the jitter, so that a capped delay still spreads over 3 to 6 hours.

use super::{Bounds, draw};
use crate::core::time::Delay;

/// The client's bounds (its options `pers_retry_delay_min` and `_max`).
pub(super) const BOUNDS: Bounds = Bounds { min: Delay::from_mins(2), max: Delay::from_hours(6) };

/// The delay after `n` failed passes in a row.
pub(super) fn draw(n: u32, bounds: Bounds, rng: &mut dyn rand::Rng) -> Delay {
    let top = draw::doubled(bounds.min, n).min(bounds.max);
    draw::between(draw::half(top).max(bounds.min), top, rng)
}

#[cfg(test)]
mod tests {
    use super::super::tests::draws_after;
    use super::*;

    /// The client's own table of ranges, in seconds.
    const TABLE: [(u32, u64, u64); 9] = [
        (1, 120, 240),
        (2, 240, 480),
        (3, 480, 960),
        (4, 960, 1_920),
        (5, 1_920, 3_840),
        (6, 3_840, 7_680),
        (7, 7_680, 15_360),
        (8, 10_800, 21_600),
        (1_000, 10_800, 21_600),
    ];

    #[test]
    fn the_ranges_are_the_clients() {
        for (n, low, high) in TABLE {
            let (low, high) = (Delay::from_secs(low), Delay::from_secs(high));
            let draws = draws_after("boinc-7", n);
            assert!(draws.iter().all(|d| (low..=high).contains(d)), "after {n}");
            // And they are used to their ends.
            let edge = high.saturating_sub(low).mul_f64(0.02);
            assert!(
                draws.iter().any(|d| *d < low.saturating_add(edge))
                    && draws.iter().any(|d| *d > high.saturating_sub(edge))
            );
        }
    }
}
