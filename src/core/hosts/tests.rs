//! Outages, probes, and what a restart makes of them.

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;

fn key(host: &str) -> HostKey {
    let origin = Origin::parse(&format!("https://{host}/")).expect("an origin");
    HostKey { origin, direction: Direction::Download }
}

fn at(secs: u64) -> Now {
    Now { wall: Epoch::from_secs(1_700_000_000) + Delay::from_secs(secs), mono: Mono::ZERO + Delay::from_secs(secs) }
}

/// Hosts, a generator and one host to talk about.
struct Run {
    hosts: Hosts,
    rng: StdRng,
    a: HostKey,
}

impl Run {
    fn new() -> Self {
        Self { hosts: Hosts::new(None, None).expect("bounds"), rng: StdRng::seed_from_u64(1), a: key("a.example") }
    }
    fn gate(&mut self, secs: u64) -> Gate {
        self.hosts.gate(&self.a, at(secs))
    }
    fn fail(&mut self, secs: u64) -> Change {
        self.hosts.failed(&self.a, at(secs), &mut self.rng)
    }
    /// Three failures at this time; when the host may be probed, in whole seconds rounded up.
    fn outage(&mut self, secs: u64) -> u64 {
        assert_eq!([self.fail(secs), self.fail(secs)], [Change::None; 2]);
        self.closing(secs)
    }
    /// A failure that is a step; when the host may be probed.
    fn closing(&mut self, secs: u64) -> u64 {
        let Change::Closed(until) = self.fail(secs) else { panic!("no step") };
        until.since(Mono::ZERO).as_secs() + 1
    }
}

fn closed(gate: Gate) -> Option<Closure> {
    match gate {
        Gate::Closed { why, .. } => Some(why),
        Gate::Open | Gate::Probe => None,
    }
}

#[test]
fn two_failures_are_no_outage_and_a_success_forgets_them() {
    let mut run = Run::new();
    for _ in 0..5 {
        assert_eq!([run.fail(0), run.fail(0)], [Change::None; 2]);
        assert_eq!(run.gate(0), Gate::Open);
        assert_eq!(run.hosts.succeeded(&run.a), Change::None);
    }
}

#[test]
fn the_third_failure_in_a_row_closes_the_host_for_the_first_step() {
    let mut run = Run::new();
    let until = run.outage(1_000);
    assert!((1_120..=1_241).contains(&until), "{until}");
    assert_eq!(closed(run.gate(1_001)), Some(Closure::Backoff));
    assert_eq!(run.hosts.closed(&run.a, at(1_001)).map(|(_, why)| why), Some(Closure::Backoff));
    let opening = run.hosts.next_opening(at(1_001)).expect("an opening");
    assert_eq!(opening.since(Mono::ZERO).as_secs() + 1, until);
}

#[test]
fn the_other_direction_and_other_hosts_stay_open() {
    let mut run = Run::new();
    run.outage(0);
    let upload = HostKey { direction: Direction::Upload, ..run.a.clone() };
    for other in [upload, key("b.example"), key("a.example:8443")] {
        assert_eq!(run.hosts.gate(&other, at(1)), Gate::Open, "{other:?}");
    }
}

#[test]
fn an_outage_is_one_step_however_many_files_it_hits() {
    let mut run = Run::new();
    let until = run.outage(0);
    for secs in 0..100 {
        assert_eq!(run.fail(secs), Change::None);
    }
    assert_eq!(run.gate(until), Gate::Probe);
    let second = run.closing(until);
    assert!((240..=481).contains(&(second - until)), "the second step, not the hundredth: {}", second - until);
}

#[test]
fn one_probe_and_its_success_opens_the_host_to_all() {
    let mut run = Run::new();
    let until = run.outage(0);
    assert_eq!(run.gate(until), Gate::Probe);
    for _ in 0..3 {
        assert_eq!(closed(run.gate(until)), Some(Closure::Probing));
    }
    assert_eq!(run.hosts.succeeded(&run.a), Change::Opened);
    assert_eq!([run.gate(until), run.gate(until)], [Gate::Open; 2]);
    // And the next outage begins with three failures and the first step again.
    let next = run.outage(until);
    assert!((120..=241).contains(&(next - until)));
}

#[test]
fn the_success_of_a_session_from_before_the_outage_ends_it_too() {
    let mut run = Run::new();
    run.outage(0);
    assert_eq!(run.hosts.succeeded(&run.a), Change::Opened);
    assert_eq!(run.gate(1), Gate::Open);
}

#[test]
fn each_failed_probe_takes_one_more_step_up_to_the_longest() {
    let mut run = Run::new();
    let mut now = run.outage(0);
    for (low, high) in [
        (240, 480),
        (480, 960),
        (960, 1_920),
        (1_920, 3_840),
        (3_840, 7_680),
        (7_680, 15_360),
        (10_800, 21_600),
        (10_800, 21_600),
    ] {
        assert_eq!(run.gate(now), Gate::Probe);
        let until = run.closing(now);
        assert!((low..=high + 1).contains(&(until - now)), "{} not in {low}..{high}", until - now);
        now = until;
    }
}

