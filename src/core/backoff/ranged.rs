//! `ranged`: doubling ranges that do not overlap, so that delays both grow and spread.
//!
//! Uniform in `[MIN * 2^k, MIN * 2^(k+1)]` after `k` failures before this one; once the upper end reaches the cap, in
//! `[MAX/2, MAX]`. Unlike full jitter it never falls below the minimum, unlike a clamp it never bunches at the cap.

use super::{Bounds, draw};
use crate::core::time::Delay;

/// A minute, and four hours: as the default policy.
pub(super) const BOUNDS: Bounds = Bounds { min: Delay::from_mins(1), max: Delay::from_hours(4) };

/// The delay after `n` failed passes in a row.
pub(super) fn draw(n: u32, bounds: Bounds, rng: &mut dyn rand::Rng) -> Delay {
    let high = draw::doubled(bounds.min, n).min(bounds.max);
    draw::between(draw::half(high).max(bounds.min), high, rng)
}
