//! Advisory locks on files, with the holder's process id in the file for messages.
//!
//! The system's lock is what counts (`flock`): it ends with the process, however that ends. The id is only told to people.
//! A lock file stays when it is released; removing it would let two processes hold two files of one name.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::core::failure::LocalFault;
use crate::core::time::Delay;
use crate::io::durable::{PRIVATE, local_fault};
use crate::io::effects;
use crate::io::regular::regular;

/// The first pause between two tries; each is twice as long as the one before.
const FIRST_PAUSE: Delay = Delay::from_millis(1);
/// The longest pause between two tries.
const LONGEST_PAUSE: Delay = Delay::from_millis(50);
/// A process id has at most so many digits; more is no process id.
const ID_DIGITS: u64 = 20;

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    holder: Told,
}

/// Does the file say who holds the lock?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Yes,
    /// What stands in it is not ours to overwrite.
    No,
}

impl Lock {
    /// Takes the lock, trying for as long as `patience`; zero tries once. Blocks the thread meanwhile.
    ///
    /// # Errors
    /// [`LocalFault::InUse`] with the holder where somebody else has it; else what the system said.
    pub fn acquire(path: &Path, patience: Delay) -> Result<Self, LocalFault> {
        let mut file = open(path)?;
        let (mut waited, mut pause) = (Delay::ZERO, FIRST_PAUSE);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self::held(file)),
                Err(TryLockError::Error(error)) => return Err(local_fault("lock", path, &error)),
                Err(TryLockError::WouldBlock) if waited >= patience => return Err(in_use(path, &mut file)),
                Err(TryLockError::WouldBlock) => std::thread::sleep(pause.as_std()),
            }
            waited = waited.saturating_add(pause);
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }

    fn held(mut file: File) -> Self {
        if !is_ours_to_write(&mut file) {
            return Self { file, holder: Told::No };
        }
        // For messages only: a disk too full for it must not stop anything.
        let text = std::process::id().to_string();
        let _ = effects::set_length(&file, 0).and_then(|()| effects::Writer(&file).write_all(text.as_bytes()));
        Self { file, holder: Told::Yes }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The lock itself ends with the file.
        if self.holder == Told::Yes {
            let _ = effects::set_length(&self.file, 0);
        }
    }
}

/// It is empty, or holds the number of a process that was killed, and has no second name. Whatever else has the name of a
/// lock file, like the `Cargo.lock` beside a state file `Cargo.xml`, is locked and left as it is.
fn is_ours_to_write(file: &mut File) -> bool {
    let text = text(file).filter(|text| is_number(text.trim_end()));
    let alone = file.metadata().is_ok_and(|meta| meta.nlink() == 1 && meta.len() <= ID_DIGITS);
    text.is_some() && alone && file.rewind().is_ok()
}

/// The lock file that belongs to a state file: `client_state.lock`.
pub fn lock_path(state_file: &Path) -> PathBuf {
    state_file.with_extension("lock")
}

fn open(path: &Path) -> Result<File, LocalFault> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(PRIVATE);
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    let file = effects::open(&options, path);
    file.and_then(regular).map_err(|error| local_fault("open the lock", path, &error))
}

fn in_use(path: &Path, file: &mut File) -> LocalFault {
    LocalFault::InUse { path: path.display().to_string(), holder: holder(file).unwrap_or_else(|| "another".to_owned()) }
}

fn holder(file: &mut File) -> Option<String> {
    text(file).filter(|text| !text.is_empty() && is_number(text))
}

/// How the file begins.
fn text(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(ID_DIGITS).read_to_string(&mut text).ok()?;
    Some(text)
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_names_its_holder() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("s.lock");
        let held = Lock::acquire(&path, Delay::ZERO).expect("free");
        let second = Lock::acquire(&path, Delay::from_millis(3)).expect_err("held");
        let holder = std::process::id().to_string();
        assert_eq!(second, LocalFault::InUse { path: path.display().to_string(), holder });
        drop(held);
        Lock::acquire(&path, Delay::ZERO).expect("free again");
    }

    #[test]
    fn what_others_keep_under_its_name_is_locked_and_left_as_it_is() {
        let dir = tempfile::tempdir().expect("a folder");
        let (path, victim) = (dir.path().join("Cargo.lock"), dir.path().join("victim"));
        std::fs::write(&path, "version = 4").expect("written");
        let held = Lock::acquire(&path, Delay::ZERO).expect("free");
        let second = Lock::acquire(&path, Delay::ZERO).expect_err("held");
        assert!(matches!(second, LocalFault::InUse { holder, .. } if holder == "another"));
        drop(held);
        assert_eq!(std::fs::read(&path).expect("there"), b"version = 4");
        std::fs::write(&victim, "17").expect("written");
        std::fs::remove_file(&path).expect("removed");
        std::fs::hard_link(&victim, &path).expect("linked");
        drop(Lock::acquire(&path, Delay::ZERO).expect("free"));
        assert_eq!(std::fs::read(&victim).expect("there"), b"17");
    }

    #[test]
    fn a_lock_is_waited_for() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("s.lock");
        let held = Lock::acquire(&path, Delay::ZERO).expect("free");
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| Lock::acquire(&path, Delay::from_secs(60)).map(drop));
            std::thread::sleep(std::time::Duration::from_millis(5));
            drop(held);
            assert_eq!(waiter.join().expect("no panic"), Ok(()));
        });
    }

    #[test]
    fn neither_a_link_nor_a_pipe_is_a_lock() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("s.lock");
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).expect("linked");
        assert!(matches!(Lock::acquire(&path, Delay::ZERO), Err(LocalFault::Io { .. })));
        std::fs::remove_file(&path).expect("removed");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).expect("made");
        assert!(matches!(Lock::acquire(&path, Delay::ZERO), Err(LocalFault::Io { .. })), "a pipe is none either");
        assert_eq!(lock_path(Path::new("/a/client_state.xml")), Path::new("/a/client_state.lock"));
    }
}
