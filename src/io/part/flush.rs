//! Checkpoints: the drafts' data is flushed, and only then the journal says so; on a thread of its own, since a disk may
//! take its time and the bytes of other downloads wait for nobody.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::io::effects;
use crate::io::part::SyncMode;
use crate::io::part::draft::Draft;
use crate::io::part::fault::on;
use crate::io::part::hasher::Mark;
use crate::io::part::journal::Journal;
use crate::io::part::record::{Claim, Entry};
use crate::io::part::run::Snapshot;

/// How long a checkpoint waits for the digests to come so far; without them it says less.
const MARK_WAIT: Duration = Duration::from_secs(2);

/// The journal, which a checkpoint on its thread and the store both write.
pub(super) type SharedJournal = Arc<Mutex<Journal>>;

/// Locks the journal; whoever panicked with it left whole records.
pub(super) fn lock(journal: &SharedJournal) -> MutexGuard<'_, Journal> {
    journal.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One checkpoint: everything it needs, as it was when it began.
#[derive(Debug)]
pub(super) struct Checkpoint {
    journal: SharedJournal,
    sync: SyncMode,
    drafts: Vec<Marked>,
}

/// A draft at a checkpoint.
#[derive(Debug)]
struct Marked {
    place: Place,
    file: Arc<File>,
    path: PathBuf,
    held: u64,
    inode: u64,
    mark: Mark,
}

impl Checkpoint {
    pub(super) fn new(journal: &SharedJournal, sync: SyncMode) -> Self {
        Self { journal: Arc::clone(journal), sync, drafts: Vec::new() }
    }

    /// Takes in a draft of which everything has been written out.
    pub(super) fn add(&mut self, place: Place, draft: &mut Draft) {
        let mark = draft.hasher.as_mut().map_or(Mark::Ready(None), |h| h.mark());
        let (file, path) = (Arc::clone(&draft.file), draft.path.clone());
        self.drafts.push(Marked { place, file, path, held: draft.gather.written(), inode: draft.inode, mark });
    }

    /// Flushes, and then says so.
    pub(super) fn run(self) -> Result<(), LocalFault> {
        for draft in &self.drafts {
            if self.sync == SyncMode::Full {
                effects::sync_data(&draft.file).map_err(on("flush", &draft.path))?;
            }
        }
        // Waited for before the journal is locked: the receiving thread may want that lock.
        let told: Vec<_> = self.drafts.into_iter().map(|d| (d.place, d.claim(self.sync), d.snapshot())).collect();
        let mut journal = lock(&self.journal);
        for (place, claim, snapshot) in told {
            journal.append(&[Entry::Claim(place, claim)])?;
            if let Some(snapshot) = snapshot {
                let proof = journal.proof_of(place, claim.inode, snapshot);
                journal.append(&[proof])?;
            }
        }
        match self.sync {
            SyncMode::Full => journal.flush(),
            SyncMode::None => Ok(()),
        }
    }
}

impl Marked {
    fn claim(&self, sync: SyncMode) -> Claim {
        Claim { held: self.held, flushed: sync == SyncMode::Full, inode: self.inode }
    }

    fn snapshot(self) -> Option<Snapshot> {
        let snapshot = match self.mark {
            Mark::Ready(snapshot) => snapshot,
            Mark::Coming(receiver) => receiver.recv_timeout(MARK_WAIT).ok().flatten(),
        };
        snapshot.filter(|s| s.sums.length > 0 && s.sums.length <= self.held)
    }
}

/// The thread of the checkpoint under way. Dropping it waits for its end.
#[derive(Debug, Default)]
pub(super) struct Flusher(Option<JoinHandle<Result<(), LocalFault>>>);

/// Is a checkpoint under way?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// It is.
    Yes,
    /// There is no thread for it now: later.
    No,
}

impl Flusher {
    /// A checkpoint is under way.
    pub(super) const fn is_busy(&self) -> bool {
        self.0.is_some()
    }

    /// Begins a checkpoint; none may be under way.
    pub(super) fn start(&mut self, checkpoint: Checkpoint) -> Begun {
        self.0 = std::thread::Builder::new().name("flush".into()).spawn(move || checkpoint.run()).ok();
        if self.is_busy() { Begun::Yes } else { Begun::No }
    }

    /// The result of a checkpoint that has ended meanwhile.
    pub(super) fn reap(&mut self) -> Result<(), LocalFault> {
        match self.0.take_if(|thread| thread.is_finished()) {
            Some(thread) => result(thread),
            None => Ok(()),
        }
    }

    /// Waits for the checkpoint under way.
    pub(super) fn wait(&mut self) -> Result<(), LocalFault> {
        self.0.take().map_or(Ok(()), result)
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        let _ = self.wait();
    }
}

fn result(thread: JoinHandle<Result<(), LocalFault>>) -> Result<(), LocalFault> {
    let panicked = |_| LocalFault::Io {
        doing: "flush",
        path: "the part file".into(),
        detail: "the flushing thread panicked; please report this".into(),
    };
    thread.join().map_err(panicked)?
}
