//! S3 without keys: one signed URL for a whole, and a manifest of them for parts.

use super::super::s3::Manifest;
use super::super::*;
use super::s3_server::{Instead, Is, S3Server, TODAY, Tags};
use super::sim::{Came, KIB, MIB, Sim, answer, bytes};
use crate::core::digest::Algorithm;

const PROVEN: Came = Came::End(UpEnd::Stored { confirmed: Proof::Digest(Algorithm::Md5) });
const BY_STATUS: Came = Came::End(UpEnd::Stored { confirmed: Proof::Status });

/// Small, for tests that send parts again and again.
const PART: u64 = 256 * KIB;

const OBJECT: &str = "https://store.example/bucket/k";

/// The name of the upload that the server gives first.
const UPLOAD: &str = "id%2F1%2B%3D";

fn manifest(parts: u64, optional: &[&str]) -> String {
    let urls: Vec<_> =
        (1..=parts).map(|n| format!("\"{OBJECT}?partNumber={n}&uploadId={UPLOAD}&X-Amz-Signature=s\"")).collect();
    let rest = |name: &&str| format!(", \"{name}\": \"{OBJECT}?uploadId={UPLOAD}&X-Amz-Signature={name}\"");
    let more: String = optional.iter().map(rest).collect();
    format!(
        r#"{{"persxfer_upload": 1, "part_size": {PART}, "parts": [{}], "complete":
        "{OBJECT}?uploadId={UPLOAD}&X-Amz-Date=20270115T080000Z&X-Amz-Expires=3600&X-Amz-Signature=c"{more}}}"#,
        urls.join(",")
    )
}

fn with_urls(size: u64, optional: &'static [&'static str]) -> Sim<S3Server> {
    let mut server = S3Server { by_url: true, least_part: 1, ..S3Server::new() };
    server.uploads.insert("id/1+=".to_owned(), std::collections::BTreeMap::new());
    let parts = size.div_ceil(PART).max(1);
    let make = move || -> Box<dyn UploadProtocol> {
        Box::new(S3::by_manifest(Manifest::parse(&manifest(parts, optional)).expect("a manifest")))
    };
    Sim { now: TODAY, ..Sim::new(server, OBJECT, bytes(size, 8), make) }
}

/// With every URL that there can be.
pub(super) fn by_urls(size: u64) -> Sim<S3Server> {
    with_urls(size, &["list", "head", "abort"])
}

fn one_url(size: u64, query: &str) -> Sim<S3Server> {
    let server = S3Server { by_url: true, ..S3Server::new() };
    let make = || -> Box<dyn UploadProtocol> { Box::new(SignedPut::new()) };
    Sim { now: TODAY, ..Sim::new(server, &format!("{OBJECT}?{query}"), bytes(size, 9), make) }
}

const QUERY: &str = "X-Amz-Date=20270115T070000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=s";

