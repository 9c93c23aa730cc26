//! Durable: the only place that decides on renames, so that what stands under a name survives a power cut, or never stood there.
//!
//! The order is always: bytes to the disk, then the name, then the folder that holds the name. Each effect is a small
//! function of its own, and the rotation of the state file (design section 5) is a list of steps, so that a test can stop
//! between any two.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::core::failure::LocalFault;
use crate::core::printable::plain_error;
use crate::io::regular::read_regular;
use crate::io::{effects, limits};

/// What the owner alone may read and write.
pub const PRIVATE: u32 = 0o600;
/// A folder that the owner alone may enter.
pub const PRIVATE_FOLDER: u32 = 0o700;
/// A folder that everybody may enter whom the umask lets.
pub const SHARED_FOLDER: u32 = 0o777;
/// What is gathered before it is written, in bytes.
const GATHER: usize = 256 * 1024;

/// The three names of a state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generations {
    /// The one that counts: `client_state.xml`.
    pub current: PathBuf,
    /// The one being written: `client_state_next.xml`.
    pub next: PathBuf,
    /// The one before: `client_state_prev.xml`.
    pub prev: PathBuf,
}

/// One effect of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The previous generation loses its name, if there is a current one to take it.
    DropPrevious,
    /// The current one gets the name of the previous one as well.
    LinkPrevious,
    /// The next one takes the name of the current one.
    Promote,
    /// The folder is flushed.
    SyncFolder,
}

/// The effects of a rotation, in order. At every point between them a sound generation has one of the three names.
pub const ROTATION: [Step; 4] = [Step::DropPrevious, Step::LinkPrevious, Step::Promote, Step::SyncFolder];

/// What becomes of a file that has the name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clobber {
    /// It is replaced.
    Replace,
    /// It stays, and publishing fails with [`LocalFault::NotOurs`].
    Refuse,
}

impl Generations {
    /// The names that belong to a state file: `_next` and `_prev` stand before the extension.
    pub fn of(current: &Path) -> Self {
        Self { current: current.to_owned(), next: beside(current, "_next"), prev: beside(current, "_prev") }
    }

    /// Makes the next generation, which is written and flushed, the current one.
    ///
    /// # Errors
    /// The first effect that failed; sound generations keep their names.
    pub fn rotate(&self) -> Result<(), LocalFault> {
        ROTATION.into_iter().try_for_each(|step| self.take(step))
    }

    /// One effect of a rotation.
    ///
    /// # Errors
    /// What the system said, with the file.
    pub fn take(&self, step: Step) -> Result<(), LocalFault> {
        match step {
            Step::DropPrevious if exists(&self.current) => remove(&self.prev),
            Step::LinkPrevious if exists(&self.current) => link_or_move(&self.current, &self.prev),
            Step::DropPrevious | Step::LinkPrevious => Ok(()),
            Step::Promote => rename(&self.next, &self.current),
            Step::SyncFolder => sync_dir(folder_of(&self.current)),
        }
    }
}

/// Puts a whole file under a name, in place of what is there. One writer at a time: the caller holds a lock.
///
/// # Errors
/// What the system said; the old file then still stands.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), LocalFault> {
    let next = beside(path, "_next");
    write_new(&next, [bytes], mode)?;
    rename(&next, path)?;
    sync_dir(folder_of(path))
}

/// Writes a whole file, flushed, under a name that is nobody else's; a leftover there is removed, never followed.
///
/// # Errors
/// What the system said; nothing is left behind then.
pub fn write_new(path: &Path, chunks: impl IntoIterator<Item = impl AsRef<[u8]>>, mode: u32) -> Result<(), LocalFault> {
    remove(path)?;
    let written = create(path, mode).and_then(|file| fill(&file, chunks));
    written.map_err(|error| {
        // The fault tells more than what this could say.
        let _ = effects::unlink(path);
        local_fault("write", path, &error)
    })
}

/// Gives a finished file its final name. The caller has flushed its bytes, and flushes the folder ([`sync_dir`]).
///
/// # Errors
/// [`LocalFault::NotOurs`] where the name is taken and may not be; else what the system said. `from` then stays.
pub fn publish(from: &Path, to: &Path, clobber: Clobber) -> Result<(), LocalFault> {
    match clobber {
        Clobber::Replace => rename(from, to),
        Clobber::Refuse => rename_to_free(from, to).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => taken(to),
            _ => local_fault("rename to", to, &error),
        }),
    }
}

/// Flushes a file that somebody wrote, perhaps without living to flush it.
///
/// # Errors
/// What the system said.
pub fn sync_file(path: &Path) -> Result<(), LocalFault> {
    read_regular(path).and_then(|file| effects::sync_all(&file)).map_err(|error| local_fault("flush", path, &error))
}

/// Flushes files that were written below a folder, all in one file system: one by one where they are few.
///
/// # Errors
/// What the system said; then none counts as flushed.
pub fn sync_files<'p>(below: &Path, files: impl ExactSizeIterator<Item = &'p Path>) -> Result<(), LocalFault> {
    if at_once(below, files.len())? { Ok(()) } else { files.into_iter().try_for_each(sync_file) }
}

