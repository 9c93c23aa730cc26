//! How fast records are handed out: so many a second, a few at once, however many are due.

use crate::core::time::{Delay, Epoch};

/// Of what is handed out, this share is kept for records that fresh activity woke, while there are any.
pub const WOKEN_SHARE: f64 = 0.20;

/// An allowance that fills as time passes: one every `every`, at most `burst` at once.
///
/// Its state is one moment, when the next one would be due had all been taken one by one, so that it is stored as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    every: Delay,
    burst: u32,
    next: Epoch,
}

impl Bucket {
    /// A full one: `rate` a second, `burst` at once. A rate that is not above zero is none: nothing is held back.
    pub fn new(rate: f64, burst: u32) -> Self {
        let every = if rate > 0.0 { Delay::from_secs_f64(1.0 / rate) } else { Delay::ZERO };
        Self { every, burst: burst.max(1), next: Epoch::ZERO }
    }

    /// As it was stored. It is not spent for longer than `most`, whatever a clock that was wrong has left.
    pub fn restored(self, next: Epoch, now: Epoch, most: Delay) -> Self {
        Self { next: next.min(now + most), ..self }
    }

    /// How long it takes to fill.
    pub const fn filling(&self) -> Delay {
        self.every.saturating_mul(self.burst as u64)
    }

    /// What is to be stored.
    pub const fn stored(&self) -> Epoch {
        self.next
    }

    /// How many may be taken now.
    pub fn available(&self, now: Epoch) -> u32 {
        if self.every == Delay::ZERO {
            return u32::MAX;
        }
        let taken = self.next.since(now).as_micros().div_ceil(self.every.as_micros());
        self.burst.saturating_sub(u32::try_from(taken).unwrap_or(u32::MAX))
    }

    /// When the next one may be taken.
    pub fn next(&self, now: Epoch) -> Epoch {
        if self.every == Delay::ZERO {
            return now;
        }
        let room = self.every.saturating_mul(u64::from(self.burst.saturating_sub(1)));
        now.max(self.next - room)
    }

    /// So many are taken, now or as soon as they may be.
    pub fn take(&mut self, count: u32, now: Epoch) {
        self.next = self.next.max(now) + self.every.saturating_mul(u64::from(count));
    }
}

/// How many of `wanted` are first looked for among the woken.
pub fn for_woken(wanted: u32) -> u32 {
    // At least one, or a claim of one would never serve them.
    ((f64::from(wanted) * WOKEN_SHARE).ceil() as u32).min(wanted)
}
