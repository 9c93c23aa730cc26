//! Passes: every usable mirror once, what a failed pass counts, floors, refusals, `--once`.

use super::bench::{Bench, START, cut, later, overs, start, started, status, url};
use crate::core::failure::Failure;
use crate::core::mirrors::PASSES_TO_REFUSE;
use crate::core::pers_xfer::record::{Standing, error_code};
use crate::core::pers_xfer::{Action, Event, Rounds, Rules, View};
use crate::core::time::{Delay, Mono, Now};
use crate::core::verdict::Class;

fn once() -> Rules {
    Rules { rounds: Rounds::Once, ..Rules::default() }
}

#[test]
fn a_pass_asks_every_mirror_at_once_in_order_and_counts_one_retry() {
    let mut bench = Bench::new(3, Rules::default());
    assert_eq!(bench.wake(), [start(0)]);
    assert_eq!(started(&bench.begins_and_fails(status(503))), [1]);
    assert_eq!(started(&bench.begins_and_fails(status(503))), [2]);
    assert_eq!(bench.record().num_retries, 0, "no pass has failed yet");
    assert!(started(&bench.begins_and_fails(status(503))).is_empty());
    assert_eq!((bench.record().num_retries, bench.record().sessions), (1, 3));
    assert_eq!(bench.record().next_request_time, Some(bench.now.wall + bench.sleeps()));
    assert!((60..=75).contains(&bench.sleeps().as_secs()), "{:?}", bench.sleeps());
    assert!(matches!(bench.machine.view(), View::Backoff { retries: 1, last: Some(_), .. }));
    assert_eq!(started(&bench.wake()), [0]);
}

/// A slow mirror is left for one that may serve, once; not again and again for one that is known to fail.
#[test]
fn a_mirror_that_failed_is_no_more_unasked_in_later_passes() {
    let mut bench = Bench::new(2, Rules::default());
    let unasked = |bench: &Bench| [0, 1].map(|n| bench.machine.is_unasked(&url(n)));
    bench.wake();
    assert_eq!(unasked(&bench), [true, true]);
    bench.begins_and_fails(Failure::Stalled { floor: 273, window: Delay::from_secs(15) });
    assert_eq!(unasked(&bench), [false, true]);
    bench.begins_and_fails(status(503));
    assert_eq!(started(&bench.wake()).len(), 1, "another pass begins");
    assert_eq!(unasked(&bench), [false, false]);
}

#[test]
fn nothing_is_asked_before_the_wait_is_over() {
    let mut bench = Bench::new(1, Rules::default());
    bench.wake();
    bench.begins_and_fails(status(503));
    let wait = bench.sleeps();
    bench.pass(wait.saturating_sub(Delay::from_micros(1)));
    assert_eq!(bench.feed(Event::Wake), []);
    bench.pass(Delay::from_micros(1));
    assert_eq!(bench.feed(Event::Wake), [start(0)]);
}

#[test]
fn one_busy_and_one_missing_mirror_is_no_final_failure() {
    let mut bench = Bench::new(2, Rules::default());
    bench.wake();
    bench.begins_and_fails(status(503));
    let actions = bench.begins_and_fails(status(404));
    assert_eq!(overs(&actions), 0);
    assert_eq!(started(&bench.wake()), [0], "the missing one is refused, the busy one is asked again");
    assert!(started(&bench.begins_and_fails(status(503))).is_empty());
    assert_eq!(bench.record().num_retries, 2);
}

#[test]
fn every_mirror_refused_ends_it_once_and_the_message_names_them() {
    let mut bench = Bench::new(2, Rules::default());
    bench.wake();
    let first = bench.begins_and_fails(status(404));
    assert!(first.contains(&Action::Failed { mirror: 0, failure: status(404), class: Class::Missing, refused: true }));
    assert_eq!(overs(&bench.begins_and_fails(status(410))), 1);
    assert_eq!(bench.error_code(), Some(error_code::PERMANENT));
    assert_eq!(bench.record().failed_class(), Some(Class::Gone));
    let message = bench.message();
    assert!(message.contains("m0.example/file (missing)") && message.contains("(gone)"), "{message}");
    assert_eq!(bench.record().num_retries, 0);
    assert_eq!(bench.wakes(), None);
    assert_eq!(bench.machine.view(), View::Over);
}

