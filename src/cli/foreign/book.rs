//! The state file, as the `state` commands use it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::cli::foreign::{plain_error, printable};
use crate::core::failure::LocalFault;
use crate::core::hosts::HostRecord;
use crate::core::pers_xfer::record::{Direction, Record, Status, XferId};
use crate::core::pers_xfer::sharing::OwnerId;
use crate::core::range::{ByteRange, RangeSet};
use crate::core::upload::Source;
use crate::io::driver::upload::identity_of;
use crate::io::durable;
use crate::io::owner;
use crate::io::part::{self, Inspection, Leftovers};
use crate::io::state_file::{StateError, StateFile};

/// Damage, or something odd, in a state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// Which file.
    pub(crate) file: PathBuf,
    /// Line and column, from 1, where it has a place.
    pub(crate) at: Option<(usize, usize)>,
    /// What is the matter, and what was done about it.
    pub(crate) text: String,
}

/// What a state file held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// The transfers, in the file's order.
    pub(crate) records: Vec<Record>,
    /// Hosts that are left alone for a while.
    pub(crate) hosts: Vec<HostRecord>,
    /// Damage that was survived.
    pub(crate) warnings: Vec<Warning>,
}

/// Why a state file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BookError {
    /// No valid generation: nothing was overwritten.
    #[error("{told}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where and how it is damaged, and what to do.
        told: String,
        /// Every damage found.
        damage: Vec<Warning>,
    },
    /// It belongs to a BOINC client, and is never written.
    /// Anything else, such as a BOINC client's file that is to be written.
    #[error(transparent)]
    Unusable(StateError),
}

/// `client_state.xml:3:14: what`; what has no place names its file itself.
impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some((line, column)) = self.at {
            write!(f, "{}:{line}:{column}: ", self.file.display())?;
        }
        f.write_str(&printable(&self.text))
    }
}

/// The file of an upload, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SourceNow {
    /// It stands there.
    Here(Source),
    /// Nothing stands there.
    Gone,
    /// Something stands there that cannot be sent, and this is why.
    Unusable(String),
}

/// The state file, as the `state` commands use it.
pub(crate) trait Book {
    /// Where it is.
    fn path(&self) -> &Path;
    /// Reads it; no file at all is an empty one.
    fn load(&self) -> Result<Contents, BookError>;
    /// Reads it one record at a time, in the file's order; answers damage that was survived.
    fn visit(&self, see: &mut dyn FnMut(Record)) -> Result<Vec<Warning>, BookError> {
        let contents = self.load()?;
        contents.records.into_iter().for_each(see);
        Ok(contents.warnings)
    }
    /// May it be written? A BOINC client's is only listed.
    fn writable(&self) -> Result<(), BookError>;
    /// Takes records out, and writes the rest.
    fn remove(&self, ids: &[XferId]) -> Result<(), BookError>;
    /// The process that works on a transfer just now.
    fn holder(&self, record: &Record) -> Option<String>;
    /// The part file of a download and what stands beside it, whether there or not; the part file first. An upload has none,
    /// here and in all that follows: what has such a name beside its file is somebody else's.
    fn parts(&self, record: &Record) -> Vec<PathBuf>;
    /// Holds those, so that no download begins on them, until they are removed or let go of.
    fn hold_parts(&self, record: &Record) -> Result<HeldParts, LocalFault>;
    /// It was finished, and its file is not there any more.
    fn is_missing(&self, record: &Record) -> bool;
    /// The file of an upload; `None` of a download. It is looked at, and never touched.
    fn source(&self, record: &Record) -> Option<SourceNow>;
    /// What the part file and the journal hold, all bytes that have sums read and compared. `None` of what has no path.
    fn inspect(&self, record: &Record) -> Option<Result<Inspection, LocalFault>>;
    /// The same without a look at the bytes, where it can be had.
    fn outline(&self, record: &Record) -> Option<Inspection>;
    /// Takes these bytes out of what is held; answers what is left.
    fn repair(&self, record: &Record, damaged: &[ByteRange]) -> Result<RangeSet, LocalFault>;
    /// The record says no more than what is left, unless a process has taken it up meanwhile, which knows best.
    fn holds_only(&self, id: XferId, left: &RangeSet) -> Result<(), BookError>;
}

/// What was left of a transfer that is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing beside its file.
    Nothing,
    /// Its part file, or what stands beside one.
    Parts,
}

/// Part files that are held: removes them, and answers what there was.
pub(crate) type HeldParts = Box<dyn FnOnce() -> Result<Left, LocalFault>>;

/// The real one.
pub(crate) struct StateBook {
    path: PathBuf,
    file: StateFile,
    /// Which processes live, as of the last reading.
    living: RefCell<BTreeMap<OwnerId, Option<String>>>,
}

impl StateBook {
    /// At this path, which need not exist.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), file: StateFile::at(path), living: RefCell::default() }
    }

    /// What loading met, told with its place already.
    fn warnings(&self, texts: Vec<String>) -> Vec<Warning> {
        texts.into_iter().map(|text| self.warning(text)).collect()
    }

    fn warning(&self, text: String) -> Warning {
        Warning { file: self.path.clone(), at: None, text }
    }
}

