//! Uploads by `ietf` through the built program: what a server of the draft may do, row by row (docs/testing-uploads.md), and
//! what the client makes of it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use std::fs;

use support::{Px, eventually};
use upload::{Door, Ietf, IetfFault, Interim, Limits, Manners, Mischief, Proxy, Raw, Sender, Way};

/// `persxfer upload f ietf+URL`.
fn to<'s>(sender: &'s Sender, url: &str) -> Px<'s> {
    sender.upload(&format!("ietf+{url}"))
}

/// The server holds the file, in its newest upload, which is complete; and nothing was done that the draft forbids.
#[track_caller]
fn arrived(server: &Ietf, sender: &Sender, what: impl std::fmt::Debug) {
    let (stored, newest) = (server.stored().pop().unwrap_or_default(), server.uploads().pop().unwrap());
    let equal = stored.iter().zip(&sender.data[..]).take_while(|(a, b)| a == b).count();
    let (got, want) = (stored.len(), sender.data.len());
    assert!(stored == sender.data[..], "{what:?}: {got} bytes stored of {want}, the first {equal} equal");
    assert!(newest.complete, "{what:?}: {newest:?}");
    assert_eq!(server.complaints(), [""; 0], "{what:?}");
}

/// The offsets that PATCHes named, in order.
fn offsets(server: &Ietf) -> Vec<u64> {
    server.door.by("PATCH").iter().map(|e| e.header("upload-offset").unwrap().parse().unwrap()).collect()
}

/// How many uploads were created.
fn created(server: &Ietf) -> usize {
    server.door.by("POST").len()
}

fn methods(server: &Ietf) -> Vec<String> {
    server.door.log().into_iter().map(|e| e.method).collect()
}

#[test]
fn every_version_and_the_final_one() {
    for (word, interop, age) in
        [("6", Some(6), "expires"), ("7", Some(7), "max-age"), ("8", Some(8), "max-age"), ("final", None, "max-age")]
    {
        let limits = Limits { age: Some(3600), ..Limits::default() };
        let server = Ietf::start(Manners { interop, limits, repr_digest: true, ..Manners::default() });
        let sender = Sender::new(1, 3_000_000);
        server.faults().next(IetfFault::Cut { after: 1_000_000 });
        let ran = to(&sender, &server.url()).args(&["--interop", word]).run();
        ran.exits(0).says(&["evidence: digest"]);
        arrived(&server, &sender, word);
        assert_eq!(offsets(&server), [0, 1_000_000], "{word}");
        let limit = server.door.by("POST")[0].answer_header("upload-limit").unwrap().to_owned();
        assert!(limit.starts_with(age), "the double tells {limit}");
    }
}

#[test]
fn a_server_of_another_version_is_refused_before_a_byte_is_sent() {
    let server = Ietf::start(Manners { interop: Some(7), ..Manners::default() });
    let sender = Sender::new(2, 100_000);
    to(&sender, &server.url()).run().exits(3).says(&["another version"]);
    assert_eq!(server.door.received(), 0);
}

#[test]
fn an_upload_has_its_url_before_its_first_byte_and_goes_on_after_a_kill() {
    for (interim, relative_location) in
        [(Interim::Never, true), (Interim::Location, false), (Interim::Progress { every: 100_000 }, true)]
    {
        let server = Ietf::start(Manners { interim, relative_location, ..Manners::default() });
        let sender = Sender::new(3, 2_000_000);
        let first = to(&sender, &server.url()).args(&["--limit-rate", "2m"]).start();
        first.kill_when(|| server.door.received() > 1_000_000);
        assert!(sender.world.state_text().contains("<upload_session>"));
        to(&sender, &server.url()).run().exits(0);
        arrived(&server, &sender, interim);
        assert_eq!(created(&server), 1, "{interim:?}");
        assert!(offsets(&server)[1] >= 1_000_000, "{interim:?}: {:?}", offsets(&server));
        assert_eq!(server.door.received(), 2_000_000, "{interim:?}: nothing twice");
    }
}

#[test]
fn a_creation_whose_answer_is_lost_costs_an_empty_upload_and_no_byte() {
    let server = Ietf::start(Manners::default());
    let proxy = Proxy::before(server.door.port());
    let sender = Sender::new(4, 300_000);
    proxy.next_of("POST", Mischief::LosesAnswer);
    to(&sender, &proxy.url(&server.url())).run().exits(0);
    arrived(&server, &sender, "new");
    assert_eq!((created(&server), server.door.received()), (2, 300_000), "nothing but the URL was lost");
}

