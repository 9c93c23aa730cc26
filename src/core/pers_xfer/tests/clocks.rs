//! Clocks that are set, programs that are away, and the promise that a rebuilt machine wakes when the old one would have.

use proptest::prelude::*;

use super::bench::{Bench, START, cut, later, started, status, url};
use crate::core::backoff::Policy;
use crate::core::machine::Machine;
use crate::core::pers_xfer::{Event, PersFileXfer, Rules};
use crate::core::time::{Delay, Epoch, Now};
use crate::core::verdict::RETRY_AFTER_CAP;

fn set_wall(bench: &mut Bench, wall: Epoch) {
    bench.now = Now { wall, ..bench.now };
}

fn waiting() -> Bench {
    let mut bench = Bench::new(1, Rules::default());
    bench.wake();
    bench.begins_and_fails(status(503));
    bench
}

#[test]
fn a_clock_set_back_or_ahead_moves_no_wait_and_ends_nothing() {
    for days in [-366, -1, 1, 366] {
        let mut bench = waiting();
        let due = bench.wakes();
        let wall = Epoch::from_secs(bench.now.wall.as_micros() / 1_000_000 + days * 86_400);
        set_wall(&mut bench, wall);
        assert_eq!(bench.feed(Event::Wake), [], "{days} days");
        assert_eq!(bench.wakes(), due);
        assert_eq!(started(&bench.wake()), [0]);
    }
}

#[test]
fn what_is_stored_follows_a_clock_that_is_set_during_a_wait() {
    let mut bench = waiting();
    let wait = bench.sleeps();
    let wall = bench.now.wall - Delay::from_days(1);
    set_wall(&mut bench, wall);
    bench.feed(Event::Wake);
    assert_eq!(bench.record().next_request_time, Some(wall + wait));
    bench.restart_after(Delay::ZERO);
    assert_eq!(bench.sleeps(), wait);
}

#[test]
fn a_clock_set_back_in_mid_session_does_not_leave_a_time_ahead() {
    let mut bench = waiting();
    bench.wake();
    bench.feed(Event::Began);
    let wall = bench.now.wall - Delay::from_days(1);
    set_wall(&mut bench, wall);
    bench.arrive(5);
    bench.restart_after(Delay::ZERO);
    assert_eq!(bench.sleeps(), Delay::ZERO);
}

#[test]
fn a_stored_time_further_ahead_than_any_delay_is_clamped() {
    let mut bench = waiting();
    let mut record = bench.record().clone();
    record.next_request_time = Some(bench.now.wall + Delay::from_days(3000));
    record.mirrors[0].not_before = Some(bench.now.wall + Delay::from_days(3000));
    bench = Bench::of(record, Rules::default(), bench.now);
    assert_eq!(bench.sleeps(), RETRY_AFTER_CAP, "a floor of a day at most");
    let mut record = bench.record().clone();
    record.mirrors[0].not_before = None;
    record.next_request_time = Some(bench.now.wall + Delay::from_days(3000));
    bench = Bench::of(record, Rules::default(), bench.now);
    assert_eq!(bench.sleeps(), Rules::default().policy.longest());
}

/// A policy of long delays: the clock goes back over a restart and forth again over the next, and what was never waited for
/// does not count.
#[test]
fn a_clock_set_back_and_ahead_again_does_not_use_up_a_window_of_two_weeks() {
    let rules = Rules { policy: Policy::parse("ladder").expect("a policy"), ..Rules::default() };
    let mut bench = Bench::new(1, rules.clone());
    bench.wake();
    bench.begins_and_fails(status(503));
    let drawn = bench.record().backoff.previous;
    let (back, bound) = (bench.now.wall - Delay::from_days(20), drawn.max(Delay::from_hours(4)));
    bench = Bench::of(bench.record().clone(), rules.clone(), Now { wall: back, ..bench.now });
    assert!(bench.sleeps() <= bound, "{:?} is more than {bound:?}", bench.sleeps());
    let ahead = Now { wall: back + Delay::from_days(40), ..bench.now };
    bench = Bench::of(bench.record().clone(), rules, ahead);
    assert_eq!(started(&bench.wake()), [0]);
    bench.begins_and_fails(status(503));
    assert!(bench.record().patience_used <= bound.saturating_mul(2), "{:?}", bench.record().patience_used);
}

