//! Mirrors that ignore ranges, beside others: when one of them is read through, and when that ends.

use super::bench::*;
use super::*;

const TOTAL: u64 = 4_000_000;

/// A ranged mirror of which much is held, and one that ignores ranges, with what it is known to bring.
fn bench(connections: usize, rate: Option<u64>) -> Bench {
    let reader = Seat { ranges: Ranges::Broken, rate, ..seat(1, 1) };
    Bench::holding(TOTAL, &[range(0, 1_000_000)], vec![seat(0, 0), reader], rules(connections, 1, 10_000))
}

fn through(link: u32) -> Action {
    Action::Open { link: LinkId(link), seat: 1, range: range(0, TOTAL), reach: Reach::Through }
}

#[test]
fn beside_a_trickle_a_mirror_that_ignores_ranges_is_read_through_and_takes_over() {
    let mut bench = bench(2, None);
    assert_eq!(bench.wake(), [open(0, 0, 1_000_000, TOTAL)]);
    bench.open(0);
    assert_eq!(bench.pass(2_900, &[(0, 9)]), [], "a moment tells nothing");
    assert_eq!(bench.pass(200, &[(0, 9)]), [through(1)]);
    bench.open(1);
    // It compares what is held, catches up with the other, and each goes on with a part of what is left.
    let out = bench.pass(2_000, &[(0, 9), (1, 1_000)]);
    assert_eq!(out, [stop(0)]);
    let [Action::Open { seat: 0, range, .. }] = bench.end(0, Ending::Stopped)[..] else { panic!("not asked again") };
    assert!(range.start.0 > 2_000_000 && range.end.0 == TOTAL, "{range:?}");
    assert!(bench.pass(2_500, &[(1, 1_000), (2, 9)]).contains(&Action::Whole));
}

#[test]
fn what_flows_is_left_alone_and_what_is_known_to_be_no_faster_is_not_read() {
    for (flow, rate) in [(100, None), (9, Some(20_000)), (400, Some(1_000_000))] {
        let mut bench = bench(2, rate);
        bench.wake();
        bench.open(0);
        assert_eq!(bench.pass(7_000, &[(0, flow)]), [], "{flow} {rate:?}");
    }
    // No trickle, and yet the other is known to be many times faster.
    let mut bench = bench(2, Some(50_000_000));
    bench.wake();
    bench.open(0);
    assert_eq!(bench.pass(4_000, &[(0, 100)]), [through(1)]);
}

#[test]
fn where_all_places_are_taken_the_trickle_makes_room_and_comes_back_if_that_was_in_vain() {
    let mut bench = bench(1, None);
    bench.wake();
    bench.open(0);
    assert_eq!(bench.pass(3_100, &[(0, 9)]), [stop(0)]);
    assert_eq!(bench.end(0, Ending::Stopped), [through(1)]);
    let out = bench.pass(6_000, &[]);
    assert_eq!(out, [stop(1)], "no answer comes");
    let mut out = bench.end(1, Ending::Stopped);
    out.extend(bench.pass(100, &[]));
    let [Action::Open { link: LinkId(2), seat: 0, .. }] = out[..] else { panic!("{out:?}") };
}

#[test]
fn a_reader_that_would_be_through_too_late_is_left_and_not_tried_again() {
    let mut bench = bench(2, None);
    bench.wake();
    bench.open(0);
    bench.pass(3_100, &[(0, 15)]);
    bench.open(1);
    assert_eq!(bench.pass(6_100, &[(0, 15), (1, 8)]), [stop(1)]);
    bench.end(1, Ending::Stopped);
    assert_eq!(bench.pass(60_000, &[(0, 15)]), []);
}

#[test]
fn three_readings_in_vain_are_enough() {
    let mut bench = bench(2, None);
    bench.wake();
    bench.open(0);
    let (mut readings, mut link) = (0, 1);
    for _ in 0..60 {
        let out = bench.pass(1_000, &[(0, 9)]);
        for _ in out.iter().filter(|action| matches!(action, Action::Open { seat: 1, .. })) {
            readings += 1;
            bench.end(link, if readings == 2 { Ending::RangesIgnored } else { Ending::Cut });
            link += 1;
        }
    }
    assert_eq!(readings, 3);
}

#[test]
fn crumbs_with_pauses_between_are_a_trickle_too() {
    let mut bench = bench(1, None);
    let mut out = bench.wake();
    for _ in 0..100 {
        if let Some(link) = bench.planner.links.iter().find(|link| link.reach == Reach::Ranged).map(|link| link.id.0) {
            bench.bytes(link, 4_000);
            out.extend(bench.end(link, Ending::Cut));
        }
        out.extend(bench.pass(100, &[]));
    }
    let readings = out.iter().filter(|action| matches!(action, Action::Open { seat: 1, .. })).count();
    assert!(readings > 0, "{out:?}");
}