#[test]
fn what_has_served_and_is_missing_is_refused_after_three_passes() {
    let mut bench = Bench::new(1, Rules::default());
    bench.wake();
    bench.feed(Event::Began);
    bench.arrive(1 << 20);
    bench.fails(cut());
    for pass in 1..PASSES_TO_REFUSE {
        bench.wake();
        assert_eq!(overs(&bench.begins_and_fails(status(404))), 0, "pass {pass}");
        assert_eq!(bench.record().num_retries, pass);
    }
    bench.wake();
    assert_eq!(overs(&bench.begins_and_fails(status(404))), 1);
    assert_eq!(bench.error_code(), Some(error_code::PERMANENT));
    assert!(bench.message().contains("404"), "{}", bench.message());
}

#[test]
fn another_failure_between_breaks_the_row_of_missing_answers() {
    let mut bench = Bench::new(1, Rules::default());
    bench.wake();
    bench.feed(Event::Began);
    bench.arrive(1 << 20);
    bench.fails(cut());
    for failure in [404, 404, 503, 404, 404] {
        bench.wake();
        assert_eq!(overs(&bench.begins_and_fails(status(failure))), 0);
    }
}

#[test]
fn retry_after_is_a_floor_for_its_mirror_and_others_go_on_meanwhile() {
    let mut bench = Bench::new(2, Rules::default());
    bench.wake();
    assert_eq!(started(&bench.begins_and_fails(later(503, 3600))), [1]);
    bench.begins_and_fails(status(503));
    let asked_again = bench.now.wall + Delay::from_hours(1);
    assert_eq!(bench.record().mirrors[0].not_before, Some(asked_again));
    while bench.now.wall + bench.sleeps() < asked_again {
        assert_eq!(started(&bench.wake()), [1], "the held mirror is passed over");
        bench.begins_and_fails(status(503));
    }
    assert_eq!(started(&bench.wake()), [0], "and asked when its time has come");
    assert_eq!(bench.record().mirrors[0].not_before, None);
}

#[test]
fn alone_a_mirror_held_back_is_waited_for_and_the_drawn_delay_too() {
    let mut bench = Bench::new(1, Rules::default());
    bench.wake();
    bench.begins_and_fails(later(429, 3600));
    assert_eq!(bench.sleeps(), Delay::from_hours(1));
    assert!(matches!(bench.machine.view(), View::RetryAfter { origin, .. } if origin == url(0).origin()));
    bench.wake();
    bench.begins_and_fails(later(429, 2));
    assert!(bench.sleeps() >= Delay::from_secs(60), "the drawn delay is longer than the floor");
    assert!(matches!(bench.machine.view(), View::Backoff { retries: 2, .. }));
}

#[test]
fn retry_after_holds_back_the_other_mirrors_of_that_origin() {
    let mut bench = Bench::new(1, Rules::default());
    let sibling = crate::core::url::MirrorUrl::parse("http://m0.example/other").expect("a URL");
    bench.feed(Event::Mirrors(vec![url(0), sibling, url(1)]));
    let mut dossier = bench.record().dossier.clone();
    dossier.changes = 0;
    let outcome = crate::core::file_xfer::Outcome {
        dossier,
        origin: Some(url(0).origin()),
        end: crate::core::file_xfer::End::Failed(later(503, 600)),
    };
    bench.feed(Event::Began);
    let actions = bench.feed(Event::Ended(Box::new(outcome), None));
    assert_eq!(started(&actions), [2], "the sibling is passed over");
}

#[test]
fn a_closed_host_costs_nothing_and_another_mirror_is_asked() {
    let mut bench = Bench::new(2, Rules::default());
    bench.wake();
    let until = bench.now.mono + Delay::from_mins(10);
    assert_eq!(bench.feed(Event::HostClosed { until }), [start(1)]);
    assert!(started(&bench.feed(Event::HostClosed { until: until + Delay::from_mins(1) })).is_empty());
    assert_eq!((bench.record().num_retries, bench.record().sessions), (0, 0));
    assert!(matches!(bench.machine.view(), View::Host { origin, .. } if origin == url(0).origin()));
    assert_eq!(bench.sleeps(), Delay::from_mins(10));
    assert_eq!(started(&bench.wake()), [0]);
}

#[test]
fn a_host_closed_until_now_is_not_asked_in_a_circle() {
    let mut bench = Bench::new(1, Rules::default());
    bench.wake();
    let until = bench.now.mono;
    assert!(started(&bench.feed(Event::HostClosed { until })).is_empty());
    assert!(bench.sleeps() >= Delay::from_secs(1));
}

