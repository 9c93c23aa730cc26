//! Gaps in the part: told to the journal before there is one in the file, and taken back when all are closed.
//!
//! What is dropped is dropped in the journal first: should we be killed in between, bytes that are there are fetched
//! again, which is harmless; the other way round is not.

use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::core::range::{ByteRange, Offset, RangeSet};
use crate::io::part::draft::{Draft, Gaps};
use crate::io::part::flush::lock;
use crate::io::part::islands::MOST;
use crate::io::part::record::{Claim, Entry, Segments};
use crate::io::part::{Marked, PartStore};

impl Draft {
    /// The record of what is in the file.
    pub(super) fn told_segments(&self) -> Entry {
        Entry::Segments(Place::Part, self.told(self.written()))
    }

    const fn told(&self, held: RangeSet) -> Segments {
        Segments { held, flushed: false, inode: self.inode }
    }
}

impl PartStore {
    /// These bytes of the part are known to be wrong, and held no more. What lies behind them stays held. Digests begin
    /// anew where what they have seen is no longer the start of the file.
    ///
    /// # Errors
    /// [`LocalFault::Io`] and [`LocalFault::DiskFull`]; where the journal could not be written, the bytes are still held.
    pub fn drop_range(&mut self, range: ByteRange) -> Result<(), LocalFault> {
        let settled = self.write_out(Place::Part);
        // What could not be written out goes as well.
        let mut left = self.part.written();
        left.remove(range);
        self.retain(left)?;
        settled
    }

    /// Keeps only these of the bytes held in the part, all of them written out.
    pub(super) fn retain(&mut self, mut left: RangeSet) -> Result<(), LocalFault> {
        while left.iter().len() > MOST {
            left.remove(shortest(&left));
        }
        if left == self.part.segments() {
            return Ok(());
        }
        let head = left.head();
        let words = match self.part.gaps {
            Gaps::No if left.length() == head => {
                Some(Entry::Claim(Place::Part, Claim { held: head.0, flushed: false, inode: self.part.inode }))
            }
            Gaps::No => None,
            Gaps::Told => Some(Entry::Segments(Place::Part, self.part.told(left.clone()))),
        };
        match words {
            Some(words) => self.record(&[words])?,
            None => self.declare(left.clone())?,
        }
        self.beat.told();
        let shorter = head.0 < self.part.held();
        if shorter {
            // It reads the file.
            self.part.hasher = None;
        }
        self.part.keep(&left)?;
        if shorter {
            self.begin_digests(Place::Part)?;
        }
        Ok(())
    }

    /// Whatever digests are wanted begin anew: where the journal still vouches for a state, or at the start.
    pub(super) fn begin_digests(&mut self, place: Place) -> Result<(), LocalFault> {
        let proof = lock(&self.journal).known(place).proof.clone();
        let spec = self.spec.clone();
        self.draft_mut(place)?.begin_digests(&spec, proof);
        Ok(())
    }

    /// There is no room for another island: the shortest one goes.
    pub(super) fn forget_shortest(&mut self) -> Result<(), LocalFault> {
        self.write_out(Place::Part)?;
        let mut left = self.part.written();
        left.remove(shortest(&left));
        self.retain(left)
    }

    /// The part is about to have gaps, and the journal does not know yet.
    pub(super) fn declare_gaps(&mut self) -> Result<(), LocalFault> {
        match self.part.gaps {
            Gaps::Told => Ok(()),
            Gaps::No => self.declare(self.part.written()),
        }
    }

    fn declare(&mut self, held: RangeSet) -> Result<(), LocalFault> {
        // What a checkpoint is about to say must not come after it.
        self.flusher.wait()?;
        lock(&self.journal).declare_gaps(self.part.told(held))?;
        (self.marked, self.part.gaps) = (Marked::Yes, Gaps::Told);
        self.beat.told();
        Ok(())
    }

    /// Where all gaps are closed, and what was flushed is one piece, the file's length counts again. No checkpoint may be
    /// under way.
    pub(super) fn end_gaps(&mut self) -> Result<(), LocalFault> {
        if self.part.gaps == Gaps::No || !self.part.islands.is_empty() {
            return Ok(());
        }
        let mut journal = lock(&self.journal);
        if !journal.known(Place::Part).is_flushed_in_one() {
            return Ok(());
        }
        let claim = Claim { held: self.part.gather.written(), flushed: false, inode: self.part.inode };
        journal.append(&[Entry::Claim(Place::Part, claim)])?;
        self.part.gaps = Gaps::No;
        Ok(())
    }
}

/// The shortest range beyond the start of the file.
fn shortest(set: &RangeSet) -> ByteRange {
    let beyond = set.iter().filter(|range| range.start > Offset::ZERO);
    beyond.min_by_key(|range| range.length()).unwrap_or_default()
}
