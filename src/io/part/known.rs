//! What a journal says of one draft, record by record.
//!
//! A checkpoint on its thread may say what was flushed after newer words of what was written. So what is flushed only adds to
//! what is written; words that take something back wait for the checkpoint under way.

use crate::core::file_xfer::Place;
use crate::core::range::{ByteRange, Length, Offset, RangeSet};
use crate::io::part::record::{Claim, Entry, Proof, Segments};
use crate::io::part::seen::Seen;
use crate::io::part::spans::{MOST_TOLD, Span, Spans, cells};

/// What the journal says of one draft.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The last claim.
    pub(super) claim: Option<Claim>,
    /// Bytes flushed and not cut since, from the first one on.
    pub(super) flushed: u64,
    /// What is held where there are gaps: then nothing but this counts.
    pub(super) segments: Option<KnownSegments>,
    /// The last proof, as far as no cut has overtaken it.
    pub(super) proof: Option<Proof>,
    /// The sums of what is held beyond the proof, where there are gaps.
    spans: Spans,
    /// What the file looked like when it was last left in order.
    pub(super) seen: Option<Seen>,
}

/// What is held of a file with gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KnownSegments {
    /// What was written: it counts in the same boot.
    pub(super) written: RangeSet,
    /// What was flushed, all of it written: it counts always.
    pub(super) flushed: RangeSet,
    /// Inode of the file.
    pub(super) inode: u64,
}

impl Known {
    /// The inode of the file that was last spoken of.
    pub(super) fn inode(&self) -> Option<u64> {
        let segments = self.segments.as_ref().map(|s| s.inode);
        segments.or_else(|| self.claim.map(|claim| claim.inode))
    }

    /// It speaks of bytes that are held.
    pub(super) fn holds_something(&self) -> bool {
        self.segments.is_some() || self.claim.is_some_and(|claim| claim.held > 0)
    }

    /// What it says is held, whatever the file may be: all that was written, or what was flushed.
    pub(super) fn claimed(&self, lasting: Lasting) -> RangeSet {
        match (&self.segments, lasting) {
            (Some(segments), Lasting::ThisBoot) => segments.written.clone(),
            (Some(segments), Lasting::AnyBoot) => segments.flushed.clone(),
            (None, Lasting::ThisBoot) => head(self.claim.map_or(0, |claim| claim.held)),
            (None, Lasting::AnyBoot) => head(self.flushed),
        }
    }

    /// What was flushed lies at the start of the file, in one piece.
    pub(super) fn is_flushed_in_one(&self) -> bool {
        self.segments.as_ref().is_none_or(|s| s.flushed.length() == s.flushed.head())
    }

    /// From here on, only segments count.
    pub(super) fn has_gaps(&mut self) {
        let flushed = head(self.flushed);
        self.segments.get_or_insert_with(|| KnownSegments { written: flushed.clone(), flushed, inode: 0 });
    }

    pub(super) fn segments(&mut self, told: Segments) {
        self.has_gaps();
        let Some(known) = &mut self.segments else { return };
        known.inode = told.inode;
        if told.flushed {
            told.held.iter().for_each(|range| known.written.insert(range));
            known.flushed = told.held;
        } else {
            told.held.gaps(Length(u64::MAX)).for_each(|gap| known.flushed.remove(gap));
            known.written = told.held;
        }
        self.flushed = known.flushed.head().0;
        let (held, inode) = (known.written.clone(), known.inode);
        self.trim_proof(&held, inode);
    }

    pub(super) fn claim(&mut self, claim: Claim) {
        self.segments = None;
        self.flushed = if claim.flushed { claim.held } else { self.flushed.min(claim.held) };
        self.trim_proof(&head(claim.held), claim.inode);
        self.claim = Some(claim);
    }

    /// Of what was cut off, nothing is known: it may have come back otherwise. Blocks that stay beyond a gap keep their sums.
    fn trim_proof(&mut self, held: &RangeSet, inode: u64) {
        self.spans.retain(held);
        let Some(proof) = self.proof.take().filter(|p| p.inode == inode) else { return };
        if proof.sums.length > held.head().0 && self.segments.is_some() {
            let blocks = proof.sums.blocks().filter(|b| b.range.start.0 >= held.head().0 && held.covers(b.range));
            // Blocks larger than a cell are of files that spans are not made for.
            blocks.filter(|b| cells(b.range).count() == 1).for_each(|b| self.spans.insert(b));
        }
        self.proof = proof.cut(held.head().0);
    }

    /// Sums of bytes beyond the first gap. Of such as are not said to be held, nothing is known.
    pub(super) fn spans(&mut self, inode: u64, told: Vec<Span>) {
        let Some(held) = self.segments.as_ref().filter(|s| s.inode == inode).map(|s| &s.written) else { return };
        told.into_iter().filter(|span| held.covers(span.range)).for_each(|span| self.spans.insert(span));
    }

    /// The bytes of the file of this inode that have sums, with these, as far as they are in `held`; in order.
    pub(super) fn vouched(&self, inode: u64, held: &RangeSet) -> Vec<Span> {
        let proof = self.proof.clone().filter(|p| p.inode == inode).and_then(|p| p.cut(held.head().0));
        let length = proof.as_ref().map_or(0, |p| p.sums.length);
        let ours = self.segments.as_ref().is_some_and(|s| s.inode == inode);
        let beyond = self.spans.iter().filter(|span| ours && span.range.start.0 >= length && held.covers(span.range));
        proof.iter().flat_map(|p| p.sums.blocks()).chain(beyond).collect()
    }

