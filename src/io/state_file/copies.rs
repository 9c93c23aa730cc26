//! The three generations of a state file as they stand on disk: which is sound, which is newest, and putting the rest in
//! order.

use std::fs::{File, FileType, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rustix::fs::OFlags;

use super::StateError;
use crate::core::failure::LocalFault;
use crate::core::state::{Damage, Document, Kind};
use crate::io::durable::{self, Clobber, Generations, local_fault};

/// Our mark and the generation stand within so many bytes from the start of a file that we wrote.
const HEAD: u64 = 512;
/// How many damaged files are kept of one name.
const ASIDE: u32 = 1000;

/// One generation, read.
#[derive(Debug)]
pub(super) enum Copy {
    /// There is no such file.
    Absent,
    /// It is whole.
    Sound(Box<Document>),
    /// It is not.
    Damaged(Damage),
}

/// All three, read.
#[derive(Debug)]
pub(super) struct Copies {
    current: (PathBuf, Copy),
    next: (PathBuf, Copy),
    prev: (PathBuf, Copy),
}

/// The newest sound one, and what is to be done about the others.
#[derive(Debug)]
pub(super) struct Newest {
    pub(super) document: Document,
    place: Place,
    damaged: Vec<(PathBuf, Damage)>,
    current_is_there: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    Current,
    Next,
    Prev,
}

/// What tells one state of a file from another without reading it whole: where it is, when it changed, how it begins
/// (with its generation).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: (u64, u64),
    size: u64,
    times: [i64; 4],
    head: Vec<u8>,
}

impl Stamp {
    /// Of the file of that name; `None` where there is none to be read.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let file = open(path).ok()?;
        let meta = file.metadata().ok().filter(|meta| meta.is_file())?;
        Some(Self {
            inode: (meta.dev(), meta.ino()),
            size: meta.size(),
            times: [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()],
            head: head_of(&file)?,
        })
    }
}

impl Copy {
    /// The document of a whole one.
    pub(super) fn sound(self) -> Option<Document> {
        match self {
            Self::Sound(document) => Some(*document),
            _ => None,
        }
    }

    fn document(&self) -> Option<&Document> {
        match self {
            Self::Sound(document) => Some(document),
            _ => None,
        }
    }
}

impl Copies {
    /// Reads them. The previous one is read only where it can matter.
    pub(super) fn read(files: &Generations) -> Result<Self, StateError> {
        let named = |path: &Path| Ok::<_, StateError>((path.to_owned(), read(path)?));
        let (current, next) = (named(&files.current)?, named(&files.next)?);
        let newest = [&current, &next].into_iter().filter_map(|(_, c)| c.document()).map(Document::generation).max();
        let older = |prev| newest.is_some_and(|newest| prev <= newest);
        let prev = match generation_at(&files.prev) {
            Some(prev) if older(prev) => (files.prev.clone(), Copy::Absent),
            _ => named(&files.prev)?,
        };
        Ok(Self { current, next, prev })
    }

    /// Some sound one is a BOINC client's.
    pub(super) fn is_foreign(&self) -> bool {
        self.all().iter().filter_map(|(_, (_, copy))| copy.document()).any(|d| d.kind() == Kind::Foreign)
    }

    /// There is no file at all.
    pub(super) fn are_none(&self) -> bool {
        self.all().iter().all(|(_, (_, copy))| matches!(copy, Copy::Absent))
    }

    /// None is sound, and it is not only the very first writing that broke off: there is nothing to put in order.
    pub(super) fn are_lost(&self) -> bool {
        let damaged = |copy: &Copy| matches!(copy, Copy::Damaged(_));
        (damaged(&self.current.1) || damaged(&self.prev.1))
            && self.all().iter().all(|(_, (_, c))| c.document().is_none())
    }

    fn all(&self) -> [(Place, &(PathBuf, Copy)); 3] {
        [(Place::Current, &self.current), (Place::Next, &self.next), (Place::Prev, &self.prev)]
    }

    /// The sound one of the highest generation; the current one of equals; a fresh one where there is none, nor a damaged
    /// one. A broken next one alone is the very first writing, broken off: nothing had been promised by then.
    ///
    /// # Errors
    /// The damage of the one that counts, where none is sound.
    pub(super) fn newest(self) -> Result<Newest, (PathBuf, Damage)> {
        let rank = |place: &Place| [Place::Prev, Place::Next, Place::Current].iter().position(|p| p == place);
        let sound =
            self.all().into_iter().filter_map(|(place, (_, copy))| Some((copy.document()?.generation(), place)));
        let best = sound.max_by_key(|(generation, place)| (*generation, rank(place))).map(|(_, place)| place);
        let current_is_there = matches!(self.current.1, Copy::Sound(_));
        let first_writing = matches!((&self.current.1, &self.prev.1), (Copy::Absent, Copy::Absent));
        let mut newest =
            Newest { document: Document::fresh(), place: Place::Nowhere, damaged: Vec::new(), current_is_there };
        for (place, (path, copy)) in
            [(Place::Current, self.current), (Place::Next, self.next), (Place::Prev, self.prev)]
        {
            match copy {
                Copy::Sound(document) if best == Some(place) => (newest.document, newest.place) = (*document, place),
                // The ordinary trace of a process that was killed while it wrote: whatever it was to say was not promised.
                Copy::Damaged(damage) if place == Place::Next && best.is_some() => {
                    tracing::debug!(path = %path.display(), %damage, "a writing was broken off");
                }
                Copy::Damaged(damage) if best.is_some() || first_writing => newest.damaged.push((path, damage)),
                Copy::Damaged(damage) => return Err((path, damage)),
                _ => {}
            }
        }
        Ok(newest)
    }
}

