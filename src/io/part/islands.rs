//! Islands: what is held of a file beyond a gap. Several connections write into one file, each at its own place.
//!
//! No two islands touch, and none touches the file's start: whoever closes a gap joins what it parted.

use std::collections::BTreeMap;

use crate::core::range::{ByteRange, Offset, RangeSet};
use crate::io::part::gather::Gather;

/// More are not kept.
pub(super) const MOST: usize = 4096;

/// The islands of one file, by their first byte.
#[derive(Debug, Default)]
pub(super) struct Islands(BTreeMap<u64, Gather>);

impl Islands {
    /// Those of a set of bytes that are all written: what lies beyond its first gap.
    pub(super) fn of(set: &RangeSet) -> Self {
        let beyond = set.iter().filter(|range| range.start > Offset::ZERO);
        Self(beyond.map(|range| (range.start.0, Gather::at(range.end.0))).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Up to where nothing is held from `at` on; `None` where `at` itself is held.
    pub(super) fn free_until(&self, at: u64) -> Option<u64> {
        if self.0.range(..=at).next_back().is_some_and(|(_, island)| at < island.end()) {
            return None;
        }
        Some(self.0.range(at..).next().map_or(u64::MAX, |(start, _)| *start))
    }

    /// One begins at this very place.
    pub(super) fn begins_at(&self, at: u64) -> bool {
        self.0.contains_key(&at)
    }

    /// Begins one, without a byte.
    pub(super) fn begin(&mut self, at: u64) {
        self.0.insert(at, Gather::at(at));
    }

    /// The one that ends here.
    pub(super) fn ending_at(&mut self, end: u64) -> Option<&mut Gather> {
        // One that begins here ends here only while it is empty; else it is the one before that does.
        let before = self.0.range(..=end).rfind(|(start, island)| island.end() == end || **start < end)?;
        let start = *before.0;
        self.0.get_mut(&start).filter(|island| island.end() == end)
    }

    /// Takes one out: the start of the file has reached it.
    pub(super) fn take(&mut self, start: u64) -> Option<Gather> {
        self.0.remove(&start)
    }

    /// Makes one of the two that touch here, if the first one has been written out.
    pub(super) fn join(&mut self, at: u64) {
        let Some(second) = self.0.remove(&at) else { return };
        match self.0.range_mut(..at).next_back() {
            Some((_, first)) if first.written() == at => *first = second,
            _ => _ = self.0.insert(at, second),
        }
    }

    /// Forgets those that could not be written, and so hold nothing.
    pub(super) fn drop_empty(&mut self) {
        self.0.retain(|start, island| island.end() > *start);
    }

    /// Where those end that wait to be written out.
    pub(super) fn waiting(&self) -> Vec<u64> {
        self.0.values().filter(|island| !island.is_empty()).map(Gather::end).collect()
    }

    /// Something waits to be written out.
    pub(super) fn wait(&self) -> bool {
        self.0.values().any(|island| !island.is_empty())
    }

    /// What they hold.
    pub(super) fn held(&self) -> impl Iterator<Item = ByteRange> + '_ {
        self.0.iter().map(|(start, island)| ByteRange::new(Offset(*start), Offset(island.end())))
    }

    /// What of that is in the file.
    pub(super) fn written(&self) -> impl Iterator<Item = ByteRange> + '_ {
        self.0.iter().map(|(start, island)| ByteRange::new(Offset(*start), Offset(island.written())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn range(start: u64, end: u64) -> ByteRange {
        ByteRange::new(Offset(start), Offset(end))
    }

    #[test]
    fn free_places_end_where_something_is_held() {
        let set = [range(0, 5), range(10, 20), range(30, 40)].into_iter().collect();
        let islands = Islands::of(&set);
        assert_eq!(islands.held().collect::<Vec<_>>(), [range(10, 20), range(30, 40)]);
        for (at, until) in [(5, Some(10)), (10, None), (19, None), (20, Some(30)), (29, Some(30)), (40, Some(u64::MAX))]
        {
            assert_eq!(islands.free_until(at), until, "{at}");
        }
    }

    #[test]
    fn islands_that_touch_become_one() {
        let mut islands = Islands::of(&[range(10, 20), range(25, 30)].into_iter().collect());
        islands.join(20);
        assert_eq!(islands.count(), 2);
        islands.ending_at(20).expect("it ends there").take(Bytes::from_static(b"abcde"));
        assert_eq!(islands.waiting(), [25]);
        islands.join(25);
        assert_eq!(islands.count(), 2, "what waits is not lost");
        let file = tempfile::tempfile().expect("a file");
        islands.ending_at(25).expect("not the one that begins there").write_out(&file).expect("written");
        islands.join(25);
        assert_eq!(islands.held().collect::<Vec<_>>(), [range(10, 30)]);
        assert!(islands.ending_at(25).is_none());
    }
}