#[test]
fn a_probe_that_is_cancelled_does_not_lock_the_host_out() {
    let mut run = Run::new();
    let until = run.outage(0);
    assert_eq!(run.gate(until), Gate::Probe);
    run.hosts.probe_abandoned(&run.a);
    assert_eq!(run.gate(until), Gate::Probe);
    // Nor does one of which nothing is heard any more.
    assert_eq!(closed(run.gate(until + 599)), Some(Closure::Probing));
    assert_eq!(run.gate(until + 600), Gate::Probe);
    assert_eq!(closed(run.gate(until + 601)), Some(Closure::Probing));
    run.hosts.probe_abandoned(&key("never.seen.example"));
}

#[test]
fn while_a_probe_is_under_way_the_host_is_asked_for_again_soon() {
    let mut run = Run::new();
    let until = run.outage(0);
    assert_eq!(run.gate(until), Gate::Probe);
    assert_eq!(run.gate(until), Gate::Closed { until: at(until + 1).mono, why: Closure::Probing });
    assert_eq!(run.hosts.next_opening(at(until)), Some(at(until + 1).mono));
}

#[test]
fn retry_after_is_a_floor_beside_the_backoff() {
    let mut run = Run::new();
    run.hosts.hold_until(&run.a.clone(), at(50).mono);
    run.hosts.hold_until(&run.a.clone(), at(20).mono);
    assert_eq!(run.gate(49), Gate::Closed { until: at(50).mono, why: Closure::RetryAfter });
    assert_eq!(run.hosts.succeeded(&run.a), Change::None, "its word stands, whatever another session had");
    assert_eq!(closed(run.gate(49)), Some(Closure::RetryAfter));
    assert_eq!(run.gate(50), Gate::Open);

    let until = run.outage(60);
    run.hosts.hold_until(&run.a.clone(), at(until + 100).mono);
    assert_eq!(closed(run.gate(until + 99)), Some(Closure::RetryAfter));
    assert_eq!(run.gate(until + 100), Gate::Probe);
}

#[test]
fn tiny_bounds_of_the_run_are_honoured() {
    let (min, max) = (Delay::from_millis(50), Delay::from_millis(200));
    let mut hosts = Hosts::new(Some(min), Some(max)).expect("bounds");
    let (mut rng, a, mut now) = (StdRng::seed_from_u64(2), key("a.example"), at(0));
    let mut step = |now: Now| {
        // Three failures for the first step, one probe for each later one.
        let change = (0..3).map(|_| hosts.failed(&a, now, &mut rng)).find(|change| *change != Change::None);
        let Some(Change::Closed(until)) = change else { panic!("no step") };
        let probe = Now { mono: until, ..now };
        assert_eq!(hosts.gate(&a, probe), Gate::Probe);
        (until.since(now.mono), probe)
    };
    for _ in 0..20 {
        let (delay, later) = step(now);
        assert!((min..=max).contains(&delay), "{delay}");
        now = later;
    }
    assert!(matches!(Hosts::new(Some(max), Some(min)), Err(BadPolicy::Bounds { .. })));
}

#[test]
fn a_restart_keeps_what_is_known() {
    let mut run = Run::new();
    let until = run.outage(0);
    run.hosts.hold_until(&key("b.example"), at(90).mono);
    run.hosts.failed(&key("c.example"), at(0), &mut run.rng);
    let stored = run.hosts.snapshot(at(10));
    assert_eq!(stored.len(), 3);

    // Another process, five seconds later: another monotonic clock.
    let started = Now { wall: at(15).wall, mono: Mono::from_micros(42) };
    let mut hosts = Hosts::new(None, None).expect("bounds");
    hosts.restore(stored.clone(), started);
    assert_eq!(hosts.snapshot(started), stored);
    let later = |secs: u64| Now { wall: at(secs).wall, mono: started.mono + Delay::from_secs(secs - 15) };
    assert_eq!(closed(hosts.gate(&run.a, later(until - 2))), Some(Closure::Backoff));
    assert_eq!(hosts.gate(&run.a, later(until)), Gate::Probe);
    assert_eq!(closed(hosts.gate(&key("b.example"), later(89))), Some(Closure::RetryAfter));
    assert_eq!(hosts.gate(&key("b.example"), later(90)), Gate::Open);
    assert_eq!(hosts.failed(&key("c.example"), later(90), &mut run.rng), Change::None, "the second of three");
    assert!(matches!(hosts.failed(&key("c.example"), later(90), &mut run.rng), Change::Closed(_)), "the third");
}

