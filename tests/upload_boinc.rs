//! The double of BOINC's upload handler answers as the real one was seen to (docs/uploads.md), front end by front end.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use support::{eventually, noise};
use upload::{Boinc, BoincFault, FrontEnd, Heard, Raw, Signatures};

const ALL: [FrontEnd; 4] = [FrontEnd::Apache, FrontEnd::Lighttpd, FrontEnd::NginxBuffering, FrontEnd::NginxStreaming];

const OPENING: &str = "<data_server_request>\n    <core_client_major_version>8</core_client_major_version>\n    \
    <core_client_minor_version>2</core_client_minor_version>\n    <core_client_release>0</core_client_release>\n";

/// The head of an upload of a file `f`.
fn head(nbytes: usize, offset: usize) -> String {
    format!(
        "{OPENING}<file_upload>\n<file_info>\n<name>f</name>\n<xml_signature>\n0123\nabcd\n.\n</xml_signature>\n\
         <max_nbytes>4000000</max_nbytes>\n</file_info>\n<nbytes>{nbytes}</nbytes>\n<md5_cksum>00</md5_cksum>\n\
         <offset>{offset}</offset>\n<data>\n"
    )
}

fn post(server: &Boinc, head: &str, data: &[u8]) -> Raw {
    Raw::new("POST", &server.url()).header("Content-Type", "text/xml").body(&[head.as_bytes(), data].concat())
}

/// Sends all of `data` from an offset.
fn send(server: &Boinc, data: &[u8], offset: usize) -> Heard {
    post(server, &head(data.len(), offset), &data[offset..]).send()
}

fn value(heard: &Heard, tag: &str) -> Option<i64> {
    let text = heard.text();
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    rest.split('<').next()?.parse().ok()
}

fn status(heard: &Heard) -> Option<i64> {
    value(heard, "status")
}

fn query(server: &Boinc) -> Heard {
    let text = format!("{OPENING}    <get_file_size>f</get_file_size>\n</data_server_request>\n");
    post(server, &text, b"").send()
}

fn size(server: &Boinc) -> Option<i64> {
    value(&query(server), "file_size")
}

#[test]
fn an_upload_in_two_parts() {
    for front in ALL {
        let (server, data) = (Boinc::start(front), noise(1, 3_000_000));
        assert_eq!(size(&server), Some(0));
        let short = post(&server, &head(data.len(), 0), &data[..1_000_000]).send();
        assert_eq!(status(&short), Some(1));
        assert!(short.text().contains("EOF on socket read"), "{}", short.text());
        assert_eq!(size(&server), Some(1_000_000));
        assert_eq!(status(&send(&server, &data, 1_000_000)), Some(0));
        assert_eq!(size(&server), Some(3_000_000));
        assert_eq!(server.stored("f").as_deref(), Some(&data[..]));
        let seen = server.seen();
        assert_eq!(seen[3].head, head(data.len(), 1_000_000));
        assert_eq!((seen[3].signature.as_deref(), seen[3].data), (Some("0123\nabcd\n.\n"), 2_000_000));
        assert_eq!((seen[3].offset, seen[3].md5.as_deref()), (Some(1_000_000.0), Some("00")));
        assert_eq!(server.complaints(), [""; 0]);
    }
}

#[test]
fn what_survives_a_killed_connection() {
    for (front, kept) in [
        (FrontEnd::Apache, 786_432),
        (FrontEnd::NginxStreaming, 1_000_000),
        (FrontEnd::NginxBuffering, 0),
        (FrontEnd::Lighttpd, 0),
    ] {
        // Killed by the server's side, at an exact byte; then by the client's.
        let (server, data) = (Boinc::start(front), noise(2, 3_000_000));
        server.uploads().next(BoincFault::Cut { after: 1_000_000 });
        let cut = send(&server, &data, 0);
        assert_eq!((cut.status(), cut.failed.is_some()), (None, true), "{front:?}");
        assert_eq!(size(&server), Some(kept), "{front:?}");
        let server = Boinc::start(front);
        let text = head(data.len(), 0);
        post(&server, &text, &data).killed_after(1_000_000 + text.len()).send();
        let came = (1_000_000 + text.len()) as u64;
        eventually("the body has come so far", || server.door.received() == came);
        eventually("what stays is there", || size(&server) == Some(kept));
        assert!(!server.door.log()[0].whole && server.door.log()[0].answer.is_none());
    }
}

#[test]
fn a_refusal_before_the_data_depends_on_the_front_end() {
    let data = noise(3, 700_000);
    let refused = |front, fault| {
        let server = Boinc::start(front);
        server.uploads().now(fault);
        let with_data = send(&server, &data, 0);
        let without = post(&server, &head(data.len(), 0), b"").send();
        assert_eq!(server.stored("f"), None);
        (with_data, status(&without))
    };
    for (fault, code) in [(BoincFault::BadSignature, -1), (BoincFault::Locked, 1), (BoincFault::Stopped, 1)] {
        let (heard, without) = refused(FrontEnd::Apache, fault);
        assert_eq!((heard.status(), without), (None, Some(code)), "no answer at all, unless there is no data");
        let (heard, without) = refused(FrontEnd::Lighttpd, fault);
        assert_eq!((heard.status(), status(&heard), without), (Some(200), Some(code), Some(code)));
        for front in [FrontEnd::NginxBuffering, FrontEnd::NginxStreaming] {
            let (heard, without) = refused(front, fault);
            assert_eq!((heard.status(), status(&heard), without), (Some(502), None, Some(code)));
        }
    }
}

