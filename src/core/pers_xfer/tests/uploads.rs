//! Uploads: what is kept of sessions, which server goes first, what ends an upload for good, and what is left to clean up.

use super::bench::{Bench, MIB, START, overs, started, url};
use crate::core::failure::{Cut, Failure, LocalFault};
use crate::core::file_xfer::dossier::Dossier;
use crate::core::file_xfer::{End, Outcome};
use crate::core::pers_xfer::record::{Evidence, Record, Standing, Status, XferId, error_code};
use crate::core::pers_xfer::{Action, Event, Rules, Urgency, View};
use crate::core::range::{Length, Offset};
use crate::core::upload::{Call, Change, Persist, Protocol, Source, Stamp, UpFailure, UploadSession};

const SIZE: u64 = 100 * MIB;

fn upload(servers: usize) -> Bench {
    let urls: Vec<_> = (0..servers).map(url).collect();
    let record = Record::upload(XferId(9), "file".into(), "/srv/file".into(), &urls);
    Bench::of(Record { nbytes: Some(Length(SIZE)), ..record }, Rules::default(), START)
}

fn source(mtime_ns: i128) -> Source {
    Source { stamp: Stamp { size: Length(SIZE), mtime_ns }, mark: None, digest: None }
}

fn session(server: usize, confirmed: u64) -> UploadSession {
    let fresh = UploadSession::new(Protocol::Tus, url(server), source(1), START.wall);
    UploadSession { confirmed: Offset(confirmed), ..fresh }
}

fn kept(bench: &mut Bench, session: UploadSession, persist: Persist) -> Vec<Action> {
    bench.feed(Event::Kept(Box::new(session), persist))
}

fn ends(bench: &mut Bench, end: End) -> Vec<Action> {
    bench.feed(Event::Ended(Box::new(Outcome { dossier: Dossier::default(), origin: None, end }), None))
}

fn fails(bench: &mut Bench, failure: UpFailure) -> Vec<Action> {
    ends(bench, End::Failed(failure.into_failure("/srv/file")))
}

fn cut() -> UpFailure {
    UpFailure::Transfer(Failure::Cut(Cut::Broken { detail: "reset".into() }))
}

fn refused(code: u16) -> UpFailure {
    UpFailure::Status { protocol: Protocol::Tus, call: Call::Prepare, code, retry_after: None, said: String::new() }
}

#[test]
fn what_must_be_on_disk_first_is_saved_at_once_and_offsets_are_not() {
    let mut bench = upload(1);
    bench.wake();
    bench.feed(Event::Began);
    assert!(kept(&mut bench, session(0, 0), Persist::Now).contains(&Action::Save(Urgency::Now)));
    assert!(kept(&mut bench, session(0, MIB), Persist::Soon).contains(&Action::Save(Urgency::Later)));
    assert_eq!(bench.record().uploads.len(), 1, "one record a server and protocol");
    assert_eq!(bench.record().held(), Length(MIB));
    assert_eq!(bench.record().confirmed, Length(MIB));
}

#[test]
fn confirmed_growth_is_progress_and_what_was_sent_is_not() {
    let mut bench = upload(2);
    bench.wake();
    bench.feed(Event::Began);
    kept(&mut bench, session(0, 0), Persist::Now);
    assert_eq!(started(&fails(&mut bench, cut())), [1], "nothing was confirmed: the next server");
    bench.feed(Event::Began);
    kept(&mut bench, session(1, MIB), Persist::Soon);
    assert!(started(&fails(&mut bench, cut())).is_empty());
    assert!(matches!(bench.machine.view(), View::Resuming { .. }));
    assert_eq!(started(&bench.wake()), [1]);
    assert_eq!(bench.record().num_retries, 0);
}

#[test]
fn the_server_that_holds_most_goes_first_where_that_is_more_than_a_quarter() {
    for (held, first) in [(SIZE / 5, 0), (SIZE / 2, 2)] {
        let mut bench = upload(3);
        let record = Record { uploads: vec![session(1, 9), session(2, held)], ..bench.record().clone() };
        bench = Bench::of(record, Rules::default(), START);
        assert_eq!(started(&bench.wake()), [first], "{held} held");
    }
}

