//! What holds for every policy, and what the policies' own tests share.

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;

/// A generator whose draws are the same in every run.
pub(super) fn seeded(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

/// Many draws of a policy after `n` failed passes in a row.
pub(super) fn draws_after(policy: &str, n: u32) -> Vec<Delay> {
    let policy = Policy::parse(policy).expect("a policy");
    let mut rng = seeded(u64::from(n));
    let before = Backoff { n: n - 1, previous: Delay::ZERO, position: n - 1 };
    (0..5_000).map(|_| before.clone().fail(&policy, &mut rng).expect("a delay")).collect()
}

/// The share of draws for which something holds.
pub(super) fn share(draws: &[Delay], holds: impl Fn(Delay) -> bool) -> f64 {
    draws.iter().filter(|d| holds(**d)).count() as f64 / draws.len() as f64
}

const NAMES: [&str; 8] = ["boinc", "boinc:exact", "boinc-7", "tor", "tor:base=20", "tor:spec", "ladder", "ranged"];

#[test]
fn the_bounds_are_the_documented_ones() {
    let hours = Delay::from_hours;
    for (name, shortest, longest) in [
        ("boinc", Delay::from_mins(1), hours(4)),
        ("boinc:exact", Delay::from_mins(1), hours(4)),
        ("boinc-7", Delay::from_mins(2), hours(6)),
        ("tor", Delay::from_secs(1), hours(24)),
        ("tor:base=60", Delay::from_mins(1), hours(24)),
        ("tor:spec", Delay::from_secs(1), Delay::from_secs(2_147_483_647)),
        ("ladder", Delay::from_mins(30), hours(900)),
        ("ranged", Delay::from_mins(1), hours(4)),
    ] {
        let policy = Policy::parse(name).expect(name);
        assert_eq!((policy.shortest(), policy.longest()), (shortest, longest), "{name}");
    }
}

#[test]
fn a_bound_of_the_policys_own_gives_way_to_one_that_is_given() {
    let bounds = |min: Option<u64>, max: Option<u64>| {
        let bounded =
            Policy::default().with_bounds(min.map(Delay::from_secs), max.map(Delay::from_secs)).expect("bounds");
        (bounded.shortest().as_secs(), bounded.longest().as_secs())
    };
    assert_eq!(bounds(None, Some(10)), (5, 10));
    assert_eq!(bounds(None, Some(90)), (60, 90));
    assert_eq!(bounds(Some(5), None), (5, 14_400));
    assert_eq!(bounds(Some(36_000), None), (36_000, 72_000));
}

#[test]
fn ranged_doubles_and_spreads_at_the_cap() {
    for (n, low, high) in [(1, 60, 120), (2, 120, 240), (5, 960, 1_920), (8, 7_200, 14_400), (500, 7_200, 14_400)] {
        let (low, high) = (Delay::from_secs(low), Delay::from_secs(high));
        let draws = draws_after("ranged", n);
        assert!(draws.iter().all(|d| (low..=high).contains(d)), "after {n}");
        let middle = share(&draws, |d| d < draw::half(low.saturating_add(high)));
        assert!((0.47..0.53).contains(&middle), "after {n}: {middle} in the lower half");
    }
}

#[test]
fn tiny_bounds_are_honoured_from_the_first_failure_on() {
    let (min, max) = (Delay::from_millis(50), Delay::from_millis(200));
    for name in NAMES {
        let policy = Policy::parse(name).expect(name).with_bounds(Some(min), Some(max)).expect("bounds");
        let mut state = Backoff::default();
        for pass in 1..100 {
            let delay = state.fail(&policy, &mut seeded(pass)).expect("a delay");
            assert!((min..=max).contains(&delay), "{name}, pass {pass}: {delay}");
        }
    }
}

#[test]
fn progress_and_success_start_the_exponent_anew() {
    let mut state = Backoff { n: 7, previous: Delay::from_hours(3), position: 7 };
    state.progressed();
    assert_eq!(state, Backoff::default());
    state = Backoff { n: 7, previous: Delay::from_hours(3), position: 7 };
    state.succeeded();
    assert_eq!(state, Backoff::default());
}

#[test]
fn what_was_drawn_is_stored() {
    let policy = Policy::default();
    let mut state = Backoff::default();
    let delay = state.fail(&policy, &mut seeded(4)).expect("a delay");
    assert_eq!(state, Backoff { n: 1, previous: delay, position: 1 });
}

fn bounds() -> impl Strategy<Value = (Option<Delay>, Option<Delay>)> {
    let span = || {
        prop_oneof![0_u64..5_000_000, (0_u64..100_000).prop_map(|s| s * 1_000_000), any::<u64>(), Just(u64::MAX)]
            .prop_map(Delay::from_micros)
    };
    (proptest::option::of(span()), proptest::option::of(span()))
}

fn states() -> impl Strategy<Value = Backoff> {
    (any::<u32>(), any::<u64>(), any::<u32>(), 0_u32..70).prop_map(|(n, previous, position, shift)| Backoff {
        n: n >> (shift / 2).min(31),
        previous: Delay::from_micros(previous.checked_shr(shift).unwrap_or(0)),
        position: position >> (shift / 2).min(31),
    })
}

proptest! {
    /// Whatever the bounds and whatever state was stored, by this policy or another: no delay leaves the bounds, and
    /// nothing panics.
    #[test]
    fn no_delay_leaves_the_bounds(
        name in proptest::sample::select(&NAMES[..]), (min, max) in bounds(), start in states(), seed in any::<u64>(),
    ) {
        let Ok(policy) = Policy::parse(name).expect(name).with_bounds(min, max) else { return Ok(()) };
        prop_assert!(policy.shortest() <= policy.longest());
        let (mut state, mut rng) = (start, seeded(seed));
        for _ in 0..20 {
            let Some(delay) = state.fail(&policy, &mut rng) else {
                prop_assert!(name == "tor:spec" && max.is_none());
                continue;
            };
            prop_assert!(delay >= policy.shortest() && delay <= policy.longest(), "{name}: {delay}");
            prop_assert!(min.is_none_or(|min| delay >= min), "{name}: {delay} is under the minimum");
            prop_assert!(max.is_none_or(|max| delay <= max), "{name}: {delay} is over the maximum");
        }
    }

    /// Where the bounds leave room, two clients that failed together do not wait the same time.
    #[test]
    fn a_fleet_does_not_move_in_step(
        name in proptest::sample::select(&["boinc", "boinc-7", "ladder", "ranged"][..]),
        n in 0_u32..500,
        seed in any::<u64>(),
    ) {
        let policy = Policy::parse(name).expect(name);
        let delay = |seed| Backoff { n, previous: Delay::ZERO, position: n }.fail(&policy, &mut seeded(seed));
        let distinct: std::collections::HashSet<_> = (0..8).map(|i| delay(seed.wrapping_add(i))).collect();
        prop_assert!(distinct.len() >= 6, "{name} after {n}: {distinct:?}");
    }

    #[test]
    fn a_policy_prints_what_it_parses_from(base in 0_u64..=2_147_483_647, spec in any::<bool>()) {
        let text = if spec { format!("tor:spec:base={base}") } else { format!("tor:base={base}") };
        let policy = Policy::parse(&text).expect("a policy");
        prop_assert_eq!(Policy::parse(&policy.to_string()), Ok(policy));
    }
}
