//! `put` and `put-range` by the built program against real WebDAV servers: the file is there, byte for byte, or the exit status
//! says that it is not; an old file is there until the new one is.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use std::collections::HashMap;
use std::sync::Mutex;

use support::{eventually, ms, noise};
use upload::{Dav, DavServer, Door, FILE, Mischief, Proxy, Way, nginx_before, sends, story, with_file};

const BOTH: [&str; 2] = ["put", "put-range"];
/// Above what is read back by default, and below what the nginx of the rig takes.
const LARGE: usize = 2_500_000;

/// Passed on slowly enough to be stopped on its way.
const SLOW: Mischief = Mischief::Paces { bytes: 50_000, rest: ms(10) };

/// Exactly the file, under its name and under no other.
#[track_caller]
fn holds_only(server: &DavServer, data: &[u8], what: &str) {
    assert_eq!(server.names(), [FILE], "{what}");
    same(server, FILE, data, what);
}

#[track_caller]
fn same(server: &DavServer, name: &str, data: &[u8], what: &str) {
    let stored = server.stored(name);
    let told = stored.as_ref().map(Vec::len);
    assert!(stored.as_deref() == Some(data), "{what}: {name} holds {told:?} bytes of {}, or others", data.len());
}

/// A server that keeps what is put in memory, with a hand on it: what is stored is what `spoils` makes of it.
fn store_that(spoils: fn(Vec<u8>) -> Vec<u8>) -> Door {
    store_but(spoils, "")
}

/// The same, which answers 403 to one method.
fn store_but(spoils: fn(Vec<u8>) -> Vec<u8>, refused: &'static str) -> Door {
    let files: Mutex<HashMap<String, Vec<u8>>> = Mutex::default();
    Door::open(move |visit| {
        let path = visit.path().to_owned();
        let mut body = Vec::new();
        let mut piece = vec![0; 64 << 10];
        while visit.has_body() {
            match visit.take(&mut piece) {
                Ok(n) => body.extend_from_slice(&piece[..n]),
                Err(_) => return Way::Close,
            }
        }
        let mut files = files.lock().unwrap();
        match visit.method.as_str() {
            method if method == refused => visit.answer(403, &[], ""),
            "PUT" => {
                files.insert(path, spoils(body));
                visit.answer(201, &[], "")
            }
            "MOVE" => {
                let to = visit.header("destination").unwrap_or_default();
                let to = to.strip_prefix("http://").and_then(|rest| rest.find('/').map(|at| rest[at..].to_owned()));
                match (files.remove(&path), to) {
                    (Some(file), Some(to)) => {
                        files.insert(to, file);
                        visit.answer(201, &[], "")
                    }
                    _ => visit.answer(404, &[], ""),
                }
            }
            "DELETE" => {
                let status = if files.remove(&path).is_some() { 204 } else { 404 };
                visit.answer(status, &[], "")
            }
            _ => match files.get(&path) {
                Some(file) => visit.answer(200, &[], &String::from_utf8_lossy(file)),
                None => visit.answer(404, &[], ""),
            },
        }
    })
}

/// Bytes that are a text too: the double above answers in texts.
fn text(n: usize) -> Vec<u8> {
    noise(9, n).iter().map(|byte| b'a' + byte % 26).collect()
}

fn spoilt(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(byte) = bytes.get_mut(1000) {
        *byte = b'!';
    }
    bytes
}

#[test]
fn every_server_has_the_whole_file_in_the_end_and_nothing_else() {
    let (small, large) = (noise(1, 300_000), noise(2, LARGE));
    for kind in Dav::ALL {
        for protocol in BOTH {
            let server = kind.start();
            for (data, evidence) in [(&small, "digest"), (&large, "length")] {
                let w = with_file(data);
                let ran = sends(&w, &["--protocol", protocol], &[&server.url("")]).run();
                ran.uploaded(evidence);
                holds_only(&server, data, &format!("{kind:?} by {protocol}: {ran}"));
            }
        }
    }
}

#[test]
fn a_temporary_name_and_a_move_and_ranges_where_they_are_honoured() {
    let data = noise(3, 300_000);
    let honours = [Dav::Apache, Dav::LighttpdRanged];
    for kind in Dav::ALL {
        let server = kind.start();
        let proxy = Proxy::before(server.daemon.port());
        let w = with_file(&data);
        sends(&w, &["--protocol", "put-range"], &[&proxy.url(&server.url(FILE))]).run().uploaded("digest");
        let log = proxy.door.log();
        let story = story(&log);
        let under_the_name = log.iter().any(|e| e.method == "PUT" && e.target.ends_with(FILE));
        assert!(!under_the_name && proxy.door.by("MOVE").len() == 1, "{kind:?}\n{story}");
        let ranged = |e: &&upload::Exchange| e.header("content-range").is_some() && e.target.contains(".part-");
        assert_eq!(log.iter().filter(ranged).count() > 0, honours.contains(&kind), "{kind:?}\n{story}");
        holds_only(&server, &data, &format!("{kind:?}\n{story}"));
    }
}

