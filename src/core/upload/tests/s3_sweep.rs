//! S3: uploads that were asked for and whose names were never heard, and parts that may not be listed.

use super::super::*;
use super::s3::{PROVEN, SIZE, begun, failed, is_whole, numbers, s3};
use super::s3_server::{Instead, Is, S3Server, Stored, TODAY};
use super::sim::Sim;
use crate::core::time::{Delay, Epoch};

/// An upload that was asked for, and whose answer was lost.
fn lost_creation() -> Sim<S3Server> {
    let mut sim = s3(SIZE, S3Server::new());
    sim.server.instead = [(Is::Create, Instead::Swallow)].into();
    failed(&mut sim);
    assert_eq!((sim.server.uploads.len(), sim.disk.as_ref().and_then(|disk| disk.creating)), (1, Some(TODAY)));
    sim
}

#[test]
fn an_upload_that_nobody_knows_of_is_dropped_when_the_file_is_there() {
    let mut sim = lost_creation();
    assert_eq!(sim.session(), PROVEN);
    assert_eq!((sim.server.count(Is::Uploads), sim.server.count(Is::Abort)), (1, 1));
    assert!(sim.server.paths.contains("/bucket"), "{:?}", sim.server.paths);
    is_whole(&sim);
    // The store's clock is another.
    let mut sim = s3(SIZE, S3Server { ahead: Delay::from_mins(10), ..S3Server::new() });
    sim.server.instead = [(Is::Create, Instead::Swallow)].into();
    failed(&mut sim);
    assert_eq!(sim.session(), PROVEN);
    is_whole(&sim);
}

#[test]
fn uploads_of_others_are_left_alone() {
    for (part, later) in [(true, 0), (false, 300), (false, -600)] {
        let mut sim = lost_creation();
        sim.now = sim.now + Delay::from_mins(10);
        let others = "others".to_owned();
        let parts = part.then(|| (1, Stored { bytes: vec![1; 9], tag: "t".into() }));
        sim.server.uploads.insert(others.clone(), parts.into_iter().collect());
        sim.server.times.insert(others.clone(), Epoch::from_secs(1_800_000_000 + later));
        assert_eq!(sim.session(), PROVEN);
        assert_eq!(sim.server.uploads.keys().collect::<Vec<_>>(), [&others], "{part} {later}");
    }
}

#[test]
fn a_file_that_is_there_is_there_whatever_comes_of_the_look() {
    for instead in [Instead::Error(403, "AccessDenied"), Instead::Error(501, "NotImplemented"), Instead::Swallow] {
        let mut sim = lost_creation();
        sim.server.instead = [(Is::Uploads, instead)].into();
        assert_eq!(sim.session(), PROVEN);
        assert_eq!((sim.server.uploads.len(), sim.server.count(Is::Complete)), (1, 1));
    }
}

#[test]
fn who_gives_up_has_what_nobody_knows_of_dropped_too() {
    let mut sim = lost_creation();
    let mut xfer = sim.xfer();
    let mut next = xfer.abandon(sim.now).next;
    for _ in 0..3 {
        let Next::Ask(ask) = next else { panic!("a request: {next:?}") };
        let request = super::sim::Request { ask, body: Vec::new(), cut: false, now: sim.now };
        let answer = super::sim::Server::serve(&mut sim.server, &request).expect("an answer");
        next = xfer.handle(Event::Answer(Box::new(answer)), sim.now).next;
    }
    assert_eq!((next, sim.server.uploads.len()), (Next::End(UpEnd::Abandoned), 0));
}

#[test]
fn parts_that_are_refused_and_may_not_be_listed_are_all_sent_again_once() {
    for (status, word) in [(403, "AccessDenied"), (403, ""), (405, "")] {
        let mut sim = begun(2);
        // What the store says it held is something else by now.
        for part in sim.server.open().values_mut() {
            part.tag = "\"other\"".to_owned();
        }
        sim.server.instead = (0..9).map(|_| (Is::List, Instead::Error(status, word))).collect();
        assert_eq!(sim.session(), PROVEN, "{status} {word}");
        assert_eq!(numbers(&sim), [3, 4, 1, 2, 3, 4], "{status} {word}");
        is_whole(&sim);
    }
}
