//! Who gets which range: each rule, with as few events as show it.

use super::bench::*;
use super::*;

#[test]
fn the_first_turn_shares_evenly_among_origins() {
    let mut bench = Bench::mirrors(400, 4, rules(4, 1, 10));
    assert_eq!(bench.planner.wake_at(), Some(Mono::ZERO));
    assert_eq!(bench.wake(), [open(0, 0, 0, 100), open(1, 1, 300, 400), open(2, 2, 200, 300), open(3, 3, 100, 200)]);
    assert_eq!(bench.wake(), []);
}

#[test]
fn an_adopted_link_is_limited_and_the_others_get_the_rest() {
    let mut bench = Bench::new(400, vec![seat(0, 0)], rules(4, 4, 10));
    let out = bench.adopt(0, 0, 400, Reach::Ranged);
    assert_eq!(out, [limit(0, 100), open(1, 0, 300, 400), open(2, 0, 200, 300), open(3, 0, 100, 200)]);
}

#[test]
fn never_more_links_than_allowed_nor_parts_smaller_than_allowed() {
    for (connections, per_origin, least, links) in
        [(1, 16, 1, 1), (3, 16, 1, 3), (16, 1, 1, 2), (16, 3, 1, 6), (16, 16, 100, 4), (16, 16, 201, 1), (0, 0, 0, 1)]
    {
        let mut bench = Bench::mirrors(400, 2, rules(connections, per_origin, least));
        assert_eq!(bench.wake().len(), links, "{connections} {per_origin} {least}");
    }
}

#[test]
fn one_connection_goes_from_gap_to_gap_however_small() {
    let held = [range(0, 100), range(101, 200), range(250, 300)];
    let mut bench = Bench::holding(400, &held, vec![seat(0, 0)], rules(1, 1, 1_000));
    assert_eq!(bench.wake(), [open(0, 0, 100, 101)]);
    bench.open(0);
    bench.bytes(0, 1);
    assert_eq!(bench.end(0, Ending::Served), [open(1, 0, 200, 250)]);
    bench.bytes(1, 50);
    assert_eq!(bench.end(1, Ending::Served), [open(2, 0, 300, 400)]);
    assert_eq!(bench.bytes(2, 100), [Action::Whole]);
    assert_eq!(bench.end(2, Ending::Served), []);
    assert_eq!(bench.planner.wake_at(), None);
}

#[test]
fn an_adopted_link_stops_at_the_next_island_and_its_joint_is_no_work() {
    let held = [range(0, 100), range(300, 350)];
    let mut bench = Bench::holding(400, &held, vec![seat(0, 0)], rules(1, 1, 10));
    assert_eq!(bench.adopt(0, 60, 400, Reach::Ranged), [limit(0, 300)]);
    bench.bytes(0, 240);
    assert_eq!(bench.end(0, Ending::Served), [open(1, 0, 350, 400)]);
}

#[test]
fn nothing_missing_is_whole_at_once_and_told_once() {
    for total in [0, 400] {
        let mut bench = Bench::holding(total, &[range(0, total)], vec![seat(0, 0)], rules(4, 4, 1));
        assert_eq!(bench.wake(), [Action::Whole]);
        assert_eq!(bench.wake(), []);
    }
}

#[test]
fn unknown_mirrors_get_their_chance_before_known_ones_and_the_fastest_is_first() {
    let rated = |n, rate| Seat { rate, ..seat(n, n) };
    let seats = vec![rated(0, Some(1_000)), rated(1, None), rated(2, Some(9_000)), rated(3, Some(5_000))];
    let mut bench = Bench::new(1_000_000, seats, rules(4, 1, 1));
    let order: Vec<usize> =
        bench.wake().iter().map(|a| if let Action::Open { seat, .. } = a { *seat } else { 9 }).collect();
    assert_eq!(order, [2, 1, 3, 0]);
}

#[test]
fn shares_follow_the_learned_rates() {
    let rated = |n, rate| Seat { rate: Some(rate), ..seat(n, n) };
    let mut bench = Bench::new(4_000_000, vec![rated(0, 3_000_000), rated(1, 1_000_000)], rules(2, 1, 1));
    let Action::Open { range: first, .. } = bench.wake()[0] else { panic!("no link") };
    assert!((2_900_000..3_100_000).contains(&first.end.0), "{first:?}");
}

#[test]
fn a_link_that_served_gets_the_second_half_of_the_longest_at_the_same_seat() {
    let mut bench = Bench::mirrors(4_000_000, 2, rules(2, 1, 10_000));
    bench.wake();
    bench.open(0);
    bench.open(1);
    bench.pass(1_000, &[(0, 1_000), (1, 2_000)]);
    // Link 1 has 2 MB done at 2 MB/s; link 0 has 1 MB left at 1 MB/s, and keeps a third of that.
    let out = bench.end(1, Ending::Served);
    let (Action::Limit { end, .. }, Action::Open { seat: 1, range, .. }) = (out[0], out[1]) else { panic!("{out:?}") };
    assert_eq!((end, range.end), (range.start, Offset(2_000_000)));
    assert!((1_330_000..1_400_000).contains(&end.0), "{end:?}");
}

