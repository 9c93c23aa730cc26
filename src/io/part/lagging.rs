//! Block sums of a draft that no digest runs over: they lag behind, and are made at times by reading back what was written
//! a moment ago, which the page cache still holds. A download that ends within seconds never pays for them.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use crate::io::part::run::{Run, Snapshot};

/// The sums, shared with the thread of a checkpoint.
#[derive(Clone, Debug)]
pub(super) struct Lagging(Arc<Mutex<Run>>);

/// How far they may come at a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CatchUp {
    /// They stay where they are.
    No,
    /// By so many bytes at most.
    By(u64),
}

impl Lagging {
    /// From where this run stands; it has no digests.
    pub(super) fn new(run: Run) -> Self {
        Self(Arc::new(Mutex::new(run)))
    }

    /// Reads on, at most `by` bytes and not beyond `held`. `None` where that is no news, or cannot be read: sums say what
    /// they can, and are no reason to end a download.
    pub(super) fn catch_up(&self, held: u64, by: u64) -> Option<Snapshot> {
        read_on(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), held, by)
    }

    /// The same, unless a checkpoint is just about it.
    pub(super) fn try_catch_up(&self, held: u64, by: u64) -> Option<Snapshot> {
        match self.0.try_lock() {
            Ok(mut run) => read_on(&mut run, held, by),
            Err(TryLockError::Poisoned(poisoned)) => read_on(&mut poisoned.into_inner(), held, by),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

fn read_on(run: &mut Run, held: u64, by: u64) -> Option<Snapshot> {
    let from = run.hashed()?;
    let goal = held.min(from.saturating_add(by));
    if goal <= from {
        return None;
    }
    run.catch_up(goal, &mut |_| ()).ok()?;
    run.snapshot()
}
