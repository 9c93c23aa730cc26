//! A set of bytes, as few ranges as possible: which parts of a file are held, asked for, or still missing.

use crate::core::range::{ByteRange, Length, Offset};

/// A set of byte positions, kept as sorted ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    runs: Vec<ByteRange>,
}

impl RangeSet {
    /// No bytes.
    pub const fn new() -> Self {
        Self { runs: Vec::new() }
    }

    /// Adds every byte of the range; what it overlaps or touches becomes one range with it.
    pub fn insert(&mut self, range: ByteRange) {
        if range.is_empty() {
            return;
        }
        // What ends before the range begins is less than what begins before it ends, so `from <= to`.
        let from = self.runs.partition_point(|run| run.end < range.start);
        let to = self.runs.partition_point(|run| run.start <= range.end);
        let joined = self.runs[from..to].iter().fold(range, |all, run| hull(all, *run));
        self.runs.splice(from..to, [joined]);
    }

    /// Takes every byte of the range out.
    pub fn remove(&mut self, range: ByteRange) {
        if range.is_empty() {
            return;
        }
        let from = self.runs.partition_point(|run| run.end <= range.start);
        let to = self.runs.partition_point(|run| run.start < range.end);
        let hit = &self.runs[from..to];
        let left = hit.first().map(|run| ByteRange::new(run.start, range.start));
        let right = hit.last().map(|run| ByteRange::new(range.end, run.end));
        let kept: Vec<_> = left.into_iter().chain(right).filter(|run| !run.is_empty()).collect();
        self.runs.splice(from..to, kept);
    }

    /// Holds this byte?
    pub fn contains(&self, at: Offset) -> bool {
        self.run_from(at).is_some_and(|run| run.start <= at)
    }

    /// Holds every byte of the range? (An empty range: yes.)
    pub fn covers(&self, range: ByteRange) -> bool {
        range.is_empty()
            || self.run_from(range.start).is_some_and(|run| run.start <= range.start && range.end <= run.end)
    }

    /// The first run of missing bytes in a file of this length; `None` when all are held.
    pub fn first_gap(&self, total: Length) -> Option<ByteRange> {
        self.gaps(total).next()
    }

    /// Every run of missing bytes in a file of this length, in order.
    pub fn gaps(&self, total: Length) -> impl Iterator<Item = ByteRange> + '_ {
        let end = total.as_end();
        let starts = std::iter::once(Offset::ZERO).chain(self.runs.iter().map(|run| run.end));
        let ends = self.runs.iter().map(|run| run.start).chain([end]);
        starts.zip(ends).map(move |(from, to)| ByteRange::new(from, to.min(end))).filter(|gap| !gap.is_empty())
    }

    /// How many bytes are held from the start of the file without a gap.
    pub fn head(&self) -> Length {
        match self.runs.first() {
            Some(run) if run.start == Offset::ZERO => run.length(),
            _ => Length::ZERO,
        }
    }

    /// How many bytes are held.
    pub fn length(&self) -> Length {
        self.runs.iter().fold(Length::ZERO, |sum, run| sum + run.length())
    }

    /// Holds no byte.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The ranges, in order; no two touch.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = ByteRange> + DoubleEndedIterator + '_ {
        self.runs.iter().copied()
    }

    /// The first range that ends beyond this byte.
    fn run_from(&self, at: Offset) -> Option<&ByteRange> {
        self.runs.get(self.runs.partition_point(|run| run.end <= at))
    }
}

/// The least range that holds both.
fn hull(a: ByteRange, b: ByteRange) -> ByteRange {
    ByteRange::new(a.start.min(b.start), a.end.max(b.end))
}

impl FromIterator<ByteRange> for RangeSet {
    fn from_iter<I: IntoIterator<Item = ByteRange>>(ranges: I) -> Self {
        let mut set = Self::new();
        ranges.into_iter().for_each(|range| set.insert(range));
        set
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: u64 = 48;

    fn range(start: u64, end: u64) -> ByteRange {
        ByteRange::new(Offset(start), Offset(end))
    }

    #[test]
    fn neighbours_become_one() {
        let mut set: RangeSet = [range(10, 20), range(0, 5), range(30, 40)].into_iter().collect();
        assert_eq!(set.iter().len(), 3);
        set.insert(range(5, 10));
        assert_eq!(set.iter().collect::<Vec<_>>(), [range(0, 20), range(30, 40)]);
        assert_eq!(set.head(), Length(20));
        assert_eq!(set.first_gap(Length(100)), Some(range(20, 30)));
        assert_eq!(set.gaps(Length(100)).collect::<Vec<_>>(), [range(20, 30), range(40, 100)]);
        assert_eq!(set.first_gap(Length(15)), None);
    }

    #[test]
    fn a_hole_in_the_middle_splits() {
        let mut set: RangeSet = [range(0, 10)].into_iter().collect();
        set.remove(range(3, 7));
        assert_eq!(set.iter().collect::<Vec<_>>(), [range(0, 3), range(7, 10)]);
        set.remove(range(0, 3));
        assert_eq!(set.head(), Length::ZERO);
    }

    #[test]
    fn empty_and_reversed_ranges_change_nothing() {
        let mut set: RangeSet = [range(5, 5), range(9, 2)].into_iter().collect();
        assert!(set.is_empty());
        assert_eq!(set.first_gap(Length::ZERO), None);
        set.insert(range(0, u64::MAX));
        set.remove(range(9, 2));
        assert_eq!(set.length(), Length(u64::MAX));
    }

    /// What the set must be, bit by bit.
    fn bits(set: &RangeSet) -> Vec<bool> {
        (0..SIZE).map(|at| set.contains(Offset(at))).collect()
    }

    fn gaps_of(model: &[bool]) -> RangeSet {
        (0..SIZE).filter(|at| !model[*at as usize]).map(|at| range(at, at + 1)).collect()
    }

    proptest! {
        #[test]
        fn agrees_with_a_bitmap(steps in prop::collection::vec((any::<bool>(), 0..SIZE, 0..=SIZE), 0..40)) {
            let (mut set, mut model) = (RangeSet::new(), vec![false; SIZE as usize]);
            for (add, start, end) in steps {
                let hit = range(start, end);
                if add { set.insert(hit) } else { set.remove(hit) }
                (start..end).for_each(|at| model[at as usize] = add);

                prop_assert_eq!(&bits(&set), &model);
                prop_assert_eq!(set.length().0, model.iter().filter(|held| **held).count() as u64);
                prop_assert_eq!(set.head().0, model.iter().take_while(|held| **held).count() as u64);
                prop_assert_eq!(set.covers(hit), (start..end).all(|at| model[at as usize]));
                let runs: Vec<_> = set.iter().collect();
                prop_assert!(runs.iter().all(|run| !run.is_empty()));
                prop_assert!(runs.windows(2).all(|two| two[0].end < two[1].start));
                prop_assert_eq!(set.gaps(Length(SIZE)).collect::<RangeSet>(), gaps_of(&model));
            }
        }

        #[test]
        fn gaps_of_a_shorter_file_stay_inside_it(
            ranges in prop::collection::vec((0..SIZE, 0..=SIZE), 0..8),
            total in 0..SIZE,
        ) {
            let set: RangeSet = ranges.into_iter().map(|(start, end)| range(start, end)).collect();
            let gaps: RangeSet = set.gaps(Length(total)).collect();
            for at in 0..SIZE {
                prop_assert_eq!(gaps.contains(Offset(at)), at < total && !set.contains(Offset(at)));
            }
        }
    }
}
