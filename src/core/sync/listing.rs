//! Listings: what an index, or a manifest, says of many files, in little memory (some 130 bytes a file).
//!
//! Paths and digests stand one behind the other in two long pieces of memory; a row holds where. Once a listing is
//! complete it is put in order by path, so that two of them can be walked side by side.

use crate::core::digest::{Algorithm, Expected};
use crate::core::range::Length;
use crate::core::time::Epoch;

/// What is said of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a, T = ()> {
    /// Its path below the source; valid as a `path::TreePath`.
    pub path: &'a str,
    /// Its size.
    pub size: Option<Length>,
    /// When it was last changed; an index tells it to the minute.
    pub modified: Option<Epoch>,
    /// Its digest.
    pub digest: Option<Digest<'a>>,
    /// What else is known of it.
    pub tag: T,
}

/// A digest within a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest<'a> {
    /// By which algorithm.
    pub algorithm: Algorithm,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Many files.
#[derive(Clone, Debug)]
pub struct Listing<T = ()> {
    paths: String,
    digests: Vec<u8>,
    rows: Vec<Row<T>>,
}

#[derive(Clone, Debug)]
struct Row<T> {
    path: (u32, u16),
    digest: Option<(u32, Algorithm)>,
    size: Option<Length>,
    modified: Option<Epoch>,
    tag: T,
}

/// More than fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it lists more than can be kept in memory")]
pub struct Full;

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self { paths: String::new(), digests: Vec::new(), rows: Vec::new() }
    }
}

impl<T: Copy> Listing<T> {
    /// Adds a file.
    ///
    /// # Errors
    /// [`Full`] beyond four GiB of paths or digests, or with a path longer than 64 KiB.
    pub fn push(&mut self, entry: Entry<'_, T>) -> Result<(), Full> {
        let at = |n: usize| u32::try_from(n).map_err(|_| Full);
        let path = (at(self.paths.len())?, u16::try_from(entry.path.len()).map_err(|_| Full)?);
        let digest = entry.digest.map(|d| Ok::<_, Full>((at(self.digests.len())?, d.algorithm))).transpose()?;
        self.paths.push_str(entry.path);
        self.digests.extend_from_slice(entry.digest.map_or(&[], |d| d.bytes));
        self.rows.push(Row { path, digest, size: entry.size, modified: entry.modified, tag: entry.tag });
        Ok(())
    }

    /// How many files.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// None at all?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The file at a place, from 0.
    pub fn get(&self, at: usize) -> Option<Entry<'_, T>> {
        self.rows.get(at).map(|row| self.entry(row))
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_, T>> {
        self.rows.iter().map(|row| self.entry(row))
    }

    /// The file of that path, in a listing that is in order.
    pub fn find(&self, path: &str) -> Option<Entry<'_, T>> {
        self.get(self.position(path)?)
    }

    /// The place of that path, in a listing that is in order.
    pub fn position(&self, path: &str) -> Option<usize> {
        self.rows.binary_search_by(|row| self.path(row).cmp(path)).ok()
    }

    /// Puts it in order by path; of several that say something of one path, the last pushed stays.
    pub fn put_in_order(&mut self) {
        let paths = &self.paths;
        let path = |row: &Row<T>| &paths[row.path.0 as usize..][..usize::from(row.path.1)];
        // Stable, so that of one path the last pushed is the last.
        self.rows.sort_by(|a, b| path(a).cmp(path(b)));
        self.rows.reverse();
        self.rows.dedup_by(|a, b| path(a) == path(b));
        self.rows.reverse();
    }

    /// Keeps only those of which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(Entry<'_, T>) -> bool) {
        let (paths, digests) = (&self.paths, &self.digests);
        self.rows.retain(|row| keep(entry_of(paths, digests, row)));
    }

    /// The memory that it takes, in bytes.
    pub fn footprint(&self) -> usize {
        self.paths.capacity() + self.digests.capacity() + self.rows.capacity() * size_of::<Row<T>>()
    }

    fn path(&self, row: &Row<T>) -> &str {
        &self.paths[row.path.0 as usize..][..usize::from(row.path.1)]
    }

    fn entry(&self, row: &Row<T>) -> Entry<'_, T> {
        entry_of(&self.paths, &self.digests, row)
    }
}

fn entry_of<'a, T: Copy>(paths: &'a str, digests: &'a [u8], row: &Row<T>) -> Entry<'a, T> {
    let digest = row
        .digest
        .map(|(at, algorithm)| Digest { algorithm, bytes: &digests[at as usize..][..algorithm.output_len()] });
    let path = &paths[row.path.0 as usize..][..usize::from(row.path.1)];
    Entry { path, size: row.size, modified: row.modified, digest, tag: row.tag }
}

impl Digest<'_> {
    /// As a digest that a file must have.
    pub fn expected(self) -> Expected {
        Expected { algorithm: self.algorithm, bytes: self.bytes.to_vec() }
    }
}

impl<'a> From<&'a Expected> for Digest<'a> {
    fn from(expected: &'a Expected) -> Self {
        Self { algorithm: expected.algorithm, bytes: &expected.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, size: u64) -> Entry<'_> {
        Entry { path, size: Some(Length(size)), modified: None, digest: None, tag: () }
    }

    #[test]
    fn the_last_word_on_a_path_counts_and_all_are_found() {
        let mut listing = Listing::default();
        let sum = Expected { algorithm: Algorithm::Sha256, bytes: vec![7; 32] };
        listing.push(entry("b", 1)).expect("room");
        listing.push(Entry { digest: Some((&sum).into()), ..entry("a", 2) }).expect("room");
        listing.push(entry("b", 3)).expect("room");
        listing.put_in_order();
        assert_eq!(
            listing.iter().map(|e| (e.path, e.size)).collect::<Vec<_>>(),
            [("a", Some(Length(2))), ("b", Some(Length(3)))]
        );
        assert_eq!(listing.find("a").and_then(|e| e.digest).map(Digest::expected), Some(sum));
        assert_eq!(listing.find("c"), None);
    }

    #[test]
    fn little_memory_a_file() {
        let mut listing = Listing::<()>::default();
        let sum = Expected { algorithm: Algorithm::Sha256, bytes: vec![7; 32] };
        for n in 0..30_000 {
            let path = format!("recent/relay-descriptors/votes/2016-10-01-12-00-00-vote-{n:040X}");
            listing.push(Entry { digest: Some((&sum).into()), ..entry(&path, n) }).expect("room");
        }
        // Vectors grow by doubling.
        assert!(listing.footprint() / listing.len() < 2 * 200, "{}", listing.footprint() / listing.len());
    }
}
