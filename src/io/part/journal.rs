//! The journal of a download: append-only records of what is held, what was flushed, and how far the digests have come.
//!
//! It begins with the first write-out that may outlive the process by a kill, so that a file fetched at once never has
//! one. A draft's data is flushed before a record says so; whoever appends sees to that order.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::io::durable::{self, Clobber};
use crate::io::effects;
use crate::io::part::boot::Boot;
use crate::io::part::fault::{fault, on, unlink};
use crate::io::part::known::Known;
use crate::io::part::names::{folder_of, sibling};
use crate::io::part::record::{Entry, PartLength, Proof, Segments, read_all};
use crate::io::part::run::Snapshot;
use crate::io::part::{SyncMode, take};

/// A journal longer than this is written anew with what counts: 1 MiB.
const LONG: u64 = 1 << 20;
/// How the name of a journal that is being written anew ends.
const NEXT: &str = "-next";
/// A journal longer than this is none of ours: 256 MiB.
const ABSURD: u64 = 256 << 20;

/// The journal, which may not exist yet.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    boot: Boot,
    sync: SyncMode,
    file: Option<File>,
    size: u64,
    /// This process has written its header.
    begun: bool,
    /// The folder knows its name, also after a loss of power.
    name_synced: bool,
    part: Known,
    rival: Known,
    /// The boot of the last header read.
    last_boot: Boot,
}

/// How a journal ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With a whole record.
    Whole,
    /// With something that cannot be read.
    Torn,
}

impl Journal {
    fn unread(path: &Path, boot: Boot, sync: SyncMode) -> Self {
        Self {
            path: path.to_owned(),
            boot,
            sync,
            file: None,
            size: 0,
            begun: false,
            name_synced: false,
            part: Known::default(),
            rival: Known::default(),
            last_boot: Boot::Unknown,
        }
    }

    /// Reads what there is at `path`. The lock on the part file covers it.
    pub(super) fn open(path: &Path, boot: Boot, sync: SyncMode) -> Result<Self, LocalFault> {
        let mut journal = Self::unread(path, boot, sync);
        // What a process left that was killed while it wrote the journal anew.
        if take::look(&next_of(path))?.is_some() {
            unlink(&next_of(path))?;
        }
        if let Some(file) = take::existing_own(path)? {
            journal.read(file)?;
        }
        Ok(journal)
    }

    /// What a journal says, which stays as it is; and whether it says that to its end. `None` where it says nothing.
    pub(super) fn peek(file: File, path: &Path, boot: Boot) -> Result<(Option<Self>, Ending), LocalFault> {
        let bytes = contents(&file, path)?;
        let (entries, good) = read_all(&bytes);
        let ending = if good == bytes.len() as u64 { Ending::Whole } else { Ending::Torn };
        if entries.is_empty() {
            return Ok((None, ending));
        }
        let mut journal = Self::unread(path, boot, SyncMode::None);
        entries.into_iter().for_each(|e| journal.learn(e));
        // Open for reading, so that nothing can be changed by it.
        journal.file = Some(file);
        Ok((Some(journal), ending))
    }

    /// Something was there to read.
    pub(super) const fn exists(&self) -> bool {
        self.file.is_some()
    }

    /// It was last written in this very boot, so the page cache still holds whatever was written to the drafts.
    pub(super) fn same_boot(&self) -> bool {
        self.boot.is(self.last_boot)
    }

    /// As [`Journal::record`], while the files are being opened: not yet in the name of this boot, in which their lengths
    /// would count before they have been cut. Where there is no journal, there is nothing to correct.
    pub(super) fn correct(&mut self, entries: &[Entry]) -> Result<(), LocalFault> {
        self.write(entries)?;
        self.flush_if_wanted()
    }

    /// Records words that must be on the disk before what they announce is done.
    pub(super) fn record(&mut self, entries: &[Entry]) -> Result<(), LocalFault> {
        self.append(entries)?;
        self.flush_if_wanted()
    }

    fn flush_if_wanted(&mut self) -> Result<(), LocalFault> {
        match self.sync {
            SyncMode::Full => self.flush(),
            SyncMode::None => Ok(()),
        }
    }

    /// What it says of a draft.
    pub(super) const fn known(&self, place: Place) -> &Known {
        match place {
            Place::Part => &self.part,
            Place::Rival => &self.rival,
        }
    }

