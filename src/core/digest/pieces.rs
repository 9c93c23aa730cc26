//! Digests of a file's pieces, as a metalink gives them: they tell which part of a file is wrong, where the digest of the
//! whole only tells that something is.
//!
//! Every piece but the last has the same length. The digests are kept with the transfer in the client-state file, which
//! is written often, so that there is an end to how many are taken.

use crate::core::digest::Algorithm;
use crate::core::range::{ByteRange, Length, Offset};

/// The digests of all pieces of one file, by one algorithm; at least one, at most [`Pieces::MAX_BYTES`] of them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Pieces {
    algorithm: Algorithm,
    length: Length,
    /// One behind the other.
    bytes: Vec<u8>,
}

/// Why digests of pieces are of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPieces {
    /// There is none.
    #[error("there is no digest of a piece")]
    None,
    /// Pieces of no length.
    #[error("the pieces have no length")]
    NoLength,
    /// The bytes do not divide into digests.
    #[error("a digest of a piece is cut short")]
    Ragged,
    /// More than are kept.
    #[error("there are too many digests of pieces (at most {} bytes of them are kept)", Pieces::MAX_BYTES)]
    TooMany,
    /// Their numbers are not 0, 1, 2 and so on.
    #[error("the pieces are not numbered in order")]
    Disorder,
    /// As many as the file's size does not have.
    #[error("there are digests of {pieces} pieces, and the file's size has {wanted}")]
    OtherCount {
        /// How many there are.
        pieces: u64,
        /// How many the size asks for.
        wanted: u64,
    },
}

impl Pieces {
    /// The most bytes of digests: 24,576 pieces by SHA-1, 15,360 by SHA-256. In hex they fill one text of the state file
    /// almost to its limit ([`crate::core::state::MAX_TEXT`]).
    pub const MAX_BYTES: usize = 480 << 10;

    /// From the digests' bytes, one behind the other.
    pub fn new(algorithm: Algorithm, length: Length, bytes: Vec<u8>) -> Result<Self, BadPieces> {
        match bytes.len() {
            _ if length == Length::ZERO => Err(BadPieces::NoLength),
            0 => Err(BadPieces::None),
            n if n > Self::MAX_BYTES => Err(BadPieces::TooMany),
            n if n % algorithm.output_len() != 0 => Err(BadPieces::Ragged),
            _ => Ok(Self { algorithm, length, bytes }),
        }
    }

    /// By which algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The length of every piece but the last, which may be shorter; never zero.
    pub const fn length(&self) -> Length {
        self.length
    }

    /// How many pieces there are; never none.
    pub const fn count(&self) -> usize {
        self.bytes.len() / self.algorithm.output_len()
    }

    /// The digest of piece `n`, from 0.
    pub fn digest(&self, n: usize) -> Option<&[u8]> {
        self.bytes.chunks_exact(self.algorithm.output_len()).nth(n)
    }

    /// The number of the piece that holds this position; `None` beyond the last piece.
    pub fn of(&self, at: Offset) -> Option<usize> {
        usize::try_from(at.0 / self.length.0).ok().filter(|n| *n < self.count())
    }

    /// The bytes that piece `n` covers in a file of `total` bytes; `None` where such a file has no such piece.
    pub fn range(&self, n: usize, total: Length) -> Option<ByteRange> {
        let start = u64::try_from(n).ok()?.checked_mul(self.length.0)?;
        let within = n < self.count() && start < total.0;
        within.then(|| ByteRange::new(Offset(start), Offset(start.saturating_add(self.length.0).min(total.0))))
    }

    /// Are these the pieces of a file of `total` bytes?
    pub fn check_count(&self, total: Length) -> Result<(), BadPieces> {
        let (pieces, wanted) = (self.count() as u64, total.0.div_ceil(self.length.0));
        if pieces == wanted { Ok(()) } else { Err(BadPieces::OtherCount { pieces, wanted }) }
    }

    /// All digests in lower-case hex, one behind the other.
    pub fn hex(&self) -> String {
        hex::encode(&self.bytes)
    }
}

/// Half a megabyte of digests tells nobody anything.
impl std::fmt::Debug for Pieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pieces({} of {} bytes by {})", self.count(), self.length, self.algorithm)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(count: usize, length: u64) -> Pieces {
        let bytes = (0..count).flat_map(|n| [n as u8; 20]).collect();
        Pieces::new(Algorithm::Sha1, Length(length), bytes).expect("good pieces")
    }

    #[test]
    fn the_last_piece_is_shorter() {
        let three = pieces(3, 10);
        let range = |n| three.range(n, Length(25)).map(|r| (r.start.0, r.end.0));
        assert_eq!([0, 1, 2, 3].map(range), [Some((0, 10)), Some((10, 20)), Some((20, 25)), None]);
        assert_eq!(three.range(2, Length(20)), None, "such a file has two pieces");
        assert_eq!([0, 9, 10, 29, 30].map(|at| three.of(Offset(at))), [Some(0), Some(0), Some(1), Some(2), None]);
        assert_eq!(three.digest(2), Some(&[2; 20][..]));
        assert_eq!(three.digest(3), None);
    }

    #[test]
    fn the_count_must_be_that_of_the_size() {
        let three = pieces(3, 10);
        assert_eq!([21, 25, 30].map(|n| three.check_count(Length(n))), [Ok(()); 3]);
        for (size, wanted) in [(0, 0), (20, 2), (31, 4), (u64::MAX, 1_844_674_407_370_955_162)] {
            assert_eq!(three.check_count(Length(size)), Err(BadPieces::OtherCount { pieces: 3, wanted }));
        }
    }

    #[test]
    fn what_is_no_list_of_pieces() {
        let new = |length, n| Pieces::new(Algorithm::Sha1, Length(length), vec![0; n]).map(|p| p.count());
        assert_eq!(new(0, 20), Err(BadPieces::NoLength));
        assert_eq!(new(1, 0), Err(BadPieces::None));
        assert_eq!(new(1, 21), Err(BadPieces::Ragged));
        assert_eq!(new(1, Pieces::MAX_BYTES), Ok(24_576));
        assert_eq!(new(1, Pieces::MAX_BYTES + 20), Err(BadPieces::TooMany));
        const { assert!(Pieces::MAX_BYTES * 2 < crate::core::state::MAX_TEXT, "they fit into the state file") }
    }

    proptest! {
        #[test]
        fn pieces_cover_a_file_without_gap_or_overlap(count in 1_usize..50, length in 1_u64..1000, less in 0_u64..1000) {
            let pieces = pieces(count, length);
            let total = Length(count as u64 * length - less % length);
            prop_assert_eq!(pieces.check_count(total), Ok(()));
            let mut at = Offset::ZERO;
            for n in 0..count {
                let range = pieces.range(n, total).expect("a piece");
                prop_assert_eq!(range.start, at);
                prop_assert_eq!(pieces.of(range.start), Some(n));
                prop_assert_eq!(pieces.of(Offset(range.end.0 - 1)), Some(n));
                at = range.end;
            }
            prop_assert_eq!(at, total.as_end());
        }
    }
}
