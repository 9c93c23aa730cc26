//! What each status means to an upload, protocol by protocol (facts of uploads, 8.5): a server that answers everything with it is
//! tried again (exit status 4 with `--once`), or refused (3).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use support::{noise, same_file};
use upload::{Door, FILE, Way, with_file};

const AGAIN: i32 = 4;
const REFUSED: i32 = 3;

/// Each of these statuses ends a run by each of these protocols like this, says so, and leaves the file alone.
#[track_caller]
fn ends(protocols: &[&str], statuses: &[u16], exit: i32) {
    let status = Arc::new(AtomicU16::new(0));
    let told = Arc::clone(&status);
    let door = Door::open(move |visit| match visit.drain() {
        Ok(_) => visit.answer(told.load(Ordering::SeqCst), &[], ""),
        Err(_) => Way::Close,
    });
    let data = noise(90, 20_000);
    for protocol in protocols {
        for code in statuses {
            status.store(*code, Ordering::SeqCst);
            let (w, url) = (with_file(&data), door.url("/bucket/f"));
            let words = ["upload", FILE, "--once", "--protocol", protocol];
            let px = w.px(words).env("AWS_ACCESS_KEY_ID", "AK").env("AWS_SECRET_ACCESS_KEY", "SK").url(&url);
            let ran = px.run();
            assert_eq!(ran.status.code(), Some(exit), "{protocol} {code}: {ran}");
            assert!(ran.stderr.contains(&code.to_string()) || exit == REFUSED, "{protocol} {code}: {ran}");
            same_file(&w.path(FILE), &data);
        }
    }
}

#[test]
fn statuses_that_pass_are_tried_again_by_every_protocol() {
    let all = ["boinc", "put", "put-range", "tus", "ietf", "s3"];
    ends(&all, &[408, 425, 429, 500, 502, 503, 504, 507], AGAIN);
}

#[test]
fn credentials_that_are_refused_wait_for_a_person_by_every_protocol() {
    ends(&["boinc", "put", "put-range", "tus", "ietf", "s3"], &[401, 403], AGAIN);
}

#[test]
fn what_is_missing_is_refused_but_by_boinc_and_put_which_look_again() {
    ends(&["boinc", "put"], &[404], AGAIN);
    ends(&["tus", "ietf", "s3"], &[404], REFUSED);
}

#[test]
fn conflicts_pass_for_boinc_and_stores_and_are_final_for_put() {
    ends(&["boinc", "s3"], &[409], AGAIN);
    ends(&["put"], &[409], REFUSED);
}

#[test]
fn conditions_versions_and_sizes_refuse_the_server_but_for_boinc() {
    ends(&["put", "tus", "ietf", "s3"], &[412, 413], REFUSED);
    ends(&["boinc"], &[412], AGAIN);
}

#[test]
fn a_lock_passes_for_boinc_and_put() {
    ends(&["boinc", "put"], &[423], AGAIN);
}

#[test]
fn other_refusals_are_final_but_for_boinc() {
    ends(&["put", "tus", "ietf", "s3"], &[400, 405, 415, 501], REFUSED);
    ends(&["boinc"], &[400, 405, 415, 501], AGAIN);
}
