//! The gate and the network: each rule alone, two nights on which clocks are set, and random lives.

use std::num::NonZeroU64;

use proptest::prelude::*;

use super::*;
use crate::core::civil::{Day, TimeOfDay, Turn, Zone};
use crate::core::pers_xfer::record::Direction;
use crate::core::prefs::{Hours, Mode, NetHours, PerDirection, Preferences, Quotas, Timetable};
use crate::core::range::Length;
use crate::core::time::{Delay, Epoch, Mono, Now};
use crate::core::url::Origin;

fn epoch(text: &str) -> Epoch {
    let at: jiff::Timestamp = text.parse().expect("a timestamp");
    Epoch::from_secs(at.as_second())
}

fn now(text: &str) -> Now {
    Now { wall: epoch(text), mono: Mono::ZERO + Delay::from_hours(1) }
}

fn nightly() -> Preferences {
    let time = |text| TimeOfDay::parse(text).expect("a time");
    Preferences { hours: NetHours::daily(Hours { from: time("22:00"), to: time("07:00") }), ..Preferences::default() }
}

/// What is outside, without anything that matters.
struct World {
    history: History,
    mode: NetworkMode,
    offline: Option<Mono>,
    zone: Zone,
}

impl World {
    fn new() -> Self {
        let mode = NetworkMode::lasting(Mode::Auto);
        Self { history: History::default(), mode, offline: None, zone: Zone::default() }
    }

    fn ask(&self, prefs: &Preferences, now: Now) -> Outlook {
        let Self { history, mode, offline, zone } = self;
        let outside = Outside { history, mode: *mode, offline: *offline, zone: *zone };
        outlook(prefs, &outside, now)
    }

    /// What is said of downloads.
    fn says(&self, prefs: &Preferences, now: Now) -> String {
        match self.ask(prefs, now).ways.down {
            Way::Open { rate, left } => {
                let left = left.map(|left| Reason::quota_left(left.bytes, left.more, &self.zone, now.wall));
                let rate = rate.map(|rate| format!("at {rate}"));
                [Some("open".to_owned()), rate, left].into_iter().flatten().collect::<Vec<_>>().join(", ")
            }
            Way::Shut { reason, .. } => reason.text(&self.zone, now.wall),
        }
    }
}

/// How long until the gate is asked again.
fn wait(outlook: &Outlook) -> Option<Delay> {
    outlook.wake.map(|wake| wake.since(outlook.asked.mono))
}

#[test]
fn without_preferences_it_is_open_and_never_asked_again() {
    let outlook = World::new().ask(&Preferences::default(), now("2026-12-01T12:00:00Z"));
    assert_eq!(outlook, Outlook::free(now("2026-12-01T12:00:00Z")));
    assert!(!Preferences::default().restrain() && nightly().restrain());
}

#[test]
fn outside_its_hours_it_is_shut_until_they_begin() {
    let (world, noon) = (World::new(), now("2026-12-01T12:00:00Z"));
    assert_eq!(world.says(&nightly(), noon), "outside network hours, opens 22:00");
    let outlook = world.ask(&nightly(), noon);
    assert_eq!(wait(&outlook), Some(Delay::from_hours(10)));
    let Way::Shut { until, .. } = outlook.ways.up else { panic!("both directions are shut") };
    assert_eq!(until, outlook.wake);
    let night = now("2026-12-01T22:00:00Z");
    assert_eq!(
        (world.says(&nightly(), night).as_str(), wait(&world.ask(&nightly(), night))),
        ("open", Some(Delay::from_hours(9)))
    );
    let never = Preferences {
        hours: NetHours::daily(Hours { from: TimeOfDay::END, to: TimeOfDay::MIDNIGHT }),
        ..Preferences::default()
    };
    assert_eq!(world.says(&never, noon), "outside network hours, which never open");
    assert_eq!(world.ask(&never, noon).wake, None);
}

