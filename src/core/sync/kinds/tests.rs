//! What the reader says of good files, and of what may come instead.

use proptest::prelude::*;

use super::*;
use crate::core::digest::Algorithm;
use crate::core::sync::stamp;

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../../../tests/fixtures/sync/", $name)).as_slice()
    };
}

const SERVER_DESCRIPTORS: &[u8] = fixture!("server-descriptors");
const VOTE: &[u8] = fixture!("vote");
const EXIT_LIST: &[u8] = fixture!("exit-list");

/// Every fixture with its kind and a name for its file.
fn fixtures() -> Vec<(&'static str, &'static [u8], &'static str)> {
    vec![
        ("server-descriptor", SERVER_DESCRIPTORS, "2016-10-01-12-00-00"),
        ("extra-info", fixture!("extra-infos"), "2016-10-01-12-00-00"),
        ("microdescriptor", fixture!("micro"), "2016-10-01-12-00-00-micro-2016-10"),
        ("network-status-consensus-3", fixture!("consensus"), "2016-10-01-12-00-00-consensus"),
        ("network-status-vote-3", VOTE, "2016-10-01-12-00-00-vote"),
        (
            "network-status-microdesc-consensus-3",
            fixture!("consensus-microdesc"),
            "2016-10-01-12-00-00-consensus-microdesc",
        ),
        ("dir-key-certificate-3", fixture!("certs"), "2016-10-01-12-00-00"),
        ("bandwidth-file", fixture!("bandwidth"), "2016-10-01-12-00-00-bandwidth"),
        ("tordnsel", EXIT_LIST, "2016-10-01-12-02-01"),
        ("bridge-server-descriptor", fixture!("bridge-server-descriptors"), "2016-10-01-12-00-00-server-descriptors"),
        ("bridge-extra-info", fixture!("bridge-extra-infos"), "2016-10-01-12-00-00-extra-infos"),
        ("torperf", fixture!("torperf"), "example-51200-2016-10-01.tpf"),
    ]
}

fn read_in(kind: &str, name: &str, bytes: &[u8], piece: usize) -> Vec<Segment> {
    let (mut reader, mut found) = (Reader::new(named(kind).expect(kind), name), Vec::new());
    bytes.chunks(piece.max(1)).for_each(|chunk| reader.feed(chunk, &mut found));
    reader.finish(&mut found);
    found
}

fn read(kind: &str, name: &str, bytes: &[u8]) -> Vec<Segment> {
    read_in(kind, name, bytes, bytes.len())
}

fn faults(found: &[Segment]) -> Vec<&Fault> {
    found.iter().filter_map(|segment| segment.verdict.as_ref().err()).collect()
}

fn fault(kind: &str, name: &str, bytes: &[u8]) -> Fault {
    read(kind, name, bytes).into_iter().find_map(|segment| segment.verdict.err()).expect("a fault")
}

#[test]
fn every_kind_is_read_however_its_bytes_come() {
    for (kind, bytes, name) in fixtures() {
        let whole = read(kind, name, bytes);
        assert!(!whole.is_empty() && whole.iter().all(|s| s.verdict.is_ok()), "{kind}: {:?}", faults(&whole));
        assert_eq!(whole.iter().map(|s| s.length).sum::<u64>(), bytes.len() as u64, "{kind}");
        assert!(
            whole.iter().all(|s| s.verdict.as_ref().is_ok_and(|facts| facts.date.is_some())),
            "{kind}: {:?}",
            faults(&whole)
        );
        for piece in [1, 7, 64] {
            assert_eq!(read_in(kind, name, bytes, piece), whole, "{kind} in pieces of {piece}");
        }
    }
}

#[test]
fn b03_each_kind_refuses_the_others() {
    for (kind, _, _) in fixtures() {
        for (other, bytes, name) in fixtures().into_iter().filter(|f| f.0 != kind) {
            let found = read(kind, name, bytes);
            let good: Vec<_> = found.iter().filter_map(|s| s.verdict.as_ref().ok()).collect();
            assert!(good.is_empty(), "{other} passes as {kind}: {good:?}");
            let bare: Vec<u8> =
                bytes.split_inclusive(|b| *b == b'\n').filter(|l| !l.starts_with(b"@")).flatten().copied().collect();
            let found = read(kind, name, &bare);
            assert!(found.iter().all(|s| s.verdict.is_err()), "{other} without an annotation passes as {kind}");
        }
    }
    let stamped = b"@type torperf 1.0\nDownloaded 2016-10-01 12:02:01\nExitNode A\n";
    assert!(matches!(fault("tordnsel", "x", stamped), Fault::OtherKind { .. }));
    assert!(matches!(fault("tordnsel", "x", b"@type tordnsel 2.0\nExitNode A\n"), Fault::OtherKind { .. }));
    assert!(read("tordnsel", "x", b"@type tordnsel 1.7\nExitNode A\n")[0].verdict.is_ok(), "the same first number");
}

