//! Checkpoints: the drafts' data is flushed, and only then the journal says so; on a thread of its own, since a disk may
//! take its time and the bytes of other downloads wait for nobody.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::core::range::RangeSet;
use crate::io::effects;
use crate::io::part::draft::{Draft, Gaps};
use crate::io::part::fault::on;
use crate::io::part::hasher::Mark;
use crate::io::part::journal::Journal;
use crate::io::part::lagging::{CatchUp, Lagging};
use crate::io::part::record::{Claim, Entry, Segments};
use crate::io::part::run::Snapshot;
use crate::io::part::{Slow, SyncMode};

/// How long a checkpoint waits for the digests to come so far; without them it says less.
const MARK_WAIT: Duration = Duration::from_secs(2);

/// The journal, which a checkpoint on its thread and the store both write.
pub(super) type SharedJournal = Arc<Mutex<Journal>>;

/// The same, where nobody has it.
pub(super) fn try_lock(journal: &SharedJournal) -> Option<MutexGuard<'_, Journal>> {
    match journal.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Locks the journal; whoever panicked with it left whole records.
pub(super) fn lock(journal: &SharedJournal) -> MutexGuard<'_, Journal> {
    journal.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One checkpoint: everything it needs, as it was when it began.
#[derive(Debug)]
pub(super) struct Checkpoint {
    journal: SharedJournal,
    sync: SyncMode,
    catch_up: CatchUp,
    drafts: Vec<Marked>,
}

/// A draft at a checkpoint.
#[derive(Debug)]
struct Marked {
    place: Place,
    file: Arc<File>,
    path: PathBuf,
    held: u64,
    /// All that is held, where there are gaps.
    segments: Option<RangeSet>,
    inode: u64,
    mark: Mark,
    lagging: Option<Lagging>,
}

impl Checkpoint {
    pub(super) fn new(journal: &SharedJournal, sync: SyncMode, catch_up: CatchUp) -> Self {
        Self { journal: Arc::clone(journal), sync, catch_up, drafts: Vec::new() }
    }

    /// Takes in a draft of which everything has been written out.
    pub(super) fn add(&mut self, place: Place, draft: &mut Draft) {
        let mark = draft.hasher.as_mut().map_or(Mark::Ready(None), |h| h.mark());
        let (file, path) = (Arc::clone(&draft.file), draft.path.clone());
        let (held, inode, lagging) = (draft.gather.written(), draft.inode, draft.lagging.clone());
        let segments = (draft.gaps == Gaps::Told).then(|| draft.written());
        self.drafts.push(Marked { place, file, path, held, segments, inode, mark, lagging });
    }

    /// Flushes, and then says so.
    pub(super) fn run(mut self) -> Result<(), LocalFault> {
        for draft in &self.drafts {
            if self.sync == SyncMode::Full {
                effects::sync_data(&draft.file).map_err(on("flush", &draft.path))?;
            }
        }
        // Waited for before the journal is locked: the receiving thread may want that lock.
        let snapshots: Vec<_> = self.drafts.iter_mut().map(Marked::snapshot).collect();
        let mut journal = lock(&self.journal);
        for (draft, snapshot) in self.drafts.iter().zip(snapshots) {
            journal.append(&draft.words(self.sync))?;
            append_proof(&mut journal, draft, snapshot)?;
        }
        flush(&mut journal, self.sync)?;
        drop(journal);
        match self.catch_up {
            CatchUp::By(by) => self.catch_up(by),
            CatchUp::No => Ok(()),
        }
    }

    /// Block sums come nearer to what is held.
    fn catch_up(&self, by: u64) -> Result<(), LocalFault> {
        for draft in &self.drafts {
            let Some(snapshot) = draft.lagging.as_ref().and_then(|l| l.catch_up(draft.held, by)) else { continue };
            let mut journal = lock(&self.journal);
            append_proof(&mut journal, draft, Some(snapshot))?;
            flush(&mut journal, self.sync)?;
        }
        Ok(())
    }
}

fn append_proof(journal: &mut Journal, draft: &Marked, snapshot: Option<Snapshot>) -> Result<(), LocalFault> {
    let Some(snapshot) = snapshot else { return Ok(()) };
    let proof = journal.proof_of(draft.place, draft.inode, snapshot);
    journal.append(&[proof])
}

fn flush(journal: &mut Journal, sync: SyncMode) -> Result<(), LocalFault> {
    match sync {
        SyncMode::Full => journal.flush(),
        SyncMode::None => Ok(()),
    }
}

impl Marked {
    /// What is flushed now. Of a file with gaps that is nothing where nothing was: what is written has been said already,
    /// and perhaps more since.
    fn words(&self, sync: SyncMode) -> Vec<Entry> {
        let (flushed, inode) = (sync == SyncMode::Full, self.inode);
        match &self.segments {
            Some(held) if flushed => {
                vec![Entry::Segments(self.place, Segments { held: held.clone(), flushed, inode })]
            }
            Some(_) => Vec::new(),
            None => vec![Entry::Claim(self.place, Claim { held: self.held, flushed, inode })],
        }
    }

    fn snapshot(&mut self) -> Option<Snapshot> {
        let snapshot = match std::mem::replace(&mut self.mark, Mark::Ready(None)) {
            Mark::Ready(snapshot) => snapshot,
            Mark::Coming(receiver) => receiver.recv_timeout(MARK_WAIT).ok().flatten(),
        };
        snapshot.filter(|s| s.sums.length > 0 && s.sums.length <= self.held)
    }
}

/// The thread of the checkpoint under way. Dropping it waits for its end.
#[derive(Debug, Default)]
pub(super) struct Flusher(Option<UnderWay>);

/// A checkpoint that was begun.
#[derive(Debug)]
enum UnderWay {
    Thread(JoinHandle<Result<(), LocalFault>>),
    /// It is over already, and nobody has asked how it went.
    Over(Result<(), LocalFault>),
}

impl UnderWay {
    fn is_over(&self) -> bool {
        match self {
            Self::Thread(thread) => thread.is_finished(),
            Self::Over(_) => true,
        }
    }

    /// How it went; waits for its end.
    fn result(self) -> Result<(), LocalFault> {
        match self {
            Self::Thread(thread) => result(thread),
            Self::Over(result) => result,
        }
    }
}

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
    pub(super) fn start(&mut self, checkpoint: Checkpoint, slow: Slow) -> Begun {
        let thread = || std::thread::Builder::new().name("flush".into());
        self.0 = match slow {
            Slow::Beside => thread().spawn(move || checkpoint.run()).ok().map(UnderWay::Thread),
            Slow::InTurn => Some(UnderWay::Over(checkpoint.run())),
        };
        if self.is_busy() { Begun::Yes } else { Begun::No }
    }

    /// The result of a checkpoint that has ended meanwhile.
    pub(super) fn reap(&mut self) -> Result<(), LocalFault> {
        self.0.take_if(|checkpoint| checkpoint.is_over()).map_or(Ok(()), UnderWay::result)
    }

    /// Waits for the checkpoint under way.
    pub(super) fn wait(&mut self) -> Result<(), LocalFault> {
        self.0.take().map_or(Ok(()), UnderWay::result)
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
