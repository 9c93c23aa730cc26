//! Quotas: so many bytes in so many days, of each direction and of both together (BOINC's `daily_xfer_limit_mb`).
//!
//! A period of N days is today and the N - 1 days before it. So room comes back at local midnight, when a day on which
//! something was transferred falls out of the period.

use crate::core::civil::Day;
use crate::core::pers_xfer::record::Direction;
use crate::core::prefs::PerDirection;
use crate::core::range::Length;
use crate::core::schedule::History;

/// The limits; without a period, or with all limits at nothing, there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// How many days are counted, today among them.
    pub days: u32,
    /// Bytes in that time, in one direction.
    pub each: PerDirection<Option<Length>>,
    /// Bytes in that time, uploads and downloads together.
    pub together: Option<Length>,
}

/// What a quota leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// So many bytes may still pass.
    pub bytes: Length,
    /// How many may pass in a whole period.
    pub of: Length,
    /// At the start of this day there is more room, or, where nothing is left, some again.
    pub more: Option<Day>,
}

impl Quotas {
    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.days == 0 || (self.together.is_none() && self.each.up.is_none() && self.each.down.is_none())
    }

    /// What is left for a direction, where it is limited. Of two limits, the one that leaves less; of two that leave
    /// nothing, the one that does so for longer.
    pub fn left(&self, direction: Direction, history: &History, today: Day) -> Option<Left> {
        if self.days == 0 {
            return None;
        }
        let one = |day: Day| *history.of(day).of(direction);
        let both = |day: Day| history.of(day).up.saturating_add(history.of(day).down);
        let own = self.each.of(direction).map(|limit| self.left_of(limit, &one, today));
        let shared = self.together.map(|limit| self.left_of(limit, &both, today));
        own.into_iter().chain(shared).min_by_key(|left| (left.bytes, std::cmp::Reverse(left.more)))
    }

    fn left_of(&self, limit: Length, used: &dyn Fn(Day) -> u64, today: Day) -> Left {
        let oldest = 1 - i64::from(self.days);
        let now = (oldest..=0).map(|day| used(today.plus(day))).fold(0_u64, u64::saturating_add);
        // With each midnight to come, the oldest day falls out.
        let mut counted = now;
        let roomier = |day: &i64| {
            counted = counted.saturating_sub(used(today.plus(*day)));
            if now >= limit.0 { counted < limit.0 } else { counted < now }
        };
        let gone = (oldest..=0).find(roomier);
        let more = gone.map(|day| today.plus(day + i64::from(self.days)));
        Left { bytes: Length(limit.0.saturating_sub(now)), of: limit, more }
    }
}
