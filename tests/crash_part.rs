//! Crashes of the machine and of the process at every effect of a download's files: what is called held is right, nothing
//! that was confirmed is lost, and what stands under the final name is the whole file (`docs/crash-safety.md`).
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

#[path = "support/disk.rs"]
mod disk;
#[path = "support/disk_life.rs"]
mod disk_life;
#[path = "support/disk_seed.rs"]
mod disk_seed;
#[path = "support/disk_segments.rs"]
mod disk_segments;

use disk_life::{Crash, Life, Way};
use disk_seed::{Plan, Rng};
use persxfer::io::part::{Clobber, SyncMode};

/// Crashes in what follows a crash.
const DEPTH: u32 = 2;

/// Tells stories, each with a crash at every effect.
fn tell(plan: &Plan, stories: u64, seeds: u64, way: impl Fn(u64) -> Way + Sync) {
    plan.each_story(stories, |story| {
        let way = way(story);
        let (life, disk) = Life::begin(way, Rng::new(story));
        let told = life.live();
        plan.each_crash(story, seeds, disk, &told.effects, |disk, point, seed, rng| {
            let crash = if seed == 0 || way.sync == SyncMode::None { Crash::Process } else { Crash::Machine };
            told.crash(disk, point, crash, rng, DEPTH);
        });
    });
}

const PLAIN: Way = Way { sync: SyncMode::Full, existing: Clobber::Refuse, rivals: false, digest: true };

#[test]
fn a_part_file_and_its_journal() {
    let plan = Plan::of("part");
    tell(&plan, 16, 6, |story| Way { digest: story % 3 != 0, ..PLAIN });
    plan.ends_with(2200);
}

#[test]
fn a_rival_and_the_part_it_replaces() {
    let plan = Plan::of("rival");
    tell(&plan, 28, 6, |_| Way { rivals: true, ..PLAIN });
    plan.ends_with(4000);
}

#[test]
fn a_final_name_that_is_taken() {
    let plan = Plan::of("replaced");
    tell(&plan, 8, 6, |_| Way { existing: Clobber::Replace, ..PLAIN });
    plan.ends_with(1000);
}

#[test]
fn without_flushing_a_killed_process_loses_nothing() {
    let plan = Plan::of("unflushed");
    tell(&plan, 16, 2, |story| Way { sync: SyncMode::None, rivals: story % 2 == 0, ..PLAIN });
    plan.ends_with(500);
}

/// The same for a part file with gaps.
fn tell_segments(plan: &Plan, stories: u64, seeds: u64, way: impl Fn(u64) -> disk_segments::Way + Sync) {
    plan.each_story(stories, |story| {
        let way = way(story);
        let (life, disk) = disk_segments::Life::begin(way, Rng::new(story));
        let told = life.live();
        plan.each_crash(story, seeds, disk, &told.effects, |disk, point, seed, rng| {
            let crash = if seed == 0 || way.sync == SyncMode::None { Crash::Process } else { Crash::Machine };
            told.crash(disk, point, crash, rng, DEPTH);
        });
    });
}

#[test]
fn a_part_file_with_gaps() {
    let plan = Plan::of("segments");
    tell_segments(&plan, 24, 5, |story| disk_segments::Way {
        sync: SyncMode::Full,
        digest: story % 2 == 0,
        rivals: story % 3 == 0,
    });
    plan.ends_with(3000);
}

#[test]
fn a_part_file_with_gaps_that_is_never_flushed() {
    let plan = Plan::of("segments-unflushed");
    tell_segments(&plan, 16, 2, |story| disk_segments::Way {
        sync: SyncMode::None,
        digest: story % 2 == 0,
        rivals: story % 3 == 0,
    });
    plan.ends_with(500);
}
