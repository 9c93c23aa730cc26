//! Allowances, hosts, and clocks.

use super::super::clock::{self, Clamped, Reading};
use super::super::host::{Courtesy, Host};
use super::super::pace;
use super::*;

#[test]
fn c18_a_month_of_backlog_is_no_burst_and_a_share_is_kept_for_the_woken() {
    let mut bucket = Bucket::new(10.0, 50);
    let (mut now, mut handed) = (START + Delay::from_days(30), 0);
    for _ in 0..600 {
        let most = bucket.available(now).min(100);
        handed += most;
        bucket.take(most, now);
        now = now + Delay::from_millis(100);
    }
    assert_eq!(handed, 50 + 599, "in a minute as many as at once, and ten a second");
    assert_eq!((pace::for_woken(100), pace::for_woken(1), pace::for_woken(0)), (20, 1, 0));
}

#[test]
fn c19_a_host_in_trouble_is_left_alone_and_no_other() {
    let (mut host, mut rng) = (Host::default(), StdRng::seed_from_u64(4));
    let courtesy = Courtesy { at_once: 2, gap: Delay::ZERO };
    host.heard(Aftermath::HostFailed, START, &mut rng);
    host.heard(Aftermath::HostFailed, START, &mut rng);
    assert_eq!(host.room(0, courtesy, START), 2, "two failures are none of the host's");
    host.heard(Aftermath::HostFailed, START, &mut rng);
    assert_eq!(host.room(0, courtesy, START), 0);
    let first = host.not_before.expect("it rests");
    assert_eq!(host.room(1, courtesy, first), 1);
    host.heard(Aftermath::HostFailed, first, &mut rng);
    let second = host.not_before.expect("longer");
    assert!(second.since(first) >= Delay::from_mins(1) && second.since(first) <= Delay::from_hours(6));
    host.heard(Aftermath::HostAnswered, second, &mut rng);
    assert_eq!((host.penalty, host.room(0, courtesy, second)), (0, 2));
}

#[test]
fn a_gap_is_kept_between_two_attempts_at_a_host() {
    let (mut host, courtesy) = (Host::default(), Courtesy { at_once: 9, gap: Delay::from_secs(5) });
    assert_eq!(host.room(0, courtesy, START), 1);
    host.handed_out(1, courtesy, START);
    assert_eq!(host.room(0, courtesy, START + Delay::from_secs(4)), 0);
    assert_eq!(host.room(0, courtesy, START + Delay::from_secs(5)), 1);
}

#[test]
fn c20_a_clock_that_jumps_makes_no_storm() {
    let day = Delay::from_days(1);
    assert_eq!(clock::read(START, START - day), Reading::SetBack);
    assert_eq!(clock::read(START, START - Delay::from_mins(4)), Reading::Onward);
    assert_eq!(clock::read(START, START + day.mul_f64(365.0)), Reading::Onward);

    // Back by a day: the lease ends as if it had been given now, and what was tried is not in the future.
    let mut scene = Scene::new();
    scene.fails(Class::Missing);
    scene.wait();
    scene.claim();
    let back = scene.now - day;
    let terms = Terms::default();
    assert_eq!(scene.record.clamp(back, &scene.table, terms), Clamped::Yes);
    assert_eq!(scene.record.due_at, back + terms.longest());
    assert!(scene.record.last_attempt.is_some_and(|last| last <= back));
    assert_eq!(scene.record.clamp(back, &scene.table, terms), Clamped::No, "once");

    // Ahead by a year: whatever is due then, the allowance is that of one moment.
    let mut bucket = Bucket::new(1.0, 5);
    bucket.take(5, START);
    assert_eq!(bucket.available(START + day.mul_f64(365.0)), 5);
    let spent = bucket.stored() + day.mul_f64(365.0);
    let restored = bucket.restored(spent, START, bucket.filling());
    assert_eq!(restored.available(START + restored.filling()), 5, "and back again: empty at worst");
}

#[test]
fn c21_a_time_that_no_rule_gives_is_cut() {
    let mut scene = Scene::new();
    scene.fails(Class::Missing);
    scene.record.due_at = Epoch::from_micros(i64::MAX);
    scene.record.floor_at = Some(Epoch::from_micros(i64::MAX));
    assert_eq!(scene.record.clamp(scene.now, &scene.table, Terms::default()), Clamped::Yes);
    let longest = scene.now + Delay::from_days(30).mul_f64(1.25);
    assert_eq!((scene.record.due_at, scene.record.floor_at), (longest, Some(longest)));
    let mut done = Scene::new();
    let token = done.claim();
    done.record.complete(token, done.now).expect("the holder");
    assert_eq!(done.record.clamp(START - Delay::from_days(9), &done.table, Terms::default()), Clamped::No);
}

#[test]
fn c26_jitter_is_drawn_once_and_stored() {
    let mut scene = Scene::new();
    scene.fails(Class::Missing);
    let (due, step, luck) = (scene.record.due_at, scene.record.step, scene.record.luck);
    assert_eq!(due, scene.record.last_attempt.expect("tried") + step);
    for _ in 0..2 {
        scene.record.clamp(scene.now, &scene.table, Terms::default());
        scene.see_at(Kind::Announce, START);
    }
    assert_eq!((scene.record.due_at, scene.record.step, scene.record.luck), (due, step, luck));
}

proptest! {
    #[test]
    fn an_allowance_is_never_overdrawn(rate in 0.1_f64..1_000.0, burst in 1_u32..100, asks in prop::collection::vec((0_u64..5_000_000, 0_u32..200), 1..60)) {
        let (mut bucket, mut now, mut taken) = (Bucket::new(rate, burst), START, 0_u64);
        for (pass, wanted) in asks {
            now = now + Delay::from_micros(pass);
            let most = bucket.available(now).min(wanted);
            bucket.take(most, now);
            taken += u64::from(most);
            let fair = now.since(START).as_secs_f64() * rate * 1.001 + f64::from(burst) + 1.0;
            prop_assert!(taken as f64 <= fair, "{taken} of {fair}");
            prop_assert!((bucket.available(now) > 0) == (bucket.next(now) <= now));
        }
    }
}
