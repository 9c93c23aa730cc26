//! Retry-After: how long a server asks us to wait (RFC 9110 10.2.3).
//!
//! Seconds, or a date; a date is read against the answer's own `Date`, because the server means its own clock, which
//! may be wrong. What cannot be read is as if it were not there. The wait is a floor for that host, capped, and what a
//! client adds to it goes above it, never below.

use http::HeaderMap;
use http::header::RETRY_AFTER;

use crate::core::backoff::draw;
use crate::core::time::{Delay, Epoch};

/// The longest wait a server can ask for: one that says a century is not obeyed for longer than this.
pub const RETRY_AFTER_CAP: Delay = Delay::from_days(1);

/// Jitter above the floor, as a share of it.
const JITTER: f64 = 0.10;

/// Reads the header's value: the wait from now on, not yet capped. `date` is the answer's own Date, `now` our wall
/// clock, used where there is none. Nonsense, negative numbers and dates that are not in the future give `None`.
pub fn parse(value: &str, date: Option<Epoch>, now: Epoch) -> Option<Delay> {
    let value = value.trim_matches([' ', '\t']);
    seconds(value).or_else(|| until(value, date.unwrap_or(now)))
}

/// What the head of an answer says, read as [`parse`] does.
pub fn told(headers: &HeaderMap, date: Option<Epoch>, now: Epoch) -> Option<Delay> {
    let text = std::str::from_utf8(headers.get(RETRY_AFTER)?.as_bytes()).ok()?;
    parse(text, date, now)
}

/// The wait as far as it is obeyed.
pub fn capped(wait: Delay) -> Delay {
    wait.min(RETRY_AFTER_CAP)
}

/// A wait that respects the floor and does not meet everybody else's: up to a tenth above it.
pub fn above(floor: Delay, rng: &mut dyn rand::Rng) -> Delay {
    draw::between(floor, floor.saturating_add(floor.mul_f64(JITTER)), rng)
}

fn seconds(value: &str) -> Option<Delay> {
    let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    // The only error left to digits is that there are too many.
    digits.then(|| value.parse().map_or(Delay::MAX, Delay::from_secs))
}

fn until(value: &str, base: Epoch) -> Option<Delay> {
    let moment = httpdate::parse_http_date(value).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    let wait = (Epoch::ZERO + Delay::from(moment)).since(base);
    (wait > Delay::ZERO).then_some(wait)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110's examples.
    const EXAMPLE: Epoch = Epoch::from_secs(784_111_777);

    fn read(value: &str) -> Option<Delay> {
        parse(value, None, EXAMPLE)
    }

    #[test]
    fn seconds_are_read_and_huge_ones_saturate() {
        for (value, secs) in [("0", 0), ("2", 2), ("120", 120), (" 7\t", 7), ("007", 7), ("9999999999", 9_999_999_999)]
        {
            assert_eq!(read(value), Some(Delay::from_secs(secs)), "{value}");
        }
        assert_eq!(read(&"9".repeat(30)), Some(Delay::MAX));
        assert_eq!(read("18446744073709551615"), Some(Delay::MAX));
        assert_eq!(capped(Delay::MAX), RETRY_AFTER_CAP);
        assert_eq!(capped(Delay::from_secs(9_999_999_999)), Delay::from_secs(86_400));
        assert_eq!(capped(Delay::from_secs(2)), Delay::from_secs(2));
    }

    #[test]
    fn the_three_forms_of_a_date_are_read() {
        for value in ["Sun, 06 Nov 1994 08:51:37 GMT", "Sunday, 06-Nov-94 08:51:37 GMT", "Sun Nov  6 08:51:37 1994"] {
            assert_eq!(read(value), Some(Delay::from_mins(2)), "{value}");
        }
    }

    #[test]
    fn a_date_is_read_against_the_answers_own() {
        let value = "Sun, 06 Nov 1994 08:51:37 GMT";
        for our_clock in [Epoch::ZERO, EXAMPLE, Epoch::from_secs(4_000_000_000)] {
            assert_eq!(parse(value, Some(EXAMPLE), our_clock), Some(Delay::from_mins(2)));
        }
        assert_eq!(parse(value, Some(EXAMPLE + Delay::from_days(365)), EXAMPLE), None, "their clock says it is past");
        assert_eq!(parse("30", Some(Epoch::ZERO), EXAMPLE), Some(Delay::from_secs(30)), "seconds need no clock");
    }

    #[test]
    fn nonsense_is_as_if_it_were_not_there() {
        for value in [
            "",
            " ",
            "soon",
            "-1",
            "-120",
            "+5",
            "1.5",
            "1e3",
            "5s",
            "120, 60",
            "0x10",
            "NaN",
            "٣",
            "1 2",
            "Thu, 99 Foo 2099",
            "Thu, 01 Jan 1970 00:00:00 GMT",
            "Sun, 06 Nov 1994 08:49:36 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "2099-01-01T00:00:00Z",
        ] {
            assert_eq!(read(value), None, "{value:?}");
        }
    }

    #[test]
    fn a_far_date_is_capped() {
        let century = read("Fri, 01 Jan 2099 00:00:00 GMT").or_else(|| read("Thu, 01 Jan 2099 00:00:00 GMT"));
        assert_eq!(century.map(capped), Some(RETRY_AFTER_CAP));
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(
            value in "\\PC{0,40}|[0-9]{0,40}", date in any::<Option<i64>>(), now in any::<i64>(),
        ) {
            let wait = parse(&value, date.map(Epoch::from_micros), Epoch::from_micros(now));
            prop_assert!(wait.is_none_or(|w| capped(w) <= RETRY_AFTER_CAP));
        }

        #[test]
        fn never_earlier_than_the_floor(micros in any::<u64>(), shift in 0_u32..64, seed in any::<u64>()) {
            let floor = Delay::from_micros(micros >> shift);
            let wait = above(floor, &mut StdRng::seed_from_u64(seed));
            prop_assert!(wait >= floor);
            prop_assert!(wait <= floor.saturating_add(floor.mul_f64(JITTER)));
        }
    }
}
