//! Uploads to two real servers that are crates: tus-server checks sums (460) and locks uploads (423), s3s-fs checks signatures and
//! keeps what it has when it dies. Building them takes minutes, so that only `tests/long` installs and asks them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use support::{Px, World, eventually, ms, noise, same_file, say};
use upload::{Door, FILE, Mischief, Proxy, Raw, S3Fs, Tus, TusLine, with_file};

const KEY: &str = "AKIDEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+s3cret";
const MIB: usize = 1 << 20;
/// So often somebody dies.
const DEATHS: usize = 10;

/// Each PATCH has a checksum, and the server looks at it: it refuses a wrong one with 460 and keeps nothing of it.
#[test]
#[ignore = "the server takes minutes to build: tests/long installs it"]
fn sums_are_sent_and_a_chunk_that_the_server_finds_wrong_is_sent_again() {
    let data = noise(80, 3 * MIB);
    let line = TusLine::new(Tus::crate_server(), &data);
    let made = Raw::new("POST", &line.server.url()).header("Tus-Resumable", "1.0.0").header("Upload-Length", 5).send();
    let location = made.header("location").expect("a URL").to_owned();
    let there = line.server.daemon.url(&location[location.find("/files").unwrap()..]);
    let wrong = format!("sha1 {}", STANDARD.encode([7; 20]));
    let patch = Raw::new("PATCH", &there).header("Tus-Resumable", "1.0.0").header("Upload-Offset", 0);
    let patch = patch.header("Content-Type", "application/offset+octet-stream").header("Upload-Checksum", wrong);
    assert_eq!(patch.body(b"hello").send().status(), Some(460), "the server checks sums");
    Raw::new("DELETE", &there).header("Tus-Resumable", "1.0.0").send();

    line.proxy.next(Mischief::Answers { status: 460, retry_after: None });
    let ran = line.sends(&[]).run();
    ran.exits(0);
    let patches = line.proxy.door.by("PATCH");
    assert!(patches.len() >= 2 && patches.iter().all(|e| e.header("upload-checksum").is_some()), "{}", line.story());
    assert_eq!(patches[0].header("upload-offset"), patches[1].header("upload-offset"), "{}", line.story());
    holds(&line, &data);
    assert_eq!(line.count("POST"), 1, "{}", line.story());
}

/// What was sent last is at the server as it is here; it lets itself be asked.
#[track_caller]
fn holds(line: &TusLine, data: &[u8]) {
    let sent = line.proxy.door.by("PATCH").pop().expect("a body");
    let there = line.server.daemon.url(&sent.target);
    let heard = Raw::new("GET", &there).header("Tus-Resumable", "1.0.0").send();
    assert_eq!(heard.status(), Some(200), "{heard:?}");
    assert!(heard.answer.is_some_and(|answer| answer.body == data), "it holds something else\n{}", line.story());
}

/// A request that hangs holds the upload: others hear 423, and the upload is neither lost nor begun anew.
#[test]
#[ignore = "the server takes minutes to build: tests/long installs it"]
fn an_upload_that_is_locked_is_waited_for_and_kept() {
    let data = noise(81, 6 * MIB);
    let line = TusLine::new(Tus::crate_server(), &data);
    line.proxy.now(Mischief::Stalls { after: MIB as u64 });
    line.sends(&[]).start().kill_when(|| line.has_passed(MIB as u64));
    line.proxy.now(Mischief::None);
    let run = line.sends(&["--first-byte-timeout", "90s"]).give_up("5m").start();
    eventually("the server says that it is locked", || {
        line.proxy.door.log().iter().any(|e| matches!(e.answer, Some(423)))
    });
    // The hung request ends.
    line.proxy.door.kill();
    line.proxy.door.revive();
    let ran = run.end();
    ran.exits(0);
    assert_eq!(line.count("POST"), 1, "{}", line.story());
    holds(&line, &data);
}

fn to_store<'w>(w: &'w World, url: &str, secret: &str) -> Px<'w> {
    let px = w.px(["upload", FILE, "s3://bucket/"]).env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", secret);
    px.env("AWS_ENDPOINT_URL", url).delays("50ms", "200ms").give_up("2m")
}

#[test]
#[ignore = "the server takes minutes to build: tests/long installs it"]
fn signatures_are_right_and_wrong_keys_are_told() {
    let store = S3Fs::start(KEY, SECRET);
    for size in [0, 1000, 20 * MIB] {
        let data = noise(82, size);
        let w = with_file(&data);
        let ran = to_store(&w, &store.daemon.url(""), SECRET).run();
        ran.exits(0);
        assert!(store.stored(FILE).as_deref() == Some(&data[..]), "{size}: {ran}");
        let w = with_file(&data);
        to_store(&w, &store.daemon.url(""), "another").arg("--once").run().exits(4).says(&["SignatureDoesNotMatch"]);
    }
}

/// As slow as a line of some tens of megabytes a second.
fn slow(proxy: &Proxy) {
    proxy.now(Mischief::Paces { bytes: 256 << 10, rest: ms(5) });
}

fn moments(seed: u64, most: usize) -> Vec<u64> {
    let bytes = noise(seed, 8 * DEATHS);
    bytes.chunks(8).map(|eight| u64::from_le_bytes(eight.try_into().unwrap()) % most as u64).collect()
}

fn came(door: &Door, more: u64) -> impl Fn() -> bool + use<'_> {
    let from = door.received();
    let begun = std::time::Instant::now();
    move || door.received() >= from + more || begun.elapsed() > ms(3000)
}

#[test]
#[ignore = "the server takes minutes to build: tests/long installs it"]
fn a_client_that_dies_ten_times_sends_no_part_twice_that_the_store_has() {
    let data = noise(83, 64 * MIB);
    let (store, w) = (S3Fs::start(KEY, SECRET), with_file(&data));
    let proxy = Proxy::before(store.daemon.port());
    slow(&proxy);
    for more in moments(std::process::id().into(), data.len() / DEATHS * 2) {
        to_store(&w, &proxy.door.url(""), SECRET).start().kill_when(came(&proxy.door, more));
    }
    let ran = to_store(&w, &proxy.door.url(""), SECRET).run();
    ran.exits(0);
    same_file(&store.daemon.store().join("bucket").join(FILE), &data);
    is_frugal("client", &proxy, data.len());
}

#[test]
#[ignore = "the server takes minutes to build: tests/long installs it"]
fn a_store_that_dies_ten_times_and_keeps_its_files_gets_the_rest() {
    let data = noise(84, 64 * MIB);
    let (mut store, w) = (S3Fs::start(KEY, SECRET), with_file(&data));
    let proxy = Proxy::before(store.daemon.port());
    slow(&proxy);
    let run = to_store(&w, &proxy.door.url(""), SECRET).start();
    for more in moments(std::process::id().into(), data.len() / DEATHS) {
        eventually("it goes on", came(&proxy.door, more));
        store.daemon.kill();
        store.daemon.revive();
    }
    let ran = run.end();
    ran.exits(0);
    same_file(&store.daemon.store().join("bucket").join(FILE), &data);
    is_frugal("server", &proxy, data.len());
}

/// A death costs at most the part of 8 MiB that was on its way.
fn is_frugal(who: &str, proxy: &Proxy, size: usize) {
    let sent: u64 = proxy.door.by("PUT").iter().map(|put| put.received).sum();
    say(&format!("upload_crates: s3s-fs, {who} killed {DEATHS} times: sent {:.3} times", sent as f64 / size as f64));
    assert!(sent <= (size + DEATHS * 8 * MIB) as u64, "{sent}");
}
