//! What the built program believes of a server, and of its own file: a yes that came too early, sizes that were set before their
//! bytes came, offsets beyond what was sent, and a file that changes while it goes out. None of it is exit status 0.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read to end what hangs, and a rename is what is tried here")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use support::{Ran, World, eventually, noise};
use upload::door::Visit;
use upload::{Door, FILE, Way, sends, story, with_file};

const SIZE: usize = 6_000_000;
const ARRIVES: usize = 1_000_000;
const AGAIN: i32 = 4;
const REFUSED: i32 = 3;

fn of(pairs: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

/// A file of the whole size, by the answer to a HEAD.
fn whole(visit: &mut Visit) -> Way {
    let told = if visit.method == "HEAD" { "x".repeat(SIZE) } else { String::new() };
    visit.answer(200, &of(&[("ETag", "\"new\"")]), &told)
}

/// Takes so much of a body.
fn takes(visit: &mut Visit, count: usize) {
    let mut piece = [0; 16 << 10];
    let mut taken = 0;
    while taken < count {
        match visit.take(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(n) => taken += n,
        }
    }
}

fn carries(visit: &Visit) -> bool {
    visit.header("content-length").is_some_and(|n| n.parse::<usize>().unwrap() > ARRIVES)
}

#[track_caller]
fn never_done(w: &World, door: &Door, url: &str, says: &str) -> Ran {
    let ran = sends(w, &["--limit-rate", "4m"], &[&door.url("/new").replace("http", url)]).run();
    assert_eq!(ran.status.code(), Some(REFUSED), "{ran}\n{}", story(&door.log()));
    assert!(ran.stderr.contains(says), "{says:?} is not in\n{ran}\n{}", story(&door.log()));
    ran
}

#[test]
fn a_yes_to_a_body_that_was_not_read_is_never_done() {
    let data = noise(120, SIZE);
    for (protocol, path) in
        [("put", "/d/f"), ("put", "/d/f?signed=1"), ("ietf", "/new"), ("s3", "/b/f?X-Amz-Signature=s")]
    {
        let door = Door::open(|visit| match visit.method.as_str() {
            "HEAD" | "DELETE" => visit.answer(405, &[], ""),
            "POST" => visit.answer(201, &of(&[("Location", "/u/1")]), ""),
            _ => visit.answer(200, &of(&[("Upload-Complete", "?1")]), ""),
        });
        let w = with_file(&data);
        let url = format!("{protocol}+{}", door.url(path));
        let ran = sends(&w, &[], &[&url]).run();
        assert_eq!(ran.status.code(), Some(REFUSED), "{url}: {ran}\n{}", story(&door.log()));
        assert!(ran.stderr.contains("said yes after 0 of") || protocol == "ietf", "{url}: {ran}");
    }
}

#[test]
fn a_size_that_was_set_before_its_bytes_came_is_not_the_file() {
    let cut = AtomicBool::new(false);
    let door = Door::open(move |visit| match visit.method.as_str() {
        "HEAD" if cut.load(Ordering::SeqCst) => whole(visit),
        "HEAD" => visit.answer(404, &[], ""),
        "PUT" if carries(visit) && !cut.swap(true, Ordering::SeqCst) => {
            takes(visit, ARRIVES);
            Way::Reset
        }
        _ => match visit.drain() {
            Ok(_) => visit.answer(201, &[], ""),
            Err(_) => Way::Close,
        },
    });
    let w = with_file(&noise(121, SIZE));
    let ran = sends(&w, &["--limit-rate", "4m"], &[&format!("put+{}", door.url("/d/f"))]).run();
    ran.uploaded("length");
    let bodies: Vec<_> = door.log().into_iter().filter(|e| e.method == "PUT").map(|e| e.whole).collect();
    assert_eq!(bodies, [false, true], "{ran}\n{}", story(&door.log()));
}

#[test]
fn an_offset_beyond_what_was_sent_is_not_believed() {
    let all = SIZE.to_string();
    let door = Door::open(move |visit| match visit.method.as_str() {
        "OPTIONS" | "DELETE" => visit.answer(204, &[], ""),
        "POST" => visit.answer(201, &of(&[("Location", "/u/1")]), ""),
        "PATCH" => {
            takes(visit, ARRIVES);
            visit.answer(204, &of(&[("Upload-Offset", &all)]), "")
        }
        _ => visit.answer(200, &of(&[("Upload-Offset", &all), ("Upload-Complete", "?1")]), ""),
    });
    let data = noise(122, SIZE);
    never_done(&with_file(&data), &door, "tus+http", "claims to hold 6000000 bytes");
    never_done(&with_file(&data), &door, "ietf+http", "claims to hold 6000000 bytes");
}

/// An honest server of `ietf` and `tus`, in the midst of whose first body this happens to the file.
fn meddled(happens: fn(&Path), at: usize) -> (World, Door) {
    let w = with_file(&noise(123, SIZE));
    let (path, done) = (w.path(FILE), Arc::new(AtomicBool::new(false)));
    let all = SIZE.to_string();
    let door = Door::open(move |visit| match visit.method.as_str() {
        "OPTIONS" | "DELETE" => visit.answer(204, &[], ""),
        "POST" => visit.answer(201, &of(&[("Location", "/u/1")]), ""),
        "PATCH" => {
            takes(visit, at);
            if !done.swap(true, Ordering::SeqCst) {
                happens(&path);
            }
            match visit.drain() {
                Ok(_) => visit.answer(200, &of(&[("Upload-Offset", &all), ("Upload-Complete", "?1")]), ""),
                Err(_) => Way::Close,
            }
        }
        _ => visit.answer(200, &of(&[("Upload-Offset", &all), ("Upload-Complete", "?1")]), ""),
    });
    (w, door)
}

fn grows(path: &Path) {
    File::options().append(true).open(path).unwrap().write_all(b"one line more").unwrap();
}

fn is_edited_and_set_back(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(b"edited", 3_000_000).unwrap();
    file.set_modified(modified).unwrap();
}

fn is_replaced(path: &Path) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let other = path.with_extension("other");
    fs::write(&other, noise(124, SIZE).as_slice()).unwrap();
    File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
    fs::rename(&other, path).unwrap();
}

