//! The vectors V1 to V22 by name, in seconds unless said otherwise.

use std::convert::Infallible;

use rand::rngs::StdRng;
use rand::{SeedableRng, TryRng};

use super::*;
use crate::core::backoff::{Backoff, Policy};
use crate::core::time::Epoch;

const fn rule(base: u64) -> Rule {
    Rule { lower: if base < 1 { 1 } else { base }, cap: INT_MAX, capping: Capping::Range }
}

fn policy(text: &str) -> Policy {
    Policy::parse(text).expect("a policy")
}

/// `k` delays in a row from the start, with upstream's cap.
fn walk(base: u64, k: usize, rng: &mut StdRng) -> Vec<u64> {
    let mut previous = 0;
    std::iter::repeat_with(|| {
        previous = rule(base).draw(previous, rng);
        previous
    })
    .take(k)
    .collect()
}

fn walks(base: u64, k: usize, runs: usize) -> Vec<Vec<u64>> {
    let mut rng = StdRng::seed_from_u64(base);
    (0..runs).map(|_| walk(base, k, &mut rng)).collect()
}

fn share_of(runs: &[Vec<u64>], wanted: impl Fn(&[u64]) -> bool) -> f64 {
    runs.iter().filter(|run| wanted(run)).count() as f64 / runs.len() as f64
}

fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found}, expected {expected} within {tolerance}");
}

/// Counts how often it is asked.
struct Counting(StdRng, u32);

impl TryRng for Counting {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.1 += 1;
        self.0.try_next_u32()
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.1 += 1;
        self.0.try_next_u64()
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.1 += 1;
        self.0.try_fill_bytes(bytes)
    }
}

#[test]
fn v1_to_v5_the_next_range_is_three_times_the_previous_delay() {
    for (previous, range) in [(0, 10..11), (6, 10..18), (13, 10..39), (37, 10..111), (123, 10..369)] {
        assert_eq!(rule(10).range(previous), range);
    }
}

#[test]
fn v6_the_range_ends_at_int_max() {
    assert_eq!(rule(10).range(INT_MAX - 5), 10..2_147_483_647);
}

#[test]
fn v7_a_third_of_int_max_does_not_wrap() {
    assert_eq!(rule(1).range(715_827_881).end, 2_147_483_643);
    assert_eq!(rule(1).range(715_827_882).end, 2_147_483_647);
}

#[test]
fn v8_the_first_three_delays_of_base_0() {
    let runs = walks(0, 3, 40_000);
    assert!(runs.iter().all(|run| run[0] == 1 && (1..=2).contains(&run[1])));
    close(share_of(&runs, |run| run[1] == 1), 0.5, 0.01);
    for third in 1..=2 {
        close(share_of(&runs, |run| run == [1, 1, third]), 0.25, 0.01);
    }
    for third in 1..=5 {
        close(share_of(&runs, |run| run == [1, 2, third]), 0.10, 0.01);
        close(share_of(&runs, |run| run[2] == third), if third < 3 { 0.35 } else { 0.10 }, 0.01);
    }
}

#[test]
fn v9_the_first_three_delays_of_base_6() {
    let runs = walks(6, 3, 40_000);
    assert!(runs.iter().all(|run| run[0] == 6 && (6..18).contains(&run[1]) && run[2] <= 50));
    for second in 6..18 {
        close(share_of(&runs, |run| run[1] == second), 1.0 / 12.0, 0.01);
    }
    close(runs.iter().map(|run| run[1] as f64).sum::<f64>() / runs.len() as f64, 11.5, 0.1);
}

#[test]
fn v10_the_largest_delay_after_k_draws() {
    let largest = |base| {
        let mut previous = 0;
        std::iter::repeat_with(move || {
            previous = rule(base).range(previous).end - 1;
            previous
        })
    };
    assert_eq!(largest(10).take(4).collect::<Vec<_>>(), [10, 29, 86, 257]);
    assert_eq!(largest(1).take(5).collect::<Vec<_>>(), [1, 2, 5, 14, 41]);
    assert!(largest(1).take(20).all(|delay| delay < INT_MAX - 1));
    assert_eq!(largest(1).position(|delay| delay == INT_MAX - 1), Some(21), "the 22nd draw");
}

