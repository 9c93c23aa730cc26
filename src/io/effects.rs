//! Effects: every change that this program makes to the disk, each one call of the system.
//!
//! Nothing is decided here, and nothing added: a function does what its name says. That they stand in one place lets a
//! build with the feature `failpoints` record them, so that tests can ask what a loss of power would have left of them,
//! and end the process between any two (`docs/crash-safety.md`). Without the feature they are the bare calls.

#[cfg(feature = "failpoints")]
pub mod failpoints;

use std::fs::{DirBuilder, File, FileTimes, OpenOptions, Permissions};
use std::io::{self, ErrorKind, IoSlice, Read as _, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, RenameFlags};

use crate::core::time::Epoch;

#[cfg(feature = "failpoints")]
use failpoints::{Effect, announced, inode_of, position, torn, written};

/// Announces an effect, in a build that listens; else does it, and that is all.
///
/// What the effect was is told once it is done, from its result.
#[cfg(feature = "failpoints")]
macro_rules! effect {
    ($name:literal, $act:expr, |$done:pat_param| $effect:expr) => {
        announced($name, || $act, |$done| $effect)
    };
}
#[cfg(not(feature = "failpoints"))]
macro_rules! effect {
    ($name:literal, $act:expr, |$done:pat_param| $effect:expr) => {
        $act
    };
}

/// Opens a file with options that may make it.
pub(crate) fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    effect!("create", options.open(path), |file| Effect::Create { path: path.to_owned(), inode: inode_of(file) })
}

/// Makes a folder with this mode.
pub(crate) fn make_folder(path: &Path, mode: u32) -> io::Result<()> {
    effect!("make folder", DirBuilder::new().mode(mode).create(path), |()| Effect::Folder { path: path.to_owned() })
}

/// Writes at a position; gives how many bytes it took.
pub(crate) fn write_at(file: &File, slices: &[IoSlice<'_>], at: u64) -> io::Result<usize> {
    #[cfg(feature = "failpoints")]
    torn(file, slices, at);
    effect!("write", rustix::io::pwritev(file, slices, at).map_err(io::Error::from), |n| written(file, slices, at, *n))
}

/// Writes where the file's cursor stands.
#[derive(Debug)]
pub(crate) struct Writer<'a>(pub(crate) &'a File);

impl Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.0;
        #[cfg(feature = "failpoints")]
        let at = position(file)?;
        #[cfg(feature = "failpoints")]
        torn(file, &[IoSlice::new(bytes)], at);
        effect!("write", file.write(bytes), |n| written(self.0, &[IoSlice::new(bytes)], at, *n))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Copies the next `length` bytes of a file to the start of an empty one; the kernel shares them where it can.
pub(crate) fn copy(from: &File, to: &File, length: u64) -> io::Result<u64> {
    effect!("copy", io::copy(&mut from.take(length), &mut &*to), |_| failpoints::copied(to))
}

/// Cuts a file to a length, or makes it longer with zeros.
pub(crate) fn set_length(file: &File, length: u64) -> io::Result<()> {
    effect!("set length", file.set_len(length), |()| Effect::Length { inode: inode_of(file), length })
}

/// Takes blocks beyond a file's end, which stays where it is.
#[cfg(target_os = "linux")]
pub(crate) fn allocate(file: &File, from: u64, length: u64) -> Result<(), rustix::io::Errno> {
    let keep = rustix::fs::FallocateFlags::KEEP_SIZE;
    effect!("allocate", rustix::fs::fallocate(file, keep, from, length), |()| Effect::Attributes {
        inode: inode_of(file)
    })
}

/// Flushes what a file holds, and its length.
pub(crate) fn sync_data(file: &File) -> io::Result<()> {
    effect!("flush data", file.sync_data(), |()| Effect::Sync { inode: inode_of(file) })
}

/// Flushes what a file holds, its length, mode and times.
pub(crate) fn sync_all(file: &File) -> io::Result<()> {
    effect!("flush", file.sync_all(), |()| Effect::SyncAll { inode: inode_of(file) })
}

/// Flushes the names in a folder.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let act = || File::open(path).and_then(|folder| folder.sync_all());
    effect!("flush folder", act(), |()| Effect::SyncFolder { path: path.to_owned() })
}

/// Flushes all that the file system of a folder holds, in one go: what many files hold, their lengths and names.
#[cfg(all(target_os = "linux", not(feature = "failpoints")))]
pub(crate) fn sync_file_system(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(folder)?)?)
}

/// Gives a file another name, in place of whatever has it.
#[expect(clippy::disallowed_methods, reason = "only durable.rs renames, by this")]
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    effect!("rename", std::fs::rename(from, to), |()| Effect::Rename { from: from.to_owned(), to: to.to_owned() })
}

/// Gives a file another name, if that is free.
pub(crate) fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    let act = || rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from);
    effect!("rename", act(), |()| Effect::Rename { from: from.to_owned(), to: to.to_owned() })
}

/// Gives a file a second name, if that is free.
pub(crate) fn link(from: &Path, to: &Path) -> io::Result<()> {
    effect!("link", std::fs::hard_link(from, to), |()| Effect::Link { from: from.to_owned(), to: to.to_owned() })
}

/// Takes a name from a file; `false` where nothing had it.
pub(crate) fn unlink(path: &Path) -> io::Result<bool> {
    match effect!("unlink", std::fs::remove_file(path), |()| Effect::Unlink { path: path.to_owned() }) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sets a file's mode.
pub(crate) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    let act = || file.set_permissions(Permissions::from_mode(mode));
    effect!("set mode", act(), |()| Effect::Mode { inode: inode_of(file), mode })
}

/// Sets the time of modification; one that the system cannot tell changes nothing.
pub(crate) fn set_modified(file: &File, at: Epoch) -> io::Result<()> {
    let span = Duration::from_micros(at.as_micros().unsigned_abs());
    let time = if at.as_micros() < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(span)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(span)
    };
    let Some(time) = time else { return Ok(()) };
    let times = FileTimes::new().set_modified(time);
    effect!("set times", file.set_times(times), |()| Effect::Attributes { inode: inode_of(file) })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    /// Calls that change something on a disk.
    const CHANGES: [&str; 17] = [
        "fs::remove_file",
        "fs::remove_dir",
        "fs::rename",
        "fs::hard_link",
        "fs::write",
        "fs::copy",
        "fs::create_dir",
        "DirBuilder",
        "File::create",
        "io::copy",
        "pwrite",
        "fallocate",
        "renameat",
        ".set_len(",
        ".sync_all(",
        ".sync_data(",
        ".set_permissions(",
    ];

    #[test]
    fn whatever_changes_the_disk_does_it_here() {
        let mut found = Vec::new();
        for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/io")) {
            let text = std::fs::read_to_string(&path).expect("read");
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            let changes = lines.filter(|line| CHANGES.iter().any(|change| line.contains(change)));
            found.extend(changes.map(|line| format!("{}: {line}", path.display())));
        }
        assert!(found.is_empty(), "{}", found.join("\n"));
    }

    /// Every source file of the floor but this one, and the tests.
    fn sources(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if name == "tests" || name == "tests.rs" || name == "effects" || name == "effects.rs" {
                continue;
            }
            if path.is_dir() { found.extend(sources(&path)) } else { found.push(path) }
        }
        found
    }
}