#[test]
fn signatures_are_compared_byte_for_byte() {
    for (good, code) in [("0123\nabcd\n.\n", 0), ("0123\nabcd\n.", -1)] {
        let server = Boinc::with(FrontEnd::Lighttpd, Signatures::Only(good.to_owned()));
        assert_eq!(status(&send(&server, b"data", 0)), Some(code));
    }
}

#[test]
fn odd_requests_get_the_answers_that_were_seen() {
    let (server, data) = (Boinc::start(FrontEnd::Apache), noise(4, 100_000));
    let ask = |nbytes, offset, data: &[u8]| post(&server, &head(nbytes, offset), data).send();
    assert_eq!(status(&ask(10, 10, b"")), Some(0), "an offset at the end");
    assert_eq!(server.stored("f"), None, "stores nothing");
    let beyond = ask(10, 5, b"");
    assert_eq!(status(&beyond), Some(1));
    assert!(beyond.text().contains("< offset 5"), "{}", beyond.text());
    assert_eq!(ask(10, 5, &data[..5]).status(), None);
    assert_eq!(status(&ask(0, 0, b"")), Some(0));
    assert_eq!(server.stored("f").as_deref(), Some(&b""[..]), "nothing makes an empty file");
    let no_data = ask(10, 0, b"");
    assert!(no_data.text().contains("got 0"), "{}", no_data.text());
    let limit = ask(5_000_000, 0, &data);
    assert_eq!(status(&limit), Some(-1), "the body was read: {}", limit.text());
    assert_eq!(status(&ask(50_000, 0, &data)), Some(0), "more than was announced is ignored");
    assert_eq!(server.stored("f").as_deref(), Some(&data[..50_000]));
    assert_eq!(status(&ask(100_000, 40_000, &data[40_000..])), Some(0), "an overlap is fine");
    assert_eq!(server.stored("f").as_deref(), Some(&data[..]));
    assert_eq!(status(&ask(3, 0, b"xyz")), Some(0));
    assert_eq!(size(&server), Some(100_000), "the old tail stays");
    let chunked = post(&server, &head(data.len(), 0), &data).chunked().send();
    assert_eq!(status(&chunked), Some(0));
    assert_eq!(server.complaints(), ["no Content-Length"]);
}

#[test]
fn files_that_cannot_be_written_swallow_the_data() {
    let (server, data) = (Boinc::start(FrontEnd::Apache), noise(5, 300_000));
    server.place("f", &data[..1000]);
    let file = std::fs::File::open(server.path("f")).unwrap();
    file.set_permissions(std::fs::Permissions::from_mode(0o444)).unwrap();
    assert_eq!(status(&send(&server, &data, 1000)), Some(0));
    assert_eq!(size(&server), Some(1000));
    let server = Boinc::start(FrontEnd::Apache);
    server.uploads().now(BoincFault::ReadOnly);
    assert_eq!((status(&send(&server, &data, 0)), size(&server)), (Some(0), Some(0)));
    server.uploads().now(BoincFault::DiskFull { after: 1000 });
    assert_eq!((status(&send(&server, &data, 0)), size(&server)), (Some(1), Some(1000)));
}

#[test]
fn sizes_wrap_and_lag_and_lie() {
    let server = Boinc::start(FrontEnd::Apache);
    server.place_hole("f", 3 << 30);
    assert_eq!(size(&server), Some(-1_073_741_824));
    server.place_hole("f", (4 << 30) + 5);
    assert_eq!(size(&server), Some(5));
    server.queries().next(BoincFault::SizeIs(17));
    assert_eq!((size(&server), size(&server)), (Some(17), Some(5)));
    let server = Boinc::start(FrontEnd::Apache);
    assert_eq!(status(&send(&server, b"first", 0)), Some(0));
    server.lag(2);
    assert_eq!((size(&server), size(&server), size(&server)), (Some(0), Some(0), Some(5)));
}

#[test]
fn a_stalled_upload_holds_its_file_and_pages_hold_nothing() {
    let (server, data) = (Boinc::start(FrontEnd::Apache), noise(6, 1_000_000));
    server.uploads().next(BoincFault::Stall { after: 300_000 });
    std::thread::scope(|scope| {
        let stalled = scope.spawn(|| send(&server, &data, 0));
        eventually("it is under way", || size(&server).is_none());
        let busy = query(&server);
        assert_eq!(status(&busy), Some(1));
        assert!(busy.text().contains("locked by PID"), "{}", busy.text());
        server.door.kill();
        assert_eq!(stalled.join().unwrap().status(), None);
    });
    server.door.revive();
    assert_eq!(size(&server), Some(262_144));
    for (fault, code) in [(BoincFault::Page(503), Some(503)), (BoincFault::EmptyReply, Some(200))] {
        server.uploads().next(fault);
        let heard = send(&server, &data, 0);
        assert_eq!((heard.status(), status(&heard)), (code, None));
    }
    server.uploads().next(BoincFault::AnswerLost);
    assert_eq!(send(&server, &data, 0).status(), None);
    assert_eq!(server.stored("f").as_deref(), Some(&data[..]));
    assert_eq!(server.seen().last().unwrap().reply, Some(0), "it was said, and lost");
}

#[test]
fn a_client_that_waits_is_told_to_go_on() {
    let server = Boinc::start(FrontEnd::Apache);
    let heard = post(&server, &head(4, 0), b"data").waits().pace(1000, Duration::ZERO).send();
    assert_eq!((heard.interim.len(), heard.interim[0].status, status(&heard)), (1, 100, Some(0)));
}