/// A server that creates an upload, tells its URL by a 104 of this version alone, and never answers; the rest it does well.
fn tells_by_104_only(version: &'static str) -> Door {
    Door::open(move |visit| {
        let field = |name: &'static str, value: &str| (name, value.to_owned());
        let version = field("Upload-Draft-Interop-Version", version);
        match visit.method.as_str() {
            "POST" => match visit.interim(104, &[version, field("Location", "/uploads/7")]) {
                Ok(()) => Way::Silence,
                Err(_) => Way::Close,
            },
            "HEAD" => visit.answer(204, &[field("Upload-Offset", "0"), field("Upload-Complete", "?0")], ""),
            "PATCH" => visit.drain().map_or(Way::Close, |n| {
                visit.answer(200, &[field("Upload-Offset", &n.to_string()), field("Upload-Complete", "?1")], "")
            }),
            _ => visit.answer(405, &[], ""),
        }
    })
}

#[test]
fn a_url_that_came_by_104_alone_is_known_after_a_kill() {
    let (door, sender) = (tells_by_104_only("8"), Sender::new(25, 300_000));
    let kept = || fs::read_to_string(&sender.world.state).is_ok_and(|text| text.contains("/uploads/7"));
    to(&sender, &door.url("/new")).start().kill_when(kept);
    to(&sender, &door.url("/new")).run().exits(0);
    let asked: Vec<_> = door.log().into_iter().map(|e| format!("{} {}", e.method, e.target)).collect();
    assert_eq!(asked, ["POST /new", "HEAD /uploads/7", "PATCH /uploads/7"]);
    // Of another version, it is no word for us.
    let (door, sender) = (tells_by_104_only("6"), Sender::new(25, 300_000));
    let heard = || door.log().first().is_some_and(|e| e.interim == [104]);
    let running =
        to(&sender, &door.url("/new")).args(&["--first-byte-timeout", "1s", "--stall-timeout", "1s", "--once"]).start();
    eventually("104 was sent", heard);
    running.end().exits(4);
    assert!(!sender.world.state_text().contains("/uploads/7"));
    assert_eq!(door.log().len(), 1);
}

#[test]
fn offsets_that_104_tells_are_confirmed_bytes() {
    let server = Ietf::start(Manners { interim: Interim::Progress { every: 200_000 }, ..Manners::default() });
    let sender = Sender::new(5, 2_000_000);
    server.faults().next(IetfFault::Stall { after: 1_000_000 });
    let running = to(&sender, &server.url()).start();
    eventually("it is in the state file", || {
        let text = fs::read_to_string(&sender.world.state).unwrap_or_default();
        let told = text.split("<confirmed>").nth(1).and_then(|t| t.split('<').next()?.parse::<u64>().ok());
        told.is_some_and(|n| n >= 800_000)
    });
    drop(running);
    server.door.kill();
    server.door.revive();
    to(&sender, &server.url()).run().exits(0);
    arrived(&server, &sender, "104");
    assert_eq!(offsets(&server), [0, 1_000_000]);
}

#[test]
fn a_104_of_another_version_is_passed_over() {
    let server = Ietf::start(Manners { interim: Interim::Progress { every: 100_000 }, ..Manners::default() });
    let sender = Sender::new(6, 2_000_000);
    server.faults().next(IetfFault::OtherInterop(5));
    to(&sender, &server.url()).run().exits(0);
    arrived(&server, &sender, "other");
    assert_eq!(methods(&server), ["POST", "PATCH"]);
}

#[test]
fn limits_of_one_body_are_obeyed() {
    let limits = Limits { max_append: Some(500_000), min_append: Some(300_000), ..Limits::default() };
    let server = Ietf::start(Manners { limits, ..Manners::default() });
    let sender = Sender::new(7, 1_700_000);
    to(&sender, &server.url()).run().exits(0);
    arrived(&server, &sender, "limits");
    assert_eq!(offsets(&server), [0, 500_000, 1_000_000, 1_500_000]);
    // After a cut the bodies are no smaller than the least, but the last.
    let server = Ietf::start(Manners { limits, ..Manners::default() });
    for after in [1, 2, 3, 4] {
        server.faults().next(IetfFault::Loses { after });
    }
    to(&Sender::new(7, 1_700_000), &server.url()).run().exits(0);
    arrived(&server, &sender, "cut");
    let lengths: Vec<_> = server.door.by("PATCH").iter().filter_map(|e| e.length).collect();
    assert!(lengths.iter().all(|n| *n <= 500_000), "{lengths:?}");
}

#[test]
fn a_body_larger_than_an_untold_limit_is_made_smaller() {
    let server = Ietf::start(Manners::default());
    let proxy = Proxy::before(server.door.port());
    let sender = Sender::new(8, 1_000_000);
    proxy.now(Mischief::TooLarge { limit: 300_000, way: Way::Linger });
    to(&sender, &proxy.url(&server.url())).run().exits(0);
    arrived(&server, &sender, "413");
}

