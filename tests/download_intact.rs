//! Bytes of the part file that are damaged between two runs: found by their sums, and they alone are fetched again.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]

mod support;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::process::Signal;
use serde_json::Value;
use support::{End, Px, Ran, Rig, Served, World, digest, eventually, noise};

const MB: usize = 1 << 20;
const BLOCK: usize = 16 * MB;
/// Two whole blocks and a piece.
const SIZE: usize = 44 * MB + 5;
/// What sessions compare where they join, and requests that are cut off on the way: far less than a block.
const SLACK: usize = 4 * MB;

/// Where the server falls silent: at these places, and up to the quarter of the file that follows.
fn holes(connections: &str) -> Vec<(usize, usize)> {
    match connections {
        "1" => vec![(40 * MB, SIZE)],
        _ => (0..4).map(|q| (11 * q * MB + 9 * MB, if q == 3 { SIZE } else { 11 * (q + 1) * MB })).collect(),
    }
}

/// A server of one file that brings nothing of the holes.
fn silent(data: &Arc<Vec<u8>>, connections: &str) -> Rig {
    let (served, holes) = (Served::new(data), holes(connections));
    Rig::start(move |a| {
        let hole = holes.iter().find(|(_, end)| a.from() < *end).map_or(0, |(start, _)| *start);
        served.reply(a).cut(hole.saturating_sub(a.from()), End::Hang)
    })
}

/// A number that `state check --json` tells of the part.
fn checked(w: &World, key: &str) -> usize {
    let ran = w.px(["state", "check", "--json"]).run();
    let Ok(json) = serde_json::from_str::<Value>(&ran.stdout) else { return 0 };
    usize::try_from(json["files"][0][key].as_u64().unwrap_or_default()).expect("bytes")
}

fn download<'w>(w: &'w World, rig: &Rig, connections: &str) -> Px<'w> {
    w.download(&rig.url("/f")).args(&["--connections", connections])
}

/// A download that ended by this signal, when the server had said all, and everything held had its sum; and what was held.
fn ended(w: &World, data: &Arc<Vec<u8>>, connections: &str, more: &[&str], signal: Signal) -> (Rig, usize) {
    let rig = silent(data, connections);
    let running = download(w, &rig, connections).args(more).start();
    let enough = if connections == "1" { 40 * MB } else { 34 * MB };
    let ready = || checked(w, "held") >= enough && checked(w, "unchecked") == 0;
    match signal {
        Signal::KILL => running.kill_when(ready),
        _ => _ = running.signal_when(signal, ready).end().exits_one_of(&[4, 130]),
    }
    (rig, checked(w, "held"))
}

/// Changes bytes in place, and gives the file the time back that it had.
fn damage(w: &World, what: &[(usize, Vec<u8>)]) {
    let file = OpenOptions::new().read(true).write(true).open(w.part()).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    for (at, bytes) in what {
        file.write_all_at(bytes, *at as u64).unwrap();
    }
    file.set_modified(modified).unwrap();
    assert_eq!(file.metadata().unwrap().modified().unwrap(), modified);
}

/// A byte that is not the one there.
fn flipped(w: &World, at: usize) -> (usize, Vec<u8>) {
    let mut byte = [0];
    File::open(w.part()).unwrap().read_exact_at(&mut byte, at as u64).unwrap();
    (at, vec![!byte[0]])
}

/// What a run to the end fetches.
#[track_caller]
fn fetched(w: &World, rig: &Rig, data: &Arc<Vec<u8>>, connections: &str, more: &[&str]) -> (usize, Ran) {
    let (served, before) = (Served::new(data), rig.sent());
    rig.now(move |a| served.reply(a));
    let ran = download(w, rig, connections).args(more).run();
    ran.exits(0);
    w.holds(data);
    (usize::try_from(rig.sent() - before).expect("bytes"), ran)
}

