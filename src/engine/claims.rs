//! Claims: which transfers this process runs, said so that every other process knows (design section 5).
//!
//! A record is ours from the commit that writes our id into it to the one that takes it out, or to our death. Each commit
//! looks at what is on disk *then*: a record that is another's is never written, and a wish that is not obeyed yet stays.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::core::failure::LocalFault;
use crate::core::pers_xfer::record::{Direction, Record, Status, XferId};
use crate::core::pers_xfer::sharing::{self, OwnerId};
use crate::core::range::Length;
use crate::core::state::Document;
use crate::core::time::Now;

use crate::engine::ended::held_of;
use crate::io::owner::{self, LifeSign};
use crate::io::part;

/// So many times is another id drawn where one is taken.
const DRAWS: usize = 8;

/// What this process holds.
#[derive(Debug)]
pub(super) struct Claims {
    state_file: PathBuf,
    me: Option<(OwnerId, LifeSign)>,
    held: BTreeSet<XferId>,
    /// The generation of our latest commit: an older one on disk is another file.
    generation: u64,
}

/// What a record is to be after a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// Ours.
    Ours,
    /// Nobody's: it is over, or rests.
    Free,
}

/// What came of writing a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// It is written.
    Written,
    /// It is written, nobody's, and wants to be run: a wish came in at the last moment.
    Revived,
    /// It is another's, or somebody has forgotten it: it must not be run on.
    Lost(Loss),
}

/// Why a transfer is no longer ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// Another process runs it.
    InUse(LocalFault),
    /// Its record was taken out.
    Forgotten,
}

/// Who lives, each looked up once.
#[derive(Debug)]
pub(super) struct Living<'a> {
    state_file: &'a Path,
    known: BTreeMap<OwnerId, Option<String>>,
}

impl<'a> Living<'a> {
    pub(super) fn new(state_file: &'a Path) -> Self {
        Self { state_file, known: BTreeMap::new() }
    }

    /// The process of that id, where it lives.
    pub(super) fn holder(&mut self, id: OwnerId) -> Option<String> {
        self.known.entry(id).or_insert_with(|| owner::living(self.state_file, id)).clone()
    }

    /// The fault of a record that another process runs.
    pub(super) fn in_use(&mut self, record: &Record) -> Option<LocalFault> {
        let holder = self.holder(record.owner?)?;
        Some(LocalFault::InUse { path: place(record), holder })
    }
}

impl Claims {
    pub(super) fn new(state_file: &Path) -> Self {
        Self { state_file: state_file.to_owned(), me: None, held: BTreeSet::new(), generation: 0 }
    }

    /// Shows that we live; called before the first claim is written.
    pub(super) fn show_life(&mut self, rng: &mut dyn rand::Rng) -> Result<OwnerId, LocalFault> {
        if let Some((id, _)) = &self.me {
            return Ok(*id);
        }
        let mut draws = 0;
        loop {
            let id = OwnerId(rand::RngExt::random(rng));
            match LifeSign::begin(&self.state_file, id) {
                Ok(sign) => {
                    self.me = Some((id, sign));
                    return Ok(id);
                }
                Err(LocalFault::InUse { .. }) if draws < DRAWS => draws += 1,
                Err(fault) => return Err(fault),
            }
        }
    }

    /// This process, once it has shown that it lives.
    pub(super) fn me(&self) -> Option<OwnerId> {
        self.me.as_ref().map(|(id, _)| *id)
    }

    /// Is a record of this identity ours, as far as we have written it?
    pub(super) fn holds(&self, id: XferId) -> bool {
        self.held.contains(&id)
    }

    /// A record was claimed.
    pub(super) fn hold(&mut self, id: XferId) {
        self.held.insert(id);
    }

    /// Is this an older file than the one we wrote?
    pub(super) fn is_older(&self, document: &Document) -> bool {
        document.generation() < self.generation
    }

    /// Everything that is ours.
    pub(super) fn held(&self) -> impl Iterator<Item = XferId> {
        self.held.iter().copied()
    }

    /// Something is ours.
    pub(super) fn holds_any(&self) -> bool {
        !self.held.is_empty()
    }

    /// It is none of our business any more.
    pub(super) fn let_go(&mut self, id: XferId) {
        self.held.remove(&id);
    }

    /// A commit is over.
    pub(super) fn committed(&mut self, document: &Document) {
        self.generation = self.generation.max(document.generation());
    }