#[test]
fn a_file_that_no_limit_allows_is_refused_with_the_limit() {
    let allows = |limits| Ietf::start(Manners { limits, ..Manners::default() });
    let sender = Sender::new(9, 100_000);
    let server = allows(Limits { max_size: Some(99_999), ..Limits::default() });
    to(&sender, &server.url()).run().exits(3).says(&["413", "at most 99999 bytes"]);
    assert_eq!(server.door.received(), 0);
    let sender = Sender::new(9, 100_000);
    let server = allows(Limits { min_size: Some(100_001), ..Limits::default() });
    to(&sender, &server.url()).run().exits(3).says(&["400", "at least 100001 bytes"]);
    let sender = Sender::new(9, 100_000);
    let limits = Limits { min_size: Some(100_000), max_size: Some(100_000), ..Limits::default() };
    to(&sender, &allows(limits).url()).run().exits(0);
}

#[test]
fn a_conflict_tells_where_to_go_on() {
    let server = Ietf::start(Manners::default());
    let sender = Sender::new(10, 1_000_000);
    // The right offset is the one that was named: once is no reason to give in.
    server.faults().next(IetfFault::Conflict);
    to(&sender, &server.url()).run().exits(0);
    arrived(&server, &sender, "once");
    assert_eq!(created(&server), 1);
    // Always: the server's way.
    let (server, sender) = (Ietf::start(Manners::default()), Sender::new(10, 1_000_000));
    server.faults().now(IetfFault::Conflict);
    to(&sender, &server.url()).arg("--once").run().exits(4);
    assert!(offsets(&server).len() <= 4, "{:?}", offsets(&server));
}

#[test]
fn a_conflict_without_an_offset_is_followed_by_a_question() {
    let server = Ietf::start(Manners::default());
    let proxy = Proxy::before(server.door.port());
    let sender = Sender::new(11, 1_000_000);
    proxy.next_of("PATCH", Mischief::Answers { status: 409, retry_after: None });
    to(&sender, &proxy.url(&server.url())).run().exits(0);
    arrived(&server, &sender, "409");
    assert_eq!(methods(&server), ["POST", "HEAD", "PATCH"], "the first PATCH never reached it");
}

#[test]
fn an_upload_that_has_everything_and_is_open_is_closed_by_an_empty_body() {
    let server = Ietf::start(Manners::default());
    let sender = Sender::new(12, 1_000_000);
    server.faults().next(IetfFault::Cut { after: 400_000 });
    server.faults().next(IetfFault::Answers(503));
    to(&sender, &server.url()).arg("--once").run().exits(4);
    // The rest comes without the word that this is the end.
    let made = server.door.by("POST")[0].answer_header("location").unwrap().to_owned();
    let rest = Raw::new("PATCH", &made).header("Upload-Draft-Interop-Version", 8).header("Upload-Offset", 400_000);
    let rest = rest.header("Upload-Complete", "?0").header("Content-Type", "application/partial-upload");
    assert_eq!(rest.body(&sender.data[400_000..]).send().status(), Some(204));
    let (before, upload) = (server.door.received(), &server.uploads()[0]);
    assert_eq!((upload.offset, upload.complete), (1_000_000, false));
    to(&sender, &server.url()).run().exits(0);
    arrived(&server, &sender, "closed");
    let last = server.door.by("PATCH").pop().unwrap();
    assert_eq!((last.length, last.header("upload-complete")), (Some(0), Some("?1")));
    assert_eq!(server.door.received(), before);
}

#[test]
fn a_lost_answer_to_the_last_body_is_asked_for() {
    for size in [1_000_000, 0] {
        let server = Ietf::start(Manners::default());
        let sender = Sender::new(13, size);
        server.faults().next(IetfFault::AnswerLost);
        to(&sender, &server.url()).run().exits(0);
        arrived(&server, &sender, size);
        assert_eq!(server.door.received(), u64::try_from(size).unwrap());
    }
}

#[test]
fn what_a_server_took_of_a_body_is_gone_on_from() {
    for tells_offset in [true, false] {
        let server = Ietf::start(Manners { tells_offset, ..Manners::default() });
        let sender = Sender::new(14, 1_000_000);
        server.faults().next(IetfFault::TakesPart { bytes: 300_000 });
        to(&sender, &server.url()).run().exits(0);
        arrived(&server, &sender, tells_offset);
        assert_eq!(offsets(&server), [0, 300_000]);
    }
}

#[test]
fn the_applications_no_is_final() {
    for status in [422, 403, 500] {
        let (server, sender) = (Ietf::start(Manners::default()), Sender::new(15, 500_000));
        server.application(status, "not a zip file\n");
        to(&sender, &server.url()).run().exits(3).says(&["refused it"]).says(&["not a zip file"]);
        assert_eq!((created(&server), server.door.received()), (1, 500_000), "{status}: it is not sent again");
    }
}

