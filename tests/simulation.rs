//! The whole program in a simulated world, seed after seed (`tests/support/sim/`).
//!
//! `PERSXFER_SIM=N` lives through so many worlds, `PERSXFER_SIM_SEED=S` begins with another one, or lives one alone where
//! `PERSXFER_SIM` is 1. Not in a usual build: it needs the feature `failpoints`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods, clippy::print_stderr, reason = "a test")]

#[path = "support/disk.rs"]
mod disk;
#[path = "support/disk_seed.rs"]
mod disk_seed;
#[path = "support/sim/mod.rs"]
mod sim;

fn variable(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn no_promise_is_broken_in_any_world() {
    let (first, count) = (variable("PERSXFER_SIM_SEED", 0), variable("PERSXFER_SIM", 200));
    let mut all = sim::Story::default();
    for seed in first..first + count {
        let one = sim::live(seed);
        all.lives += one.lives;
        all.kills += one.kills;
        all.crashes += one.crashes;
        all.requests += one.requests;
        all.complete += one.complete;
        all.failed += one.failed;
        all.days += one.days;
        all.held += one.held;
        all.uploaded += one.uploaded;
    }
    eprintln!("{count} worlds from seed {first}: {all:?}");
    let something = all.complete > 0 && all.failed > 0 && all.held > 0 && all.uploaded > 0;
    assert!(something || count < 100, "worlds in which nothing happens: {all:?}");
}

#[test]
fn worlds_that_once_broke_a_promise_keep_it() {
    // What waits in a stopped run's line; a file that got its name when the power went, and is lost at its server; clocks
    // that were set between two lives.
    for seed in [2927, 4267, 1196, 10_070] {
        let story = sim::live(seed);
        assert!(story.complete + story.failed > 0, "seed {seed}: {story:?}");
    }
}
