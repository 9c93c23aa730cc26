//! Reading a draft where bytes that arrive must be compared with those held.

use std::os::unix::fs::FileExt;

use crate::core::failure::LocalFault;
use crate::core::range::{ByteRange, Length, Offset};
use crate::io::part::draft::Draft;
use crate::io::part::fault::on;

/// Bytes compared at once: 64 KiB.
const CHUNK: usize = 64 << 10;
/// How many blocks are looked at for one that proves something.
const MOST_BLOCKS: usize = 1024;

/// What comparing bytes with those held tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// All are held, and equal.
    Equal,
    /// They are not.
    Differs {
        /// The first position where the bytes differ, or where none are held any more.
        at: Offset,
    },
}

/// What waits must have been written out, wherever one of these looks.
impl Draft {
    /// Compares `bytes` with what the file holds from `at` on.
    pub(super) fn compare(&self, at: u64, bytes: &[u8]) -> Result<Compare, LocalFault> {
        let run = self.run_at(Offset(at));
        let here = run.end.0.saturating_sub(at).min(bytes.len() as u64) as usize;
        let mut buffer = [0; CHUNK];
        let mut position = at;
        for theirs in bytes[..here].chunks(CHUNK) {
            let ours = &mut buffer[..theirs.len()];
            self.read(ours, position)?;
            if let Some(i) = ours.iter().zip(theirs).position(|(a, b)| a != b) {
                return Ok(Compare::Differs { at: Offset(position + i as u64) });
            }
            position += theirs.len() as u64;
        }
        Ok(if here == bytes.len() { Compare::Equal } else { Compare::Differs { at: Offset(position) } })
    }

    /// Does the range hold at least two different bytes? One byte repeated is equal in too many files. What is not held, or
    /// held beyond a gap in it, is not looked at.
    pub(super) fn is_informative(&self, range: ByteRange) -> Result<bool, LocalFault> {
        let end = range.end.0.min(self.run_at(range.start).end.0);
        let mut position = range.start.0;
        let mut buffer = [0; CHUNK];
        let mut first = None;
        while position < end {
            let n = (end - position).min(CHUNK as u64) as usize;
            self.read(&mut buffer[..n], position)?;
            let byte = *first.get_or_insert(buffer[0]);
            if buffer[..n].iter().any(|b| *b != byte) {
                return Ok(true);
            }
            position += n as u64;
        }
        Ok(false)
    }

    /// The nearest informative block of `block` bytes that ends at or before `before`, in the last range held there.
    pub(super) fn nearest_informative(&self, before: Offset, block: Length) -> Result<Option<ByteRange>, LocalFault> {
        let Some(run) = self.written().iter().rfind(|run| run.start < before) else { return Ok(None) };
        let mut end = before.min(run.end);
        for _ in 0..MOST_BLOCKS {
            let range = ByteRange::new(end.back(block).max(run.start), end);
            if range.is_empty() {
                break;
            }
            if self.is_informative(range)? {
                return Ok(Some(range));
            }
            end = range.start;
        }
        Ok(None)
    }

    /// The range in the file that holds this byte; an empty one where none does.
    fn run_at(&self, at: Offset) -> ByteRange {
        let written = self.gather.written();
        if at.0 < written {
            return ByteRange::new(Offset::ZERO, Offset(written));
        }
        let island = self.islands.written().find(|run| run.start <= at && at < run.end);
        island.unwrap_or(ByteRange::new(at, at))
    }

    pub(super) fn read(&self, buffer: &mut [u8], at: u64) -> Result<(), LocalFault> {
        self.file.read_exact_at(buffer, at).map_err(on("read", &self.path))
    }
}