#[track_caller]
fn failed(sim: &mut Sim<S3Server>) -> UpFailure {
    match sim.session() {
        Came::End(UpEnd::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn is_whole(sim: &Sim<S3Server>) {
    assert!(sim.server.object.as_ref().map(|o| &o.bytes) == Some(&sim.source), "another object stands there");
}

#[test]
fn a_signed_url_is_one_put() {
    for (size, tags, end) in [(MIB, Tags::Md5, PROVEN), (0, Tags::Md5, PROVEN), (MIB, Tags::Kms, BY_STATUS)] {
        let mut sim = one_url(size, QUERY);
        sim.server.tags = tags;
        assert_eq!(sim.session(), end);
        assert_eq!(sim.server.seen, [Is::Put]);
        is_whole(&sim);
    }
    let mut sim = one_url(MIB, QUERY);
    sim.cuts = [MIB / 2].into();
    assert!(matches!(failed(&mut sim), UpFailure::Transfer(_)));
    assert_eq!(sim.session(), PROVEN);
    assert_eq!(sim.bodies.last().map(|range| range.start.0), Some(0), "nothing is resumed");
    let mut sim = one_url(MIB, QUERY);
    sim.server.spoil = 1;
    assert_eq!(sim.session(), PROVEN, "the whole once more");
    assert_eq!(sim.sent, 2 * MIB);
}

#[test]
fn a_signed_url_whose_time_is_over_is_called_so() {
    let said = answer(403, &[], b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>");
    let bare = answer(403, &[], b"");
    let old = "AWSAccessKeyId=A&Expires=1700000000&Signature=x";
    for (query, told) in [(QUERY, &said), (old, &said), (old, &bare)] {
        let mut sim = one_url(MIB, query);
        sim.server.instead = [(Is::Put, Instead::Say(told.clone()))].into();
        let failure = failed(&mut sim);
        assert_eq!((failure.clone(), judge(&failure).scope), (UpFailure::UrlExpired, UpScope::Attention));
    }
    let mut sim = one_url(MIB, QUERY);
    sim.server.instead = [(Is::Put, Instead::Say(bare))].into();
    assert!(matches!(failed(&mut sim), UpFailure::Status { code: 403, .. }), "its time is not over");
}

#[test]
fn nothing_is_added_to_what_was_signed() {
    let fields = |query: &str| {
        let sim = one_url(0, query);
        let mut xfer = sim.xfer();
        let mut step = xfer.start(sim.now);
        loop {
            step = match step.next {
                Next::Look => xfer.handle(Event::Looked(sim.sight()), sim.now),
                Next::Digest { algorithm, .. } => {
                    xfer.handle(Event::Digested(super::sim::digest_of(algorithm, b"")), sim.now)
                }
                Next::Ask(ask) => return ask.fields,
                other => panic!("{other:?}"),
            };
        }
    };
    assert_eq!(fields(QUERY), []);
    let typed = fields(&QUERY.replace("=host&", "=content-type%3Bhost&"));
    assert_eq!(typed, [("content-type", "application/octet-stream".to_owned())]);
}

#[test]
fn a_manifest_sends_parts_and_closes() {
    for (optional, end) in [(&["list", "head", "abort"][..], PROVEN), (&[], PROVEN)] {
        for size in [MIB + 1, PART, 0] {
            let mut sim = with_urls(size, optional);
            assert_eq!(sim.session(), end, "{optional:?} {size}");
            assert_eq!((sim.server.count(Is::Create), sim.server.count(Is::Complete)), (0, 1));
            is_whole(&sim);
        }
    }
    let mut sim = with_urls(MIB, &[]);
    sim.server.tags = Tags::Kms;
    assert_eq!(sim.session(), BY_STATUS);
}

#[test]
fn a_manifest_is_resumed_with_a_list_and_without() {
    for optional in [&["list"][..], &[]] {
        let mut sim = with_urls(MIB, optional);
        sim.cuts = [2 * PART + 5, 2 * PART + 7].into();
        assert!(matches!(failed(&mut sim), UpFailure::Transfer(_)));
        assert_eq!(sim.session(), PROVEN);
        assert!(sim.sent < MIB + PART, "{} bytes sent", sim.sent);
        is_whole(&sim);
    }
    // A page and no more: beyond it the record counts.
    let mut sim = with_urls(MIB, &["list"]);
    sim.server.page = 1;
    sim.cuts = [2 * PART + 5].into();
    assert_eq!(sim.session(), PROVEN);
    assert!(sim.sent < MIB + PART, "{} bytes sent", sim.sent);
}

#[test]
fn an_edited_source_is_sent_by_the_same_urls() {
    let mut sim = by_urls(MIB);
    sim.cuts = [2 * PART + 5, 2 * PART + 7].into();
    failed(&mut sim);
    sim.source = bytes(MIB, 70);
    sim.stamp.mtime_ns += 1;
    assert_eq!(sim.session(), PROVEN);
    assert_eq!((sim.restarted, sim.server.count(Is::Abort)), (Some(Change::Time), 0));
    is_whole(&sim);
}

#[test]
fn a_manifest_whose_upload_is_gone_needs_new_urls() {
    let mut sim = by_urls(MIB);
    sim.server.uploads.clear();
    let failure = failed(&mut sim);
    assert!(matches!(&failure, UpFailure::Store { word, .. } if word == "NoSuchUpload"), "{failure}");
    assert_eq!(judge(&failure).scope, UpScope::RefuseServer);
    // Closed already, and the answer lost: with a URL to look by it is seen, without one it is not claimed.
    let mut sim = by_urls(MIB);
    sim.server.instead = [(Is::Complete, Instead::Swallow)].into();
    assert_eq!(sim.session(), PROVEN);
    let mut sim = with_urls(MIB, &["list"]);
    sim.server.instead = [(Is::Complete, Instead::Swallow)].into();
    assert!(matches!(failed(&mut sim), UpFailure::Store { .. }));
    let mut sim = by_urls(MIB);
    let said = answer(403, &[], b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>");
    sim.server.instead = [(Is::Part, Instead::Say(said))].into();
    assert_eq!(failed(&mut sim), UpFailure::UrlExpired);
    assert_eq!(sim.session(), PROVEN, "the upload is kept");
}

#[test]
fn a_manifest_for_a_smaller_file() {
    let mut sim = by_urls(MIB);
    sim.stamp.size = Length(MIB + 1);
    let failure = failed(&mut sim);
    let want = UpFailure::Unsupported { protocol: Protocol::S3, why: FoundAtServer::AtMost(Length(MIB)) };
    assert_eq!(failure, want);
    assert_eq!(sim.sent, 0);
}
