//! What the system said, as a [`LocalFault`] that names the file and the deed.

use std::io::{self, ErrorKind};
use std::path::Path;

use crate::core::failure::LocalFault;
use crate::core::range::Length;
use crate::core::units::human_bytes;
use crate::io::{durable, effects};

/// The fault for `error`, met while `doing` something to `path`.
pub(super) fn fault(doing: &'static str, path: &Path, error: &io::Error) -> LocalFault {
    durable::local_fault(doing, path, error)
}

/// The fault for a write of `needed` bytes that did not go through.
pub(super) fn write_fault(path: &Path, needed: u64, error: &io::Error) -> LocalFault {
    if is_full(error) {
        let detail = format!("{} more are needed; the part file is kept", human_bytes(Length(needed)));
        return LocalFault::DiskFull { path: path.display().to_string(), detail };
    }
    fault("write", path, error)
}

/// No room, or no room for this user.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// For `map_err`: the fault of an error met while `doing` something to `path`.
pub(super) fn on<'a>(doing: &'static str, path: &'a Path) -> impl Fn(io::Error) -> LocalFault + 'a {
    move |error| fault(doing, path, &error)
}

/// Removes a file; one that is not there is removed already.
pub(super) fn unlink(path: &Path) -> Result<(), LocalFault> {
    effects::unlink(path).map(drop).map_err(on("delete", path))
}
