//! The part file: the bytes of one download, from the first one to the final name (design 3.8, 3.9; `docs/part-file.md`).
//!
//! A [`PartStore`] owns three files beside the target: the part file, a second one for a newer version of the file (the
//! rival), and their journal. It is used by the thread that runs the session, and every call may wait for the disk.
//! It decides nothing about versions or servers; it promises that what it calls held is what was written, in order and
//! without a gap, and that after a crash it calls no more held than is there.
//!
//! | file | about |
//! |---|---|
//! | `open`, `take`, `names`, `boot` | which files are ours, and how much of them counts |
//! | `draft`, `gather`, `room` | bytes in and out of one file |
//! | `digests`, `sums`, `run`, `hasher` | digests while bytes flow |
//! | `record`, `journal`, `flush` | what is remembered, and when |
//! | `versions`, `ending`, `publish`, `witness` | cutting, replacing, finishing |

mod boot;
mod digests;
mod draft;
mod ending;
mod fault;
mod flush;
mod gather;
mod hasher;
mod journal;
mod names;
mod open;
mod publish;
mod record;
mod room;
mod run;
mod sums;
mod take;
#[cfg(test)]
mod tests;
mod versions;
mod whole;
mod witness;

pub use whole::{adopt_equal, file_names, has_digests, holder};
pub use witness::{is_witnessed, tidy};

use std::path::Path;

use bytes::Bytes;

use crate::core::digest::Algorithm;
use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::core::range::{ByteRange, Length, Offset};
use crate::core::time::{Delay, Mono};

pub use boot::Boot;
pub use draft::Compare;
pub use publish::{Clobber, Publish};

use draft::Draft;
use flush::{Begun, Checkpoint, Flusher, SharedJournal, lock};
use gather::STRIDE;
use hasher::Hasher;
use names::Names;
use run::Run;

/// A checkpoint is due after so many new bytes: 64 MiB.
const CHECKPOINT_BYTES: u64 = 64 << 20;
/// A checkpoint is due after so long, if there are new bytes.
const CHECKPOINT_TIME: Delay = Delay::from_secs(5);
/// Bytes wait so long at most before they are written out.
const GATHER_TIME: Delay = Delay::from_millis(250);

/// What a download wants of its files.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The digests that run while bytes flow.
    pub algorithms: Vec<Algorithm>,
    /// How eagerly data is flushed.
    pub sync: SyncMode,
    /// When block sums are kept.
    pub sums: BlockSums,
    /// This boot of the machine: [`Boot::current`], except in tests.
    pub boot: Boot,
}

/// How eagerly data is flushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// At every checkpoint, and before the final name.
    #[default]
    Full,
    /// Never: after a crash of the machine the download begins anew.
    None,
}

/// When a CRC-32C is kept for each block of what is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockSums {
    /// Where digests run: the sums vouch for their state in a later session, and cost next to nothing beside them.
    #[default]
    WithDigests,
    /// Always.
    Always,
}

impl Spec {
    /// With these digests and this eagerness, in this boot.
    pub fn new(algorithms: Vec<Algorithm>, sync: SyncMode) -> Self {
        Self { algorithms, sync, sums: BlockSums::default(), boot: Boot::current() }
    }
}

/// A store that has been opened, and what it found.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: PartStore,
    /// Bytes held in the part file.
    pub part_held: Length,
    /// Bytes held in the rival, where there is one.
    pub rival_held: Option<Length>,
    /// Is the part what the record knows as the rival?
    pub promoted: Promoted,
    /// What a person should know: files replaced, bytes that do not count. Paths are as the user gave them.
    pub remarks: Vec<String>,
}

/// Is the part what the record knows as the rival?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promoted {
    /// It is: an earlier run put it in the part's place, and ended before the record could say so.
    Yes,
    /// It is not.
    No,
}

/// The files of one download. Both are locked while it lives.
///
/// Dropping it is what a kill does: up to 1 MiB, or 250 ms, that was not written out yet is lost. [`PartStore::close`]
/// loses nothing.
#[derive(Debug)]
pub struct PartStore {
    names: Names,
    spec: Spec,
    part: Draft,
    rival: Option<Draft>,
    journal: SharedJournal,
    /// The journal is marked with this boot, so that the files' lengths count after a kill.
    marked: Marked,
    flusher: Flusher,
    /// Bytes written out since the last checkpoint.
    fresh: u64,
    /// When the last checkpoint began, or the first tick came.
    checkpoint_at: Option<Mono>,
    /// Since when bytes wait, as far as ticks tell.
    waiting_since: Option<Mono>,
}