#[test]
fn an_empty_file_and_one_of_a_byte_arrive_too() {
    for kind in [Dav::Apache, Dav::LighttpdRanged, Dav::Rclone] {
        let server = kind.start();
        for protocol in BOTH {
            for data in [&b""[..], b"x", b"abcd"] {
                let w = with_file(data);
                let ran = sends(&w, &["--protocol", protocol], &[&server.url("")]).run();
                // An empty one too: who tells no length of it to a HEAD tells it to a GET.
                let known = !ran.exits(0).stderr.contains("evidence: none");
                assert!(known, "{kind:?} by {protocol}, {} bytes: {ran}", data.len());
                holds_only(&server, data, &format!("{kind:?} by {protocol}, {} bytes: {ran}", data.len()));
            }
        }
    }
}

#[test]
fn an_old_file_stays_until_the_new_one_is_whole() {
    let (old, data) = (noise(4, LARGE), noise(5, LARGE));
    for kind in [Dav::Apache, Dav::Nginx, Dav::Rclone, Dav::Wsgidav] {
        for protocol in BOTH {
            let what = format!("{kind:?} by {protocol}");
            let server = kind.start();
            server.place(FILE, &old);
            let proxy = Proxy::before(server.daemon.port());
            proxy.now(SLOW);
            let w = with_file(&data);
            let url = proxy.url(&server.url(""));
            let running = sends(&w, &["--protocol", protocol], &[&url]).start();
            running.kill_when(|| proxy.door.log().iter().any(|e| e.received > 1_000_000));
            same(&server, FILE, &old, &what);
            proxy.now(Mischief::None);
            sends(&w, &["--protocol", protocol], &[&url]).run().exits(0);
            holds_only(&server, &data, &format!("{what}\n{}", story(&proxy.door.log())));
        }
    }
}

#[test]
fn a_missing_folder_is_made_once_and_two_are_told() {
    let data = noise(6, 20_000);
    for kind in Dav::ALL {
        let server = kind.start();
        let proxy = Proxy::before(server.daemon.port());
        let w = with_file(&data);
        sends(&w, &[], &[&proxy.url(&server.url("in/"))]).run().uploaded("digest");
        let story = story(&proxy.door.log());
        same(&server, "in/f.bin", &data, &format!("{kind:?}\n{story}"));
        assert_eq!(support::names_in(&server.path("in")).iter().filter(|n| *n != ".DAV").count(), 1, "{kind:?}");
        assert!(proxy.door.by("MKCOL").len() <= 1, "{kind:?}\n{story}");
        if kind == Dav::Nginx {
            continue;
        }
        let w = with_file(&data);
        let ran = sends(&w, &[], &[&server.url("a/b/")]).run();
        ran.exits(3).says(&["404", "409"]);
        assert_eq!(server.stored("a/b/f.bin"), None, "{kind:?}: {ran}");
    }
}

#[test]
fn an_older_file_of_the_same_size_is_not_taken_for_the_new_one() {
    let (old, data) = (noise(7, LARGE), noise(8, LARGE));
    for kind in [Dav::Apache, Dav::Lighttpd, Dav::Nginx] {
        for protocol in BOTH {
            let server = kind.start();
            server.place(FILE, &old);
            let proxy = Proxy::before(server.daemon.port());
            // No temporary names here, and the first body under the name itself is cut.
            for _ in 0..2 {
                proxy.next_of(
                    &format!("PUT {}", path(&server, "f.bin.part-")),
                    Mischief::Answers { status: 403, retry_after: None },
                );
            }
            proxy.next_of(
                &format!("PUT {}", path(&server, "f.bin.try-")),
                Mischief::Answers { status: 403, retry_after: None },
            );
            proxy.next(Mischief::Cuts { after: 1_000_000, way: Way::Reset });
            let w = with_file(&data);
            let ran = sends(&w, &["--protocol", protocol], &[&proxy.url(&server.url(""))]).run();
            ran.exits(0);
            let story = story(&proxy.door.log());
            holds_only(&server, &data, &format!("{kind:?} by {protocol}: {ran}\n{story}"));
            assert!(
                proxy.door.log().iter().any(|e| e.method == "PUT" && e.received >= 1_000_000 && !e.whole),
                "{story}"
            );
        }
    }
}

