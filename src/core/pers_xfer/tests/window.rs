//! The give-up window: later than what, and what ends it.

use super::bench::{Bench, MIB, cut, disk_full, later, overs, started, status};
use crate::core::file_xfer::End;
use crate::core::pers_xfer::record::{Status, error_code};
use crate::core::pers_xfer::{Action, Event, OnLocalFault, Rules, Urgency, View};
use crate::core::range::Length;
use crate::core::time::Delay;
use crate::core::verdict::Class;

const WINDOW: Delay = Delay::from_hours(2);

fn rules() -> Rules {
    Rules { give_up: WINDOW, ..Rules::default() }
}

fn running(mirrors: usize) -> Bench {
    let mut bench = Bench::new(mirrors, rules());
    bench.wake();
    bench.feed(Event::Began);
    bench
}

/// Fails every session until the transfer is over; how long that took.
fn dies_after(bench: &mut Bench) -> Delay {
    let begun = bench.now.mono;
    loop {
        let mut actions = bench.wake();
        while !started(&actions).is_empty() {
            actions = bench.begins_and_fails(status(503));
        }
        if overs(&actions) > 0 {
            return bench.now.mono.since(begun);
        }
    }
}

#[test]
fn dead_mirrors_one_to_four_end_on_time_by_a_timer_once() {
    for mirrors in 1..=4 {
        let mut bench = Bench::new(mirrors, rules());
        assert_eq!(dies_after(&mut bench), WINDOW, "{mirrors} mirrors");
        assert_eq!(bench.error_code(), Some(error_code::GAVE_UP));
        assert_eq!(bench.record().failed_class(), Some(Class::GaveUp));
        assert!(bench.message().contains("gave up") && bench.message().contains("503"), "{}", bench.message());
        assert_eq!(bench.feed(Event::Wake), []);
    }
}

#[test]
fn a_floor_beyond_the_window_does_not_outlast_it() {
    let mut bench = running(1);
    bench.fails(later(503, 86_400));
    assert_eq!(bench.sleeps(), WINDOW);
    assert_eq!(overs(&bench.wake()), 1);
}

#[test]
fn the_window_counts_from_the_last_progress() {
    let mut bench = running(1);
    bench.pass(Delay::from_mins(90));
    bench.arrive(MIB);
    bench.fails(cut());
    bench.wake();
    bench.begins_and_fails(status(503));
    assert_eq!(dies_after(&mut bench).saturating_add(Delay::from_secs(1)), WINDOW);
}

#[test]
fn before_the_first_session_the_window_does_not_run() {
    let mut bench = Bench::new(1, rules());
    bench.wake();
    bench.pass(Delay::from_days(30));
    assert_eq!((bench.feed(Event::Wake), bench.wakes()), (vec![], None));
    bench.feed(Event::Began);
    assert_eq!(bench.sleeps(), WINDOW);
}

#[test]
fn a_running_session_without_bytes_is_cancelled_and_over_when_it_has_ended() {
    let mut bench = running(1);
    assert_eq!(bench.wake(), [Action::Cancel, Action::Save(Urgency::Now)]);
    assert_eq!(bench.wakes(), None);
    bench.held = MIB;
    assert_eq!(overs(&bench.end(End::Cancelled)), 1);
    assert_eq!(bench.error_code(), Some(error_code::GAVE_UP));
    assert_eq!(bench.record().dossier.part.held, Length(MIB), "what it held at last is kept");
}

#[test]
fn bytes_that_make_no_progress_do_not_keep_a_session_alive() {
    let mut bench = running(1);
    for _ in 0..143 {
        bench.secs(50);
        bench.arrive(50);
        assert_eq!(bench.feed(Event::Wake), [], "{:?}", bench.now);
    }
    assert_eq!(bench.sleeps(), Delay::from_secs(50), "to the end of the window, whenever the last byte came");
    bench.secs(49);
    bench.arrive(50);
    assert_eq!(bench.wake(), [Action::Cancel, Action::Save(Urgency::Now)]);
    assert_eq!(overs(&bench.end(End::Cancelled)), 1);
    assert_eq!(bench.error_code(), Some(error_code::GAVE_UP));
    assert_eq!(bench.record().dossier.part.held, Length(144 * 50), "what it held is kept");
}

