//! The network mode: may anything be transferred at all, as a person last said, for good or for a while.
//!
//! After BOINC (boinc.md 4.3): a mode for good, and over it one that ends by itself. `Never` stops everything; `Always` stands
//! above every rule that would suspend transfers; `Auto` leaves it to those.

use crate::core::time::{Delay, Mono};

/// May anything be transferred?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkMode {
    /// Yes, whatever the preferences say.
    Always,
    /// As the preferences say.
    #[default]
    Auto,
    /// No.
    Never,
}

impl NetworkMode {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Auto => "auto",
            Self::Never => "never",
        }
    }
}

/// The mode for good, and the one that holds for a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkSwitch {
    permanent: NetworkMode,
    temporary: Option<(NetworkMode, Mono)>,
}

impl NetworkSwitch {
    /// This mode, for good.
    pub const fn new(permanent: NetworkMode) -> Self {
        Self { permanent, temporary: None }
    }

    /// The mode that holds now.
    pub fn mode(&self, now: Mono) -> NetworkMode {
        self.running(now).map_or(self.permanent, |(mode, _)| mode)
    }

    /// The mode that holds where none holds for a while.
    pub const fn permanent(&self) -> NetworkMode {
        self.permanent
    }

    /// When the mode that holds for a while ends, if one does.
    pub fn until(&self, now: Mono) -> Option<Mono> {
        self.running(now).map(|(_, until)| until)
    }

    /// Sets a mode: for this long from now, or for good, where that is zero.
    pub fn set(&mut self, mode: NetworkMode, duration: Delay, now: Mono) {
        if duration == Delay::ZERO {
            *self = Self::new(mode);
        } else {
            self.temporary = Some((mode, now + duration));
        }
    }

    /// Ends the mode that holds for a while.
    pub const fn restore(&mut self) {
        self.temporary = None;
    }

    fn running(&self, now: Mono) -> Option<(NetworkMode, Mono)> {
        self.temporary.filter(|(_, until)| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Mono {
        Mono::ZERO + Delay::from_secs(secs)
    }

    #[test]
    fn a_mode_for_a_while_ends_by_itself() {
        let mut switch = NetworkSwitch::default();
        assert_eq!((switch.mode(at(0)), switch.until(at(0))), (NetworkMode::Auto, None));
        switch.set(NetworkMode::Never, Delay::from_secs(60), at(10));
        assert_eq!((switch.mode(at(69)), switch.until(at(69))), (NetworkMode::Never, Some(at(70))));
        assert_eq!(switch.permanent(), NetworkMode::Auto);
        assert_eq!((switch.mode(at(70)), switch.until(at(70))), (NetworkMode::Auto, None));
    }

    #[test]
    fn a_mode_for_good_ends_one_for_a_while() {
        let mut switch = NetworkSwitch::default();
        switch.set(NetworkMode::Never, Delay::from_secs(60), at(0));
        switch.set(NetworkMode::Always, Delay::ZERO, at(1));
        assert_eq!((switch.mode(at(2)), switch.until(at(2))), (NetworkMode::Always, None));
        switch.set(NetworkMode::Never, Delay::MAX, at(3));
        assert_eq!(switch.mode(at(4)), NetworkMode::Never);
        switch.restore();
        assert_eq!(switch.mode(at(4)), NetworkMode::Always);
    }
}
