//! Files: what lies in a folder, whether a file is exactly what it should be, and waiting for either.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Whatever has not come by then hangs. Far above what any test needs, as machines may be slow.
pub(crate) const HANGS: Duration = Duration::from_secs(90);

/// Waits until the condition holds.
#[track_caller]
pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let from = Instant::now();
    while !condition() {
        assert!(from.elapsed() < HANGS, "never: {what}");
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// The file is exactly this.
#[track_caller]
pub(crate) fn same_file(path: &Path, data: &[u8]) {
    let held = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let equal = held.iter().zip(data).take_while(|(a, b)| a == b).count();
    assert!(held == data, "{} holds {} bytes of {}, the first {equal} equal", path.display(), held.len(), data.len());
}

/// The names in a folder, sorted.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = entries.collect();
    names.sort();
    names
}

/// Every file below a folder.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files_below(&entry.path())),
            _ => found.push(entry.path()),
        }
    }
    found
}