/// The same of folders.
///
/// # Errors
/// What the system said.
pub fn sync_folders<'p>(below: &Path, folders: impl ExactSizeIterator<Item = &'p Path>) -> Result<(), LocalFault> {
    if at_once(below, folders.len())? { Ok(()) } else { folders.into_iter().try_for_each(sync_dir) }
}

/// From so many on, one flush of the whole file system is worth it.
#[cfg(all(target_os = "linux", not(feature = "failpoints")))]
fn at_once(below: &Path, how_many: usize) -> Result<bool, LocalFault> {
    const MANY: usize = 16;
    if how_many < MANY {
        return Ok(false);
    }
    effects::sync_file_system(below).map_err(|error| local_fault("flush", below, &error))?;
    Ok(true)
}

/// Elsewhere there is no such flush; and where effects are recorded, each is its own.
#[cfg(not(all(target_os = "linux", not(feature = "failpoints"))))]
fn at_once(_: &Path, _: usize) -> Result<bool, LocalFault> {
    Ok(false)
}

/// Flushes a folder, so that the names in it survive a power cut. File systems that cannot are believed to need not.
///
/// # Errors
/// What the system said.
pub fn sync_dir(folder: &Path) -> Result<(), LocalFault> {
    match effects::sync_folder(folder) {
        Err(error) if !matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Err(local_fault("flush the folder", folder, &error))
        }
        _ => Ok(()),
    }
}

/// Makes a folder and those above it that are missing, with this mode (less the umask), durably.
///
/// # Errors
/// What the system said.
pub fn create_folder(folder: &Path, mode: u32) -> Result<(), LocalFault> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|f| *f != Path::new("") && !exists(f)).collect();
    for folder in missing.into_iter().rev() {
        match effects::make_folder(folder, mode) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(local_fault("create the folder", folder, &error));
            }
            _ => sync_dir(folder_of(folder))?,
        }
    }
    Ok(())
}

/// Flushes the names that lead to a folder: whoever made them may not have lived to do so. Folders that this user may not
/// read were not made by him a moment ago, and are left out.
pub fn sync_way_to(folder: &Path) {
    for folder in folder.ancestors().take_while(|folder| *folder != Path::new("")) {
        let _ = sync_dir(folder_of(folder));
    }
}

/// A file's name is gone, if it was there.
///
/// # Errors
/// What the system said.
pub fn remove(path: &Path) -> Result<(), LocalFault> {
    effects::unlink(path).map(drop).map_err(|error| local_fault("remove", path, &error))
}

/// What a system error means for a transfer: `doing` is a verb.
pub fn local_fault(doing: &'static str, path: &Path, error: &io::Error) -> LocalFault {
    let (path, detail) = (path.display().to_string(), plain_error(error));
    if error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) {
        return LocalFault::Io { doing, path, detail: limits::too_many_open(limits::descriptors()) };
    }
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => LocalFault::DiskFull { path, detail },
        ErrorKind::FileTooLarge => LocalFault::FileTooLarge { path, detail: limits::too_large(limits::largest_file()) },
        _ => LocalFault::Io { doing, path, detail },
    }
}

/// The folder that a file is in.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// `dir/stem.ext` with something between stem and extension.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.file_stem().unwrap_or(OsStr::new("")));
    name.push(suffix);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Something has this name, if only a dangling link.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn create(path: &Path, mode: u32) -> io::Result<File> {
    effects::open(OpenOptions::new().write(true).create_new(true).mode(mode), path)
}

fn fill(file: &File, chunks: impl IntoIterator<Item = impl AsRef<[u8]>>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(GATHER, effects::Writer(file));
    chunks.into_iter().try_for_each(|chunk| out.write_all(chunk.as_ref()))?;
    out.flush()?;
    effects::sync_all(file)
}

fn rename(from: &Path, to: &Path) -> Result<(), LocalFault> {
    effects::rename(from, to).map_err(|error| local_fault("rename to", to, &error))
}

/// A second name; where the file system has none, the name moves, as BOINC moves it: for a moment no file is current.
fn link_or_move(from: &Path, to: &Path) -> Result<(), LocalFault> {
    effects::link(from, to).or_else(|_| rename(from, to))
}

/// A rename that replaces nothing, atomically; older kernels and odd file systems get the same by other means.
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match effects::rename_to_free(from, to) {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            link_to_free(from, to)
        }
        other => other,
    }
}

/// By a second name, which never replaces either.
fn link_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match effects::link(from, to) {
        Ok(()) => effects::unlink(from).map(drop),
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => Err(error),
        Err(_) => reserve_and_rename(from, to),
    }
}

/// By an empty file that takes the name first, and is then replaced: nobody else's file can be.
fn reserve_and_rename(from: &Path, to: &Path) -> io::Result<()> {
    create(to, PRIVATE)?;
    effects::rename(from, to).inspect_err(|_| {
        // Ours, and empty.
        let _ = effects::unlink(to);
    })
}

