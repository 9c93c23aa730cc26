//! Gathering: bytes are kept as they came, without a copy, until they reach the next 1 MiB boundary of the file; then
//! they are written at once, by one positioned write.

use std::fs::File;
use std::io::{self, IoSlice};

use bytes::Bytes;

use crate::io::effects;

/// Writes end at multiples of this: large aligned writes cost the kernel half of small ones. 1 MiB.
pub(super) const STRIDE: u64 = 1 << 20;
/// The most pieces of one write. Each piece may pin a whole receive buffer, and the system takes 1024 at most.
const MOST_PIECES: usize = 256;

/// Bytes on their way to a file, and where they go.
#[derive(Debug, Default)]
pub(super) struct Gather {
    pieces: Vec<Bytes>,
    /// The file holds so much; the pieces follow there.
    start: u64,
    /// Bytes in the pieces.
    length: u64,
}

impl Gather {
    /// For a file that holds `start` bytes.
    pub(super) fn at(start: u64) -> Self {
        Self { start, ..Self::default() }
    }

    /// Where the written part of the file ends.
    pub(super) const fn written(&self) -> u64 {
        self.start
    }

    /// Where the file will end once everything is written.
    pub(super) const fn end(&self) -> u64 {
        self.start + self.length
    }

    /// Nothing waits.
    pub(super) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Takes bytes up to the boundary, and gives back those beyond it.
    pub(super) fn take(&mut self, mut bytes: Bytes) -> Bytes {
        let room = STRIDE - self.end() % STRIDE;
        // At most 1 MiB.
        let rest = bytes.split_off((room as usize).min(bytes.len()));
        if !bytes.is_empty() {
            self.length += bytes.len() as u64;
            self.pieces.push(bytes);
        }
        rest
    }

    /// The boundary is reached, or the pieces have become too many.
    pub(super) fn is_full(&self) -> bool {
        self.length > 0 && (self.end().is_multiple_of(STRIDE) || self.pieces.len() >= MOST_PIECES)
    }

    /// Writes out what waits, and gives it back for the digests. After an error nothing waits any more: what was not
    /// written is not held.
    pub(super) fn write_out(&mut self, file: &File) -> io::Result<Vec<Bytes>> {
        let pieces = std::mem::take(&mut self.pieces);
        let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|b| IoSlice::new(b)).collect();
        let goal = self.end();
        self.length = 0;
        write_all_at(file, &mut slices, &mut self.start, goal)?;
        drop(slices);
        Ok(pieces)
    }
}

/// Writes all of `slices` from `*at` to `goal`; `*at` moves along with what was written.
fn write_all_at(file: &File, mut slices: &mut [IoSlice<'_>], at: &mut u64, goal: u64) -> io::Result<()> {
    while *at < goal {
        match effects::write_at(file, slices, *at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                *at += n as u64;
                IoSlice::advance_slices(&mut slices, n);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn pieces_wait_for_the_boundary() {
        let file = tempfile::tempfile().expect("a file");
        let mut gather = Gather::at(STRIDE - 10);
        assert!(gather.take(Bytes::from_static(b"123456")).is_empty());
        assert!(!gather.is_full());
        let rest = gather.take(Bytes::from_static(b"7890abc"));
        assert_eq!(&rest[..], b"abc");
        assert!(gather.is_full());
        assert_eq!(gather.write_out(&file).expect("written").concat(), b"1234567890");
        assert_eq!((gather.written(), gather.is_empty()), (STRIDE, true));
        let mut back = [0; 10];
        file.read_exact_at(&mut back, STRIDE - 10).expect("read back");
        assert_eq!(&back, b"1234567890");
    }

    #[test]
    fn many_small_pieces_do_not_pin_their_buffers_for_long() {
        let mut gather = Gather::at(0);
        let taken = (0..).take_while(|_| !gather.is_full() && gather.take(Bytes::from_static(b"x")).is_empty()).count();
        assert_eq!(taken, MOST_PIECES);
    }

    #[test]
    fn what_could_not_be_written_is_not_held() {
        let read_only = File::open("/dev/null").expect("open");
        let mut gather = Gather::at(7);
        gather.take(Bytes::from_static(b"xyz"));
        gather.write_out(&read_only).expect_err("not open for writing");
        assert_eq!((gather.written(), gather.end()), (7, 7));
    }
}
