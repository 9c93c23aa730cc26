//! The last steps: what is verified becomes the file of the final name.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

use crate::core::failure::LocalFault;
use crate::core::pers_xfer::record::{Evidence, Finished};
use crate::core::range::Length;
use crate::core::time::Epoch;
use crate::io::effects;
use crate::io::part::SyncMode;
use crate::io::part::fault::on;

pub use crate::io::durable::Clobber;

/// How a file gets its final name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish {
    /// What becomes of a file that already has that name.
    pub existing: Clobber,
    /// Its modification time; `None` for when it was written.
    pub mtime: Option<Epoch>,
    /// The time now, for the record.
    pub at: Epoch,
    /// What the file rests on, for the record.
    pub evidence: Evidence,
}

/// Gives the file its mode and time, and flushes it where that is wanted. It still has the part file's name.
pub(super) fn finish(file: &File, path: &Path, sync: SyncMode, mtime: Option<Epoch>) -> Result<(), LocalFault> {
    // Some file systems know no modes: a file of theirs has the right one already.
    match effects::set_mode(file, 0o666 & !umask()) {
        Err(e) if !matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported) => {
            return Err(on("set the mode of", path)(e));
        }
        _ => {}
    }
    if let Some(at) = mtime {
        effects::set_modified(file, at).map_err(on("set the time of", path))?;
    }
    match sync {
        SyncMode::Full => effects::sync_all(file).map_err(on("flush", path)),
        SyncMode::None => Ok(()),
    }
}

/// The record of a file that has its final name.
pub(super) fn finished(file: &File, path: &Path, how: Publish) -> Result<Finished, LocalFault> {
    let meta = file.metadata().map_err(on("examine", path))?;
    Ok(Finished {
        at: how.at,
        evidence: how.evidence,
        size: Length(meta.len()),
        mtime_ns: i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec()),
        inode: meta.ino(),
        server_digest: None,
        placed: None,
    })
}

/// The process's file mode mask, read once.
fn umask() -> u32 {
    static MASK: OnceLock<u32> = OnceLock::new();
    *MASK.get_or_init(|| told_umask().unwrap_or_else(probed_umask))
}

fn told_umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("Umask:"))?;
    u32::from_str_radix(line.trim(), 8).ok()
}

/// Elsewhere it can be read only by setting it. For that instant, it is the strictest.
fn probed_umask() -> u32 {
    let mask = rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    rustix::process::umask(mask);
    // The type differs between systems; a mask has nine bits.
    #[allow(clippy::unnecessary_cast, reason = "u16 on some systems")]
    let bits = mask.bits() as u32;
    bits
}