fn gets_another_mode(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_file_that_changes_while_it_goes_out_is_not_done_and_is_sent_anew_by_the_same_command() {
    for (happens, at, why) in [
        (grows as fn(&Path), SIZE, "its size is another"),
        (is_edited_and_set_back, ARRIVES, "its content is another"),
        (is_edited_and_set_back, SIZE, "its content is another"),
        (is_replaced, ARRIVES, "another file stands under its name"),
    ] {
        for protocol in ["ietf", "tus"] {
            let (w, door) = meddled(happens, at);
            let url = format!("{protocol}+{}", door.url("/new"));
            let ran = sends(&w, &["--limit-rate", "12m"], &[&url]).run();
            assert_eq!(ran.status.code(), Some(REFUSED), "{protocol}, {why}: {ran}\n{}", story(&door.log()));
            assert!(ran.stderr.contains("changed while it was sent") && ran.stderr.contains(why), "{why}: {ran}");
            if at == SIZE && why.contains("content") || why.contains("another file") {
                let again = sends(&w, &[], &[&url]).run();
                again.exits(0);
                let bodies: Vec<_> = door.by("PATCH").iter().map(|e| e.received).collect();
                assert_eq!((door.by("POST").len(), bodies.last()), (2, Some(&6_000_000)), "{why}: {again}");
            }
        }
    }
}

#[test]
fn a_file_that_gets_another_mode_is_read_again_and_goes_on() {
    for protocol in ["ietf", "tus"] {
        let (w, door) = meddled(gets_another_mode, ARRIVES);
        let ran = sends(&w, &["--limit-rate", "12m"], &[&format!("{protocol}+{}", door.url("/new"))]).run();
        ran.exits(0).says(&["touched while it was sent"]);
        let bodies = door.log().iter().filter(|e| e.method == "PATCH").count();
        assert_eq!(bodies, 1, "{protocol}: {ran}\n{}", story(&door.log()));
    }
}

/// No digest is taken before it is sent.
const LARGE: u64 = 300 << 20;

#[test]
fn a_large_file_is_read_while_it_goes_out_and_another_mode_is_no_change_then() {
    let w = with_file(&noise(126, SIZE));
    File::options().write(true).open(w.path(FILE)).unwrap().set_len(LARGE).unwrap();
    let (path, state) = (w.path(FILE), w.path("state/client_state.xml"));
    let door = Door::open(move |visit| match visit.method.as_str() {
        "OPTIONS" | "DELETE" => visit.answer(204, &[], ""),
        "POST" => visit.answer(201, &of(&[("Location", "/u/1")]), ""),
        "PATCH" => {
            takes(visit, SIZE);
            // The body rests until the file has been read.
            eventually("the record has a digest", || {
                fs::read_to_string(&state).is_ok_and(|text| text.contains("<source_digest>"))
            });
            gets_another_mode(&path);
            match visit.drain() {
                Ok(_) => visit.answer(204, &[("Upload-Offset", LARGE.to_string())], ""),
                Err(_) => Way::Close,
            }
        }
        _ => visit.answer(200, &[("Upload-Offset", LARGE.to_string())], ""),
    });
    let ran = sends(&w, &["--once"], &[&format!("tus+{}", door.url("/new"))]).run();
    ran.uploaded("length").says(&["touched while it was sent"]);
    assert_eq!(door.by("PATCH").len(), 1, "{ran}\n{}", story(&door.log()));
    // Touched after it was sent: nothing is asked.
    let before = door.log().len();
    File::options().write(true).open(w.path(FILE)).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    sends(&w, &["--once"], &[&format!("tus+{}", door.url("/new"))]).run().exits(0);
    assert_eq!(door.log().len(), before, "{}", story(&door.log()));
}

#[test]
fn what_is_no_http_and_conflicts_that_do_not_end_are_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/b/f", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            // A client that has left is none to answer.
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"\x00\xffSSH-2.0-none\r\n\r\n");
        }
    });
    let data = noise(125, 20_000);
    for protocol in ["boinc", "put", "tus", "ietf", "s3"] {
        let w = with_file(&data);
        let px = w.px(["upload"]).delays("50ms", "200ms").give_up("2s").url(FILE).url(&format!("{protocol}+{url}"));
        let ran = px.env("AWS_ACCESS_KEY_ID", "AK").env("AWS_SECRET_ACCESS_KEY", "SK").run();
        // Three passes take half a second.
        assert!(ran.stderr.contains("give-up window"), "{protocol}: {ran}");
    }
    let door = Door::open(|visit| match visit.method.as_str() {
        "OPTIONS" => visit.answer(204, &[], ""),
        "POST" => visit.answer(201, &of(&[("Location", "/u/1")]), ""),
        "PATCH" => visit.answer(409, &[], ""),
        _ => visit.answer(200, &of(&[("Upload-Offset", "0")]), ""),
    });
    let ran = sends(&with_file(&data), &["--once"], &[&format!("tus+{}", door.url("/new"))]).run();
    assert_eq!(ran.status.code(), Some(AGAIN), "{ran}\n{}", story(&door.log()));
}
