//! The network mode: what a person last said, for good or for a while (boinc.md 4.4, `set_network_mode`).

use crate::core::prefs::Mode;
use crate::core::time::{Delay, Mono};

/// A mode that a person set for good, as the state file keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaidMode {
    /// What they said.
    pub mode: Mode,
    /// What the preferences said then. Where these say something else by now, that was said later.
    pub over: Mode,
}

impl SaidMode {
    /// The mode that holds for good, where the preferences say `preferred`.
    pub fn holding(said: Option<Self>, preferred: Mode) -> Mode {
        said.filter(|said| said.over == preferred).map_or(preferred, |said| said.mode)
    }

    /// What is to be stored of a mode that holds where the preferences say `preferred`: nothing where it is the same.
    pub fn of(mode: Mode, preferred: Mode) -> Option<Self> {
        (mode != preferred).then_some(Self { mode, over: preferred })
    }
}

/// The mode that lasts, and one that covers it for a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkMode {
    lasting: Mode,
    passing: Option<(Mode, Mono)>,
}

impl NetworkMode {
    /// This mode, until somebody says otherwise.
    pub const fn lasting(mode: Mode) -> Self {
        Self { lasting: mode, passing: None }
    }

    /// A person sets it: for so long, and then what was before is again; without a duration for good. One that lasts ends
    /// one that passes.
    pub fn set(&mut self, mode: Mode, duration: Delay, now: Mono) {
        *self = match duration {
            Delay::ZERO => Self::lasting(mode),
            _ => Self { passing: Some((mode, now + duration)), ..*self },
        };
    }

    /// A person wants back what lasts.
    pub fn restore(&mut self) {
        self.passing = None;
    }

    /// What holds now.
    pub fn current(&self, now: Mono) -> Mode {
        self.until(now).map_or(self.lasting, |(mode, _)| mode)
    }

    /// What holds for good, and is to be stored.
    pub const fn permanent(&self) -> Mode {
        self.lasting
    }

    /// What passes, and when it ends.
    pub fn until(&self, now: Mono) -> Option<(Mode, Mono)> {
        self.passing.filter(|(_, until)| *until > now)
    }
}
