//! A large file from three mirrors that all misbehave, on this machine and without a network.
//!
//! `cargo run --release --example flaky_mirrors` starts the mirrors, downloads 64 MiB from them with persxfer's own command
//! line, and tells what each mirror did. With arguments (`... --example flaky_mirrors -- https://example.org/file.iso`) it is
//! `persxfer download` with those, for a real file.

#[allow(
    dead_code,
    unused_imports,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "the tests' server, of which this needs a part"
)]
#[path = "../tests/support/rig/mod.rs"]
mod rig;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use rig::{End, Reply, Rig, Served};
use sha2::{Digest, Sha256};

const MIB: usize = 1 << 20;
const SIZE: usize = 64 * MIB;

fn main() -> anyhow::Result<ExitCode> {
    let typed: Vec<OsString> = std::env::args_os().skip(1).collect();
    if typed.is_empty() { from_flaky_mirrors() } else { Ok(persxfer(typed)) }
}

fn persxfer(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words = ["persxfer", "download"].map(OsString::from);
    persxfer::cli::main(words.into_iter().chain(arguments))
}

fn from_flaky_mirrors() -> anyhow::Result<ExitCode> {
    let (current, old) = (Arc::new(pattern(1)), Arc::new(pattern(2)));
    let sum = hex::encode(Sha256::digest(current.as_slice()));
    let mirrors = [breaks_off(&current), busy_and_slow(&current), out_of_date(&old)];
    let ways = [
        "breaks every answer off after 12 MiB, and resets the connection at every second request",
        "is busy (503) at every second request, and slow at the others",
        "holds an old version of the same size, and answers ranges with it all the same",
    ];
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("large.bin");

    say("64 MiB from three mirrors:")?;
    for (mirror, way) in mirrors.iter().zip(ways) {
        say(&format!("  {}  {way}", mirror.url("/large.bin")))?;
    }
    say("")?;
    let urls = mirrors.each_ref().map(|m| m.url("/large.bin"));
    let state = folder.path().join("client_state.xml");
    let exit = persxfer(
        [&urls[0], "--mirror", &urls[1], "--mirror", &urls[2], "--checksum", &format!("sha-256={sum}")]
            .into_iter()
            .chain(["--min-delay", "500ms", "--max-delay", "2s", "--give-up", "5m"])
            .map(OsString::from)
            .chain(["-o".into(), file.clone().into(), "--state-file".into(), state.into()]),
    );
    if exit != ExitCode::SUCCESS {
        return Ok(exit);
    }

    // The program says that the file is right; this asks nobody but the file.
    let arrived = std::fs::read(&file).with_context(|| format!("exit status 0, and no {}", file.display()))?;
    ensure!(arrived == *current, "exit status 0, and another file");
    say("\nThe file that arrived is byte for byte the right one. What it took:")?;
    for (mirror, way) in mirrors.iter().zip(ways) {
        let (asked, sent) = (mirror.count(), mirror.sent() as f64 / MIB as f64);
        say(&format!("  {asked:2} requests, {sent:5.1} MiB from the one that {way}"))?;
    }
    let sent: u64 = mirrors.iter().map(Rig::sent).sum();
    say(&format!("{:.1} MiB on the wire for a file of 64.\nsha-256 {sum}", sent as f64 / MIB as f64))?;
    Ok(exit)
}

fn breaks_off(data: &Arc<Vec<u8>>) -> Rig {
    let served = Served::new(data).etag("\"large-2\"");
    Rig::start(move |asked| match asked.n % 2 {
        0 => served.reply(asked).pace(MIB, Duration::from_millis(40)).cut(12 * MIB, End::Close),
        _ => Reply::raw("").then(End::Reset),
    })
}

fn busy_and_slow(data: &Arc<Vec<u8>>) -> Rig {
    let served = Served::new(data).etag("\"5f3a-2\"");
    Rig::start(move |asked| match asked.n % 2 {
        0 => Reply::page(503, "<p>Too many guests.</p>"),
        _ => served.reply(asked).pace(MIB / 4, Duration::from_millis(20)),
    })
}

fn out_of_date(old: &Arc<Vec<u8>>) -> Rig {
    let served = Served::new(old).no_etag().blind();
    Rig::start(move |asked| served.reply(asked))
}

/// Bytes without a pattern that a compressor would find, the same for the same seed.
fn pattern(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(SIZE);
    while bytes.len() < SIZE {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(state ^ (state >> 29)).to_le_bytes());
    }
    bytes
}

fn say(line: &str) -> std::io::Result<()> {
    writeln!(std::io::stderr(), "{line}")
}
