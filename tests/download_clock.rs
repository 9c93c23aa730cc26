//! Wall clocks that jump while a transfer waits (design 4): a wait runs on the monotonic clock, a clock set back never
//! freezes a transfer, and one set forward never ends one.
#![allow(clippy::expect_used, reason = "a test that cannot be set up has failed")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{Reply, Rig, Served, World, eventually, ms, noise, skipped};

/// The library that shows a program another wall clock, where it is installed.
fn faketime() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten().map(|e| e.path());
    folders.map(|f| f.join("faketime/libfaketimeMT.so.1")).find(|p| p.exists())
}

/// Shows every program that reads `file` a wall clock shifted by so much.
fn shift(file: &Path, by: &str) {
    let new = file.with_extension("new");
    fs::write(&new, format!("{by}\n")).expect("the world's folder can be written");
    #[expect(clippy::disallowed_methods, reason = "the reader must see the old text or the new one")]
    fs::rename(new, file).expect("and renamed in");
}

/// Two failed passes, the clock jumping in the wait after the first, and then the file.
fn survives_a_jump(test: &str, by: &str) {
    let Some(library) = faketime() else { return skipped(test, "libfaketime is not installed") };
    let (w, data) = (World::new(), noise(240, 150_000));
    let file = w.path("clock");
    shift(&file, "+0");
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n < 2 { Reply::status(503) } else { served.reply(a) });
    let run = w
        .download(&rig.url("/f"))
        .delays("1200ms", "1300ms")
        .give_up("60s")
        .env("LD_PRELOAD", &library.to_string_lossy())
        .env("FAKETIME_TIMESTAMP_FILE", &file.to_string_lossy())
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("DONT_FAKE_MONOTONIC", "1")
        .env("NO_FAKE_STAT", "1")
        .start();
    eventually("the first request", || rig.count() == 1);
    std::thread::sleep(ms(300));
    shift(&file, by);
    run.end().exits(0);
    w.holds(&data);
    let asked = rig.asked();
    assert_eq!(asked.len(), 3);
    if by.starts_with('+') {
        assert!(asked[1].at - asked[0].at >= ms(1000), "the jump cut the wait short");
    }
}

#[test]
fn back_by_three_days() {
    survives_a_jump("download_clock::back_by_three_days", "-3d");
}

#[test]
fn ahead_by_two_years() {
    survives_a_jump("download_clock::ahead_by_two_years", "+730d");
}