#[test]
fn a_night_on_which_clocks_are_set_moves_the_hour() {
    let mut world = World::new();
    world.zone = Zone { east: 3_600, turn: Some(Turn { at: epoch("2026-03-29T01:00:00Z"), east: 7_200 }) };
    // At 23:00 of the day before, open until 07:00, which comes after seven hours and not after eight.
    let eve = now("2026-03-28T22:00:00Z");
    let outlook = world.ask(&nightly(), eve);
    assert_eq!(wait(&outlook), Some(Delay::from_hours(3)), "it looks again when the clocks change");
    let later = Now { wall: eve.wall + Delay::from_hours(3), mono: eve.mono + Delay::from_hours(3) };
    assert!(outlook.is_stale(later));
    let after = Zone { east: 7_200, turn: None };
    let outlook = World { zone: after, ..World::new() }.ask(&nightly(), later);
    assert_eq!(wait(&outlook), Some(Delay::from_hours(4)));
    // At noon before, the opening is told at the right moment.
    let noon = now("2026-03-29T00:59:00Z");
    let shut = Preferences {
        hours: NetHours::daily(Hours {
            from: TimeOfDay::parse("02:30").expect("a time"),
            to: TimeOfDay::parse("03:30").expect("a time"),
        }),
        ..Preferences::default()
    };
    let Way::Shut { until, .. } = world.ask(&shut, noon).ways.down else { panic!("shut") };
    assert_eq!(until.map(|until| until.since(noon.mono)), Some(Delay::from_mins(1)), "02:30 is skipped");
}

#[test]
fn the_mode_is_boincs() {
    let (mut world, noon) = (World::new(), now("2026-12-01T12:00:00Z"));
    let rated = Preferences { rates: PerDirection { up: None, down: NonZeroU64::new(5) }, ..nightly() };
    world.mode.set(Mode::Always, Delay::ZERO, noon.mono);
    assert_eq!(world.says(&rated, noon), "open, at 5", "rates are heeded");
    world.mode.set(Mode::Never, Delay::from_mins(30), noon.mono);
    assert_eq!(world.says(&rated, noon), "suspended by user until 12:30");
    let outlook = world.ask(&rated, noon);
    assert_eq!(wait(&outlook), Some(Delay::from_mins(30)));
    let later = Now { wall: noon.wall + Delay::from_mins(30), mono: noon.mono + Delay::from_mins(30) };
    assert_eq!((world.says(&rated, later).as_str(), world.mode.permanent()), ("open, at 5", Mode::Always));
    world.mode.restore();
    assert_eq!(world.mode.current(noon.mono), Mode::Always);
    world.mode.set(Mode::Never, Delay::ZERO, noon.mono);
    assert_eq!(world.says(&rated, noon), "suspended by user");
}

#[test]
fn the_lower_of_two_rates_holds() {
    let (world, noon) = (World::new(), now("2026-12-01T12:00:00Z"));
    let mut prefs =
        Preferences { timetable: Timetable::parse("08:00,100 13:00,off").expect("a table"), ..Preferences::default() };
    assert_eq!(world.says(&prefs, noon), "open, at 100");
    assert_eq!(wait(&world.ask(&prefs, noon)), Some(Delay::from_hours(1)));
    prefs.rates.down = NonZeroU64::new(60);
    assert_eq!(world.says(&prefs, noon), "open, at 60");
    assert_eq!(world.says(&prefs, now("2026-12-01T14:00:00Z")), "open, at 60");
}

#[test]
fn a_quota_is_told_while_it_lasts_and_shuts_when_it_is_used_up() {
    let (mut world, noon) = (World::new(), now("2026-12-01T12:00:00Z"));
    let today = world.zone.civil(noon.wall).day;
    let mebi = |n: u64| n << 20;
    world.history.count(today.plus(-2), Direction::Download, mebi(60));
    let quotas = Quotas { days: 5, together: Some(Length(mebi(100))), ..Quotas::default() };
    let prefs = Preferences { quotas, ..Preferences::default() };
    assert_eq!(world.says(&prefs, noon), "open, quota: 40.0 MiB left until Friday");
    assert_eq!(wait(&world.ask(&prefs, noon)), Some(Delay::from_hours(12)), "days are counted");
    world.history.count(today, Direction::Upload, mebi(40));
    assert_eq!(world.says(&prefs, noon), "quota: all 100 MiB used, more on Friday");
    world.mode.set(Mode::Always, Delay::ZERO, noon.mono);
    assert_eq!(world.says(&prefs, noon), "open");
}

#[test]
fn without_a_network_nothing_else_is_told() {
    let (mut world, noon) = (World::new(), now("2026-12-01T12:00:00Z"));
    world.offline = Some(noon.mono + Delay::from_mins(2));
    assert_eq!(world.says(&nightly(), noon), "offline, next try 12:02");
    assert_eq!(wait(&world.ask(&nightly(), noon)), Some(Delay::from_mins(2)));
}

