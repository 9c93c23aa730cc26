//! What endings mean: each rule, with as few events as show it.

use super::bench::*;
use super::*;

#[test]
fn refusals_beside_flowing_links_are_counted_and_nothing_is_tried_above() {
    let mut bench = Bench::new(400_000, vec![seat(0, 0)], rules(4, 4, 1_000));
    bench.adopt(0, 0, 400_000, Reach::Ranged);
    bench.bytes(0, 1_000);
    bench.end(1, FORBIDDEN);
    assert_eq!(bench.bears(0), Some(3));
    bench.end(2, FORBIDDEN);
    let out = bench.end(3, FORBIDDEN);
    assert_eq!(bench.bears(0), Some(1));
    assert_eq!(out, [Action::Extend { link: LinkId(0), end: Offset(400_000) }], "it may go on over the whole file");
    assert_eq!(bench.pass(3_000, &[(0, 10)]), []);
}

#[test]
fn refusals_before_anything_flows_are_failures_and_one_counts_for_all() {
    let mut bench = Bench::new(400_000, vec![seat(0, 0)], rules(4, 4, 1_000));
    bench.wake();
    for link in 0..4 {
        assert_eq!(bench.end(link, FORBIDDEN), []);
    }
    assert_eq!(bench.bears(0), None);
    let out = bench.pass(1_200, &[]);
    assert_eq!(out.len(), 4, "one pause of about a second: {out:?}");
    let out: Vec<_> = (4..8).flat_map(|link| bench.end(link, FORBIDDEN)).collect();
    assert_eq!(out, [Action::Over], "two seconds is not soon");
    assert_eq!((bench.wake(), bench.planner.wake_at()), (vec![], None));
}

#[test]
fn a_retry_after_is_a_floor_for_the_origin_and_others_go_on() {
    let seats = vec![seat(0, 0), seat(1, 0), seat(2, 1)];
    let mut bench = Bench::new(400_000, seats, rules(2, 1, 1_000));
    assert_eq!(bench.wake().len(), 2);
    bench.open(1);
    bench.bytes(1, 10);
    let out = bench.end(0, Ending::Refused { retry_after: Some(Delay::from_secs(30)) });
    assert_eq!(out, [], "the other seat of that origin waits too");
    assert_eq!(bench.pass(29_900, &[(1, 1)]), []);
    let out = bench.pass(300, &[(1, 1)]);
    assert!(matches!(out[..], [Action::Open { seat: 0 | 1, .. }]), "{out:?}");
}

#[test]
fn a_seat_that_is_not_to_be_asked_yet_ends_the_session_where_it_is_the_only_one() {
    let later = |millis| vec![Seat { not_before: Some(Mono::ZERO + Delay::from_millis(millis)), ..seat(0, 0) }];
    assert_eq!(Bench::new(400, later(30_000), rules(4, 4, 1)).wake(), [Action::Over]);
    let mut bench = Bench::new(400, later(11_000), rules(1, 4, 1));
    assert_eq!(bench.wake(), []);
    assert_eq!(bench.pass(1_000, &[]), [open(0, 0, 0, 400)]);
    assert_eq!(Bench::new(400, vec![], rules(4, 4, 1)).wake(), [Action::Over]);
}

#[test]
fn links_that_are_never_answered_beside_one_that_flows_are_too_many() {
    let mut bench = Bench::new(40_000_000, vec![seat(0, 0)], rules(4, 4, 1_000));
    bench.adopt(0, 0, 40_000_000, Reach::Ranged);
    let out = bench.pass(12_000, &[(0, 100)]);
    assert_eq!(bench.bears(0), Some(1));
    let stopped = out.iter().filter(|action| matches!(action, Action::Stop { .. })).count();
    let opened = out.iter().filter(|action| matches!(action, Action::Open { .. })).count();
    assert_eq!((stopped, opened), (3, 0), "{out:?}");
}

#[test]
fn ranges_ignored_leaves_the_open_answer_to_read_on() {
    let mut bench = Bench::new(400, vec![seat(0, 0)], rules(3, 3, 10));
    bench.adopt(0, 0, 400, Reach::Ranged);
    bench.end(2, Ending::RangesIgnored);
    let out = bench.end(1, Ending::RangesIgnored);
    assert_eq!(out, [Action::Extend { link: LinkId(0), end: Offset(400) }]);
    assert_eq!(bench.planner.learned().next().map(|l| l.ranges), Some(Ranges::Broken));
    assert_eq!(bench.pass(5_000, &[]), []);
    assert_eq!(bench.bytes(0, 400), [Action::Whole]);
}

