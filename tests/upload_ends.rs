//! The end of an upload, and an interrupt before it: servers that take a whole file away, stores whose tags do not move, what a
//! demand to verify means to them, and what a server may claim to hold after the client was stopped.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::Signal;
use support::{Ran, World, noise};
use upload::door::Visit;
use upload::{Door, Way, sends, story, with_file};

const SIZE: usize = 3_000_000;
/// Two parts.
const LARGE: usize = 9_000_000;
const REFUSED: i32 = 3;

fn of(pairs: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

/// Bytes that are a text too: the doubles answer in texts.
fn text(n: usize) -> Vec<u8> {
    noise(130, n).iter().map(|byte| b'a' + byte % 26).collect()
}

fn body(visit: &mut Visit) -> Vec<u8> {
    let (mut body, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    while visit.has_body() {
        match visit.take(&mut piece) {
            Ok(n) => body.extend_from_slice(&piece[..n]),
            Err(_) => break,
        }
    }
    body
}

/// What a server of `tus` does when it is asked for an upload that is whole.
#[derive(Clone, Copy)]
enum Whole {
    /// It has taken it away.
    Gone(u16),
    /// It hangs up twice (a question on a connection that was used before is asked again at once), and has lost it.
    Dies,
    /// It is there; this is what a GET brings.
    Reads(fn(Vec<u8>) -> Vec<u8>),
    /// It is there, and nobody may read it.
    Hides,
    /// It knows none of the first uploads when their bodies come, so many.
    Forgets(usize),
}

/// A server of `tus` in memory.
fn tus(whole: Whole) -> Door {
    let uploads: Mutex<Vec<(usize, Vec<u8>)>> = Mutex::default();
    let asked = AtomicUsize::new(0);
    Door::open(move |visit| {
        let body = body(visit);
        let mut uploads = uploads.lock().unwrap();
        let named = visit.path().strip_prefix("/u/").and_then(|n| n.parse::<usize>().ok());
        let Some(index) = named else {
            return match visit.method.as_str() {
                "POST" => {
                    uploads.push((visit.header("upload-length").unwrap().parse().unwrap(), Vec::new()));
                    visit.answer(201, &[("Location", format!("/u/{}", uploads.len() - 1))], "")
                }
                _ => visit.answer(204, &[], ""),
            };
        };
        let (length, bytes) = &mut uploads[index];
        let there = |bytes: &[u8]| [("Upload-Offset", bytes.len().to_string())];
        match (visit.method.as_str(), whole) {
            ("PATCH", Whole::Forgets(many)) if index < many => visit.answer(404, &[], ""),
            ("PATCH", _) => {
                bytes.extend_from_slice(&body);
                visit.answer(204, &there(bytes), "")
            }
            ("HEAD", Whole::Gone(status)) if bytes.len() == *length => visit.answer(status, &[], ""),
            ("HEAD", Whole::Dies) if bytes.len() == *length && index == 0 => {
                if asked.fetch_add(1, Ordering::SeqCst) < 2 { Way::Close } else { visit.answer(404, &[], "") }
            }
            ("HEAD", _) => visit.answer(200, &there(bytes), ""),
            ("GET", Whole::Reads(made)) => visit.answer(200, &[], &String::from_utf8(made(bytes.clone())).unwrap()),
            ("DELETE", _) => visit.answer(204, &[], ""),
            _ => visit.answer(405, &[], ""),
        }
    })
}

fn spoilt(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[1000] = b'!';
    bytes
}

fn sent_to(door: &Door, data: &[u8], words: &[&str]) -> Ran {
    sends(&with_file(data), words, &[&format!("tus+{}", door.url("/new"))]).run()
}

#[test]
fn an_upload_that_is_taken_away_when_it_is_whole_rests_on_no_evidence() {
    let data = text(SIZE);
    for status in [403, 404, 410] {
        let door = tus(Whole::Gone(status));
        sent_to(&door, &data, &[]).uploaded("none");
        assert_eq!(door.by("PATCH").len(), 1, "{}", story(&door.log()));
        let ran = sent_to(&door, &data, &["--verify", "always"]);
        ran.exits(REFUSED).says(&["cannot be read back and compared", &status.to_string()]);
    }
}

#[test]
fn an_upload_that_is_gone_after_a_question_was_lost_is_sent_again() {
    let data = text(SIZE);
    let door = tus(Whole::Dies);
    let ran = sent_to(&door, &data, &[]);
    ran.uploaded("length");
    assert_eq!((door.by("POST").len(), door.by("PATCH").len()), (2, 2), "{ran}\n{}", story(&door.log()));
}

#[test]
fn a_server_that_forgot_too_often_gets_a_new_upload_by_the_next_command() {
    let data = text(SIZE);
    let (door, w) = (tus(Whole::Forgets(4)), with_file(&data));
    let url = format!("tus+{}", door.url("/new"));
    let ran = sends(&w, &[], &[&url]).run();
    ran.exits(REFUSED).says(&["the server forgot the upload 4 times within a day"]);
    let ran = sends(&w, &[], &[&url]).run();
    ran.uploaded("length");
    assert_eq!(door.by("POST").len(), 5, "{ran}\n{}", story(&door.log()));
}

#[test]
fn an_upload_of_tus_is_read_back_where_that_is_demanded() {
    let data = text(SIZE);
    let same = tus(Whole::Reads(|bytes| bytes));
    sent_to(&same, &data, &["--verify", "always"]).uploaded("digest");
    assert_eq!(same.by("GET").len(), 1);
    let spoils = tus(Whole::Reads(spoilt));
    let ran = sent_to(&spoils, &data, &["--verify", "always"]);
    ran.exits(REFUSED).says(&["the server stored something else"]);
    assert_eq!(spoils.by("POST").len(), 2, "once more, and then it is said: {ran}\n{}", story(&spoils.log()));
    sent_to(&spoils, &data, &[]).uploaded("length");
    let ran = sent_to(&tus(Whole::Hides), &data, &["--verify", "always"]);
    ran.exits(REFUSED).says(&["cannot be read back and compared", "405"]);
}

/// A store whose tag for this key never changes, and which names none when it closes an upload. It stores what `made` makes of a body.
fn store(made: fn(Vec<u8>) -> Vec<u8>, later: bool) -> Door {
    let (object, parts): (Mutex<Vec<u8>>, Mutex<Vec<u8>>) = (Mutex::new(vec![b'o'; LARGE]), Mutex::default());
    let written = AtomicBool::new(false);
    Door::open(move |visit| {
        let body = body(visit);
        let upload = visit.target.contains("uploadId=");
        match visit.method.as_str() {
            "HEAD" => {
                let second = if later && written.load(Ordering::SeqCst) { 9 } else { 0 };
                let date = format!("Mon, 30 Nov 2026 10:00:0{second} GMT");
                let there = String::from_utf8(object.lock().unwrap().clone()).unwrap();
                visit.answer(200, &of(&[("ETag", "\"of-the-key\""), ("Last-Modified", &date)]), &there)
            }
            "POST" if upload => {
                *object.lock().unwrap() = made(std::mem::take(&mut *parts.lock().unwrap()));
                written.store(true, Ordering::SeqCst);
                let closed = "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>";
                visit.answer(200, &[], closed)
            }
            "POST" => {
                let begun = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>";
                visit.answer(200, &[], begun)
            }
            "PUT" => {
                parts.lock().unwrap().extend_from_slice(&body);
                visit.answer(200, &of(&[("ETag", "\"part\"")]), "")
            }
            "GET" if !upload => visit.answer(200, &[], &String::from_utf8(object.lock().unwrap().clone()).unwrap()),
            _ => visit.answer(204, &[], ""),
        }
    })
}

fn stored_at(door: &Door, words: &[&str]) -> Ran {
    let w = with_file(&text(LARGE));
    let px = sends(&w, words, &[&format!("s3+{}", door.url("/bucket/key"))]);
    px.env("AWS_ACCESS_KEY_ID", "AK").env("AWS_SECRET_ACCESS_KEY", "SK").run()
}

#[test]
fn an_object_whose_tag_did_not_move_is_read_before_it_is_refused() {
    let honest = store(|body| body, false);
    stored_at(&honest, &[]).uploaded("digest");
    assert_eq!(honest.by("GET").len(), 1, "{}", story(&honest.log()));
    // A later time says that it was written.
    let dated = store(|body| body, true);
    stored_at(&dated, &[]).uploaded("length");
    assert_eq!(dated.by("GET").len(), 0, "{}", story(&dated.log()));
    let keeps_the_old = store(|body| vec![b'o'; body.len()], false);
    let ran = stored_at(&keeps_the_old, &[]);
    ran.exits(REFUSED).says(&["the server stored something else"]);
}

#[test]
fn a_store_is_read_back_where_that_is_demanded() {
    stored_at(&store(|body| body, true), &["--verify", "always"]).uploaded("digest");
    let ran = stored_at(&store(spoilt, true), &["--verify", "always"]);
    ran.exits(REFUSED).says(&["the server stored something else"]);
}

/// It reads slowly and then claims all of it.
fn claims_the_whole(protocol: &'static str) -> (World, Door, String) {
    let all = SIZE.to_string();
    let door = Door::open(move |visit| match visit.method.as_str() {
        "OPTIONS" | "DELETE" => visit.answer(204, &[], ""),
        "POST" => visit.answer(201, &of(&[("Location", "/u/1")]), ""),
        "PATCH" => match visit.drain() {
            Ok(_) => visit.answer(204, &of(&[("Upload-Offset", &all)]), ""),
            Err(_) => Way::Close,
        },
        _ => visit.answer(200, &of(&[("Upload-Offset", &all), ("Upload-Complete", "?1")]), ""),
    });
    let url = format!("{protocol}+{}", door.url("/new"));
    (with_file(&noise(131, SIZE)), door, url)
}

#[test]
fn after_an_interrupt_no_server_is_believed_to_hold_more_than_went_out() {
    for protocol in ["tus", "ietf"] {
        let (w, door, url) = claims_the_whole(protocol);
        let running = sends(&w, &["--limit-rate", "500k"], &[&url]).start();
        let ran = running.signal_when(Signal::INT, || door.received() >= 600_000).end();
        ran.exits(130).says(&["stopped with 0 B of 2.9 MiB confirmed", "sent in this run: interrupted"]);
        let ran = sends(&w, &["--once"], &[&url]).run();
        // It is given up for a new upload, which gets all of it.
        assert_eq!(ran.status.code(), Some(0), "{protocol}: {ran}\n{}", story(&door.log()));
        let wholes = door.by("PATCH").iter().filter(|e| e.received == SIZE as u64).count();
        assert_eq!((door.by("POST").len(), wholes), (2, 1), "{protocol}: {ran}\n{}", story(&door.log()));
    }
}