#[test]
fn a_probe_dies_with_its_process() {
    let mut run = Run::new();
    let until = run.outage(0);
    assert_eq!(run.gate(until), Gate::Probe);
    let stored = run.hosts.snapshot(at(until));
    let mut hosts = Hosts::new(None, None).expect("bounds");
    hosts.restore(stored, at(until));
    assert_eq!(hosts.gate(&run.a, at(until)), Gate::Probe);
}

#[test]
fn a_stored_time_too_far_ahead_is_cut_to_the_longest_delay() {
    let far = Epoch::from_micros(i64::MAX);
    let record = |closed_until, not_before| HostRecord {
        key: key("a.example"),
        failures: 3,
        last: None,
        backoff: Backoff { n: u32::MAX, ..Backoff::default() },
        closed_until,
        not_before,
        rate: None,
    };
    for (stored, longest) in
        [(record(Some(far), None), Delay::from_hours(6)), (record(None, Some(far)), Delay::from_days(1))]
    {
        let mut hosts = Hosts::new(None, None).expect("bounds");
        hosts.restore([stored], at(0));
        assert_eq!(hosts.next_opening(at(0)), Some(at(0).mono + longest));
    }
}

#[test]
fn a_host_of_which_nothing_is_left_to_say_is_forgotten() {
    let mut run = Run::new();
    run.hosts.hold_until(&run.a.clone(), at(50).mono);
    run.fail(0);
    run.hosts.succeeded(&run.a);
    assert_eq!(run.hosts.snapshot(at(49)).len(), 1);
    assert_eq!(run.hosts.snapshot(at(50)), []);
    assert_eq!(run.hosts.next_opening(at(50)), None);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Wait(u64),
    Gate,
    Failed,
    Succeeded,
    Abandoned,
    Hold(u64),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0_u64..30_000).prop_map(Step::Wait), 4 => Just(Step::Gate), 4 => Just(Step::Failed),
        1 => Just(Step::Succeeded), 1 => Just(Step::Abandoned), 1 => (0_u64..90_000).prop_map(Step::Hold), 1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 0..80)
}

proptest! {
    /// However it is treated: a host is never closed for longer than a day, a floor is never undercut, there is never a
    /// second probe beside a young one, and whoever is sent away is told a later moment.
    #[test]
    fn no_host_is_lost_and_no_floor_undercut(steps in steps(), seed in any::<u64>()) {
        let (mut rng, a) = (StdRng::seed_from_u64(seed), key("a.example"));
        let mut hosts = Hosts::new(None, None).expect("bounds");
        let (mut secs, mut floor, mut probe) = (0, 0, None);
        for step in steps {
            let now = at(secs);
            match step {
                Step::Wait(more) => secs += more,
                Step::Failed => {
                    if hosts.failed(&a, now, &mut rng) != Change::None { probe = None; }
                }
                Step::Succeeded => { hosts.succeeded(&a); probe = None; }
                Step::Abandoned => { hosts.probe_abandoned(&a); probe = None; }
                Step::Hold(more) => {
                    hosts.hold_until(&a, at(secs + more.min(86_400)).mono);
                    floor = floor.max(secs + more.min(86_400));
                }
                Step::Restart => {
                    let stored = hosts.snapshot(now);
                    hosts = Hosts::new(None, None).expect("bounds");
                    hosts.restore(stored, now);
                    probe = None;
                }
                Step::Gate => match hosts.gate(&a, now) {
                    Gate::Closed { until, .. } => {
                        prop_assert!(until > now.mono && until <= at(secs + 86_400).mono);
                        prop_assert!(hosts.next_opening(now).is_some_and(|next| next <= until));
                    }
                    Gate::Open => prop_assert!(secs >= floor && probe.is_none()),
                    Gate::Probe => {
                        prop_assert!(secs >= floor);
                        prop_assert!(probe.is_none_or(|began| secs >= began + 600));
                        probe = Some(secs);
                    }
                },
            }
        }
        // And a day later somebody is let in.
        prop_assert!(closed(hosts.gate(&a, at(secs + 86_400))).is_none());
    }
}

#[test]
fn rates_are_remembered_of_the_fastest_hosts() {
    let mut hosts = Hosts::new(None, None).expect("bounds that fit");
    let now = Now { wall: Epoch::from_secs(1), mono: Mono::ZERO };
    let key = |n: u64| HostKey {
        origin: Origin::parse(&format!("http://h{n}.example")).expect("an origin"),
        direction: Direction::Download,
    };
    for n in 0..300 {
        hosts.measured(&key(n), 1000 + n);
    }
    hosts.measured(&key(299), 2000);
    let stored = hosts.snapshot(now);
    assert_eq!(stored.len(), 256);
    assert_eq!((hosts.rate(&key(299)), hosts.rate(&key(0))), (Some((1299 + 2000) / 2), None));
    let mut again = Hosts::new(None, None).expect("bounds that fit");
    again.restore(stored, now);
    assert_eq!(again.rate(&key(299)), Some(1649));
}