    /// Marks it with this boot, once a process; makes it where there is none. From here on the drafts' lengths count
    /// after a kill, so both must have been cut to what is held.
    pub(super) fn begin(&mut self) -> Result<(), LocalFault> {
        if self.begun {
            return Ok(());
        }
        if self.file.is_none() {
            self.file = Some(take::create_own(&self.path).map_err(on("create", &self.path))?);
        }
        self.begun = true;
        self.write(&[Entry::Header(self.boot, self.part_length())]).inspect_err(|_| self.begun = false)
    }

    /// From now on the part's length tells nothing: these segments are held, until more is said. The journal is written
    /// anew for it, so that its very first record says so, whatever becomes of the others.
    pub(super) fn declare_gaps(&mut self, segments: Segments) -> Result<(), LocalFault> {
        let before = (self.part.clone(), self.last_boot, self.begun);
        self.learn(Entry::Segments(Place::Part, segments));
        (self.last_boot, self.begun) = (self.boot, true);
        if let Err(fault) = self.compact() {
            (self.part, self.last_boot, self.begun) = before;
            return Err(fault);
        }
        self.flush_if_wanted()
    }

    const fn part_length(&self) -> PartLength {
        if self.part.segments.is_some() { PartLength::HasGaps } else { PartLength::Counts }
    }

    /// Appends records, in one write.
    pub(super) fn append(&mut self, entries: &[Entry]) -> Result<(), LocalFault> {
        self.begin()?;
        self.write(entries)?;
        if self.size > LONG { self.compact() } else { Ok(()) }
    }

    fn write(&mut self, entries: &[Entry]) -> Result<(), LocalFault> {
        let bytes: Vec<u8> = entries.iter().flat_map(Entry::encode).collect();
        let Some(file) = &mut self.file else { return Ok(()) };
        if let Err(e) = effects::Writer(file).write_all(&bytes) {
            // A torn record would hide all that follow it.
            let _ = effects::set_length(file, self.size).and_then(|()| file.seek(SeekFrom::Start(self.size)));
            return Err(fault("write", &self.path, &e));
        }
        self.size += bytes.len() as u64;
        entries.iter().for_each(|e| self.learn(e.clone()));
        Ok(())
    }

    /// Everything appended so far is on the disk afterwards, and the files' names too.
    pub(super) fn flush(&mut self) -> Result<(), LocalFault> {
        let Some(file) = &self.file else { return Ok(()) };
        effects::sync_data(file).map_err(on("flush", &self.path))?;
        if !self.name_synced {
            durable::sync_dir(folder_of(&self.path))?;
            self.name_synced = true;
        }
        Ok(())
    }

    /// The record of where a draft's digests stand: only the sums that the one before it lacks.
    pub(super) fn proof_of(&self, place: Place, inode: u64, snapshot: Snapshot) -> Entry {
        let Snapshot { mut sums, states } = snapshot;
        let told = self.known(place).proof.as_ref().filter(|p| p.inode == inode && p.sums.block == sums.block);
        let first = told.map_or(0, |p| p.sums.whole.len());
        let fits = told.is_some_and(|p| sums.whole.starts_with(&p.sums.whole));
        let first = if fits { first } else { 0 };
        sums.whole.drain(..first);
        // At most 4096 blocks.
        Entry::Proof(place, Proof { inode, first: first as u32, sums, states })
    }

    /// A name beside it was given to another file: the folder is flushed before anything is claimed of that one.
    pub(super) const fn names_changed(&mut self) {
        self.name_synced = false;
    }

    /// Ends it: the file is gone afterwards, and nothing is known. After a loss of power it may be back.
    pub(super) fn remove(&mut self) -> Result<(), LocalFault> {
        if self.file.is_some() {
            unlink(&self.path)?;
        }
        (self.file, self.size, self.begun, self.name_synced) = (None, 0, false, false);
        (self.part, self.rival) = (Known::default(), Known::default());
        Ok(())
    }

    /// The same, for good: it would speak of files that have another content by then.
    pub(super) fn remove_for_good(&mut self) -> Result<(), LocalFault> {
        let there = self.exists();
        self.remove()?;
        if there && self.sync == SyncMode::Full { durable::sync_dir(folder_of(&self.path)) } else { Ok(()) }
    }