/// Is the journal marked with this boot?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marked {
    Yes,
    No,
}

impl PartStore {
    /// Bytes held, those included that still wait to be written out. A rival that does not exist holds none.
    pub fn held(&self, place: Place) -> Length {
        Length(self.draft(place).map_or(0, Draft::held))
    }

    /// Makes sure that there is room for a file of `total` bytes, and takes it where the file system can.
    ///
    /// # Errors
    /// [`LocalFault::DiskFull`] says how much is missing; nothing was written.
    pub fn reserve(&mut self, place: Place, total: Length) -> Result<(), LocalFault> {
        self.draft_mut(place)?.reserve(total.0)
    }

    /// Takes the bytes that follow what is held. They are written in strides of 1 MiB, at the latest by the first
    /// [`PartStore::tick`] after 250 ms.
    ///
    /// # Errors
    /// [`LocalFault::DiskFull`] and [`LocalFault::Io`]; [`PartStore::held`] then tells how far the file goes.
    pub fn write(&mut self, place: Place, at: Offset, bytes: Bytes) -> Result<(), LocalFault> {
        let draft = self.draft_mut(place)?;
        if at.0 != draft.held() {
            let detail = format!("offset {at} does not follow the {} bytes held; please report this", draft.held());
            return Err(LocalFault::Io { doing: "write", path: draft.path.display().to_string(), detail });
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let draft = self.draft_mut(place)?;
            rest = draft.gather.take(rest);
            if draft.gather.is_full() {
                self.write_out(place)?;
            }
        }
        Ok(())
    }

    /// Writes out what waits; gives what is held.
    ///
    /// # Errors
    /// As [`PartStore::write`].
    pub fn settle(&mut self, place: Place) -> Result<Length, LocalFault> {
        self.write_out(place)?;
        Ok(self.held(place))
    }

    /// Compares `bytes` with those held from `at` on. Where fewer are held, the first one missing counts as different.
    ///
    /// # Errors
    /// [`LocalFault::Io`] where the file cannot be read.
    pub fn compare(&mut self, place: Place, at: Offset, bytes: &[u8]) -> Result<Compare, LocalFault> {
        self.settled(place, at.0.saturating_add(bytes.len() as u64))?.compare(at.0, bytes)
    }

    /// Can this range prove anything? A block of one byte repeated is equal in too many files, and an empty one in all.
    ///
    /// # Errors
    /// As [`PartStore::compare`].
    pub fn informative(&mut self, place: Place, range: ByteRange) -> Result<bool, LocalFault> {
        self.settled(place, range.end.0)?.is_informative(range)
    }

    /// The nearest block that can prove something, walking back from `before` in steps of `block`, 1024 steps at most.
    ///
    /// # Errors
    /// As [`PartStore::compare`].
    pub fn nearest_informative(
        &mut self,
        place: Place,
        before: Offset,
        block: Length,
    ) -> Result<Option<ByteRange>, LocalFault> {
        self.settled(place, before.0)?.nearest_informative(before, block)
    }

    /// To be called often while bytes flow: writes out what has waited for 250 ms, and begins a checkpoint after 64 MiB
    /// or 5 s of new data (`true`). The flushing goes on beside.
    ///
    /// # Errors
    /// As [`PartStore::write`]; also what an earlier checkpoint met.
    pub fn tick(&mut self, now: Mono) -> Result<bool, LocalFault> {
        self.flusher.reap()?;
        self.write_out_late(now)?;
        if !self.is_checkpoint_due(now) {
            return Ok(false);
        }
        let checkpoint = self.prepare_checkpoint()?;
        let begun = self.flusher.start(checkpoint);
        self.checkpoint_at = Some(now);
        Ok(begun == Begun::Yes)
    }

    /// Writes out, flushes and records everything held, and waits for that.
    ///
    /// # Errors
    /// As [`PartStore::tick`].
    pub fn checkpoint(&mut self) -> Result<(), LocalFault> {
        // Even where an earlier checkpoint failed, this one says what it can.
        let earlier = self.flusher.wait();
        self.prepare_checkpoint()?.run()?;
        earlier
    }

