//! What failures lead to.

use super::super::lease::Company;
use super::*;

const HOUR: Delay = Delay::from_hours(1);
const DAY: Delay = Delay::from_days(1);

#[test]
fn c01_eight_failures_climb_the_ladder_and_none_comes_earlier() {
    let rungs = [HOUR.mul_f64(0.5), HOUR.mul_f64(2.0), HOUR.mul_f64(8.0), DAY, DAY.mul_f64(7.0)];
    let last = DAY.mul_f64(30.0);
    let mut jittered = 0;
    for seed in 0..50 {
        let mut scene = Scene::seeded(seed);
        for rung in rungs {
            let delay = scene.fails(Class::Unreachable);
            about(delay, rung);
            jittered += u32::from(delay != rung);
        }
        for _ in 0..3 {
            let delay = scene.fails(Class::Unreachable);
            assert!(delay >= last && delay <= last.mul_f64(1.25), "{delay}");
        }
    }
    assert!(jittered > 240, "the jitter is on every rung");
}

#[test]
fn c02_delays_follow_the_class_and_a_404_never_shortens_a_park() {
    let mut scene = Scene::new();
    about(scene.fails(Class::Unreachable), HOUR.mul_f64(0.5));
    about(scene.fails(Class::Missing), HOUR.mul_f64(8.0));
    about(scene.fails(Class::Unsupported), DAY.mul_f64(7.0));
    about(scene.fails(Class::Unreachable), HOUR.mul_f64(2.0));
    assert!(scene.fails(Class::Gone) >= DAY.mul_f64(30.0));

    let mut parked = Scene::new();
    assert!(parked.fails(Class::Denied) >= DAY.mul_f64(30.0));
    let due = parked.record.due_at;
    parked.pass(DAY);
    let Claimed::Yes { token, .. } = parked.record.claim_early(ME, Terms::default(), parked.now) else {
        panic!("nobody works on it")
    };
    parked.fail_with(token, &failed(Class::Missing));
    assert_eq!((parked.record.due_at, parked.record.class), (due, Some(Class::Denied)));
    assert_eq!(parked.record.state, State::Parked);
}

#[test]
fn c09_a_server_that_asks_for_an_hour_gets_it_whoever_sees_what() {
    let mut scene = Scene::new();
    let asked = Failed { asked: Some(HOUR), ..failed(Class::Throttled) };
    let rungs = scene.record.rungs;
    scene.wait();
    let token = scene.claim();
    let floor = scene.now + HOUR;
    assert_eq!(scene.fail_with(token, &asked), Aftermath::HostWaits(floor));
    assert!(scene.record.due_at >= floor && scene.record.rungs == rungs, "its rung stays");
    scene.pass(Delay::from_mins(10));
    scene.see(Kind::User);
    assert!(scene.record.due_at >= floor, "not before the floor");

    // Nor does a failure of another class end the hour.
    let Claimed::Yes { token, .. } = scene.record.claim_early(ME, Terms::default(), scene.now) else {
        panic!("nobody works on it")
    };
    scene.fail_with(token, &failed(Class::Interrupted));
    assert!(scene.record.due_at >= floor);
    let century = Failed { asked: Some(Delay::from_days(36_500)), ..failed(Class::Throttled) };
    assert!(Scene::new().fails_with(&century) <= DAY.mul_f64(1.25), "a century is a day");
    about(Scene::new().fails(Class::Throttled), Delay::from_mins(5));
}

#[test]
fn c10_a_thousand_failures_later_it_is_still_there() {
    let mut scene = Scene::new();
    for n in 0..1_000 {
        scene.fails(Class::ALL[n % Class::ALL.len()]);
    }
    assert_eq!((scene.record.first_seen, &scene.record.key), (START, &Scene::new().record.key));
    assert_eq!(scene.record.failures, 900, "a fault of this machine is none of the file's");
    assert_ne!(scene.record.state, State::Done);
}

#[test]
fn c17_three_holders_that_vanish_and_it_rests_alone() {
    let mut scene = Scene::new();
    scene.claim();
    for (lost, company) in [(1, Company::Others), (2, Company::Alone)] {
        scene.wait();
        let claimed = scene.try_claim();
        assert!(matches!(claimed, Claimed::Yes { company: c, .. } if c == company), "{claimed:?}");
        assert_eq!(scene.record.lost, lost);
    }
    scene.wait();
    assert_eq!(scene.try_claim(), Claimed::Rests);
    assert_eq!((scene.record.class, scene.record.failures), (Some(Class::Crash), 0));
    about(scene.record.due_at.since(scene.now), HOUR.mul_f64(8.0));
    scene.wait();
    let claimed = scene.try_claim();
    assert!(matches!(claimed, Claimed::Yes { company: Company::Alone, .. }), "{claimed:?}");
    scene.wait();
    assert_eq!(scene.try_claim(), Claimed::Rests, "and rests again when one more vanishes");
    about(scene.record.due_at.since(scene.now), DAY);
}