/// The path of a name at the server.
fn path(server: &DavServer, name: &str) -> String {
    let url = server.url(name);
    url.trim_start_matches("http://").split_once('/').map(|(_, rest)| format!("/{rest}")).unwrap()
}

#[test]
fn a_body_over_the_limit_of_a_front_end_is_refused_and_told() {
    let data = noise(10, LARGE);
    let (apache, other) = (Dav::Apache.start(), Dav::Apache.start());
    let front = nginx_before(apache.daemon.port(), "1m");
    let url = front.url("/dav/f.bin");
    for protocol in BOTH {
        let w = with_file(&data);
        let ran = sends(&w, &["--protocol", protocol], &[&url]).run();
        if protocol == "put" {
            ran.exits(3).says(&["413"]);
            assert_eq!(apache.names(), [""; 0], "nothing is left: {ran}");
        } else {
            // In pieces it passes.
            ran.exits(0);
            holds_only(&apache, &data, &format!("{ran}"));
        }
    }
    let w = with_file(&data);
    let ran = sends(&w, &[], &[&url, &other.url(FILE)]).run();
    ran.exits(0);
    holds_only(&other, &data, &format!("the second takes it: {ran}"));
}

#[test]
fn wrong_credentials_ask_for_attention_and_the_upload_waits() {
    let server = Dav::Apache.start();
    let proxy = Proxy::before(server.daemon.port());
    proxy.now(Mischief::Answers { status: 401, retry_after: None });
    let data = noise(11, 300_000);
    for protocol in BOTH {
        let w = with_file(&data);
        let url = proxy.url(&server.url(FILE)).replace("http://", "http://me:s3cret@");
        let ran = sends(&w, &["--protocol", protocol, "--once"], &[&url]).run();
        ran.exits(4).says(&["401"]).hides("s3cret");
        assert_eq!(server.names(), [""; 0]);
    }
}

#[test]
fn a_redirect_of_every_request_is_followed() {
    let server = Dav::Apache.start();
    let data = noise(12, LARGE);
    for status in [307, 308] {
        let to = server.daemon.url("/dav");
        let door = Door::open(move |visit| {
            let rest = visit.target.strip_prefix("/old").unwrap_or_default().to_owned();
            let _ = visit.drain();
            visit.answer(status, &[("Location", format!("{to}{rest}"))], "")
        });
        for protocol in BOTH {
            let w = with_file(&data);
            let ran = sends(&w, &["--protocol", protocol], &[&door.url("/old/f.bin")]).run();
            ran.exits(0);
            holds_only(&server, &data, &format!("{status} by {protocol}: {ran}"));
            std::fs::remove_file(server.path(FILE)).unwrap();
        }
    }
}

#[test]
fn a_server_that_stores_something_else_is_found_out() {
    let (small, large) = (text(300_000), text(LARGE));
    for (data, verify, exits) in
        [(&small, "small", 3), (&small, "never", 0), (&large, "small", 0), (&large, "always", 3), (&small, "always", 3)]
    {
        for protocol in BOTH {
            let door = store_that(spoilt);
            let w = with_file(data);
            let words = ["--protocol", protocol, "--verify", verify];
            let ran = sends(&w, &words, &[&door.url("/f.bin")]).run();
            ran.exits(exits);
            if exits == 0 {
                ran.uploaded("length");
            } else {
                ran.says(&["digest", "blake3"]);
                let sent = door.log().iter().filter(|e| e.method == "PUT" && e.received as usize == data.len()).count();
                assert_eq!(sent, 2, "{protocol} --verify {verify}: once more, then it is said: {}", story(&door.log()));
                assert!(!door.log().iter().any(|e| e.method == "MOVE"), "{}", story(&door.log()));
            }
        }
    }
    let door = store_that(|bytes| bytes);
    let w = with_file(&large);
    sends(&w, &["--verify", "always"], &[&door.url("/f.bin")]).run().uploaded("digest");
    // Read before it is moved, and again under its name.
    let read: Vec<_> = door.log().iter().filter(|e| e.method == "GET").map(|e| e.target.clone()).collect();
    assert!(read.len() == 2 && read[0].starts_with("/f.bin.part-") && read[1] == "/f.bin", "{read:?}");
}

#[test]
fn a_demand_to_verify_that_cannot_be_met_is_a_failure() {
    let data = text(LARGE);
    for protocol in BOTH {
        let door = store_but(|bytes| bytes, "GET");
        let w = with_file(&data);
        let ran = sends(&w, &["--protocol", protocol, "--verify", "always"], &[&door.url("/f.bin")]).run();
        ran.exits(3).says(&["cannot be read back and compared", "403", "--verify always"]);
        let w = with_file(&data);
        sends(&w, &["--protocol", protocol], &[&door.url("/f.bin")]).run().uploaded("length");
    }
}

