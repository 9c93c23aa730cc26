//! Local time, as rules of the day and the week see it: a day of the calendar and a second of that day.
//!
//! Nothing here asks for the time or the zone. The floor above reads both and hands in a [`Zone`]: how far local clocks
//! are from UTC now, and the next moment at which that changes. So a rule that names an hour is right across one change of
//! the clocks, and whoever waits looks again when it comes.

use std::fmt;

use crate::core::time::{Delay, Epoch};

/// Seconds of a day by the calendar.
pub const DAY: u32 = 86_400;
const MICROS: i64 = 1_000_000;

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weekday {
    /// The first.
    Monday,
    /// The second.
    Tuesday,
    /// The third.
    Wednesday,
    /// The fourth.
    Thursday,
    /// The fifth.
    Friday,
    /// The sixth.
    Saturday,
    /// The last.
    Sunday,
}

/// A day of the calendar, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i64);

/// A time of day in seconds: from 00:00 up to and including 24:00.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(u32);

/// A moment on local clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Civil {
    /// The day.
    pub day: Day,
    /// The time; below 24:00.
    pub time: TimeOfDay,
}

/// How local clocks stand, around one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// So many seconds east of UTC.
    pub east: i32,
    /// When that changes next, where it is known to.
    pub turn: Option<Turn>,
}

/// A change of local clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// When.
    pub at: Epoch,
    /// So many seconds east of UTC from then on.
    pub east: i32,
}

impl Weekday {
    /// All, from Monday on.
    pub const ALL: [Self; 7] =
        [Self::Monday, Self::Tuesday, Self::Wednesday, Self::Thursday, Self::Friday, Self::Saturday, Self::Sunday];

    /// Its English name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Monday => "Monday",
            Self::Tuesday => "Tuesday",
            Self::Wednesday => "Wednesday",
            Self::Thursday => "Thursday",
            Self::Friday => "Friday",
            Self::Saturday => "Saturday",
            Self::Sunday => "Sunday",
        }
    }

    /// The day of this name, or of its first three letters, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        let is_it = |day: &Self| {
            let name = day.name();
            name.eq_ignore_ascii_case(text) || name[..3].eq_ignore_ascii_case(text)
        };
        Self::ALL.into_iter().find(is_it)
    }
}

impl Day {
    /// Which day of the week it is.
    pub fn weekday(self) -> Weekday {
        // 1970-01-01 was a Thursday. The remainder is below seven.
        let number = usize::try_from((self.0 + 3).rem_euclid(7)).unwrap_or(0);
        Weekday::ALL[number]
    }

    /// So many days later.
    pub const fn plus(self, days: i64) -> Self {
        Self(self.0.saturating_add(days))
    }

    /// That day at its beginning.
    pub const fn start(self) -> Civil {
        Civil { day: self, time: TimeOfDay::MIDNIGHT }
    }
}

impl TimeOfDay {
    /// 00:00.
    pub const MIDNIGHT: Self = Self(0);
    /// 24:00.
    pub const END: Self = Self(DAY);

    /// From seconds since midnight; nothing above 24:00.
    pub const fn from_secs(secs: u32) -> Option<Self> {
        if secs <= DAY { Some(Self(secs)) } else { None }
    }

    /// From hours as BOINC writes them: `22`, `7.5`. Rounded to the second; nothing outside of 0 to 24.
    pub fn from_hours(hours: f64) -> Option<Self> {
        let fits = (0.0..=24.0).contains(&hours);
        // In range, so the cast is exact after rounding.
        fits.then(|| Self((hours * 3_600.0).round() as u32))
    }

    /// From `8:30` or `08:30`, up to `24:00`; seconds may follow.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let hours = number(parts.next()?, 24)?;
        let minutes = two_digits(parts.next()?)?;
        let seconds = parts.next().map_or(Some(0), two_digits)?;
        if parts.next().is_some() {
            return None;
        }
        Self::from_secs(hours * 3_600 + minutes * 60 + seconds)
    }

    /// Seconds since midnight.
    pub const fn secs(self) -> u32 {
        self.0
    }
}