#[test]
fn c22_wrong_bytes_from_one_mirror_leave_the_others() {
    let mut scene = Scene::new();
    let wrong =
        |url: &str| Failed { mirror: Some(url.to_owned()), bytes_done: Length(5 << 20), ..failed(Class::Corrupt) };
    assert_eq!(scene.fails_with(&wrong("http://h.example/f")), Delay::ZERO, "the other one at once");
    assert_eq!(scene.record.usable(scene.now).collect::<Vec<_>>(), ["http://i.example/f"]);
    assert_eq!(scene.record.bytes_done, Length::ZERO, "nothing of it is used again");
    let until = scene.record.mirrors[0].bad_until.expect("bad");
    about(until.since(scene.now), DAY);
    about(scene.fails_with(&wrong("http://i.example/f")), DAY.mul_f64(7.0));
    assert_eq!(scene.record.usable(scene.now).count(), 0);
    scene.wait();
    assert_eq!(scene.record.usable(scene.now).count(), 2);
}

#[test]
fn c23_a_full_disk_is_not_the_files_fault() {
    let mut scene = Scene::new();
    scene.fails(Class::Unreachable);
    scene.wait();
    let before = scene.record.clone();
    let token = scene.claim();
    assert_eq!(scene.fail_with(token, &failed(Class::LocalFault)), Aftermath::Pause);
    assert_eq!(scene.record, Record { claims: scene.record.claims, ..before });
}

#[test]
fn c24_real_progress_begins_anew_and_a_byte_does_not() {
    let minute = Delay::from_mins(1);
    let broken = |bytes: u64| Failed { bytes_done: Length(bytes), ..failed(Class::Interrupted) };
    let mut scene = Scene::new();
    for (n, wanted) in (0..).zip([1, 2, 4, 8, 16, 30, 120, 480]) {
        about(scene.fails_with(&broken(n)), minute.mul_f64(f64::from(wanted)));
    }
    about(scene.fails_with(&broken((1 << 20) + 8)), minute);
    about(scene.fails_with(&broken((1 << 20) + 9)), minute.mul_f64(2.0));
    scene.record.size = Some(Length(100_000));
    about(scene.fails_with(&broken((1 << 20) + 1_009)), minute);
}

#[test]
fn a_word_for_each_class_and_kind() {
    assert!(Class::ALL.into_iter().all(|class| Class::of_word(class.word()) == Some(class)));
    assert!(Kind::ALL.into_iter().all(|kind| Kind::of_word(kind.word()) == Some(kind)));
    assert_eq!((Class::of_word("odd"), Kind::of_word("")), (None, None));
}

proptest! {
    #[test]
    fn no_failure_makes_it_due_in_the_past_or_beyond_the_longest_wait(
        steps in prop::collection::vec((any_class(), 0_u64..40 << 20, prop::option::of(0_u64..1 << 40)), 1..40),
        seed: u64,
    ) {
        let mut scene = Scene::seeded(seed);
        for (class, bytes, asked) in steps {
            let step = Failed { asked: asked.map(Delay::from_secs), bytes_done: Length(bytes), ..failed(class) };
            let (claims, failures) = (scene.record.claims, scene.record.failures);
            let wait = scene.fails_with(&step);
            prop_assert!(wait <= scene.table.longest());
            prop_assert!(scene.record.due_at >= scene.now);
            prop_assert_eq!(scene.record.claims.0, claims.0 + 1);
            prop_assert_eq!(scene.record.failures, failures + u64::from(class != Class::LocalFault));
            prop_assert_eq!(scene.record.state == State::Parked, scene.record.class == Some(Class::Denied));
        }
    }

    #[test]
    fn a_key_is_what_it_was_or_refused(text: String) {
        if let Ok(key) = Key::parse(&text) {
            prop_assert_eq!(key.as_str(), text);
        } else {
            prop_assert!(text.is_empty() || text.len() > super::super::record::MAX_KEY || text.chars().any(char::is_control));
        }
    }
}
