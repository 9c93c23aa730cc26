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

/// So many connections for one file leave descriptors for what a download cannot do without, under a limit on them: each
/// takes one, and another while it is being made.
pub fn connections(limit: Option<u64>) -> usize {
    let spare = limit.map_or(u64::MAX, |limit| limit.saturating_sub(LEAST_DESCRIPTORS));
    usize::try_from(1 + spare / 2).unwrap_or(usize::MAX)
}

/// What to do where no descriptor is left.
pub fn too_many_open(limit: Option<u64>) -> String {
    match limit {
        Some(limit) => format!(
            "this process may have only {limit} files open at a time (ulimit -n); raise that limit, or allow fewer \
             --connections and --max-transfers"
        ),
        None => "too many files are open; raise the limit on them, or allow fewer --max-transfers".to_owned(),
    }
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
    fn connections_leave_descriptors_for_everything_else() {
        let told = [None, Some(8), Some(32), Some(33), Some(34), Some(64), Some(1024)].map(connections);
        assert_eq!(told, [usize::MAX / 2 + 1, 1, 1, 1, 2, 17, 497]);
        assert!(too_many_open(Some(33)).contains("only 33 files open at a time (ulimit -n)"));
    }

    #[test]
    fn which_limit_it_was_is_told() {
        assert!(too_large(Some(1 << 20)).contains("no file larger than 1.0 MiB (ulimit -f)"));
        assert!(too_large(None).contains("file system"));
    }
}
