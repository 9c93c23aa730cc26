//! Beside its peers: the same file from the same server, one program after the other in turns, medians, and ratios to the
//! first. `benches/run` sets it up; `docs/performance.md` says what the rows mean.
//!
//! `PERSXFER_BENCH_RUNS` (5) runs of each, `PERSXFER_BENCH_MB` (1024) the size of the large file; the words given are the rows
//! that are run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot be set up ends"
)]
#![allow(clippy::disallowed_methods, reason = "durations are measured here")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::nginx::{Certificate, Nginx};
use support::noise;

/// The part of the processor's time that `/proc` counts in.
const TICK: Duration = Duration::from_millis(10);

/// One program in a row.
struct Peer {
    name: &'static str,
    /// One after the other, until one fails.
    commands: Vec<Vec<OsString>>,
}

/// What one run cost.
#[derive(Clone, Copy, Default)]
struct Cost {
    wall: Duration,
    cpu: Duration,
}

struct Bench {
    runs: usize,
    large: usize,
    wanted: Vec<String>,
    /// Where files go.
    memory: tempfile::TempDir,
    disk: tempfile::TempDir,
}

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn words<S: Into<OsString>>(words: impl IntoIterator<Item = S>) -> Vec<OsString> {
    words.into_iter().map(Into::into).collect()
}

/// One command of a peer, its words separated by spaces.
fn peer(name: &'static str, command: &str) -> Peer {
    Peer { name, commands: vec![words(command.split(' '))] }
}

fn persxfer(arguments: &str) -> Peer {
    let mut command = words([env!("CARGO_BIN_EXE_persxfer"), "--state-file", "state.xml", "--quiet"]);
    command.extend(words(arguments.split(' ')));
    Peer { name: "persxfer", commands: vec![command] }
}

impl Peer {
    fn is_installed(&self) -> bool {
        let runs = |program: &OsString| {
            Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
        };
        self.commands.iter().all(|command| runs(&command[0]))
    }

    fn run(&self, folder: &Path) -> Cost {
        let (cpu, from) = (cpu_of_children(), Instant::now());
        for command in &self.commands {
            let status = Command::new(&command[0])
                .args(&command[1..])
                .current_dir(folder)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            assert!(status.success(), "{}: {status}", self.name);
        }
        Cost { wall: from.elapsed(), cpu: cpu_of_children().saturating_sub(cpu) }
    }
}

/// The processor's time of all children that have ended.
fn cpu_of_children() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u32 = fields[13..15].iter().map(|text| text.parse::<u32>().unwrap()).sum();
    TICK * ticks
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

impl Bench {
    fn wants(&self, row: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|word| word == row)
    }

    /// Runs the peers in turns; `bytes` is what the folder must hold after each. Each run is so many of the same, where one is
    /// too short to be measured.
    fn row(&self, row: &str, folder: &Path, (bytes, times): (u64, u32), peers: Vec<Peer>) -> Vec<(&'static str, Cost)> {
        let (peers, missing): (Vec<Peer>, Vec<Peer>) = peers.into_iter().partition(Peer::is_installed);
        missing.iter().for_each(|peer| println!("{row:<10} {:<12} not installed: left out", peer.name));
        let mut costs: Vec<Vec<Cost>> = peers.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.runs {
            for (peer, costs) in peers.iter().zip(&mut costs) {
                let mut sum = Cost::default();
                for _ in 0..times {
                    fs::remove_dir_all(folder).ok();
                    fs::create_dir_all(folder).unwrap();
                    let cost = peer.run(folder);
                    (sum.wall, sum.cpu) = (sum.wall + cost.wall, sum.cpu + cost.cpu);
                    assert_eq!(held(folder), bytes, "{}: what arrived", peer.name);
                }
                costs.push(Cost { wall: sum.wall / times, cpu: sum.cpu / times });
            }
        }
        let medians: Vec<(&str, Cost)> = peers
            .iter()
            .zip(costs)
            .map(|(peer, costs)| {
                let wall = median(costs.iter().map(|cost| cost.wall).collect());
                (peer.name, Cost { wall, cpu: median(costs.iter().map(|cost| cost.cpu).collect()) })
            })
            .collect();
        let first = medians[0].1;
        for (name, cost) in &medians {
            let ratio = |own: Duration, first: Duration| own.as_secs_f64() / first.as_secs_f64().max(1e-6);
            println!(
                "{row:<10} {name:<12} wall {:>8.3} s  cpu {:>8.3} s  of {}: wall {:.2} cpu {:.2}",
                cost.wall.as_secs_f64(),
                cost.cpu.as_secs_f64(),
                medians[0].0,
                ratio(cost.wall, first.wall),
                ratio(cost.cpu, first.cpu),
            );
        }
        medians
    }
}

