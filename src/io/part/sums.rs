//! Block sums: a CRC-32C for each block of what is held, enough to say later whether the bytes are still those.

use crate::core::range::{ByteRange, Length, Offset};
use crate::io::part::spans::Span;

/// The first size of a block: 16 MiB (design 3.9).
const FIRST_BLOCK: u64 = 16 << 20;
/// The most blocks; beyond, blocks double in size (design 3.9).
const MOST_BLOCKS: usize = 4096;

/// The sums of the first `length` bytes of a file. Equal bytes give equal sums, however they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sums {
    /// Bytes a block; a power of two.
    pub(super) block: u64,
    /// The sums of the whole blocks, in order.
    pub(super) whole: Vec<u32>,
    /// The sum of what lies beyond the last whole block.
    pub(super) tail: u32,
    /// Bytes covered.
    pub(super) length: u64,
}

impl Default for Sums {
    fn default() -> Self {
        Self { block: FIRST_BLOCK, whole: Vec::new(), tail: 0, length: 0 }
    }
}

impl Sums {
    /// Sums that this file could have written, the first `before` blocks left out: the arithmetic on others has no end
    /// that means anything.
    pub(super) fn follow(&self, before: u32) -> bool {
        self.block.is_power_of_two()
            && self.block >= FIRST_BLOCK
            && self.length <= Length::LARGEST_FILE.0
            && self.length / self.block == u64::from(before) + self.whole.len() as u64
            && self.length / self.block <= MOST_BLOCKS as u64
    }

    /// The blocks with their sums, the one that is not whole at last.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Span> + '_ {
        let rest = !self.length.is_multiple_of(self.block);
        let sums = self.whole.iter().copied().chain(rest.then_some(self.tail));
        sums.enumerate().map(|(i, sum)| {
            let start = i as u64 * self.block;
            let end = (start + self.block).min(self.length);
            Span { range: ByteRange::new(Offset(start), Offset(end)), sum }
        })
    }

    /// Takes the bytes that follow.
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.block - self.length % self.block;
            // At most the length of a slice, so it fits.
            let n = room.min(bytes.len() as u64) as usize;
            self.tail = crc32c::crc32c_append(self.tail, &bytes[..n]);
            self.length += n as u64;
            bytes = &bytes[n..];
            if self.length.is_multiple_of(self.block) {
                self.close_block();
            }
        }
    }

    /// Goes back to the last whole block that ends at or before `to`, if it has come further.
    pub(super) fn cut(&mut self, to: u64) {
        if self.length <= to {
            return;
        }
        // At most 4096 blocks.
        self.whole.truncate((to / self.block) as usize);
        self.length = self.whole.len() as u64 * self.block;
        self.tail = 0;
    }

    fn close_block(&mut self) {
        self.whole.push(std::mem::take(&mut self.tail));
        if self.whole.len() > MOST_BLOCKS {
            self.double();
        }
    }

    /// Joins blocks two by two; an odd one at the end becomes the tail again.
    fn double(&mut self) {
        let pairs = self.whole.chunks_exact(2);
        if let [last] = *pairs.remainder() {
            self.tail = last;
        }
        let block = usize::try_from(self.block).unwrap_or(usize::MAX);
        self.whole = pairs.map(|p| crc32c::crc32c_combine(p[0], p[1], block)).collect();
        self.block *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn small(block: u64) -> Sums {
        Sums { block, ..Sums::default() }
    }

    #[test]
    fn blocks_double_and_stay_true() {
        let bytes: Vec<u8> =
            (0..2 * (MOST_BLOCKS as u32) + 3).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let mut sums = small(1);
        sums.update(&bytes);
        assert_eq!(sums.block, 4);
        assert!(sums.whole.len() <= MOST_BLOCKS);
        for (i, chunk) in bytes.chunks_exact(4).enumerate() {
            assert_eq!(sums.whole[i], crc32c::crc32c(chunk));
        }
        assert_eq!(sums.tail, crc32c::crc32c(&bytes[sums.whole.len() * 4..]));
    }

    #[test]
    fn a_cut_leaves_the_whole_blocks_before_it() {
        let (mut sums, mut before) = (small(4), small(4));
        sums.update(b"abcdefghij");
        before.update(b"abcd");
        sums.cut(10);
        assert_eq!((sums.length, sums.whole.len()), (10, 2));
        sums.cut(7);
        assert_eq!(sums, before);
        sums.cut(3);
        assert_eq!(sums, small(4));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn how_the_bytes_came_does_not_matter(bytes in proptest::collection::vec(any::<u8>(), 0..6000), cut in any::<prop::sample::Index>()) {
            let at = cut.index(bytes.len() + 1);
            let (mut one, mut two) = (small(1), small(1));
            one.update(&bytes);
            two.update(&bytes[..at]);
            two.update(&bytes[at..]);
            prop_assert_eq!(&one, &two);
            if let Some(byte) = bytes.get(at) {
                let mut other = bytes.clone();
                other[at] = !byte;
                let mut three = small(1);
                three.update(&other);
                prop_assert_ne!(one, three);
            }
        }
    }
}
