//! Sessions: progress, cuts, what is learned, trouble on this machine.

use super::bench::{Bench, MIB, START, cut, disk_full, holding, overs, started, status};
use crate::core::failure::Failure;
use crate::core::file_xfer::End;
use crate::core::file_xfer::dossier::Draft;
use crate::core::pers_xfer::record::{Evidence, Status, error_code};
use crate::core::pers_xfer::{Action, Event, LOCAL_AGAIN, OnLocalFault, RESUME_AFTER, Rules, Urgency, View};
use crate::core::range::Length;
use crate::core::time::Delay;

fn running(mirrors: usize) -> Bench {
    let mut bench = Bench::new(mirrors, Rules::default());
    bench.wake();
    bench.feed(Event::Began);
    bench
}

#[test]
fn a_cut_after_progress_goes_on_at_the_same_mirror_after_a_second_and_counts_nothing() {
    let mut bench = Bench::new(2, Rules::default());
    bench.wake();
    bench.begins_and_fails(status(503));
    bench.feed(Event::Began);
    bench.arrive(MIB);
    assert!(started(&bench.fails(cut())).is_empty());
    assert!(matches!(bench.machine.view(), View::Resuming { .. }));
    assert_eq!(bench.sleeps(), RESUME_AFTER);
    assert_eq!(started(&bench.wake()), [1], "the one that served goes first");
    assert_eq!(bench.record().num_retries, 0);
    assert_eq!(started(&bench.begins_and_fails(cut())), [0], "without progress the others are tried");
    bench.begins_and_fails(cut());
    assert_eq!(bench.record().num_retries, 1);
}

#[test]
fn progress_starts_the_backoff_anew_and_keeps_the_count_of_retries() {
    let mut bench = Bench::new(1, Rules::default());
    for _ in 0..8 {
        bench.wake();
        bench.begins_and_fails(status(503));
    }
    bench.wake();
    bench.feed(Event::Began);
    bench.arrive(MIB);
    bench.fails(cut());
    bench.wake();
    bench.begins_and_fails(cut());
    assert_eq!(bench.record().num_retries, 9);
    assert!(bench.sleeps() <= Delay::from_secs(75), "the exponent is 1 again: {:?}", bench.sleeps());
}

#[test]
fn less_than_64_kib_above_the_mark_is_no_progress() {
    let mut bench = running(1);
    bench.arrive(MIB);
    bench.fails(cut());
    bench.wake();
    bench.feed(Event::Began);
    bench.arrive((64 << 10) - 1);
    bench.fails(cut());
    assert_eq!(bench.record().num_retries, 1);
    assert_eq!(bench.record().confirmed, Length(MIB + (64 << 10) - 1), "but no byte is lost");
}

#[test]
fn small_gains_add_up_to_progress_over_sessions_and_restarts() {
    let mut bench = running(1);
    bench.arrive(40 << 10);
    bench.fails(cut());
    bench.restart_after(Delay::from_days(1));
    bench.wake();
    bench.feed(Event::Began);
    bench.arrive(30 << 10);
    bench.fails(cut());
    assert_eq!(bench.record().num_retries, 1, "only the first counted");
    assert!(matches!(bench.machine.view(), View::Resuming { .. }));
}

#[test]
fn the_same_bytes_again_are_no_progress() {
    let mut bench = running(1);
    bench.arrive(MIB);
    bench.fails(cut());
    for retries in 1..4 {
        bench.wake();
        bench.feed(Event::Began);
        bench.feed(Event::Progress { held: Length(MIB) });
        bench.fails(cut());
        assert_eq!(bench.record().num_retries, retries);
    }
}

#[test]
fn the_end_alone_can_tell_of_progress() {
    let mut bench = running(1);
    bench.held = MIB;
    bench.fails(cut());
    assert!(matches!(bench.machine.view(), View::Resuming { .. }));
    assert!(bench.record().mirrors[0].served);
}

#[test]
fn of_a_new_version_progress_counts_from_nothing() {
    let mut bench = running(1);
    bench.arrive(8 * MIB);
    bench.fails(cut());
    bench.wake();
    bench.feed(Event::Began);
    let mut dossier = holding(8 * MIB);
    dossier.changes = 1;
    dossier.rival = Some(Draft::default());
    bench.feed(Event::Learned(Box::new(dossier.clone())));
    assert_eq!(bench.record().confirmed, Length::ZERO);
    bench.feed(Event::Progress { held: Length(MIB) });
    dossier.rival = Some(Draft { held: Length(MIB), ..Draft::default() });
    let end = End::Failed(cut());
    bench.feed(Event::Ended(Box::new(crate::core::file_xfer::Outcome { dossier, origin: None, end }), None));
    assert!(matches!(bench.machine.view(), View::Resuming { .. }));
    assert_eq!(bench.record().num_retries, 0);
}

