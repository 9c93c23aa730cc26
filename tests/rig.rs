//! The rig itself: what it is told to do on the wire is what a client sees there.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use support::{End, Reply, Rig, Served, gzip, ms, noise};

/// Sends one request and reads until the connection ends.
fn fetch(rig: &Rig, header: &str) -> (Vec<u8>, Option<ErrorKind>) {
    let address = rig.url("").trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /f HTTP/1.1\r\nHost: h\r\n{header}\r\n").unwrap();
    let mut all = Vec::new();
    let failed = stream.read_to_end(&mut all).err().map(|e| e.kind());
    (all, failed)
}

fn head_and_body(all: &[u8]) -> (String, &[u8]) {
    let end = all.windows(4).position(|w| w == b"\r\n\r\n").expect("a head");
    (String::from_utf8_lossy(&all[..end]).into_owned(), &all[end + 4..])
}

#[test]
fn a_range_is_what_was_asked_for_and_everything_is_counted() {
    let data = noise(1, 10_000);
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).then(End::Close));
    let (all, failed) = fetch(&rig, "Range: bytes=4000-4999\r\n");
    let (head, body) = head_and_body(&all);
    assert_eq!((body, failed), (&data[4000..5000], None));
    assert!(head.starts_with("HTTP/1.1 206 ") && head.contains("Content-Range: bytes 4000-4999/10000"), "{head}");
    assert_eq!(rig.sent(), all.len() as u64);
    assert_eq!((rig.count(), rig.connections(), rig.heads()), (1, 1, 0));
    assert_eq!(rig.asked()[0].from(), 4000);
}

#[test]
fn conditions_are_read_as_rfc_9110_says() {
    let data = noise(2, 1000);
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).then(End::Close));
    let status = |header: &str| String::from_utf8_lossy(&fetch(&rig, header).0[9..12]).into_owned();
    assert_eq!(status("If-None-Match: \"one\"\r\n"), "304");
    assert_eq!(status("Range: bytes=5-\r\nIf-Range: \"one\"\r\n"), "206");
    assert_eq!(status("Range: bytes=5-\r\nIf-Range: \"two\"\r\n"), "200");
    assert_eq!(status("Range: bytes=5-\r\nIf-Range: W/\"one\"\r\n"), "200");
    assert_eq!(status("Range: bytes=1000-\r\n"), "416");
}

#[test]
fn a_cut_is_short_and_a_reset_is_an_error() {
    let data = noise(3, 100_000);
    for (end, error) in [(End::Close, None), (End::Reset, Some(ErrorKind::ConnectionReset))] {
        let served = Served::new(&data);
        let rig = Rig::start(move |a| served.reply(a).pace(10_000, ms(5)).cut(30_000, end));
        let (all, failed) = fetch(&rig, "");
        assert_eq!(failed, error);
        if end == End::Close {
            assert_eq!(head_and_body(&all).1, &data[..30_000]);
        }
    }
}

#[test]
fn chunks_come_with_and_without_their_end() {
    let data = noise(4, 1000);
    let (open, closed) = (data.clone(), data);
    let rig = Rig::start(move |_| Reply::status(200).body(&closed, 0..1000).chunked().then(End::Close));
    assert!(fetch(&rig, "").0.ends_with(b"\r\n0\r\n\r\n"));
    rig.now(move |_| Reply::status(200).body(&open, 0..1000).chunked_without_end());
    let (all, _) = fetch(&rig, "");
    assert!(head_and_body(&all).1.starts_with(b"3e8\r\n") && !all.ends_with(b"0\r\n\r\n"));
}

#[test]
fn a_rig_that_stopped_refuses_connections_and_ends_what_hangs() {
    let rig = Rig::start(|_| Reply::status(200).then(End::Hang));
    let address = rig.url("").trim_start_matches("http://").to_owned();
    std::thread::scope(|s| {
        let hanging = s.spawn(|| fetch(&rig, ""));
        support::eventually("the request", || rig.count() == 1);
        rig.stop();
        assert!(hanging.join().is_ok());
    });
    support::eventually("a refusal", || TcpStream::connect(&address).is_err());
}

#[test]
fn the_gzip_made_here_is_read_by_gzip() {
    let data = noise(5, 150_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.gz");
    std::fs::write(&path, gzip(&data).as_slice()).unwrap();
    let out = std::process::Command::new("gzip").arg("-dc").arg(&path).output().unwrap();
    assert!(out.status.success() && out.stdout == *data);
}