impl Book for StateBook {
    fn path(&self) -> &Path {
        &self.path
    }
    fn load(&self) -> Result<Contents, BookError> {
        let loaded = self.file.load()?;
        self.living.borrow_mut().clear();
        Ok(Contents {
            records: loaded.document.transfers().collect(),
            hosts: loaded.document.hosts().to_vec(),
            warnings: self.warnings(loaded.warnings),
        })
    }
    fn visit(&self, see: &mut dyn FnMut(Record)) -> Result<Vec<Warning>, BookError> {
        let loaded = self.file.load()?;
        self.living.borrow_mut().clear();
        loaded.document.transfers().for_each(see);
        Ok(self.warnings(loaded.warnings))
    }
    fn writable(&self) -> Result<(), BookError> {
        let loaded = self.file.load()?;
        Ok(self.file.check_ours(&loaded.document)?)
    }
    fn remove(&self, ids: &[XferId]) -> Result<(), BookError> {
        Ok(self.file.commit(|document| ids.iter().for_each(|id| _ = document.remove(*id)))?)
    }
    fn holder(&self, record: &Record) -> Option<String> {
        let owner = record.owner.and_then(|owner| {
            let mut living = self.living.borrow_mut();
            living.entry(owner).or_insert_with(|| owner::living(&self.path, owner)).clone()
        });
        // It may be run by way of another state file.
        let begun = record.status == Status::Pending && record.first_request_time.is_some();
        owner.or_else(|| part::holder(target(record).filter(|_| begun)?))
    }
    fn parts(&self, record: &Record) -> Vec<PathBuf> {
        target(record).into_iter().flat_map(part::file_names).collect()
    }
    fn hold_parts(&self, record: &Record) -> Result<HeldParts, LocalFault> {
        let held = target(record).map(Leftovers::hold).transpose()?;
        Ok(Box::new(move || {
            let removed = held.map_or(Ok(false), Leftovers::remove)?;
            Ok(if removed { Left::Parts } else { Left::Nothing })
        }))
    }
    fn is_missing(&self, record: &Record) -> bool {
        let ours = record.status == Status::Done && record.direction == Direction::Download;
        let looked = record.path.as_deref().filter(|_| ours).map(Path::symlink_metadata);
        matches!(looked, Some(Err(error)) if error.kind() == std::io::ErrorKind::NotFound)
    }
    fn source(&self, record: &Record) -> Option<SourceNow> {
        let path = record.path.as_deref().filter(|_| record.direction == Direction::Upload)?;
        Some(source_at(path))
    }
    fn inspect(&self, record: &Record) -> Option<Result<Inspection, LocalFault>> {
        target(record).map(|path| part::inspect(path, &record.dossier))
    }
    fn outline(&self, record: &Record) -> Option<Inspection> {
        part::outline(target(record)?, &record.dossier).ok()
    }
    fn repair(&self, record: &Record, damaged: &[ByteRange]) -> Result<RangeSet, LocalFault> {
        target(record).map_or_else(|| Ok(RangeSet::new()), |path| part::repair(path, &record.dossier, damaged))
    }
    fn holds_only(&self, id: XferId, left: &RangeSet) -> Result<(), BookError> {
        let free = |record: &Record| record.owner.is_none_or(|owner| owner::living(&self.path, owner).is_none());
        Ok(self.file.commit(|document| {
            if let Some(mut record) = document.get(id).filter(free) {
                record.holds_only(left);
                document.put(&record);
            }
        })?)
    }
}

/// Where a download goes. The file of an upload has nothing of ours beside it.
fn target(record: &Record) -> Option<&Path> {
    record.path.as_deref().filter(|_| record.direction == Direction::Download)
}

fn source_at(path: &Path) -> SourceNow {
    match path.metadata() {
        Ok(meta) if meta.is_file() => SourceNow::Here(identity_of(&meta)),
        Ok(_) => SourceNow::Unusable("it is no regular file".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => SourceNow::Gone,
        Err(error) => SourceNow::Unusable(plain_error(&error)),
    }
}

impl From<StateError> for BookError {
    fn from(error: StateError) -> Self {
        let told = error.to_string();
        match error {
            StateError::Damaged { path, damage } => {
                let at = Some((damage.line, damage.column));
                let text = format!("expected {}, found {}", damage.expected, damage.found);
                let warning = Warning { file: path.clone(), at, text };
                Self::Damaged { path, told, damage: vec![warning] }
            }
            other => Self::Unusable(other),
        }
    }
}

/// Creates a folder and those above it that are missing, durably, as open as the umask has it.
pub(crate) fn create_folder(folder: &Path) -> Result<(), LocalFault> {
    durable::create_folder(folder, durable::SHARED_FOLDER)
}

/// The part files in a folder that no process works on, whosever they are; none where the folder cannot be read.
pub(crate) fn orphans(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries.map(|entry| entry.path()).filter(|path| is_left(path)).collect();
    found.sort();
    found
}

/// Is it a part file, or what stands beside one, and not locked?
fn is_left(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let target = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
    target.is_some_and(|target| !target.is_empty() && part::holder(&path.with_file_name(target)).is_none())
}

/// How the names end that [`part::file_names`] gives.
const ENDINGS: [&str; 3] = [".persxfer-part", ".persxfer-part2", ".persxfer-journal"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endings_are_those_of_part_files() {
        let names = part::file_names(Path::new("/d/x")).map(|path| path.display().to_string());
        assert_eq!(names, ENDINGS.map(|ending| format!("/d/x{ending}")));
    }
}
