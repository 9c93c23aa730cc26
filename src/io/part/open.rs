//! Opening the files of a download, and how much of them counts.
//!
//! What a process wrote is in the page cache, so after a kill a file's length tells what is held, if the machine has not
//! been started anew since. After that, only what was flushed counts. A file that no journal speaks of was small or
//! begun a moment ago, and is fetched again.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::core::file_xfer::dossier::{Dossier, Draft as DraftRecord};
use crate::core::range::{Length, RangeSet};
use crate::io::durable;
use crate::io::part::beat::Beat;
use crate::io::part::draft::{Draft, Gaps, Trust};
use crate::io::part::fault::unlink;
use crate::io::part::flush::Flusher;
use crate::io::part::journal::{Journal, next_of};
use crate::io::part::known::{Lasting, before, head};
use crate::io::part::names::Names;
use crate::io::part::record::{Claim, Entry, Segments};
use crate::io::part::seen::Seen;
use crate::io::part::take::{Standing, Taken, hold, look, take};
use crate::io::part::versions::begun;
use crate::io::part::{Marked, Opened, PartStore, Promoted, Spec, SyncMode, witness};

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
        witness::part_is_not_published(&names)?;
        let taken = take(&names.part, standing(&dossier.part), &mut remarks)?;
        let mut journal = Journal::open(&names.journal, spec.boot, spec.sync)?;
        let (dossier, promoted) = after_promotion(&names, dossier, &taken, &mut journal, spec.sync)?;
        if taken.length == 0 {
            discard_stale(&names, &dossier, &mut journal)?;
        }
        let part = adopt(taken, &names.part, &dossier.part, (&mut journal, Place::Part), &spec, &mut remarks)?;
        let rival = open_rival(&names, &dossier, &mut journal, &spec, &mut remarks)?;
        let marked = mark(&mut journal)?;
        let store = Self {
            names,
            spec,
            part,
            rival,
            journal: Arc::new(Mutex::new(journal)),
            marked,
            flusher: Flusher::default(),
            beat: Beat::new(),
        };
        let (part_held, rival_held) = (Length(store.part.held()), store.rival.as_ref().map(|r| Length(r.held())));
        let part_segments = store.segments();
        Ok(Opened { store, part_held, part_segments, rival_held, promoted, remarks })
    }

    /// Removes the files of a download that does not run: nothing of it is wanted any more.
    ///
    /// # Errors
    /// [`LocalFault::InUse`] where it does run; [`LocalFault::Io`].
    pub fn remove(target: &Path) -> Result<(), LocalFault> {
        Leftovers::hold(target)?.remove().map(drop)
    }
}

/// The files of a download that does not run, held so that none begins on them. Nothing is removed by dropping it.
#[derive(Debug)]
pub struct Leftovers {
    names: Names,
    /// The part file, locked, where there is one.
    part: Option<File>,
}

impl Leftovers {
    /// Those of the download to `target`, whether there or not.
    ///
    /// # Errors
    /// [`LocalFault::InUse`] where it runs; [`LocalFault::Io`].
    pub fn hold(target: &Path) -> Result<Self, LocalFault> {
        let names = Names::of(target);
        let part = hold(&names.part)?;
        Ok(Self { names, part })
    }

    /// Removes them; `false` where there was nothing.
    ///
    /// # Errors
    /// As [`Leftovers::hold`].
    pub fn remove(self) -> Result<bool, LocalFault> {
        let Self { names, part } = self;
        let there = [&names.part, &names.rival, &names.journal].map(|path| look(path));
        if there.iter().all(|found| matches!(found, Ok(None))) {
            return Ok(false);
        }
        // Held until the others are gone too.
        let _locked = match part {
            Some(file) => file,
            None => take(&names.part, Standing::Orphan, &mut Vec::new())?.file,
        };
        unlink(&names.rival)?;
        unlink(&names.journal)?;
        unlink(&next_of(&names.journal))?;
        unlink(&names.part)?;
        // A journal that a loss of power brings back would speak of files made since.
        durable::sync_dir(names.folder())?;
        Ok(true)
    }
}

fn open_rival(
    names: &Names,
    dossier: &Dossier,
    journal: &mut Journal,
    spec: &Spec,
    remarks: &mut Vec<String>,
) -> Result<Option<Draft>, LocalFault> {
    let there = look(&names.rival)?.is_some() && !witness::stands(names)?;
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
    (journal, place): (&mut Journal, Place),
    spec: &Spec,
    remarks: &mut Vec<String>,
) -> Result<Draft, LocalFault> {
    let counts = unbroken((&taken.file, taken.length, taken.inode), record, journal, place);
    let held = trusted(counts, record, journal, place);
    remarks.extend(shortfall(taken.length, &held, record, journal, place, path));
    let known = journal.known(place);
    // Before it is cut.
    let as_left = known.seen.is_some() && known.seen == Seen::now(&taken.file);
    let (proof, gaps) = (known.proof.clone(), if known.segments.is_some() { Gaps::Told } else { Gaps::No });
    // First the word, then the deed: what is written in place of what is cut off has not been flushed.
    if let Some(segments) = &known.segments {
        let told = Segments { held: held.clone(), flushed: false, inode: taken.inode };
        let news = (segments.written != held).then_some(Entry::Segments(place, told));
        // Flushed even where there is no news: an earlier process may have dropped bytes, and not lived to flush its word.
        journal.correct(&Vec::from_iter(news))?;
    } else if known.flushed.max(proof.as_ref().map_or(0, |p| p.sums.length)) > held.head().0 {
        let held = held.head().0;
        journal.correct(&[Entry::Claim(place, Claim { held, flushed: false, inode: taken.inode })])?;
    }
    let mut draft = Draft::new(taken, path.to_owned(), &held, gaps)?;
    draft.trust = if as_left || held.is_empty() { Trust::Yes } else { Trust::No };
    draft.begin_digests(spec, proof);
    Ok(draft)
}

