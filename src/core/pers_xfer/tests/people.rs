//! What people want: retry, suspend, resume, abort.

use super::bench::{Bench, MIB, cut, later, overs, started, status};
use crate::core::file_xfer::End;
use crate::core::pers_xfer::record::{Standing, Status, error_code};
use crate::core::pers_xfer::{Action, Event, Rules, Urgency, View};
use crate::core::range::Length;
use crate::core::time::Delay;

fn running(mirrors: usize) -> Bench {
    let mut bench = Bench::new(mirrors, Rules::default());
    bench.wake();
    bench.feed(Event::Began);
    bench
}

#[test]
fn retry_cuts_a_backoff_short_and_counts_nothing() {
    let mut bench = running(1);
    bench.fails(status(503));
    let actions = bench.feed(Event::Retry);
    assert_eq!(started(&actions), [0]);
    assert_eq!((bench.record().num_retries, bench.record().next_request_time), (1, None));
}

#[test]
fn retry_does_not_overrule_a_servers_retry_after() {
    let mut bench = running(1);
    bench.fails(later(503, 600));
    assert!(started(&bench.feed(Event::Retry)).is_empty());
    assert!(matches!(bench.machine.view(), View::RetryAfter { .. }));
    assert_eq!(bench.sleeps(), Delay::from_mins(10));
}

#[test]
fn retry_overrules_the_backoff_of_a_host() {
    let mut bench = Bench::new(1, Rules::default());
    bench.wake();
    let until = bench.now.mono + Delay::from_hours(1);
    bench.feed(Event::HostClosed { until });
    assert_eq!(started(&bench.feed(Event::Retry)), [0]);
}

#[test]
fn a_host_that_opens_wakes_who_waits_for_it_and_nobody_else() {
    let other = crate::core::url::Origin::parse("http://other.example").expect("an origin");
    for restarted in [false, true] {
        let mut bench = Bench::new(1, Rules::default());
        bench.wake();
        let until = bench.now.mono + Delay::from_hours(1);
        bench.feed(Event::HostClosed { until });
        if restarted {
            bench.restart_after(Delay::from_mins(1));
        }
        assert!(matches!(bench.machine.view(), View::Host { .. }), "restarted: {restarted}");
        assert!(started(&bench.feed(Event::HostOpened(other.clone()))).is_empty());
        let host = super::bench::url(0).origin();
        assert_eq!(started(&bench.feed(Event::HostOpened(host.clone()))), [0]);
    }
    // A wait of its own is not the host's business.
    let mut bench = running(1);
    bench.fails(cut());
    assert!(matches!(bench.machine.view(), View::Backoff { .. }));
    assert!(started(&bench.feed(Event::HostOpened(super::bench::url(0).origin()))).is_empty());
}

#[test]
fn a_failed_record_stays_failed_until_retry_begins_a_new_life() {
    let mut bench = running(2);
    bench.arrive(MIB);
    bench.fails(cut());
    bench.wake();
    bench.feed(Event::Abort);
    bench.restart_after(Delay::from_days(1));
    assert_eq!((bench.wakes(), bench.feed(Event::Wake)), (None, vec![]));
    bench.feed(Event::Mirrors(vec![super::bench::url(9)]));
    assert_eq!(bench.wakes(), None, "a new mirror alone wakes nothing that has failed");
    let before = bench.record().dossier.clone();
    assert_eq!(started(&bench.feed(Event::Retry)), [1], "whose bytes are held goes first, whoever is listed first");
    let record = bench.record();
    assert_eq!(record.status, Status::Pending);
    assert_eq!((record.num_retries, record.sessions, record.first_request_time), (0, 0, None));
    assert_eq!((record.dossier.clone(), record.confirmed), (before, Length(MIB)), "bytes and validators are kept");
    assert!(record.mirrors.iter().all(|m| m.standing == Standing::Usable && !m.served && !m.tried));
}

#[test]
fn each_life_is_over_once() {
    let mut bench = Bench::new(1, Rules::default());
    bench.wake();
    for _ in 0..3 {
        let mut all = bench.begins_and_fails(status(404));
        for event in [Event::Wake, Event::Abort, Event::Suspend, Event::Resume, Event::Unpaused] {
            all.extend(bench.feed(event));
        }
        assert_eq!(overs(&all), 1);
        assert_eq!(started(&bench.feed(Event::Retry)), [0], "every verdict is forgotten");
    }
}

#[test]
fn suspend_stops_the_session_and_keeps_the_time_resume_goes_on() {
    let mut bench = running(1);
    bench.arrive(MIB);
    assert_eq!(bench.feed(Event::Suspend), [Action::Cancel, Action::Save(Urgency::Now)]);
    assert_eq!(bench.record().status, Status::Suspended);
    bench.held += 5;
    bench.end(End::Cancelled);
    assert_eq!(bench.record().dossier.part.held, Length(MIB + 5));
    assert_eq!((bench.machine.view(), bench.wakes()), (View::Suspended, None));
    bench.secs(60);
    assert_eq!(bench.feed(Event::Wake), []);
    assert_eq!(started(&bench.feed(Event::Resume)), [0]);
    assert_eq!(bench.record().num_retries, 0);
}

#[test]
fn suspended_over_a_restart_it_stays_so() {
    let mut bench = running(1);
    bench.fails(status(503));
    bench.feed(Event::Suspend);
    bench.restart_after(Delay::from_days(1));
    assert_eq!((bench.machine.view(), bench.wakes()), (View::Suspended, None));
    assert!(started(&bench.feed(Event::Retry)).is_empty(), "a retry does not resume");
    assert_eq!(started(&bench.feed(Event::Resume)), [0]);
}

#[test]
fn a_wait_goes_on_where_it_was_suspended() {
    let mut bench = running(1);
    bench.fails(status(503));
    let due = bench.wakes();
    bench.feed(Event::Suspend);
    bench.secs(10);
    assert!(started(&bench.feed(Event::Resume)).is_empty());
    assert_eq!(bench.wakes(), due);
}

#[test]
fn abort_while_running_waits_for_the_end_of_the_session() {
    let mut bench = running(1);
    assert_eq!(bench.feed(Event::Abort), [Action::Cancel, Action::Save(Urgency::Now)]);
    assert_eq!(bench.error_code(), Some(error_code::ABORTED), "what is stored now says so already");
    assert_eq!(bench.feed(Event::Abort), []);
    bench.held = MIB;
    assert_eq!(overs(&bench.end(End::Cancelled)), 1);
    assert_eq!(bench.error_code(), Some(error_code::ABORTED));
    assert_eq!(bench.record().dossier.part.held, Length(MIB));
}

#[test]
fn abort_while_waiting_suspended_or_without_a_slot_is_over_at_once() {
    let mut waiting = running(1);
    waiting.fails(status(503));
    assert_eq!(overs(&waiting.feed(Event::Abort)), 1);
    let mut suspended = running(1);
    suspended.fails(status(503));
    suspended.feed(Event::Suspend);
    assert_eq!(overs(&suspended.feed(Event::Abort)), 1);
    let mut wished = Bench::new(1, Rules::default());
    wished.wake();
    let actions = wished.feed(Event::Abort);
    assert_eq!((actions.first(), overs(&actions)), (Some(&Action::Cancel), 1));
}
