//! Each rule, with as few events as show it.

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;

/// A planner driven by hand, from its first request on.
struct Bench {
    planner: Segments,
    rng: StdRng,
    /// Milliseconds.
    now: u64,
}

const FORBIDDEN: Ending = Ending::Refused { retry_after: None };

impl Bench {
    fn new(total: u64, seats: Vec<Seat>, rules: Rules) -> Self {
        Self::holding(total, &[], seats, rules)
    }

    fn holding(total: u64, held: &[ByteRange], seats: Vec<Seat>, rules: Rules) -> Self {
        let held = held.iter().copied().collect();
        Self { planner: Segments::new(Length(total), held, seats, rules), rng: StdRng::seed_from_u64(1), now: 10_000 }
    }

    /// So many seats, each of another origin.
    fn mirrors(total: u64, count: usize, rules: Rules) -> Self {
        Self::new(total, (0..count).map(|n| seat(n, n)).collect(), rules)
    }

    fn mono(&self) -> Mono {
        Mono::ZERO + Delay::from_millis(self.now)
    }

    fn adopt(&mut self, seat: usize, at: u64, end: u64, reach: Reach) -> Vec<Action> {
        let now = self.mono();
        self.planner.adopt(seat, Offset(at), Offset(end), reach, now);
        self.wake()
    }

    fn tell(&mut self, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        self.planner.handle(event, &mut Cx { now: at(self.mono()), rng: &mut self.rng, out: &mut out });
        out
    }

    fn wake(&mut self) -> Vec<Action> {
        self.tell(Event::Wake)
    }

    fn open(&mut self, link: u32) -> Vec<Action> {
        self.tell(Event::Opened(LinkId(link)))
    }

    fn bytes(&mut self, link: u32, count: u64) -> Vec<Action> {
        self.tell(Event::Arrived(LinkId(link), Length(count)))
    }

    fn end(&mut self, link: u32, ending: Ending) -> Vec<Action> {
        self.tell(Event::Ended(LinkId(link), ending))
    }

    /// Lets time pass, with every wake that was asked for, while these links bring so many bytes per millisecond.
    fn pass(&mut self, millis: u64, flows: &[(u32, u64)]) -> Vec<Action> {
        let mut out = Vec::new();
        for _ in 0..millis / 10 {
            self.now += 10;
            for (link, rate) in flows {
                out.extend(self.bytes(*link, rate * 10));
            }
            if self.planner.wake_at().is_some_and(|at| at <= self.mono()) {
                out.extend(self.wake());
            }
        }
        out
    }

    fn bears(&self, origin: usize) -> Option<usize> {
        self.planner.learned().nth(origin).and_then(|learned| learned.connections)
    }
}

fn open(link: u32, seat: usize, start: u64, end: u64) -> Action {
    Action::Open { link: LinkId(link), seat, range: range(start, end), reach: Reach::Ranged }
}

fn limit(link: u32, end: u64) -> Action {
    Action::Limit { link: LinkId(link), end: Offset(end) }
}

fn stop(link: u32) -> Action {
    Action::Stop { link: LinkId(link) }
}

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
}
