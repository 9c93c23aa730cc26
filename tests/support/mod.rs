//! What the tests of the built binary stand on: a server that misbehaves, a real one, the program in a folder of its own.
#![allow(dead_code, reason = "each test binary uses its own part of it")]
#![allow(unused_imports, reason = "each test binary uses its own part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]
#![allow(clippy::print_stderr, reason = "tests talk to whoever runs them")]

pub(crate) mod boinc;
pub(crate) mod bytes;
pub(crate) mod every_effect;
pub(crate) mod files;
pub(crate) mod instance;
pub(crate) mod nginx;
pub(crate) mod px;
pub(crate) mod rig;
pub(crate) mod skip;

pub(crate) use bytes::{cyclic_text, digest, gzip, noise};
pub(crate) use files::{HANGS, eventually, files_below, names_in, same_file};
pub(crate) use px::{Px, Ran, Running, World};
pub(crate) use rig::{Asked, End, Reply, Rig, Served};
pub(crate) use skip::skipped;

use std::time::Duration;

/// That many milliseconds.
pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Past the test harness, which holds back what a passing test prints.
pub(crate) fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}
