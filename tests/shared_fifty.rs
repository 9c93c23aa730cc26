//! Many hosts, a tenth of them bad in every way in which a host can be: the others' files come as if the bad were not there,
//! and a bad one is asked no more than its backoff allows. `tests/long` runs it with 10,000 files and prints the ratio.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::print_stderr, reason = "figures are what it is for")]
#![allow(clippy::disallowed_methods, reason = "durations are measured here")]

mod support;

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::nginx::Nginx;
use support::{End, Reply, Rig, Served, World, ms, noise};

/// How long the files of the good hosts may take before it is a fault, whatever the machine.
const PATIENCE: Duration = Duration::from_secs(900);

/// Two accept and never answer, one stalls within a body, one answers 503, one refuses connections.
fn bad_hosts() -> Vec<Rig> {
    let served = Served::new(&noise(50, 60_000));
    let refusing = Rig::start(|_| Reply::status(500));
    refusing.stop();
    vec![
        Rig::start(|_| Reply::raw(Vec::new()).then(End::Hang)),
        Rig::start(|_| Reply::raw(Vec::new()).then(End::Hang)),
        Rig::start(move |a| served.reply(a).cut(20_000, End::Hang)),
        Rig::start(|_| Reply::status(503)),
        refusing,
    ]
}

/// What is fetched: so many files of each host, in turns, the bad hosts first.
struct Plan {
    good: usize,
    files: usize,
    at_once: &'static str,
}

/// Fetches them until all of the good hosts are here; gives how long that took.
fn fetch(nginx: &Nginx, bad: &[Rig], plan: &Plan) -> Duration {
    let w = World::new();
    let (folder, list) = (w.folder("in"), w.path("list"));
    let mut lines = String::new();
    for file in 0..plan.files {
        for (n, rig) in bad.iter().enumerate() {
            lines += &format!("{}\n", rig.url(&format!("/bad-{n}-{file}")));
        }
        for host in 1..=plan.good {
            lines += &format!("{}\n", nginx.url_at(&format!("127.0.1.{host}"), &format!("/good-{host}-{file}")));
        }
    }
    fs::write(&list, lines).unwrap();
    let begun = Instant::now();
    let run = w.px(["download", "-j", plan.at_once, "-i"]).arg(&list).arg("--dir").arg(&folder).start();
    let finished = |name: &str| name.starts_with("good-") && !name.contains(".persxfer-");
    let here = || {
        let entries = fs::read_dir(&folder).unwrap().flatten();
        entries.filter(|entry| finished(&entry.file_name().to_string_lossy())).count()
    };
    while here() < plan.good * plan.files {
        assert!(begun.elapsed() < PATIENCE, "{} of {} are here", here(), plan.good * plan.files);
        std::thread::sleep(ms(20));
    }
    let took = begun.elapsed();
    for rig in bad {
        // Three failures close a host for a minute or more; with two at once and one that was begun meanwhile, five.
        let most = 5 * (1 + took.as_secs() as usize / 60);
        assert!(rig.connections() as usize <= most, "{} connections in {took:?}", rig.connections());
    }
    if bad.is_empty() {
        run.end().exits(0);
    } else {
        run.signal(Signal::TERM);
        run.end().exits(4);
    }
    let bytes = fs::read(nginx.www().join("file")).unwrap();
    for host in 1..=plan.good {
        assert!(fs::read(folder.join(format!("good-{host}-{}", plan.files - 1))).unwrap() == bytes);
    }
    took
}

/// A server that has every file, at so many addresses.
fn good_hosts(test: &str, n: usize) -> Option<Nginx> {
    let listen: String = (1..=n).map(|host| format!("listen 127.0.1.{host}:@port;\n")).collect();
    let nginx = Nginx::start(test, &format!("{listen}location / {{ try_files /file =404; }}"))?;
    nginx.put("file", &noise(51, 16_000));
    Some(nginx)
}

#[test]
fn bad_hosts_stop_no_other() {
    let Some(nginx) = good_hosts("bad_hosts_stop_no_other", 10) else { return };
    fetch(&nginx, &bad_hosts(), &Plan { good: 10, files: 20, at_once: "4" });
}

#[test]
#[ignore = "tests/long runs it in release mode"]
fn ten_thousand_files_of_fifty_hosts() {
    let Some(nginx) = good_hosts("ten_thousand_files_of_fifty_hosts", 45) else { return };
    for at_once in ["8", "64"] {
        let plan = Plan { good: 45, files: 200, at_once };
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            without.push(fetch(&nginx, &[], &plan));
            with.push(fetch(&nginx, &bad_hosts(), &plan));
        }
        let median = |times: &mut Vec<Duration>| {
            times.sort_unstable();
            times[times.len() / 2].as_secs_f64()
        };
        let (without, with) = (median(&mut without), median(&mut with));
        eprintln!(
            "-j {at_once}: 9000 files of 45 good hosts {without:.2} s, with 5 bad hosts of 200 files each {with:.2} s: ratio {:.3} (goal 1.05)",
            with / without
        );
    }
}
