//! Durations, sizes and rates as people write and read them.
//!
//! Durations: `50ms 10s 5m 2h 14d`, `1h30m`, `1.5h`; a unit is always needed. Sizes and rates: `64k 2.5m 1g`, where a
//! plain number is bytes. Every letter is a power of 1024, whatever stands behind it: `64k`, `64K`, `64KB` and `64KiB`
//! are all 65,536 bytes, because that is what k, m and g mean to wget, curl and aria2, whose users we have.
//!
//! The arithmetic is in whole numbers: what is written is what is meant, to the microsecond and the byte.

use crate::core::range::Length;
use crate::core::time::Delay;

/// Why a text is no duration, size or rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no {what}: {why} (write it like {})", what.examples())]
pub struct BadUnit {
    /// The text as written.
    pub text: String,
    /// What it should have been.
    pub what: What,
    /// What is wrong with it.
    pub why: Why,
}

/// What a text should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A span of time.
    Duration,
    /// A number of bytes.
    Size,
    /// A number of bytes per second.
    Rate,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// There is nothing.
    #[error("it is empty")]
    Empty,
    /// Digits should stand where something else does: a sign, a point, a word.
    #[error("a number should stand before {0:?}")]
    NoNumber(String),
    /// A duration without a unit.
    #[error("add a unit")]
    NoUnit,
    /// A unit that does not exist.
    #[error("there is no unit {0:?}")]
    Unit(String),
    /// The units of a combined duration do not fall.
    #[error("the units must go from large to small, each once")]
    Order,
    /// A fraction before the last part of a combined duration.
    #[error("only the last part may have a fraction")]
    Fraction,
    /// Less than one byte, but not nothing.
    #[error("it is less than one byte")]
    Part,
    /// More than can be counted.
    #[error("it is too large")]
    TooLarge,
}

/// Units of time in microseconds, largest first.
const TIMES: [(&str, u64); 6] = [
    ("w", 604_800_000_000),
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
];

/// The letters of sizes: powers of 1024, from the first on. As curl's; an `e` would look like an exponent.
const LETTERS: [char; 5] = ['k', 'm', 'g', 't', 'p'];

/// Reads a duration: `50ms`, `10s`, `5m`, `2h`, `14d`, `2w`, `1.5h`, `1h30m`. Rounded down to the microsecond.
///
/// # Errors
/// Anything else: a number without unit, a sign, an exponent, a word; what is too long to count (584,000 years).
pub fn parse_duration(text: &str) -> Result<Delay, BadUnit> {
    duration(text).map(Delay::from_micros).map_err(|why| BadUnit { text: text.to_owned(), what: What::Duration, why })
}

/// Reads a size: `1500`, `64k`, `2.5m`, `1g`, `64KiB`, `10MB` (all 1024-based). Rounded down to the byte.
///
/// # Errors
/// Anything else: a sign, an exponent, a word; a part of a byte; what is over 16 EiB.
pub fn parse_size(text: &str) -> Result<Length, BadUnit> {
    size(text).map(Length).map_err(|why| BadUnit { text: text.to_owned(), what: What::Size, why })
}

/// Reads a rate in bytes per second, written like a size; a trailing `/s` may stand behind it.
///
/// # Errors
/// As [`parse_size`].
pub fn parse_rate(text: &str) -> Result<u64, BadUnit> {
    let amount = text.strip_suffix("/s").unwrap_or(text);
    size(amount).map_err(|why| BadUnit { text: text.to_owned(), what: What::Rate, why })
}

/// A span for people, in its two largest units: `350 ms`, `1.5 s`, `42 s`, `2 h 5 min`, `14 d`. Rounded to the nearest.
pub fn human_delay(delay: Delay) -> String {
    let micros = delay.as_micros();
    let millis = rounded(micros, 1_000);
    let tenths = rounded(micros, 100_000);
    let secs = rounded(micros, 1_000_000);
    let mins = rounded(micros, 60_000_000);
    let hours = rounded(micros, 3_600_000_000);
    match () {
        () if micros == 0 => "0 s".to_owned(),
        () if millis < 1_000 => format!("{} ms", millis.max(1)),
        () if tenths < 100 && !tenths.is_multiple_of(10) => format!("{}.{} s", tenths / 10, tenths % 10),
        () if secs < 60 => format!("{secs} s"),
        () if secs < 3_600 => two(secs, 60, "min", "s"),
        () if mins < 1_440 => two(mins, 60, "h", "min"),
        () => two(hours, 24, "d", "h"),
    }
}

/// A number of bytes for people: `512 B`, `1.4 MiB`, `640 KiB`. Rounded to the nearest.
pub fn human_bytes(bytes: Length) -> String {
    const NAMES: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes.0 < 1024 {
        return format!("{bytes} B");
    }
    let steps = NAMES.into_iter().zip((10_u32..).step_by(10));
    // u64::MAX is 16 EiB, so the last name always does.
    let (name, unit) = steps
        .map(|(name, shift)| (name, 1_u64 << shift))
        .find(|(_, unit)| rounded(bytes.0, *unit) < 1024)
        .unwrap_or(("EiB", 1 << 60));
    let tenths = (u128::from(bytes.0) * 10 + u128::from(unit / 2)) / u128::from(unit);
    if tenths < 1_000 {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    } else {
        format!("{} {name}", rounded(bytes.0, unit))
    }
}

