//! Local time: the calendar, and the two nights on which clocks are set.

use proptest::prelude::*;

use super::*;

fn epoch(text: &str) -> Epoch {
    let at: jiff::Timestamp = text.parse().expect("a timestamp");
    Epoch::from_secs(at.as_second())
}

fn civil(text: &str) -> Civil {
    let at: jiff::civil::DateTime = text.parse().expect("a local time");
    let days = jiff::civil::date(1970, 1, 1).until((jiff::Unit::Day, at.date())).expect("days").get_days();
    let time = TimeOfDay::parse(&at.time().strftime("%H:%M:%S").to_string()).expect("a time");
    Civil { day: Day(i64::from(days)), time }
}

/// Berlin in spring: an hour ahead, two from 2026-03-29 01:00 UTC on, when 02:00 becomes 03:00.
fn spring() -> Zone {
    Zone { east: 3_600, turn: Some(Turn { at: epoch("2026-03-29T01:00:00Z"), east: 7_200 }) }
}

/// Berlin in autumn: two hours ahead, one from 2026-10-25 01:00 UTC on, when 03:00 becomes 02:00.
fn autumn() -> Zone {
    Zone { east: 7_200, turn: Some(Turn { at: epoch("2026-10-25T01:00:00Z"), east: 3_600 }) }
}

#[test]
fn days_have_their_names() {
    for (date, name) in [("1970-01-01", "Thursday"), ("1969-12-28", "Sunday"), ("2026-12-01", "Tuesday")] {
        let day = civil(&format!("{date}T00:00:00")).day;
        assert_eq!((day.weekday().name(), day.to_string().as_str()), (name, date));
    }
    assert_eq!([Weekday::parse("mon"), Weekday::parse("SUNDAY")], [Some(Weekday::Monday), Some(Weekday::Sunday)]);
    assert_eq!([Weekday::parse("mo"), Weekday::parse("")], [None, None]);
}

#[test]
fn times_of_day_are_read_as_people_and_boinc_write_them() {
    let read = |text| TimeOfDay::parse(text).map(TimeOfDay::secs);
    assert_eq!([read("8:30"), read("08:30:15"), read("24:00")], [Some(30_600), Some(30_615), Some(86_400)]);
    for bad in ["", "8", "8:3", "8:60", "24:01", "25:00", "-1:00", "+8:00", "08:30:00:00", "008:00", " 8:00"] {
        assert_eq!(read(bad), None, "{bad:?}");
    }
    let hours = |n| TimeOfDay::from_hours(n).map(TimeOfDay::secs);
    assert_eq!([hours(0.0), hours(7.5), hours(24.0)], [Some(0), Some(27_000), Some(86_400)]);
    assert_eq!([hours(-0.1), hours(24.1), hours(f64::NAN)], [None, None, None]);
}

#[test]
fn an_hour_that_is_skipped_comes_when_it_is_skipped() {
    let zone = spring();
    assert_eq!(zone.first(civil("2026-03-29T01:59:59")), epoch("2026-03-29T00:59:59Z"));
    assert_eq!(zone.first(civil("2026-03-29T02:30:00")), epoch("2026-03-29T01:00:00Z"), "clocks never show it");
    assert_eq!(zone.first(civil("2026-03-29T03:00:00")), epoch("2026-03-29T01:00:00Z"));
    assert_eq!(zone.first(civil("2026-03-29T22:00:00")), epoch("2026-03-29T20:00:00Z"), "an hour sooner than before");
    assert_eq!(zone.civil(epoch("2026-03-29T01:00:00Z")), civil("2026-03-29T03:00:00"));
}

#[test]
fn an_hour_that_comes_twice_comes_first_at_its_first_time() {
    let zone = autumn();
    assert_eq!(zone.first(civil("2026-10-25T02:30:00")), epoch("2026-10-25T00:30:00Z"));
    assert_eq!(zone.first(civil("2026-10-25T03:00:00")), epoch("2026-10-25T02:00:00Z"), "an hour later than it looks");
    assert_eq!(zone.civil(epoch("2026-10-25T00:30:00Z")), zone.civil(epoch("2026-10-25T01:30:00Z")));
}

#[test]
fn moments_are_told_as_people_need_them() {
    let now = epoch("2026-12-01T12:00:00Z");
    let say = |text| Zone::default().say(epoch(text), now);
    assert_eq!(say("2026-12-01T22:00:00Z"), "22:00");
    assert_eq!(say("2026-12-04T07:00:00Z"), "Friday 07:00");
    assert_eq!(say("2026-12-24T07:00:01Z"), "2026-12-24 07:01", "not told too early");
    let day = Zone::default().civil(now).day;
    let days = [1, 3, 7].map(|n| Zone::default().say_day(day.plus(n), now));
    assert_eq!(days, ["midnight", "Friday", "2026-12-08"]);
}

proptest! {
    /// The first moment of a local time shows that time, or is a change of the clocks that skips it; and a moment earlier
    /// shows less.
    #[test]
    fn the_first_moment_is_the_first(secs in 1_774_000_000_i64..1_775_500_000, back in any::<bool>()) {
        let zone = if back { Zone { turn: spring().turn.map(|t| Turn { east: 0, ..t }), ..spring() } } else { spring() };
        let wanted = zone.civil(Epoch::from_secs(secs));
        let first = zone.first(wanted);
        prop_assert!(first <= Epoch::from_secs(secs));
        let shown = zone.civil(first);
        prop_assert!(shown == wanted, "{shown:?} {wanted:?}");
    }

    /// The next time of a day is later, within a day, and that time.
    #[test]
    fn the_next_time_is_within_a_day(day in -1_000_i64..40_000, second in 0..DAY, time in 0..=DAY) {
        let now = Civil { day: Day(day), time: TimeOfDay(second) };
        let next = now.next(TimeOfDay(time));
        let ahead = (next.day.0 - day) * i64::from(DAY) + i64::from(next.time.0) - i64::from(second);
        prop_assert!(ahead > 0 && ahead <= i64::from(DAY), "{ahead}");
        prop_assert_eq!(next.time.0, time % DAY);
    }
}
