//! A storm: eight processes at a time add, run, download, retry, suspend, resume and abort at random on one state file,
//! and one of them is killed every moment. Afterwards no record is lost, none is there twice, every wish is obeyed, and
//! every file is right (design section 5).
//!
//! A few seconds of it run always; `tests/long` runs it for a minute (`PERSXFER_STORM`, in seconds; `PERSXFER_STORM_SEED`
//! for the same one again).
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::print_stderr, reason = "the seed is told, to have the same storm again")]
#![allow(clippy::disallowed_methods, reason = "the storm lasts for some time")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use support::rig::lock;
use support::{Ran, Rig, Running, Served, World, eventually, ms, noise, same_file};

const ACTORS: u64 = 8;
const FILES: u64 = 24;
const SIZE: usize = 300_000;

/// What is going on.
struct Storm<'w> {
    w: &'w World,
    rig: Rig,
    until: Instant,
    /// Long-running processes; the one that is killed is taken from here.
    at_work: Mutex<Vec<Running>>,
    /// Files that were added with success.
    added: Mutex<BTreeSet<u64>>,
}

fn data(n: u64) -> std::sync::Arc<Vec<u8>> {
    noise(1_000 + n, SIZE + n as usize)
}

impl Storm<'_> {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    fn act(&self, rng: &mut StdRng) {
        let n = rng.random_range(0..FILES);
        let (url, name) = (self.rig.url(&format!("/{n}")), format!("f{n}"));
        let delays = ["--min-delay", "50ms", "--max-delay", "200ms"];
        match rng.random_range(0..100) {
            0..30 => {
                let ran = self.w.px(["add", "download", &url]).args(&delays).arg("-o").arg(self.w.path(&name)).run();
                if ran.exits_one_of(&[0, 5]).succeeded() {
                    lock(&self.added).insert(n);
                }
            }
            30..45 => self.send(self.w.download(&url).out(Some(self.w.path(&name))).start()),
            45..60 => self.send(self.w.px(["run", "-j", "3", "--max-transfers-per-host", "3"]).start()),
            60..72 => self.say("retry", &name),
            72..82 => self.say("suspend", &name),
            82..90 => self.say("resume", &name),
            90..96 => self.say("abort", &name),
            96..98 => self.say("resume", "--all"),
            _ => _ = self.w.list(&["--all"]),
        }
    }

    fn say(&self, verb: &str, name: &str) {
        // A file that nobody has asked for yet is unknown.
        self.w.px([verb, name]).run().exits_one_of(&[0, 2]);
    }

    /// Another one is at work, if there is room.
    fn send(&self, running: Running) {
        let mut at_work = lock(&self.at_work);
        let (over, rest): (Vec<_>, Vec<_>) = at_work.drain(..).map(Running::try_end).partition(Result::is_ok);
        over.into_iter().filter_map(Result::ok).for_each(|ran| check(&ran));
        at_work.extend(rest.into_iter().filter_map(Result::err));
        if at_work.len() < ACTORS as usize {
            at_work.push(running);
        }
    }

    /// One of them dies.
    fn kill_one(&self, rng: &mut StdRng) {
        let mut at_work = lock(&self.at_work);
        if !at_work.is_empty() {
            let victim = rng.random_range(0..at_work.len());
            // Dropping it is `kill -9`.
            drop(at_work.swap_remove(victim));
        }
    }
}

fn check(ran: &Ran) {
    ran.exits_one_of(&[0, 3, 4, 5]);
    assert!(!ran.stderr.contains("please report"), "{ran}");
}

fn seconds() -> u64 {
    std::env::var("PERSXFER_STORM").ok().and_then(|t| t.parse().ok()).unwrap_or(5)
}

fn seed() -> u64 {
    let given = std::env::var("PERSXFER_STORM_SEED").ok().and_then(|t| t.parse().ok());
    given.unwrap_or_else(|| u64::from(std::process::id()))
}

#[test]
fn nothing_is_lost_in_a_storm() {
    let (w, seed) = (World::new(), seed());
    eprintln!("PERSXFER_STORM_SEED={seed}");
    let rig = Rig::start(|a| {
        let n: u64 = a.target[1..].parse().unwrap();
        let reply = Served::new(&data(n)).reply(a).pace(20_000, ms(10));
        if a.n % 5 == 0 { reply.cut(120_000, support::End::Close) } else { reply }
    });
    let storm = Storm {
        w: &w,
        rig,
        until: Instant::now() + Duration::from_secs(seconds()),
        at_work: Mutex::default(),
        added: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for actor in 0..ACTORS {
            let storm = &storm;
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(seed ^ actor);
                while !storm.is_over() {
                    storm.act(&mut rng);
                }
            });
        }
        let mut rng = StdRng::seed_from_u64(seed ^ ACTORS);
        let pause = if seconds() < 30 { ms(300) } else { ms(1_000) };
        while !storm.is_over() {
            std::thread::sleep(pause);
            storm.kill_one(&mut rng);
        }
    });
    aftermath(&storm);
}

/// While those who are left are still at work, all are told to rest: all do, whoever runs them.
fn every_wish_is_obeyed(storm: &Storm<'_>) {
    let w = storm.w;
    w.px(["suspend", "--all"]).run().exits(0);
    let rests = |t: &serde_json::Value| t["status"] != "pending";
    eventually("all rest", || w.list(&[]).iter().all(rests) && !w.state_text().contains("<wish>"));
}

/// The sky clears: whoever is left ends, everything suspended or failed is taken up again, and all is as it should be.
fn aftermath(storm: &Storm<'_>) {
    let w = storm.w;
    every_wish_is_obeyed(storm);
    lock(&storm.at_work).clear();
    // Wishes left for those who died are obeyed by whoever comes next; a person's last word is that all go on.
    w.px(["resume", "--all"]).run().exits(0);
    w.px(["retry", "--all"]).run().exits(0);
    eventually("all are done", || {
        w.px(["run", "-j", "8", "--max-transfers-per-host", "8"]).run().exits_one_of(&[0, 3, 4]);
        w.px(["resume", "--all"]).run().exits(0);
        w.px(["retry", "--all"]).run().exits(0);
        w.list(&[]).is_empty()
    });
    let all = w.list(&["--all"]);
    let mut by_path: BTreeMap<String, usize> = BTreeMap::new();
    let mut names = BTreeSet::new();
    for t in &all {
        *by_path.entry(t["path"].as_str().unwrap().to_owned()).or_default() += 1;
        assert!(names.insert(t["name"].as_str().unwrap().to_owned()), "a name twice: {t}");
        assert!(t["in_use_by"].is_null(), "{t}");
    }
    assert!(by_path.values().all(|count| *count == 1), "a record twice: {by_path:?}");
    for n in lock(&storm.added).iter() {
        let path = w.path(&format!("f{n}"));
        assert!(by_path.contains_key(path.to_str().unwrap()), "f{n} was added and is lost");
    }
    for n in 0..FILES {
        let path = w.path(&format!("f{n}"));
        if by_path.contains_key(path.to_str().unwrap()) {
            same_file(&path, &data(n));
        }
    }
    assert!(!by_path.is_empty() && !w.state_text().contains("<wish>"), "{}", w.state_text());
}
