//! Skip: a test that cannot run here says so where `tests/run` counts it, and never passes in silence.

use std::io::Write;

/// Notes that `test` was skipped and why: in the file that `PERSXFER_SKIPS` names, and on standard error.
///
/// Call it and return. Where the runner must have everything (`CI=true`), a skip is a failure.
pub(crate) fn skipped(test: &str, why: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{test} cannot be skipped under CI: {why}");
    eprintln!("SKIP {test}: {why}");
    let Some(path) = std::env::var_os("PERSXFER_SKIPS") else { return };
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("PERSXFER_SKIPS is a file");
    // One write a line: tests of several processes append to it at once.
    file.write_all(format!("{test}: {why}\n").as_bytes()).expect("it can be written");
}
