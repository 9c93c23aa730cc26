//! One file of a download: written at its end and, beyond gaps, in islands.
//!
//! Everything is positional: several connections write at several places in turn.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use crate::core::failure::LocalFault;
use crate::core::range::{ByteRange, Offset, RangeSet};
use crate::io::effects;
use crate::io::part::fault::{on, write_fault};
use crate::io::part::gather::Gather;
use crate::io::part::hasher::Hasher;
use crate::io::part::islands::Islands;
use crate::io::part::lagging::Lagging;
use crate::io::part::record::Proof;
use crate::io::part::room::{self, Ahead, Extent};
use crate::io::part::run::Run;
use crate::io::part::seen::Seen;
use crate::io::part::take::Taken;
use crate::io::part::{BlockSums, Spec};

/// Has the journal been told that the file has gaps?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gaps {
    /// It has none, and its length counts.
    No,
    /// It has: only segments that are told count, even where all gaps have been closed since.
    Told,
}

/// Are the bytes held still those that were written?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Nothing speaks against it.
    Yes,
    /// They were when a session of this process left the file, which then looked like this.
    Left(Option<Seen>),
    /// The file does not look as it was left, or it was not left in order: the bytes are to be compared with their sums.
    No,
}

/// A draft's file, open and locked.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) file: Arc<File>,
    pub(super) path: PathBuf,
    pub(super) inode: u64,
    /// The start of the file, up to the first gap.
    pub(super) gather: Gather,
    /// What is held beyond.
    pub(super) islands: Islands,
    pub(super) gaps: Gaps,
    /// The digests under way, where any are wanted.
    pub(super) hasher: Option<Hasher>,
    /// Block sums that follow at times, where nothing else makes them.
    pub(super) lagging: Option<Lagging>,
    pub(super) trust: Trust,
    /// Blocks may have been taken up to here, beyond the end.
    ahead: u64,
    /// Its whole length, where told.
    total: Option<u64>,
}

impl Draft {
    /// A file of which these bytes count; what lies beyond them is cut off.
    pub(super) fn new(taken: Taken, path: PathBuf, held: &RangeSet, gaps: Gaps) -> Result<Self, LocalFault> {
        let end = end_of(held);
        if taken.length != end {
            effects::set_length(&taken.file, end).map_err(on("cut", &path))?;
        }
        Ok(Self {
            file: Arc::new(taken.file),
            path,
            inode: taken.inode,
            gather: Gather::at(held.head().0),
            islands: Islands::of(held),
            gaps,
            hasher: None,
            lagging: None,
            trust: Trust::Yes,
            // Nobody knows any more what an earlier session took.
            ahead: if taken.length > 0 { u64::MAX } else { 0 },
            total: None,
        })
    }

    /// Begins whatever digests and sums are wanted: where `proof` left off, or at the file's start.
    pub(super) fn begin_digests(&mut self, spec: &Spec, proof: Option<Proof>) {
        let proof = proof.filter(|p| p.inode == self.inode).and_then(|p| p.cut(self.gather.written()));
        let run = Run::new(Arc::clone(&self.file), self.path.clone(), spec.algorithms.clone());
        (self.hasher, self.lagging) = (None, None);
        if !spec.algorithms.is_empty() || spec.sums == BlockSums::Always {
            let run = match proof {
                Some(proof) => run.resume(proof.into()),
                None => run,
            };
            self.hasher = Some(Hasher::new(run, spec.slow));
        } else if spec.sums == BlockSums::AtTimes {
            let run = match proof {
                Some(proof) => run.trust(proof.into()),
                None => run,
            };
            self.lagging = Some(Lagging::new(run));
        }
    }

    /// Bytes held from the start, without a gap.
    pub(super) const fn held(&self) -> u64 {
        self.gather.end()
    }

    /// All that is held, what waits to be written out included.
    pub(super) fn segments(&self) -> RangeSet {
        let start = ByteRange::new(Offset::ZERO, Offset(self.gather.end()));
        std::iter::once(start).chain(self.islands.held()).collect()
    }

