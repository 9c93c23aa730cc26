//! S3 with keys: the flow, what is resumed and what is sent again, answers that say one thing and mean another.

use super::super::s3::Credentials;
use super::super::*;
use super::s3_server::{Instead, Is, KEY, S3Server, SECRET, Stored, TODAY, Tags};
use super::sim::{Came, MIB, Sim, answer, bytes};
use crate::core::digest::Algorithm;
use crate::core::time::Epoch;

pub(super) const PROVEN: Came = Came::End(UpEnd::Stored { confirmed: Proof::Digest(Algorithm::Md5) });
const BY_SIZE: Came = Came::End(UpEnd::Stored { confirmed: Proof::Size });

/// Three parts of five MiB and a little.
pub(super) const SIZE: u64 = 15 * MIB + 7;

fn s3_at(url: &str, size: u64, server: S3Server) -> Sim<S3Server> {
    let make = || -> Box<dyn UploadProtocol> {
        let keys = Credentials::new(KEY, SECRET, None);
        Box::new(S3::signed(keys, None).with_part_size(Length(5 * MIB)))
    };
    Sim { now: TODAY, ..Sim::new(server, url, bytes(size, 6), make) }
}

pub(super) fn s3(size: u64, server: S3Server) -> Sim<S3Server> {
    s3_at("https://store.example/bucket/f%20b.bin", size, server)
}

