//! The network mode: what a person last said, for good or for a while (boinc.md 4.4, `set_network_mode`).

use crate::core::prefs::Mode;
use crate::core::time::{Delay, Mono};

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