#[test]
fn another_file_begins_from_nothing() {
    let mut bench = upload(1);
    bench.wake();
    bench.feed(Event::Began);
    kept(&mut bench, session(0, SIZE / 2), Persist::Soon);
    let edited = UploadSession { source: source(2), ..session(0, 0) };
    kept(&mut bench, edited, Persist::Now);
    assert_eq!((bench.record().confirmed, bench.record().held()), (Length::ZERO, Length::ZERO));
    let regrown = UploadSession { source: source(2), ..session(0, MIB) };
    kept(&mut bench, regrown, Persist::Soon);
    fails(&mut bench, cut());
    assert!(matches!(bench.machine.view(), View::Resuming { .. }), "what is confirmed of the new file is progress");
}

#[test]
fn a_file_that_changed_under_way_ends_it_and_one_that_is_gone_does_not() {
    let mut bench = upload(2);
    bench.wake();
    bench.feed(Event::Began);
    let actions = fails(&mut bench, UpFailure::SourceChanged(Change::Time));
    assert_eq!(overs(&actions), 1);
    assert!(bench.message().contains("changed while it was sent"), "{}", bench.message());
    let mut bench = upload(2);
    bench.wake();
    bench.feed(Event::Began);
    let actions = fails(&mut bench, UpFailure::SourceGone { detail: "no such file".into() });
    let rests = actions.iter().any(|a| matches!(a, Action::Rest(Some(LocalFault::Io { .. }))));
    assert!(rests && bench.record().num_retries == 0, "{actions:?}");
}

#[test]
fn a_server_that_says_never_is_refused_and_the_next_one_asked() {
    let mut bench = upload(2);
    bench.wake();
    bench.feed(Event::Began);
    assert_eq!(started(&fails(&mut bench, UpFailure::Never { message: "too large".into() })), [1]);
    assert!(matches!(bench.record().mirrors[0].standing, Standing::Refused { .. }));
    bench.feed(Event::Began);
    assert_eq!(overs(&fails(&mut bench, refused(404))), 1);
    assert_eq!(bench.error_code(), Some(error_code::PERMANENT));
    assert!(bench.message().contains("too large") && bench.message().contains("404"), "{}", bench.message());
}

#[test]
fn credentials_are_a_matter_for_a_person_and_no_end() {
    let mut bench = upload(1);
    bench.wake();
    bench.feed(Event::Began);
    assert_eq!(overs(&fails(&mut bench, refused(401))), 0);
    assert_eq!(bench.record().num_retries, 1);
}

#[test]
fn what_the_user_calls_passing_passes() {
    let rules = Rules { retry_on: vec![404], ..Rules::default() };
    let mut bench = Bench::of(upload(1).record().clone(), rules, START);
    bench.wake();
    bench.feed(Event::Began);
    assert_eq!(overs(&fails(&mut bench, refused(404))), 0);
}

#[test]
fn delivered_means_that_nothing_is_kept_of_that_server_and_the_rest_is_left_to_be_cleaned_up() {
    let mut bench = upload(2);
    bench.wake();
    bench.feed(Event::Began);
    kept(&mut bench, session(0, 9), Persist::Now);
    fails(&mut bench, cut());
    bench.feed(Event::Began);
    kept(&mut bench, session(1, SIZE), Persist::Now);
    assert!(bench.record().abandoned().is_empty(), "not while it goes on");
    ends(&mut bench, End::Complete { evidence: Evidence::Length });
    assert_eq!(bench.record().status, Status::Done);
    assert_eq!(bench.record().abandoned(), [session(0, 9)]);
}

#[test]
fn an_abort_leaves_everything_to_be_cleaned_up_and_a_failure_leaves_it_for_a_retry() {
    let mut bench = upload(1);
    bench.wake();
    bench.feed(Event::Began);
    kept(&mut bench, session(0, MIB), Persist::Now);
    bench.feed(Event::Abort);
    ends(&mut bench, End::Cancelled);
    assert_eq!(bench.error_code(), Some(error_code::ABORTED));
    assert_eq!(bench.record().abandoned().len(), 1);
    let mut bench = upload(1);
    bench.wake();
    bench.feed(Event::Began);
    kept(&mut bench, session(0, MIB), Persist::Now);
    fails(&mut bench, UpFailure::Never { message: String::new() });
    assert!(bench.record().abandoned().is_empty());
    assert_eq!(bench.record().uploads.len(), 1);
    bench.feed(Event::Retry);
    assert_eq!((bench.record().confirmed, bench.record().num_retries), (Length(MIB), 0));
}
