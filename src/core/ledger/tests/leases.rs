//! Claims, tokens, holders that sleep or die.

use super::super::lease::{LeaseLost, Whose};
use super::*;

const OTHER: Owner = Owner(2);

fn lost(result: Result<impl std::fmt::Debug, LeaseLost>) -> Whose {
    result.expect_err("a lease that is lost").now
}

#[test]
fn c12_what_a_dead_process_held_is_as_it_was() {
    let mut scene = Scene::new();
    scene.fails(Class::Missing);
    scene.wait();
    scene.pass(Delay::from_hours(3));
    let before = scene.record.clone();
    scene.claim();
    assert!(!scene.record.clone().restore(OTHER), "it is not the other's");
    assert!(scene.record.restore(ME));
    assert_eq!(scene.record, Record { claims: scene.record.claims, ..before }, "due when it was, and no failure");
}

#[test]
fn c13_ten_restarts_cost_nothing() {
    let mut scene = Scene::new();
    scene.fails(Class::Unreachable);
    scene.wait();
    let before = scene.record.clone();
    for _ in 0..10 {
        let token = scene.claim();
        scene.pass(Delay::from_secs(6));
        scene.record.release(token).expect("the holder");
    }
    assert_eq!(scene.record, Record { claims: scene.record.claims, ..before });
}

#[test]
fn c14_a_holder_that_slept_too_long_changes_nothing() {
    let mut scene = Scene::new();
    let old = scene.claim();
    scene.wait();
    let Claimed::Yes { token, .. } =
        scene.record.claim(OTHER, Terms::default(), scene.now, &scene.table, &mut scene.rng)
    else {
        panic!("its lease is over")
    };
    let held = scene.record.clone();
    let late = |expected: Whose, scene: &mut Scene| {
        let now = scene.now;
        assert_eq!(lost(scene.record.beat(old, Terms::default(), now)), expected);
        assert_eq!(lost(scene.record.release(old)), expected);
        assert_eq!(lost(scene.record.complete(old, now)), expected);
        let failed = failed(Class::Missing);
        assert_eq!(lost(scene.record.fail(old, &failed, now, &scene.table, &mut scene.rng)), expected);
    };
    late(Whose::Anothers, &mut scene);
    assert_eq!(scene.record, held);
    scene.record.complete(token, scene.now).expect("the holder");
    late(Whose::Done, &mut scene);
    assert_eq!(scene.record.state, State::Done);
}

#[test]
fn c15_what_is_done_never_waits_again() {
    let mut scene = Scene::new();
    let token = scene.claim();
    scene.wait();
    // The lease has ended, and nobody has claimed it yet: the holder may still say that it is done.
    scene.record.complete(token, scene.now).expect("the holder");
    scene.pass(Delay::from_days(99));
    assert_eq!(scene.try_claim(), Claimed::No);
    assert!(!scene.record.restore(ME));
    assert_eq!(scene.record.state, State::Done);
}

#[test]
fn c16_a_late_beat_is_in_time_until_the_lease_is_over() {
    let (mut scene, terms) = (Scene::new(), Terms::default());
    let token = scene.claim();
    for _ in 0..9 {
        scene.pass(terms.lease.mul_f64(2.0 / 3.0));
        assert_eq!(scene.try_claim(), Claimed::No, "no duplicate");
        scene.record.beat(token, terms, scene.now).expect("the holder");
    }
    scene.pass(terms.longest());
    let second = scene.claim();
    assert_eq!(lost(scene.record.beat(token, terms, scene.now)), Whose::Anothers);
    assert_eq!((second.0, scene.try_claim()), (token.0 + 1, Claimed::No), "one duplicate, and the first is fenced");
}

#[test]
fn a_record_can_be_claimed_when_it_is_due_and_no_sooner() {
    let mut scene = Scene::new();
    scene.fails(Class::Missing);
    scene.now = Epoch::from_micros(scene.record.due_at.as_micros() - 1);
    assert_eq!(scene.try_claim(), Claimed::No);
    scene.pass(Delay::from_micros(1));
    scene.claim();
}

#[test]
fn what_was_seen_while_it_was_held_is_not_lost_when_it_is_given_back() {
    let mut scene = Scene::new();
    (0..6).for_each(|_| _ = scene.fails(Class::Unreachable));
    scene.pass(Delay::from_days(1));
    let Claimed::Yes { token, .. } = scene.record.claim_early(ME, Terms::default(), scene.now) else { panic!("free") };
    assert_eq!(scene.see(Kind::Announce), Woken::Later);
    scene.record.release(token).expect("the holder");
    assert!(scene.record.due_at.since(scene.now) <= SPREAD);
}

/// What may be done to one record by anybody.
#[derive(Clone, Debug)]
enum Deed {
    Pass(u64),
    Claim(u64),
    Beat(usize),
    Complete(usize),
    Fail(usize, Class),
    Release(usize),
    Restore(u64),
    See(Kind),
}

fn any_deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        (0_u64..3_000).prop_map(Deed::Pass),
        (1_u64..4).prop_map(Deed::Claim),
        (0_usize..8).prop_map(Deed::Beat),
        (0_usize..8).prop_map(Deed::Complete),
        (0_usize..8, any_class()).prop_map(|(n, class)| Deed::Fail(n, class)),
        (0_usize..8).prop_map(Deed::Release),
        (1_u64..4).prop_map(Deed::Restore),
        any_kind().prop_map(Deed::See),
    ]
}

proptest! {
    #[test]
    fn only_the_latest_holder_is_heard(deeds in prop::collection::vec(any_deed(), 1..80), seed: u64) {
        let (mut scene, mut tokens) = (Scene::seeded(seed), vec![Token(0)]);
        for deed in deeds {
            let before = scene.record.clone();
            let holds = |token: Token| before.lease().is_some() && before.claims == token;
            let nth = |n: usize| tokens[n % tokens.len()];
            let terms = Terms::default();
            let fenced = match deed {
                Deed::Pass(secs) => { scene.pass(Delay::from_secs(secs)); None }
                Deed::Claim(owner) => {
                    let claimed = scene.record.claim(Owner(owner), terms, scene.now, &scene.table, &mut scene.rng);
                    if let Claimed::Yes { token, .. } = claimed {
                        prop_assert!(before.due_at <= scene.now && token > before.claims);
                        tokens.push(token);
                    }
                    None
                }
                Deed::Beat(n) => Some((nth(n), scene.record.beat(nth(n), terms, scene.now).is_ok())),
                Deed::Complete(n) => Some((nth(n), scene.record.complete(nth(n), scene.now).is_ok())),
                Deed::Fail(n, class) => {
                    let failed = failed(class);
                    let told = scene.record.fail(nth(n), &failed, scene.now, &scene.table, &mut scene.rng);
                    Some((nth(n), told.is_ok()))
                }
                Deed::Release(n) => Some((nth(n), scene.record.release(nth(n)).is_ok())),
                Deed::Restore(owner) => { scene.record.restore(Owner(owner)); None }
                Deed::See(kind) => { scene.see(kind); None }
            };
            if let Some((token, heard)) = fenced {
                prop_assert_eq!(heard, holds(token));
                if !heard {
                    prop_assert_eq!(&scene.record, &before);
                }
            }
            if before.state == State::Done {
                prop_assert_eq!(&scene.record, &before, "what is done stays so");
            }
            prop_assert!(scene.record.claims >= before.claims && scene.record.failures >= before.failures);
            prop_assert_eq!(scene.record.first_seen, START);
        }
    }
}
