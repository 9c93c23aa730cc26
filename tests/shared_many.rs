//! A hundred thousand transfers (design section 8): what listing them costs, entering them, and beginning with them. Run by
//! `tests/long` in release mode, on a file system in memory where there is one; it prints its figures and asserts only
//! what does not depend on the machine.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::print_stderr, reason = "figures are what it is for")]
#![allow(clippy::disallowed_methods, reason = "durations are measured here")]

mod support;

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::{Rig, Served, World, eventually, ms, noise};

const MANY: usize = 100_000;

/// What is printed, aligned.
fn figure(what: &str, value: impl std::fmt::Display, goal: &str) {
    eprintln!("{what:<58} {value:>12}   {goal}");
}

fn seconds(from: Instant) -> String {
    format!("{:.2} s", from.elapsed().as_secs_f64())
}

/// The most memory that a process has had so far, and the processor time it has used.
fn costs(pid: u32) -> (String, Duration) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak: u64 = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .and_then(|l| l.trim().strip_suffix(" kB")?.trim().parse().ok())
        .unwrap_or(0);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().filter_map(|i| fields.get(*i)?.parse::<u64>().ok()).sum();
    (format!("{} MiB", peak >> 10), ms(ticks * 10))
}

/// The second write, which enters all but the first few, is there.
fn entered(w: &World) -> bool {
    let Ok(mut file) = fs::File::open(&w.state) else { return false };
    let mut head = [0; 200];
    let n = std::io::Read::read(&mut file, &mut head).unwrap_or(0);
    String::from_utf8_lossy(&head[..n]).contains("<generation>2<")
}

#[test]
#[ignore = "tests/long runs it in release mode"]
fn a_hundred_thousand_transfers() {
    let w = World::new();
    let rig = Rig::start(|a| Served::new(&noise(1, 1_000)).reply(a).late(ms(60_000)));
    let folder = w.folder("in");
    let list = w.path("list");
    let lines: String = (0..MANY).map(|n| format!("{}\n", rig.url(&format!("/pub/file-{n}.bin")))).collect();
    fs::write(&list, lines).unwrap();

    let from = Instant::now();
    w.px(["add", "download", "-i"]).arg(&list).arg("--dir").arg(&folder).run().exits(0);
    figure("add download -i, 100,000 lines, one write", seconds(from), "");
    let text = w.state_text();
    assert!(text.contains("<generation>1</generation>"));
    figure("  the state file", format!("{} MiB", text.len() >> 20), "");
    drop(text);

    let from = Instant::now();
    w.px(["add", "download", &rig.url("/one-more"), "--dir"]).arg(&folder).run().exits(0);
    figure("add download, one more", seconds(from), "one write");
    assert!(w.state_text().contains("<generation>2</generation>"));

    let from = Instant::now();
    let listing = w.px(["state", "list", "--json"]).start();
    let pid = listing.pid();
    let mut peak = String::new();
    let mut listing = Err(listing);
    while let Err(running) = listing {
        let now = costs(pid).0;
        peak = if now == "0 MiB" { peak } else { now };
        std::thread::sleep(ms(5));
        listing = running.try_end();
    }
    let Ok(listed) = listing else { return };
    figure("state list --json", seconds(from), "under 1.5 s");
    figure("  its memory", peak, "under 250 MB");
    listed.exits(0);
    let json: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(json["transfers"].as_array().unwrap().len(), MANY + 1);

    fs::remove_file(&w.state).unwrap();
    let _ = fs::remove_file(w.state.with_file_name("client_state_prev.xml"));
    let from = Instant::now();
    let run = w.px(["download", "-i"]).arg(&list).arg("--dir").arg(&folder).start();
    eventually("the first request", || rig.count() > 0);
    figure("download -i, 100,000 lines: to the first request", seconds(from), "under 1 s, reading it included");
    eventually("all are entered", || entered(&w));
    figure("  all entered after", seconds(from), "");
    std::thread::sleep(ms(2_000));
    let before = costs(run.pid()).1;
    std::thread::sleep(ms(10_000));
    let (memory, after) = costs(run.pid());
    let idle = (after.saturating_sub(before)).as_secs_f64() * 10.0;
    figure("  idle CPU over 10 s", format!("{idle:.1} %"), "under 1 %");
    figure("  its memory", memory, "under 200 MiB");
    let from = Instant::now();
    run.signal(Signal::TERM);
    run.end().exits(4);
    figure("  SIGTERM to its end", seconds(from), "2 s and what is printed");

    let (before, from) = (rig.count(), Instant::now());
    let run = w.px(["run"]).start();
    eventually("the first request", || rig.count() > before);
    figure("run, 100,000 in the state: to the first request", seconds(from), "");
    std::thread::sleep(ms(2_000));
    figure("  its memory", costs(run.pid()).0, "");
}
