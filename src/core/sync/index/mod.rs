//! Indexes: what a source says that it has.
//!
//! CollecTor's `index.json` (B3 of the facts) is read as it comes, whatever its size; a page that a web server makes of a
//! folder, a list of checksums and a metalink are small and are read whole. What an index says of a file is looked at
//! before anything else sees it: a name that is refused costs that entry, not the index. A document that cannot be read
//! to its end is no index at all.

mod gather;
mod json;
mod nodes;
mod page;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::listing::{Full, Listing};
use super::path::Part;
use super::source::Form;
use crate::core::digest::{Algorithm, BadSums, Sums};
use crate::core::metalink::{BadMetalink, Metalink};
use crate::core::time::Epoch;
use crate::core::url::MirrorUrl;

pub use gather::Refused;
pub use page::Page;

use gather::{Gather, Said};
use nodes::Nodes;

/// The largest index as it is sent, in bytes.
pub const MAX_SENT: u64 = 256 << 20;
/// The largest index once it is unpacked, in bytes.
pub const MAX_BYTES: u64 = 1 << 30;
/// The largest list or page, in bytes; these are held in memory.
pub const MAX_HELD: usize = 32 << 20;
/// The most files of a module that are kept in memory.
pub const MAX_ENTRIES: usize = 2_000_000;

/// What a source has of a module's part of its tree.
#[derive(Debug, Default)]
pub struct Index {
    /// Its files, in order.
    pub listing: Listing,
    /// The folders that it knows. Of a folder that is not among them nothing is known: least of all, that it is empty.
    pub folders: BTreeSet<String>,
    /// When it was made, where it says so.
    pub created: Option<Epoch>,
    /// The root of the tree, as the index itself has it. It is told, never followed.
    pub claimed_base: Option<String>,
    /// What was refused.
    pub refused: Refused,
    /// Where else files are, of a metalink; in the order of their paths.
    pub mirrors: Vec<(String, Vec<MirrorUrl>)>,
}

/// Why something is no index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadIndex {
    /// No JSON.
    #[error("it is no JSON: byte {at} makes no sense")]
    Syntax {
        /// Where, from 0.
        at: u64,
    },
    /// It ends too soon.
    #[error("it ends before it is complete")]
    Ended,
    /// Too deep.
    #[error("it nests more than {limit} deep")]
    Deep {
        /// The limit.
        limit: usize,
    },
    /// A text that is too long.
    #[error("a text in it has more than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// JSON of another shape.
    #[error("it is JSON, but no index: {what}")]
    Shape {
        /// What is wrong.
        what: &'static str,
    },
    /// Too large.
    #[error("it has more than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// Too many files.
    #[error("it lists more than {limit} files")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// More than fits.
    #[error(transparent)]
    Full(#[from] Full),
    /// No list of checksums.
    #[error(transparent)]
    Sums(#[from] BadSums),
    /// No metalink.
    #[error(transparent)]
    Metalink(#[from] BadMetalink),
}

/// Reads one index.
#[derive(Debug)]
pub struct Reader {
    gather: Gather,
    how: How,
    taken: u64,
}

#[derive(Debug)]
enum How {
    Nodes(Box<Nodes>),
    Held { form: Form, bytes: Vec<u8>, algorithm: Option<Algorithm> },
}

impl Reader {
    /// Of an index of that form, for these parts of the tree; `name` is its file's, which may tell an algorithm.
    pub fn new(form: Form, parts: &[Part], name: &str) -> Self {
        let how = match form {
            Form::Json => How::Nodes(Box::new(Nodes::new())),
            _ => How::Held { form, bytes: Vec::new(), algorithm: Algorithm::of_list_name(name) },
        };
        Self { gather: Gather::new(parts), how, taken: 0 }
    }

    /// Takes the next bytes, unpacked.
    ///
    /// # Errors
    /// [`BadIndex`]: it is none.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), BadIndex> {
        self.taken += bytes.len() as u64;
        if self.taken > MAX_BYTES {
            return Err(BadIndex::TooLarge { limit: MAX_BYTES });
        }
        match &mut self.how {
            How::Nodes(nodes) => nodes.feed(bytes, &mut self.gather),
            How::Held { bytes: held, .. } if held.len() + bytes.len() > MAX_HELD => {
                Err(BadIndex::TooLarge { limit: MAX_HELD as u64 })
            }
            How::Held { bytes: held, .. } => {
                held.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// The index has ended.
    ///
    /// # Errors
    /// [`BadIndex`]: it is none.
    pub fn finish(mut self) -> Result<Index, BadIndex> {
        match self.how {
            How::Nodes(nodes) => nodes.finish(&mut self.gather)?,
            How::Held { form: Form::Metalink, bytes, .. } => of_metalink(&bytes, &mut self.gather)?,
            How::Held { bytes, algorithm, .. } => of_sums(&bytes, algorithm, &mut self.gather)?,
        }
        Ok(self.gather.finish())
    }
}

fn of_sums(bytes: &[u8], algorithm: Option<Algorithm>, gather: &mut Gather) -> Result<(), BadIndex> {
    let sums = Sums::parse(bytes, algorithm)?;
    sums.iter().try_for_each(|(path, digest)| gather.path(path, &Said { digest: Some(digest), ..Said::default() }))
}

fn of_metalink(bytes: &[u8], gather: &mut Gather) -> Result<(), BadIndex> {
    for file in Metalink::parse(bytes)?.files {
        gather.path(file.name.as_str(), &Said { size: file.size, digest: file.law(), ..Said::default() })?;
        let urls = file.urls.iter().map(|url| url.url.clone()).collect();
        gather.mirrors(file.name.as_str(), urls);
    }
    Ok(())
}

/// An index that is made of pages, one a folder.
#[derive(Debug)]
pub struct Pages {
    gather: Gather,
}

impl Pages {
    /// Of these parts of the tree.
    pub fn new(parts: &[Part]) -> Self {
        Self { gather: Gather::new(parts) }
    }

    /// Takes the page of a folder (empty for the root), and gives the folders in it that are to be looked at too.
    ///
    /// # Errors
    /// [`BadIndex`]: it is no such page.
    pub fn take(&mut self, folder: &str, bytes: &[u8]) -> Result<Vec<String>, BadIndex> {
        let page = Page::parse(bytes)?;
        self.gather.folder(folder);
        for file in &page.files {
            let said = Said { size: file.size, modified: file.modified, digest: None };
            self.gather.file(folder, &file.name, &said)?;
        }
        Ok(page.folders.iter().filter_map(|name| self.gather.below(folder, name)).collect())
    }

    /// All pages have been taken.
    pub fn finish(self) -> Index {
        self.gather.finish()
    }
}
