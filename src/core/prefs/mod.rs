//! Preferences: what a user wants of transfers on this machine, as data, with BOINC's meanings (boinc.md 6.1 and 6.2).
//!
//! What follows from them at a moment is decided in [`crate::core::schedule`]. The file that they are read from, and its
//! words, belong to the face.
//!
//! | file | about |
//! |---|---|
//! | `hours` | at what hours the network may be used |
//! | `timetable` | rates that change with the hour, as rclone writes them |
//! | `quota` | how many bytes may pass in so many days |
//! | `host` | what holds for one host, or for a family of them |

mod host;
mod hours;
mod quota;
mod timetable;

pub use host::{BadHost, ByHost, HostPattern, HostPrefs, LoginFrom};
pub use hours::{Hours, NetHours};
pub use quota::{Left, Quotas};
pub use timetable::{BadTimetable, Timetable};

use std::num::NonZeroU64;

use crate::core::ledger::Rules;
use crate::core::pers_xfer::record::Direction;
use crate::core::time::Delay;
use crate::core::url::MirrorUrl;

/// A rate in bytes per second; none is no limit.
pub type Rate = Option<NonZeroU64>;

/// Something of each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PerDirection<T> {
    /// Of uploads.
    pub up: T,
    /// Of downloads.
    pub down: T,
}

/// All that a user may prefer. The default prefers nothing: always, without limits.
#[derive(Clone, Debug, Default)]
pub struct Preferences {
    /// When the network may be used.
    pub hours: NetHours,
    /// Bytes per second (`max_bytes_sec_up`, `max_bytes_sec_down`).
    pub rates: PerDirection<Rate>,
    /// Further limits by the hour.
    pub timetable: Timetable,
    /// Bytes in so many days.
    pub quotas: Quotas,
    /// Are these rules followed? What a person says later overrides it.
    pub mode: Mode,
    /// Sessions at once.
    pub sessions: Sessions,
    /// What holds for some hosts only.
    pub hosts: ByHost,
    /// Commands around transfers.
    pub hooks: Hooks,
    /// Where the failure of a transfer is reported.
    pub report_url: Option<MirrorUrl>,
    /// How requests travel where the command does not say.
    pub travel: Travel,
    /// The rules of the ledger.
    pub ledger: Rules,
}

/// BOINC's network mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Hours and quotas are not heeded; rates are.
    Always,
    /// By the preferences.
    #[default]
    Auto,
    /// Nothing is transferred: a person has suspended it all.
    Never,
}

impl Mode {
    /// The mode of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Always, Self::Auto, Self::Never].into_iter().find(|mode| mode.word() == word)
    }

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Auto => "auto",
            Self::Never => "never",
        }
    }
}

/// Sessions at once; `None` where the command says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sessions {
    /// In all.
    pub all: Option<usize>,
    /// With one host.
    pub per_host: Option<usize>,
    /// In one direction.
    pub per_direction: PerDirection<Option<usize>>,
}

/// Commands around transfers: the words of each, no shell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// After each transfer that is complete; empty for none.
    pub complete: Vec<String>,
    /// After each that failed.
    pub failure: Vec<String>,
}

/// How requests travel where the command does not say.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Travel {
    /// The proxy's URL; it may hold a password.
    pub proxy: Option<String>,
    /// Hosts that are asked without it, as `NO_PROXY` has them.
    pub no_proxy: Option<String>,
    /// How long a connection may take.
    pub connect_timeout: Option<Delay>,
    /// How long the first byte of an answer may take.
    pub first_byte_timeout: Option<Delay>,
    /// How long bytes may come too slowly.
    pub stall_timeout: Option<Delay>,
}

impl<T> PerDirection<T> {
    /// The same for both.
    pub fn both(value: T) -> Self
    where
        T: Clone,
    {
        Self { up: value.clone(), down: value }
    }

    /// That of one direction.
    pub const fn of(&self, direction: Direction) -> &T {
        match direction {
            Direction::Upload => &self.up,
            Direction::Download => &self.down,
        }
    }

    /// The same, to be changed.
    pub const fn of_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Upload => &mut self.up,
            Direction::Download => &mut self.down,
        }
    }
}

/// The lower of two limits, where nothing is no limit.
pub fn lower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl Preferences {
    /// Can they ever stop transfers, or slow them down? Otherwise nobody need look at the hour.
    pub fn restrain(&self) -> bool {
        let rates = self.rates.up.is_some() || self.rates.down.is_some();
        self.mode == Mode::Never
            || rates
            || !self.hours.is_always()
            || !self.timetable.is_empty()
            || !self.quotas.is_empty()
    }
}

impl std::fmt::Debug for Travel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Travel").field("proxy", &self.proxy.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