fn taken(path: &Path) -> LocalFault {
    let why = "exists and is not ours; it was left alone".to_owned();
    LocalFault::NotOurs { path: path.display().to_string(), why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    #[test]
    fn names_stand_before_the_extension() {
        let names = |path: &str| Generations::of(Path::new(path));
        assert_eq!(names("/a/client_state.xml").next, Path::new("/a/client_state_next.xml"));
        assert_eq!(names("/a/client_state.xml").prev, Path::new("/a/client_state_prev.xml"));
        assert_eq!(names("queue").prev, Path::new("queue_prev"));
        assert_eq!(names(".q").next, Path::new(".q_next"));
        assert_eq!(names("/a.b/q.tar.xml").next, Path::new("/a.b/q.tar_next.xml"));
    }

    #[test]
    fn a_rotation_keeps_the_one_before() {
        let dir = folder();
        let names = Generations::of(&dir.path().join("s.xml"));
        for text in ["1", "2", "3"] {
            write_new(&names.next, [text], PRIVATE).expect("written");
            names.rotate().expect("rotated");
        }
        let read = |path: &Path| fs::read_to_string(path).expect("there");
        assert_eq!((read(&names.current), read(&names.prev), exists(&names.next)), ("3".into(), "2".into(), false));
        assert_eq!(names.current.metadata().expect("there").permissions().mode() & 0o777, PRIVATE);
    }

    #[test]
    fn a_rotation_without_a_current_one_leaves_the_previous() {
        let dir = folder();
        let names = Generations::of(&dir.path().join("s.xml"));
        fs::write(&names.prev, "old").expect("written");
        write_new(&names.next, ["new"], PRIVATE).expect("written");
        names.rotate().expect("rotated");
        assert_eq!(fs::read_to_string(&names.prev).expect("there"), "old");
    }

    #[test]
    fn a_leftover_is_removed_and_never_followed() {
        let dir = folder();
        let (victim, path) = (dir.path().join("victim"), dir.path().join("x"));
        fs::write(&victim, "precious").expect("written");
        symlink(&victim, &path).expect("linked");
        write_new(&path, ["new"], PRIVATE).expect("written");
        assert_eq!(fs::read_to_string(&victim).expect("there"), "precious");
        assert!(!path.symlink_metadata().expect("there").is_symlink());
        replace(&path, b"newer", 0o644).expect("replaced");
        assert_eq!(fs::read_to_string(&path).expect("there"), "newer");
        assert_eq!(fs::read_dir(dir.path()).expect("listed").count(), 2);
    }

    #[test]
    fn publishing_refuses_or_replaces() {
        let dir = folder();
        let (from, to) = (dir.path().join("part"), dir.path().join("file"));
        fs::write(&to, "theirs").expect("written");
        fs::write(&from, "ours").expect("written");
        let refused = publish(&from, &to, Clobber::Refuse);
        assert!(matches!(refused, Err(LocalFault::NotOurs { .. })), "{refused:?}");
        assert_eq!(fs::read_to_string(&to).expect("there"), "theirs");
        publish(&from, &to, Clobber::Replace).expect("replaced");
        assert_eq!((fs::read_to_string(&to).expect("there").as_str(), exists(&from)), ("ours", false));
        publish(&to, &from, Clobber::Refuse).expect("the name is free");
        sync_dir(dir.path()).expect("flushed");
    }

    #[test]
    fn the_other_ways_to_a_free_name_replace_nothing_either() {
        for way in [rename_to_free, link_to_free, reserve_and_rename] {
            let dir = folder();
            let (from, to) = (dir.path().join("part"), dir.path().join("file"));
            fs::write(&from, "ours").expect("written");
            fs::write(&to, "theirs").expect("written");
            assert_eq!(way(&from, &to).expect_err("taken").kind(), ErrorKind::AlreadyExists);
            fs::remove_file(&to).expect("removed");
            way(&from, &to).expect("free");
            assert_eq!((fs::read_to_string(&to).expect("there").as_str(), exists(&from)), ("ours", false));
            way(&from, &to).expect_err("there is nothing to rename any more");
            assert_eq!(fs::read_to_string(&to).expect("there"), "ours");
        }
    }

    #[test]
    fn a_folder_is_made_for_the_owner_alone() {
        let dir = folder();
        let deep = dir.path().join("a/b");
        create_folder(&deep, PRIVATE_FOLDER).expect("made");
        create_folder(&deep, PRIVATE_FOLDER).expect("is there");
        assert_eq!(deep.metadata().expect("there").mode() & 0o777, PRIVATE_FOLDER);
    }

    #[test]
    fn a_full_disk_is_told_from_other_trouble() {
        let fault = |kind: ErrorKind| local_fault("write", Path::new("/x"), &io::Error::from(kind));
        let none_left = io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
        assert!(local_fault("open", Path::new("/x"), &none_left).to_string().contains("ulimit -n"));
        assert!(matches!(fault(ErrorKind::StorageFull), LocalFault::DiskFull { .. }));
        assert!(matches!(fault(ErrorKind::QuotaExceeded), LocalFault::DiskFull { .. }));
        assert!(fault(ErrorKind::PermissionDenied).to_string().starts_with("cannot write /x: "));
    }
}