#[test]
fn a_floor_longer_than_any_delay_survives_a_restart() {
    let mut bench = Bench::new(1, Rules::default());
    bench.wake();
    bench.begins_and_fails(later(503, 80_000));
    bench.restart_after(Delay::from_secs(10_000));
    assert_eq!(bench.sleeps(), Delay::from_secs(70_000));
}

#[test]
fn a_clock_ahead_by_a_year_during_a_restart_does_not_end_it() {
    let mut bench = waiting();
    bench.restart_after(Delay::from_days(365));
    assert_eq!(started(&bench.wake()), [0]);
    bench.begins_and_fails(status(503));
    assert!(bench.record().patience_used < Delay::from_hours(5));
}

/// One thing that happens to a transfer.
#[derive(Clone, Debug)]
enum Step {
    Wake,
    Fail(u16, u64),
    CutAfter(u64),
    Pass(u64),
    Retry,
    Suspend,
    Resume,
    HostClosed(u64),
    Mirror(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Wake),
        4 => (prop_oneof![Just(503_u16), Just(404), Just(429)], 0..200_000_u64).prop_map(|(c, s)| Step::Fail(c, s)),
        2 => (0..200_000_u64).prop_map(Step::CutAfter),
        3 => (0..20_000_u64).prop_map(Step::Pass),
        1 => Just(Step::Retry),
        1 => Just(Step::Suspend),
        1 => Just(Step::Resume),
        1 => (0..100_000_u64).prop_map(Step::HostClosed),
        1 => (0..6_usize).prop_map(Step::Mirror),
    ]
}

fn apply(bench: &mut Bench, step: &Step) {
    match step {
        Step::Wake if bench.wakes().is_some() => drop(bench.wake()),
        Step::Wake => {}
        Step::Fail(code, secs) => drop(bench.begins_and_fails(later(*code, *secs))),
        Step::CutAfter(bytes) => {
            bench.feed(Event::Began);
            bench.arrive(*bytes);
            bench.fails(cut());
        }
        Step::Pass(secs) => {
            bench.secs(*secs);
            bench.feed(Event::Wake);
        }
        Step::Retry => drop(bench.feed(Event::Retry)),
        Step::Suspend => drop(bench.feed(Event::Suspend)),
        Step::Resume => drop(bench.feed(Event::Resume)),
        Step::HostClosed(secs) => {
            // Longer than the policy's longest delay no host backs off.
            let until = bench.now.mono + Delay::from_secs(*secs % 14_400);
            bench.feed(Event::HostClosed { until });
        }
        Step::Mirror(n) => drop(bench.feed(Event::Mirrors(vec![url(*n)]))),
    }
}

proptest! {
    /// At any moment: a machine built from the record wakes when the old one would have, or, where that waits for an
    /// answer from outside, at once.
    #[test]
    fn a_machine_rebuilt_from_its_record_wakes_when_the_old_one_would_have(
        steps in proptest::collection::vec(step(), 1..40),
        mirrors in 1..4_usize,
    ) {
        let mut bench = Bench::new(mirrors, Rules::default());
        for step in &steps {
            apply(&mut bench, step);
            let rebuilt = PersFileXfer::from_record(bench.record().clone(), Rules::default(), bench.now);
            let (old, new) = (bench.wakes(), rebuilt.wake_at());
            match bench.machine.view() {
                crate::core::pers_xfer::View::Running { .. } | crate::core::pers_xfer::View::Slot { .. } => {
                    let suspended = bench.record().status == crate::core::pers_xfer::record::Status::Suspended;
                    prop_assert_eq!(new, (!suspended).then_some(bench.now.mono));
                }
                _ => prop_assert_eq!(new, old, "after {:?}", step),
            }
            // Built anew from what that one would store, it changes nothing more.
            let again = PersFileXfer::from_record(rebuilt.record().clone(), Rules::default(), bench.now);
            prop_assert_eq!(again.record(), rebuilt.record());
        }
    }

    /// However the wall clock stands at a restart, the wait is not longer than before and never without end.
    #[test]
    fn no_clock_freezes_a_transfer(shift in -4_000_000_000_i64..4_000_000_000) {
        let bench = waiting();
        let wait = Rules::default().policy.longest();
        let wall = Epoch::from_secs(START.wall.as_micros() / 1_000_000 + shift);
        let rebuilt = PersFileXfer::from_record(bench.record().clone(), Rules::default(), Now { wall, ..bench.now });
        let due = rebuilt.wake_at().expect("it wakes");
        prop_assert!(due.since(bench.now.mono) <= wait);
    }
}
