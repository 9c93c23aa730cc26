//! `run` under load, killed again and again at random moments: in the end every file is right, no record is lost or there
//! twice, and nothing is left of what was in between.
//!
//! `PERSXFER_RUN_KILLS` sets the number of kills, `PERSXFER_RUN_KILLS_SEED` draws other moments.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot be set up has failed, and tells figures"
)]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use support::{End, Reply, Rig, Served, World, ms, noise, same_file};

const SMALL: usize = 200;
const LARGE: usize = 6;
const HOSTS: usize = 5;

fn variable(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn data_of(file: usize) -> Arc<Vec<u8>> {
    let size = if file < SMALL { 2_000 + 97 * file } else { 3_000_000 + 1_000 * file };
    noise(900 + file as u64, size)
}

/// A host whose answers are faulty now and then, as long as `stormy` says so.
fn host(number: u64, all: &Arc<Vec<Arc<Vec<u8>>>>, stormy: &Arc<AtomicBool>) -> Rig {
    let (stormy, all) = (Arc::clone(stormy), Arc::clone(all));
    Rig::start(move |a| {
        let file: usize = a.target.trim_start_matches('/').parse().unwrap();
        let data = &all[file];
        let served = Served::new(data).etag(&format!("\"{file}\""));
        let reply = served.reply(a);
        let mut rng = StdRng::seed_from_u64(number << 32 | a.n as u64);
        let reply = if file < SMALL { reply } else { reply.pace(64 << 10, ms(20)) };
        match rng.random_range(0..12) {
            _ if !stormy.load(Ordering::SeqCst) => reply,
            0 => Reply::status(503),
            1 => reply.cut(rng.random_range(0..data.len()), End::Close),
            2 => reply.cut(rng.random_range(0..data.len()), End::Reset),
            3 => reply.pace(4 << 10, ms(40)),
            _ => reply,
        }
    })
}

#[test]
fn a_run_that_is_killed_again_and_again_loses_nothing() {
    let kills = variable("PERSXFER_RUN_KILLS", 10);
    let seed = variable("PERSXFER_RUN_KILLS_SEED", 1);
    let (w, stormy) = (World::new(), Arc::new(AtomicBool::new(true)));
    let (folder, files) = (w.folder("in"), SMALL + LARGE);
    let data: Arc<Vec<_>> = Arc::new((0..files).map(data_of).collect());
    let hosts: Vec<Rig> = (0..HOSTS as u64).map(|number| host(number, &data, &stormy)).collect();
    // Each from a host, and from another as its mirror; a third of them with a digest.
    let list: String = (0..files)
        .map(|file| {
            let (one, other) = (&hosts[file % HOSTS], &hosts[(file + 1) % HOSTS]);
            let hex = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(&*data[file]));
            let digest = if file % 3 == 0 { format!("  checksum=sha-256={hex}\n") } else { String::new() };
            format!("{}\t{}\n{digest}", one.url(&format!("/{file}")), other.url(&format!("/{file}")))
        })
        .collect();
    std::fs::write(w.path("list.txt"), list).unwrap();
    let add = w.px(["add", "download", "-i", "list.txt", "--min-delay", "20ms", "--max-delay", "100ms", "--dir"]);
    add.arg(&folder).run().exits(0);
    let names =
        |all: &[serde_json::Value]| all.iter().map(|t| t["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let before = names(&w.list(&["--all"]));
    assert_eq!(before.len(), files);
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut killed, mut ended) = (0, 0);
    for _ in 0..kills {
        let run = w.px(["run", "-j", "6"]).start();
        std::thread::sleep(ms(rng.random_range(0..900)));
        match run.try_end() {
            Ok(ran) => {
                ran.exits(0);
                ended += 1;
            }
            Err(run) => {
                run.signal(Signal::KILL);
                killed += 1;
                drop(run);
            }
        }
        let now = w.list(&["--all"]);
        assert_eq!(names(&now), before, "seed {seed}: after {killed} kills");
        // What is said to be complete is.
        for t in now.iter().filter(|t| t["status"] == "done") {
            let file: usize = t["name"].as_str().unwrap().parse().unwrap();
            same_file(&folder.join(file.to_string()), &data[file]);
        }
    }
    let left = w.list(&[]).len();
    eprintln!("seed {seed}: {killed} killed, {ended} had ended; {left} of {files} left for the last run");
    assert!(killed > 0, "nothing was killed");
    stormy.store(false, Ordering::SeqCst);
    w.px(["run", "-j", "6"]).run().exits(0);
    let all = w.list(&["--all"]);
    assert_eq!(names(&all), before);
    let ids: BTreeSet<&str> = all.iter().map(|t| t["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), files, "one is there twice");
    assert!(all.iter().all(|t| t["status"] == "done" && t["in_use_by"].is_null()), "{all:?}");
    (0..files).for_each(|file| same_file(&folder.join(file.to_string()), &data[file]));
    let strangers: Vec<String> =
        support::names_in(&folder).into_iter().filter(|name| name.parse::<usize>().is_err()).collect();
    assert_eq!(strangers, Vec::<String>::new(), "something else is in the folder");
    assert_eq!(w.leftovers(), Vec::<std::path::PathBuf>::new());
    w.px(["state", "check"]).run().exits(0);
    // Nothing is asked for again.
    let asked: Vec<usize> = hosts.iter().map(Rig::count).collect();
    w.px(["run"]).run().exits(0);
    assert_eq!(hosts.iter().map(Rig::count).collect::<Vec<_>>(), asked);
}
