//! How much goes into one body: everything, until a server or something before it shows that this does not work.

use crate::core::range::Length;

/// Segments begin with this size.
const FIRST: Length = Length(8 << 20);

/// And never grow beyond this.
const CAP: Length = Length(64 << 20);

/// So many bodies in a row without growth, and they are cut into segments.
const STALLS_TO_CUT: u32 = 2;

/// So many whole segments in a row double the size.
const WINS_TO_DOUBLE: u32 = 4;

/// What has been learned of a server's liking for long bodies. Stored with the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// The most bytes of a body; `None` for all the rest.
    pub segment: Option<Length>,
    /// What the server called too large is not tried again: at most this.
    pub ceiling: Option<Length>,
    /// Bodies without confirmed growth since the last growth.
    pub stalled: u32,
    /// Whole segments in a row.
    pub wins: u32,
}

impl Pace {
    /// A body ended without growth. The second in a row cuts the bodies, each further one halves them, not below
    /// `floor`.
    pub fn stall(&mut self, floor: Length) {
        self.wins = 0;
        self.stalled = self.stalled.saturating_add(1);
        self.segment = match self.segment {
            None if self.stalled < STALLS_TO_CUT => None,
            None => Some(FIRST),
            Some(now) => Some(half(now, floor)),
        };
    }

    /// The server confirmed growth.
    pub fn grew(&mut self) {
        self.stalled = 0;
    }

    /// A whole body was confirmed; the fourth in a row doubles the size.
    pub fn whole(&mut self) {
        self.stalled = 0;
        let Some(now) = self.segment else { return };
        self.wins += 1;
        if self.wins >= WINS_TO_DOUBLE {
            self.wins = 0;
            let most = self.ceiling.unwrap_or(CAP).min(CAP);
            self.segment = Some(Length(now.0.saturating_mul(2)).min(most).max(now));
        }
    }

    /// A body of this length was called too large (413). `false` where there is nothing smaller to try.
    #[must_use]
    pub fn too_large(&mut self, body: Length, floor: Length) -> bool {
        self.wins = 0;
        if body <= floor {
            return false;
        }
        let next = half(body, floor).min(FIRST.max(floor));
        (self.segment, self.ceiling) = (Some(next), Some(next));
        true
    }
}

fn half(now: Length, floor: Length) -> Length {
    Length(now.0 / 2).max(floor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: Length = Length(64 << 10);
    const MIB: u64 = 1 << 20;

    fn segment_mib(pace: &Pace) -> Option<u64> {
        pace.segment.map(|s| s.0 / MIB)
    }

    #[test]
    fn two_stalls_cut_and_more_halve_down_to_the_floor() {
        let mut pace = Pace::default();
        pace.stall(FLOOR);
        assert_eq!(pace.segment, None);
        let sizes: Vec<_> = (0..4).map(|_| (pace.stall(FLOOR), segment_mib(&pace)).1).collect();
        assert_eq!(sizes, [Some(8), Some(4), Some(2), Some(1)]);
        (0..9).for_each(|_| pace.stall(FLOOR));
        assert_eq!(pace.segment, Some(FLOOR));
    }

    #[test]
    fn growth_in_between_forgives_a_stall() {
        let mut pace = Pace::default();
        for _ in 0..5 {
            pace.stall(FLOOR);
            pace.grew();
        }
        assert_eq!(pace, Pace::default());
    }

    #[test]
    fn four_whole_segments_double_up_to_the_cap() {
        let mut pace = Pace { segment: Some(FIRST), ..Pace::default() };
        (0..3).for_each(|_| pace.whole());
        assert_eq!(segment_mib(&pace), Some(8));
        pace.whole();
        assert_eq!(segment_mib(&pace), Some(16));
        (0..40).for_each(|_| pace.whole());
        assert_eq!(pace.segment, Some(CAP));
    }

    #[test]
    fn what_was_too_large_is_not_tried_again() {
        let mut pace = Pace::default();
        assert!(pace.too_large(Length(3 << 30), FLOOR));
        assert_eq!(segment_mib(&pace), Some(8));
        assert!(pace.too_large(Length(8 * MIB), FLOOR));
        (0..9).for_each(|_| pace.whole());
        assert_eq!(segment_mib(&pace), Some(4));
        assert!(!pace.too_large(FLOOR, FLOOR), "nothing smaller");
        let mut pace = Pace::default();
        assert!(pace.too_large(Length(MIB), FLOOR));
        assert_eq!(pace.segment, Some(Length(MIB / 2)));
    }

    #[test]
    fn no_segments_no_doubling() {
        let mut pace = Pace::default();
        (0..9).for_each(|_| pace.whole());
        assert_eq!(pace, Pace::default());
    }
}
