//! Pieces: parts of the file that have digests of their own, and so can be told right from wrong one by one.

use crate::core::digest::{Algorithm, Pieces};
use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::core::range::{ByteRange, Length, RangeSet};
use crate::io::part::PartStore;
use crate::io::part::digests::Digests;

/// Bytes read at once: 256 KiB.
const CHUNK: usize = 256 << 10;

impl PartStore {
    /// Is this piece of the part, which must be held, as its digest says?
    ///
    /// # Errors
    /// [`LocalFault::Io`] where the file cannot be read.
    pub fn piece_is(&mut self, range: ByteRange, algorithm: Algorithm, wanted: &[u8]) -> Result<bool, LocalFault> {
        if !self.segments().covers(range) {
            return Ok(false);
        }
        let draft = self.settled(Place::Part, range.end.0)?;
        let mut digests = Digests::new(&[algorithm]);
        let mut buffer = vec![0; CHUNK];
        let mut at = range.start.0;
        while at < range.end.0 {
            // At most the length of the buffer, so it fits.
            let n = (range.end.0 - at).min(CHUNK as u64) as usize;
            draft.read(&mut buffer[..n], at)?;
            digests.update(&buffer[..n]);
            at += n as u64;
        }
        Ok(digests.finish().iter().any(|(by, found)| *by == algorithm && found == wanted))
    }

    /// The pieces of a whole file of `total` bytes that are wrong, leaving out those within `right`.
    ///
    /// # Errors
    /// As [`PartStore::piece_is`].
    pub fn wrong_pieces(
        &mut self,
        pieces: &Pieces,
        total: Length,
        right: &RangeSet,
    ) -> Result<Vec<(usize, ByteRange)>, LocalFault> {
        let mut wrong = Vec::new();
        for n in 0..pieces.count() {
            let (Some(range), Some(wanted)) = (pieces.range(n, total), pieces.digest(n)) else { continue };
            if !right.covers(range) && !self.piece_is(range, pieces.algorithm(), wanted)? {
                wrong.push((n, range));
            }
        }
        Ok(wrong)
    }
}