    /// Writes a record of ours as it is to be now. `obeyed` are the wishes that are fulfilled.
    pub(super) fn put(
        &mut self,
        document: &mut Document,
        record: &Record,
        keep: Keep,
        obeyed: &[u64],
        after: &mut After<'_>,
    ) -> Put {
        let disk = document.get(record.id);
        let loss = match &disk {
            Some(disk) => self.taken_by_another(disk, after.living),
            None if self.holds(record.id) && !self.is_older(document) => Some(Loss::Forgotten),
            None => self.make_room(document, record, after),
        };
        if let Some(loss) = loss {
            self.let_go(record.id);
            return Put::Lost(loss);
        }
        let mut next = record.clone();
        next.wishes = disk.as_ref().map_or_else(Vec::new, |d| d.wishes.clone());
        next.wishes.retain(|wish| !obeyed.contains(&wish.serial));
        next.name = match disk {
            Some(disk) => disk.name,
            None => document.unique_name(&record.name),
        };
        match keep {
            Keep::Ours => {
                next.owner = self.me();
                self.held.insert(record.id);
                document.put(&next);
                Put::Written
            }
            Keep::Free => {
                self.let_go(record.id);
                let wanted = !next.wishes.is_empty();
                let next = sharing::obeyed(next, &[], after.now, after.rng);
                document.put(&next);
                if wanted { Put::Revived } else { Put::Written }
            }
        }
    }

    fn taken_by_another(&self, disk: &Record, living: &mut Living<'_>) -> Option<Loss> {
        if disk.owner.is_none() || disk.owner == self.me() {
            return None;
        }
        let fault = living.in_use(disk)?;
        // Of two that began the same at once the one whose part file is locked has it, whoever said so first.
        (!holds_part_of(disk)).then_some(Loss::InUse(fault))
    }

    /// A record that is entered for the first time: another one of the same download gives way, unless it is run, or is
    /// complete while this one came to nothing.
    fn make_room(&self, document: &mut Document, record: &Record, after: &mut After<'_>) -> Option<Loss> {
        for id in after.twins.of(document, record) {
            let Some(twin) = document.get(id).filter(|twin| is_same(twin, record)) else { continue };
            if let Some(loss) = self.taken_by_another(&twin, after.living) {
                return Some(loss);
            }
            if twin.status == Status::Done && record.status != Status::Done && held_of(record) == Length::ZERO {
                return Some(Loss::Forgotten);
            }
            document.remove(id);
        }
        None
    }
}

/// Both are about the same: a download is its file, an upload its file and first URL.
fn is_same(twin: &Record, record: &Record) -> bool {
    let first = |r: &Record| r.mirrors.first().map(|m| m.url.clone());
    let direction = record.direction;
    twin.direction == direction && (direction == Direction::Download || first(twin) == first(record))
}

/// Is the part file of this download locked by this process?
fn holds_part_of(record: &Record) -> bool {
    let target = record.path.as_deref().filter(|_| record.direction == Direction::Download);
    target.and_then(part::holder).is_some_and(|holder| holder == std::process::id().to_string())
}

/// What is at hand during a commit.
pub(super) struct After<'a> {
    pub(super) now: Now,
    pub(super) rng: &'a mut dyn rand::Rng,
    pub(super) living: &'a mut Living<'a>,
    pub(super) twins: &'a mut Twins,
}

/// Finds the records of one download: by its path, or, where the server is to name it, by folder and first URL. The latter
/// are looked through once, when the first is asked for.
#[derive(Debug, Default)]
pub(super) struct Twins(Option<BTreeMap<(PathBuf, String), XferId>>);

impl Twins {
    /// Records of the same download as this one, itself left out.
    pub(super) fn of(&mut self, document: &Document, record: &Record) -> Vec<XferId> {
        let mut found = match (&record.path, &record.folder) {
            (Some(path), None) => document.at_path(path),
            _ => self.key_of(record).and_then(|key| self.unnamed(document).get(&key).copied()).into_iter().collect(),
        };
        found.retain(|id| *id != record.id);
        found
    }

    /// The record of a download that the server is to name.
    pub(super) fn in_folder(&mut self, document: &Document, folder: &Path, url: &str) -> Option<XferId> {
        self.unnamed(document).get(&(folder.to_owned(), url.to_owned())).copied()
    }

    /// One more is there now.
    pub(super) fn note(&mut self, record: &Record) {
        let key = self.key_of(record);
        if let (Some(known), Some(key)) = (&mut self.0, key) {
            known.insert(key, record.id);
        }
    }

    fn key_of(&self, record: &Record) -> Option<(PathBuf, String)> {
        let url = record.mirrors.first()?.url.secret_url().as_str().to_owned();
        Some((record.folder.clone()?, url))
    }

    fn unnamed(&mut self, document: &Document) -> &BTreeMap<(PathBuf, String), XferId> {
        if self.0.is_none() {
            let records = document.for_a_folder().filter_map(|id| document.get(id));
            let keyed: Vec<_> = records.filter_map(|r| Some((self.key_of(&r)?, r.id))).collect();
            self.0 = Some(keyed.into_iter().collect());
        }
        self.0.get_or_insert_default()
    }
}

/// A transfer's place, for messages.
pub(super) fn place(record: &Record) -> String {
    let named = record.path.as_ref().map(|path| path.display().to_string());
    named.unwrap_or_else(|| record.mirrors.first().map_or_else(|| record.name.clone(), |m| m.url.to_string()))
}