#[test]
fn a_server_that_stores_less_is_found_out() {
    let data = text(LARGE);
    for protocol in BOTH {
        let door = store_that(|mut bytes| {
            bytes.truncate(1_000_000);
            bytes
        });
        let w = with_file(&data);
        let ran = sends(&w, &["--protocol", protocol, "--verify", "never"], &[&door.url("/f.bin")]).run();
        ran.exits(3).says(&["bytes", "size"]);
    }
}

#[test]
fn an_answer_that_is_lost_after_the_whole_body_costs_no_second_body() {
    let data = noise(13, LARGE);
    for kind in [Dav::Apache, Dav::Nginx, Dav::Rclone] {
        for protocol in BOTH {
            let server = kind.start();
            let proxy = Proxy::before(server.daemon.port());
            proxy.next_of(&format!("PUT {}", path(&server, "f.bin.part-")), Mischief::LosesAnswer);
            proxy.next_of("MOVE", Mischief::LosesAnswer);
            let w = with_file(&data);
            let ran = sends(&w, &["--protocol", protocol], &[&proxy.url(&server.url(""))]).run();
            ran.exits(0);
            let story = story(&proxy.door.log());
            holds_only(&server, &data, &format!("{kind:?} by {protocol}: {ran}\n{story}"));
            let most = data.len() as u64 + 100;
            assert!(proxy.door.received() <= most, "{kind:?} by {protocol}: {ran}\n{story}");
        }
    }
}

#[test]
fn a_cut_body_is_sent_again_and_nothing_half_is_left() {
    let data = noise(14, LARGE);
    for kind in Dav::ALL {
        for protocol in BOTH {
            let server = kind.start();
            let proxy = Proxy::before(server.daemon.port());
            for (after, way) in [(0, Way::Reset), (700_000, Way::Close), (1_800_000, Way::Reset)] {
                proxy.next_of(&format!("PUT {}", path(&server, "f.bin.part-")), Mischief::Cuts { after, way });
            }
            let w = with_file(&data);
            let ran = sends(&w, &["--protocol", protocol], &[&proxy.url(&server.url(""))]).run();
            ran.exits(0);
            holds_only(&server, &data, &format!("{kind:?} by {protocol}: {ran}\n{}", story(&proxy.door.log())));
        }
    }
}

#[test]
fn alternates_take_what_the_first_does_not() {
    let (server, data) = (Dav::Apache.start(), noise(15, 300_000));
    let mut down = Dav::Lighttpd.start();
    down.daemon.kill();
    let refuses = Door::open(|visit| {
        let _ = visit.drain();
        visit.answer(405, &[], "nothing is taken here\n")
    });
    for first in [down.url(FILE), refuses.url("/f.bin")] {
        let w = with_file(&data);
        let ran = sends(&w, &[], &[&first, &server.url(FILE)]).run();
        ran.exits(0);
        holds_only(&server, &data, &format!("{ran}"));
        std::fs::remove_file(server.path(FILE)).unwrap();
    }
    let full = Door::open(|visit| {
        let _ = visit.drain();
        visit.answer(413, &[], "too much\n")
    });
    let w = with_file(&data);
    let ran = sends(&w, &[], &[&refuses.url("/f.bin"), &full.url("/f.bin")]).run();
    ran.exits(3).says(&["405"]).says(&["413"]);
    eventually("both were asked", || full.by("PUT").len() == 1 || !full.log().is_empty());
}

#[test]
fn what_another_process_began_is_not_left_behind_when_it_is_no_use() {
    let data = noise(16, LARGE);
    let server = Dav::Apache.start();
    let proxy = Proxy::before(server.daemon.port());
    proxy.now(SLOW);
    let w = with_file(&data);
    let url = proxy.url(&server.url(""));
    sends(&w, &["--protocol", "put-range"], &[&url]).start().kill_when(|| proxy.door.received() > 1_000_000);
    proxy.door.kill();
    let part = server.names().into_iter().find(|name| name.contains(".part-")).expect("half a file");
    // More than was ever sent: somebody else's.
    server.place(&part, &noise(17, LARGE + 1));
    proxy.now(Mischief::None);
    proxy.door.revive();
    sends(&w, &["--protocol", "put-range"], &[&url]).run().exits(0);
    holds_only(&server, &data, &story(&proxy.door.log()));
}
