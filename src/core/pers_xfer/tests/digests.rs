//! Wrong digests: two whole fetches a mirror, the second past all caches (design 3.8).

use super::bench::{Bench, MIB, START, overs, start, started, status, url, wrong_digest};
use crate::core::file_xfer::Freshness;
use crate::core::pers_xfer::record::error_code;
use crate::core::pers_xfer::{Action, Event, Rounds, Rules, Urgency};
use crate::core::range::Length;
use crate::core::time::Delay;
use crate::core::verdict::Class;

/// A whole fetch by the mirror that was wished for, with a wrong digest.
fn corrupt(bench: &mut Bench) -> Vec<Action> {
    bench.feed(Event::Began);
    bench.arrive(MIB);
    let actions = bench.fails(wrong_digest());
    bench.held = 0;
    actions
}

#[test]
fn the_first_time_the_bytes_go_and_the_same_mirror_is_asked_past_all_caches() {
    let mut bench = Bench::new(2, Rules::default());
    bench.wake();
    let actions = corrupt(&mut bench);
    assert_eq!(actions[..2], [Action::DropBytes, Action::Save(Urgency::Now)]);
    assert_eq!(actions.last(), Some(&Action::Start { mirror: 0, freshness: Freshness::NoCache }));
    assert_eq!((bench.record().dossier.part.held, bench.record().confirmed), (Length::ZERO, Length::ZERO));
    assert_eq!(bench.record().num_retries, 0);
}

#[test]
fn the_second_time_it_is_refused_and_the_next_mirror_is_asked() {
    let mut bench = Bench::new(2, Rules::default());
    bench.wake();
    corrupt(&mut bench);
    let actions = corrupt(&mut bench);
    assert!(actions.contains(&Action::Failed {
        mirror: 0,
        failure: wrong_digest(),
        class: Class::Corrupt,
        refused: true
    }));
    assert_eq!(actions.last(), Some(&start(1)));
}

#[test]
fn wrong_everywhere_fails_with_boincs_number_for_it() {
    let mut bench = Bench::new(2, Rules::default());
    bench.wake();
    for _ in 0..3 {
        assert_eq!(overs(&corrupt(&mut bench)), 0);
    }
    assert_eq!(overs(&corrupt(&mut bench)), 1);
    assert_eq!(bench.error_code(), Some(error_code::DIGEST));
    assert_eq!(bench.record().failed_class(), Some(Class::Corrupt));
    assert!(bench.message().contains("checksum"), "{}", bench.message());
}

#[test]
fn a_refetch_that_breaks_off_is_asked_past_all_caches_again_also_after_a_restart() {
    let mut bench = Bench::new(1, Rules::default());
    bench.wake();
    corrupt(&mut bench);
    bench.begins_and_fails(status(503));
    bench.restart_after(Delay::from_hours(5));
    assert_eq!(bench.wake(), [Action::Start { mirror: 0, freshness: Freshness::NoCache }]);
}

#[test]
fn a_mixed_file_is_nobodys_fault_and_mirrors_are_kept_apart_from_then_on() {
    let mut bench = Bench::new(2, Rules::default());
    bench.wake();
    bench.feed(Event::Began);
    bench.arrive(MIB);
    bench.feed(Event::Serves(url(1)));
    let actions = bench.fails(wrong_digest());
    bench.held = 0;
    assert!(actions.contains(&Action::DropBytes));
    // A cache may have sent the wrong part, and nobody knows whose.
    let fresh = |mirror| Action::Start { mirror, freshness: Freshness::NoCache };
    assert_eq!(actions.last(), Some(&fresh(0)));
    assert_eq!(bench.record().mirrors[0].corrupt_fetches, 0);
    // Half from one, which breaks off, and has nothing to say the next time: its half goes before the other one is asked.
    bench.feed(Event::Began);
    bench.arrive(MIB);
    bench.fails(status(503));
    assert_eq!(bench.wake(), [fresh(0)]);
    let actions = bench.begins_and_fails(status(503));
    assert!(actions.contains(&Action::DropBytes), "{actions:?}");
    assert_eq!(actions.last(), Some(&fresh(1)));
    assert!(bench.record().apart);
}

#[test]
fn once_leaves_the_second_fetch_to_another_run() {
    let mut bench = Bench::new(1, Rules { rounds: Rounds::Once, ..Rules::default() });
    bench.wake();
    assert_eq!(corrupt(&mut bench).last(), Some(&Action::Rest(None)));
    bench.restart_after(Delay::from_hours(5));
    assert_eq!(started(&bench.wake()), [0]);
    assert_eq!(overs(&corrupt(&mut bench)), 1);
}

#[test]
fn corrupt_bytes_do_not_keep_a_transfer_alive() {
    let mut bench = Bench::new(1, Rules::default());
    bench.wake();
    corrupt(&mut bench);
    corrupt(&mut bench);
    assert!(bench.now.wall.since(START.wall) < Delay::from_mins(1));
    assert_eq!(bench.error_code(), Some(error_code::DIGEST));
}