#[test]
fn first_request_time_is_the_start_of_the_first_session_of_this_life() {
    let mut bench = Bench::new(1, Rules::default());
    bench.secs(50);
    bench.feed(Event::Wake);
    assert_eq!(bench.record().first_request_time, None, "wished for is not begun");
    bench.secs(5);
    bench.feed(Event::Began);
    assert_eq!(bench.record().first_request_time, Some(START.wall + Delay::from_secs(55)));
    bench.secs(5);
    bench.fails(status(503));
    bench.wake();
    bench.feed(Event::Began);
    assert_eq!(bench.record().first_request_time, Some(START.wall + Delay::from_secs(55)));
    assert_eq!((bench.record().sessions, bench.record().time_so_far), (2, Delay::from_secs(5)));
}

#[test]
fn what_is_learned_is_saved_at_once() {
    let mut bench = running(1);
    let mut dossier = holding(0);
    dossier.part.total = Some(Length(MIB));
    assert_eq!(bench.feed(Event::Learned(Box::new(dossier))), [Action::Save(Urgency::Now)]);
    assert_eq!(bench.record().nbytes, Some(Length(MIB)));
}

#[test]
fn complete_is_done_with_its_facts_and_over_once() {
    let mut bench = running(1);
    bench.arrive(MIB);
    let actions = bench.completes();
    assert_eq!(actions, [Action::Save(Urgency::Now), Action::Over]);
    let record = bench.record();
    assert_eq!((&record.status, record.nbytes), (&Status::Done, Some(Length(MIB))));
    let facts = record.finished.as_ref().expect("facts");
    assert_eq!((facts.evidence, facts.inode), (Evidence::Validator, 2));
    assert_eq!(bench.feed(Event::Wake), []);
}

#[test]
fn unchanged_keeps_the_facts_of_the_earlier_life() {
    let mut bench = running(1);
    bench.arrive(MIB);
    bench.completes();
    let facts = bench.record().finished.clone();
    assert_eq!(started(&bench.feed(Event::Retry)), [0], "the same command again asks anew");
    bench.feed(Event::Began);
    assert_eq!(overs(&bench.end(End::Unchanged)), 1);
    assert_eq!((&bench.record().finished, &bench.record().status), (&facts, &Status::Done));
}

#[test]
fn too_large_and_ever_changing_speak_of_one_mirror_only() {
    for failure in [Failure::TooLarge { size: Length(9), limit: Length(1) }, Failure::KeepsChanging { times: 9 }] {
        let mut bench = running(2);
        assert_eq!(started(&bench.fails(failure.clone())), [1], "the other mirror is asked");
        bench.feed(Event::Began);
        assert_eq!(overs(&bench.fails(failure)), 1);
        assert_eq!(bench.error_code(), Some(error_code::PERMANENT));
    }
}

#[test]
fn trouble_here_rests_with_the_fault_and_counts_nothing() {
    let mut bench = Bench::new(2, Rules::default());
    bench.wake();
    let actions = bench.feed(Event::Local(disk_full()));
    assert_eq!(actions.last(), Some(&Action::Rest(Some(disk_full()))));
    let mut bench = running(2);
    bench.arrive(MIB);
    let actions = bench.fails(Failure::Local(disk_full()));
    assert_eq!(actions.last(), Some(&Action::Rest(Some(disk_full()))));
    assert_eq!((bench.record().num_retries, bench.record().next_request_time), (0, None));
    bench.restart_after(Delay::from_secs(1));
    assert_eq!(started(&bench.wake()), [0], "with room again it goes on at once");
}

#[test]
fn unwatched_it_is_tried_again_and_the_trouble_is_told_once() {
    let mut bench = Bench::new(1, Rules { on_local_fault: OnLocalFault::TryAgain, ..Rules::default() });
    let told = |actions: &[Action]| actions.iter().filter(|a| matches!(a, Action::Failed { .. })).count();
    bench.wake();
    assert_eq!(told(&bench.begins_and_fails(Failure::Local(disk_full()))), 1);
    for _ in 0..5 {
        assert_eq!(bench.sleeps(), LOCAL_AGAIN);
        assert!(matches!(bench.machine.view(), View::Local { .. }));
        assert_eq!(started(&bench.wake()), [0]);
        assert_eq!(told(&bench.begins_and_fails(Failure::Local(disk_full()))), 0);
    }
    assert_eq!(bench.record().num_retries, 0);
}

