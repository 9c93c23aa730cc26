//! Opening the files of a download, and how much of them counts.
//!
//! What a process wrote is in the page cache, so after a kill a file's length tells what is held, if the machine has not
//! been started anew since. After that, only what was flushed counts. A file that no journal speaks of was small or
//! begun a moment ago, and is fetched again.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::core::file_xfer::dossier::{Dossier, Draft as DraftRecord};
use crate::core::range::Length;
use crate::io::part::draft::Draft;
use crate::io::part::fault::unlink;
use crate::io::part::flush::Flusher;
use crate::io::part::hasher::Hasher;
use crate::io::part::journal::Journal;
use crate::io::part::names::Names;
use crate::io::part::take::{Standing, Taken, look, take};
use crate::io::part::{Marked, Opened, PartStore, Published, Spec};

impl PartStore {
    /// Opens, or makes, the files of the download to `target`, and locks them. `dossier` is what the record knows of
    /// them; what it says is held is a hint only.
    ///
    /// # Errors
    /// [`LocalFault::InUse`] while another process (or another part of this one) has them; [`LocalFault::NotOurs`] where
    /// something stands there that may not be replaced; [`LocalFault::Io`], which names the folder where that is missing.
    pub fn open(target: &Path, dossier: &Dossier, spec: Spec) -> Result<Opened, LocalFault> {
        let names = Names::of(target);
        let mut remarks = Vec::new();
        let taken = take(&names.part, standing(&dossier.part), &mut remarks)?;
        let mut journal = Journal::open(&names.journal, spec.boot, spec.sync)?;
        let published = published(&names, &taken, &journal, dossier)?;
        if taken.length == 0 {
            discard_stale(&mut journal, published)?;
        }
        let part = adopt(taken, &names.part, &dossier.part, (&journal, Place::Part), &spec, &mut remarks)?;
        let rival = open_rival(&names, dossier, &journal, &spec, &mut remarks)?;
        let marked = mark(&mut journal)?;
        let store = Self {
            names,
            spec,
            part,
            rival,
            journal: Arc::new(Mutex::new(journal)),
            marked,
            flusher: Flusher::default(),
            fresh: 0,
            checkpoint_at: None,
            waiting_since: None,
        };
        let (part_held, rival_held) = (Length(store.part.held()), store.rival.as_ref().map(|r| Length(r.held())));
        Ok(Opened { store, part_held, rival_held, published, remarks })
    }

    /// Removes the files of a download that does not run: nothing of it is wanted any more.
    ///
    /// # Errors
    /// [`LocalFault::InUse`] where it does run; [`LocalFault::Io`].
    pub fn remove(target: &Path) -> Result<(), LocalFault> {
        let names = Names::of(target);
        let there = [&names.part, &names.rival, &names.journal].map(|path| look(path));
        if there.iter().all(|found| matches!(found, Ok(None))) {
            return Ok(());
        }
        // Held until the others are gone too.
        let _locked = take(&names.part, Standing::Orphan, &mut Vec::new())?;
        unlink(&names.rival)?;
        unlink(&names.journal)?;
        unlink(&names.part)
    }
}

fn open_rival(
    names: &Names,
    dossier: &Dossier,
    journal: &Journal,
    spec: &Spec,
    remarks: &mut Vec<String>,
) -> Result<Option<Draft>, LocalFault> {
    let there = look(&names.rival)?.is_some();
    match &dossier.rival {
        Some(record) if there => {
            let taken = take(&names.rival, Standing::Claimed, remarks)?;
            adopt(taken, &names.rival, record, (journal, Place::Rival), spec, remarks).map(Some)
        }
        _ if there => unlink(&names.rival).map(|()| None),
        _ => Ok(None),
    }
}

/// What is left of both files counts in this boot, too.
fn mark(journal: &mut Journal) -> Result<Marked, LocalFault> {
    if !journal.exists() {
        return Ok(Marked::No);
    }
    journal.begin().map(|()| Marked::Yes)
}

/// Makes a draft of a file: as much of it as counts.
fn adopt(
    taken: Taken,
    path: &Path,
    record: &DraftRecord,
    (journal, place): (&Journal, Place),
    spec: &Spec,
    remarks: &mut Vec<String>,
) -> Result<Draft, LocalFault> {
    let held = trusted(taken.length, record, journal, place);
    remarks.extend(shortfall(taken.length, held, record, path));
    let proof = journal.known(place).proof.clone().filter(|p| p.inode == taken.inode && p.sums.length <= held);
    let mut draft = Draft::new(taken, path.to_owned(), held)?;
    if let Some(run) = PartStore::new_run(spec, &draft) {
        let run = match proof {
            Some(proof) => run.resume(proof.into()),
            None => run,
        };
        draft.hasher = Some(Hasher::new(run));
    }
    Ok(draft)
}

/// How many bytes of a file of `length` count.
fn trusted(length: u64, record: &DraftRecord, journal: &Journal, place: Place) -> u64 {
    let survived = if !journal.exists() {
        0
    } else if journal.same_boot() {
        length
    } else {
        journal.known(place).flushed.min(length)
    };
    record.total.map_or(survived, |total| survived.min(total.0))
}

/// What to say where less is held than the record or the file would make believe.
fn shortfall(length: u64, held: u64, record: &DraftRecord, path: &Path) -> Option<String> {
    let path = path.display();
    if held < length && record.total.is_none_or(|total| held < total.0) {
        return Some(format!(
            "of the {length} bytes in {path}, {held} are known to have survived; the rest is fetched again"
        ));
    }
    let recorded = record.held.0;
    (held < recorded)
        .then(|| format!("{path} holds {held} bytes of the {recorded} recorded; the rest is fetched again"))
}

/// The record knows something of a draft, so the file is its own.
fn standing(record: &DraftRecord) -> Standing {
    if *record == DraftRecord::default() { Standing::Orphan } else { Standing::Claimed }
}

/// The part file is new: does the file that it was stand under the final name?
fn published(
    names: &Names,
    taken: &Taken,
    journal: &Journal,
    dossier: &Dossier,
) -> Result<Option<Published>, LocalFault> {
    if taken.length > 0 || standing(&dossier.part) == Standing::Orphan {
        return Ok(None);
    }
    let Some(claim) = journal.known(Place::Part).claim else { return Ok(None) };
    let whole = dossier.part.total.is_none_or(|total| total.0 == claim.held);
    let found =
        look(&names.target)?.filter(|m| m.is_file() && whole && m.ino() == claim.inode && m.len() == claim.held);
    Ok(found.map(|m| Published {
        size: Length(m.len()),
        mtime_ns: i128::from(m.mtime()) * 1_000_000_000 + i128::from(m.mtime_nsec()),
        inode: m.ino(),
    }))
}

/// The part file is empty, so what the journal says of it is past. It stays on the disk where it tells of a file that was
/// published, until the caller has understood: then `close` removes it.
fn discard_stale(journal: &mut Journal, published: Option<Published>) -> Result<(), LocalFault> {
    match published {
        Some(_) => journal.forget(),
        None => journal.remove()?,
    }
    Ok(())
}
