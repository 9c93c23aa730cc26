//! A small fuzzer for the stable compiler: a seeded mutator over the seeds in `tests/corpus`, a pool that grows by inputs
//! with new outcomes, a watch over what hangs, and a look at how time grows with the input.
//!
//! A [`Target`] is a function over bytes that panics where one of its promises is broken. The same seed gives the same
//! inputs, on every machine.
//!
//! `PERSXFER_FUZZ` sets the number of executions for each target, `PERSXFER_FUZZ_SEED` another seed.
#![allow(dead_code, reason = "the unit tests of the crate use a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to tell what hangs, never to decide")]
#![allow(clippy::print_stderr, reason = "what is needed to repeat a failure is told")]

mod growth;
mod mutate;
mod run;

use std::path::PathBuf;

pub(crate) use growth::grows_evenly;
#[allow(unused_imports, reason = "the unit tests of the crate use a part of it")]
pub(crate) use run::{fuzz, fuzz_for};

/// A parser and what must hold of it.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    /// Its name, which is also that of its folder in `tests/corpus`.
    pub(crate) name: &'static str,
    /// Runs it and checks it. What it gives tells one kind of outcome from another (see [`kind`]).
    pub(crate) run: fn(&[u8]) -> u32,
    /// Words of its language.
    pub(crate) words: &'static [&'static str],
    /// Executions in a test run where nothing else is said: fewer for a slow one.
    pub(crate) runs: u64,
    /// Bytes of the smaller of the two inputs by which growth is told, where nothing else is said.
    pub(crate) grows_from: usize,
    /// What stands before and behind where repeated words must make sense.
    pub(crate) frames: &'static [(&'static str, &'static str)],
}

/// The seeds of a target, by name of their file.
pub(crate) fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().flat_map(|path| split(&std::fs::read(path).unwrap(), path)).collect();
    assert!(seeds.len() >= 10, "{name} has only {} seeds", seeds.len());
    seeds
}

/// A file `lines` holds a seed a line, `\n`, `\r`, `\t`, `\\` and `\xNN` written so; any other is one seed.
fn split(bytes: &[u8], path: &std::path::Path) -> Vec<Vec<u8>> {
    if path.file_name().is_none_or(|name| name != "lines") {
        return vec![bytes.to_vec()];
    }
    bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()).map(unescaped).collect()
}

fn unescaped(line: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), line);
    while let [first, after @ ..] = rest {
        rest = after;
        let (byte, used) = match (first, after) {
            (b'\\', [b'n', ..]) => (b'\n', 1),
            (b'\\', [b'r', ..]) => (b'\r', 1),
            (b'\\', [b't', ..]) => (b'\t', 1),
            (b'\\', [b'\\', ..]) => (b'\\', 1),
            (b'\\', [b'x', a, b, ..]) => {
                let digits = [*a, *b];
                (u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap(), 3)
            }
            _ => (*first, 0),
        };
        out.push(byte);
        rest = &rest[used..];
    }
    out
}

/// One number for an outcome: its parts, large ones by their size only, so that few outcomes are new.
pub(crate) fn kind(parts: &[usize]) -> u32 {
    parts.iter().fold(17, |sum: u32, part| {
        let size = if *part < 8 { *part as u32 } else { 8 + part.ilog2() };
        sum.wrapping_mul(31).wrapping_add(size)
    })
}

/// The number of an environment variable.
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}
