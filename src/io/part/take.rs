//! Taking a file for ourselves: opened without following links, checked, locked; whatever else stands there is replaced
//! or refused, never adopted (design 3.9).
//!
//! The lock is on the inode, and names can be given to other inodes at any time. So after the lock is had, the name is
//! looked up again; where it leads elsewhere by now, everything starts over. Nobody unlinks a file without its lock, so
//! two processes never both believe that they hold the file of one name.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::core::failure::LocalFault;
use crate::io::effects;
use crate::io::part::fault::{fault, on, unlink};
use crate::io::part::names::{folder_of, sibling};

/// How often a name may change under us before we say so.
const ATTEMPTS: usize = 32;

/// What the record says of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It holds bytes of this transfer.
    Claimed,
    /// No record knows it.
    Orphan,
}

/// A file that is ours, and locked.
#[derive(Debug)]
pub(super) struct Taken {
    /// Open for reading and writing.
    pub(super) file: File,
    /// Bytes in it.
    pub(super) length: u64,
    /// Its inode.
    pub(super) inode: u64,
}

/// Opens and locks the file at `path`, or makes a new one; says in `remarks` what was replaced.
pub(super) fn take(path: &Path, standing: Standing, remarks: &mut Vec<String>) -> Result<Taken, LocalFault> {
    for _ in 0..ATTEMPTS {
        if let Some(taken) = attempt(path, standing, remarks)? {
            return Ok(taken);
        }
    }
    Err(replaced_again_and_again(path))
}

fn replaced_again_and_again(path: &Path) -> LocalFault {
    let detail = "other processes replace it again and again".into();
    LocalFault::Io { doing: "open", path: path.display().to_string(), detail }
}

/// Opens and locks the regular file at `path`, whatever it holds; `None` where none stands there.
pub(super) fn hold(path: &Path) -> Result<Option<File>, LocalFault> {
    for _ in 0..ATTEMPTS {
        if !look(path)?.is_some_and(|meta| meta.is_file()) {
            return Ok(None);
        }
        let Some(file) = open_existing(path)? else { continue };
        lock(&file, path, &mut Vec::new())?;
        if names(path, &file)? {
            return Ok(Some(file));
        }
    }
    Err(replaced_again_and_again(path))
}

/// The file at `path` where it is regular, ours and has one name; anything else there is removed.
pub(super) fn existing_own(path: &Path) -> Result<Option<File>, LocalFault> {
    let Some(meta) = look(path)? else { return Ok(None) };
    if !meta.is_file() || defect(path, &meta).is_some() {
        unlink(path)?;
        return Ok(None);
    }
    open_existing(path)
}

/// A new file at `path`, in place of whatever stands there.
pub(super) fn create_own(path: &Path) -> io::Result<File> {
    match create_new(path) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            effects::unlink(path)?;
            create_new(path)
        }
        other => other,
    }
}

/// Does `path` name this very file?
pub(super) fn names(path: &Path, file: &File) -> Result<bool, LocalFault> {
    let held = file.metadata().map_err(on("examine", path))?;
    Ok(look(path)?.is_some_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())))
}

/// What stands at `path`, itself and not where it may lead; `None` where nothing does.
pub(super) fn look(path: &Path) -> Result<Option<Metadata>, LocalFault> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(meta)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(fault("examine", path, &e)),
    }
}

/// One try; `None` where the name changed meanwhile, or was made free.
fn attempt(path: &Path, standing: Standing, remarks: &mut Vec<String>) -> Result<Option<Taken>, LocalFault> {
    let Some(meta) = look(path)? else { return create(path, remarks) };
    if meta.is_dir() {
        return Err(not_ours(path, "is a folder; move it away"));
    }
    if !meta.is_file() {
        remarks.push(format!("{} was no regular file and is replaced; what it led to is untouched", path.display()));
        unlink(path)?;
        return Ok(None);
    }
    let Some(file) = open_existing(path)? else { return Ok(None) };
    secure(path, file, standing, remarks)
}