#[test]
fn a_silent_link_loses_everything_to_an_idle_one() {
    let mut bench = Bench::mirrors(4_000_000, 2, rules(2, 1, 1_000_000));
    bench.wake();
    bench.open(0);
    bench.open(1);
    bench.pass(1_000, &[(0, 1_000), (1, 2_000)]);
    assert_eq!(bench.end(1, Ending::Served), [], "too little to share");
    let out = bench.pass(1_900, &[]);
    assert_eq!(out, [], "two seconds have not passed");
    assert_eq!(bench.pass(300, &[]), [stop(0), open(2, 1, 1_000_000, 2_000_000)]);
    assert_eq!(bench.end(0, Ending::Stopped), []);
}

#[test]
fn the_last_bytes_of_a_link_that_pauses_are_fetched_by_an_idle_one_and_that_is_held_against_nobody() {
    let mut bench = Bench::mirrors(120_000_000, 2, rules(2, 1, 300_000));
    bench.wake();
    bench.pass(10, &[]);
    bench.open(0);
    bench.open(1);
    bench.pass(59_600, &[(0, 1_000), (1, 1_000)]);
    bench.bytes(1, 400_000);
    assert_eq!(bench.end(1, Ending::Served), [], "too little to share, and it flows");
    assert_eq!(bench.pass(100, &[(0, 1_000)]), [], "it still flows");
    assert_eq!(bench.pass(20, &[]), [], "a moment without a byte");
    let out = bench.pass(400, &[]);
    assert_eq!(out, [stop(0), open(2, 1, 59_700_000, 60_000_000)], "longer than the other would have taken");
    bench.end(0, Ending::Stopped);
    bench.open(2);
    // Now link 2 pauses, and the first seat, which is well, takes its tail over: after twice that time.
    bench.bytes(2, 200_000);
    let out = bench.pass(400, &[]);
    assert_eq!(out, [stop(2), open(3, 0, 59_900_000, 60_000_000)]);
}

#[test]
fn a_link_without_a_head_loses_everything_while_others_flow() {
    let mut bench = Bench::mirrors(4_000_000, 2, rules(2, 1, 1_000_000));
    bench.wake();
    bench.open(0);
    bench.pass(2_000, &[(0, 1_000)]);
    assert_eq!(bench.end(0, Ending::Served), [stop(1), open(2, 0, 2_000_000, 4_000_000)]);
}

#[test]
fn a_dead_line_is_tried_again_with_growing_patience() {
    let mut bench = Bench::new(2_000_000, vec![seat(0, 0)], rules(2, 2, 10_000_000));
    bench.wake();
    bench.open(0);
    bench.bytes(0, 1_000);
    let mut opens = 0;
    for _ in 0..120 {
        let out = bench.pass(1_000, &[]);
        for action in out {
            match action {
                Action::Stop { link } => assert_eq!(bench.end(link.0, Ending::Stopped), []),
                Action::Open { .. } => opens += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    assert!((1..=4).contains(&opens), "{opens} in two minutes");
}

#[test]
fn a_much_slower_link_loses_the_rest_near_the_end_but_a_little_slower_one_does_not() {
    for (slow, taken) in [(10, true), (900, false)] {
        let mut bench = Bench::mirrors(2_000_000, 2, rules(2, 1, 500_000));
        bench.wake();
        bench.open(0);
        bench.open(1);
        bench.pass(1_000, &[(0, slow), (1, 1_000)]);
        let out = bench.end(1, Ending::Served);
        assert_eq!(out.contains(&stop(0)), taken, "{slow}: {out:?}");
    }
}

#[test]
fn a_trickle_makes_room_for_a_mirror_that_waits_but_is_left_alone_where_none_does() {
    for (mirrors, stopped) in [(1, false), (2, true)] {
        let mut bench = Bench::mirrors(4_000_000, mirrors, rules(1, 4, 10_000));
        bench.wake();
        bench.open(0);
        let out = bench.pass(3_000, &[(0, 10)]);
        assert_eq!(out, if stopped { vec![stop(0)] } else { vec![] });
        if stopped {
            let Action::Open { seat: 1, range, .. } = bench.end(0, Ending::Stopped)[0] else { panic!("no link") };
            assert_eq!((range.start, range.end), (bench.planner.held().head().as_end(), Offset(4_000_000)));
            bench.open(1);
            assert_eq!(bench.pass(30_000, &[(1, 11)]), [], "each has had its chance, and they are alike");
        }
    }
}
