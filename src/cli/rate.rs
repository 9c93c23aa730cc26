//! How fast a transfer is just now, from what was there when.

use std::collections::VecDeque;

use crate::core::range::Length;
use crate::core::time::{Delay, Mono};

/// A rate is what came over so many of the last seconds.
const RATE_WINDOW: Delay = Delay::from_secs(8);

/// Bytes per second over the last seconds of a session.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    samples: VecDeque<(Mono, u64)>,
}

impl Rate {
    /// A session begins with so much.
    pub(crate) fn restart(&mut self, now: Mono, held: Length) {
        self.samples = VecDeque::from([(now, held.0)]);
    }

    /// So much is there now.
    pub(crate) fn note(&mut self, now: Mono, held: Length) {
        if self.samples.back().is_some_and(|(_, last)| *last > held.0) {
            self.samples.clear();
        }
        self.samples.push_back((now, held.0));
        while self.samples.len() > 2 && now.since(self.samples[1].0) > RATE_WINDOW {
            self.samples.pop_front();
        }
    }

    /// Bytes per second.
    pub(crate) fn per_second(&self, now: Mono) -> u64 {
        let (Some((from, first)), Some((_, last))) = (self.samples.front(), self.samples.back()) else { return 0 };
        let micros = u128::from(now.since(*from).as_micros());
        let bytes = u128::from(last.saturating_sub(*first));
        (bytes * 1_000_000).checked_div(micros).and_then(|rate| u64::try_from(rate).ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::samples::at;

    #[test]
    fn bytes_from_before_are_no_speed_and_a_cut_back_is_no_negative_one() {
        let mut rate = Rate::default();
        rate.restart(at(0).mono, Length(1 << 30));
        assert_eq!(rate.per_second(at(1).mono), 0);
        rate.note(at(2).mono, Length(1 << 20));
        assert_eq!(rate.per_second(at(3).mono), 0);
        rate.note(at(4).mono, Length(2 << 20));
        assert_eq!(rate.per_second(at(4).mono), (1 << 20) / 2);
    }
}