/// How far a file's length tells what is held, where the journal knows of no gaps: up to the first hole beyond what it says
/// of this very file. A journal that was put in the place of the right one, an older one or another file's, knows of no
/// gaps although there are some; so does the record, and so do most file systems.
pub(super) fn unbroken(
    (file, length, inode): (&File, u64, u64),
    record: &DraftRecord,
    journal: &Journal,
    place: Place,
) -> u64 {
    let known = journal.known(place);
    if known.segments.is_some() || !journal.same_boot() {
        return length;
    }
    let told = known.claim.filter(|claim| claim.inode == inode).map_or(0, |claim| claim.held);
    let whole = if record.beyond == Length::ZERO { length } else { told.max(record.held.0).min(length) };
    first_hole(file, told.min(length)).map_or(whole, |hole| hole.min(whole))
}

/// The first hole behind this byte; `None` where the file system does not tell. The end of a file is one.
fn first_hole(file: &File, from: u64) -> Option<u64> {
    let hole = rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(from)).ok();
    let _ = rustix::fs::seek(file, rustix::fs::SeekFrom::Start(0));
    hole
}

/// Which bytes of a file of `length` count.
pub(super) fn trusted(length: u64, record: &DraftRecord, journal: &Journal, place: Place) -> RangeSet {
    let known = journal.known(place);
    let survived = match (journal.exists(), journal.same_boot()) {
        (false, _) => RangeSet::new(),
        (true, true) if known.segments.is_none() => head(length),
        (true, true) => known.claimed(Lasting::ThisBoot),
        (true, false) => known.claimed(Lasting::AnyBoot),
    };
    before(survived, record.total.map_or(length, |total| length.min(total.0)))
}

/// What to say where less is held than the record or the file would make believe.
fn shortfall(
    length: u64,
    held: &RangeSet,
    record: &DraftRecord,
    journal: &Journal,
    place: Place,
    path: &Path,
) -> Option<String> {
    let path = path.display();
    let there = match &journal.known(place).segments {
        // The length says nothing.
        Some(segments) => segments.written.length().0,
        None => length,
    };
    let survived = held.length().0;
    if survived < there && record.total.is_none_or(|total| survived < total.0) {
        return Some(format!(
            "of the {there} bytes in {path}, {survived} are known to have survived; the rest is fetched again"
        ));
    }
    let (held, recorded) = (held.head().0, record.held.0);
    (held < recorded)
        .then(|| format!("{path} holds {held} bytes of the {recorded} recorded; the rest is fetched again"))
}

/// The record knows something of a draft, so the file is its own.
fn standing(record: &DraftRecord) -> Standing {
    if *record == DraftRecord::default() { Standing::Orphan } else { Standing::Claimed }
}

/// The rival took the part's place, and the process ended before anybody could say so: what is known of the rival is
/// then true of the part.
fn after_promotion(
    names: &Names,
    dossier: &Dossier,
    taken: &Taken,
    journal: &mut Journal,
    sync: SyncMode,
) -> Result<(Dossier, Promoted), LocalFault> {
    let mut dossier = dossier.clone();
    if look(&names.rival)?.is_some() {
        return Ok((dossier, Promoted::No));
    }
    let inode = |place| journal.known(place).inode();
    if inode(Place::Rival) == Some(taken.inode) && inode(Place::Part) != Some(taken.inode) {
        durable::sync_dir(names.folder())?;
        let flushed = journal.known(Place::Rival).flushed;
        journal.correct(&[begun(Place::Part, flushed, sync, taken.inode), begun(Place::Rival, 0, sync, 0)].concat())?;
    }
    let promoted = dossier.part.inode != Some(taken.inode)
        && dossier.rival.as_ref().is_some_and(|rival| rival.inode == Some(taken.inode));
    if promoted {
        dossier.part = dossier.rival.take().unwrap_or_default();
    }
    Ok((dossier, if promoted { Promoted::Yes } else { Promoted::No }))
}

/// The part file is empty, so what the journal says of it is past; what it says of a rival is not.
fn discard_stale(names: &Names, dossier: &Dossier, journal: &mut Journal) -> Result<(), LocalFault> {
    if dossier.rival.is_none() || look(&names.rival)?.is_none() {
        return journal.remove_for_good();
    }
    if journal.known(Place::Part).holds_something() {
        return journal.correct(&begun(Place::Part, 0, SyncMode::None, 0));
    }
    Ok(())
}