#[test]
fn a_wall_clock_that_was_set_makes_it_stale() {
    let (world, noon) = (World::new(), now("2026-12-01T12:00:00Z"));
    let outlook = world.ask(&nightly(), noon);
    let on = |wall, mono| Now { wall: noon.wall + Delay::from_secs(wall), mono: noon.mono + Delay::from_secs(mono) };
    assert!(!outlook.is_stale(on(60, 60)) && !outlook.is_stale(on(61, 60)));
    assert!(outlook.is_stale(on(3_660, 60)) && outlook.is_stale(on(0, 60)));
}

#[test]
fn history_forgets_what_nobody_asks_for() {
    let mut history = History::default();
    let today = Day(20_000);
    [-400, -366, 0, 1, 2].into_iter().for_each(|ahead| history.count(today.plus(ahead), Direction::Upload, 1));
    history.forget(today);
    let days: Vec<i64> = history.days().map(|(day, _)| day.0 - today.0).collect();
    assert_eq!(days, [-366, 0, 1]);
    let mut sum = history.clone();
    sum.add(&history);
    assert_eq!(sum.of(today).up, 2);
}

fn host(n: u8) -> Origin {
    Origin::parse(&format!("http://h{n}.example")).expect("an origin")
}

fn secs(n: u64) -> Mono {
    Mono::ZERO + Delay::from_secs(n)
}

#[test]
fn one_host_without_an_address_is_no_outage() {
    let mut network = Network::default();
    for n in 0..9 {
        assert_eq!(network.sign(&host(1), Sign::NoNetwork, 2, secs(n)), Turned::No);
    }
    assert_eq!(network.sign(&host(2), Sign::Reached, 2, secs(9)), Turned::No);
    assert_eq!(network.sign(&host(1), Sign::NoNetwork, 2, secs(10)), Turned::No, "counted from the last answer");
    assert_eq!(network.offline(), None);
    assert_eq!(network.sign(&host(3), Sign::NoNetwork, 2, secs(10)), Turned::Down);
}

#[test]
fn failures_are_signs_of_the_network_only_where_they_are() {
    use crate::core::failure::{Failure, NO_NETWORK};
    let connect = |detail: &str| Failure::Connect { detail: detail.to_owned() };
    let resolve = |host: &str, detail: &str| Failure::Resolve { host: host.to_owned(), detail: detail.to_owned() };
    let again = "Temporary failure in name resolution";
    for (failure, sign) in [
        (connect(NO_NETWORK[0]), Sign::NoNetwork),
        (connect(NO_NETWORK[1]), Sign::NoNetwork),
        (connect("connection refused"), Sign::Reached),
        (connect("no route to the host"), Sign::Nothing),
        (connect("no connection within 30 s"), Sign::Nothing),
        (resolve("a.example", again), Sign::NoNetwork),
        (resolve("no-such-host.invalid", again), Sign::Nothing),
        (resolve("a.example", "Name or service not known"), Sign::Nothing),
        (Failure::Status { code: 503, retry_after: None }, Sign::Reached),
    ] {
        assert_eq!(sign_of(&failure), sign, "{failure}");
    }
}

#[test]
fn the_only_host_twice_is_one() {
    let mut network = Network::default();
    assert_eq!(network.sign(&host(1), Sign::NoNetwork, 1, secs(0)), Turned::No);
    assert_eq!(network.sign(&host(1), Sign::NoNetwork, 1, secs(0)), Turned::Down);
}

#[test]
fn probes_go_one_at_a_time_and_ever_more_seldom() {
    let mut network = Network::default();
    for n in [1, 2] {
        network.sign(&host(n), Sign::NoNetwork, 2, secs(0));
    }
    let mut times = Vec::new();
    for n in 0..700 {
        if network.probe(secs(n)) {
            assert!(!network.probe(secs(n)), "one at a time");
            times.push(n);
            network.sign(&host(1), Sign::NoNetwork, 2, secs(n));
        }
    }
    assert_eq!(times, [5, 15, 35, 75, 155, 315, 615]);
    assert_eq!(network.offline(), Some(secs(915)), "never more than five minutes");
    network.changed(secs(700));
    assert!(network.probe(secs(700)), "the system says that something changed");
    assert_eq!(network.sign(&host(1), Sign::Reached, 2, secs(700)), Turned::Up);
    assert_eq!((network.offline(), network.probe(secs(9_999))), (None, false));
}

