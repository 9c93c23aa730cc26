//! The end of a download: its digests, and its final name.

use crate::core::digest::Algorithm;
use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::core::pers_xfer::record::Finished;
use crate::core::range::Length;
use crate::io::durable;
use crate::io::part::fault::on;
use crate::io::part::flush::lock;
use crate::io::part::publish::{Publish, finish, finished};
use crate::io::part::run::Run;
use crate::io::part::{PartStore, SyncMode, take, witness};

impl PartStore {
    /// The digests of everything that the part holds. Only what the running digests have not seen is read; `progress` is
    /// told how far that has come.
    ///
    /// # Errors
    /// [`LocalFault::Io`] where the file cannot be read.
    pub fn digest(&mut self, progress: &mut dyn FnMut(Length)) -> Result<Vec<(Algorithm, Vec<u8>)>, LocalFault> {
        let held = self.settle(Place::Part)?;
        let Some(hasher) = &mut self.part.hasher else { return Ok(Vec::new()) };
        conclude(hasher.come_home(), held, progress)
    }

    /// The same, from nothing but the file itself. Worth it before bytes are called wrong: it says whether what was
    /// received is what the disk holds.
    ///
    /// # Errors
    /// As [`PartStore::digest`].
    pub fn digest_again(&mut self, progress: &mut dyn FnMut(Length)) -> Result<Vec<(Algorithm, Vec<u8>)>, LocalFault> {
        let held = self.settle(Place::Part)?;
        let Some(hasher) = &mut self.part.hasher else { return Ok(Vec::new()) };
        let run = hasher.come_home();
        *run = run.afresh();
        conclude(run, held, progress)
    }

    /// The part becomes the file of the final name, flushed (with [`SyncMode::Full`]), with the mode the umask gives; the
    /// rival and the journal go. A witness stays beside it until [`tidy`](super::tidy). Afterwards the store is good for
    /// nothing but to be dropped.
    ///
    /// # Errors
    /// [`LocalFault::NotOurs`] where the name is taken and may not be, or the part file was replaced under us;
    /// [`LocalFault::DiskFull`] and [`LocalFault::Io`]. The part stays.
    pub fn publish(&mut self, how: Publish) -> Result<Finished, LocalFault> {
        self.settle(Place::Part)?;
        self.flusher.wait()?;
        self.part.trim()?;
        self.check_part()?;
        finish(&self.part.file, &self.names.part, self.spec.sync, how.mtime)?;
        self.rival = None;
        witness::set(&self.names)?;
        let published = durable::publish(&self.names.part, &self.names.target, how.existing);
        if let Err(fault) = published {
            witness::part_is_not_published(&self.names)?;
            return Err(fault);
        }
        if self.spec.sync == SyncMode::Full {
            durable::sync_dir(self.names.folder())?;
        }
        lock(&self.journal).remove()?;
        finished(&self.part.file, &self.names.target, how)
    }

    /// The file that is about to be published is the one we wrote, no longer and no shorter, and has no gaps.
    fn check_part(&self) -> Result<(), LocalFault> {
        let path = &self.names.part;
        let length = self.part.file.metadata().map_err(on("examine", path))?.len();
        if !self.part.islands.is_empty() {
            let detail = format!("bytes from {} on are missing; please report this", self.part.held());
            return Err(LocalFault::Io { doing: "finish", path: path.display().to_string(), detail });
        }
        let ours = take::names(path, &self.part.file)? && length == self.part.held();
        let why = "was changed by somebody else while it was written; delete it and start again".into();
        if ours { Ok(()) } else { Err(LocalFault::NotOurs { path: path.display().to_string(), why }) }
    }
}

fn conclude(
    run: &mut Run,
    held: Length,
    progress: &mut dyn FnMut(Length),
) -> Result<Vec<(Algorithm, Vec<u8>)>, LocalFault> {
    run.catch_up(held.0, &mut |at| progress(Length(at)))?;
    Ok(run.finish())
}