    fn read(&mut self, mut file: File) -> Result<(), LocalFault> {
        let bytes = contents(&file, &self.path)?;
        let (entries, good) = read_all(&bytes);
        if entries.is_empty() {
            return unlink(&self.path);
        }
        entries.into_iter().for_each(|e| self.learn(e));
        effects::set_length(&file, good)
            .and_then(|()| file.seek(SeekFrom::Start(good)))
            .map_err(on("cut", &self.path))?;
        (self.file, self.size) = (Some(file), good);
        Ok(())
    }

    fn learn(&mut self, entry: Entry) {
        match entry {
            Entry::Header(boot, length) => {
                self.last_boot = boot;
                if length == PartLength::HasGaps {
                    self.part.has_gaps();
                }
            }
            Entry::Claim(place, claim) => self.known_mut(place).claim(claim),
            Entry::Segments(place, segments) => self.known_mut(place).segments(segments),
            Entry::Proof(place, proof) => self.known_mut(place).proof(proof),
            Entry::Spans(inode, spans) => self.part.spans(inode, spans),
            Entry::Seen(place, seen) => self.known_mut(place).seen = Some(seen),
        }
    }

    const fn known_mut(&mut self, place: Place) -> &mut Known {
        match place {
            Place::Part => &mut self.part,
            Place::Rival => &mut self.rival,
        }
    }

    /// Writes it anew, with the last word on each draft only.
    fn compact(&mut self) -> Result<(), LocalFault> {
        let next = next_of(&self.path);
        let file = take::create_own(&next).map_err(on("create", &next))?;
        let bytes: Vec<u8> = self.summary().iter().flat_map(Entry::encode).collect();
        effects::Writer(&file).write_all(&bytes).map_err(on("write", &next))?;
        if self.sync == SyncMode::Full {
            effects::sync_data(&file).map_err(on("flush", &next))?;
        }
        durable::publish(&next, &self.path, Clobber::Replace)?;
        (self.file, self.size, self.name_synced) = (Some(file), bytes.len() as u64, false);
        Ok(())
    }

    fn summary(&self) -> Vec<Entry> {
        let mut entries = vec![Entry::Header(self.last_boot, self.part_length())];
        entries.extend(self.part.summary(Place::Part));
        entries.extend(self.rival.summary(Place::Rival));
        entries
    }
}

/// The name of a journal that is being written anew.
pub(super) fn next_of(path: &Path) -> PathBuf {
    sibling(path, NEXT)
}

fn contents(file: &File, path: &Path) -> Result<Vec<u8>, LocalFault> {
    let mut bytes = Vec::new();
    file.take(ABSURD).read_to_end(&mut bytes).map_err(on("read", path))?;
    Ok(bytes)
}

#[cfg(test)]
mod fuzzed;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::digest::Algorithm;
    use crate::io::part::record::Claim;
    use crate::io::part::sums::Sums;

    const BOOT: Boot = Boot::Id([3; 16]);

    fn snapshot(blocks: u32) -> Snapshot {
        let whole: Vec<u32> = (0..blocks).map(|i| i * 7).collect();
        let sums = Sums { length: u64::from(blocks) << 24, whole, ..Sums::default() };
        Snapshot { sums, states: vec![(Algorithm::Sha512, vec![blocks as u8; 200])] }
    }

    fn claim(held: u64) -> Entry {
        Entry::Claim(Place::Part, Claim { held, flushed: true, inode: 5 })
    }

    #[test]
    fn a_long_journal_is_written_anew_and_says_the_same() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("j");
        let mut journal = Journal::open(&path, BOOT, SyncMode::None).expect("opened");
        let mut longest = 0;
        for i in 1..6000 {
            journal.append(&[claim(u64::from(i) << 24)]).expect("appended");
            let proof = journal.proof_of(Place::Part, 5, snapshot(i.min(3000)));
            journal.append(&[proof]).expect("appended");
            longest = longest.max(journal.size);
        }
        journal.append(&[Entry::Claim(Place::Rival, Claim { held: 9, flushed: false, inode: 6 })]).expect("appended");
        assert!(longest > LONG / 2 && longest < LONG + 4096, "{longest}");
        let again = Journal::open(&path, BOOT, SyncMode::None).expect("opened");
        assert!(again.exists() && again.same_boot());
        assert_eq!((&again.part, &again.rival), (&journal.part, &journal.rival));
        assert_eq!(again.part.flushed, 5999 << 24);
        assert_eq!(again.part.proof.clone().map(Snapshot::from), Some(snapshot(3000)));
        assert_eq!(std::fs::read_dir(dir.path()).expect("the folder").count(), 1);
    }
}
