//! History: how many bytes passed on which day, in each direction, for as long as a quota may ask.

use std::collections::BTreeMap;

use crate::core::civil::Day;
use crate::core::pers_xfer::record::Direction;
use crate::core::prefs::PerDirection;

/// Older days are forgotten (BOINC's number).
const KEPT: i64 = 366;
/// Days so far ahead were counted by a clock that was wrong.
const AHEAD: i64 = 1;

/// Bytes by day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History(BTreeMap<Day, PerDirection<u64>>);

impl History {
    /// Bytes passed on this day.
    pub fn count(&mut self, day: Day, direction: Direction, bytes: u64) {
        if bytes > 0 {
            let of_day = self.0.entry(day).or_default().of_mut(direction);
            *of_day = of_day.saturating_add(bytes);
        }
    }

    /// What passed on that day.
    pub fn of(&self, day: Day) -> PerDirection<u64> {
        self.0.get(&day).copied().unwrap_or_default()
    }

    /// Every day on which something passed, the oldest first: to store it, or to tell it.
    pub fn days(&self) -> impl Iterator<Item = (Day, PerDirection<u64>)> {
        self.0.iter().map(|(day, bytes)| (*day, *bytes))
    }

    /// Nothing passed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What others counted is counted here too.
    pub fn add(&mut self, other: &Self) {
        for (day, bytes) in other.days() {
            self.count(day, Direction::Upload, bytes.up);
            self.count(day, Direction::Download, bytes.down);
        }
    }

    /// Days that no quota asks for any more, and those that a wrong clock made, are forgotten.
    pub fn forget(&mut self, today: Day) {
        self.0.retain(|day, _| (today.plus(-KEPT)..=today.plus(AHEAD)).contains(day));
    }
}
