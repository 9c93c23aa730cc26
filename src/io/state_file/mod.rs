//! The client state file on disk: read, and changed record by record, by several processes at once.
//!
//! Design section 5. A change is a closure over the [`Document`]: under a short lock it is applied to what is on disk *now*,
//! and the whole is written to `client_state_next.xml`, flushed, and rotated into place ([`durable`]). Reading takes no
//! lock, unless something looks unfinished or damaged. All of it blocks the calling thread.

mod copies;
mod error;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use error::StateError;

use self::copies::{Copies, Newest, Stamp};
use crate::core::failure::LocalFault;
use crate::core::state::{Damage, Document, FORMAT, Kind};
use crate::core::time::Delay;
use crate::io::durable::{self, Generations};
use crate::io::lock::{Lock, lock_path};

/// How long a change waits for those of other processes. One takes some milliseconds, or half a second where a hundred
/// thousand transfers are written.
const PATIENCE: Delay = Delay::from_secs(10);

/// A client state file, by its path. It need not exist.
#[derive(Debug)]
pub struct StateFile {
    files: Generations,
    lock: PathBuf,
    patience: Delay,
    memory: Mutex<Memory>,
}

/// What was read from the file.
#[derive(Debug)]
pub struct Loaded {
    /// The file as it is now; a fresh one where there is none.
    pub document: Document,
    /// What a person should know: damage that was set aside.
    pub warnings: Vec<String>,
}

#[derive(Debug, Default)]
struct Memory {
    /// The file as we last saw it, and how to tell that it is still the same.
    last: Option<(Stamp, Document)>,
    /// A change of ours was applied to what others had written, which nobody here has looked at yet.
    unseen: bool,
    warnings: Vec<String>,
}