impl Newest {
    /// Sets the damaged ones aside, and finishes a writing that was broken off. The lock is held.
    pub(super) fn mend(&self, files: &Generations) -> Result<Vec<String>, LocalFault> {
        let mut warnings = Vec::new();
        for (path, damage) in &self.damaged {
            let aside = set_aside(path)?;
            warnings.push(format!(
                "{} is damaged ({damage}); it was set aside as {}, and {} is used",
                path.display(),
                aside.display(),
                self.used(files)
            ));
        }
        match self.place {
            Place::Next => durable::sync_file(&files.next).and_then(|()| files.rotate())?,
            // An older one, or a broken one, left by a writing that did not come to its end.
            _ => durable::remove(&files.next)?,
        }
        if self.place == Place::Prev && self.damaged.is_empty() {
            warnings.push(self.older_warning(files));
        }
        Ok(warnings)
    }

    fn used(&self, files: &Generations) -> String {
        match self.place {
            Place::Nowhere => "a fresh one".to_owned(),
            Place::Prev => format!("the one before, {},", files.prev.display()),
            Place::Current | Place::Next => files.current.display().to_string(),
        }
    }

    fn older_warning(&self, files: &Generations) -> String {
        let what = if self.current_is_there { "is older than" } else { "is missing;" };
        format!("{} {what} {}, which is used", files.current.display(), files.prev.display())
    }
}

/// Reads one generation whole.
///
/// # Errors
/// Something other than a regular file is there, or the system refuses.
pub(super) fn read(path: &Path) -> Result<Copy, StateError> {
    let meta = match path.symlink_metadata() {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Copy::Absent),
        Err(error) => return Err(local_fault("read", path, &error).into()),
    };
    if !meta.is_file() {
        return Err(StateError::NotAFile { path: path.to_owned(), what: kind(meta.file_type()) });
    }
    if let Some(damage) = Damage::too_large(meta.len()) {
        return Ok(Copy::Damaged(damage));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    match open(path).and_then(|mut file| file.read_to_end(&mut bytes)) {
        Ok(_) => Ok(Document::from_bytes(Bytes::from(bytes)).map_or_else(Copy::Damaged, |d| Copy::Sound(Box::new(d)))),
        // Renamed since: somebody else is writing.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Copy::Absent),
        Err(error) => Err(local_fault("read", path, &error).into()),
    }
}

/// Something has this name.
pub(super) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The generation that a file of ours says it has, from its first lines.
pub(super) fn generation_at(path: &Path) -> Option<u64> {
    let head = head_of(&open(path).ok()?)?;
    let text = String::from_utf8_lossy(&head);
    text.split_once("<generation>")?.1.split_once("</generation>")?.0.trim().parse().ok()
}

/// A file shows our mark in its first lines.
pub(super) fn has_our_mark(path: &Path) -> bool {
    let head = open(path).ok().and_then(|file| head_of(&file)).unwrap_or_default();
    String::from_utf8_lossy(&head).contains("<persxfer>")
}

fn head_of(file: &File) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD as usize);
    file.take(HEAD).read_to_end(&mut head).ok()?;
    Some(head)
}

/// Never through a link, and never waiting for the other end of a pipe.
fn open(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Renames a damaged file to the first free `NAME.damaged-N`.
fn set_aside(path: &Path) -> Result<PathBuf, LocalFault> {
    for n in 1..=ASIDE {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".damaged-{n}"));
        let aside = PathBuf::from(name);
        match durable::publish(path, &aside, Clobber::Refuse) {
            Err(LocalFault::NotOurs { .. }) => {}
            result => return result.map(|()| aside),
        }
    }
    let why = format!("has been damaged {ASIDE} times; remove some of the {}.damaged-* files", path.display());
    Err(LocalFault::NotOurs { path: path.display().to_string(), why })
}

fn kind(file_type: FileType) -> &'static str {
    match file_type {
        t if t.is_symlink() => "a symbolic link",
        t if t.is_dir() => "a folder",
        t if t.is_fifo() => "a pipe",
        t if t.is_socket() => "a socket",
        _ => "a device",
    }
}
