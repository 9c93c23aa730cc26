//! Looking into the files of a download without touching them, and taking out of them what is damaged.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::core::file_xfer::dossier::{Dossier, Draft as DraftRecord};
use crate::core::range::{ByteRange, Length, Offset, RangeSet};
use crate::io::part::check::wrong_spans;
use crate::io::part::fault::on;
use crate::io::part::journal::{Ending, Journal};
use crate::io::part::known::{Lasting, before};
use crate::io::part::names::Names;
use crate::io::part::open::{trusted, unbroken};
use crate::io::part::take::{holder, look};
use crate::io::part::{Boot, PartStore, Spec, SyncMode, is_published};

/// What was found in the files of a download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// What stands where the part file belongs.
    pub part: PartState,
    /// Bytes in the part file, whatever they are worth.
    pub length: Length,
    /// What a download that begins now would call held, damage included.
    pub held: RangeSet,
    /// Bytes that have sums, all of which were read and compared.
    pub verified: RangeSet,
    /// What is known to be wrong, in order: blocks that do not have their sum, and bytes said to be held that lie beyond the
    /// file's end (and are not in `held`). While a process has the files this is a hint only: it may be changing them.
    pub damaged: Vec<ByteRange>,
    /// The state of the journal.
    pub journal: JournalState,
    /// The process that works on the files: its number, or "another".
    pub holder: Option<String>,
}

/// Is there a part file?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartState {
    /// There is.
    Regular,
    /// Nothing stands there.
    Missing,
    /// Nothing stands there, for the file has its final name, of which the state has not been told.
    Published,
    /// A folder stands there: a session refuses it.
    Folder,
    /// A link, a pipe or the like stands there: a session replaces it, and it is never opened.
    Strange,
}

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Only at what is said to be held.
    Outline,
    /// At the bytes as well, where they have sums.
    Bytes,
}

/// The state of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalState {
    /// All of it can be read.
    Sound,
    /// There is none, so nothing counts as held.
    Missing,
    /// It can be read up to some record. After a crash that is no wonder; nothing wrong is called held by it.
    Torn,
    /// Its beginning cannot be read, so nothing counts as held.
    Unreadable,
}

/// Looks into the part file and the journal of the download to `target`. Nothing is changed, and no lock is needed. All
/// bytes that have block sums are read, which takes its time.
///
/// # Errors
/// [`LocalFault::Io`] where something that is there cannot be read.
pub fn inspect(target: &Path, dossier: &Dossier) -> Result<Inspection, LocalFault> {
    look_into(target, dossier, Boot::current(), Look::Bytes)
}

/// The same without a look at the bytes: quick, `verified` is empty, and of `damaged` only what lies beyond the file's end
/// is told.
///
/// # Errors
/// As [`inspect`].
pub fn outline(target: &Path, dossier: &Dossier) -> Result<Inspection, LocalFault> {
    look_into(target, dossier, Boot::current(), Look::Outline)
}

/// Takes these bytes out of what is held: the download fetches them again. Gives what is left.
///
/// # Errors
/// [`LocalFault::InUse`] while a process works on the files; [`LocalFault::NotOurs`] where the record knows of no part file;
/// else as [`PartStore::open`].
pub fn repair(target: &Path, dossier: &Dossier, damaged: &[ByteRange]) -> Result<RangeSet, LocalFault> {
    repair_in(target, dossier, damaged, Boot::current())
}

