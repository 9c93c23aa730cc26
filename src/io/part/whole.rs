//! Questions about whole files: what their digests are, whether two are the same.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use crate::core::digest::{Algorithm, Expected};
use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::io::part::PartStore;
use crate::io::part::digests::Digests;
use crate::io::part::fault::on;
use crate::io::part::names::Names;
use crate::io::part::take;
use crate::io::regular::read_regular;

/// How much is read at once.
const STRIDE: usize = 1 << 20;

/// The process that works on the download to this target, where it can be told.
pub fn holder(target: &Path) -> Option<String> {
    let part = Names::of(target).part;
    let file = read_regular(&part).ok()?;
    take::holder(&file)
}

/// The files that stand beside a target while it is fetched, whether there or not; the part file first.
pub fn file_names(target: &Path) -> [PathBuf; 3] {
    let Names { part, rival, journal, .. } = Names::of(target);
    [part, rival, journal]
}

/// Does the file at this path have all these digests?
///
/// # Errors
/// [`LocalFault::Io`] where it cannot be read.
pub fn has_digests(path: &Path, expected: &[Expected]) -> Result<bool, LocalFault> {
    let algorithms: Vec<Algorithm> = expected.iter().map(|e| e.algorithm).collect();
    let mut digests = Digests::new(&algorithms);
    let mut file = read_regular(path).map_err(on("open", path))?;
    let mut buffer = vec![0; STRIDE];
    loop {
        match file.read(&mut buffer).map_err(on("read", path))? {
            0 => break,
            n => digests.update(&buffer[..n]),
        }
    }
    let found = digests.finish();
    Ok(expected.iter().all(|e| found.iter().any(|(algorithm, bytes)| *algorithm == e.algorithm && *bytes == e.bytes)))
}

/// Does the target hold the very bytes of the part file?
///
/// # Errors
/// [`LocalFault::Io`] where either cannot be read.
pub fn adopt_equal(store: &mut PartStore) -> Result<bool, LocalFault> {
    store.settle(Place::Part)?;
    let (part, target) = (&store.names.part, &store.names.target);
    let a = read_regular(part).map_err(on("open", part))?;
    let b = read_regular(target).map_err(on("open", target))?;
    let same_size =
        a.metadata().map_err(on("examine", part))?.len() == b.metadata().map_err(on("examine", target))?.len();
    Ok(same_size && equal(a, b).map_err(on("read", target))?)
}

fn equal(a: File, b: File) -> std::io::Result<bool> {
    let (mut a, mut b) = (BufReader::with_capacity(STRIDE, a), BufReader::with_capacity(STRIDE, b));
    let (mut left, mut right) = (vec![0; STRIDE], vec![0; STRIDE]);
    loop {
        let n = a.read(&mut left)?;
        if n == 0 {
            return Ok(b.read(&mut right[..1])? == 0);
        }
        if b.read_exact(&mut right[..n]).is_err() || left[..n] != right[..n] {
            return Ok(false);
        }
    }
}

impl PartStore {
    /// Does the rival, as far as it is held, have all these digests?
    ///
    /// # Errors
    /// [`LocalFault::Io`] where it cannot be read.
    pub fn rival_has(&mut self, expected: &[Expected]) -> Result<bool, LocalFault> {
        self.settle(Place::Rival)?;
        has_digests(&self.names.rival, expected)
    }

    /// The inode of a draft's file; `None` where there is no such draft.
    pub fn inode(&self, place: Place) -> Option<u64> {
        self.draft(place).map(|d| d.inode)
    }
}
