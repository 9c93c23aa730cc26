//! Time as the decisions see it: a wall clock that may jump, and a monotonic one that waits run on.
//!
//! Both are read once a turn, outside this floor, and handed in as [`Now`]. Stored moments are [`Epoch`]s (BOINC writes
//! them as seconds with six decimals, which whole microseconds carry exactly); waits are measured in [`Mono`].

use std::fmt;
use std::ops::{Add, Sub};

const MICROS: u64 = 1_000_000;

/// A moment of the wall clock: microseconds since the Unix epoch, negative before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(i64);

/// A moment of the monotonic clock: microseconds since an arbitrary start, meaningful in one process only. It does not
/// run while the machine sleeps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mono(u64);

/// A span of time in microseconds, never negative. All arithmetic saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Delay(u64);

/// Both clocks, read together once a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The wall clock: what is stored and shown.
    pub wall: Epoch,
    /// The monotonic clock: what waits run on.
    pub mono: Mono,
}

impl Epoch {
    /// The Unix epoch itself; BOINC's "no time".
    pub const ZERO: Self = Self(0);

    /// From microseconds since the Unix epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }
    /// From whole seconds since the Unix epoch; saturating.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(MICROS as i64))
    }
    /// From seconds as BOINC stores them, rounded to the microsecond; anything that is no number becomes zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        // A float-to-integer cast saturates and turns NaN into zero.
        Self((secs * MICROS as f64).round() as i64)
    }
    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }
    /// Seconds since the Unix epoch.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / MICROS as f64
    }
    /// The time from `earlier` to `self`; zero where `earlier` is in fact later.
    pub fn since(self, earlier: Self) -> Delay {
        Delay(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Mono {
    /// The arbitrary start.
    pub const ZERO: Self = Self(0);

    /// From microseconds since the arbitrary start.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }
    /// Microseconds since the arbitrary start.
    pub const fn as_micros(self) -> u64 {
        self.0
    }
    /// The time from `earlier` to `self`; zero where `earlier` is in fact later.
    pub fn since(self, earlier: Self) -> Delay {
        Delay(self.0.saturating_sub(earlier.0))
    }
}

impl Delay {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest delay that can be told: some 584,000 years.
    pub const MAX: Self = Self(u64::MAX);

    /// From microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }
    /// From milliseconds; saturating.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }
    /// From whole seconds; saturating.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(MICROS))
    }
    /// From whole minutes; saturating.
    pub const fn from_mins(mins: u64) -> Self {
        Self::from_secs(mins.saturating_mul(60))
    }
    /// From whole hours; saturating.
    pub const fn from_hours(hours: u64) -> Self {
        Self::from_secs(hours.saturating_mul(3_600))
    }
    /// From whole days; saturating.
    pub const fn from_days(days: u64) -> Self {
        Self::from_secs(days.saturating_mul(86_400))
    }
    /// From seconds, rounded to the microsecond; negative ones and what is no number become zero, huge ones saturate.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * MICROS as f64).round() as u64)
    }
    /// Microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }
    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / MICROS as f64
    }
    /// Whole seconds, rounded down.
    pub const fn as_secs(self) -> u64 {
        self.0 / MICROS
    }
    /// The sum, at most [`Delay::MAX`].
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
    /// The difference, at least zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// The product, at most [`Delay::MAX`].
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
    /// The product with a factor that is no whole number; negative and NaN give zero, huge ones saturate.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }
    /// As the standard library's duration.
    pub const fn as_std(self) -> std::time::Duration {
        std::time::Duration::from_micros(self.0)
    }
}

impl From<std::time::Duration> for Delay {
    fn from(d: std::time::Duration) -> Self {
        Self(u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
    }
}

impl Add<Delay> for Epoch {
    type Output = Self;
    fn add(self, d: Delay) -> Self {
        Self(self.0.saturating_add(i64::try_from(d.0).unwrap_or(i64::MAX)))
    }
}

impl Sub<Delay> for Epoch {
    type Output = Self;
    fn sub(self, d: Delay) -> Self {
        Self(self.0.saturating_sub(i64::try_from(d.0).unwrap_or(i64::MAX)))
    }
}

impl Add<Delay> for Mono {
    type Output = Self;
    fn add(self, d: Delay) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}

impl Now {
    /// The wall time at which `due` will have come, if neither clock jumps.
    pub fn wall_of(self, due: Mono) -> Epoch {
        self.wall + due.since(self.mono)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Epoch({self})")
    }
}

/// As BOINC prints a time: seconds with six decimals.
impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let m = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:06}", m / MICROS, m % MICROS)
    }
}

impl fmt::Debug for Mono {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mono({}.{:06})", self.0 / MICROS, self.0 % MICROS)
    }
}

impl fmt::Debug for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Delay({}.{:06})", self.0 / MICROS, self.0 % MICROS)
    }
}

/// As BOINC prints a span: seconds with six decimals. For people use `core::units::human_delay`.
impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / MICROS, self.0 % MICROS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boinc_doubles_survive_a_round_trip() {
        for text in ["1767218400.250000", "1030665725.000000", "0.000001", "4102444800.999999"] {
            let secs: f64 = text.parse().expect("a number");
            assert_eq!(Epoch::from_secs_f64(secs).to_string(), text);
        }
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Delay::MAX.saturating_add(Delay::from_secs(1)), Delay::MAX);
        assert_eq!(Delay::from_days(u64::MAX), Delay::MAX);
        assert_eq!(Epoch::from_secs(5).since(Epoch::from_secs(9)), Delay::ZERO);
        assert_eq!(Epoch::from_micros(i64::MAX) + Delay::MAX, Epoch::from_micros(i64::MAX));
        assert_eq!(Delay::from_secs_f64(-3.0), Delay::ZERO);
        assert_eq!(Delay::from_secs_f64(f64::NAN), Delay::ZERO);
        assert_eq!(Delay::from_secs_f64(f64::INFINITY), Delay::MAX);
    }
}
