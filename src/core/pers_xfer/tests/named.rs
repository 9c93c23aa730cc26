//! Mirrors that servers name: behind the typed ones, marked, at most 32, and no longer than the version they were named of.

use std::sync::Arc;

use super::bench::{Bench, START, record, started, status, url};
use crate::core::digest::{Algorithm, Expected};
use crate::core::file_xfer::dossier::{Dossier, Draft};
use crate::core::links::MAX_DUPLICATES;
use crate::core::pers_xfer::options::{NetOptions, Options};
use crate::core::pers_xfer::record::{MirrorRecord, Standing};
use crate::core::pers_xfer::{Action, Event, Rules, Urgency};
use crate::core::url::MirrorUrl;

fn sha(byte: u8) -> Expected {
    Expected { algorithm: Algorithm::Sha256, bytes: vec![byte; 32] }
}

fn names(byte: u8, urls: impl IntoIterator<Item = usize>) -> Event {
    Event::Duplicates { digest: sha(byte), urls: urls.into_iter().map(url).collect() }
}

/// A session with the first of two typed mirrors runs.
fn running() -> Bench {
    let mut bench = Bench::new(2, Rules::default());
    bench.wake();
    bench.feed(Event::Began);
    bench
}

fn marks(bench: &Bench) -> Vec<Option<u8>> {
    bench.record().mirrors.iter().map(|m| m.named_with.as_ref().map(|d| d.bytes[0])).collect()
}

fn usable(bench: &Bench) -> Vec<bool> {
    bench.record().mirrors.iter().map(MirrorRecord::is_usable).collect()
}

#[test]
fn they_stand_behind_and_are_tried_last() {
    let mut bench = running();
    assert_eq!(bench.feed(names(1, [7, 1, 5])), [Action::Save(Urgency::Now)]);
    assert_eq!(marks(&bench), [None, None, Some(1), Some(1)]);
    assert_eq!(bench.record().mirrors[2].url, url(7));
    assert!(bench.feed(names(1, [5, 7])).is_empty(), "nothing new is nothing to store");
    for next in [1, 2, 3] {
        let actions = bench.fails(status(503));
        assert_eq!(started(&actions), [next]);
        bench.feed(Event::Began);
    }
}

#[test]
fn no_more_than_32_are_taken_and_a_typed_one_with_a_password_is_known() {
    let typed = MirrorUrl::parse("http://u:p@m9.example/file").expect("a URL");
    let mut known = record(1);
    known.mirrors.push(MirrorRecord::new(typed));
    let mut bench = Bench::of(known, Rules::default(), START);
    bench.wake();
    bench.feed(Event::Began);
    bench.feed(names(1, 0..100));
    assert_eq!(bench.record().mirrors.len(), 2 + MAX_DUPLICATES);
    assert_eq!(marks(&bench)[..2], [None, None]);
}

#[test]
fn the_mark_outlives_a_life_and_goes_when_a_person_lists_the_mirror() {
    let mut bench = running();
    bench.feed(names(1, [7, 5]));
    for _ in 0..4 {
        bench.fails(status(404));
        bench.feed(Event::Began);
    }
    assert!(bench.error_code().is_some());
    bench.feed(Event::Retry);
    assert_eq!((marks(&bench), usable(&bench)), (vec![None, None, Some(1), Some(1)], vec![true; 4]));
    bench.feed(Event::Mirrors(vec![url(5)]));
    assert_eq!(marks(&bench), [None, None, None, Some(1)]);
}

#[test]
fn those_of_another_version_are_refused_and_may_be_named_anew() {
    let vouched = |byte| Draft { vouched: vec![sha(byte)], ..Draft::default() };
    let mut bench = running();
    bench.feed(names(1, [7, 5]));
    let same = Dossier { part: vouched(1), ..Dossier::default() };
    bench.feed(Event::Learned(Box::new(same.clone())));
    assert_eq!(usable(&bench), [true; 4]);
    bench.feed(Event::Learned(Box::new(Dossier { part: vouched(2), ..Dossier::default() })));
    assert_eq!(usable(&bench), [true, true, false, false]);
    assert!(matches!(&bench.record().mirrors[2].standing, Standing::Refused { why, .. } if why.contains("version")));
    bench.feed(names(2, [5]));
    assert_eq!((usable(&bench), marks(&bench)[3]), (vec![true, true, false, true], Some(2)));
    // A version of which nobody names a digest is another one all the same.
    let changed = Dossier { rival: Some(Draft::default()), changes: 1, ..same };
    bench.feed(Event::Learned(Box::new(changed)));
    assert_eq!(usable(&bench), [true, true, false, false]);
}

#[test]
fn where_a_digest_is_law_no_version_makes_them_useless() {
    let mut known = record(1);
    known.digests = vec![sha(1)];
    let mut bench = Bench::of(known, Rules::default(), START);
    bench.wake();
    bench.feed(Event::Began);
    bench.feed(names(1, [7]));
    let other = Draft { vouched: vec![sha(2)], ..Draft::default() };
    bench.feed(Event::Learned(Box::new(Dossier { part: other, changes: 1, ..Dossier::default() })));
    assert_eq!(usable(&bench), [true, true]);
}

#[test]
fn nobody_is_shown_a_certificate_of_the_users_because_a_server_says_so() {
    let net = NetOptions { cert: Some("/me.pem".into()), ..NetOptions::default() };
    let mut known = record(1);
    known.options = Arc::new(Options { net: Arc::new(net), ..Options::default() });
    let mut bench = Bench::of(known, Rules::default(), START);
    bench.wake();
    bench.feed(Event::Began);
    assert!(bench.feed(names(1, [7])).is_empty());
    assert_eq!(bench.record().mirrors.len(), 1);
}
