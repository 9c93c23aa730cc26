//! The program killed at each of its effects on the disk, one after the other, several at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Was the program killed there, or had it ended before?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Killed {
    Yes,
    No,
}

/// So many effects a story has, at least and at most: fewer, and nothing was killed; more, and everything was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) least: u64,
    pub(crate) far: u64,
}

/// Tells a story for every effect it has: before it, after it, and with half of it done. `killed_at` is given
/// `PERSXFER_ABORT_AT`, and tells whether the program was killed and what is wrong after that. `PERSXFER_KILL_EVERY=N` takes
/// each Nth effect only.
pub(crate) fn at_every_effect(
    threads: usize,
    Bounds { least, far }: Bounds,
    killed_at: impl Fn(&str) -> (Killed, Option<String>) + Sync,
) {
    let every = std::env::var("PERSXFER_KILL_EVERY").map_or(1, |n| n.parse().expect("a number"));
    let (next, end, bad) = (AtomicU64::new(1), AtomicU64::new(far), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(every, Ordering::SeqCst);
                    if n >= end.load(Ordering::SeqCst) {
                        break;
                    }
                    for moment in ["before", "torn", "after"] {
                        let (killed, trouble) = killed_at(&format!("{n}:{moment}"));
                        if killed == Killed::No {
                            end.fetch_min(n, Ordering::SeqCst);
                        }
                        bad.lock().expect("no panic").extend(trouble.map(|why| format!("{n}:{moment}: {why}")));
                    }
                }
            });
        }
    });
    let (effects, bad) = (end.into_inner(), bad.into_inner().expect("no panic"));
    assert!(bad.is_empty(), "{} of {effects} effects:\n{}", bad.len(), bad.join("\n\n"));
    assert!(effects > least && effects < far, "{effects} effects: nothing was killed, or everything");
    eprintln!("killed at each {every}. of {effects} effects");
}