/// Locks a regular file that was opened by its name a moment ago.
fn secure(path: &Path, file: File, standing: Standing, remarks: &mut Vec<String>) -> Result<Option<Taken>, LocalFault> {
    lock(&file, path, remarks)?;
    if !names(path, &file)? {
        return Ok(None);
    }
    judge(path, file, standing, remarks)
}

/// What becomes of a regular file that is open and locked.
fn judge(path: &Path, file: File, standing: Standing, remarks: &mut Vec<String>) -> Result<Option<Taken>, LocalFault> {
    let meta = file.metadata().map_err(on("examine", path))?;
    match (standing, defect(path, &meta)) {
        (Standing::Claimed, None) => Ok(Some(Taken { file, length: meta.len(), inode: meta.ino() })),
        (Standing::Claimed, Some(why)) => Err(not_ours(path, why)),
        (Standing::Orphan, _) => {
            if meta.len() > 0 {
                let size = meta.len();
                remarks.push(format!("{} ({size} bytes) belongs to no known download and is replaced", path.display()));
            }
            unlink(path)?;
            Ok(None)
        }
    }
}

fn create(path: &Path, remarks: &mut Vec<String>) -> Result<Option<Taken>, LocalFault> {
    let file = match create_new(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::AlreadyExists => return Ok(None),
        Err(e) => return Err(folder_fault(path, &e)),
    };
    lock(&file, path, remarks)?;
    if !names(path, &file)? {
        return Ok(None);
    }
    let inode = file.metadata().map_err(on("examine", path))?.ino();
    Ok(Some(Taken { file, length: 0, inode }))
}

/// Only its owner may look into a file that is not verified yet; and nobody can have given the name another meaning.
fn create_new(path: &Path) -> io::Result<File> {
    effects::open(OpenOptions::new().read(true).write(true).create_new(true).mode(0o600), path)
}

/// `None` where the name is gone, or became a link or a pipe, since it was looked at.
fn open_existing(path: &Path) -> Result<Option<File>, LocalFault> {
    // Flags have few bits, none of them the sign.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    match OpenOptions::new().read(true).write(true).custom_flags(flags).open(path) {
        // What was looked at may have been replaced by a pipe since: the next look tells.
        Ok(file) => Ok(file.metadata().is_ok_and(|meta| meta.is_file()).then_some(file)),
        Err(e) if e.kind() == ErrorKind::NotFound || is_loop(&e) => Ok(None),
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            Err(not_ours(path, "cannot be opened by this user; delete it, or go on as the user who began it"))
        }
        Err(e) => Err(fault("open", path, &e)),
    }
}

fn is_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Why a regular file cannot be one of ours.
fn defect(path: &Path, meta: &Metadata) -> Option<&'static str> {
    if meta.nlink() > 1 {
        return Some("has a second name (a hard link), through which others may change it; delete one of the two");
    }
    if meta.uid() != rustix::process::geteuid().as_raw() && Some(meta.uid()) != owner_here(path) {
        return Some("belongs to another user; delete it, or go on as that user");
    }
    None
}

/// Whom a file that we make in this folder belongs to: on some network and foreign file systems not to us.
fn owner_here(path: &Path) -> Option<u32> {
    let probe = sibling(path, ".owner");
    let uid = create_new(&probe).and_then(|file| file.metadata()).ok()?.uid();
    let _ = effects::unlink(&probe);
    Some(uid)
}

fn lock(file: &File, path: &Path, remarks: &mut Vec<String>) -> Result<(), LocalFault> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            Err(LocalFault::InUse { path: path.display().to_string(), holder: holder_of(file) })
        }
        Err(TryLockError::Error(e)) if has_no_locks(&e) => {
            remarks.push(format!(
                "{} stands where files cannot be locked; start no second download of it",
                path.display()
            ));
            Ok(())
        }
        Err(TryLockError::Error(e)) => Err(fault("lock", path, &e)),
    }
}

fn has_no_locks(error: &io::Error) -> bool {
    let none = [rustix::io::Errno::NOLCK, rustix::io::Errno::NOSYS, rustix::io::Errno::OPNOTSUPP];
    none.iter().any(|e| error.raw_os_error() == Some(e.raw_os_error()))
}

