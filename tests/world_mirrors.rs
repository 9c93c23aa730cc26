//! A thousand transfers against dead, flaky, lying, recovering mirrors over simulated weeks, with crashes, days off, clocks
//! that are set, closed hosts, full disks and people in between. The witness watches every turn; a failure names its seed.

#![allow(clippy::expect_used, reason = "a test stops at what it does not expect")]

#[path = "support/world.rs"]
#[allow(dead_code, reason = "each of the world's tests uses a part of it")]
mod world;

use persxfer::core::backoff::Policy;
use persxfer::core::pers_xfer::Rules;
use persxfer::core::pers_xfer::record::{Status, error_code};
use persxfer::core::time::Delay;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use world::{Character, Story, Weather, World, rules};

fn any_character(rng: &mut StdRng) -> Character {
    let day = |rng: &mut StdRng| Delay::from_secs(rng.random_range(0..20 * 86_400));
    match rng.random_range(0..10) {
        0 => Character::Dead,
        1 => Character::Busy,
        2 => Character::Asking,
        3 => Character::Portal,
        4 => Character::Gone,
        5 => Character::Flaky,
        6 => Character::Lying,
        7 => Character::RecoversAt(day(rng)),
        8 => {
            let from = Delay::from_secs(rng.random_range(0..3_600));
            Character::GoneBetween(from, from.saturating_add(day(rng)))
        }
        _ => Character::Odd,
    }
}

fn story(seed: u64, weather: Weather) -> (Vec<Character>, Story) {
    let mut rng = StdRng::seed_from_u64(!seed);
    let mirrors = 1 + (seed % 4) as usize;
    let characters: Vec<_> = (0..mirrors).map(|_| any_character(&mut rng)).collect();
    let story = World::new(seed, characters.clone(), rules(seed), weather).live();
    (characters, story)
}

#[test]
fn a_thousand_transfers_end_well_or_with_a_plain_statement() {
    let (mut done, mut gave_up, mut refused) = (0, 0, 0);
    for seed in 0..1000 {
        let (characters, story) = story(seed, Weather::Rough);
        match &story.record.status {
            Status::Done => done += 1,
            Status::Failed { code: error_code::GAVE_UP, .. } => gave_up += 1,
            Status::Failed { code: error_code::PERMANENT | error_code::DIGEST, .. } => refused += 1,
            other => panic!("seed {seed}: {characters:?} ended as {other:?}"),
        }
    }
    // A world in which everything ends alike shows nothing.
    assert!(done > 200 && gave_up > 100 && refused > 50, "{done} done, {gave_up} gave up, {refused} refused");
}

#[test]
fn in_calm_weather_one_good_mirror_is_enough() {
    for seed in 0..500 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut characters: Vec<_> = (0..seed % 4).map(|_| any_character(&mut rng)).collect();
        // Recovering well within the window, wherever it stands in the list.
        let at = rng.random_range(0..=characters.len());
        characters.insert(at, Character::RecoversAt(Delay::from_days(rng.random_range(0..9))));
        // The ladder's upper rungs are longer than the window.
        let policy = Policy::parse(["boinc", "boinc-7", "tor", "ranged"][(seed / 4 % 4) as usize]).expect("a policy");
        let rules = Rules { policy, ..rules(seed) };
        let story = World::new(seed, characters.clone(), rules, Weather::Calm).live();
        assert_eq!(story.record.status, Status::Done, "seed {seed}: {characters:?}");
    }
}

#[test]
fn the_same_seed_lives_the_same_life() {
    for seed in [3, 77, 400] {
        let (first, second) = (story(seed, Weather::Rough).1, story(seed, Weather::Rough).1);
        assert_eq!(first.record, second.record);
        assert_eq!(first.over, second.over);
    }
}
