//! Clients and servers that die at random moments of an upload: in the end the file is there, and of one that a server confirms
//! piece by piece not much is sent twice.
//!
//! `PERSXFER_UPLOAD_KILLS=64` takes a file of so many MiB, which the long tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use std::time::Duration;

use support::{Running, eventually, ms, noise, same_file};
use upload::{Daemon, Dav, Door, FILE, Mischief, Proxy, Tus, TusNode, sends, story, with_file};

/// How often a client is killed.
const KILLS: u64 = 10;

fn size() -> usize {
    let mib = std::env::var("PERSXFER_UPLOAD_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(8);
    mib << 20
}

/// A pace at which the whole takes about a second and a half.
fn pace() -> Mischief {
    Mischief::Paces { bytes: size() / 150, rest: ms(10) }
}

/// Moments that differ from run to run; where they lie is told when a test fails.
fn moments(most: u64) -> Vec<u64> {
    let seed = std::process::id().into();
    let bytes = noise(seed, 8 * KILLS as usize);
    let number = |eight: &[u8]| u64::from_le_bytes(eight.try_into().unwrap()) % most;
    bytes.chunks(8).map(number).collect()
}

/// Waits until so many more bytes have come by, or somewhat longer where they do not come.
fn wait_for(door: &Door, more: u64) {
    let from = door.received();
    let begun = std::time::Instant::now();
    while door.received() < from + more && begun.elapsed() < Duration::from_secs(3) {
        std::thread::sleep(ms(2));
    }
}

/// A server dies each time that so many more bytes have come by, and comes back.
fn dies(server: &mut Daemon, door: &Door, moments: &[u64]) {
    for more in moments {
        wait_for(door, *more);
        server.kill();
        server.revive();
    }
}

/// Kills the run when so many more bytes have come by, or somewhat later where they do not come. Had it ended?
fn killed(run: Running, door: &Door, more: u64) -> bool {
    wait_for(door, more);
    run.signal(rustix::process::Signal::KILL);
    let ran = run.end();
    assert!(ran.status.code().is_none_or(|code| code == 0), "neither killed nor done: {ran}");
    // What the dead had handed to its system is lost with it.
    door.kill();
    door.revive();
    ran.succeeded()
}

/// Kills clients until they have died often enough or one got to the end; then one may go on. Bytes that came by.
fn survives(data: &[u8], words: &[&str], url: &str, proxy: &Proxy) -> u64 {
    proxy.now(pace());
    let w = with_file(data);
    let moments = moments(data.len() as u64 / KILLS * 2);
    for more in &moments {
        if killed(sends(&w, words, &[url]).start(), &proxy.door, *more) {
            break;
        }
    }
    proxy.now(Mischief::None);
    let ran = sends(&w, words, &[url]).run();
    assert!(ran.succeeded(), "{moments:?}: {ran}\n{}", story(&proxy.door.log()));
    same_file(&w.path(FILE), data);
    proxy.door.received()
}

fn tus(server: Tus) {
    let data = noise(70, size());
    let proxy = Proxy::before(server.daemon.port());
    let received = survives(&data, &["--protocol", "tus"], &proxy.url(&server.url()), &proxy);
    let story = story(&proxy.door.log());
    assert!(server.stored() == [&data[..]], "{story}");
    let cut = proxy.door.by("PATCH").iter().filter(|e| !e.whole).count();
    assert!(cut > 2, "clients were killed in the middle of bodies: {story}");
    let ratio = received as f64 / data.len() as f64;
    support::say(&format!("upload_kills_real: {} sent {ratio:.3} times", server.daemon.url("")));
    assert!(ratio <= 1.1, "{ratio}\n{story}");
}

#[test]
fn tus_clients_that_are_killed_at_random_lose_little_at_the_node_server() {
    tus(TusNode::default().start());
}

#[test]
fn tus_clients_that_are_killed_at_random_lose_little_at_the_python_server() {
    tus(Tus::python(1 << 30));
}

#[test]
fn ranges_of_clients_that_are_killed_at_random_fit_together() {
    let data = noise(71, size());
    let server = Dav::Apache.start();
    let proxy = Proxy::before(server.daemon.port());
    let received = survives(&data, &["--protocol", "put-range"], &proxy.url(&server.url("")), &proxy);
    let story = story(&proxy.door.log());
    assert_eq!(server.names(), [FILE], "{story}");
    same_file(&server.path(FILE), &data);
    let ratio = received as f64 / data.len() as f64;
    support::say(&format!("upload_kills_real: Apache, put-range: sent {ratio:.3} times"));
    assert!(ratio <= 1.1, "{ratio}\n{story}");
}

#[test]
fn clients_that_are_killed_at_random_end_right_where_half_files_are_hidden() {
    clients_die_before(&[Dav::Apache, Dav::LighttpdRanged]);
}

#[test]
fn clients_that_are_killed_at_random_end_right_where_half_files_show() {
    clients_die_before(&[Dav::Rclone, Dav::Wsgidav]);
}

fn clients_die_before(kinds: &[Dav]) {
    let data = noise(72, size());
    for kind in kinds {
        let server = kind.start();
        server.place(FILE, &noise(73, size()));
        let proxy = Proxy::before(server.daemon.port());
        for protocol in ["put", "put-range"] {
            survives(&data, &["--protocol", protocol], &proxy.url(&server.url("")), &proxy);
            assert_eq!(server.names(), [FILE], "{kind:?} {}", story(&proxy.door.log()));
            same_file(&server.path(FILE), &data);
        }
    }
}

#[test]
fn servers_that_are_killed_at_random_hold_the_file_in_the_end() {
    servers_die(&[(Dav::Apache, "put"), (Dav::LighttpdRanged, "put-range"), (Dav::Nginx, "put")]);
}

#[test]
fn servers_that_append_or_show_half_files_hold_the_file_in_the_end() {
    servers_die(&[(Dav::Apache, "put-range"), (Dav::Rclone, "put"), (Dav::Wsgidav, "put-range")]);
}

fn servers_die(kinds: &[(Dav, &str)]) {
    let data = noise(74, size());
    for &(kind, protocol) in kinds {
        // Nginx takes no more than that.
        let data = if kind == Dav::Nginx { &data[..4 << 20] } else { &data[..] };
        let mut server = kind.start();
        let proxy = Proxy::before(server.daemon.port());
        proxy.now(pace());
        let w = with_file(data);
        let run = sends(&w, &["--protocol", protocol], &[&proxy.url(&server.url(""))]).give_up("5m").start();
        dies(&mut server.daemon, &proxy.door, &moments(data.len() as u64)[..3]);
        let ran = run.end();
        let story = || format!("{kind:?} by {protocol}: {ran}\n{}", story(&proxy.door.log()));
        assert!(ran.succeeded(), "{}", story());
        eventually(&format!("only the file: {:?}, {}", server.names(), story()), || server.names() == [FILE]);
        same_file(&server.path(FILE), data);
    }
}

#[test]
fn a_tus_server_that_is_killed_at_random_holds_the_file_in_the_end() {
    let data = noise(75, size());
    let mut server = TusNode::default().start();
    let proxy = Proxy::before(server.daemon.port());
    proxy.now(pace());
    let w = with_file(&data);
    let run = sends(&w, &["--protocol", "tus"], &[&proxy.url(&server.url())]).give_up("5m").start();
    dies(&mut server.daemon, &proxy.door, &moments(data.len() as u64 / 2)[..3]);
    let ran = run.end();
    assert!(ran.succeeded() && server.stored().contains(&data), "{ran}\n{}", story(&proxy.door.log()));
    assert_eq!(proxy.door.by("POST").len(), 1, "{}", story(&proxy.door.log()));
}

/// tuspyserver counts at the end of a request and appends wherever it stands: killed within one, its offset looks right in the
/// end, what it stored is longer than the file, and nobody may read it. Its count is not taken for evidence then.
#[test]
fn the_count_of_a_tus_server_that_was_killed_is_no_evidence() {
    let data = noise(76, 3 << 20);
    let mut server = Tus::python(1 << 30);
    let proxy = Proxy::before(server.daemon.port());
    proxy.now(pace());
    let w = with_file(&data);
    let run = sends(&w, &["--protocol", "tus"], &[&proxy.url(&server.url())]).give_up("5m").start();
    eventually("half of it is on its way", || proxy.door.received() > data.len() as u64 / 2);
    server.daemon.kill();
    server.daemon.revive();
    let ran = run.end();
    ran.exits(0).says(&["evidence: none"]);
}
