//! The gate: may bytes pass now, in which direction, how fast, and how many. Also when the answer may become another one,
//! so that whoever asked looks again then and not before.
//!
//! Several rules may keep it shut at once; the one told is the one that a person can do least about elsewhere: no network,
//! then their own word, then the hour, then the quota. `Always` is BOINC's: hours and quotas are not heeded, rates are.

use crate::core::civil::{Civil, Zone};
use crate::core::pers_xfer::record::Direction;
use crate::core::prefs::{Left, Mode, PerDirection, Preferences, Rate, lower};
use crate::core::schedule::{History, NetworkMode, Reason};
use crate::core::time::{Delay, Epoch, Mono, Now};

/// A wall clock that differs by more than this from what the monotonic one says has been set, or the machine has slept.
const CLOCK_SET: Delay = Delay::from_secs(2);

/// What the gate must know beside the preferences.
#[derive(Clone, Copy, Debug)]
pub struct Outside<'a> {
    /// What passed on which day.
    pub history: &'a History,
    /// What people say.
    pub mode: NetworkMode,
    /// There is no network, and it is next tried then.
    pub offline: Option<Mono>,
    /// How local clocks stand.
    pub zone: Zone,
}

/// What the gate says, until it is to be asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// Of each direction.
    pub ways: PerDirection<Way>,
    /// When to ask again, at the latest; `None` where nothing will change by itself.
    pub wake: Option<Mono>,
    /// When it was asked.
    pub asked: Now,
}

/// One direction of the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Bytes may pass.
    Open {
        /// So fast.
        rate: Rate,
        /// So many, where a quota counts them: when they have passed, ask again.
        left: Option<Left>,
    },
    /// None may.
    Shut {
        /// Why.
        reason: Reason,
        /// Until when, as far as it is known.
        until: Option<Mono>,
    },
}

impl Way {
    /// May bytes pass?
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }
}

impl Outlook {
    /// Nothing restrains anybody.
    pub fn free(now: Now) -> Self {
        Self { ways: PerDirection::both(Way::Open { rate: None, left: None }), wake: None, asked: now }
    }

    /// Is it to be asked again? Its time has come, or the wall clock was set since.
    pub fn is_stale(&self, now: Now) -> bool {
        let expected = self.asked.wall + now.mono.since(self.asked.mono);
        let off = expected.since(now.wall).max(now.wall.since(expected));
        self.wake.is_some_and(|wake| wake <= now.mono) || off > CLOCK_SET
    }
}

/// Asks the gate.
pub fn outlook(prefs: &Preferences, outside: &Outside<'_>, now: Now) -> Outlook {
    let look = Look { prefs, outside, now, civil: outside.zone.civil(now.wall) };
    let ways = PerDirection { up: look.way(Direction::Upload), down: look.way(Direction::Download) };
    Outlook { wake: look.wake(&ways), ways, asked: now }
}

/// One look at everything.
struct Look<'a> {
    prefs: &'a Preferences,
    outside: &'a Outside<'a>,
    now: Now,
    civil: Civil,
}

impl Look<'_> {
    fn way(&self, direction: Direction) -> Way {
        let mode = self.outside.mode.current(self.now.mono);
        if let Some(next) = self.outside.offline {
            return Way::Shut { reason: Reason::Offline { next: self.now.wall_of(next) }, until: Some(next) };
        }
        if mode == Mode::Never {
            let until = self.outside.mode.until(self.now.mono).map(|(_, until)| until);
            let reason = Reason::Suspended { until: until.map(|until| self.now.wall_of(until)) };
            return Way::Shut { reason, until };
        }
        let left = self.left(direction, mode);
        match mode {
            Mode::Auto if !self.prefs.hours.is_open(self.civil) => {
                let opens = self.prefs.hours.next_change(self.civil).map(|civil| self.outside.zone.first(civil));
                Way::Shut { reason: Reason::Hours { opens }, until: opens.map(|opens| self.due(opens)) }
            }
            _ => match left {
                Some(Left { bytes, of, more }) if bytes.0 == 0 => {
                    let until = more.map(|day| self.due(self.outside.zone.first(day.start())));
                    Way::Shut { reason: Reason::Quota { of, more }, until }
                }
                left => Way::Open { rate: self.rate(direction), left },
            },
        }
    }

    fn left(&self, direction: Direction, mode: Mode) -> Option<Left> {
        let heeded = mode == Mode::Auto;
        heeded.then(|| self.prefs.quotas.left(direction, self.outside.history, self.civil.day)).flatten()
    }

    fn rate(&self, direction: Direction) -> Rate {
        let by_hour = *self.prefs.timetable.at(self.civil).of(direction);
        lower(*self.prefs.rates.of(direction), by_hour)
    }

    /// When the answer may be another one: what of the rules changes by itself, the earliest.
    fn wake(&self, ways: &PerDirection<Way>) -> Option<Mono> {
        let zone = &self.outside.zone;
        let mode_ends = self.outside.mode.until(self.now.mono).map(|(_, until)| until);
        let local = [self.prefs.hours.next_change(self.civil), self.prefs.timetable.next_change(self.civil)];
        let counted = !self.prefs.quotas.is_empty();
        let midnight = counted.then(|| self.civil.day.plus(1).start());
        let moments: Vec<Epoch> =
            local.into_iter().chain([midnight]).flatten().map(|civil| zone.first(civil)).collect();
        // Where local time matters, a change of the clocks does.
        let turn = zone.next_turn(self.now.wall).filter(|_| !moments.is_empty());
        let due = moments.into_iter().chain(turn).map(|at| self.due(at));
        let shut = [&ways.up, &ways.down].into_iter().filter_map(|way| match way {
            Way::Shut { until, .. } => *until,
            Way::Open { .. } => None,
        });
        due.chain(mode_ends).chain(shut).min()
    }

    /// A moment of the wall clock on the clock that waits run on; never now, because it was looked at now.
    fn due(&self, at: Epoch) -> Mono {
        self.now.mono + crate::core::civil::until(at, self.now.wall)
    }
}
