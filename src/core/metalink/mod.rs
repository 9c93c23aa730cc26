//! Metalinks: a list of files, each with its size, its digests and the URLs of its mirrors, as version 3
//! (metalinker.org, `.metalink`) and version 4 (RFC 5854, `.meta4`) write it.
//!
//! A metalink comes from a server as often as not, so that it is read as something hostile: within limits on everything
//! that can grow, without any declaration of entities, and never beyond one pass. What it cannot mean twice it may not say
//! twice: two digests by one algorithm that differ, or two sizes, refuse the whole.
//!
//! **Names.** A name becomes one safe component ([`SafeName`]). RFC 5854 4.1.2.1 lets a name have folders in it; they are
//! left out, for nothing from outside chooses a folder here. Two files whose names become one are refused.
//!
//! **URLs** of other schemes than http and https, torrents, and what is no URL, are left out and counted.

mod error;
mod file;
mod read;
#[cfg(test)]
mod tests;
mod xml;

use std::sync::Arc;

use crate::core::digest::{BadPieces, Expected, Pieces};
use crate::core::name::SafeName;
use crate::core::range::Length;
use crate::core::url::MirrorUrl;

pub use error::{BadMetalink, Fault};

/// The largest metalink, in bytes.
pub const MAX_BYTES: usize = 16 << 20;
/// The deepest nesting of elements; a metalink needs 5.
pub const MAX_DEPTH: usize = 32;
/// The longest start tag, in bytes.
pub const MAX_TAG: usize = 16 << 10;
/// The most attributes of one element.
pub const MAX_ATTRIBUTES: usize = 32;
/// The longest text of an element that is read, in bytes; what is passed over may be longer.
pub const MAX_TEXT: usize = 16 << 10;
/// The most files.
pub const MAX_FILES: usize = 10_000;
/// The most URLs of one file.
pub const MAX_URLS: usize = 1000;
/// The priority of a URL that has none (RFC 5854 4.1.2.2.3): the last.
pub const LAST_PRIORITY: u32 = 999_999;

/// What a metalink says; at least one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metalink {
    /// Its files, in order, no two of one name.
    pub files: Vec<MetaFile>,
}

/// One file of a metalink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaFile {
    /// Its name: one component.
    pub name: SafeName,
    /// Its size.
    pub size: Option<Length>,
    /// Its digests by every algorithm that we know, each once, in order. [`MetaFile::law`] is the one that counts.
    pub digests: Vec<Expected>,
    /// The digests of its pieces, by the strongest algorithm of those given; as many as the size asks for.
    pub pieces: Option<Arc<Pieces>>,
    /// Where it can be had, the best first, each once; perhaps nowhere.
    pub urls: Vec<MetaUrl>,
    /// How many URLs were left out: of another scheme, torrents, or no URLs at all.
    pub urls_left_out: usize,
    /// Why digests of pieces were left out, where some were.
    pub pieces_left_out: Option<BadPieces>,
}

/// One URL of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaUrl {
    /// The URL.
    pub url: MirrorUrl,
    /// The lower, the better: from 1 to [`LAST_PRIORITY`]. Version 3's preference of 100 is 1 here.
    pub priority: u32,
    /// The country of the mirror: two letters, lower case (ISO 3166-1).
    pub location: Option<String>,
}

impl Metalink {
    /// Reads a metalink of either version.
    ///
    /// # Errors
    /// [`BadMetalink`] names the first place that cannot be read, or contradicts another one.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadMetalink> {
        read::metalink(bytes)
    }
}

impl MetaFile {
    /// The digest that is law: the one by the strongest algorithm.
    pub fn law(&self) -> Option<&Expected> {
        Expected::strongest(&self.digests)
    }
}
