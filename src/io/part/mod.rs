//! The part file: the bytes of one download, from the first one to the final name (design 3.8, 3.9; `docs/part-file.md`).
//!
//! A [`PartStore`] owns three files beside the target: the part file, a second one for a newer version of the file (the
//! rival), and their journal. It is used by the thread that runs the session, and every call may wait for the disk.
//! It decides nothing about versions or servers; it promises that what it calls held is what was written, and that after
//! a crash it calls no more held than is there. The part may have gaps: several connections write into it, each at its
//! own place.
//!
//! | file | about |
//! |---|---|
//! | `open`, `take`, `names`, `boot` | which files are ours, and how much of them counts |
//! | `intake`, `gather`, `islands`, `gaps` | bytes on their way in, at the end of the file and beyond |
//! | `draft`, `compare`, `room` | one file |
//! | `digests`, `sums`, `run`, `hasher`, `lagging` | digests while bytes flow |
//! | `spans`, `summing`, `seen`, `check` | are the bytes still those that were written? |
//! | `record`, `known`, `journal`, `beat`, `flush` | what is remembered, and when |
//! | `versions`, `ending`, `publish`, `witness` | cutting, replacing, finishing |
//! | `inspect`, `whole` | questions about files at rest |

mod beat;
mod boot;
mod check;
mod compare;
mod digests;
mod draft;
mod ending;
mod fault;
mod flush;
mod gaps;
mod gather;
mod hasher;
mod inspect;
mod intake;
mod islands;
mod journal;
mod known;
mod lagging;
mod names;
mod open;
mod pieces;
mod publish;
mod record;
mod room;
mod run;
mod seen;
mod spans;
mod summing;
mod sums;
mod take;
#[cfg(test)]
mod tests;
mod versions;
mod whole;
mod witness;

pub use boot::Boot;
pub use check::{Checked, Damage};
pub use compare::Compare;
pub(in crate::io) use digests::Digests;
pub use inspect::{Inspection, JournalState, PartState, inspect, outline, repair};
pub use open::Leftovers;
pub use publish::{Clobber, Publish};
pub use whole::{adopt_equal, file_names, has_digests, holder};
pub use witness::{is_published, is_witnessed, tidy, tidy_all};

use std::path::Path;

use crate::core::digest::Algorithm;
use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::core::range::{ByteRange, Length, Offset, RangeSet};

use beat::Beat;
use draft::Draft;
use flush::{Flusher, SharedJournal};
use names::Names;

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
    /// What is slow.
    pub slow: Slow,
}

/// Where slow work on files is done: hashing, flushing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slow {
    /// On threads of its own, while bytes go on flowing.
    #[default]
    Beside,
    /// At once, while all else waits: a simulation does the same thing twice only so.
    InTurn,
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
    WithDigests,
    /// Beside digests; where none run, at times: by reading back what came in the last 5 s or more, and when a session
    /// ends with the file still incomplete.
    #[default]
    AtTimes,
    /// Always, with every byte.
    Always,
}

impl Spec {
    /// With these digests and this eagerness, in this boot.
    pub fn new(algorithms: Vec<Algorithm>, sync: SyncMode) -> Self {
        Self { algorithms, sync, sums: BlockSums::default(), boot: Boot::current(), slow: Slow::Beside }
    }
}

/// A store that has been opened, and what it found.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: PartStore,
    /// Bytes held in the part file.
    pub part_held: Length,
    /// Everything held in the part file, what lies beyond gaps included.
    pub part_segments: RangeSet,
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
    /// What has been done lately, and what is due.
    beat: Beat,
}

/// Is the journal marked with this boot?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marked {
    Yes,
    No,
}

impl PartStore {
    /// Bytes held from the first one on without a gap, those included that still wait to be written out. A rival that does not exist holds none.
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

    /// Everything held in the part, with what lies beyond gaps and what still waits to be written out.
    pub fn segments(&self) -> RangeSet {
        self.part.segments()
    }

    /// Compares `bytes` with those held from `at` on, wherever that is. Where fewer are held before the next gap, the first
    /// one missing counts as different.
    ///
    /// # Errors
    /// [`LocalFault::Io`] where the file cannot be read.
    pub fn compare(&mut self, place: Place, at: Offset, bytes: &[u8]) -> Result<Compare, LocalFault> {
        self.settled(place, at.0.saturating_add(bytes.len() as u64))?.compare(at.0, bytes)
    }

    /// Can this range prove anything? What is held of it before the next gap counts. A block of one byte repeated is equal in too many files, and an empty one in all.
    ///
    /// # Errors
    /// As [`PartStore::compare`].
    pub fn informative(&mut self, place: Place, range: ByteRange) -> Result<bool, LocalFault> {
        self.settled(place, range.end.0)?.is_informative(range)
    }

    /// The nearest block that can prove something, walking back from `before` in steps of `block`, 1024 steps at most. It
    /// lies in the last range held that begins before `before`.
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

    /// Runs these digests too. Where they had not run, all begin anew at the start of what is held, beside the transfer.
    pub fn want(&mut self, algorithms: &[Algorithm]) {
        let news: Vec<Algorithm> = algorithms.iter().filter(|a| !self.spec.algorithms.contains(a)).copied().collect();
        if news.is_empty() {
            return;
        }
        self.spec.algorithms.extend(news);
        let spec = self.spec.clone();
        for draft in std::iter::once(&mut self.part).chain(&mut self.rival) {
            draft.hasher = None;
            draft.begin_digests(&spec, None);
        }
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

    /// A draft with everything before `end` written out.
    fn settled(&mut self, place: Place, end: u64) -> Result<&Draft, LocalFault> {
        let draft = self.draft_mut(place)?;
        if end > draft.gather.written() && draft.waits() {
            self.write_out(place)?;
        }
        self.draft_mut(place).map(|d| &*d)
    }
}

fn no_rival(path: &Path) -> LocalFault {
    let detail = "no second part file has been begun; please report this".into();
    LocalFault::Io { doing: "use", path: path.display().to_string(), detail }
}
