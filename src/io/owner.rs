//! Who lives: each process that runs transfers of a state file holds a lock on a file beside it, `client_state.run-ID`,
//! from its first claim to its end, however that comes.
//!
//! The system's lock is what counts: the id in a record is of a living process exactly as long as that file is locked.
//! A file that nobody locks was left by a process that was killed; whoever meets it removes it. An id is never used
//! again, so a file that is gone stays gone.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::core::failure::LocalFault;
use crate::core::pers_xfer::sharing::OwnerId;
use crate::io::durable::{self, PRIVATE, local_fault};
use crate::io::effects;

/// A process id has at most so many digits; more is no process id.
const ID_DIGITS: u64 = 20;

/// The mark of a living process; it goes when this is dropped.
#[derive(Debug)]
pub struct LifeSign {
    path: PathBuf,
    // The lock ends with the file.
    _file: File,
}

impl LifeSign {
    /// Gives the process this id, for as long as the value lives. The folder is made where it is missing.
    ///
    /// # Errors
    /// [`LocalFault::InUse`] where the id is taken: draw another. Else what the system said.
    pub fn begin(state_file: &Path, id: OwnerId) -> Result<Self, LocalFault> {
        let path = path_of(state_file, id);
        durable::create_folder(durable::folder_of(&path), durable::PRIVATE_FOLDER)?;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(PRIVATE).open(&path);
        let mut file = match file {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::AlreadyExists => return Err(taken(&path)),
            Err(e) => return Err(local_fault("create", &path, &e)),
        };
        match file.try_lock() {
            Ok(()) => {}
            // Somebody who looked for the dead was faster.
            Err(TryLockError::WouldBlock) => return Err(taken(&path)),
            Err(TryLockError::Error(e)) => return Err(local_fault("lock", &path, &e)),
        }
        if file.metadata().is_ok_and(|meta| meta.nlink() == 0) {
            return Err(taken(&path));
        }
        // For messages only: a disk too full for it must not stop anything.
        let _ = write!(file, "{}", std::process::id());
        Ok(Self { path, _file: file })
    }
}

impl Drop for LifeSign {
    fn drop(&mut self) {
        // What stays is removed by the next who looks.
        let _ = effects::unlink(&self.path);
    }
}

/// The process of this id, where it lives: its number, or `another` where that is not told.
pub fn living(state_file: &Path, id: OwnerId) -> Option<String> {
    let path = path_of(state_file, id);
    let mut file = open(&path)?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(number(&mut file).unwrap_or_else(|| "another".to_owned())),
        Ok(()) => {
            bury(&path, &file);
            None
        }
        // Where files cannot be locked, nobody is known to live.
        Err(TryLockError::Error(_)) => None,
    }
}

/// Removes the marks of processes that are dead: they were killed, and what they left may be nobody's business any more.
pub fn sweep(state_file: &Path) {
    for id in marked(state_file) {
        // To look for its process is to remove it where there is none.
        let _ = living(state_file, id);
    }
}

/// The mark of a process that is dead, whose business is taken over.
#[derive(Debug)]
pub struct Dead {
    path: PathBuf,
    file: File,
}

impl Dead {
    /// Nothing of it is anybody's business any more. Without this word, the next who looks finds it again.
    pub fn bury(self) {
        bury(&self.path, &self.file);
    }
}

/// The processes that died and left a mark, which no other who asks gets meanwhile.
pub fn dead(state_file: &Path) -> Vec<(OwnerId, Dead)> {
    let mut dead = Vec::new();
    for id in marked(state_file) {
        let path = path_of(state_file, id);
        let Some(file) = open(&path) else { continue };
        if file.try_lock().is_ok() {
            dead.push((id, Dead { path, file }));
        }
    }
    dead
}

/// The ids of all marks beside this file.
fn marked(state_file: &Path) -> Vec<OwnerId> {
    let stem = state_file.with_extension("run-");
    let Some(prefix) = stem.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let id_of = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        let id = name.to_str()?.strip_prefix(prefix).filter(|id| id.len() == 16)?;
        u64::from_str_radix(id, 16).ok().map(OwnerId)
    };
    let entries = std::fs::read_dir(durable::folder_of(state_file)).into_iter().flatten().flatten();
    entries.filter_map(id_of).collect()
}

/// The mark of a dead process is removed; the lock on it is held.
fn bury(path: &Path, file: &File) {
    // A shared lock is enough to tell that nobody lives; but two who look must not both believe they are alone.
    let _ = file.unlock();
    if file.try_lock().is_ok() {
        let _ = effects::unlink(path);
    }
}

fn open(path: &Path) -> Option<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path).ok()
}

fn number(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.take(ID_DIGITS).read_to_string(&mut text).ok()?;
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then_some(text)
}

fn path_of(state_file: &Path, id: OwnerId) -> PathBuf {
    state_file.with_extension(format!("run-{id}"))
}

fn taken(path: &Path) -> LocalFault {
    LocalFault::InUse { path: path.display().to_string(), holder: "another".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: OwnerId = OwnerId(0xab);

    fn state(dir: &tempfile::TempDir) -> PathBuf {
        dir.path().join("s").join("client_state.xml")
    }

    #[test]
    fn the_marks_of_the_dead_are_swept_and_those_of_the_living_stay() {
        let dir = tempfile::tempdir().expect("a folder");
        let state = state(&dir);
        let sign = LifeSign::begin(&state, ID).expect("free");
        let dead = path_of(&state, OwnerId(0xdead));
        let other = state.with_extension("run-notes");
        std::fs::write(&dead, "1").expect("written");
        std::fs::write(&other, "mine").expect("written");
        sweep(&state);
        assert!(!dead.exists() && other.exists() && path_of(&state, ID).exists());
        drop(sign);
    }

    #[test]
    fn a_process_lives_as_long_as_its_sign() {
        let dir = tempfile::tempdir().expect("a folder");
        let state = state(&dir);
        assert_eq!(living(&state, ID), None);
        let sign = LifeSign::begin(&state, ID).expect("free");
        assert_eq!(living(&state, ID), Some(std::process::id().to_string()));
        assert_eq!(living(&state, OwnerId(0xac)), None);
        assert!(matches!(LifeSign::begin(&state, ID), Err(LocalFault::InUse { .. })));
        drop(sign);
        assert_eq!(living(&state, ID), None);
        assert_eq!(std::fs::read_dir(state.parent().expect("a folder")).expect("read").count(), 0);
    }

    #[test]
    fn what_a_killed_process_left_is_no_life_and_goes() {
        let dir = tempfile::tempdir().expect("a folder");
        let state = state(&dir);
        let path = path_of(&state, ID);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(&path, "1").expect("written");
        assert_eq!(living(&state, ID), None);
        assert!(!path.exists());
    }

    #[test]
    fn many_who_look_at_once_bury_nobody_alive() {
        let dir = tempfile::tempdir().expect("a folder");
        let state = state(&dir);
        let sign = LifeSign::begin(&state, ID).expect("free");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..200).for_each(|_| assert!(living(&state, ID).is_some())));
            }
        });
        drop(sign);
    }
}
