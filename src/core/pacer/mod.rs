//! Pace: how fast bytes may come ([`Pacer`]), and when they come too slowly ([`StallMeter`]).
//!
//! A pacer is a token bucket: it fills at the rate, holds a small burst, and bytes are taken out of it. All transfers
//! that share a limit share one bucket.

mod stall;
#[cfg(test)]
mod tests;

use std::num::NonZeroU64;

pub use stall::{BodyMeter, Flow, LOOK_EVERY, StallMeter, TooSlow};

use crate::core::time::{Delay, Mono};

/// The bucket holds what the rate brings in this time...
const BURST_TIME: Delay = Delay::from_millis(100);
/// ...but at least this many bytes, so that a slow rate does not mean a wake-up for every few bytes...
const LEAST_BURST: u64 = 1 << 10;
/// ...and at most this many, so that a fast rate stays even.
const MOST_BURST: u64 = 256 << 10;

const MICROS: u128 = 1_000_000;

/// A token bucket for a rate in bytes per second.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate: Option<NonZeroU64>,
    /// What may be taken, in millionths of a byte; negative after a grant that was larger than the burst.
    level: i128,
    filled_at: Mono,
}

/// The answer to a wish for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// They may be taken, and are.
    Now,
    /// Not yet: nothing is taken; ask again after so long.
    Wait(Delay),
}

impl Pacer {
    /// A full bucket; without a rate it grants everything.
    pub fn new(rate: Option<NonZeroU64>, now: Mono) -> Self {
        let mut pacer = Self { rate, level: 0, filled_at: now };
        pacer.level = pacer.capacity();
        pacer
    }

    /// Bytes per second; `None` for no limit.
    pub fn rate(&self) -> Option<NonZeroU64> {
        self.rate
    }

    /// The most bytes that can pass at once on top of the rate, as long as no single grant asks for more.
    pub fn burst(&self) -> u64 {
        self.rate.map_or(u64::MAX, burst_of)
    }

    /// Takes `bytes` out, or says when to ask again.
    ///
    /// A wish larger than the burst is granted when the bucket is full, and paid for afterwards: bytes come off a
    /// socket in the pieces the network gives. So over any window at most `rate * window + burst` bytes pass, and the
    /// excess of the largest single wish over the burst.
    pub fn take(&mut self, now: Mono, bytes: u64) -> Grant {
        let Some(rate) = self.rate else { return Grant::Now };
        self.fill(now, rate);
        let needed = in_millionths(bytes.min(self.burst()));
        if self.level < needed {
            return Grant::Wait(time_for(needed - self.level, rate));
        }
        self.level -= in_millionths(bytes);
        Grant::Now
    }

    /// Another rate from now on. What was taken at the old rate stays taken, within the new rate's burst: a debt that
    /// a low rate left behind does not hold up a high one for long, and none is forgiven by a lower one.
    pub fn set_rate(&mut self, now: Mono, rate: Option<NonZeroU64>) {
        if let Some(old) = self.rate {
            self.fill(now, old);
        }
        let was_limited = self.rate.is_some();
        self.rate = rate;
        self.filled_at = now;
        self.level = if was_limited { self.level.min(self.capacity()) } else { 0 };
    }

    fn fill(&mut self, now: Mono, rate: NonZeroU64) {
        let passed = now.since(self.filled_at).as_micros();
        self.level = self.level.saturating_add(i128::from(passed) * i128::from(rate.get())).min(self.capacity());
        self.filled_at = self.filled_at.max(now);
    }

    fn capacity(&self) -> i128 {
        self.rate.map_or(0, |rate| in_millionths(burst_of(rate)))
    }
}

fn burst_of(rate: NonZeroU64) -> u64 {
    let bytes = u128::from(rate.get()) * u128::from(BURST_TIME.as_micros()) / MICROS;
    u64::try_from(bytes).unwrap_or(u64::MAX).clamp(LEAST_BURST, MOST_BURST)
}

fn in_millionths(bytes: u64) -> i128 {
    i128::from(bytes) * MICROS as i128
}

/// The time in which `missing` millionths of a byte come in, rounded up so that asking again after it succeeds.
fn time_for(missing: i128, rate: NonZeroU64) -> Delay {
    let micros = u128::try_from(missing).unwrap_or(0).div_ceil(u128::from(rate.get()));
    Delay::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}