#[track_caller]
pub(super) fn failed(sim: &mut Sim<S3Server>) -> UpFailure {
    match sim.session() {
        Came::End(UpEnd::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
pub(super) fn is_whole(sim: &Sim<S3Server>) {
    assert!(sim.server.object.as_ref().map(|o| &o.bytes) == Some(&sim.source), "another object stands there");
    assert_eq!(sim.server.uploads.len(), 0, "no upload is left open");
}

/// An upload that was cut after so many parts, and whose client could then not ask what had come of it.
pub(super) fn begun(parts: usize) -> Sim<S3Server> {
    let mut sim = s3(SIZE, S3Server::new());
    sim.cuts = [5 * MIB * parts as u64].into();
    sim.server.instead = [(Is::List, Instead::Error(503, "SlowDown"))].into();
    failed(&mut sim);
    assert_eq!(sim.server.open().len(), parts);
    assert_eq!(sim.disk.as_ref().map(|disk| disk.parts.len()), Some(parts));
    sim.server.seen.clear();
    sim.bodies.clear();
    sim
}

pub(super) fn numbers(sim: &Sim<S3Server>) -> Vec<u64> {
    sim.bodies.iter().map(|range| range.start.0 / (5 * MIB) + 1).collect()
}

#[test]
fn the_flow_in_parts() {
    use Is::{Complete, Create, Head, Part};
    for url in ["https://store.example/bucket/k", "http://127.0.0.1:9000/bucket/k"] {
        let mut sim = s3_at(url, SIZE, S3Server::new());
        assert_eq!(sim.session(), PROVEN);
        assert_eq!(sim.server.seen, [Head, Create, Part, Part, Part, Part, Complete, Head]);
        is_whole(&sim);
        let unsigned = sim.server.payloads.iter().filter(|payload| *payload == "UNSIGNED-PAYLOAD").count();
        assert_eq!(
            unsigned,
            if url.starts_with("https") { 4 } else { 0 },
            "TLS protects bodies, or the signature does"
        );
    }
}

#[test]
fn a_small_file_is_one_put() {
    for size in [0, 1, 5 * MIB] {
        let mut sim = s3(size, S3Server::new());
        assert_eq!(sim.session(), PROVEN);
        assert_eq!(sim.server.seen, [Is::Put, Is::Head]);
        is_whole(&sim);
    }
    let mut sim = s3(MIB, S3Server::new());
    sim.server.instead = [(Is::Put, Instead::Swallow)].into();
    assert_eq!(sim.session(), PROVEN);
    assert_eq!((sim.sent, sim.server.count(Is::Put)), (MIB, 1), "what arrived is not sent again");
}

#[test]
fn what_the_store_holds_is_not_sent_again() {
    for page in [1000, 2, 1] {
        let mut sim = begun(3);
        sim.server.page = page;
        assert_eq!(sim.session(), PROVEN);
        assert_eq!(numbers(&sim), [4]);
        assert_eq!(sim.server.count(Is::List), 3_usize.div_ceil(page));
        is_whole(&sim);
    }
}

#[test]
fn parts_that_are_lost_or_wrong_are_sent_again_and_only_those() {
    let lose: fn(&mut S3Server) = |server| drop(server.open().remove(&2));
    let cut: fn(&mut S3Server) = |server| server.open().get_mut(&2).expect("a part").bytes.truncate(9);
    let change: fn(&mut S3Server) = |server| {
        let part = server.open().get_mut(&2).expect("a part");
        part.bytes[0] ^= 1;
        part.tag = format!("\"{}\"", super::s3_server::md5_hex(&part.bytes));
    };
    for harm in [lose, cut, change] {
        let mut sim = begun(3);
        harm(&mut sim.server);
        assert_eq!(sim.session(), PROVEN);
        assert_eq!(numbers(&sim), [2, 4]);
        is_whole(&sim);
    }
    let mut sim = begun(3);
    sim.server.open().clear();
    assert_eq!(sim.session(), PROVEN, "in one session, though nothing grows beyond what was confirmed");
    assert_eq!(numbers(&sim), [1, 2, 3, 4]);
}

#[test]
fn a_part_whose_answer_was_lost_is_known_by_its_bytes() {
    let mut sim = s3(SIZE, S3Server::new());
    sim.server.instead = [(Is::Part, Instead::Swallow)].into();
    assert_eq!(sim.session(), PROVEN);
    assert_eq!(numbers(&sim), [1, 2, 3, 4]);
    // Where tags say nothing, it is sent again.
    let mut sim = s3(SIZE, S3Server { tags: Tags::Opaque, ..S3Server::new() });
    sim.server.instead = [(Is::Part, Instead::Swallow)].into();
    assert_eq!(sim.run(2), UpEnd::Stored { confirmed: Proof::Size });
    assert_eq!(numbers(&sim), [1, 1, 2, 3, 4]);
}

#[test]
fn what_the_store_tells_again_is_not_awaited_on_disk() {
    let awaited = |parts: u64, tags| {
        let mut sim = s3(parts * 5 * MIB, S3Server { tags, ..S3Server::new() });
        assert!(matches!(sim.session(), Came::End(UpEnd::Stored { .. })));
        sim.awaited
    };
    assert_eq!(awaited(6, Tags::Md5), awaited(3, Tags::Md5), "the first part, and no later one");
    for tags in [Tags::Opaque, Tags::Kms] {
        assert!(awaited(6, tags) >= awaited(3, tags) + 3, "{tags:?}: the record alone knows these parts");
    }
    let mut sim = begun(3);
    sim.disk.as_mut().expect("a record").parts.truncate(1);
    assert_eq!(sim.session(), PROVEN);
    assert_eq!(numbers(&sim), [4], "parts that the record lost are found by their bytes");
    // Who was refused the list once has only the record.
    let mut sim = begun(1);
    sim.awaited = 0;
    sim.server.instead = [(Is::List, Instead::Error(403, "AccessDenied"))].into();
    assert_eq!(sim.session(), PROVEN);
    assert!(sim.awaited >= 3, "{}", sim.awaited);
}

#[test]
fn tags_of_every_kind() {
    for (tags, proof) in [(Tags::Md5, PROVEN), (Tags::Unlisted, PROVEN), (Tags::Opaque, BY_SIZE), (Tags::Kms, BY_SIZE)]
    {
        let mut sim = s3(SIZE, S3Server { tags, ..S3Server::new() });
        sim.cuts = [12 * MIB].into();
        assert_eq!(sim.session(), proof, "{tags:?}");
        assert_eq!(numbers(&sim), [1, 2, 3, 3, 4], "{tags:?}");
        is_whole(&sim);
    }
}

/// A success that left under the key what stood there before, or that stored something else.
#[test]
fn what_the_tags_contradict_is_never_done() {
    let md5 = |byte: &str| format!("\"{}\"", byte.repeat(16));
    let closed = "<CompleteMultipartUploadResult><ETag>\"x\"</ETag></CompleteMultipartUploadResult>";
    let parts = |n: u32| format!("\"{}-{n}\"", "ab".repeat(16));
    for (size, tag) in
        [(SIZE, md5("ab")), (SIZE, parts(2)), (SIZE, parts(4)), (SIZE, "\"word\"".into()), (MIB, md5("ab"))]
    {
        let mut sim = s3(size, S3Server::new());
        let old = super::s3_server::Stored { bytes: super::sim::bytes(size, 99), tag: tag.clone() };
        sim.server.object = Some(old);
        let done = || Instead::Say(super::sim::answer(200, &[], closed.as_bytes()));
        sim.server.instead = (0..4).map(|_| (if size == MIB { Is::Put } else { Is::Complete }, done())).collect();
        let end = sim.session();
        let failed = matches!(end, Came::End(UpEnd::Failed(UpFailure::WrongDigest { .. } | UpFailure::Untouched)));
        assert!(failed, "{size} {tag}: {end:?}");
    }
}

#[test]
fn an_error_that_looks_like_success_is_none() {
    let mut sim = s3(SIZE, S3Server::new());
    sim.server.instead = [(Is::Complete, Instead::Error(200, "InternalError"))].into();
    let failure = failed(&mut sim);
    assert_eq!(judge(&failure).scope, UpScope::Transient { floor: None }, "{failure}");
    assert_eq!(sim.session(), PROVEN);
    assert_eq!(numbers(&sim), [1, 2, 3, 4], "nothing is sent again");
    is_whole(&sim);
    let page = Instead::Say(answer(200, &[], b"<html>OK</html>"));
    for told in [page, Instead::DoneBut(200, "InternalError"), Instead::Say(answer(200, &[], b""))] {
        let mut sim = s3(SIZE, S3Server::new());
        sim.server.instead = [(Is::Complete, told)].into();
        assert_eq!(sim.run(3), UpEnd::Stored { confirmed: Proof::Digest(Algorithm::Md5) });
        assert_eq!((sim.sent, sim.server.begun), (SIZE, 1));
        is_whole(&sim);
    }
}

#[test]
fn an_upload_closed_by_a_request_whose_answer_was_lost() {
    for tags in [Tags::Md5, Tags::Opaque] {
        for told in [Instead::Swallow, Instead::DoneBut(500, "InternalError"), Instead::DoneBut(200, "InternalError")] {
            let mut sim = s3(SIZE, S3Server { tags, ..S3Server::new() });
            sim.server.instead = [(Is::Complete, told.clone())].into();
            let proof = if tags == Tags::Md5 { Proof::Digest(Algorithm::Md5) } else { Proof::Size };
            assert_eq!(sim.run(2), UpEnd::Stored { confirmed: proof }, "{tags:?} {told:?}");
            assert_eq!((sim.sent, sim.server.begun), (SIZE, 1));
        }
    }
    // What stands there is not the file, or has stood there before: a new upload.
    let other = Stored { bytes: bytes(SIZE, 99), tag: "\"other\"".to_owned() };
    let mut sim = s3(SIZE, S3Server::new());
    sim.server.object = Some(other);
    sim.server.instead = [(Is::Complete, Instead::Error(404, "NoSuchUpload"))].into();
    assert_eq!(sim.session(), PROVEN);
    assert_eq!((sim.sent, sim.server.begun), (2 * SIZE, 2));
}

#[test]
fn an_upload_that_is_gone_is_begun_anew_and_not_for_ever() {
    let mut sim = begun(2);
    sim.server.uploads.clear();
    assert_eq!(sim.session(), PROVEN);
    assert_eq!((numbers(&sim), sim.server.begun), (vec![1, 2, 3, 4], 2));
    let mut sim = s3(SIZE, S3Server::new());
    sim.server.instead = (0..9).map(|_| (Is::Part, Instead::Error(404, "NoSuchUpload"))).collect();
    assert_eq!(failed(&mut sim), UpFailure::KeepsForgetting { times: MAX_LOST + 1 });
}

#[test]
fn a_list_of_parts_that_is_refused_is_looked_into() {
    // One part is not what it was when it was confirmed; and the list tells so only when asked.
    let mut sim = begun(3);
    sim.server.instead = [(Is::Complete, Instead::Error(400, "InvalidPart"))].into();
    assert_eq!(sim.session(), PROVEN);
    assert_eq!((numbers(&sim), sim.server.count(Is::List)), (vec![4], 2), "all was right by its bytes");
    let mut sim = s3(SIZE, S3Server { tags: Tags::Opaque, ..S3Server::new() });
    sim.server.instead = [(Is::Complete, Instead::Error(400, "InvalidPart"))].into();
    assert_eq!(sim.session(), BY_SIZE);
    assert_eq!(numbers(&sim), [1, 2, 3, 4, 1, 2, 3, 4], "what cannot be compared is sent again");
    for word in ["InvalidPart", "InvalidPartOrder", "EntityTooSmall"] {
        let mut sim = s3(SIZE, S3Server::new());
        sim.server.instead = (0..9).map(|_| (Is::Complete, Instead::Error(400, word))).collect();
        let failure = failed(&mut sim);
        assert_eq!(judge(&failure).scope, UpScope::RefuseServer, "{word} twice: {failure}");
    }
}

#[test]
fn another_clock_is_learned_once() {
    for (ahead, now) in [(Delay::from_hours(20), TODAY), (Delay::from_days(300), Epoch::from_secs(1_000_000))] {
        let mut sim = s3(SIZE, S3Server { ahead, ..S3Server::new() });
        sim.now = now;
        assert_eq!(sim.session(), PROVEN);
        assert_eq!(sim.server.count(Is::Create), 2, "refused, and again by the server's clock");
    }
    let mut sim = s3(SIZE, S3Server::new());
    sim.server.instead = (0..4).map(|_| (Is::Create, Instead::Error(403, "RequestTimeTooSkewed"))).collect();
    assert_eq!(judge(&failed(&mut sim)).scope, UpScope::Attention, "without a Date nothing is learned");
    // Behind the client's.
    let late = "Sun, 06 Nov 1994 08:49:37 GMT";
    let mut told = answer(403, &[("date", late)], b"<Error><Code>RequestTimeTooSkewed</Code></Error>");
    told.retry_after = None;
    let mut sim = s3(SIZE, S3Server::new());
    sim.server.instead = (0..4).map(|_| (Is::Create, Instead::Say(told.clone()))).collect();
    failed(&mut sim);
    assert_eq!(sim.server.count(Is::Create), 2, "once");
}

#[test]
fn requests_are_signed_when_they_are_sent() {
    let mut sim = s3(SIZE, S3Server::new());
    sim.cuts = [6 * MIB, 12 * MIB].into();
    assert_eq!(sim.run(5), UpEnd::Stored { confirmed: Proof::Digest(Algorithm::Md5) });
    let mut dates = sim.server.dates.clone();
    dates.dedup();
    assert!(dates.len() > 1, "a minute later is another moment: {dates:?}");
}

#[test]
fn another_region_is_learned() {
    // AWS names the region and has a host for it; another store names it only.
    let (url, there) = ("https://b.s3.amazonaws.com/k", "b.s3.eu-west-1.amazonaws.com");
    for size in [MIB, SIZE] {
        let server = S3Server { region: "eu-west-1", host: Some(there), ..S3Server::new() };
        let mut sim = s3_at(url, size, server);
        assert_eq!(sim.session(), PROVEN);
        is_whole(&sim);
        let mut sim = s3(size, S3Server { region: "garage", ..S3Server::new() });
        assert_eq!(sim.session(), PROVEN);
        is_whole(&sim);
    }
    // The key is not taken for a folder where the bucket stands in the host.
    let mut sim = s3_at("https://bucket.store.example/k", SIZE, S3Server { region: "garage", ..S3Server::new() });
    assert_eq!(sim.session(), PROVEN);
    assert_eq!(sim.server.paths, ["/k".to_owned()].into());
    let moving = "<Error><Code>AuthorizationHeaderMalformed</Code><Region>a-1</Region></Error>";
    let mut sim = s3(SIZE, S3Server { region: "b-1", ..S3Server::new() });
    sim.server.instead = [(Is::Create, Instead::Say(answer(400, &[], moving.as_bytes())))].into();
    assert_eq!(judge(&failed(&mut sim)).scope, UpScope::Attention, "a second region is not followed");
}

#[test]
fn a_redirect_is_signed_anew_and_keys_stay_where_they_belong() {
    let host = Some("b.s3.us-east-1.amazonaws.com");
    let mut sim = s3_at("https://b.s3.amazonaws.com/k", SIZE, S3Server { host, ..S3Server::new() });
    assert_eq!(sim.session(), PROVEN);
    is_whole(&sim);
    for (url, host) in
        [("https://b.s3.amazonaws.com/k", "evil.example"), ("https://store.example/b/k", "b.s3.amazonaws.com")]
    {
        let mut sim = s3_at(url, SIZE, S3Server { host: Some(host), ..S3Server::new() });
        assert_eq!(failed(&mut sim), UpFailure::ElsewhereNamed { to: format!("https://{host}") });
        assert_eq!(sim.sent, 0);
    }
}

#[test]
fn refusals_and_what_they_mean() {
    let size = 5 * MIB + 1;
    let attention = ["AccessDenied", "ExpiredToken", "InvalidAccessKeyId", "SignatureDoesNotMatch"];
    let transient = ["SlowDown", "InternalError", "RequestTimeout", "OperationAborted", "BadDigest"];
    let refused = ["NoSuchBucket", "EntityTooLarge", "InvalidRequest", "NotImplemented"];
    let all = [
        (&attention[..], UpScope::Attention),
        (&transient, UpScope::Transient { floor: None }),
        (&refused, UpScope::RefuseServer),
    ];
    for (words, scope) in all {
        for word in words {
            for is in [Is::Create, Is::Part, Is::Complete] {
                let mut sim = s3(size, S3Server::new());
                sim.server.instead = [(is, Instead::Error(400, word))].into();
                let failure = failed(&mut sim);
                assert_eq!(judge(&failure).scope, scope, "{word} to {is:?}");
                assert_eq!(failure.to_string(), format!("the store says {word} (in a test)"));
                if *word == words[0] {
                    assert_eq!(sim.session(), PROVEN, "{word} to {is:?}");
                    assert_eq!(sim.server.begun, 1, "the upload is kept");
                }
            }
        }
    }
    let mut sim = s3(SIZE, S3Server::new());
    sim.server.keys = Credentials::new(KEY, "another", None);
    assert!(matches!(failed(&mut sim), UpFailure::Store { word, .. } if word == "SignatureDoesNotMatch"));
}

#[test]
fn a_spoilt_part_is_sent_again() {
    let mut sim = s3(SIZE, S3Server { spoil: 2, ..S3Server::new() });
    assert_eq!(sim.session(), PROVEN);
    assert_eq!(numbers(&sim), [1, 1, 1, 2, 3, 4]);
    is_whole(&sim);
    let mut sim = s3(SIZE, S3Server { spoil: 1000, ..S3Server::new() });
    let failure = failed(&mut sim);
    assert!(matches!(failure, UpFailure::WrongDigest { algorithm: "md5", .. }), "{failure}");
    assert_eq!((sim.server.begun, sim.server.uploads.len()), (2, 1), "the first of the two is cleaned up");
    let mut sim = s3(MIB, S3Server { spoil: 1, ..S3Server::new() });
    assert_eq!(sim.session(), PROVEN);
    is_whole(&sim);
}

#[test]
fn an_edited_source_and_a_person_who_gives_up_leave_nothing_behind() {
    let mut sim = begun(2);
    sim.source = bytes(SIZE, 77);
    sim.stamp.mtime_ns += 1;
    assert_eq!(sim.session(), PROVEN);
    assert_eq!((sim.restarted, sim.server.count(Is::Abort)), (Some(Change::Time), 1));
    is_whole(&sim);
    let mut sim = begun(2);
    let mut xfer = sim.xfer();
    let Next::Ask(ask) = xfer.abandon(sim.now).next else { panic!("a request") };
    let request = super::sim::Request { ask, body: Vec::new(), cut: false, now: sim.now };
    let answer = super::sim::Server::serve(&mut sim.server, &request).expect("an answer");
    let end = xfer.handle(Event::Answer(Box::new(answer)), sim.now);
    assert_eq!((end.next, sim.server.uploads.len()), (Next::End(UpEnd::Abandoned), 0));
}

#[test]
fn who_may_only_write_writes() {
    let deny = |is| move |_| (is, Instead::Error(403, "AccessDenied"));
    let mut sim = s3(SIZE, S3Server::new());
    sim.server.instead = (0..9).map(deny(Is::Head)).collect();
    assert_eq!(sim.session(), PROVEN, "by the tag in the last answer");
    let mut sim = s3(SIZE, S3Server { tags: Tags::Kms, ..S3Server::new() });
    sim.server.instead = (0..9).map(deny(Is::Head)).collect();
    assert_eq!(sim.session(), Came::End(UpEnd::Stored { confirmed: Proof::Status }));
    let mut sim = begun(3);
    sim.server.instead = (0..9).map(deny(Is::List)).collect();
    assert_eq!(sim.session(), PROVEN, "by the record, which the store checks at the end");
    assert_eq!(numbers(&sim), [4]);
}

#[test]
fn what_is_stored_in_the_end_is_looked_at() {
    let mut sim = s3(MIB, S3Server::new());
    let short = [("content-length", "5")];
    sim.server.instead = [(Is::Head, Instead::Say(answer(200, &short, b"")))].into();
    assert_eq!(failed(&mut sim), UpFailure::WrongSize { told: Some(Length(5)), ours: Length(MIB) });
    let mut sim = s3(SIZE, S3Server::new());
    let size = SIZE.to_string();
    let tag = format!("\"{}-4\"", "0".repeat(32));
    let other = [("content-length", size.as_str()), ("etag", tag.as_str())];
    let head = |fields| (Is::Head, Instead::Say(answer(200, fields, b"")));
    sim.server.instead = [(Is::Head, Instead::Error(404, "")), head(&other)].into();
    assert_eq!(sim.session(), PROVEN, "a digest that does not agree: once more");
    assert_eq!(sim.sent, 2 * SIZE);
}

#[test]
fn a_file_too_large_for_any_store() {
    let mut sim = s3(MIB, S3Server::new());
    sim.stamp.size = Length(60_000 << 30);
    let failure = failed(&mut sim);
    assert!(matches!(failure, UpFailure::Unsupported { why: FoundAtServer::AtMost(_), .. }), "{failure}");
}