/// Who has the lock of a file that may be locked: a process by its number, or "another". The kernel's list is asked first:
/// a lock of our own, however short, might be in the way of a download that begins at this moment.
pub(super) fn holder(file: &File) -> Option<String> {
    match told_holder(file) {
        Some(Told::Surely(pid)) => return Some(pid.to_string()),
        None if Path::new("/proc/locks").exists() => return None,
        Some(Told::Perhaps(_)) | None => {}
    }
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(holder_of(file)),
        Ok(()) => file.unlock().err().map(|_| "another".into()),
        Err(TryLockError::Error(_)) => None,
    }
}

/// The process that has the lock of a file that is known to be locked: its number where the kernel tells it, or "another".
fn holder_of(file: &File) -> String {
    told_holder(file).map_or_else(|| "another".into(), |(Told::Surely(pid) | Told::Perhaps(pid))| pid.to_string())
}

/// The holder of a lock, as the kernel tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// Of this very file.
    Surely(u32),
    /// Of a file of this number, on a device that goes by another name: it may be another file.
    Perhaps(u32),
}

fn told_holder(file: &File) -> Option<Told> {
    let meta = file.metadata().ok()?;
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    find_holder(&locks, meta.dev(), meta.ino())
}

/// From lines like `1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF`. Some file systems show another device here than
/// to `stat`.
fn find_holder(locks: &str, dev: u64, ino: u64) -> Option<Told> {
    #[allow(clippy::unnecessary_cast, reason = "the type of devices differs between systems")]
    let dev = dev as rustix::fs::Dev;
    let device = format!("{:02x}:{:02x}:{ino}", rustix::fs::major(dev), rustix::fs::minor(dev));
    let inode = format!(":{ino}");
    let held = |matches: &dyn Fn(&str) -> bool| {
        locks.lines().find_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let [_, "FLOCK", _, "WRITE", pid, place, ..] = words[..] else { return None };
            matches(place).then(|| pid.parse::<u32>().ok().filter(|pid| *pid > 0))?
        })
    };
    let surely = held(&|place| place == device).map(Told::Surely);
    surely.or_else(|| held(&|place| place.ends_with(&inode)).map(Told::Perhaps))
}

/// The fault of a file that could not be made: mostly its folder's.
fn folder_fault(path: &Path, error: &io::Error) -> LocalFault {
    let folder = folder_of(path);
    let detail = match error.kind() {
        ErrorKind::NotFound => "there is no such folder; create it first",
        ErrorKind::NotADirectory => "it is no folder",
        _ => return fault("create", path, error),
    };
    LocalFault::Io { doing: "write into", path: folder.display().to_string(), detail: detail.into() }
}

fn not_ours(path: &Path, why: &str) -> LocalFault {
    LocalFault::NotOurs { path: path.display().to_string(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_on_a_file_that_lost_its_name_is_worth_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("part");
        for standing in [Standing::Claimed, Standing::Orphan] {
            std::fs::write(&path, "old").expect("written");
            let old = open_existing(&path).expect("opened").expect("there");
            // Another process replaces it before the lock is had.
            std::fs::remove_file(&path).expect("removed");
            std::fs::write(&path, "another's").expect("written");
            assert!(secure(&path, old, standing, &mut Vec::new()).expect("no fault").is_none());
            assert_eq!(std::fs::read(&path).expect("read"), b"another's");
        }
    }

    #[test]
    fn the_holder_is_found_by_device_and_inode() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 08:01:42 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 22 08:02:42 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 99 08:01:42 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 33 08:01:42 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE -1 08:01:43 0 EOF\n";
        let dev = rustix::fs::makedev(8, 1);
        assert_eq!(find_holder(locks, dev, 42), Some(Told::Surely(33)));
        assert_eq!(find_holder(locks, rustix::fs::makedev(0, 77), 42), Some(Told::Perhaps(22)));
        assert_eq!(find_holder(locks, dev, 43), None);
        assert_eq!(find_holder(locks, dev, 2), None);
    }
}
