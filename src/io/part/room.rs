//! Room on the disk: looked for, and taken, before the first byte moves (design 3.13).
//!
//! Space is taken beyond the file's end, without making the file longer, so that its length still tells the bytes held.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::core::failure::LocalFault;
use crate::core::range::Length;
use crate::core::units::human_bytes;
#[cfg(target_os = "linux")]
use crate::io::effects;
use crate::io::limits;
use crate::io::part::fault::on;
#[cfg(target_os = "linux")]
use crate::io::part::fault::write_fault;
use crate::io::part::gather::STRIDE;

/// What `st_blocks` counts in.
const SECTOR: u64 = 512;

/// Did the file get blocks beyond its end?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ahead {
    /// It did; they go back when the file is cut to its length.
    Taken,
    /// Nothing was needed, or the file system cannot.
    Nothing,
}

/// What a file holds so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Bytes from its start, without a gap.
    pub(super) held: u64,
    /// Where it ends.
    pub(super) end: u64,
}

/// Makes sure that a file can grow to `total`, within the limits of this process, and its gaps be filled.
pub(super) fn reserve(file: &File, path: &Path, has: Extent, total: u64) -> Result<Ahead, LocalFault> {
    if let Some(limit) = limits::largest_file().filter(|limit| *limit < total) {
        let detail = limits::too_large(Some(limit));
        return Err(LocalFault::FileTooLarge { path: path.display().to_string(), detail });
    }
    let held = has.held;
    let allocated = file.metadata().map_err(on("examine", path))?.blocks().saturating_mul(SECTOR);
    let needed = total.saturating_sub(allocated.max(held));
    if needed == 0 {
        return Ok(Ahead::Nothing);
    }
    match free(file) {
        Some(free) if free < needed => Err(too_little(path, needed, free)),
        // Less than one write: nothing to gain.
        _ if needed < STRIDE => Ok(Ahead::Nothing),
        _ => allocate(file, path, has, total),
    }
}

/// Bytes that this user may still write; `None` where the file system does not say.
fn free(file: &File) -> Option<u64> {
    let told = rustix::fs::fstatvfs(file).ok().filter(|v| v.f_blocks > 0)?;
    Some(told.f_bavail.saturating_mul(told.f_frsize))
}

#[cfg(target_os = "linux")]
fn allocate(file: &File, path: &Path, has: Extent, total: u64) -> Result<Ahead, LocalFault> {
    use rustix::io::Errno;
    if is_memory(file) {
        return Ok(Ahead::Nothing);
    }
    let needed = total.saturating_sub(has.held);
    match effects::allocate(file, has.held, needed) {
        Ok(()) => Ok(Ahead::Taken),
        Err(e @ (Errno::NOSPC | Errno::DQUOT)) => {
            // Half of it may have been taken.
            let _ = effects::set_length(file, has.end);
            Err(write_fault(path, needed, &e.into()))
        }
        Err(e @ Errno::FBIG) => Err(on("reserve room for", path)(e.into())),
        Err(_) => Ok(Ahead::Nothing),
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(_: &File, _: &Path, _: Extent, _: u64) -> Result<Ahead, LocalFault> {
    Ok(Ahead::Nothing)
}

/// A file system in memory: pages taken ahead cost the time of a write and gain nothing.
#[cfg(target_os = "linux")]
fn is_memory(file: &File) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    #[allow(clippy::unnecessary_cast, reason = "the type of the field differs between machines")]
    rustix::fs::fstatfs(file).is_ok_and(|fs| [TMPFS, RAMFS].contains(&(fs.f_type as i64)))
}

fn too_little(path: &Path, needed: u64, free: u64) -> LocalFault {
    let detail = format!(
        "{} more are needed, {} are free; the part file is kept",
        human_bytes(Length(needed)),
        human_bytes(Length(free))
    );
    LocalFault::DiskFull { path: path.display().to_string(), detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Extent = Extent { held: 0, end: 0 };

    #[test]
    fn room_is_taken_without_making_the_file_longer() {
        let file = tempfile::tempfile().expect("a file");
        let ahead = reserve(&file, Path::new("x"), NOTHING, 1 << 20).expect("a mebibyte");
        let meta = file.metadata().expect("metadata");
        assert_eq!(meta.len(), 0);
        assert_eq!(ahead == Ahead::Taken, meta.blocks() > 0);
    }

    #[test]
    fn what_cannot_fit_is_told_before_a_byte_moves() {
        let file = tempfile::tempfile().expect("a file");
        let fault = reserve(&file, Path::new("huge.iso"), NOTHING, 1 << 60).expect_err("an exbibyte");
        let LocalFault::DiskFull { path, detail } = fault else { panic!("{fault}") };
        assert_eq!(path, "huge.iso");
        assert!(detail.starts_with("1.0 EiB more are needed, "), "{detail}");
    }
}