#[test]
fn progress_however_slow_keeps_a_session_alive() {
    let mut bench = running(1);
    for _ in 0..300 {
        bench.secs(7_100);
        bench.arrive(64 << 10);
        assert_eq!(bench.feed(Event::Wake), [], "{:?}", bench.now);
        assert_eq!(bench.sleeps(), WINDOW);
    }
}

#[test]
fn complete_after_the_cancel_is_complete() {
    let mut bench = running(1);
    bench.wake();
    assert_eq!(overs(&bench.completes()), 1);
    assert_eq!(bench.record().status, Status::Done);
}

#[test]
fn time_in_which_nothing_could_be_tried_does_not_count() {
    let pauses: [(Event, Event); 2] = [(Event::Suspend, Event::Resume), (Event::Paused, Event::Unpaused)];
    for (pause, go_on) in pauses {
        let mut bench = running(1);
        bench.fails(status(503));
        bench.feed(pause);
        assert_eq!(bench.wakes(), None);
        bench.pass(Delay::from_days(99));
        assert_eq!(started(&bench.feed(go_on)), [0]);
        bench.begins_and_fails(status(503));
        assert_eq!(dies_after(&mut bench), WINDOW);
    }
}

#[test]
fn waiting_for_a_slot_and_trouble_here_do_not_count() {
    let mut bench = Bench::new(1, Rules { on_local_fault: OnLocalFault::TryAgain, ..rules() });
    bench.wake();
    bench.begins_and_fails(crate::core::failure::Failure::Local(disk_full()));
    bench.pass(Delay::from_days(3));
    assert_eq!(started(&bench.feed(Event::Wake)), [0]);
    bench.pass(Delay::from_days(3));
    assert_eq!(bench.feed(Event::Wake), []);
    bench.begins_and_fails(status(503));
    assert_eq!(dies_after(&mut bench), WINDOW);
}

#[test]
fn while_the_program_does_not_run_only_the_wait_that_was_due_counts() {
    let mut bench = running(1);
    bench.fails(status(503));
    let due = bench.sleeps();
    bench.restart_after(Delay::from_days(400));
    assert_eq!(bench.record().patience_used, due);
    assert_eq!(started(&bench.wake()), [0]);
    bench.begins_and_fails(status(503));
    assert_eq!(dies_after(&mut bench).saturating_add(due), WINDOW);
}

#[test]
fn a_window_that_passes_while_the_program_is_away_leaves_one_more_try() {
    let mut bench = running(1);
    bench.fails(later(503, 7200));
    bench.restart_after(Delay::from_days(1));
    assert_eq!(started(&bench.wake()), [0]);
    assert_eq!(overs(&bench.begins_and_fails(status(503))), 0);
    assert!(bench.sleeps() <= Delay::from_mins(1));
    assert_eq!(overs(&bench.wake()), 1);
}

#[test]
fn first_request_is_boincs_own_rule() {
    let boinc = Rules { give_up_from: crate::core::giveup::GiveUpFrom::FirstRequest, ..rules() };
    let mut bench = Bench::new(1, boinc);
    bench.wake();
    bench.feed(Event::Began);
    bench.pass(Delay::from_mins(90));
    bench.arrive(MIB);
    bench.fails(cut());
    bench.wake();
    bench.begins_and_fails(status(503));
    let left = Delay::from_mins(30);
    let took = dies_after(&mut bench).saturating_add(Delay::from_secs(1));
    assert_eq!(took.as_secs(), left.as_secs(), "progress does not prolong it");
    assert!(bench.message().contains("not complete"), "{}", bench.message());
}

#[test]
fn a_window_of_one_second_still_asks_every_mirror_of_the_first_pass() {
    let mut bench = Bench::new(3, Rules { give_up: Delay::from_secs(1), ..Rules::default() });
    bench.wake();
    assert_eq!(started(&bench.begins_and_fails(status(503))), [1]);
    assert_eq!(started(&bench.begins_and_fails(status(503))), [2]);
    bench.begins_and_fails(status(503));
    assert!(matches!(bench.machine.view(), View::Backoff { .. }));
    assert_eq!(bench.sleeps(), Delay::from_secs(1));
    assert_eq!(overs(&bench.wake()), 1);
}