#[test]
fn b04_a_cut_tail_leaves_what_came_before() {
    let cut = &SERVER_DESCRIPTORS[..SERVER_DESCRIPTORS.len() - 60];
    let found = read("server-descriptor", "x", cut);
    let good: Vec<bool> = found.iter().map(|s| s.verdict.is_ok()).collect();
    assert_eq!(good, [true, true, false]);
    assert_eq!(found[2].at, found[0].length + found[1].length);
    assert!(matches!(found[2].verdict, Err(Fault::End { .. })), "{:?}", found[2].verdict);
    let bytes: Vec<u8> = found.iter().flat_map(|s| s.bytes.clone()).collect();
    assert_eq!(bytes, cut);
}

#[test]
fn cut_tails_are_seen_where_a_kind_has_an_end() {
    for (kind, bytes, name) in fixtures() {
        if named(kind).is_some_and(Kind::is_open_ended) {
            continue;
        }
        let whole = read(kind, name, bytes).len();
        // Up to the signature's last line; without its line's end it is cut all the same.
        for at in [bytes.len() - 1, bytes.len() - 2, bytes.len() - 20] {
            let good = read(kind, name, &bytes[..at]).iter().filter(|s| s.verdict.is_ok()).count();
            // The sanitized ones that stem makes have their digest in the middle.
            let allowed = if kind.starts_with("bridge") && at == bytes.len() - 20 { whole } else { whole - 1 };
            assert!(good <= allowed, "{kind} cut at {at} passes");
        }
    }
}

#[test]
fn b05_an_exit_list_has_no_end_that_could_be_missing() {
    let ended: usize = EXIT_LIST.len() - EXIT_LIST.rsplit(|b| *b == b'\n').nth(1).map_or(0, |line| line.len() + 1);
    assert!(read("tordnsel", "x", &EXIT_LIST[..ended])[0].verdict.is_ok());
    assert_eq!(fault("tordnsel", "x", &EXIT_LIST[..ended + 5]), Fault::CutLine);
    assert!(named("tordnsel").is_some_and(Kind::is_open_ended));
}

#[test]
fn b20_a_stub_is_not_valid() {
    assert_eq!(fault("tordnsel", "x", b"@type tordnsel 1.0\n"), Fault::Stub);
    assert_eq!(fault("server-descriptor", "x", b"@type server-descriptor 1.0\n"), Fault::Stub);
    assert_eq!(fault("tordnsel", "x", b""), Fault::Empty);
    assert_eq!(fault("any", "x", b""), Fault::Empty);
}

#[test]
fn b23_a_missing_annotation_is_inferred() {
    let bare = SERVER_DESCRIPTORS.strip_prefix(b"@type server-descriptor 1.0\n").expect("it has one");
    let found = read("server-descriptor", "x", bare);
    assert_eq!(found.iter().map(|s| s.annotated).collect::<Vec<_>>(), [false, true, true]);
    assert!(found.iter().all(|s| s.verdict.is_ok()));
    assert_eq!(named("server-descriptor").map(Kind::annotation).as_deref(), Some("@type server-descriptor 1.0\n"));
    assert_eq!(named("bridge-extra-info").map(Kind::annotation).as_deref(), Some("@type bridge-extra-info 1.3\n"));
    let twice = read("server-descriptor", "x", &[bare, SERVER_DESCRIPTORS].concat());
    assert_eq!(twice[0].verdict, twice[3].verdict, "an annotation is no part of what names it");
}

#[test]
fn a_digest_in_a_name_is_checked() {
    use sha1::Digest as _;
    let body = VOTE.strip_prefix(b"@type network-status-vote-3 1.0\n").expect("it has one");
    let end = body.windows(21).position(|w| w == b"\ndirectory-signature ").expect("it has one") + 21;
    let name = |digest: &str| format!("2016-10-01-12-00-00-vote-{:040X}-{digest}", 7);
    for signed in [&body[..end], body] {
        let digest = hex::encode_upper(sha1::Sha1::digest(signed));
        assert!(read("network-status-vote-3", &name(&digest), VOTE)[0].verdict.is_ok());
    }
    let wrong = fault("network-status-vote-3", &name(&"0".repeat(40)), VOTE);
    assert!(matches!(wrong, Fault::Digest { algorithm: Algorithm::Sha1, .. }), "{wrong:?}");
    let bandwidth = fixture!("bandwidth");
    let digest = hex::encode(sha2::Sha256::digest(bandwidth));
    assert!(read("bandwidth-file", &format!("x-bandwidth-{digest}"), bandwidth)[0].verdict.is_ok());
    let wrong = fault("bandwidth-file", &format!("x-bandwidth-{}", "0".repeat(64)), bandwidth);
    assert!(matches!(wrong, Fault::Digest { algorithm: Algorithm::Sha256, .. }));
}

