//! Sums in passing: what was written a moment ago gets its sum while it is still in the page cache, and the journal is told,
//! so that a later session can say whether the bytes are still those. Little at a time: a fast line pays next to nothing.

use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::core::range::{ByteRange, Length, RangeSet};
use crate::io::part::check::sum_of;
use crate::io::part::draft::{Draft, Gaps, Trust};
use crate::io::part::flush::{lock, try_lock};
use crate::io::part::journal::Journal;
use crate::io::part::record::Entry;
use crate::io::part::seen::Seen;
use crate::io::part::spans::{MOST_TOLD, Span, cells};
use crate::io::part::{BlockSums, Marked, PartStore};

/// Has everything that was written out its sum?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Summed {
    All,
    NotAll,
}

impl PartStore {
    /// Makes sums of what was written out and has none yet, `by` bytes at most of each kind, and tells the journal. What
    /// cannot be read has none: that is no reason to end a download.
    pub(super) fn sum_up(&mut self, by: u64) -> Result<Summed, LocalFault> {
        let unwanted = self.spec.sums == BlockSums::WithDigests && self.spec.algorithms.is_empty();
        if unwanted || self.marked == Marked::No {
            return Ok(Summed::NotAll);
        }
        // A checkpoint that is just flushing the journal is not waited for.
        let Some(mut journal) = try_lock(&self.journal) else { return Ok(Summed::NotAll) };
        let mut summed = sum_start(&mut journal, Place::Part, &mut self.part, by)?;
        if let Some(rival) = &mut self.rival
            && sum_start(&mut journal, Place::Rival, rival, by)? == Summed::NotAll
        {
            summed = Summed::NotAll;
        }
        if self.part.gaps == Gaps::Told {
            // Of bytes that are not said to be held, the journal takes no sums.
            journal.append(&[self.part.told_segments()])?;
            self.beat.told();
            if sum_islands(&mut journal, &self.part, by)? == Summed::NotAll {
                summed = Summed::NotAll;
            }
        }
        Ok(summed)
    }

    /// The files are left in order: the journal is told what they look like, and while they do, nobody has changed them.
    pub(super) fn note_seen(&self) -> Result<(), LocalFault> {
        let places = [(Place::Part, Some(&self.part)), (Place::Rival, self.rival.as_ref())];
        let trusted = places.into_iter().filter_map(|(place, draft)| Some((place, draft?)));
        let seen = trusted.filter(|(_, draft)| draft.trust != Trust::No);
        let words: Vec<Entry> =
            seen.filter_map(|(place, draft)| Some(Entry::Seen(place, Seen::now(&draft.file)?))).collect();
        if words.is_empty() || self.marked == Marked::No {
            return Ok(());
        }
        lock(&self.journal).append(&words)
    }
}

/// The start of a draft's file, up to its first gap.
fn sum_start(journal: &mut Journal, place: Place, draft: &mut Draft, by: u64) -> Result<Summed, LocalFault> {
    let written = draft.gather.written();
    let snapshot = match (&mut draft.hasher, &draft.lagging) {
        (Some(hasher), _) => hasher.latest().filter(|s| s.sums.length <= written),
        (None, Some(lagging)) => lagging.try_catch_up(written, by),
        (None, None) => None,
    };
    if let Some(snapshot) = snapshot.filter(|s| s.sums.length > 0) {
        let proof = journal.proof_of(place, draft.inode, snapshot);
        journal.append(&[proof])?;
    }
    let proven = journal.known(place).proof.as_ref().filter(|p| p.inode == draft.inode).map_or(0, |p| p.sums.length);
    Ok(if proven >= written { Summed::All } else { Summed::NotAll })
}

/// What lies beyond.
fn sum_islands(journal: &mut Journal, draft: &Draft, by: u64) -> Result<Summed, LocalFault> {
    let mut missing: RangeSet = draft.islands.written().collect();
    journal
        .known(Place::Part)
        .vouched(draft.inode, &draft.written())
        .iter()
        .for_each(|span| missing.remove(span.range));
    let (mut left, mut spans, mut buffer) = (by, Vec::new(), Vec::new());
    let ranges: Vec<ByteRange> = missing.iter().flat_map(cells).collect();
    for range in ranges {
        let end = range.end.min(range.start + Length(left));
        let range = ByteRange::new(range.start, end);
        if range.is_empty() || spans.len() == MOST_TOLD {
            break;
        }
        let Ok(sum) = sum_of(&draft.file, range, &mut buffer, &mut |_| true) else { break };
        let Some(sum) = sum else { break };
        spans.push(Span { range, sum });
        left -= range.length().0;
        missing.remove(range);
    }
    if !spans.is_empty() {
        journal.append(&[Entry::Spans(draft.inode, spans)])?;
    }
    Ok(if missing.is_empty() { Summed::All } else { Summed::NotAll })
}
