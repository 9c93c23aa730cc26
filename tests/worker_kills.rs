//! Workers that are killed at random moments share a ledger: every record is done in the end, and nothing is fetched twice but
//! what was under way at a kill. `tests/long` runs it with 20,000 records (`PERSXFER_WORKER_RECORDS`).
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::print_stderr, reason = "figures are what it is for")]
#![allow(clippy::disallowed_methods, reason = "moments are drawn, and durations told")]

#[cfg(feature = "postgres")]
#[path = "support/postgres.rs"]
mod postgres;
mod support;

use std::fs;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use serde_json::Value;
use support::{Rig, Running, Served, World, digest, ms, noise, same_file};

const WORKERS: usize = 4;
/// Transfers of a worker at once.
const AT_ONCE: usize = 8;
/// Longer than any run needs.
const PATIENCE: Duration = Duration::from_secs(3_000);

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn start(w: &World, ledger: &str) -> Running {
    let at_once = AT_ONCE.to_string();
    let args = ["-q", "-j", &at_once, "--max-transfers-per-host", "1000", "-d"];
    w.px(["worker", "--ledger", ledger]).args(&args).arg(w.folder("files")).start()
}

fn stats(w: &World, ledger: &str) -> Value {
    serde_json::from_str(&w.px(["ledger", "--ledger", ledger, "stats", "--json"]).run().exits(0).stdout).unwrap()
}

#[test]
fn every_record_is_done_whoever_is_killed() {
    let w = World::new();
    let ledger = w.path("ledger.db").display().to_string();
    every_record_is_done(&w, &ledger);
}

#[cfg(feature = "postgres")]
#[test]
fn every_record_is_done_in_postgresql_too() {
    let server = postgres::Server::start();
    every_record_is_done(&World::new(), &server.database("fleet"));
}

fn every_record_is_done(w: &World, ledger: &str) {
    let records = number("PERSXFER_WORKER_RECORDS", 300);
    let seed = number("PERSXFER_WORKER_SEED", 1);
    let data = noise(710, 3_000);
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).late(ms(20)));
    let sum = digest("sha-256", &data);
    let line = |n| format!("{}\n", serde_json::json!({"urls": [rig.url(&format!("/{n}"))], "checksum": sum}));
    fs::write(w.path("lines"), (0..records).map(line).collect::<String>()).unwrap();
    w.px(["ledger", "--ledger", ledger, "add", "-"]).stdin_from(&w.path("lines")).run().exits(0);

    let mut rng = StdRng::seed_from_u64(seed);
    let (begun, mut kills) = (Instant::now(), 0);
    let mut workers: Vec<Running> = (0..WORKERS).map(|_| start(w, ledger)).collect();
    let done = loop {
        std::thread::sleep(ms(rng.random_range(100..1_000)));
        let stats = stats(w, ledger);
        if stats["done"] == records {
            break stats;
        }
        assert!(begun.elapsed() < PATIENCE, "seed {seed}, {kills} kills: {stats}");
        let victim = workers.swap_remove(rng.random_range(0..WORKERS));
        victim.signal(Signal::KILL);
        drop(victim);
        kills += 1;
        workers.push(start(w, ledger));
    };
    for worker in workers {
        worker.signal(Signal::TERM);
        worker.end().exits(0);
    }
    assert_eq!((&done["waiting"], &done["leased"], &done["parked"]), (&0.into(), &0.into(), &0.into()), "{done}");
    let folder = w.folder("files").join(rig.url("").trim_start_matches("http://").replace(':', "_"));
    for n in 0..records {
        same_file(&folder.join(n.to_string()), &data);
    }
    let twice = rig.count() as u64 - records;
    eprintln!("{records} records, {kills} kills, {twice} requests twice, {:.1} s", begun.elapsed().as_secs_f64());
    assert!(twice <= kills * AT_ONCE as u64, "seed {seed}: {twice} requests twice at {kills} kills");
    assert!(w.leftovers().is_empty(), "{:?}", w.leftovers());
}