    /// Ends the session: nothing held is lost. Files that hold nothing are removed.
    ///
    /// # Errors
    /// As [`PartStore::tick`].
    pub fn close(mut self) -> Result<(), LocalFault> {
        if self.part.held() == 0 && self.rival.is_none() {
            return self.discard();
        }
        let settled = self.settle_all();
        for draft in std::iter::once(&mut self.part).chain(&mut self.rival) {
            // So that the journal tells how far the digests have really come.
            draft.hasher.as_mut().map(Hasher::come_home);
        }
        self.checkpoint().and(settled)
    }

    fn write_out(&mut self, place: Place) -> Result<(), LocalFault> {
        let draft = self.draft_mut(place)?;
        // A small file that is here at once needs no journal: should we be killed meanwhile, it is fetched again.
        if draft.gather.end() >= STRIDE {
            self.mark_journal()?;
        }
        let written = self.draft_mut(place)?.settle();
        self.waiting_since = None;
        self.fresh += written?;
        Ok(())
    }

    fn write_out_late(&mut self, now: Mono) -> Result<(), LocalFault> {
        if self.part.gather.is_empty() && self.rival.as_ref().is_none_or(|r| r.gather.is_empty()) {
            return Ok(());
        }
        let since = *self.waiting_since.get_or_insert(now);
        if now.since(since) < GATHER_TIME {
            return Ok(());
        }
        self.mark_journal()?;
        self.settle_all()
    }

    fn is_checkpoint_due(&mut self, now: Mono) -> bool {
        let last = *self.checkpoint_at.get_or_insert(now);
        let late = self.fresh > 0 && now.since(last) >= CHECKPOINT_TIME;
        !self.flusher.is_busy() && (late || self.fresh >= CHECKPOINT_BYTES)
    }

    fn prepare_checkpoint(&mut self) -> Result<Checkpoint, LocalFault> {
        self.mark_journal()?;
        self.settle_all()?;
        let mut checkpoint = Checkpoint::new(&self.journal, self.spec.sync);
        checkpoint.add(Place::Part, &mut self.part);
        if let Some(rival) = &mut self.rival {
            checkpoint.add(Place::Rival, rival);
        }
        self.fresh = 0;
        Ok(checkpoint)
    }

    fn settle_all(&mut self) -> Result<(), LocalFault> {
        let part = self.write_out(Place::Part);
        let rival = if self.rival.is_some() { self.write_out(Place::Rival) } else { Ok(()) };
        part.and(rival)
    }

    fn mark_journal(&mut self) -> Result<(), LocalFault> {
        if self.marked == Marked::No {
            lock(&self.journal).begin()?;
            self.marked = Marked::Yes;
        }
        Ok(())
    }

    /// Runs these digests too. Where they had not run, all begin anew at the start of what is held, beside the transfer.
    pub fn want(&mut self, algorithms: &[Algorithm]) {
        let news: Vec<Algorithm> = algorithms.iter().filter(|a| !self.spec.algorithms.contains(a)).copied().collect();
        if news.is_empty() {
            return;
        }
        self.spec.algorithms.extend(news);
        for draft in std::iter::once(&mut self.part).chain(&mut self.rival) {
            draft.hasher = None;
            draft.hasher = Self::new_run(&self.spec, draft).map(Hasher::new);
        }
    }

    /// A draft with everything before `end` written out.
    fn settled(&mut self, place: Place, end: u64) -> Result<&Draft, LocalFault> {
        if end > self.draft_mut(place)?.gather.written() {
            self.write_out(place)?;
        }
        self.draft_mut(place).map(|d| &*d)
    }

    const fn draft(&self, place: Place) -> Option<&Draft> {
        match place {
            Place::Part => Some(&self.part),
            Place::Rival => self.rival.as_ref(),
        }
    }

    fn draft_mut(&mut self, place: Place) -> Result<&mut Draft, LocalFault> {
        match place {
            Place::Part => Ok(&mut self.part),
            Place::Rival => self.rival.as_mut().ok_or_else(|| no_rival(&self.names.rival)),
        }
    }

    /// Digests from the start of a draft, where any are wanted.
    fn new_run(spec: &Spec, draft: &Draft) -> Option<Run> {
        let wanted = !spec.algorithms.is_empty() || spec.sums == BlockSums::Always;
        wanted.then(|| Run::new(draft.file.clone(), draft.path.clone(), spec.algorithms.clone()))
    }
}

fn no_rival(path: &Path) -> LocalFault {
    let detail = "no second part file has been begun; please report this".into();
    LocalFault::Io { doing: "use", path: path.display().to_string(), detail }
}
