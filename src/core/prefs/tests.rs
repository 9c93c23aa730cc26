//! Preferences: hours, timetables, quotas and hosts, each against its rule.

use proptest::prelude::*;

use super::*;
use crate::core::civil::{Civil, DAY, Day, TimeOfDay};
use crate::core::range::Length;
use crate::core::schedule::History;
use crate::core::url::Origin;

/// 1970-01-05 was a Monday.
const MONDAY: Day = Day(4);

fn at(day: i64, time: &str) -> Civil {
    Civil { day: MONDAY.plus(day), time: TimeOfDay::parse(time).expect("a time") }
}

fn hours(from: f64, to: f64) -> Hours {
    let time = |h| TimeOfDay::from_hours(h).expect("hours");
    Hours { from: time(from), to: time(to) }
}

#[test]
fn hours_mean_what_boinc_means() {
    let open = |from, to, time: &str| NetHours::daily(hours(from, to)).is_open(at(0, time));
    assert!(open(7.0, 7.0, "07:00") && open(0.0, 0.0, "12:00"), "the same twice is always");
    assert!(open(0.0, 24.0, "23:59"));
    assert!(!open(24.0, 0.0, "00:00") && !open(24.0, 0.0, "12:00"), "24 to 0 is never");
    assert_eq!(["06:59", "07:00", "21:59", "22:00"].map(|t| open(7.0, 22.0, t)), [false, true, true, false]);
    assert_eq!(
        ["21:59", "22:00", "00:00", "06:59", "07:00"].map(|t| open(22.0, 7.0, t)),
        [false, true, true, true, false]
    );
}

#[test]
fn a_day_of_its_own_replaces_the_general_one() {
    let mut all = NetHours::daily(hours(22.0, 7.0));
    all.days[5] = Some(hours(0.0, 24.0));
    assert!(all.is_open(at(5, "12:00")) && !all.is_open(at(4, "12:00")));
    assert_eq!(all.next_change(at(4, "23:00")), Some(at(6, "07:00")), "open from Friday night to Sunday morning");
    assert_eq!(all.next_change(at(6, "07:00")), Some(at(6, "22:00")));
    assert_eq!(NetHours::default().next_change(at(0, "00:00")), None);
    assert_eq!(NetHours::daily(hours(24.0, 0.0)).next_change(at(0, "00:00")), None);
    let once = NetHours { every: hours(24.0, 0.0), days: [None, Some(hours(8.0, 9.0)), None, None, None, None, None] };
    assert_eq!(once.next_change(at(1, "08:30")), Some(at(1, "09:00")));
    assert_eq!(once.next_change(at(1, "09:30")), Some(at(8, "08:00")), "a week later");
}

fn table(text: &str) -> Timetable {
    Timetable::parse(text).expect(text)
}

/// The rate for downloads at that moment.
fn down(table: &Timetable, day: i64, time: &str) -> u64 {
    table.at(at(day, time)).down.map_or(0, NonZeroU64::get)
}

#[test]
fn a_timetable_holds_round_the_clock() {
    let t = table("08:00,512k 12:00,10m 13:00,512k 18:00,30m 23:00,off");
    let at_times = |times: [&str; 5]| times.map(|time| down(&t, 2, time) >> 10);
    assert_eq!(at_times(["07:59", "08:00", "12:59", "18:00", "23:00"]), [0, 512, 10_240, 30_720, 0]);
    assert_eq!(t.next_change(at(2, "12:30")), Some(at(2, "13:00")));
    assert_eq!(t.next_change(at(6, "23:30")), Some(at(7, "08:00")), "over the end of the week");
    assert_eq!(down(&table("512k"), 3, "03:00"), 512 << 10, "a rate alone always holds");
    assert_eq!(table("512k").next_change(at(0, "00:00")), None);
    assert!(table("").is_empty());
}

#[test]
fn days_of_a_timetable_wrap_round_the_week() {
    let t = table("Mon-00:00,512 Fri-23:59,10m Sat-10:00,1m Sun-20:00,off");
    assert_eq!([down(&t, 0, "00:00"), down(&t, 4, "23:58"), down(&t, 5, "09:59")], [512, 512, 10 << 20]);
    assert_eq!([down(&t, 6, "19:59"), down(&t, 6, "20:00")], [1 << 20, 0]);
    let mixed = table("Mon-00:00,512 12:00,1m Sun-20:00,off");
    assert_eq!([down(&mixed, 0, "11:00"), down(&mixed, 1, "11:00"), down(&mixed, 6, "21:00")], [512, 1 << 20, 0]);
    let own = table("08:00,1k sat-08:00,off");
    assert_eq!([down(&own, 4, "09:00"), down(&own, 5, "09:00"), down(&own, 6, "09:00")], [1024, 0, 1024]);
}

