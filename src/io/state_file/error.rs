//! Why a state file cannot be used, and what to do about it.

use std::path::PathBuf;

use crate::core::failure::LocalFault;
use crate::core::state::{Damage, FORMAT};

/// Why a state file cannot be read or written. Nothing was changed on disk.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// None of its generations is sound.
    #[error(
        "the client state file {} is damaged: {damage}. There is no sound copy of it, and nothing was changed. \
         Repair that place or restore a backup; or move the file away to begin anew", path.display()
    )]
    Damaged {
        /// The generation that counts.
        path: PathBuf,
        /// Where and how.
        damage: Damage,
    },
    /// A BOINC client's.
    #[error(
        "{} is the state file of a BOINC client: it can be listed, but is never written. \
         Choose another one with --state-file", path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A later program's.
    #[error(
        "{} has the form {format} of a later version of this program, which knows forms up to {FORMAT}: \
         it can be listed, but is not written. Use that version, or another --state-file", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its form.
        format: u32,
    },
    /// Something else stands there.
    #[error("{} is {what}, not a regular file: choose another path with --state-file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The change is beyond the limits of the form.
    #[error("the client state file {} was not written: {why}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// Which limit.
        why: String,
    },
    /// The system refuses, the disk is full, or another process holds the lock for too long.
    #[error("{0}. The client state file is kept there; --state-file names another")]
    Local(#[from] LocalFault),
}