/// A rate for people: `1.4 MiB/s`.
pub fn human_rate(bytes_per_second: u64) -> String {
    format!("{}/s", human_bytes(Length(bytes_per_second)))
}

impl What {
    const fn examples(self) -> &'static str {
        match self {
            Self::Duration => "50ms, 10s, 5m, 2h, 14d or 1h30m",
            Self::Size | Self::Rate => "64k, 2.5m, 1g (1024-based) or 1500 (bytes)",
        }
    }
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Duration => "duration",
            Self::Size => "size",
            Self::Rate => "rate",
        })
    }
}

fn duration(text: &str) -> Result<u64, Why> {
    let mut rest = text;
    let mut total = 0_u64;
    let mut smallest = u64::MAX;
    let mut fraction_seen = false;
    loop {
        let (number, behind) = Number::read(rest)?;
        let letters = behind.find(|c: char| !c.is_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(letters);
        let scale = time_unit(unit, behind)?;
        if scale >= smallest {
            return Err(Why::Order);
        }
        if fraction_seen {
            return Err(Why::Fraction);
        }
        let part = number.times(scale).ok_or(Why::TooLarge)?;
        total = total.checked_add(part).ok_or(Why::TooLarge)?;
        if behind.is_empty() {
            return Ok(total);
        }
        (rest, smallest, fraction_seen) = (behind, scale, number.fraction.is_some());
    }
}

fn time_unit(unit: &str, behind: &str) -> Result<u64, Why> {
    if unit.is_empty() {
        return Err(if behind.is_empty() { Why::NoUnit } else { Why::Unit(behind.to_owned()) });
    }
    TIMES.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale).ok_or_else(|| Why::Unit(unit.to_owned()))
}

fn size(text: &str) -> Result<u64, Why> {
    let (number, unit) = Number::read(text)?;
    let bytes = number.times(size_unit(unit)?).ok_or(Why::TooLarge)?;
    let something = number.whole.bytes().chain(number.fraction.unwrap_or_default().bytes()).any(|digit| digit != b'0');
    let plain_fraction = number.fraction.is_some() && size_unit(unit)? == 1;
    if (bytes == 0 && something) || plain_fraction { Err(Why::Part) } else { Ok(bytes) }
}

/// What a unit of sizes multiplies by: nothing or `B`, or a letter, alone or before `B` or `iB`, in any case.
fn size_unit(unit: &str) -> Result<u64, Why> {
    let bad = || Why::Unit(unit.to_owned());
    let lower = unit.to_ascii_lowercase();
    let mut letters = lower.chars();
    match letters.next() {
        None => Ok(1),
        Some('b') if lower == "b" => Ok(1),
        Some(letter) => {
            let power = LETTERS.iter().position(|l| *l == letter).ok_or_else(bad)?;
            if matches!(letters.as_str(), "" | "b" | "ib") { Ok(1024 << (10 * power)) } else { Err(bad()) }
        }
    }
}

/// A decimal number without sign and exponent, not yet read as one.
struct Number<'a> {
    whole: &'a str,
    fraction: Option<&'a str>,
}

impl<'a> Number<'a> {
    /// The number that a text begins with, and the rest.
    fn read(text: &'a str) -> Result<(Self, &'a str), Why> {
        if text.is_empty() {
            return Err(Why::Empty);
        }
        let (whole, rest) = digits(text);
        if whole.is_empty() {
            return Err(Why::NoNumber(text.to_owned()));
        }
        let Some(behind) = rest.strip_prefix('.') else {
            return Ok((Self { whole, fraction: None }, rest));
        };
        let (fraction, rest) = digits(behind);
        if fraction.is_empty() {
            Err(Why::Unit(format!(".{rest}")))
        } else {
            Ok((Self { whole, fraction: Some(fraction) }, rest))
        }
    }

    /// The product with a unit, rounded down; `None` where it cannot be counted.
    fn times(&self, unit: u64) -> Option<u64> {
        let whole: u64 = self.whole.parse().ok()?;
        whole.checked_mul(unit)?.checked_add(self.fraction_of(unit))
    }

    /// The part of a unit behind the point. Eighteen digits tell a part of the largest unit to less than a hundredth of
    /// what is counted, and with them the product fits.
    fn fraction_of(&self, unit: u64) -> u64 {
        let Some(fraction) = self.fraction else { return 0 };
        let told = &fraction[..fraction.len().min(18)];
        let numerator = told.bytes().fold(0_u128, |n, digit| n * 10 + u128::from(digit - b'0'));
        let denominator = told.bytes().fold(1_u128, |n, _| n * 10);
        // Less than the unit, because the numerator is less than the denominator.
        u64::try_from(u128::from(unit) * numerator / denominator).unwrap_or(u64::MAX)
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

const fn rounded(n: u64, unit: u64) -> u64 {
    n / unit + (n % unit >= unit - unit / 2) as u64
}

/// So many small units as large and small ones; a small part that is zero is left out.
fn two(small: u64, per_large: u64, large_name: &str, small_name: &str) -> String {
    match (small / per_large, small % per_large) {
        (large, 0) => format!("{large} {large_name}"),
        (large, rest) => format!("{large} {large_name} {rest} {small_name}"),
    }
}

#[cfg(test)]
mod tests;
