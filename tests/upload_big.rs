//! Five gibibytes, most of them a hole: sizes beyond 32 bits, and memory that does not grow with the file. `tests/long` runs it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use support::{World, ms, noise};
use upload::{Boinc, FrontEnd, TusNode};

const SIZE: u64 = 5 << 30;
/// Where the file is no hole.
const ISLANDS: [u64; 5] = [0, (1 << 31) - 50_000, (1 << 32) - 50_000, (9 << 29) + 7, SIZE - 100_000];
/// What a process that sends a small file needs is below half of this.
const FLAT_KIB: u64 = 64 << 10;

fn island(n: usize) -> Vec<u8> {
    noise(4_000 + n as u64, 100_000).to_vec()
}

fn make(path: &Path) {
    let file = File::create(path).unwrap();
    file.set_len(SIZE).unwrap();
    for (n, at) in ISLANDS.iter().enumerate() {
        file.write_all_at(&island(n), *at).unwrap();
    }
}

#[track_caller]
fn is_right(path: &Path) {
    let file = File::open(path).unwrap();
    assert_eq!(file.metadata().unwrap().len(), SIZE);
    for (n, at) in ISLANDS.iter().enumerate() {
        let mut bytes = vec![0; 100_000];
        file.read_exact_at(&mut bytes, *at).unwrap();
        assert_eq!(bytes, island(n), "the bytes at {at}");
    }
}

/// Uploads, and answers the most memory that the process had in use, in KiB.
fn most_memory(w: &World, words: &[&str]) -> u64 {
    let mut run = w.px(words.iter().copied()).args(&["--give-up", "1h", "--min-delay", "20ms"]).start();
    let status = format!("/proc/{}/status", run.pid());
    let mut most = 0;
    loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
        most = peak.unwrap_or(most);
        match run.try_end() {
            Ok(ran) => {
                ran.exits(0);
                return most;
            }
            Err(still) => run = still,
        }
        std::thread::sleep(ms(100));
    }
}

#[test]
#[ignore = "five gigabytes; tests/long runs it"]
fn five_gibibytes_by_boinc_in_flat_memory() {
    let w = World::new();
    make(&w.path("big.bin"));
    let server = Boinc::start(FrontEnd::NginxStreaming);
    let most = most_memory(&w, &["upload", "big.bin", &server.url()]);
    is_right(&server.path("big.bin"));
    assert_eq!(server.complaints(), Vec::<String>::new());
    println!("boinc: 5 GiB, at most {} MiB of memory", most >> 10);
    assert!(most > 0 && most < FLAT_KIB, "{most} KiB");
}

#[test]
#[ignore = "five gigabytes; tests/long runs it"]
fn five_gibibytes_by_tus_in_flat_memory() {
    let w = World::new();
    make(&w.path("big.bin"));
    let server = TusNode::default().start();
    let most = most_memory(&w, &["upload", "big.bin", "--protocol", "tus", &server.url()]);
    let stored = support::files_below(&server.daemon.store());
    let whole = stored.iter().find(|path| path.metadata().is_ok_and(|meta| meta.len() == SIZE));
    is_right(whole.expect("a file of that size is stored"));
    println!("tus: 5 GiB, at most {} MiB of memory", most >> 10);
    assert!(most > 0 && most < FLAT_KIB, "{most} KiB");
}
