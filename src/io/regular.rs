//! Regular files, opened for reading: whatever else somebody may have put under the name is an error at once. A pipe would
//! have us wait for a writer.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// The regular file at a path; links are followed.
///
/// # Errors
/// What the system said, or that it is no regular file.
pub(crate) fn read_regular(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?)
}

/// The file itself, which was opened without waiting.
///
/// # Errors
/// What the system said, or that it is no regular file.
pub(crate) fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_regular_file_is_read_and_nobody_waits() {
        let dir = tempfile::tempdir().expect("a folder");
        let (file, pipe) = (dir.path().join("file"), dir.path().join("pipe"));
        std::fs::write(&file, "text").expect("written");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).expect("made");
        assert!(read_regular(&file).is_ok());
        for other in [&pipe, dir.path()] {
            let error = read_regular(other).expect_err("no regular file").to_string();
            assert_eq!(error, "it is no regular file");
        }
        assert_eq!(read_regular(&dir.path().join("none")).expect_err("not there").kind(), io::ErrorKind::NotFound);
    }
}
