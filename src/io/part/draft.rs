//! One file of a download: written at its end, read where it must be compared.
//!
//! Everything is positional, so that segments can come later without another shape.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::core::failure::LocalFault;
use crate::core::range::{ByteRange, Length, Offset};
use crate::io::effects;
use crate::io::part::fault::{on, write_fault};
use crate::io::part::gather::Gather;
use crate::io::part::hasher::Hasher;
use crate::io::part::room::{self, Ahead};
use crate::io::part::take::Taken;

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

/// A draft's file, open and locked.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) file: Arc<File>,
    pub(super) path: PathBuf,
    pub(super) inode: u64,
    pub(super) gather: Gather,
    /// The digests under way, where any are wanted.
    pub(super) hasher: Option<Hasher>,
    /// Blocks may have been taken up to here, beyond the end.
    ahead: u64,
    /// Its whole length, where told.
    total: Option<u64>,
}

impl Draft {
    /// A file of which the first `held` bytes count; the rest is cut off.
    pub(super) fn new(taken: Taken, path: PathBuf, held: u64) -> Result<Self, LocalFault> {
        if taken.length != held {
            effects::set_length(&taken.file, held).map_err(on("cut", &path))?;
        }
        // Nobody knows any more what an earlier session took.
        let ahead = if taken.length > 0 { u64::MAX } else { 0 };
        let file = Arc::new(taken.file);
        Ok(Self { file, path, inode: taken.inode, gather: Gather::at(held), hasher: None, ahead, total: None })
    }

    pub(super) const fn held(&self) -> u64 {
        self.gather.end()
    }

    /// Looks for room for `total` bytes, and takes it.
    pub(super) fn reserve(&mut self, total: u64) -> Result<(), LocalFault> {
        self.total = Some(total);
        if room::reserve(&self.file, &self.path, self.gather.written(), total)? == Ahead::Taken {
            self.ahead = self.ahead.max(total);
        }
        Ok(())
    }

    /// Writes out what waits; gives how many bytes that was.
    pub(super) fn settle(&mut self) -> Result<u64, LocalFault> {
        if self.gather.is_empty() {
            return Ok(0);
        }
        let (start, end) = (self.gather.written(), self.gather.end());
        match self.gather.write_out(&self.file) {
            Ok(pieces) => {
                if let Some(hasher) = &mut self.hasher {
                    hasher.feed(start, pieces);
                }
                Ok(end - start)
            }
            Err(e) => Err(self.write_failed(end, &e)),
        }
    }

    /// What was written of it is held, but the digests have not seen it: they will read it from the file.
    fn write_failed(&mut self, end: u64, error: &std::io::Error) -> LocalFault {
        if let Some(hasher) = &mut self.hasher {
            hasher.come_home();
        }
        let goal = self.total.unwrap_or(end).max(end);
        write_fault(&self.path, goal - self.gather.written(), error)
    }

    /// Cuts to `to` bytes; the digests must be begun anew by the caller.
    pub(super) fn cut(&mut self, to: u64) -> Result<(), LocalFault> {
        effects::set_length(&self.file, to).map_err(on("cut", &self.path))?;
        self.gather = Gather::at(to);
        self.ahead = 0;
        Ok(())
    }

    /// Gives back what was taken beyond the end.
    pub(super) fn trim(&mut self) -> Result<(), LocalFault> {
        if self.ahead > self.gather.written() {
            effects::set_length(&self.file, self.gather.written()).map_err(on("cut", &self.path))?;
            self.ahead = 0;
        }
        Ok(())
    }

    /// Compares `bytes` with what the file holds from `at` on. What waits must have been written out.
    pub(super) fn compare(&self, at: u64, bytes: &[u8]) -> Result<Compare, LocalFault> {
        let here = self.gather.written().saturating_sub(at).min(bytes.len() as u64) as usize;
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

    /// Does the range hold at least two different bytes? One byte repeated is equal in too many files.
    pub(super) fn is_informative(&self, range: ByteRange) -> Result<bool, LocalFault> {
        let end = range.end.0.min(self.gather.written());
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

    /// The nearest informative block of `block` bytes that ends at or before `before`.
    pub(super) fn nearest_informative(&self, before: Offset, block: Length) -> Result<Option<ByteRange>, LocalFault> {
        let mut end = Offset(before.0.min(self.gather.written()));
        for _ in 0..MOST_BLOCKS {
            let range = ByteRange::new(end.back(block), end);
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

    fn read(&self, buffer: &mut [u8], at: u64) -> Result<(), LocalFault> {
        self.file.read_exact_at(buffer, at).map_err(on("read", &self.path))
    }
}