pub(super) fn look_into(target: &Path, dossier: &Dossier, boot: Boot, closely: Look) -> Result<Inspection, LocalFault> {
    let names = Names::of(target);
    let part = standing(target, &names, &dossier.part)?;
    // Before the journal: while a process makes the first gap, a length that is looked at later may count its island.
    let file = open(&names.part)?;
    let length =
        file.as_ref().map(File::metadata).transpose().map_err(on("examine", &names.part))?.map_or(0, |m| m.len());
    let (journal, state) = match open(&names.journal)? {
        None => (None, JournalState::Missing),
        Some(file) => match Journal::peek(file, &names.journal, boot)? {
            (None, _) => (None, JournalState::Unreadable),
            (Some(journal), Ending::Torn) => (Some(journal), JournalState::Torn),
            (Some(journal), Ending::Whole) => (Some(journal), JournalState::Sound),
        },
    };
    let mut found = Inspection {
        part,
        length: Length(length),
        held: RangeSet::new(),
        verified: RangeSet::new(),
        damaged: Vec::new(),
        journal: state,
        holder: file.as_ref().and_then(holder),
    };
    if let Some(journal) = &journal {
        judge(&mut found, (file.as_ref(), closely), &names.part, &dossier.part, journal)?;
    }
    Ok(found)
}

/// What stands where the part file belongs, itself and not where it may lead.
fn standing(target: &Path, names: &Names, part: &DraftRecord) -> Result<PartState, LocalFault> {
    Ok(match look(&names.part)? {
        None if look(target)?.is_some_and(|meta| is_published(target, part, &meta)) => PartState::Published,
        None => PartState::Missing,
        Some(meta) if meta.is_file() => PartState::Regular,
        Some(meta) if meta.is_dir() => PartState::Folder,
        Some(_) => PartState::Strange,
    })
}

pub(super) fn repair_in(
    target: &Path,
    dossier: &Dossier,
    damaged: &[ByteRange],
    boot: Boot,
) -> Result<RangeSet, LocalFault> {
    if dossier.part == DraftRecord::default() {
        let path = Names::of(target).part.display().to_string();
        return Err(LocalFault::NotOurs { path, why: "belongs to no known download".into() });
    }
    let spec = Spec { boot, ..Spec::new(Vec::new(), SyncMode::Full) };
    let mut store = PartStore::open(target, dossier, spec)?.store;
    damaged.iter().try_for_each(|range| store.drop_range(*range))?;
    let left = store.segments();
    store.close()?;
    Ok(left)
}

/// Compares the file with what the journal says of it.
fn judge(
    found: &mut Inspection,
    (file, closely): (Option<&File>, Look),
    path: &Path,
    record: &DraftRecord,
    journal: &Journal,
) -> Result<(), LocalFault> {
    let meta = file.map(File::metadata).transpose().map_err(on("examine", path))?;
    let length = meta.as_ref().map_or(0, std::fs::Metadata::len);
    let known = journal.known(Place::Part);
    let counts = match (file, &meta) {
        (Some(file), Some(meta)) if known.segments.is_none() => {
            unbroken((file, length.min(found.length.0), meta.ino()), record, journal, Place::Part)
        }
        _ => length,
    };
    found.held = trusted(counts, record, journal, Place::Part);
    found.length = Length(length);
    let lasting = if journal.same_boot() { Lasting::ThisBoot } else { Lasting::AnyBoot };
    let mut claimed = known.claimed(lasting);
    if let Some(total) = record.total {
        claimed = before(claimed, total.0);
    }
    claimed.remove(ByteRange::new(Offset::ZERO, Offset(length)));
    if closely == Look::Bytes
        && let (Some(file), Some(meta)) = (file, meta)
    {
        let spans = known.vouched(meta.ino(), &found.held);
        found.verified = spans.iter().map(|span| span.range).collect();
        found.damaged = wrong_spans(file, &spans).map_err(on("read", path))?.iter().collect();
    }
    found.damaged.extend(claimed.iter());
    Ok(())
}

/// Opens a regular file for reading only, not through a link; `None` where none stands there.
fn open(path: &Path) -> Result<Option<File>, LocalFault> {
    if !look(path)?.is_some_and(|meta| meta.is_file()) {
        return Ok(None);
    }
    // Flags have few bits, none of them the sign.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(on("open", path)(e)),
    }
}