#[test]
fn a_rate_of_each_direction() {
    let rates = table("10:00,1k:off 12:00,off:2k").at(at(0, "11:00"));
    assert_eq!((rates.up.map(NonZeroU64::get), rates.down), (Some(1024), None));
}

#[test]
fn what_is_no_timetable_is_named() {
    for (text, why) in [
        ("08:00,512k 23:00", "\"23:00\" is no entry"),
        ("08:00", "\"08:00\" is no entry"),
        ("8,512k", "\"8\" is no time"),
        ("24:00,1k", "\"24:00\" is no time"),
        ("Xyz-08:00,1k", "\"Xyz\" is no day"),
        ("08:00,fast", "\"fast\" is no rate"),
        ("08:00,1k:2k:3k", "\"1k:2k:3k\" is no rate"),
        ("08:00,1k 08:00,2k", "second entry"),
        ("Mon-08:00,1k mon-08:00,2k", "second entry"),
    ] {
        let error = Timetable::parse(text).expect_err(text).to_string();
        assert!(error.contains(why), "{text:?}: {error}");
    }
}

fn quota(days: u32, up: u64, down: u64, together: u64) -> Quotas {
    let limit = |n| Some(Length(n)).filter(|l| l.0 > 0);
    Quotas { days, each: PerDirection { up: limit(up), down: limit(down) }, together: limit(together) }
}

fn used(days: &[(i64, u64, u64)]) -> History {
    let mut history = History::default();
    for (day, up, down) in days {
        history.count(Day(*day), Direction::Upload, *up);
        history.count(Day(*day), Direction::Download, *down);
    }
    history
}

#[test]
fn a_quota_counts_today_and_the_days_before_it() {
    let history = used(&[(95, 0, 500), (97, 0, 300), (100, 10, 100)]);
    let left = |days| quota(days, 0, 1_000, 0).left(Direction::Download, &history, Day(100)).expect("a limit");
    assert_eq!(left(1), Left { bytes: Length(900), of: Length(1_000), more: Some(Day(101)) });
    assert_eq!(left(4), Left { bytes: Length(600), of: Length(1_000), more: Some(Day(101)) });
    assert_eq!(left(6), Left { bytes: Length(100), of: Length(1_000), more: Some(Day(101)) });
    assert_eq!(left(5).more, Some(Day(102)), "day 97 falls out of five days then");
    assert_eq!(quota(4, 0, 1_000, 0).left(Direction::Upload, &history, Day(100)), None);
}

#[test]
fn a_spent_quota_has_room_again_when_enough_has_fallen_out() {
    let history = used(&[(98, 0, 100), (99, 0, 900), (100, 0, 900)]);
    let left = quota(3, 0, 1_000, 0).left(Direction::Download, &history, Day(100)).expect("a limit");
    assert_eq!(left, Left { bytes: Length(0), of: Length(1_000), more: Some(Day(102)) });
}

#[test]
fn of_two_limits_the_narrower_counts() {
    let history = used(&[(100, 400, 100)]);
    let quotas = quota(1, 0, 300, 600);
    assert_eq!(quotas.left(Direction::Download, &history, Day(100)).map(|l| l.bytes.0), Some(100), "together");
    assert_eq!(quotas.left(Direction::Upload, &history, Day(100)).map(|l| l.bytes.0), Some(100));
    assert_eq!(quota(0, 1, 1, 1).left(Direction::Upload, &history, Day(100)), None, "no period is no quota");
    assert!(quota(9, 0, 0, 0).is_empty());
}

#[test]
fn the_most_exact_entry_for_a_host_holds() {
    let entry = |text: &str, n| {
        let prefs = HostPrefs { connections: Some(n), ..HostPrefs::default() };
        (HostPattern::parse(text).expect(text), prefs)
    };
    let hosts = ByHost::new(vec![
        entry("*.example.org", 1),
        entry("*.mirror.example.org", 2),
        entry("Example.ORG", 3),
        entry("example.org:8443", 4),
        entry("[::1]:80", 5),
    ]);
    let of = |url: &str| hosts.of(&Origin::parse(url).expect(url)).and_then(|prefs| prefs.connections);
    assert_eq!([of("https://a.example.org"), of("http://x.mirror.example.org:81")], [Some(1), Some(2)]);
    assert_eq!([of("https://example.org"), of("https://example.org:8443")], [Some(3), Some(4)]);
    assert_eq!([of("http://[::1]/"), of("http://[::1]:81/")], [Some(5), None]);
    assert_eq!([of("https://badexample.org"), of("https://example.org.evil.example")], [None, None]);
}