/// Bytes in the files that people see.
fn held(folder: &Path) -> u64 {
    let seen = |entry: &fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        !name.starts_with("state") && !name.starts_with('.') && !name.contains(".persxfer") && name != "list"
    };
    fs::read_dir(folder).unwrap().flatten().filter(seen).map(|entry| entry.metadata().unwrap().len()).sum()
}

/// What the ideal of a row is, and how far from it each is.
fn against(row: &str, ideal: f64, medians: &[(&'static str, Cost)]) {
    for (name, cost) in medians {
        println!("{row:<10} {name:<12} {:.3} of the ideal {ideal:.2} s", cost.wall.as_secs_f64() / ideal);
    }
}

/// Files that everybody serves: the large one, one of 1 KiB, and the list of small ones.
fn fill(nginx: &Nginx, large: usize, small: usize) {
    nginx.put("big.bin", &noise(1, large));
    nginx.put("tiny.bin", &noise(2, 1024));
    fs::create_dir_all(nginx.www().join("small")).unwrap();
    for n in 0..small {
        fs::write(nginx.www().join(format!("small/{n}.bin")), &**noise(3 + n as u64, 16 << 10)).unwrap();
    }
}

fn large_rows(bench: &Bench, nginx: &Nginx) {
    let url = nginx.url("/big.bin");
    let single = || {
        vec![
            peer("curl", &format!("curl -sS -o big.bin {url}")),
            peer("wget2", &format!("wget2 -q {url}")),
            peer("aria2", &format!("aria2c -q --file-allocation=none {url}")),
            persxfer(&format!("download {url}")),
        ]
    };
    let whole = (bench.large as u64, 1);
    for (row, folder) in [("big", &bench.memory), ("disk", &bench.disk)] {
        if bench.wants(row) {
            bench.row(row, &folder.path().join("to"), whole, single());
        }
    }
    if bench.wants("verified") {
        let digest = support::digest("sha-256", &noise(1, bench.large));
        let sum = digest.trim_start_matches("sha-256=");
        let checked = words(["sh", "-c", &format!("echo {sum}  big.bin | sha256sum -c")]);
        let mut curl = peer("curl+sha256", &format!("curl -sS -o big.bin {url}"));
        curl.commands.push(checked);
        let peers = vec![
            curl,
            peer("aria2", &format!("aria2c -q --file-allocation=none --checksum=sha-256={sum} {url}")),
            persxfer(&format!("download --checksum sha-256={sum} {url}")),
        ];
        bench.row("verified", &bench.memory.path().join("to"), whole, peers);
    }
}

fn small_rows(bench: &Bench, nginx: &Nginx, count: usize) {
    if bench.wants("tiny") {
        let url = nginx.url("/tiny.bin");
        let peers = vec![
            peer("curl", &format!("curl -sS -o tiny.bin {url}")),
            peer("wget", &format!("wget -q {url}")),
            peer("aria2", &format!("aria2c -q {url}")),
            persxfer(&format!("download {url}")),
        ];
        bench.row("tiny", &bench.memory.path().join("to"), (1024, 40), peers);
    }
    let list = bench.memory.path().join("list");
    fs::write(&list, (0..count).map(|n| nginx.url(&format!("/small/{n}.bin\n"))).collect::<String>()).unwrap();
    let list = list.display();
    for (row, folder) in [("small", &bench.memory), ("small-disk", &bench.disk)] {
        if bench.wants(row) {
            let all = nginx.url(&format!("/small/[0-{}].bin", count - 1));
            let peers = vec![
                peer("curl", &format!("curl -sS --parallel --remote-name-all {all}")),
                peer("wget2", &format!("wget2 -q -i {list}")),
                peer("aria2", &format!("aria2c -q -j 8 -i {list}")),
                persxfer(&format!("download -i {list}")),
            ];
            bench.row(row, &folder.path().join("to"), ((count * (16 << 10)) as u64, 1), peers);
        }
    }
}

fn tls_row(bench: &Bench) {
    let Some(certificate) = bench.wants("tls").then(|| Certificate::make("tls")).flatten() else { return };
    let Some(nginx) = Nginx::start("tls", &certificate.directives()) else { return };
    nginx.put("big.bin", &noise(1, bench.large));
    let (url, ca) = (nginx.tls_url("/big.bin"), certificate.path());
    let ca: PathBuf = if ca.is_dir() { ca.join("cert.pem") } else { ca };
    let ca = ca.display();
    let peers = vec![
        peer("curl", &format!("curl -sS --http1.1 --cacert {ca} -o big.bin {url}")),
        peer("aria2", &format!("aria2c -q --file-allocation=none --ca-certificate={ca} {url}")),
        persxfer(&format!("download --cacert {ca} {url}")),
    ];
    bench.row("tls", &bench.memory.path().join("to"), (bench.large as u64, 1), peers);
}

/// Servers that brake each connection: what several connections and several mirrors are for.
fn segment_rows(bench: &Bench) {
    let folder = bench.memory.path().join("to");
    if bench.wants("split") {
        let Some(nginx) = Nginx::start("split", "limit_rate 8m;") else { return };
        nginx.put("big.bin", &noise(1, 1 << 30));
        let url = nginx.url("/big.bin");
        let peers = vec![
            peer("aria2", &format!("aria2c -q --file-allocation=none -x 16 -s 16 -k 1M {url}")),
            peer("axel", &format!("axel -q -n 16 {url}")),
            persxfer(&format!("download -x 16 {url}")),
        ];
        let medians = bench.row("split", &folder, (1 << 30, 1), peers);
        against("split", 1024.0 / (16.0 * 8.0), &medians);
    }
    if bench.wants("mirrors") {
        let data = noise(1, 256 << 20);
        let Some(mirrors) = (0..3).map(|_| Nginx::start("mirrors", "limit_rate 16m;")).collect::<Option<Vec<_>>>()
        else {
            return;
        };
        mirrors.iter().for_each(|nginx| nginx.put_dated("big.bin", &data));
        let urls: Vec<String> = mirrors.iter().map(|nginx| nginx.url("/big.bin")).collect();
        let peers = vec![
            peer("aria2", &format!("aria2c -q --file-allocation=none -s 3 -k 1M {}", urls.join(" "))),
            peer("axel", &format!("axel -q -n 3 {}", urls.join(" "))),
            persxfer(&format!("download {} --mirror {} --mirror {}", urls[0], urls[1], urls[2])),
        ];
        let medians = bench.row("mirrors", &folder, (256 << 20, 1), peers);
        against("mirrors", 256.0 / 48.0, &medians);
    }
}

fn main() {
    // Whoever runs all targets as tests wants no benchmark.
    let given: Vec<String> = std::env::args().skip(1).collect();
    if !given.iter().any(|word| word == "--bench") {
        return;
    }
    let disk = std::env::var_os("PERSXFER_BENCH_DISK").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
    let folder = |within: &Path| tempfile::Builder::new().prefix("persxfer-bench-").tempdir_in(within).unwrap();
    let bench = Bench {
        runs: number("PERSXFER_BENCH_RUNS", 5).max(1),
        large: number("PERSXFER_BENCH_MB", 1024) << 20,
        wanted: given.into_iter().filter(|word| !word.starts_with('-')).collect(),
        memory: folder(&std::env::temp_dir()),
        disk: folder(&disk),
    };
    let count = 2_000;
    let rows = ["big", "disk", "verified", "tiny", "small", "small-disk"];
    if rows.iter().any(|row| bench.wants(row)) {
        let Some(nginx) = Nginx::start("peers", "") else { return };
        fill(&nginx, bench.large, count);
        large_rows(&bench, &nginx);
        small_rows(&bench, &nginx, count);
    }
    tls_row(&bench);
    segment_rows(&bench);
}
