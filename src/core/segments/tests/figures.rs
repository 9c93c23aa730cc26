//! How near to the best possible time whole downloads come, in simulated time.

use super::sim::{Death, End, Mirror, World};
use super::*;

/// Milliseconds of a run from an adopted first link, and the requests it took; it must end whole, with no byte twice.
fn timed(total: u64, mirrors: Vec<Mirror>, rules: Rules, tick: u64) -> (f64, World) {
    let mut world = World::new(total, RangeSet::new(), mirrors, rules, 7);
    world.tick = tick;
    world.adopt(0);
    assert_eq!(world.run(10_000_000), End::Whole);
    assert_eq!((world.ranged, world.through), (total, 0));
    (world.millis(), world)
}

fn within(name: &str, took: f64, ideal: f64, ratio: f64, world: &World) {
    println!("{name}: {:.4} of the ideal {ideal:.0} ms, {} requests", took / ideal, world.opens);
    assert!(took <= ratio * ideal, "{name}: {took} ms is over {ratio} of {ideal} ms");
}

#[test]
fn sixteen_equal_connections_end_together() {
    for latency in [1, 10, 50] {
        let rate = 8.0 * MB as f64;
        let (took, world) = timed(1024 * MB, vec![Mirror::new(0, latency, rate)], rules(16, 16, 256 * KB), 1_000);
        within(&format!("16 of one origin, {latency} ms"), took, 1024.0 / 128.0 * 1e3, 1.01, &world);
        assert!(world.opens < 60, "{} requests", world.opens);
    }
}

#[test]
fn sixteen_uneven_connections_end_together() {
    for uneven in [0.1, 0.5, 0.9] {
        let mut mirror = Mirror::new(0, 20, 8.0 * MB as f64);
        mirror.uneven = uneven;
        let (took, world) = timed(1024 * MB, vec![mirror], rules(16, 16, 256 * KB), 2_000);
        within(&format!("16 uneven by {uneven}"), took, 1024.0 / 128.0 * 1e3, 1.03, &world);
        assert!(world.opens < 200, "{} requests", world.opens);
    }
}

#[test]
fn three_equal_mirrors_end_together() {
    for latency in [1, 10, 50] {
        let mirrors = (0..3).map(|origin| Mirror::new(origin, latency, 16.0 * MB as f64)).collect();
        let (took, world) = timed(256 * MB, mirrors, rules(4, 1, MB), 1_000);
        within(&format!("three mirrors, {latency} ms"), took, 256.0 / 48.0 * 1e3, 1.03, &world);
        assert!(world.opens < 20, "{} requests", world.opens);
    }
}

#[test]
fn one_of_three_mirrors_dies_half_way() {
    for (death, latency, dying) in
        [(Death::Reset, 1, 0), (Death::Reset, 50, 1), (Death::Silence, 1, 1), (Death::Silence, 50, 2)]
    {
        let mut mirrors: Vec<_> = (0..3).map(|origin| Mirror::new(origin, latency, 16.0 * MB as f64)).collect();
        let half = 128.0 / 48.0 * 1e3;
        mirrors[dying].dies = Some((half as u64, death));
        let (took, world) = timed(256 * MB, mirrors, rules(4, 1, MB), 1_000);
        within(&format!("one of three dies, {death:?}, {latency} ms"), took, half + 128.0 / 32.0 * 1e3, 1.08, &world);
        assert!(world.opens < 30, "{} requests", world.opens);
    }
}

#[test]
fn mirrors_of_unequal_rates_share_in_proportion() {
    for rates in [[1.0, 1.0, 30.0], [16.0, 8.0, 2.0], [2.0, 8.0, 16.0], [9.0, 10.0, 11.0]] {
        let mirrors = (0..3).map(|origin| Mirror::new(origin, 20, rates[origin] * MB as f64)).collect();
        let (took, world) = timed(256 * MB, mirrors, rules(4, 1, 256 * KB), 1_000);
        within(&format!("{rates:?}"), took, 256.0 / rates.iter().sum::<f64>() * 1e3, 1.03, &world);
        assert!(world.opens < 60, "{} requests", world.opens);
    }
}

#[test]
fn ranges_of_slow_connections_move_to_the_good_one() {
    let mut mirror = Mirror::new(0, 5, 1.25 * MB as f64);
    mirror.slow = Some((1..4, 100.0));
    let (took, world) = timed(3 * MB, vec![mirror], rules(4, 4, 256 * KB), 5_000);
    within("three of four slow", took, 2.4e3, 1.2, &world);
    assert!(world.opens < 20, "{} requests", world.opens);
}

#[test]
fn connections_that_all_trickle_are_not_replaced_over_and_over() {
    let mut mirror = Mirror::new(0, 5, 4.0 * MB as f64);
    mirror.slow = Some((1..10_000, 1_000.0));
    // The first link serves its share; whatever is opened later trickles. There must be no storm of requests.
    let mut world = World::new(16 * MB, RangeSet::new(), vec![mirror], rules(4, 4, 256 * KB), 3);
    world.tick = 10_000;
    world.adopt(0);
    world.run(60_000);
    println!("all but one trickle: {:.2} of 16 MB, {} requests", world.ranged as f64 / (16 * MB) as f64, world.opens);
    assert!(world.opens < 240, "{} requests in a minute", world.opens);
}

#[test]
fn a_cap_is_found_and_costs_little() {
    for most in [1, 2, 4, 8] {
        let mut mirror = Mirror::new(0, 10, 8.0 * MB as f64);
        mirror.most = Some(most);
        let (took, world) = timed(256 * MB, vec![mirror], rules(16, 16, 256 * KB), 1_000);
        within(&format!("at most {most}"), took, 256.0 / (8.0 * most as f64) * 1e3, 1.03, &world);
        let learned: Vec<_> = world.planner.learned().collect();
        assert_eq!(learned[0].connections, Some(most));
        assert!(world.opens < 16 + 8 * most, "{} requests", world.opens);
    }
}

#[test]
fn cuts_cost_their_pauses_only() {
    let mut mirror = Mirror::new(0, 5, 2.0 * MB as f64);
    mirror.cut = Some(300_000);
    let (took, world) = timed(3 * MB, vec![mirror], rules(2, 2, MB), 5_000);
    println!("cut every 300 kB: {took} ms, {} requests", world.opens);
    assert!(took < 4_000.0 && world.opens < 16, "{took} ms, {} requests", world.opens);
}