impl StateFile {
    /// The state file of that path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { files: Generations::of(&path), lock: lock_path(&path), patience: PATIENCE, memory: Mutex::default() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.files.current
    }

    /// Reads it: the newest sound one of its three generations. Damaged ones are set aside, but only where another is sound.
    /// A BOINC client's file is read, and nothing beside it is touched.
    ///
    /// # Errors
    /// [`StateError`]; nothing was changed on disk then.
    pub fn load(&self) -> Result<Loaded, StateError> {
        let mut memory = self.memory();
        memory.unseen = false;
        let document = match self.remembered(&mut memory).or_else(|| self.glance()) {
            Some((stamp, document)) => {
                memory.last = Some((stamp, document.clone()));
                document
            }
            None => self.look_closely(&mut memory)?,
        };
        Ok(Loaded { document, warnings: std::mem::take(&mut memory.warnings) })
    }

    /// Changes it. `change` sees the file as it is now, with what other processes did to it; what it returns is passed on
    /// once the change is on disk. Nothing is written where it changes nothing. `change` must not use this `StateFile`.
    ///
    /// # Errors
    /// [`StateError`]; the file on disk is then as it was (or, where only flushing the folder failed, changed but perhaps
    /// not for good).
    pub fn commit<R>(&self, change: impl FnOnce(&mut Document) -> R) -> Result<R, StateError> {
        let mut memory = self.memory();
        if memory.last.as_ref().is_none_or(|(_, document)| self.check_ours(document).is_err()) {
            self.refuse_foreign_unlocked()?;
        }
        durable::create_folder(durable::folder_of(self.path()), durable::PRIVATE_FOLDER)?;
        let _lock = Lock::acquire(&self.lock, self.patience)?;
        let looked = memory.last.is_some();
        let (stamp, mut document) = match self.remembered(&mut memory) {
            Some((stamp, document)) => (Some(stamp), document),
            None => {
                memory.unseen |= looked;
                (None, self.mended(&mut memory)?)
            }
        };
        self.check_ours(&document)?;
        let result = change(&mut document);
        if let Some(fault) = document.fault() {
            return Err(StateError::Unfit { path: self.path().to_owned(), why: fault.to_owned() });
        }
        let stamp = if document.is_changed() { self.write(&mut document)? } else { stamp };
        memory.last = stamp.map(|stamp| (stamp, document));
        Ok(result)
    }

    /// May this file, as it was read, be written?
    ///
    /// # Errors
    /// [`StateError::Foreign`] and [`StateError::Newer`].
    pub fn check_ours(&self, document: &Document) -> Result<(), StateError> {
        let path = self.path().to_owned();
        match document.kind() {
            Kind::Foreign => Err(StateError::Foreign { path }),
            _ if document.format() > FORMAT => Err(StateError::Newer { path, format: document.format() }),
            Kind::Ours | Kind::Other => Ok(()),
        }
    }

    /// Somebody else has written it since [`StateFile::load`] last read it; what we wrote ourselves since then does not
    /// count. Cheap: some 500 bytes are read.
    pub fn has_changed(&self) -> bool {
        let memory = self.memory();
        memory.unseen || memory.last.as_ref().map(|(stamp, _)| stamp) != Stamp::of(self.path()).as_ref()
    }

    /// What a person should know of what [`StateFile::commit`] met.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.memory().warnings)
    }

    /// Takes out what we remember, if it is what is on disk.
    fn remembered(&self, memory: &mut Memory) -> Option<(Stamp, Document)> {
        let (stamp, document) = memory.last.take()?;
        let same = !copies::is_there(&self.files.next) && Stamp::of(self.path()).as_ref() == Some(&stamp);
        same.then_some((stamp, document))
    }

    /// The current generation, where nothing looks unfinished: no next one, and no previous one that is newer.
    fn glance(&self) -> Option<(Stamp, Document)> {
        if copies::is_there(&self.files.next) {
            return None;
        }
        let stamp = Stamp::of(self.path())?;
        let document = copies::read(self.path()).ok()?.sound()?;
        let newest = copies::generation_at(&self.files.prev).is_none_or(|prev| prev <= document.generation());
        (newest && Stamp::of(self.path()).as_ref() == Some(&stamp)).then_some((stamp, document))
    }

    /// All three generations; under the lock, unless they are a BOINC client's, or there is nothing to put in order.
    fn look_closely(&self, memory: &mut Memory) -> Result<Document, StateError> {
        let copies = Copies::read(&self.files)?;
        if copies.is_foreign() || copies.are_none() || copies.are_lost() {
            return self.newest(copies).map(|newest| newest.document);
        }
        match Lock::acquire(&self.lock, self.patience) {
            Ok(_lock) => self.mended(memory),
            // A folder that we may not write can still be read.
            Err(LocalFault::Io { .. }) => self.newest(copies).map(|newest| newest.document),
            Err(fault) => Err(fault.into()),
        }
    }

    /// The newest generation, with what is damaged or unfinished put in order. The lock is held.
    fn mended(&self, memory: &mut Memory) -> Result<Document, StateError> {
        let copies = Copies::read(&self.files)?;
        let foreign = copies.is_foreign();
        let newest = self.newest(copies)?;
        if !foreign {
            memory.warnings.extend(newest.mend(&self.files)?);
        }
        Ok(newest.document)
    }

    fn newest(&self, copies: Copies) -> Result<Newest, StateError> {
        copies.newest().map_err(|damage| StateError::Damaged { path: damage.0, damage: damage.1 })
    }

    /// Writes the next generation and rotates it into place. The lock is held.
    fn write(&self, document: &mut Document) -> Result<Option<Stamp>, StateError> {
        document.next_generation();
        let size: usize = document.chunks().map(|chunk| chunk.len()).sum();
        if let Some(limit) = Damage::too_large(size as u64) {
            return Err(StateError::Unfit { path: self.path().to_owned(), why: limit.to_string() });
        }
        let first = !copies::is_there(self.path());
        durable::write_new(&self.files.next, document.chunks(), durable::PRIVATE)?;
        self.files.rotate().inspect_err(|_| {
            // A next generation that is whole would count at the next reading, although its change was refused.
            let _ = durable::remove(&self.files.next);
        })?;
        if first {
            // A process that was killed may have made the folder, and not flushed its name.
            durable::sync_way_to(durable::folder_of(self.path()));
        }
        document.mark_saved();
        Ok(Stamp::of(self.path()))
    }

    /// Before anything is created beside it: the file is not a BOINC client's. Ours shows its mark in its first lines.
    fn refuse_foreign_unlocked(&self) -> Result<(), StateError> {
        if copies::has_our_mark(self.path()) {
            return Ok(());
        }
        match copies::read(self.path())?.sound() {
            Some(document) => self.check_ours(&document),
            None => Ok(()),
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // A panic in a change leaves no half-changed document behind: it was taken out.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