#[test]
fn v11_a_thousand_draws_stay_inside() {
    for base in [0, 10, 20, INT_MAX / 2] {
        let delays = walk(base, 1_000, &mut StdRng::seed_from_u64(base));
        assert!(delays.iter().all(|d| (base.max(1)..INT_MAX).contains(d)), "base {base}");
    }
}

#[test]
fn v12_growth_is_only_likely() {
    let (base, previous) = (10, 90_000);
    let mut rng = StdRng::seed_from_u64(12);
    let draws: Vec<u64> = (0..40_000).map(|_| rule(base).draw(previous, &mut rng)).collect();
    let mean = draws.iter().sum::<u64>() as f64 / draws.len() as f64;
    close(mean / ((base + 3 * previous - 1) as f64 / 2.0), 1.0, 0.01);
    let shorter = draws.iter().filter(|d| **d < previous).count() as f64 / draws.len() as f64;
    close(shorter, (previous - base) as f64 / (3 * previous - base) as f64, 0.01);
}

#[test]
fn v13_a_base_near_int_max_does_not_overflow() {
    let base = INT_MAX / 2;
    assert_eq!(rule(base).range(0), base..base + 1);
    assert_eq!(rule(base).range(base), base..INT_MAX);
    let mut rng = StdRng::seed_from_u64(13);
    assert_eq!(Backoff::default().fail(&policy("tor:spec:base=2147483647"), &mut rng), None);
    let whole = Backoff::default().fail(&policy("tor:base=2147483647"), &mut rng);
    assert_eq!(whole, Some(Delay::from_secs(INT_MAX)), "the cap is not the letter's, so the base stands");
}

#[test]
fn v14_the_distribution_of_later_steps() {
    let at = |runs: &[Vec<u64>], step: usize, part: f64| {
        let mut delays: Vec<u64> = runs.iter().map(|run| run[step - 1]).collect();
        delays.sort_unstable();
        delays[(delays.len() as f64 * part) as usize] as f64
    };
    let runs = walks(10, 5, 20_000);
    for (part, expected) in [(0.1, 18.0), (0.5, 60.0), (0.9, 196.0)] {
        close(at(&runs, 5, part), expected, expected * 0.05);
    }
    close(at(&walks(60, 10, 20_000), 10, 0.5), 1_183.0, 1_183.0 * 0.05);
}

#[test]
fn v15_typical_growth_is_a_tenth_a_step() {
    let runs = walks(1, 60, 20_000);
    let steps: Vec<f64> =
        runs.iter().flat_map(|run| run[29..].windows(2).map(|pair| (pair[1] as f64 / pair[0] as f64).ln())).collect();
    let mean = steps.iter().sum::<f64>() / steps.len() as f64;
    assert!((0.099..0.130).contains(&mean), "{mean}");
    let shrinking = steps.iter().filter(|step| **step < 0.0).count() as f64 / steps.len() as f64;
    assert!((0.30..0.335).contains(&shrinking), "{shrinking}");
}

#[test]
fn v16_success_after_any_history_starts_anew() {
    let mut rng = StdRng::seed_from_u64(16);
    for (text, first) in [("tor", 1), ("tor:base=6", 6)] {
        let mut state = Backoff::default();
        for _ in 0..50 {
            state.fail(&policy(text), &mut rng);
        }
        state.succeeded();
        assert_eq!(state, Backoff::default());
        assert_eq!(state.fail(&policy(text), &mut rng), Some(Delay::from_secs(first)));
    }
}

#[test]
fn v17_a_time_beyond_the_last_that_can_be_told_is_the_last() {
    let last = Epoch::from_micros(i64::MAX);
    let near = last - Delay::from_secs(5);
    assert_eq!(near + Delay::from_secs(10), last, "never, in effect; no wrap into the past");
    assert!(near + Delay::from_secs(4) < last);
}

#[test]
fn v18_three_failures_are_three_draws() {
    let mut rng = Counting(StdRng::seed_from_u64(18), 0);
    let mut state = Backoff { n: 2, previous: Delay::from_secs(40), position: 2 };
    let delays: Vec<_> = (0..3).map(|_| state.fail(&policy("tor"), &mut rng)).collect();
    assert_eq!((state.n, state.position), (5, 5));
    assert_eq!(Some(state.previous), delays[2]);
    assert_eq!(rng.1, 3);
}

