//! Finding transfers by identity, name and path without holding their names and paths.
//!
//! Names and paths are kept as 64-bit hashes, 12 bytes each; a find is verified on the record itself.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::tree::Element;
use super::{OURS, decode, scalar};
use crate::core::pers_xfer::record::XferId;
use crate::core::time::Epoch;

/// What one transfer is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    /// Its own identity, where it has one.
    pub(super) id: Option<XferId>,
    /// The identity it gets where it has none: that of its name and project, so that it is the same at the next reading.
    pub(super) derived: XferId,
    /// The hash of its name.
    pub(super) name: u64,
    /// The hash of its path.
    pub(super) path: Option<u64>,
    /// When it was finished, where it is one of ours that is.
    pub(super) finished: Option<Epoch>,
}

/// Where in the document each transfer is.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    ids: BTreeMap<XferId, u32>,
    names: BTreeSet<(u64, u32)>,
    paths: BTreeSet<(u64, u32)>,
    /// Those that are finished, the oldest first.
    finished: BTreeSet<(Epoch, XferId)>,
    /// For a name that was taken, the last number tried behind it.
    numbers: BTreeMap<u64, u32>,
    /// For an identity that was taken, the next one that may be free.
    next: BTreeMap<XferId, XferId>,
}

/// The keys of a transfer in the how-manieth project of its file.
pub(super) fn keys(element: &Element<'_>, project: u32) -> Keys {
    let ours = element.child(OURS);
    let name = element.child("name").map(scalar::text).unwrap_or_default();
    Keys {
        id: ours.and_then(|o| o.child("id")).and_then(|e| scalar::id(&e.text())),
        derived: XferId(fnv(&[&project.to_be_bytes(), name.as_bytes()].concat())),
        name: hash_name(&name),
        path: ours.and_then(|o| o.child("path")).map(|e| hash_path(&scalar::path(e))),
        finished: ours.filter(|_| is_done(element)).and_then(|o| decode::time(o.child("finished"), "time")),
    }
}

/// Is its status that of a finished transfer? One that begins anew keeps what it was.
fn is_done(element: &Element<'_>) -> bool {
    let upload = element.child("upload_url").is_some();
    let status = element.child("status").and_then(|e| scalar::integer(&e.text()));
    status == Some(1) && (!upload || scalar::flag(element.child("uploaded")))
}

/// The hash of a name.
pub(super) fn hash_name(name: &str) -> u64 {
    fnv(name.as_bytes())
}

/// The hash of a path.
pub(super) fn hash_path(path: &Path) -> u64 {
    fnv(path.as_os_str().as_bytes())
}

/// FNV-1a, 64 bits: the same everywhere and always, which a derived identity must be.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Index {
    /// How many transfers.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Where the transfer of that identity is.
    pub(super) fn slot(&self, id: XferId) -> Option<u32> {
        self.ids.get(&id).copied()
    }

    /// Where transfers may be that have that name.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = u32> {
        at(&self.names, hash_name(name))
    }

    /// Where transfers may be that have that path.
    pub(super) fn at_path(&self, path: &Path) -> impl Iterator<Item = u32> {
        at(&self.paths, hash_path(path))
    }

    /// Enters a transfer.
    pub(super) fn insert(&mut self, id: XferId, keys: &Keys, slot: u32) {
        self.ids.insert(id, slot);
        self.names.insert((keys.name, slot));
        self.paths.extend(keys.path.map(|path| (path, slot)));
        self.finished.extend(keys.finished.map(|at| (at, id)));
    }

    /// Takes a transfer out.
    pub(super) fn remove(&mut self, id: XferId, keys: &Keys, slot: u32) {
        self.ids.remove(&id);
        self.names.remove(&(keys.name, slot));
        if let Some(path) = keys.path {
            self.paths.remove(&(path, slot));
        }
        if let Some(at) = keys.finished {
            self.finished.remove(&(at, id));
        }
    }

    /// The finished ones beyond the newest `most`, the oldest first.
    pub(super) fn outdated(&self, most: usize) -> Vec<XferId> {
        let beyond = self.finished.len().saturating_sub(most);
        self.finished.iter().take(beyond).map(|(_, id)| *id).collect()
    }

    /// An identity that is free, from `wanted` on.
    pub(super) fn free(&mut self, wanted: XferId) -> XferId {
        if !self.ids.contains_key(&wanted) {
            return wanted;
        }
        // Goes on where it ended last, so that a hundred thousand of one name stay cheap.
        let mut id = self.next.get(&wanted).copied().unwrap_or(wanted);
        while self.ids.contains_key(&id) {
            id = XferId(id.0.wrapping_add(1));
        }
        self.next.insert(wanted, XferId(id.0.wrapping_add(1)));
        id
    }

    /// `wanted`, or with `~2`, `~3` and so on behind it where that name is taken.
    pub(super) fn unique_name(&mut self, wanted: &str) -> String {
        let taken = |name: &str| at(&self.names, hash_name(name)).next().is_some();
        if !taken(wanted) {
            return wanted.to_owned();
        }
        // Goes on where it ended last, so that a hundred thousand of one name stay cheap.
        let number = self.numbers.entry(hash_name(wanted)).or_insert(1);
        loop {
            *number = number.saturating_add(1);
            let name = format!("{wanted}~{number}");
            if !taken(&name) {
                return name;
            }
        }
    }
}

fn at(set: &BTreeSet<(u64, u32)>, hash: u64) -> impl Iterator<Item = u32> {
    set.range((hash, 0)..=(hash, u32::MAX)).map(|(_, slot)| *slot)
}
