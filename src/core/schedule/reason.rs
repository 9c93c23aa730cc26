//! Reasons: why nothing passes, in a person's words.

use crate::core::civil::{Day, Zone};
use crate::core::range::Length;
use crate::core::time::Epoch;
use crate::core::units::human_bytes;

/// Why nothing passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A person has suspended the network.
    Suspended {
        /// Until then, where they said so.
        until: Option<Epoch>,
    },
    /// The preferences keep it shut at this hour.
    Hours {
        /// When it opens; never, where there is no such moment.
        opens: Option<Epoch>,
    },
    /// As many bytes have passed as are allowed in so many days.
    Quota {
        /// How many are.
        of: Length,
        /// The day on which some may pass again.
        more: Option<Day>,
    },
    /// There is no network.
    Offline {
        /// When it is next tried.
        next: Epoch,
    },
}

impl Reason {
    /// One line, without a full stop.
    pub fn text(&self, zone: &Zone, now: Epoch) -> String {
        let say = |at: Epoch| zone.say(at, now);
        match self {
            Self::Suspended { until: None } => "suspended by user".to_owned(),
            Self::Suspended { until: Some(until) } => format!("suspended by user until {}", say(*until)),
            Self::Hours { opens: None } => "outside network hours, which never open".to_owned(),
            Self::Hours { opens: Some(opens) } => format!("outside network hours, opens {}", say(*opens)),
            Self::Quota { of, more } => {
                let when = more.map_or_else(String::new, |day| format!(", more {}", on(zone, day, now)));
                format!("quota: all {} used{when}", human_bytes(*of))
            }
            Self::Offline { next } => format!("offline, next try {}", say(*next)),
        }
    }

    /// What is said of a quota that is not used up yet.
    pub fn quota_left(bytes: Length, more: Option<Day>, zone: &Zone, now: Epoch) -> String {
        let until = more.map_or_else(String::new, |day| format!(" until {}", zone.say_day(day, now)));
        format!("quota: {} left{until}", human_bytes(bytes))
    }
}

fn on(zone: &Zone, day: Day, now: Epoch) -> String {
    let word = if zone.civil(now).day.plus(1) == day { "at" } else { "on" };
    format!("{word} {}", zone.say_day(day, now))
}