#[test]
fn v19_the_300th_failure_still_draws() {
    let mut rng = StdRng::seed_from_u64(19);
    let mut state = Backoff::default();
    let delays: Vec<_> = (0..300).map(|_| state.fail(&policy("tor"), &mut rng)).collect();
    assert!(delays[254..].windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
fn v20_the_same_rule_in_milliseconds_is_artis() {
    let arti = |base: u64| Rule {
        lower: base.clamp(1_000, u64::from(u32::MAX) - 1),
        cap: u64::from(u32::MAX),
        capping: Capping::Range,
    };
    for (base, first) in [(0, 1_000), (50, 1_000), (1_500, 1_500)] {
        assert_eq!(arti(base).range(0), first..first + 1);
    }
    assert_eq!(arti(1_000).range(1_500), 1_000..4_500);
    assert_eq!(arti(1_000).range(3_000_000_000), 1_000..4_294_967_295);
}

#[test]
fn v21_a_stored_state_goes_on_where_it_stood() {
    // Two processes, whose generators stand at the same place.
    let (mut before, mut after) = (StdRng::seed_from_u64(21), StdRng::seed_from_u64(21));
    let mut state = Backoff { n: 7, previous: Delay::from_secs(90), position: 7 };
    let mut restored = Backoff { n: state.n, previous: state.previous, position: state.position };
    for _ in 0..20 {
        let due = state.fail(&policy("tor:base=10"), &mut before);
        assert_eq!(restored.fail(&policy("tor:base=10"), &mut after), due);
    }
    assert_eq!(restored, state);
}

#[test]
fn v22_without_a_choice_nothing_is_drawn() {
    let mut rng = Counting(StdRng::seed_from_u64(22), 0);
    let mut state = Backoff::default();
    state.succeeded();
    assert_eq!(state, Backoff::default());
    // The first delay is the base and nothing else.
    assert_eq!(state.fail(&policy("tor:base=6"), &mut rng), Some(Delay::from_secs(6)));
    assert_eq!(rng.1, 0);
}

#[test]
fn the_cap_of_a_day_cuts_the_range_and_nothing_bunches_at_it() {
    let mut rng = StdRng::seed_from_u64(23);
    let mut state = Backoff { n: 90, previous: Delay::from_hours(20), position: 90 };
    let mut at_cap = 0;
    for _ in 0..2_000 {
        state.previous = Delay::from_hours(20);
        let delay = state.fail(&policy("tor"), &mut rng).expect("a delay");
        assert!(delay < Delay::from_days(1));
        at_cap += u32::from(delay > Delay::from_secs(86_390));
    }
    assert!(at_cap < 10, "{at_cap} of 2000 within ten seconds of the cap");
}

#[test]
fn the_letter_cuts_the_draw_and_its_infinity_is_never() {
    let spec = policy("tor:spec");
    let mut rng = StdRng::seed_from_u64(24);
    let high = Backoff { n: 90, previous: Delay::from_secs(INT_MAX - 1), position: 90 };
    let never = (0..2_000).filter(|_| high.clone().fail(&spec, &mut rng).is_none()).count();
    // The range ends at three times INT_MAX, so two draws in three reach it.
    close(never as f64 / 2_000.0, 2.0 / 3.0, 0.05);
    let mut after = high;
    while after.fail(&spec, &mut rng).is_some() {}
    assert_eq!(after.previous, Delay::from_secs(INT_MAX));
}

#[test]
fn bounds_in_fractions_of_a_second_are_counted_in_microseconds() {
    let bounds = (Some(Delay::from_millis(50)), Some(Delay::from_millis(200)));
    let quick = policy("tor").with_bounds(bounds.0, bounds.1).expect("bounds");
    let mut rng = StdRng::seed_from_u64(25);
    let mut state = Backoff::default();
    assert_eq!(state.fail(&quick, &mut rng), bounds.0);
    let second = state.fail(&quick, &mut rng).expect("a delay");
    assert!((Delay::from_millis(50)..Delay::from_millis(150)).contains(&second));
}
