//! Fresh activity.

use super::*;

const DAYS_29: Delay = Delay::from_days(29);

/// A record that failed so often that it waits for a month, a day after it failed last.
fn pessimist(class: Class) -> Scene {
    let mut scene = Scene::new();
    (0..7).for_each(|_| _ = scene.fails(class));
    scene.pass(Delay::from_days(1));
    assert!(scene.record.due_at.since(scene.now) >= DAYS_29);
    scene
}

#[test]
fn c03_what_is_seen_now_outweighs_what_failed_long_ago() {
    let mut scene = pessimist(Class::Unreachable);
    assert_eq!(scene.see(Kind::Announce), Woken::Sooner);
    assert!(scene.record.due_at.since(scene.now) <= SPREAD);
    assert!(scene.record.rungs.of(Class::Unreachable) <= 2);
    about(scene.fails(Class::Unreachable), Delay::from_hours(8));
}

#[test]
fn c05_one_that_is_due_sooner_anyway_is_left_as_it_is() {
    let mut scene = Scene::new();
    scene.fails(Class::Unreachable);
    scene.record.luck = u16::MAX;
    scene.now = Epoch::from_micros(scene.record.due_at.as_micros() - 1_000_000);
    let before = scene.record.clone();
    assert_eq!(scene.see(Kind::Announce), Woken::Anyway);
    assert_eq!(scene.record, before);
}

#[test]
fn c06_what_was_seen_before_the_last_attempt_is_old() {
    let mut scene = pessimist(Class::Unreachable);
    let (before, last) = (scene.record.clone(), scene.record.last_attempt.expect("tried"));
    assert_eq!(scene.see_at(Kind::Announce, last), Woken::Old);
    assert_eq!(scene.record, before);
}

#[test]
fn c07_a_wake_under_work_is_kept_until_it_ends() {
    let mut scene = pessimist(Class::Unreachable);
    scene.wait();
    let token = scene.claim();
    scene.pass(Delay::from_mins(1));
    assert_eq!(scene.see(Kind::Announce), Woken::Later);
    assert!(matches!(scene.try_claim(), Claimed::No), "it is not run twice");
    scene.pass(Delay::from_mins(1));
    scene.fail_with(token, &failed(Class::Unreachable));
    let gap = scene.table.rule(Class::Unreachable).gap;
    assert_eq!(scene.record.due_at, scene.now + gap, "honoured, after the gap");

    let mut scene = Scene::new();
    let token = scene.claim();
    scene.see(Kind::Announce);
    scene.record.complete(token, scene.now).expect("the holder");
    assert_eq!((&scene.record.state, scene.record.woken_at), (&State::Done, None), "nothing is left of it");
    assert_eq!(scene.see(Kind::Announce), Woken::Done);
}

#[test]
fn c08_a_million_wakes_in_a_second_are_slowed_and_none_is_forgotten() {
    let mut budget = Bucket::new(1_000.0, 100);
    let template = pessimist(Class::Unreachable);
    let (table, now) = (Table::default(), template.now);
    let mut due = Vec::with_capacity(1_000_000);
    let mut record = template.record;
    let rested = record.due_at;
    for n in 0..1_000_000_u64 {
        record.due_at = rested;
        let now = now + Delay::from_micros(n);
        let seen = Seen { kind: Kind::Listed, at: now };
        record.observe(seen, now, None, &table, Manners { spread: Delay::ZERO }, &mut budget);
        due.push(record.due_at);
    }
    assert!(due.iter().all(|at| *at < rested), "each of them is due sooner");
    due.sort_unstable();
    let most = due.iter().enumerate().map(|(n, at)| {
        let until = due.partition_point(|other| *other < *at + Delay::from_secs(1));
        until - n
    });
    assert!(most.max().expect("some") <= 1_101, "no second has more than the rate and what may come at once");
}

#[test]
fn c25_a_parked_one_is_woken_by_what_it_waits_for_and_probed_all_the_same() {
    let mut scene = Scene::new();
    scene.fails(Class::Denied);
    assert_eq!(scene.record.state, State::Parked);
    let (probe, before) = (scene.record.due_at, scene.record.clone());
    scene.pass(Delay::from_hours(1));
    for kind in [Kind::Announce, Kind::Listed, Kind::HostUp, Kind::NetworkBack] {
        assert_eq!(scene.see(kind), Woken::Foreign);
    }
    assert_eq!(scene.record, before);
    let mut patient = Scene { record: scene.record.clone(), now: probe, ..Scene::new() };
    patient.claim();
    assert_eq!(scene.see(Kind::Config), Woken::Sooner);
    assert!(scene.record.due_at.since(scene.now) <= SPREAD);
    // A wake ends the park: what is found then counts.
    about(scene.fails(Class::Missing), Delay::from_hours(8));
    assert_eq!(scene.record.state, State::Waiting);
}

/// What can happen to a record, in whatever order.
#[derive(Clone, Debug)]
struct Wake {
    kind: Kind,
    seen: i64,
    heard: u64,
}

fn any_wake() -> impl Strategy<Value = Wake> {
    (any_kind(), -90_000_i64..90_000, 0_u64..90_000).prop_map(|(kind, seen, heard)| Wake { kind, seen, heard })
}

fn apply(scene: &mut Scene, wakes: &[Wake]) -> Result<(), TestCaseError> {
    let start = scene.now;
    for wake in wakes {
        let due = scene.record.due_at;
        scene.now = start + Delay::from_secs(wake.heard);
        let seen = Epoch::from_micros(start.as_micros() + wake.seen * 1_000_000);
        scene.see_at(wake.kind, seen);
        prop_assert!(scene.record.due_at <= due, "a wake puts nothing off");
    }
    scene.now = start;
    Ok(())
}

proptest! {
    #[test]
    fn c04_wakes_in_whatever_order_and_number_come_to_the_same(
        class in any_class(), wakes in prop::collection::vec(any_wake(), 1..12), rotate: usize, seed: u64,
    ) {
        prop_assume!(class != Class::LocalFault);
        let scene = || {
            let mut scene = Scene::seeded(seed);
            (0..5).for_each(|_| _ = scene.fails(class));
            scene
        };
        let (mut straight, mut shuffled) = (scene(), scene());
        apply(&mut straight, &wakes)?;
        let mut other = wakes.clone();
        other.rotate_left(rotate % wakes.len());
        other.reverse();
        other.extend(wakes);
        apply(&mut shuffled, &other)?;
        prop_assert_eq!(straight.record.due_at, shuffled.record.due_at);
        prop_assert_eq!(straight.record.rungs, shuffled.record.rungs);
    }
}