#[test]
fn where_ranges_are_ignored_and_nothing_is_open_the_whole_is_read_through() {
    let mut bench = Bench::holding(400, &[range(0, 100)], vec![seat(0, 0)], rules(3, 3, 1_000));
    assert_eq!(bench.wake(), [open(0, 0, 100, 400)]);
    let through = Action::Open { link: LinkId(1), seat: 0, range: range(0, 400), reach: Reach::Through };
    assert_eq!(bench.end(0, Ending::RangesIgnored), [through]);
    bench.open(1);
    bench.bytes(1, 200);
    assert_eq!(bench.planner.held().length(), Length(200));
    assert_eq!(bench.bytes(1, 200), [Action::Whole]);
}

#[test]
fn an_origin_that_sent_the_whole_is_asked_for_one_range_to_find_out() {
    for (works, links) in [(true, 4), (false, 1)] {
        let mut bench = Bench::new(400, vec![seat(0, 0)], rules(4, 4, 10));
        assert_eq!(bench.adopt(0, 0, 400, Reach::Through), [open(1, 0, 200, 400)]);
        if works {
            assert_eq!(bench.open(1).len(), 3, "one limit, two links");
        } else {
            assert_eq!(bench.end(1, Ending::RangesIgnored), []);
        }
        assert_eq!(bench.planner.links.len(), links);
    }
}

#[test]
fn others_take_from_behind_a_link_that_reads_through_and_it_is_never_limited() {
    let mut bench = Bench::mirrors(400, 2, rules(2, 1, 10));
    assert_eq!(bench.adopt(0, 0, 400, Reach::Through), [open(1, 1, 200, 400)]);
    bench.open(1);
    bench.bytes(1, 100);
    // It catches up with the other at 300, and goes on alone; the other starts further back.
    bench.bytes(0, 250);
    let out = bench.bytes(0, 60);
    assert_eq!(out, [stop(1)]);
    let out = bench.end(1, Ending::Stopped);
    assert_eq!(out, [open(2, 1, 355, 400)]);
    bench.bytes(2, 45);
    assert_eq!(bench.end(2, Ending::Served), [open(3, 1, 332, 355)]);
    assert_eq!(bench.bytes(0, 45), [stop(3), stop(0), Action::Whole], "it reads on no further");
}

#[test]
fn an_odd_mirror_is_never_asked_again_and_its_other_links_are_stopped() {
    let mut bench = Bench::new(400, vec![seat(0, 0), seat(1, 1)], rules(3, 2, 10));
    bench.wake();
    let of_zero: Vec<u32> = bench.planner.links.iter().filter(|l| l.seat == 0).map(|l| l.id.0).collect();
    let out = bench.end(of_zero[0], Ending::Odd);
    assert!(out.contains(&stop(of_zero[1])), "{out:?}");
    bench.end(of_zero[1], Ending::Stopped);
    assert!(bench.planner.links.iter().all(|link| link.seat == 1));
    assert!(bench.pass(9_000, &[]).iter().all(|action| !matches!(action, Action::Open { seat: 0, .. })));
}

#[test]
fn a_cut_with_bytes_goes_on_at_the_same_place_after_a_breath() {
    let mut bench = Bench::new(1_000_000, vec![seat(0, 0)], rules(1, 1, 10));
    bench.wake();
    bench.open(0);
    bench.bytes(0, 300_000);
    assert_eq!(bench.end(0, Ending::Cut), []);
    let due = bench.planner.wake_at().expect("a pause").since(bench.mono());
    assert!((Delay::from_millis(100)..=Delay::from_millis(250)).contains(&due), "{due}");
    assert_eq!(bench.pass(250, &[]), [open(1, 0, 300_000, 1_000_000)]);
}

#[test]
fn a_cut_goes_on_elsewhere_at_once() {
    let mut bench = Bench::mirrors(1_000_000, 2, rules(1, 1, 10));
    bench.wake();
    bench.bytes(0, 300_000);
    assert_eq!(bench.end(0, Ending::Cut), [open(1, 1, 300_000, 1_000_000)]);
}

#[test]
fn three_fruitless_endings_and_a_seat_is_given_up_while_others_flow() {
    let mut bench = Bench::mirrors(100_000_000, 2, rules(2, 1, 10));
    bench.wake();
    bench.open(0);
    let mut waits = vec![];
    for link in 1..4 {
        let since = bench.now;
        bench.end(link, Ending::Cut);
        while bench.planner.links.len() < 2 && bench.now < since + 60_000 {
            bench.pass(10, &[(0, 1)]);
        }
        waits.push((bench.now - since) / 100);
    }
    assert!((9..=11).contains(&waits[0]) && (18..=22).contains(&waits[1]) && waits[2] >= 600, "{waits:?}");
}