#[test]
fn what_names_no_host_is_refused() {
    for text in ["", "*", "a.*.org", "http://a.org", "a.org/x", "a.org:0x", "a.org:70000", "u@a.org", "*.", "a b"] {
        assert_eq!(HostPattern::parse(text), Err(BadHost(text.to_owned())), "{text:?}");
    }
}

fn some_hours() -> impl Strategy<Value = Hours> {
    (0..=DAY, 0..=DAY).prop_map(|(from, to)| {
        let time = |secs| TimeOfDay::from_secs(secs).expect("a time");
        Hours { from: time(from), to: time(to) }
    })
}

proptest! {
    /// Until the next change nothing changes, and then it does.
    #[test]
    fn hours_change_when_they_say(every in some_hours(), day in proptest::option::of(some_hours()), which in 0..7_usize,
                                  second in 0..DAY, probe in 0.0..1.0_f64) {
        let mut hours = NetHours::daily(every);
        hours.days[which] = day;
        let now = Civil { day: MONDAY, time: TimeOfDay::from_secs(second).expect("a time") };
        let secs = |at: Civil| (at.day.0 - MONDAY.0) * i64::from(DAY) + i64::from(at.time.secs());
        let end = hours.next_change(now);
        let until = end.map_or(8 * i64::from(DAY), secs);
        let between = secs(now) + ((until - 1 - secs(now)) as f64 * probe) as i64;
        let between = MONDAY.start().plus_secs(between);
        prop_assert_eq!(hours.is_open(between), hours.is_open(now));
        if let Some(end) = end {
            prop_assert!(end > now);
            prop_assert_ne!(hours.is_open(end), hours.is_open(now));
        }
    }

    /// A timetable's next change is the first.
    #[test]
    fn a_timetable_changes_when_it_says(entries in proptest::collection::btree_map((0..7_u32, 0..24_u32), 0..4_u32, 0..9),
                                        second in 0..7 * DAY, probe in 0.0..1.0_f64) {
        let words: Vec<String> = entries.iter().map(|((day, hour), rate)| {
            let day = &["mon", "tue", "wed", "thu", "fri", "sat", "sun"][*day as usize];
            format!("{day}-{hour:02}:00,{rate}k")
        }).collect();
        let table = table(&words.join(" "));
        let now = MONDAY.start().plus_secs(i64::from(second));
        let end = table.next_change(now);
        let secs = |at: Civil| (at.day.0 - MONDAY.0) * i64::from(DAY) + i64::from(at.time.secs());
        let until = end.map_or(secs(now) + 7 * i64::from(DAY), secs);
        prop_assert!(until > secs(now) && until <= secs(now) + 7 * i64::from(DAY));
        let between = MONDAY.start().plus_secs(secs(now) + ((until - 1 - secs(now)) as f64 * probe) as i64);
        prop_assert_eq!(table.at(between), table.at(now));
        if let Some(end) = end {
            prop_assert_ne!(table.at(end), table.at(now));
        }
    }

    /// What a quota leaves and what was used make up the limit; and when it says that there is more, there is, not sooner.
    #[test]
    fn a_quota_has_more_room_when_it_says(days in 1_u32..9, limit in 1_u64..2_000,
                                          spent in proptest::collection::vec((85_i64..=100, 0_u64..400), 0..12)) {
        let mut history = History::default();
        spent.iter().for_each(|(day, bytes)| history.count(Day(*day), Direction::Download, *bytes));
        let quotas = quota(days, 0, limit, 0);
        let left = |today: i64| quotas.left(Direction::Download, &history, Day(today)).expect("a limit");
        let used: u64 = spent.iter().filter(|(day, _)| *day > 100 - i64::from(days)).map(|(_, bytes)| bytes).sum();
        prop_assert_eq!(left(100).bytes.0, limit.saturating_sub(used));
        // A day that is more than full may become less so and leave as little.
        match left(100).more {
            Some(more) => {
                prop_assert!(left(more.0).bytes > left(100).bytes);
                for day in 101..more.0 { prop_assert_eq!(left(day).bytes, left(100).bytes); }
            }
            None => prop_assert_eq!(left(100).bytes, Length(limit)),
        }
    }
}