#[test]
fn an_offset_that_goes_back_voids_the_upload() {
    let (server, sender) = (Ietf::start(Manners::default()), Sender::new(16, 1_500_000));
    // Known to be there, in the state file.
    server.faults().next(IetfFault::TakesPart { bytes: 1_000_000 });
    server.faults().next(IetfFault::Answers(503));
    to(&sender, &server.url()).arg("--once").run().exits(4);
    server.set_back(300_000);
    to(&sender, &server.url()).run().exits(0);
    arrived(&server, &sender, "set back");
    assert_eq!(created(&server), 2);
    assert_eq!(offsets(&server), [0, 1_000_000, 0]);
}

#[test]
fn a_forgotten_upload_is_begun_anew() {
    for status in [404, 410] {
        let (server, sender) = (Ietf::start(Manners::default()), Sender::new(17, 1_500_000));
        server.faults().next(IetfFault::Cut { after: 1_000_000 });
        server.faults().next(IetfFault::Answers(503));
        to(&sender, &server.url()).arg("--once").run().exits(4);
        server.forget(status);
        to(&sender, &server.url()).run().exits(0);
        arrived(&server, &sender, status);
        assert_eq!(created(&server), 2);
    }
}

#[test]
fn a_server_that_forgets_every_upload_is_refused_after_three() {
    for status in [404, 410] {
        let (server, sender) = (Ietf::start(Manners::default()), Sender::new(18, 300_000));
        let proxy = Proxy::before(server.door.port());
        // Only the bodies of uploads, not their creation.
        for _ in 0..9 {
            proxy.next_of("PATCH", Mischief::Answers { status, retry_after: None });
        }
        to(&sender, &proxy.url(&server.url())).run().exits(3).says(&["forgot the upload"]);
        assert_eq!(created(&server), 4, "{status}: the first and three more");
        assert_eq!(server.door.received(), 0);
    }
}

#[test]
fn other_refusals_never_lose_the_upload() {
    for status in [401, 403, 423, 429, 500, 502, 503] {
        let (server, sender) = (Ietf::start(Manners::default()), Sender::new(19, 700_000));
        server.faults().next(IetfFault::Cut { after: 400_000 });
        server.faults().next(IetfFault::Answers(status));
        let ran = to(&sender, &server.url()).arg("--once").run();
        if !ran.succeeded() {
            ran.exits(4);
            to(&sender, &server.url()).run().exits(0);
        }
        arrived(&server, &sender, status);
        assert_eq!((created(&server), offsets(&server)), (1, vec![0, 400_000, 400_000]), "{status}");
    }
}

#[test]
fn a_digest_that_agrees_is_evidence_and_one_that_does_not_is_a_failure_after_once_more() {
    let (server, sender) = (Ietf::start(Manners { repr_digest: true, ..Manners::default() }), Sender::new(20, 500_000));
    to(&sender, &server.url()).run().exits(0).says(&["evidence: digest"]);
    let (server, sender) = (Ietf::start(Manners { repr_digest: true, ..Manners::default() }), Sender::new(20, 500_000));
    server.tells_wrong_digests();
    to(&sender, &server.url()).run().exits(3).says(&["stored something else"]);
    assert_eq!((created(&server), server.door.received()), (2, 1_000_000), "once more, and no more");
}

#[test]
fn a_file_edited_in_place_is_sent_anew_and_the_old_upload_cleaned_up() {
    let (server, mut sender) = (Ietf::start(Manners::default()), Sender::new(21, 1_500_000));
    server.faults().next(IetfFault::Cut { after: 1_000_000 });
    server.faults().next(IetfFault::Answers(503));
    to(&sender, &server.url()).arg("--once").run().exits(4);
    sender.edit(22);
    to(&sender, &server.url()).run().exits(0).says(&["the file changed since its upload"]);
    arrived(&server, &sender, "edited");
    assert_eq!((server.door.by("DELETE").len(), server.uploads().len()), (1, 1));
}

#[test]
fn a_server_that_dies_and_comes_back_gets_the_rest() {
    let (server, sender) = (Ietf::start(Manners::default()), Sender::new(23, 2_000_000));
    let running = to(&sender, &server.url()).args(&["--limit-rate", "2m"]).start();
    eventually("a part of it has come", || server.door.received() > 500_000);
    server.door.kill();
    let kept = server.uploads()[0].offset;
    server.door.revive();
    running.end().exits(0);
    arrived(&server, &sender, "revived");
    assert_eq!(offsets(&server), [0, kept]);
}

#[test]
fn a_stranger_that_takes_the_empty_body_for_the_file_gets_no_more() {
    let (server, sender) = (Ietf::start(Manners { interop: None, ..Manners::default() }), Sender::new(24, 100_000));
    to(&sender, &server.url()).run().exits(3).says(&["another version"]);
    assert_eq!(server.door.received(), 0);
}
