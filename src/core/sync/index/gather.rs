//! What an index says of its files, looked at one by one: names that are refused, files of other modules, two names that
//! are one where letters have no case.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{BadIndex, Index, MAX_ENTRIES};
use crate::core::digest::Expected;
use crate::core::printable::printable;
use crate::core::range::Length;
use crate::core::sync::listing::{Entry, Listing};
use crate::core::sync::path::{BadName, MAX_COMPONENTS, MAX_PATH, Part, check_name};
use crate::core::time::Epoch;
use crate::core::url::MirrorUrl;

/// So many refusals are told; the others are counted.
const TOLD: usize = 20;

/// What an index says of a file beside its name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said<'a> {
    pub(super) size: Option<Length>,
    pub(super) modified: Option<Epoch>,
    pub(super) digest: Option<&'a Expected>,
}

/// Entries that were refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// How many.
    pub count: usize,
    /// The first of them with the reason, a line each, printable.
    pub told: Vec<String>,
}

impl Refused {
    /// One more.
    pub fn add(&mut self, name: &str, why: impl std::fmt::Display) {
        self.count += 1;
        if self.told.len() < TOLD {
            self.told.push(format!("\"{}\": {why}", printable(name)));
        }
    }
}

#[derive(Debug)]
pub(super) struct Gather {
    parts: Vec<Part>,
    listing: Listing,
    folders: BTreeSet<String>,
    refused: Refused,
    mirrors: Vec<(String, Vec<MirrorUrl>)>,
    pub(super) created: Option<Epoch>,
    pub(super) claimed_base: Option<String>,
}

impl Gather {
    pub(super) fn new(parts: &[Part]) -> Self {
        Self {
            parts: parts.to_vec(),
            listing: Listing::default(),
            folders: BTreeSet::new(),
            refused: Refused::default(),
            mirrors: Vec::new(),
            created: None,
            claimed_base: None,
        }
    }

    /// The path of a folder in a folder, where something of ours may be in it; nothing where it is refused.
    pub(super) fn below(&mut self, folder: &str, name: &str) -> Option<String> {
        let path = self.join(folder, name)?;
        self.parts.iter().any(|part| part.meets(&path)).then_some(path)
    }

    /// A folder is there.
    pub(super) fn folder(&mut self, path: &str) {
        if self.folders.len() < MAX_ENTRIES && self.parts.iter().any(|part| part.meets(path)) {
            self.folders.insert(path.to_owned());
        }
    }

    /// A file is in a folder.
    pub(super) fn file(&mut self, folder: &str, name: &str, said: &Said<'_>) -> Result<(), BadIndex> {
        let Some(path) = self.join(folder, name) else { return Ok(()) };
        if !self.parts.iter().any(|part| part.of(&path).is_some()) {
            return Ok(());
        }
        if self.listing.len() >= MAX_ENTRIES {
            return Err(BadIndex::TooMany { limit: MAX_ENTRIES });
        }
        let Said { size, modified, digest } = *said;
        if size.is_some_and(|size| size > Length::LARGEST_FILE) {
            self.refused.add(&path, "no file is so large");
            return Ok(());
        }
        Ok(self.listing.push(Entry { path: &path, size, modified, digest: digest.map(Into::into), tag: () })?)
    }

    /// A file of a whole path. The folders that lead to it are there.
    pub(super) fn path(&mut self, path: &str, said: &Said<'_>) -> Result<(), BadIndex> {
        let mut folder = String::new();
        self.folder("");
        let Some((folders, name)) = path.rsplit_once('/') else { return self.file("", path, said) };
        for component in folders.split('/') {
            match self.join(&folder, component) {
                Some(joined) => folder = joined,
                None => return Ok(()),
            }
            self.folder(&folder);
        }
        self.file(&folder, name, said)
    }

    /// Something that is no entry.
    pub(super) fn refuse(&mut self, name: &str, why: impl std::fmt::Display) {
        self.refused.add(name, why);
    }

    pub(super) fn mirrors(&mut self, path: &str, urls: Vec<MirrorUrl>) {
        self.mirrors.push((path.to_owned(), urls));
    }

    fn join(&mut self, folder: &str, name: &str) -> Option<String> {
        let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        let deep = path.len() > MAX_PATH || path.split('/').count() > MAX_COMPONENTS;
        match check_name(name).and(if deep { Err(BadName::TooLong) } else { Ok(()) }) {
            Ok(()) => Some(path),
            Err(why) => {
                self.refused.add(&path, why);
                None
            }
        }
    }

    pub(super) fn finish(mut self) -> Index {
        let listed = self.listing.len();
        self.listing.put_in_order();
        let twice = listed - self.listing.len();
        if twice > 0 {
            self.refused.count += twice;
            self.refused.told.push(format!("{twice} paths stand in it more than once; the last word counts"));
        }
        self.refuse_folders();
        self.refuse_twins();
        self.mirrors.sort_by(|a, b| a.0.cmp(&b.0));
        Index {
            listing: self.listing,
            folders: self.folders,
            created: self.created,
            claimed_base: self.claimed_base,
            refused: self.refused,
            mirrors: self.mirrors,
        }
    }

    /// What is a folder elsewhere in the index cannot be a file as well.
    fn refuse_folders(&mut self) {
        let (folders, refused) = (&self.folders, &mut self.refused);
        self.listing.retain(|entry| {
            let is_folder = folders.contains(entry.path);
            if is_folder {
                refused.add(entry.path, "it is a folder as well");
            }
            !is_folder
        });
    }

    /// Of paths that differ only in the case of their letters, the first by the alphabet stays.
    fn refuse_twins(&mut self) {
        let mut seen: HashMap<u64, usize> = HashMap::with_capacity(self.listing.len());
        let mut twins = BTreeSet::new();
        for (at, entry) in self.listing.iter().enumerate() {
            let other = *seen.entry(folded_hash(entry.path)).or_insert(at);
            let same = |other: Entry<'_>| folded(other.path).eq(folded(entry.path));
            if other != at && self.listing.get(other).is_some_and(same) {
                twins.insert(at);
            }
        }
        if twins.is_empty() {
            return;
        }
        let mut at = 0;
        let refused = &mut self.refused;
        self.listing.retain(|entry| {
            let is_twin = twins.contains(&at);
            at += 1;
            if is_twin {
                refused.add(entry.path, "another name in it is the same where letters have no case");
            }
            !is_twin
        });
    }
}

fn folded(path: &str) -> impl Iterator<Item = char> {
    path.chars().flat_map(char::to_lowercase)
}

/// Always the same for the same path; two paths that share it by chance are compared.
fn folded_hash(path: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    folded(path).for_each(|c| c.hash(&mut hasher));
    hasher.finish()
}