    /// All that is in the file.
    pub(super) fn written(&self) -> RangeSet {
        let start = ByteRange::new(Offset::ZERO, Offset(self.gather.written()));
        std::iter::once(start).chain(self.islands.written()).collect()
    }

    /// Nothing is held in `start..end`, which lies beyond the start of the file.
    pub(super) fn is_free(&self, start: u64, end: u64) -> bool {
        start >= self.held() && self.islands.free_until(start).is_some_and(|until| end <= until)
    }

    /// Where bytes that follow what is held before `at` are gathered.
    pub(super) fn gather_ending_at(&mut self, at: u64) -> Option<&mut Gather> {
        if self.gather.end() == at { Some(&mut self.gather) } else { self.islands.ending_at(at) }
    }

    /// Something waits to be written out.
    pub(super) fn waits(&self) -> bool {
        !self.gather.is_empty() || self.islands.wait()
    }

    /// Looks for room for `total` bytes, and takes it.
    pub(super) fn reserve(&mut self, total: u64) -> Result<(), LocalFault> {
        self.total = Some(total);
        let extent = Extent { held: self.gather.written(), end: end_of(&self.written()) };
        if room::reserve(&self.file, &self.path, extent, total)? == Ahead::Taken {
            self.ahead = self.ahead.max(total);
        }
        Ok(())
    }

    /// Writes out what waits at the start of the file; gives how many bytes that was.
    pub(super) fn settle(&mut self) -> Result<u64, LocalFault> {
        if self.gather.is_empty() {
            return Ok(0);
        }
        let (start, end) = (self.gather.written(), self.gather.end());
        match self.gather.write_out(&self.file) {
            Ok(pieces) => {
                if let Some(hasher) = &mut self.hasher {
                    hasher.feed(start, pieces);
                }
                Ok(end - start)
            }
            Err(e) => Err(self.write_failed(end, &e)),
        }
    }

    /// The same for the island that ends here.
    pub(super) fn settle_island(&mut self, end: u64) -> Result<u64, LocalFault> {
        let Some(island) = self.islands.ending_at(end) else { return Ok(0) };
        let start = island.written();
        let Err(error) = island.write_out(&self.file) else { return Ok(end - start) };
        let missing = end - island.written();
        self.islands.drop_empty();
        Err(write_fault(&self.path, missing, &error))
    }

    /// What was written of it is held, but the digests have not seen it: they will read it from the file.
    fn write_failed(&mut self, end: u64, error: &std::io::Error) -> LocalFault {
        if let Some(hasher) = &mut self.hasher {
            hasher.come_home();
        }
        let goal = self.total.unwrap_or(end).max(end);
        write_fault(&self.path, goal - self.gather.written(), error)
    }

    /// Joins what touches at `at`, where an island begins, if what lies before it has been written out.
    pub(super) fn join(&mut self, at: u64) {
        if self.gather.end() != at {
            return self.islands.join(at);
        }
        if self.gather.written() == at
            && let Some(island) = self.islands.take(at)
        {
            if let Some(hasher) = &mut self.hasher {
                hasher.jump(at, island.written());
            }
            self.gather = island;
        }
    }

    /// Keeps only these of the bytes held, all written. Where less of the start is left, the digests must be begun anew by the
    /// caller.
    pub(super) fn keep(&mut self, left: &RangeSet) -> Result<(), LocalFault> {
        let end = end_of(left);
        if end < end_of(&self.written()) {
            effects::set_length(&self.file, end).map_err(on("cut", &self.path))?;
            self.ahead = 0;
        }
        self.gather = Gather::at(left.head().0);
        self.islands = Islands::of(left);
        Ok(())
    }

    /// Gives back what was taken beyond the end.
    pub(super) fn trim(&mut self) -> Result<(), LocalFault> {
        let end = end_of(&self.written());
        if self.ahead > end {
            effects::set_length(&self.file, end).map_err(on("cut", &self.path))?;
            self.ahead = 0;
        }
        Ok(())
    }
}

/// One beyond the last byte.
pub(super) fn end_of(set: &RangeSet) -> u64 {
    set.iter().next_back().map_or(0, |range| range.end.0)
}