#[test]
fn a_probe_that_is_lost_or_says_nothing_is_followed_by_another() {
    let mut network = Network::default();
    for n in [1, 2] {
        network.sign(&host(n), Sign::NoNetwork, 2, secs(0));
    }
    assert!(network.probe(secs(5)));
    assert_eq!(network.sign(&host(1), Sign::Nothing, 2, secs(6)), Turned::No);
    assert!(!network.probe(secs(10)) && network.probe(secs(11)));
    assert!(!network.probe(secs(610)) && network.probe(secs(611)));
}

fn some_prefs() -> impl Strategy<Value = Preferences> {
    let time = |quarter: u32| TimeOfDay::from_secs(quarter * 900).expect("a time");
    let rate = proptest::option::of(1_u64..9);
    (0..=96_u32, 0..=96_u32, 0..4_u32, proptest::option::of(1_u64..2_000), rate, any::<bool>()).prop_map(
        move |(from, to, days, limit, rate, table)| Preferences {
            hours: NetHours::daily(Hours { from: time(from), to: time(to) }),
            quotas: Quotas { days, together: limit.map(Length), ..Quotas::default() },
            rates: PerDirection { up: None, down: rate.and_then(NonZeroU64::new) },
            timetable: Timetable::parse(if table { "06:15,3 Sat-12:00,off" } else { "" }).expect("a table"),
            ..Preferences::default()
        },
    )
}

proptest! {
    /// Between two looks nothing changes: whoever looks only when told never misses anything, also on nights on which
    /// clocks are set.
    #[test]
    fn nothing_changes_between_two_looks(prefs in some_prefs(), start in 0..500_000_u64, turn in 0..200_000_u64,
                                         west in any::<bool>(), bytes in 0_u64..1_000, probe in 0.0..1.0_f64) {
        let begin = epoch("2026-03-25T00:00:00Z");
        let east = |after: bool| if after != west { 7_200 } else { 3_600 };
        let turn = Turn { at: begin + Delay::from_secs(turn), east: east(true) };
        let mut world = World::new();
        let zone_at = |at: Epoch| {
            if at < turn.at { Zone { east: east(false), turn: Some(turn) } } else { Zone { east: turn.east, turn: None } }
        };
        let now = Now { wall: begin + Delay::from_secs(start), mono: secs(50) };
        world.zone = zone_at(now.wall);
        world.history.count(world.zone.civil(now.wall).day.plus(-1), Direction::Download, bytes);
        let first = world.ask(&prefs, now);
        let span = wait(&first).unwrap_or(Delay::from_days(20));
        prop_assert!(span > Delay::ZERO);
        let later = Delay::from_micros((span.saturating_sub(Delay::from_micros(1)).as_micros() as f64 * probe) as u64);
        let then = Now { wall: now.wall + later, mono: now.mono + later };
        world.zone = zone_at(then.wall);
        prop_assert!(!first.is_stale(then));
        let second = world.ask(&prefs, then);
        let same = |one: &Way, other: &Way| match (one, other) {
            (Way::Open { rate, left }, Way::Open { rate: r, left: l }) => rate == r && left == l,
            // Moments are whole microseconds on both clocks, so they agree.
            (one, other) => one == other,
        };
        prop_assert!(same(&first.ways.down, &second.ways.down), "{first:?} {second:?}");
        prop_assert!(same(&first.ways.up, &second.ways.up));
    }

    /// Whatever a network does: there is never a second probe beside a young one, one answer ends an outage, and an outage
    /// is always tried again.
    #[test]
    fn an_outage_is_always_tried_again(signs in proptest::collection::vec((0..3_u8, 0..4_u8, 0..400_u64), 0..60)) {
        let (mut network, mut time, mut probe) = (Network::default(), 0, None::<u64>);
        for (host_of, kind, pass) in signs {
            time += pass;
            let asked = 3;
            match kind {
                0 => {
                    let was_down = network.offline().is_some();
                    let turned = network.sign(&host(host_of), Sign::Reached, asked, secs(time));
                    prop_assert_eq!(turned == Turned::Up, was_down);
                    prop_assert_eq!(network.offline(), None);
                    probe = None;
                }
                1 => { network.sign(&host(host_of), Sign::NoNetwork, asked, secs(time)); probe = None; }
                2 => { network.sign(&host(host_of), Sign::Nothing, asked, secs(time)); probe = None; }
                _ => {
                    if network.probe(secs(time)) {
                        prop_assert!(probe.is_none_or(|began| time - began >= 600), "a second probe");
                        probe = Some(time);
                    }
                }
            }
            if let Some(next) = network.offline() {
                prop_assert!(next <= secs(time + 600));
                let mut patient = network.clone();
                prop_assert!(patient.probe(next));
            }
        }
    }
}