fn number(text: &str, most: u32) -> Option<u32> {
    let is_one = !text.is_empty() && text.len() <= 2 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| is_one && *n <= most)
}

fn two_digits(text: &str) -> Option<u32> {
    number(text, 59).filter(|_| text.len() == 2)
}

impl Civil {
    /// The moment at which this time of day comes next: later than `self`, today or on another day.
    pub fn next(self, time: TimeOfDay) -> Self {
        let today = Self { day: self.day, time };
        if today > self && time < TimeOfDay::END { today } else { Self { day: self.day.plus(1), ..today }.normal() }
    }

    /// So many seconds of local clocks later.
    pub fn plus_secs(self, secs: i64) -> Self {
        let all = i64::from(self.time.0).saturating_add(secs);
        let time = u32::try_from(all.rem_euclid(i64::from(DAY))).unwrap_or(0);
        Self { day: self.day.plus(all.div_euclid(i64::from(DAY))), time: TimeOfDay(time) }
    }

    /// 24:00 is 00:00 of the next day.
    pub const fn normal(self) -> Self {
        if self.time.0 == DAY { self.day.plus(1).start() } else { self }
    }
}

impl Zone {
    /// What local clocks show at this moment.
    pub fn civil(&self, at: Epoch) -> Civil {
        let secs = at.as_micros().div_euclid(MICROS) + i64::from(self.east_at(at));
        let second = u32::try_from(secs.rem_euclid(i64::from(DAY))).unwrap_or(0);
        Civil { day: Day(secs.div_euclid(i64::from(DAY))), time: TimeOfDay(second) }
    }

    /// The first moment at which local clocks show this time, or, where they skip it, the moment at which they do.
    pub fn first(&self, civil: Civil) -> Epoch {
        let secs = civil.day.0.saturating_mul(i64::from(DAY)).saturating_add(i64::from(civil.time.0));
        let with = |east: i32| Epoch::from_secs(secs.saturating_sub(i64::from(east)));
        let before = with(self.east);
        match self.turn {
            Some(turn) if before >= turn.at => with(turn.east).max(turn.at),
            _ => before,
        }
    }

    /// When to look at the zone again: its next change, if that is still to come.
    pub fn next_turn(&self, now: Epoch) -> Option<Epoch> {
        self.turn.map(|turn| turn.at).filter(|at| *at > now)
    }

    /// A moment for people, as near as they need it: `22:00` today, `Friday 07:00` within a week, else with its date.
    pub fn say(&self, at: Epoch, now: Epoch) -> String {
        let (then, today) = (self.civil(at), self.civil(now).day);
        match then.day.0 - today.0 {
            0 => then.time.to_string(),
            1..=6 => format!("{} {}", then.day.weekday().name(), then.time),
            _ => format!("{} {}", then.day, then.time),
        }
    }

    /// The same, of a day.
    pub fn say_day(&self, day: Day, now: Epoch) -> String {
        match day.0 - self.civil(now).day.0 {
            1 => "midnight".to_owned(),
            2..=6 => day.weekday().name().to_owned(),
            _ => day.to_string(),
        }
    }

    fn east_at(&self, at: Epoch) -> i32 {
        self.turn.filter(|turn| at >= turn.at).map_or(self.east, |turn| turn.east)
    }
}

/// Rounded up to the minute, because a time at which something opens must not be told too early.
impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = self.0.div_ceil(60);
        write!(f, "{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = jiff::civil::date(1970, 1, 1).checked_add(jiff::Span::new().try_days(self.0).unwrap_or_default());
        match date {
            Ok(date) => write!(f, "{date}"),
            Err(_) => write!(f, "day {}", self.0),
        }
    }
}

/// How long it is until then by the wall clock, at least a moment: what was to come cannot be waited for in the past.
pub fn until(at: Epoch, now: Epoch) -> Delay {
    at.since(now).max(Delay::from_millis(1))
}

#[cfg(test)]
mod tests;