    pub(super) fn proof(&mut self, mut proof: Proof) {
        let first = proof.first as usize;
        let told = self.proof.take().filter(|p| p.inode == proof.inode && p.sums.block == proof.sums.block);
        let whole: Vec<u32> = told.map(|p| p.sums.whole).unwrap_or_default();
        let Some(kept) = whole.get(..first) else { return };
        proof.sums.whole.splice(..0, kept.iter().copied());
        self.spans.forget_before(proof.sums.length);
        self.proof = Some(Proof { first: 0, ..proof });
    }

    /// The same in the fewest records.
    pub(super) fn summary(&self, place: Place) -> Vec<Entry> {
        let mut entries = Vec::new();
        if let Some(known) = &self.segments {
            let told = |held: &RangeSet, flushed| Segments { held: held.clone(), flushed, inode: known.inode };
            entries.push(Entry::Segments(place, told(&known.flushed, true)));
            entries.push(Entry::Segments(place, told(&known.written, false)));
        } else if let Some(claim) = self.claim {
            entries.push(Entry::Claim(place, Claim { held: self.flushed, flushed: true, ..claim }));
            entries.push(Entry::Claim(place, Claim { flushed: claim.flushed && claim.held == self.flushed, ..claim }));
        }
        entries.extend(self.proof.clone().map(|p| Entry::Proof(place, Proof { first: 0, ..p })));
        if let Some(known) = &self.segments {
            let spans: Vec<Span> = self.spans.iter().collect();
            entries.extend(spans.chunks(MOST_TOLD).map(|some| Entry::Spans(known.inode, some.to_vec())));
        }
        entries.extend(self.seen.map(|seen| Entry::Seen(place, seen)));
        entries
    }
}

/// What a claim must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasting {
    /// The end of the process.
    ThisBoot,
    /// The end of the machine.
    AnyBoot,
}

/// The first `n` bytes.
pub(super) fn head(n: u64) -> RangeSet {
    [ByteRange::new(Offset::ZERO, Offset(n))].into_iter().collect()
}

/// What of `set` lies before `end`.
pub(super) fn before(mut set: RangeSet, end: u64) -> RangeSet {
    set.remove(ByteRange::new(Offset(end), Offset(u64::MAX)));
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::part::sums::Sums;

    fn set(ranges: &[(u64, u64)]) -> RangeSet {
        ranges.iter().map(|(start, end)| ByteRange::new(Offset(*start), Offset(*end))).collect()
    }

    fn segments(ranges: &[(u64, u64)], flushed: bool) -> Segments {
        Segments { held: set(ranges), flushed, inode: 1 }
    }

    fn proof(first: u32, sums: Sums) -> Proof {
        Proof { inode: 1, first, sums, states: vec![] }
    }

    #[test]
    fn a_cut_takes_back_what_was_said_beyond_it() {
        let mut known = Known::default();
        known.claim(Claim { held: 100, flushed: true, inode: 1 });
        known.claim(Claim { held: 120, flushed: false, inode: 1 });
        assert_eq!(known.flushed, 100);
        known.proof(proof(0, Sums { length: 90, ..Sums::default() }));
        known.claim(Claim { held: 90, flushed: false, inode: 1 });
        assert!(known.proof.is_some());
        known.claim(Claim { held: 89, flushed: false, inode: 1 });
        assert_eq!((known.flushed, known.proof), (89, None));
    }

    #[test]
    fn whole_blocks_before_a_cut_stay_known() {
        let mut known = Known::default();
        known.claim(Claim { held: 3 << 24, flushed: true, inode: 1 });
        let sums = Sums { length: 3 << 24, whole: vec![1, 2, 3], ..Sums::default() };
        known.proof(Proof { states: vec![(crate::core::digest::Algorithm::Md5, vec![1])], ..proof(0, sums) });
        known.segments(segments(&[(0, (2 << 24) - 1), (2 << 24, 3 << 24)], false));
        let left = Sums { length: 1 << 24, whole: vec![1], ..Sums::default() };
        assert_eq!(known.proof, Some(proof(0, left)));
    }

    #[test]
    fn a_proof_whose_beginning_is_missing_is_not_believed() {
        let mut known = Known::default();
        known.proof(proof(2, Sums { length: 3 << 24, whole: vec![1], ..Sums::default() }));
        assert_eq!(known.proof, None);
    }

    #[test]
    fn what_was_flushed_only_adds_and_what_is_taken_back_is_gone() {
        let mut known = Known::default();
        known.claim(Claim { held: 10, flushed: true, inode: 1 });
        known.segments(segments(&[(0, 12), (20, 30)], false));
        assert_eq!((known.claimed(Lasting::AnyBoot), known.flushed), (set(&[(0, 10)]), 10));
        // Said late, by a checkpoint that began before the other word.
        known.segments(segments(&[(0, 11), (20, 25)], true));
        assert_eq!(known.claimed(Lasting::ThisBoot), set(&[(0, 12), (20, 30)]));
        assert_eq!(known.claimed(Lasting::AnyBoot), set(&[(0, 11), (20, 25)]));
        assert!(!known.is_flushed_in_one());
        known.segments(segments(&[(0, 5), (22, 30)], false));
        assert_eq!(known.claimed(Lasting::AnyBoot), set(&[(0, 5), (22, 25)]));
        let told = known.clone();
        let mut again = Known::default();
        for entry in told.summary(Place::Part) {
            if let Entry::Segments(_, segments) = entry {
                again.segments(segments);
            }
        }
        assert_eq!(again.segments, told.segments);
        known.claim(Claim { held: 30, flushed: false, inode: 1 });
        assert_eq!((known.flushed, known.segments), (5, None));
    }
}
