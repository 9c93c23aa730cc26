//! Rates that change with the hour, in the words of rclone's `--bwlimit`: `08:00,512k 19:00,10m 23:00,off`.
//!
//! Each entry holds from its moment until that of the next, round the week: before the first one of a day, the last one
//! of the day before still holds. An entry with a day (`Sat-10:00,1m`) is of that day alone, one without is of every day,
//! and where both name the same moment, the one with the day holds. A rate is `RATE`, or `UP:DOWN`; `off` is no limit. A
//! rate alone, without a time, always holds. Unlike rclone's, a plain number is bytes per second, as everywhere here.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use crate::core::civil::{Civil, DAY, TimeOfDay, Weekday};
use crate::core::prefs::{PerDirection, Rate};
use crate::core::units::parse_rate;

/// Rates by the moment of the week.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timetable(BTreeMap<Moment, PerDirection<Rate>>);

/// Seconds since Monday, 00:00.
type Moment = u32;

/// Why a text is no timetable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTimetable {
    /// An entry without a time among several, or without a rate.
    #[error("{0:?} is no entry; write it as TIME,RATE such as 08:00,512k")]
    Entry(String),
    /// What should be a time is none.
    #[error("{0:?} is no time; write it as 08:00 or Mon-08:00")]
    Time(String),
    /// What should be a day is none.
    #[error("{0:?} is no day of the week; write Mon, Tue, Wed, Thu, Fri, Sat or Sun")]
    Day(String),
    /// What should be a rate is none.
    #[error("{0:?} is no rate; write it as 512k, off, or UP:DOWN")]
    Rate(String),
    /// Two entries name the same moment.
    #[error("{0:?} is a second entry for the same time; leave one out")]
    Twice(String),
}

impl Timetable {
    /// Reads one; an empty text is one without rates.
    ///
    /// # Errors
    /// [`BadTimetable`], which names the entry at fault.
    pub fn parse(text: &str) -> Result<Self, BadTimetable> {
        let entries: Vec<&str> = text.split_ascii_whitespace().collect();
        if let [only] = entries.as_slice()
            && !only.contains(',')
            // Not eight bytes per second up and no limit down.
            && TimeOfDay::parse(only).is_none()
        {
            return Ok(Self(BTreeMap::from([(0, rates(only)?)])));
        }
        let (mut daily, mut of_days) = (BTreeMap::new(), BTreeMap::new());
        for entry in entries {
            let (when, rate) = entry.split_once(',').ok_or_else(|| BadTimetable::Entry(entry.to_owned()))?;
            let (day, time) = moment(when)?;
            let days = day.map_or(Weekday::ALL.to_vec(), |day| vec![day]);
            let into = if day.is_some() { &mut of_days } else { &mut daily };
            for day in days {
                if into.insert(day as u32 * DAY + time.secs(), rates(rate)?).is_some() {
                    return Err(BadTimetable::Twice(entry.to_owned()));
                }
            }
        }
        daily.extend(of_days);
        Ok(Self(daily))
    }

    /// It has no rates.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rates at this moment of local clocks.
    pub fn at(&self, at: Civil) -> PerDirection<Rate> {
        let before = self.0.range(..=moment_of(at)).next_back();
        // Before the first entry of the week, the last one of the week before holds.
        before.or_else(|| self.0.last_key_value()).map(|(_, rates)| *rates).unwrap_or_default()
    }

    /// The next moment of local clocks at which they change; `None` where they never do.
    pub fn next_change(&self, at: Civil) -> Option<Civil> {
        let (now, rates) = (moment_of(at), self.at(at));
        let later = self.0.range(now + 1..).chain(self.0.range(..=now));
        let (moment, _) = later.into_iter().find(|(_, other)| **other != rates)?;
        let ahead = i64::from(moment / DAY) - i64::from(now / DAY);
        let day = at.day.plus(if *moment > now { ahead } else { ahead + 7 });
        Some(Civil { day, time: TimeOfDay::from_secs(moment % DAY)? })
    }
}

fn moment_of(at: Civil) -> Moment {
    at.day.weekday() as u32 * DAY + at.time.secs()
}

fn moment(text: &str) -> Result<(Option<Weekday>, TimeOfDay), BadTimetable> {
    let (day, time) = match text.split_once('-') {
        Some((day, time)) => (Some(Weekday::parse(day).ok_or_else(|| BadTimetable::Day(day.to_owned()))?), time),
        None => (None, text),
    };
    let time = TimeOfDay::parse(time).filter(|time| *time < TimeOfDay::END);
    Ok((day, time.ok_or_else(|| BadTimetable::Time(text.to_owned()))?))
}

fn rates(text: &str) -> Result<PerDirection<Rate>, BadTimetable> {
    let read = |part: &str| rate(part).map_err(|()| BadTimetable::Rate(text.to_owned()));
    match text.split_once(':') {
        Some((up, down)) => Ok(PerDirection { up: read(up)?, down: read(down)? }),
        None => Ok(PerDirection::both(read(text)?)),
    }
}

fn rate(text: &str) -> Result<Rate, ()> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(None);
    }
    parse_rate(text).map(NonZeroU64::new).map_err(|_| ())
}