#[test]
fn crumbs_are_no_storm() {
    let mut bench = Bench::new(1_000_000, vec![seat(0, 0)], rules(4, 4, 10));
    bench.wake();
    let mut out = vec![];
    for _ in 0..6_000 {
        let links: Vec<u32> = bench.planner.links.iter().map(|link| link.id.0).collect();
        for link in links {
            bench.bytes(link, 1);
            out.extend(bench.end(link, if link % 2 == 0 { Ending::Cut } else { Ending::Served }));
        }
        out.extend(bench.pass(10, &[]));
    }
    assert!(out.len() < 20 && out.last() == Some(&Action::Over), "{out:?}");
}

#[test]
fn lost_bytes_are_fetched_again_and_elsewhere_if_one_mirror_is_blamed() {
    let mut bench = Bench::mirrors(400_000, 2, rules(2, 1, 1_000_000));
    assert_eq!(bench.wake(), [open(0, 0, 0, 400_000)]);
    bench.bytes(0, 400_000);
    bench.end(0, Ending::Served);
    assert_eq!(bench.tell(Event::Lost(range(1_000, 2_000), Some(0))), [open(1, 1, 1_000, 2_000)]);
    assert_eq!(bench.bytes(1, 1_000), [Action::Whole]);
    bench.end(1, Ending::Served);
    // The other is wrong as well: whoever is left is asked, but not for ever.
    let mut asked = vec![];
    for link in 2..9 {
        for action in bench.tell(Event::Lost(range(5, 6), Some(link as usize % 2))) {
            asked.push(action);
        }
        bench.bytes(link, 1);
        bench.end(link, Ending::Served);
    }
    assert_eq!(asked.last(), Some(&Action::Over), "{asked:?}");
}

#[test]
fn a_mirror_that_is_not_asked_again_ends_what_it_still_brings() {
    let mut bench = Bench::mirrors(400_000, 2, rules(1, 1, 1_000_000));
    bench.wake();
    bench.open(0);
    bench.bytes(0, 100_000);
    let stop = Action::Stop { link: LinkId(0) };
    // As often as it takes in the record.
    assert_eq!(crate::core::mirrors::WRONG_DIGESTS_TO_REFUSE, 2);
    assert!(!bench.tell(Event::Lost(range(0, 1_000), Some(0))).contains(&stop));
    assert!(bench.tell(Event::Lost(range(4_000, 5_000), Some(0))).contains(&stop));
}

#[test]
fn what_is_told_of_unknown_links_is_ignored() {
    let mut bench = Bench::mirrors(400, 1, rules(1, 1, 1));
    bench.wake();
    assert_eq!(bench.bytes(7, 10), []);
    assert_eq!(bench.open(7), []);
    assert_eq!(bench.end(7, Ending::Odd), []);
    assert_eq!(bench.bytes(0, 1_000), [Action::Whole], "bytes beyond the file are not counted");
}

#[test]
fn late_bytes_of_a_stopped_link_count() {
    let mut bench = Bench::mirrors(4_000_000, 2, rules(2, 1, 1_000_000));
    bench.wake();
    bench.open(0);
    bench.pass(2_000, &[(0, 1_000)]);
    bench.end(0, Ending::Served);
    bench.bytes(1, 500_000);
    assert_eq!(bench.planner.held().length(), Length(2_500_000));
    bench.end(1, Ending::Stopped);
    assert!(bench.bytes(2, 2_000_000).contains(&Action::Whole));
}

#[test]
fn the_rate_of_a_connection_is_learned() {
    let mut bench = Bench::mirrors(2_000_000, 1, rules(1, 1, 1));
    bench.wake();
    bench.open(0);
    bench.pass(1_000, &[(0, 1_000)]);
    bench.end(0, Ending::Cut);
    let learned = bench.planner.learned().next().expect("an origin");
    assert_eq!((learned.rate, learned.ranges), (Some(1_000_000), Ranges::Work));
    let mut bench = Bench::mirrors(1_000_000, 1, rules(1, 1, 1));
    bench.adopt(0, 0, 1_000_000, Reach::Ranged);
    assert_eq!(bench.pass(1_000, &[(0, 1_000)]), [Action::Whole]);
    let rate = bench.planner.learned().next().and_then(|learned| learned.rate);
    assert_eq!(rate, Some(1_000_000), "known as soon as it is whole");
}

#[test]
fn where_cuts_are_final_a_mirror_that_broke_off_gets_no_new_link_and_its_others_go_on() {
    let final_cuts = Rules { cuts: Cuts::Final, ..rules(2, 2, 1_000) };
    let mut bench = Bench::new(400_000, vec![seat(0, 0)], final_cuts);
    bench.adopt(0, 0, 400_000, Reach::Ranged);
    bench.bytes(0, 50_000);
    assert!(bench.end(0, Ending::Cut).iter().all(|action| !matches!(action, Action::Open { .. })));
    bench.bytes(1, 50_000);
    assert_eq!(bench.end(1, Ending::Cut), [Action::Over]);
    assert_eq!(bench.planner.wake_at(), None);
}
