//! How fast a link is: an average over about a second, in which the latest bytes weigh most.

use crate::core::range::Length;
use crate::core::time::{Delay, Mono};

/// The time over which bytes count.
const WINDOW: f64 = 1.0;
/// Shorter spans are put together: bytes come in lumps.
const LUMP: Delay = Delay::from_millis(50);
/// After such a silence the rate falls although nothing arrives.
const FADE: Delay = Delay::from_millis(250);
/// From this age on a rate means something.
const GROWN: Delay = Delay::from_millis(500);

/// The rate of one link.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    since: Mono,
    folded: Mono,
    /// Bytes since the last fold.
    pending: f64,
    rate: f64,
}

impl Meter {
    /// Begins when the first byte may come.
    pub(super) fn new(now: Mono) -> Self {
        Self { since: now, folded: now, pending: 0.0, rate: 0.0 }
    }

    /// So many bytes came.
    pub(super) fn add(&mut self, bytes: Length, now: Mono) {
        self.pending += bytes.0 as f64;
        if now.since(self.folded) >= LUMP {
            self.rate = self.blended(now);
            (self.folded, self.pending) = (now, 0.0);
        }
    }

    /// Bytes per second.
    pub(super) fn rate(&self, now: Mono) -> f64 {
        let young = now.since(self.since) < GROWN;
        if young || now.since(self.folded) >= FADE { self.blended(now) } else { self.rate }
    }

    /// It is old enough to be believed.
    pub(super) fn is_grown(&self, now: Mono) -> bool {
        self.age(now) >= GROWN
    }

    /// Since when the first byte might have come.
    pub(super) fn age(&self, now: Mono) -> Delay {
        now.since(self.since)
    }

    /// The rate with what is pending: the plain average while young, a sliding one later.
    fn blended(&self, now: Mono) -> f64 {
        let span = now.since(self.folded).as_secs_f64();
        let age = now.since(self.since).as_secs_f64();
        if span <= 0.0 {
            return self.rate;
        }
        let weight = (span / age.min(WINDOW)).min(1.0);
        self.rate + (self.pending / span - self.rate) * weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Mono {
        Mono::ZERO + Delay::from_millis(millis)
    }

    #[test]
    fn a_steady_flow_is_measured_exactly_from_early_on() {
        let mut meter = Meter::new(at(1_000));
        for tick in 1..=300 {
            meter.add(Length(10_000), at(1_000 + 10 * tick));
            let rate = meter.rate(at(1_000 + 10 * tick));
            assert!((rate - 1_000_000.0).abs() < 1.0, "{rate} after {tick} ticks");
        }
    }

    #[test]
    fn a_silent_flow_fades_and_a_change_is_seen_within_a_second_or_two() {
        let mut meter = Meter::new(at(0));
        (1..=200).for_each(|tick| meter.add(Length(10_000), at(10 * tick)));
        let fast = meter.rate(at(2_000));
        assert!(meter.rate(at(2_500)) < 0.6 * fast);
        assert!(meter.rate(at(3_100)) < 1.0);
        (201..=500).for_each(|tick| meter.add(Length(1_000), at(10 * tick)));
        let slow = meter.rate(at(5_000));
        assert!((90_000.0..160_000.0).contains(&slow), "{slow}");
    }

    #[test]
    fn nothing_is_divided_by_no_time() {
        let mut meter = Meter::new(at(5));
        meter.add(Length(7), at(5));
        assert_eq!(meter.rate(at(5)), 0.0);
        assert!(!meter.is_grown(at(5)) && meter.is_grown(at(505)));
    }
}
