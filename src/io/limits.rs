//! Limits that the system sets for this process: how large a file it may write, how many it may have open.

use crate::core::range::Length;
use crate::core::units::human_bytes;

/// With fewer descriptors than this no download can run: the event loops, signals, the state's and the part's locks, the
/// journal and one connection take twenty, and each further transfer or connection more.
pub const LEAST_DESCRIPTORS: u64 = 32;

/// How many files this process may have open at a time (`ulimit -n`), where there is a limit.
pub fn descriptors() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

/// The largest file that this process may write (`ulimit -f`), in bytes, where there is a limit.
pub fn largest_file() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Fsize).current
}

/// Why a file cannot grow beyond such a limit, and what to do.
pub fn too_large(limit: Option<u64>) -> String {
    match limit {
        Some(limit) => format!(
            "this process may write no file larger than {} (ulimit -f); raise that limit, and run again",
            human_bytes(Length(limit))
        ),
        None => "the file system takes no file so large; choose a place on another one".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_limit_it_was_is_told() {
        assert!(too_large(Some(1 << 20)).contains("no file larger than 1.0 MiB (ulimit -f)"));
        assert!(too_large(None).contains("file system"));
    }
}
