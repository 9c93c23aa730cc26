//! Drafts change places: a cut back to bytes that agree, a rival beside the part, one in place of the other.
//!
//! These steps are rare and wait for whatever is being flushed. Each leaves a state that the rules of `open` read right,
//! wherever it is interrupted.

use std::io::{self, Seek as _};

use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::core::range::{Length, RangeSet};
use crate::io::durable::{self, Clobber};
use crate::io::effects;
use crate::io::part::draft::{Draft, Gaps};
use crate::io::part::fault::{on, unlink, write_fault};
use crate::io::part::flush::lock;
use crate::io::part::known::{before, head};
use crate::io::part::record::{Claim, Entry, Segments};
use crate::io::part::take::{Standing, Taken, take};
use crate::io::part::{PartStore, SyncMode, witness};

impl PartStore {
    /// Cuts a draft to its first `to` bytes; what is held of the part beyond gaps goes as well. One that holds no more
    /// stays as it is.
    ///
    /// # Errors
    /// [`LocalFault::Io`].
    pub fn cut(&mut self, place: Place, to: Length) -> Result<(), LocalFault> {
        self.settle(place)?;
        match place {
            Place::Part => self.retain(before(self.part.written(), to.0)),
            Place::Rival if self.held(place) <= to => Ok(()),
            Place::Rival => self.cut_rival(to),
        }
    }

    fn cut_rival(&mut self, to: Length) -> Result<(), LocalFault> {
        // First the word, then the deed: a file longer than the journal says is harmless, the other way round is not.
        let inode = self.draft_mut(Place::Rival)?.inode;
        self.record(&[Entry::Claim(Place::Rival, Claim { held: to.0, flushed: false, inode })])?;
        let draft = self.draft_mut(Place::Rival)?;
        // It reads the file.
        draft.hasher = None;
        draft.keep(&head(to.0))?;
        self.begin_digests(Place::Rival)
    }

    /// Begins the rival, in place of an older one, with a copy of the part's first `at` bytes (all, where it holds fewer).
    ///
    /// # Errors
    /// [`LocalFault::DiskFull`] where there is no room for two; the part is untouched.
    pub fn fork(&mut self, at: Length) -> Result<(), LocalFault> {
        let at = self.settle(Place::Part)?.min(at);
        self.drop_rival()?;
        if lock(&self.journal).known(Place::Rival).flushed > 0 {
            // Of one that is gone.
            self.record(&begun(Place::Rival, 0, SyncMode::None, 0))?;
        }
        let path = self.names.rival.clone();
        let taken = take(&path, Standing::Orphan, &mut Vec::new())?;
        if let Err(e) = copy_start(&self.part, &taken, at.0) {
            unlink(&path)?;
            return Err(write_fault(&path, at.0, &e));
        }
        let mut rival = Draft::new(Taken { length: at.0, ..taken }, path, &head(at.0), Gaps::No)?;
        rival.begin_digests(&self.spec, None);
        // Else a loss of power could bring back an older rival under the name of which this one's bytes are claimed.
        lock(&self.journal).names_changed();
        self.record(&begun(Place::Rival, at.0, SyncMode::None, rival.inode))?;
        self.rival = Some(rival);
        Ok(())
    }

    /// The rival takes the part's place; the part's bytes are gone. Without a rival, nothing happens.
    ///
    /// # Errors
    /// [`LocalFault::Io`].
    pub fn promote(&mut self) -> Result<(), LocalFault> {
        if self.rival.is_none() {
            return Ok(());
        }
        self.settle(Place::Rival)?;
        self.flusher.wait()?;
        let Some(mut rival) = self.rival.take() else { return Ok(()) };
        let sync = self.spec.sync;
        let mut words = begun(Place::Part, rival.held(), sync, rival.inode).to_vec();
        words.extend(begun(Place::Rival, 0, sync, 0));
        if sync == SyncMode::Full {
            // Flushed whole, so that even what the journal says of the old part is true of the new one until it says more.
            effects::sync_data(&rival.file).map_err(on("flush", &rival.path))?;
        } else if self.part.gaps == Gaps::No {
            self.record(&words)?;
        } else {
            // Not the words yet: by them the length of the old part would count, should we be killed before the new one is in
            // its place. That nothing of it was flushed is true of both.
            let nothing = Segments { held: RangeSet::new(), flushed: true, inode: self.part.inode };
            self.record(&[Entry::Segments(Place::Part, nothing)])?;
        }
        durable::publish(&self.names.rival, &self.names.part, Clobber::Replace)?;
        if sync == SyncMode::Full {
            durable::sync_dir(self.names.folder())?;
        }
        if sync == SyncMode::Full || self.part.gaps == Gaps::Told {
            self.record(&words)?;
        }
        rival.path.clone_from(&self.names.part);
        self.part = rival;
        Ok(())
    }

    /// The rival goes; without one, nothing happens.
    ///
    /// # Errors
    /// [`LocalFault::Io`].
    pub fn drop_rival(&mut self) -> Result<(), LocalFault> {
        if self.rival.take().is_some() {
            unlink(&self.names.rival)?;
            self.record(&begun(Place::Rival, 0, SyncMode::None, 0))?;
        }
        Ok(())
    }

    /// Everything goes at once, drafts and journal: the bytes are wrong, or nobody wants them.
    ///
    /// # Errors
    /// [`LocalFault::Io`].
    pub fn discard(mut self) -> Result<(), LocalFault> {
        // What a checkpoint met is of no interest any more.
        let _ = self.flusher.wait();
        unlink(&self.names.part)?;
        if !witness::stands(&self.names)? {
            unlink(&self.names.rival)?;
        }
        lock(&self.journal).remove_for_good()
    }

    /// Writes records, after any that a checkpoint is still about to write, and flushes them.
    pub(super) fn record(&mut self, entries: &[Entry]) -> Result<(), LocalFault> {
        self.flusher.wait()?;
        self.mark_journal()?;
        lock(&self.journal).record(entries)
    }
}

/// A draft that has nothing to do with what was said of its place before.
pub(super) fn begun(place: Place, held: u64, sync: SyncMode, inode: u64) -> [Entry; 2] {
    let nothing = Claim { held: 0, flushed: true, inode };
    [Entry::Claim(place, nothing), Entry::Claim(place, Claim { held, flushed: sync == SyncMode::Full, inode })]
}

/// Copies the first `at` bytes; the kernel shares them instead where the file system can.
fn copy_start(part: &Draft, rival: &Taken, at: u64) -> io::Result<()> {
    let mut from = &*part.file;
    from.rewind()?;
    let copied = effects::copy(from, &rival.file, at)?;
    if copied == at { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
