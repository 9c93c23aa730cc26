//! Times as CollecTor and its descriptors write them: `YYYY-MM-DD HH:MM`, with seconds or without, in UTC.

use crate::core::time::Epoch;

/// Reads `2016-10-01 12:00`, `2016-10-01 12:00:59`, and the same with `T` between, fractions of a second or a `Z` behind.
pub fn parse(text: &str) -> Option<Epoch> {
    let text = text.trim().trim_end_matches('Z');
    let (date, time) = text.split_once(['T', ' '])?;
    let mut day = date.splitn(3, '-');
    let (year, month, day) = (digits(day.next()?, 4)?, digits(day.next()?, 2)?, digits(day.next()?, 2)?);
    let mut clock = time.splitn(3, ':');
    let (hour, minute) = (digits(clock.next()?, 2)?, digits(clock.next()?, 2)?);
    let second = clock.next().map_or(Some(0), |s| digits(s.split('.').next().unwrap_or(s), 2))?;
    of_parts([year, month, day, hour, minute, second])
}

/// Reads the time that begins a file's name: `2016-10-01-12-00-00`.
pub fn of_name(name: &str) -> Option<Epoch> {
    let mut parts = name.splitn(7, '-');
    let mut next = |n| parts.next().and_then(|part| digits(part.get(..n)?, n));
    of_parts([next(4)?, next(2)?, next(2)?, next(2)?, next(2)?, next(2)?])
}

/// As `last_modified` and `index_created` stand in an index.
pub fn minute(at: Epoch) -> String {
    written(at, "%Y-%m-%d %H:%M")
}

/// To the second, as descriptors tell it.
pub fn second(at: Epoch) -> String {
    written(at, "%Y-%m-%d %H:%M:%S")
}

/// Whole seconds since the Unix epoch.
pub fn seconds(at: Epoch) -> i64 {
    at.as_micros().div_euclid(1_000_000)
}

fn written(at: Epoch, form: &str) -> String {
    // Outside of the years that the calendar knows there is nothing better to say.
    jiff::Timestamp::from_second(seconds(at)).map_or_else(|_| at.to_string(), |time| time.strftime(form).to_string())
}

fn digits(text: &str, n: usize) -> Option<i64> {
    (text.len() == n && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

fn of_parts(parts: [i64; 6]) -> Option<Epoch> {
    let [year, month, day, hour, minute, second] = parts;
    let small = |n: i64| i8::try_from(n).ok();
    let time = jiff::civil::DateTime::new(
        i16::try_from(year).ok()?,
        small(month)?,
        small(day)?,
        small(hour)?,
        small(minute)?,
        // A leap second is the last of its minute here.
        small(second.min(59 + i64::from(second > 60)))?,
        0,
    );
    let at = jiff::tz::TimeZone::UTC.to_timestamp(time.ok()?).ok()?;
    Some(Epoch::from_secs(at.as_second()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        let at = Epoch::from_secs(1_475_323_259);
        for text in ["2016-10-01 12:00:59", "2016-10-01T12:00:59Z", "2016-10-01T12:00:59.25", " 2016-10-01 12:00:59 "] {
            assert_eq!(parse(text), Some(at), "{text}");
        }
        assert_eq!(parse("2016-10-01 12:00"), Some(Epoch::from_secs(1_475_323_200)));
        assert_eq!(parse("2016-12-31 23:59:60"), parse("2016-12-31 23:59:59"));
        assert_eq!(of_name("2016-10-01-12-00-59-consensus"), Some(at));
        assert_eq!(of_name("2016-10-01-12-00-59"), Some(at));
        assert_eq!((minute(at).as_str(), second(at).as_str()), ("2016-10-01 12:00", "2016-10-01 12:00:59"));
    }

    #[test]
    fn what_is_no_time() {
        for text in ["", "2016-10-01", "2016-13-01 00:00", "2016-02-30 00:00", "16-10-01 12:00", "2016-10-01 24:00"] {
            assert_eq!(parse(text), None, "{text}");
        }
        for text in ["2016-10-01 12:00:61", "2016-10-01 1\u{661}:00", "+016-10-01 12:00"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(of_name("torperf-51200-2016-10-01.tpf"), None);
    }
}