/// After this signal, damage at these places costs so many blocks.
#[track_caller]
fn damage_is_found(connections: &str, signal: Signal, places: &[usize], proof: Proof) {
    let (w, data) = (World::new(), noise(900, SIZE));
    let sum = digest("sha-256", &data);
    let more: &[&str] = if proof == Proof::Digest { &["--checksum", &sum] } else { &[] };
    let (rig, held) = ended(&w, &data, connections, more, signal);
    let what: Vec<_> = match places {
        [at] => vec![(*at, vec![0; 200_000])],
        several => several.iter().map(|at| flipped(&w, *at)).collect(),
    };
    damage(&w, &what);
    let (n, ran) = fetched(&w, &rig, &data, connections, more);
    ran.says(&["was damaged since it was written"]);
    let most = SIZE - held + places.len() * BLOCK + SLACK;
    assert!((SIZE - held + 1..most).contains(&n), "{n} bytes, with {held} held\n{ran}");
}

/// What the user gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    Nothing,
    Digest,
}

#[test]
fn in_the_first_block_after_an_interrupt() {
    damage_is_found("1", Signal::INT, &[100], Proof::Nothing);
    damage_is_found("4", Signal::INT, &[100], Proof::Digest);
}

#[test]
fn in_a_middle_block_after_an_end_in_good_order() {
    damage_is_found("1", Signal::TERM, &[BLOCK + 5], Proof::Digest);
    damage_is_found("4", Signal::TERM, &[BLOCK + 5], Proof::Nothing);
}

#[test]
fn in_the_last_block_after_a_kill() {
    damage_is_found("1", Signal::KILL, &[39 * MB], Proof::Nothing);
    damage_is_found("4", Signal::KILL, &[41 * MB], Proof::Nothing);
}

#[test]
fn one_byte_in_each_of_two_blocks() {
    damage_is_found("1", Signal::KILL, &[3, 2 * BLOCK + 7], Proof::Digest);
    damage_is_found("4", Signal::INT, &[12 * MB, 35 * MB], Proof::Nothing);
}

#[test]
fn in_two_blocks_after_a_kill_over_several_connections() {
    damage_is_found("4", Signal::KILL, &[5, 25 * MB], Proof::Digest);
    damage_is_found("1", Signal::TERM, &[BLOCK - 1, BLOCK], Proof::Nothing);
}

#[test]
fn where_nothing_was_damaged_nothing_is_fetched_again() {
    for (connections, signal) in [("1", Signal::INT), ("4", Signal::TERM), ("1", Signal::KILL), ("4", Signal::KILL)] {
        let (w, data) = (World::new(), noise(901, SIZE));
        let (rig, held) = ended(&w, &data, connections, &[], signal);
        let (n, ran) = fetched(&w, &rig, &data, connections, &[]);
        assert!(!ran.stderr.contains("damaged"), "{ran}");
        assert!(n <= SIZE - held + MB, "{n} bytes, with {held} held after {signal:?} over {connections}");
    }
}

/// A server without ranges cannot bring a block alone: then what follows the damage is read through.
#[test]
fn a_server_without_ranges_sends_all_of_it_again() {
    let (w, data) = (World::new(), noise(902, SIZE));
    let (rig, _) = ended(&w, &data, "1", &[], Signal::INT);
    let one = flipped(&w, BLOCK + 1);
    damage(&w, &[one]);
    let served = Served::new(&data).no_ranges();
    rig.now(move |a| served.reply(a));
    download(&w, &rig, "1").run().exits(0).says(&["was damaged since it was written"]);
    w.holds(&data);
}

/// While the program waits between two sessions, somebody writes into the file.
#[test]
fn between_two_sessions_of_one_process() {
    let (w, data) = (World::new(), noise(903, SIZE));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| match a.from() {
        0 => served.reply(a).cut(40 * MB, End::Close),
        _ => support::Reply::status(503),
    });
    let run = download(&w, &rig, "1").delays("4s", "5s").start();
    eventually("it waits", || run.stderr_so_far().contains("next try in"));
    let one = flipped(&w, BLOCK + 1);
    damage(&w, &[one]);
    let (served, before) = (Served::new(&data), rig.sent());
    rig.now(move |a| served.reply(a));
    run.end().exits(0).says(&["was damaged since it was written"]);
    w.holds(&data);
    let n = usize::try_from(rig.sent() - before).expect("bytes");
    assert!((20 * MB..20 * MB + SLACK).contains(&n), "{n} bytes");
}
