//! Thousands of downloads from mirrors with random faults.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::sim::{Death, End, Manners, Mirror, World};
use super::*;

fn some<T>(rng: &mut StdRng, one_in: u32, make: impl FnOnce(&mut StdRng) -> T) -> Option<T> {
    (rng.random_range(0..one_in) == 0).then(|| make(rng))
}

/// A mirror with a fault or three; slow enough for its faults to matter.
fn any_mirror(rng: &mut StdRng) -> Mirror {
    let rate = 2_f64.powi(rng.random_range(0..8)) * 10_000.0;
    let mut mirror = Mirror::new(rng.random_range(0..3), rng.random_range(0..300), rate);
    mirror.most = some(rng, 3, |rng| rng.random_range(0..4));
    mirror.retry_after = some(rng, 4, |rng| rng.random_range(0..20_000));
    mirror.cut = some(rng, 4, |rng| rng.random_range(1..100_000));
    mirror.short = some(rng, 5, |rng| rng.random_range(0..100_000));
    mirror.silent = some(rng, 4, |rng| (rng.random_range(0..3)..rng.random_range(3..9), rng.random_range(0..50_000)));
    mirror.slow = some(rng, 4, |rng| (rng.random_range(0..3)..rng.random_range(3..9), 100.0));
    mirror.no_ranges = rng.random_range(0..5) == 0;
    mirror.odd = rng.random_range(0..8) == 0;
    mirror.dies =
        some(rng, 3, |rng| (rng.random_range(0..10_000), if rng.random() { Death::Reset } else { Death::Silence }));
    mirror
}

fn any_islands(rng: &mut StdRng, total: u64) -> RangeSet {
    let islands = rng.random_range(0..4);
    (0..islands).map(|_| rng.random_range(0..total)).map(|at| range(at, (at + total / 9).min(total))).collect()
}

struct Draw {
    world: World,
    missing: u64,
    adopts: bool,
    connections: usize,
}

fn any_world(seed: u64, good: bool) -> Draw {
    let mut rng = StdRng::seed_from_u64(seed);
    let total = rng.random_range(1..2_000_000);
    let mut mirrors: Vec<_> = (0..rng.random_range(1..5)).map(|_| any_mirror(&mut rng)).collect();
    if good {
        let sound = Mirror::new(7, rng.random_range(1..200), 300_000.0);
        mirrors.insert(rng.random_range(0..=mirrors.len()), sound);
    }
    let held = any_islands(&mut rng, total);
    let missing = total - held.length().0;
    let connections = rng.random_range(1..9);
    let rules = rules(connections, rng.random_range(1..6), rng.random_range(0..200_000));
    let mut world = World::new(total, held, mirrors, rules, seed);
    world.tick = 40_000;
    let adopts = rng.random() && missing > 0 && !world.mirrors[0].odd;
    Draw { world, missing, adopts, connections }
}

#[test]
fn with_one_good_mirror_every_download_ends_whole() {
    let (mut most_opens, mut trickling) = (0, 0);
    for seed in 0..2_000 {
        let Draw { mut world, missing, adopts, connections } = any_world(seed, true);
        if adopts {
            world.adopt(0);
        }
        let end = world.run(300_000);
        // Where all links that are allowed trickle, there is nobody to take over.
        let links = &world.planner.links;
        let full = links.iter().all(|link| world.mirrors[link.seat].slow.is_some()) && links.len() == connections;
        assert!(
            end == End::Whole || end == End::Running && full,
            "seed {seed}: {end:?} {connections} {:?}",
            world.planner.links
        );
        trickling += usize::from(end != End::Whole);
        if end == End::Whole && world.through == 0 {
            assert_eq!(world.ranged, missing, "seed {seed}");
        }
        assert!(world.ranged <= missing, "seed {seed}");
        let bound = 40 + 6 * (world.millis() / 1_000.0) as usize * world.mirrors.len();
        most_opens = most_opens.max(world.opens);
        assert!(world.opens <= bound, "seed {seed}: {} requests in {} ms", world.opens, world.millis());
    }
    println!("at most {most_opens} requests, {trickling} runs trickle");
}

#[test]
fn without_a_good_mirror_it_ends_or_waits_but_never_storms() {
    for seed in 10_000..11_000 {
        let Draw { mut world, missing, adopts, .. } = any_world(seed, false);
        if adopts {
            world.adopt(0);
        }
        let end = world.run(60_000);
        assert!(world.ranged <= missing, "seed {seed}");
        let bound = 40 + 6 * (world.millis() / 1_000.0) as usize * world.mirrors.len();
        assert!(world.opens <= bound, "seed {seed}: {end:?}, {} requests in {} ms", world.opens, world.millis());
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let mut world = any_world(seed, true).world;
        world.run(60_000);
        (world.now, world.opens, world.ranged, world.end)
    };
    for seed in 0..50 {
        assert_eq!(run(seed), run(seed));
    }
}

#[test]
fn a_driver_that_stops_late_costs_bytes_but_no_download() {
    for seed in 20_000..20_500 {
        let mut world = any_world(seed, true).world;
        world.manners = Manners::Late;
        assert_eq!(world.run(300_000), End::Whole, "seed {seed}");
    }
}

#[test]
fn bytes_that_are_lost_on_the_way_are_fetched_once_more() {
    for seed in 30_000..30_500 {
        let Draw { mut world, mut missing, .. } = any_world(seed, true);
        let mut rng = StdRng::seed_from_u64(seed);
        for _ in 0..5 {
            (0..rng.random_range(1..100)).for_each(|_| {
                if world.end == End::Running {
                    world.step()
                }
            });
            let runs: Vec<ByteRange> = world.planner.held().iter().collect();
            let Some(run) = runs.get(rng.random_range(0..runs.len().max(1))) else { continue };
            let from = rng.random_range(run.start.0..run.end.0);
            let lost = range(from, rng.random_range(from..=run.end.0));
            missing += lost.length().0;
            world.end = if lost.is_empty() { world.end } else { End::Running };
            world.tell(Event::Lost(lost, None));
        }
        assert_eq!(world.run(300_000), End::Whole, "seed {seed}");
        assert!(world.through > 0 || world.ranged == missing, "seed {seed}: {} of {missing}", world.ranged);
    }
}
