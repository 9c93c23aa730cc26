//! Giving up in simulated worlds: once, on time, for any number of mirrors, whatever the mirrors' way of being dead.
//!
//! boinc.md 1.7: the original never gives up with an even number of mirrors.

#![allow(clippy::expect_used, reason = "a test stops at what it does not expect")]

#[path = "support/world.rs"]
#[allow(dead_code, reason = "each of the world's tests uses a part of it")]
mod world;

use persxfer::core::pers_xfer::record::{Status, error_code};
use persxfer::core::time::Delay;
use world::{Character, Weather, World, rules};

const WINDOW: Delay = Delay::from_days(14);
const HOPELESS: [Character; 4] = [Character::Dead, Character::Busy, Character::Asking, Character::Portal];

fn hopeless(seed: u64, mirrors: usize) -> Vec<Character> {
    (0..mirrors).map(|i| HOPELESS[(seed as usize >> (2 * i)) % HOPELESS.len()]).collect()
}

#[test]
fn one_to_four_hopeless_mirrors_end_once_and_on_time() {
    for seed in 0..1000 {
        let mirrors = 1 + (seed % 4) as usize;
        let story = World::new(seed, hopeless(seed, mirrors), rules(seed), Weather::Calm).live();
        let took = story.over.saturating_sub(story.first_session);
        // A session that runs at that moment has half a second to say what it holds.
        let late = took.saturating_sub(WINDOW);
        assert!(took >= WINDOW && late <= Delay::from_secs(1), "seed {seed}: {mirrors} mirrors gave up after {took:?}");
        let Status::Failed { code, message } = &story.record.status else { panic!("seed {seed}") };
        assert_eq!(*code, error_code::GAVE_UP, "seed {seed}: {message}");
    }
}

#[test]
fn in_rough_weather_only_time_in_which_something_could_be_tried_ends_it() {
    for seed in 0..400 {
        let mirrors = 1 + (seed % 4) as usize;
        let story = World::new(seed, hopeless(seed, mirrors), rules(seed), Weather::Rough).live();
        let Status::Failed { code, message } = &story.record.status else { panic!("seed {seed}") };
        assert_eq!(*code, error_code::GAVE_UP, "seed {seed}: {message}");
        // A restart, with or without a clock that was set, adds or takes the wait that was due at most; a minute is the
        // grace for one more try.
        let longest = rules(seed).policy.longest().max(Delay::from_days(1));
        let slack = longest.saturating_mul(u64::from(story.restarts)).saturating_add(Delay::from_secs(61));
        assert!(story.counted.saturating_add(slack) >= WINDOW, "seed {seed}: gave up after {:?}", story.counted);
        assert!(story.counted <= WINDOW.saturating_add(slack), "seed {seed}: gave up after {:?}", story.counted);
    }
}