#[test]
fn once_is_one_session_a_mirror_then_the_pass_is_written_as_boinc_would() {
    let mut bench = Bench::new(2, once());
    bench.wake();
    bench.feed(Event::Began);
    bench.arrive(1 << 20);
    assert_eq!(started(&bench.fails(cut())), [1], "progress does not buy a second session");
    let actions = bench.begins_and_fails(status(503));
    assert_eq!(actions.last(), Some(&Action::Rest(None)));
    assert_eq!((bench.record().num_retries, bench.record().sessions), (1, 2));
    let wait = bench.record().next_request_time.expect("a time").since(bench.now.wall);
    assert!((60..=75).contains(&wait.as_secs()), "{wait:?}");
    assert_eq!(bench.wakes(), None);
    assert_eq!(bench.feed(Event::Wake), []);
}

#[test]
fn once_before_its_time_rests_without_asking() {
    let mut bench = Bench::new(1, once());
    bench.wake();
    bench.begins_and_fails(status(503));
    bench.restart_after(Delay::from_secs(10));
    let actions = bench.wake();
    assert_eq!((started(&actions).len(), actions.last()), (0, Some(&Action::Rest(None))));
    bench.restart_after(Delay::from_mins(2));
    assert_eq!(started(&bench.wake()), [0]);
}

#[test]
fn a_pass_interrupted_by_the_end_of_the_process_goes_on_with_the_untried_mirrors() {
    let mut bench = Bench::new(3, Rules::default());
    bench.wake();
    bench.begins_and_fails(status(503));
    bench.restart_after(Delay::from_hours(1));
    assert_eq!(started(&bench.wake()), [1]);
}

#[test]
fn fresh_mirrors_wake_it_and_known_ones_do_not() {
    let mut bench = Bench::new(2, Rules::default());
    bench.wake();
    bench.begins_and_fails(status(404));
    bench.begins_and_fails(status(503));
    let before = bench.wakes();
    assert!(started(&bench.feed(Event::Mirrors(vec![url(1)]))).is_empty());
    assert_eq!(bench.wakes(), before);
    assert_eq!(started(&bench.feed(Event::Mirrors(vec![url(5), url(0)]))), [0]);
    let list = &bench.record().mirrors;
    assert_eq!(list.iter().map(|m| m.url.clone()).collect::<Vec<_>>(), [url(5), url(0), url(1)]);
    assert!(matches!(list[1].standing, Standing::Refused { class: Class::Missing, .. }), "its standing is kept");
}

#[test]
fn a_running_session_keeps_its_mirror_when_the_list_changes() {
    let mut bench = Bench::new(1, Rules::default());
    bench.wake();
    bench.feed(Event::Began);
    bench.feed(Event::Mirrors(vec![url(3), url(4)]));
    assert_eq!(bench.machine.view(), View::Running { mirror: 2 });
    assert_eq!(started(&bench.fails(status(404))), [0]);
    assert!(matches!(bench.record().mirrors[2].standing, Standing::Refused { .. }));
}

#[test]
fn retry_on_keeps_a_status_transient_until_the_window_ends() {
    let mut bench = Bench::new(1, Rules { retry_on: vec![404], ..Rules::default() });
    for _ in 0..10 {
        bench.wake();
        assert_eq!(overs(&bench.begins_and_fails(status(404))), 0);
    }
    assert_eq!(bench.record().num_retries, 10);
}

#[test]
fn the_history_keeps_the_newest_failures() {
    let mut bench = Bench::new(1, Rules::default());
    for i in 0..20 {
        bench.wake();
        bench.begins_and_fails(Failure::NoAnswer { waited: Delay::from_secs(i) });
    }
    let history = &bench.record().history;
    assert_eq!(history.len(), crate::core::pers_xfer::record::HISTORY);
    assert!(history.last().expect("one").text.contains("19"));
}

#[test]
fn a_failed_pass_is_saved_at_once_and_a_failed_session_later() {
    use crate::core::pers_xfer::Urgency;
    let mut bench = Bench::new(2, Rules::default());
    bench.wake();
    let first = bench.begins_and_fails(status(503));
    assert!(first.contains(&Action::Save(Urgency::Later)) && !first.contains(&Action::Save(Urgency::Now)));
    assert!(bench.begins_and_fails(status(503)).contains(&Action::Save(Urgency::Now)));
}

#[test]
fn a_new_machine_wants_to_be_woken_at_once() {
    let bench = Bench::new(1, Rules::default());
    assert_eq!(bench.wakes(), Some(START.mono));
    let idle = Bench::of(bench.record().clone(), once(), Now { mono: Mono::ZERO, ..START });
    assert_eq!(idle.wakes(), Some(Mono::ZERO));
}
