//! At what hours the network may be used: a span of every day, and other ones for some days of the week.

use crate::core::civil::{Civil, TimeOfDay, Weekday};

/// A span of the day, as BOINC has it: it is open from `from` on and shut at `to`. The same twice means always, 0 to 24
/// too, and 24 to 0 never; one that begins later than it ends is open at both ends of its day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours {
    /// It opens.
    pub from: TimeOfDay,
    /// It shuts.
    pub to: TimeOfDay,
}

/// The span of each day of the week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetHours {
    /// Of every day,
    pub every: Hours,
    /// but of these days, Monday first, this one instead.
    pub days: [Option<Hours>; 7],
}

impl Default for Hours {
    fn default() -> Self {
        Self { from: TimeOfDay::MIDNIGHT, to: TimeOfDay::MIDNIGHT }
    }
}

impl Hours {
    fn is_always(self) -> bool {
        self.from == self.to || (self.from == TimeOfDay::MIDNIGHT && self.to == TimeOfDay::END)
    }

    fn is_open(self, time: TimeOfDay) -> bool {
        match () {
            () if self.is_always() => true,
            () if self.from < self.to => self.from <= time && time < self.to,
            () => time >= self.from || time < self.to,
        }
    }
}

impl NetHours {
    /// The same every day.
    pub const fn daily(every: Hours) -> Self {
        Self { every, days: [None; 7] }
    }

    /// They never shut.
    pub fn is_always(&self) -> bool {
        Weekday::ALL.into_iter().all(|day| self.of(day).is_always())
    }

    /// Is the network open at this moment of local clocks?
    pub fn is_open(&self, at: Civil) -> bool {
        self.of(at.day.weekday()).is_open(at.time)
    }

    /// The next moment of local clocks at which that changes; `None` where it never does.
    pub fn next_change(&self, at: Civil) -> Option<Civil> {
        let open = self.is_open(at);
        // A whole week and a day, so that a change on this day of the week, earlier than now, is found too.
        let days = (0..=7).map(|ahead| at.day.plus(ahead));
        let edges = days.flat_map(|day| {
            let Hours { from, to } = self.of(day.weekday());
            let mut times = [TimeOfDay::MIDNIGHT, from, to];
            times.sort();
            times.map(|time| Civil { day, time }.normal())
        });
        edges.into_iter().find(|edge| *edge > at && self.is_open(*edge) != open)
    }

    fn of(&self, day: Weekday) -> Hours {
        self.days[day as usize].unwrap_or(self.every)
    }
}
