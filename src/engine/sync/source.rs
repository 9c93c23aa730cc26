//! A source at work: its folder here, the lock on it, its manifest and index, and what is needed of it.

use std::path::{Path, PathBuf};

use crate::core::failure::LocalFault;
use crate::core::sync::diff::{Need, Standing, need};
use crate::core::sync::index::Index;
use crate::core::sync::listing::{Digest, Entry};
use crate::core::sync::manifest::{Held, Manifest};
use crate::core::sync::source::Source;
use crate::core::time::Delay;
use crate::io::durable::{self, SHARED_FOLDER};
use crate::io::lock::Lock;
use crate::io::part::has_digests;
use crate::io::sync::{Book, OWN, standing};

/// A source of one module.
#[derive(Debug)]
pub(super) struct At<'a> {
    pub(super) source: &'a Source,
    /// Its folder: `SyncFolder/<key>`.
    pub(super) root: PathBuf,
    /// What is ours in it, of this module.
    pub(super) own: PathBuf,
    pub(super) book: Book,
    pub(super) manifest: Manifest,
    /// Where it was read.
    pub(super) index: Option<Index>,
    /// Of the index's entries, by their places: is it to be fetched?
    pub(super) needed: Vec<bool>,
    /// Files that have been fetched, and have not been merged.
    pub(super) fresh: Vec<String>,
    _lock: Lock,
}

impl<'a> At<'a> {
    /// Takes the lock on a source's folder, and reads its manifest.
    ///
    /// # Errors
    /// [`LocalFault::InUse`] where somebody else has it; else what the system said.
    pub(super) fn open(source: &'a Source, sync_folder: &Path, module: &str) -> Result<Self, LocalFault> {
        let root = sync_folder.join(source.folder.as_str());
        let own = root.join(OWN).join(module);
        durable::create_folder(&own, SHARED_FOLDER)?;
        let lock = Lock::acquire(&root.join(OWN).join("lock"), Delay::ZERO)?;
        let (book, manifest) = Book::open(own.join("manifest"))?;
        // What was fetched before a process ended, and not merged, is merged now.
        let left = manifest.files.iter().filter(|entry| entry.tag == Held::Fetched);
        let fresh = left.map(|entry| entry.path.to_owned()).collect();
        let (index, needed) = (None, Vec::new());
        Ok(Self { source, root, own, book, manifest, index, needed, fresh, _lock: lock })
    }

    /// Where a file of it is.
    pub(super) fn place(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Where files are fetched to.
    pub(super) fn staging(&self) -> PathBuf {
        self.own.join("staging")
    }

    /// Finds out what is needed of its index.
    pub(super) fn weigh(&mut self) -> Result<(), LocalFault> {
        let Some(index) = self.index.take() else { return Ok(()) };
        self.needed = Vec::with_capacity(index.listing.len());
        for entry in index.listing.iter() {
            let needed = self.is_needed(&entry)?;
            self.needed.push(needed);
        }
        self.index = Some(index);
        self.book.flush()
    }

    fn is_needed(&mut self, entry: &Entry<'_>) -> Result<bool, LocalFault> {
        let path = self.place(entry.path);
        let stands = standing(&path)?;
        let known = self.manifest.files.find(entry.path);
        match (need(entry, stands, known.as_ref()), stands, entry.digest) {
            (Need::Keep, ..) => Ok(false),
            (Need::Check, Some(stands), Some(digest)) if has_digests(&path, &[digest.expected()])? => {
                let held = known.filter(|k| k.digest == Some(digest)).map_or(Held::Fetched, |k| k.tag);
                let held = if held == Held::Placing { Held::Fetched } else { held };
                self.adopt(entry.path, stands, Some(digest), held);
                Ok(false)
            }
            _ => Ok(true),
        }
    }

    /// A file stands there that is the right one, though the manifest did not know.
    fn adopt(&mut self, path: &str, stands: Standing, digest: Option<Digest<'_>>, tag: Held) {
        if tag == Held::Fetched {
            self.fresh.push(path.to_owned());
        }
        self.note(path, stands, digest, tag);
    }

    /// Notes what became of a file that stands there.
    pub(super) fn note(&mut self, path: &str, stands: Standing, digest: Option<Digest<'_>>, tag: Held) {
        let Standing { size, modified } = stands;
        self.book.note(&Entry { path, size: Some(size), modified: Some(modified), digest, tag });
    }

    /// What its index says of a file.
    pub(super) fn entry(&self, path: &str) -> Option<Entry<'_>> {
        self.index.as_ref()?.listing.find(path)
    }

    /// Is this file needed of it?
    pub(super) fn needs(&self, at: usize) -> bool {
        self.needed.get(at).copied().unwrap_or(false)
    }
}
