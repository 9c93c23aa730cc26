//! Sums of what is held beyond the first gap: a CRC-32C for each span of bytes.
//!
//! Spans grow with what is written, within cells of 16 MiB: so damage costs a cell at most, and a large file has few of them.
//! What the sums of the start of the file come to cover needs no span any more.

use std::collections::BTreeMap;

use crate::core::range::{ByteRange, Length, Offset, RangeSet};
use crate::io::part::record::Reader;

/// No span crosses a multiple of this: 16 MiB.
pub(super) const CELL: u64 = 16 << 20;
/// More are not kept: 256 GiB in whole cells.
const MOST: usize = 16 << 10;
/// So many are told in one record at most.
pub(super) const MOST_TOLD: usize = 4096;

/// Bytes, and their sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) range: ByteRange,
    pub(super) sum: u32,
}

/// Spans of one file that was written at several places, none of which overlap: by their first byte, their end and sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans(BTreeMap<u64, (u64, u32)>);

impl Spans {
    /// Takes one in, in place of any that it meets; what it continues in the same cell becomes one with it.
    pub(super) fn insert(&mut self, span: Span) {
        let (mut start, end, mut sum) = (span.range.start.0, span.range.end.0, span.sum);
        let length = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
        if length == 0 {
            return;
        }
        self.drop_range(start, end);
        let before = self.0.range(..start).next_back().map(|(s, (e, sum))| (*s, *e, *sum));
        if let Some((s, e, before)) = before
            && e == start
            && s / CELL == (end - 1) / CELL
        {
            self.0.remove(&s);
            (start, sum) = (s, crc32c::crc32c_combine(before, sum, length));
        }
        if self.0.len() < MOST {
            self.0.insert(start, (end, sum));
        }
    }

    /// Drops those that meet this range.
    fn drop_range(&mut self, start: u64, end: u64) {
        let met: Vec<u64> = self.0.range(..end).rev().take_while(|(_, (e, _))| *e > start).map(|(s, _)| *s).collect();
        for start in met {
            self.0.remove(&start);
        }
    }

    /// Keeps those of which all bytes are in `held`.
    pub(super) fn retain(&mut self, held: &RangeSet) {
        self.0.retain(|start, (end, _)| held.covers(ByteRange::new(Offset(*start), Offset(*end))));
    }

    /// Those that end at or before this place are not needed any more.
    pub(super) fn forget_before(&mut self, at: u64) {
        while self.0.first_key_value().is_some_and(|(_, (end, _))| *end <= at) {
            self.0.pop_first();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Span> + '_ {
        let span = |(start, (end, sum)): (&u64, &(u64, u32))| Span {
            range: ByteRange::new(Offset(*start), Offset(*end)),
            sum: *sum,
        };
        self.0.iter().map(span)
    }
}

impl Span {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.range.start.0.to_le_bytes());
        out.extend(self.range.end.0.to_le_bytes());
        out.extend(self.sum.to_le_bytes());
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Option<Self> {
        let (start, end, sum) = (r.u64()?, r.u64()?, r.u32()?);
        // Others are not ours.
        let ours = start < end && end <= Length::LARGEST_FILE.0 && start / CELL == (end - 1) / CELL;
        ours.then_some(Self { range: ByteRange::new(Offset(start), Offset(end)), sum })
    }
}

/// `range` in pieces none of which crosses the end of a cell.
pub(super) fn cells(range: ByteRange) -> impl Iterator<Item = ByteRange> {
    let mut at = range.start.0;
    std::iter::from_fn(move || {
        let end = (at / CELL + 1).saturating_mul(CELL).min(range.end.0);
        let cell = (at < end).then(|| ByteRange::new(Offset(at), Offset(end)))?;
        at = end;
        Some(cell)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64, sum: u32) -> Span {
        Span { range: ByteRange::new(Offset(start), Offset(end)), sum }
    }

    fn all(spans: &Spans) -> Vec<Span> {
        spans.iter().collect()
    }

    #[test]
    fn spans_that_touch_within_a_cell_become_one() {
        let bytes: Vec<u8> = (0..100_u8).collect();
        let mut spans = Spans::default();
        for (start, end) in [(10, 30), (30, 31), (31, 100)] {
            spans.insert(span(start as u64, end as u64, crc32c::crc32c(&bytes[start..end])));
        }
        assert_eq!(all(&spans), [span(10, 100, crc32c::crc32c(&bytes[10..]))]);
        spans.insert(span(CELL - 1, CELL, 1));
        spans.insert(span(CELL, CELL + 5, 2));
        assert_eq!(all(&spans).len(), 3);
    }

    #[test]
    fn what_is_written_anew_or_not_held_any_more_has_no_sum() {
        let mut spans = Spans::default();
        [span(0, 10, 1), span(20, 30, 2), span(40, 50, 3)].into_iter().for_each(|s| spans.insert(s));
        spans.insert(span(25, 42, 4));
        assert_eq!(all(&spans), [span(0, 10, 1), span(25, 42, 4)]);
        let held = [ByteRange::new(Offset(1), Offset(60))].into_iter().collect();
        spans.retain(&held);
        assert_eq!(all(&spans), [span(25, 42, 4)]);
        spans.forget_before(41);
        assert_eq!(all(&spans).len(), 1);
        spans.forget_before(42);
        assert_eq!(all(&spans), []);
    }

    #[test]
    fn cells_are_whole_in_the_middle() {
        let parts: Vec<_> = cells(ByteRange::new(Offset(5), Offset(2 * CELL + 1))).collect();
        let ends: Vec<u64> = parts.iter().map(|p| p.end.0).collect();
        assert_eq!((parts[0].start.0, ends), (5, vec![CELL, 2 * CELL, 2 * CELL + 1]));
        assert_eq!(cells(ByteRange::default()).count(), 0);
    }
}
