//! Uniform draws of delays.

use rand::RngExt;

use crate::core::time::Delay;

/// Uniform in `[low, high)`; `low`, and nothing drawn, where that range holds no other value.
pub(crate) fn between(low: Delay, high: Delay, rng: &mut dyn rand::Rng) -> Delay {
    Delay::from_micros(integer(low.as_micros(), high.as_micros(), rng))
}

/// Uniform among the whole numbers of `[low, high)`, without bias; `low`, and nothing drawn, where it is the only one.
pub(crate) fn integer(low: u64, high: u64, rng: &mut dyn rand::Rng) -> u64 {
    if high.saturating_sub(low) <= 1 { low } else { rng.random_range(low..high) }
}

/// Uniform in `[0, 1)`.
pub(crate) fn fraction(rng: &mut dyn rand::Rng) -> f64 {
    rng.random()
}

/// Half of it, rounded down.
pub(crate) const fn half(delay: Delay) -> Delay {
    Delay::from_micros(delay.as_micros() / 2)
}

/// `base * 2^exponent`, at most [`Delay::MAX`].
pub(crate) fn doubled(base: Delay, exponent: u32) -> Delay {
    base.saturating_mul(1_u64.checked_shl(exponent).unwrap_or(u64::MAX))
}
