//! The clocks: the only file that reads them.
//!
//! The wall clock is what is stored and shown; waits run on the monotonic one, which counts from the start of the
//! process and stands still while the machine sleeps (CLOCK_MONOTONIC; `std::time::Instant` is that clock on Linux and
//! its like on macOS).

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::core::civil::{Turn, Zone};
use crate::core::time::{Delay, Epoch, Mono, Now};

/// Where the time comes from: the system, or a test.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Sim(Arc<Mutex<Now>>),
    Runtime(RuntimeClock),
}

impl Clock {
    /// The clocks of the system.
    pub fn system() -> Self {
        process_start();
        Self(Source::System)
    }

    /// Both clocks, read together.
    pub fn now(&self) -> Now {
        match &self.0 {
            Source::System => Now { wall: wall(), mono: mono() },
            Source::Sim(now) => *now.lock().unwrap_or_else(PoisonError::into_inner),
            Source::Runtime(clock) => clock.now(),
        }
    }
}

/// How local clocks stand around this moment, by the zone of the system; where that is unknown, as UTC.
pub fn zone(at: Epoch) -> Zone {
    let zone = jiff::tz::TimeZone::try_system().unwrap_or(jiff::tz::TimeZone::UTC);
    let Ok(at) = jiff::Timestamp::from_microsecond(at.as_micros()) else { return Zone::default() };
    let turn = zone
        .following(at)
        .next()
        .map(|turn| Turn { at: Epoch::from_micros(turn.timestamp().as_microsecond()), east: turn.offset().seconds() });
    Zone { east: zone.to_offset(at).seconds(), turn }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

/// Clocks that move only when told, for tests.
#[derive(Clone, Debug)]
pub struct SimClock(Arc<Mutex<Now>>);

impl SimClock {
    /// Clocks that stand at this wall time, and at zero.
    pub fn at(wall: Epoch) -> Self {
        Self(Arc::new(Mutex::new(Now { wall, mono: Mono::ZERO })))
    }
    /// A clock that shows this time.
    pub fn clock(&self) -> Clock {
        Clock(Source::Sim(Arc::clone(&self.0)))
    }
    /// Time passes: both clocks move on.
    pub fn advance(&self, by: Delay) {
        self.change(|now| *now = Now { wall: now.wall + by, mono: now.mono + by });
    }
    /// Somebody sets the wall clock; the monotonic one does not notice.
    pub fn set_wall(&self, wall: Epoch) {
        self.change(|now| now.wall = wall);
    }
    fn change(&self, how: impl FnOnce(&mut Now)) {
        how(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Clocks that go by the time of the event loop, which a simulation can have pass in no time; the wall clock can be set.
#[derive(Clone, Debug)]
pub struct RuntimeClock {
    began: tokio::time::Instant,
    /// The wall time at which the other clock stood at zero.
    zero: Arc<Mutex<Epoch>>,
}

impl RuntimeClock {
    /// Clocks that stand at this wall time, and at zero, now. To be made on the event loop.
    pub fn at(wall: Epoch) -> Self {
        Self { began: tokio::time::Instant::now(), zero: Arc::new(Mutex::new(wall)) }
    }
    /// A clock that shows this time.
    pub fn clock(&self) -> Clock {
        Clock(Source::Runtime(self.clone()))
    }
    /// Somebody sets the wall clock; the monotonic one does not notice.
    pub fn set_wall(&self, wall: Epoch) {
        let passed = self.now().mono.since(Mono::ZERO);
        *self.zero.lock().unwrap_or_else(PoisonError::into_inner) = wall - passed;
    }
    fn now(&self) -> Now {
        let passed = Delay::from(self.began.elapsed());
        let zero = *self.zero.lock().unwrap_or_else(PoisonError::into_inner);
        Now { wall: zero + passed, mono: Mono::ZERO + passed }
    }
}

#[expect(clippy::disallowed_methods, reason = "this file owns the clocks")]
fn wall() -> Epoch {
    let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |m| -m),
    };
    Epoch::from_micros(micros)
}

fn mono() -> Mono {
    Mono::ZERO + Delay::from(process_start().elapsed())
}

/// The moment that the monotonic clock counts from: the first look at it.
#[expect(clippy::disallowed_methods, reason = "this file owns the clocks")]
fn process_start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clocks_move_and_agree_between_handles() {
        let (one, two) = (Clock::system(), Clock::system());
        let before = one.now().mono;
        std::thread::sleep(std::time::Duration::from_millis(2));
        let after = two.now();
        assert!(after.mono.since(before) >= Delay::from_millis(2));
        assert!(after.wall > Epoch::from_secs(1_700_000_000), "the wall clock is a date: {}", after.wall);
    }

    #[test]
    fn the_zone_is_that_of_the_system() {
        let at = Epoch::from_secs(1_790_000_000);
        let shown = zone(at);
        let at_utc = jiff::Timestamp::from_second(1_790_000_000).expect("a time");
        let expected = jiff::tz::TimeZone::system().to_offset(at_utc);
        assert_eq!(shown.east, expected.seconds());
        assert!(shown.turn.is_none_or(|turn| turn.at > at));
    }

    #[test]
    fn a_simulated_clock_moves_when_told() {
        let sim = SimClock::at(Epoch::from_secs(100));
        let clock = sim.clock();
        sim.advance(Delay::from_secs(5));
        assert_eq!(clock.now(), Now { wall: Epoch::from_secs(105), mono: Mono::from_micros(5_000_000) });
        sim.set_wall(Epoch::from_secs(7));
        assert_eq!(clock.now(), Now { wall: Epoch::from_secs(7), mono: Mono::from_micros(5_000_000) });
    }
}