#[test]
fn what_names_a_descriptor_and_when_it_is_from() {
    use sha1::Digest as _;
    let found = read("server-descriptor", "x", SERVER_DESCRIPTORS);
    let text = std::str::from_utf8(&found[0].bytes).expect("text");
    let signed = text.split_once('\n').expect("lines").1.split_once("-----BEGIN SIGNATURE").expect("signed").0;
    let facts = found[0].verdict.as_ref().expect("good");
    assert_eq!(facts.identity, Some(hex::encode(sha1::Sha1::digest(signed))));
    assert_eq!(facts.date, stamp::parse("2016-10-01 11:22:33"));
    let bridge = read("bridge-server-descriptor", "x", fixture!("bridge-server-descriptors"));
    let named = bridge[0].verdict.as_ref().expect("good").identity.clone();
    assert_eq!(named.as_deref(), Some("006fd96ba35e7785a6a3b8b75fe2e2435a13bdb4"));
    let cert = read("dir-key-certificate-3", "x", fixture!("certs"));
    let named = cert[0].verdict.as_ref().expect("good").identity.clone().expect("named");
    assert!(named.ends_with("-2007-07-16-09-12-07"), "{named}");
    let consensus = read("network-status-consensus-3", "x", fixture!("consensus"));
    assert_eq!(consensus[0].verdict.as_ref().expect("good").signatures, 1);
    let torperf = read("torperf", "x", fixture!("torperf"));
    assert_eq!(torperf[0].verdict.as_ref().expect("good").date.map(stamp::seconds), Some(1_475_280_307));
}

#[test]
fn the_folder_tells_the_kind_by_its_components() {
    for (path, kind) in [
        ("recent/exit-lists/2016-10-01-12-02-01", Some("tordnsel")),
        ("recent/exit-lists-old/2016-10-01-12-02-01", None),
        ("recent/relay-descriptors/microdescs/micro/x", Some("microdescriptor")),
        ("recent/relay-descriptors/microdescs/x", None),
        ("recent/bridge-descriptors/server-descriptors/x", Some("bridge-server-descriptor")),
        ("recent/relay-descriptors/server-descriptors/x", Some("server-descriptor")),
    ] {
        assert_eq!(for_folder(path).map(|kind| kind.name), kind, "{path}");
    }
}

#[test]
fn lines_and_descriptors_have_a_limit() {
    let mut long = b"ExitNode ".to_vec();
    long.resize(2 << 20, b'x');
    long.extend_from_slice(b"\nExitNode A\n");
    for piece in [1 << 12, long.len()] {
        let found = read_in("tordnsel", "x", &long, piece);
        assert!(matches!(found[..], [Segment { verdict: Err(Fault::TooLong { .. }), .. }]), "{found:?}");
    }
    let mut long = b"router x\n".to_vec();
    while long.len() <= 17 << 20 {
        long.extend_from_slice(&[b'y'; 1000]);
        long.push(b'\n');
    }
    long.extend_from_slice(SERVER_DESCRIPTORS);
    let found = read("server-descriptor", "x", &long);
    assert_eq!(found.iter().filter(|s| s.verdict.is_ok()).count(), 3, "the others are not lost");
    assert!(found.iter().all(|s| s.bytes.len() <= 16 << 20));
}

proptest! {
    #[test]
    fn anything_may_come(kind in 0..16_usize, text in "(@type [a-z0-9-]{1,20} [0-9.]{0,4}\n)?([a-zA-Z@ -]{0,30}\n?){0,12}") {
        let kind = names().nth(kind).expect("a kind");
        let found = read(kind, "2016-10-01-12-00-00", text.as_bytes());
        prop_assert_eq!(found.iter().map(|s| s.length).sum::<u64>(), text.len() as u64);
        let mut at = 0;
        for segment in &found {
            prop_assert_eq!(segment.at, at);
            at += segment.length;
        }
    }

    #[test]
    fn a_flipped_byte_never_makes_more_good_ones(at in 0..2_000_usize, bit in 0..8_u8) {
        let mut bytes = SERVER_DESCRIPTORS.to_vec();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        let good = read("server-descriptor", "x", &bytes).iter().filter(|s| s.verdict.is_ok()).count();
        prop_assert!(good <= 3);
    }
}