#[test]
fn trouble_beside_a_session_stops_it_and_keeps_what_it_held() {
    let mut bench = running(1);
    bench.arrive(MIB);
    assert_eq!(bench.feed(Event::Local(disk_full())), [Action::Cancel]);
    let actions = bench.end(End::Cancelled);
    assert_eq!(actions.last(), Some(&Action::Rest(Some(disk_full()))));
    assert_eq!(bench.record().dossier.part.held, Length(MIB));
}

#[test]
fn a_session_stopped_by_others_is_no_failure() {
    let mut bench = running(2);
    assert!(started(&bench.end(End::Cancelled)).is_empty());
    assert_eq!((bench.record().num_retries, bench.record().history.len()), (0, 0));
    assert_eq!(started(&bench.wake()), [0]);
}

#[test]
fn while_the_network_is_down_a_broken_session_is_nobodys_fault() {
    let mut bench = running(1);
    bench.feed(Event::Paused);
    assert!(started(&bench.fails(cut())).is_empty());
    assert_eq!((bench.machine.view(), bench.wakes()), (View::Paused, None));
    bench.secs(3600);
    assert_eq!(started(&bench.feed(Event::Unpaused)), [0]);
    assert_eq!(bench.record().num_retries, 0);
}

#[test]
fn a_session_that_begins_after_its_wish_was_dropped_is_cancelled() {
    let mut bench = Bench::new(1, Rules::default());
    bench.wake();
    assert!(bench.feed(Event::Suspend).contains(&Action::Cancel));
    assert_eq!(bench.feed(Event::Began), [Action::Cancel]);
    bench.held = MIB;
    bench.end(End::Cancelled);
    assert_eq!(bench.record().dossier.part.held, Length(MIB), "what it held is noted");
    assert_eq!(bench.record().status, Status::Suspended);
}

#[test]
fn a_size_that_there_is_no_room_for_is_one_mirrors_word() {
    let mut bench = Bench::new(2, Rules::default());
    bench.wake();
    let actions = bench.begins_and_fails(Failure::NoRoom(disk_full()));
    assert_eq!(started(&actions), [1], "the other one may tell of less");
    assert_eq!(bench.record().num_retries, 0);
    // It tells the same: then it is this machine's trouble, and nothing counts.
    let actions = bench.begins_and_fails(Failure::NoRoom(disk_full()));
    assert_eq!(actions.last(), Some(&Action::Rest(Some(disk_full()))));
    assert_eq!(bench.record().num_retries, 0);
    assert!(bench.record().mirrors.iter().all(|mirror| !mirror.tried), "both are asked when there is room");
}

#[test]
fn the_odd_ones_are_asked_anew_once_nobody_has_the_version_that_is_held() {
    let odd = || Failure::OddMirror { at: crate::core::range::Offset(7) };
    let mut bench = Bench::new(3, Rules::default());
    bench.wake();
    bench.feed(Event::Began);
    bench.arrive(MIB);
    let mut dossier = bench.record().dossier.clone();
    dossier.part.total = Some(Length(2 * MIB));
    bench.feed(Event::Learned(Box::new(dossier)));
    bench.fails(odd());
    assert!(bench.record().mirrors[0].is_odd(), "the record tells it by the text: {:?}", bench.record().mirrors[0]);
    bench.begins_and_fails(status(401));
    // The last one that could have the version is refused.
    let actions = bench.begins_and_fails(status(401));
    assert!(actions.contains(&Action::DropBytes), "{actions:?}");
    assert_eq!(started(&actions), [0]);
    assert_eq!((bench.record().dossier.changes, bench.record().dossier.part.held), (1, Length::ZERO));
    assert_eq!(bench.record().dossier.part.total, Some(Length(2 * MIB)), "what was known tells a page from the file");
    // Once it is refused for something else, nobody is left.
    bench.held = 0;
    assert_eq!(overs(&bench.begins_and_fails(status(401))), 1);
    assert!(bench.message().contains("401"), "{}", bench.message());
}
