//! Whole lives of a store: kills, reboots, strangers' files, full disks, and the digests through all of them.

mod crashes;
mod damage;
mod inspecting;
mod lives;
mod segments;
mod segments_random;
mod strangers;
mod versions;

use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::core::digest::Algorithm;
use crate::core::file_xfer::Place;
use crate::core::file_xfer::dossier::{Dossier, Draft};
use crate::core::pers_xfer::record::Evidence;
use crate::core::range::{Length, Offset};
use crate::core::time::{Epoch, Mono};
use crate::io::part::{BlockSums, Boot, Clobber, Opened, PartStore, Publish, Slow, Spec, SyncMode, is_witnessed, tidy};

const MIB: usize = 1 << 20;
const FIRST_BOOT: Boot = Boot::Id([1; 16]);
const SECOND_BOOT: Boot = Boot::Id([2; 16]);
const PLAIN: Publish =
    Publish { existing: Clobber::Refuse, mtime: None, at: Epoch::from_secs(9), evidence: Evidence::Length };

/// A folder with one download in it.
struct Folder {
    dir: tempfile::TempDir,
    target: PathBuf,
    spec: Spec,
}

impl Folder {
    fn new(algorithms: &[Algorithm]) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let target = dir.path().join("file.bin");
        let spec = Spec {
            algorithms: algorithms.to_vec(),
            sync: SyncMode::Full,
            sums: BlockSums::default(),
            boot: FIRST_BOOT,
            slow: Slow::Beside,
        };
        Self { dir, target, spec }
    }

    fn part(&self) -> PathBuf {
        self.dir.path().join("file.bin.persxfer-part")
    }

    fn journal(&self) -> PathBuf {
        self.dir.path().join("file.bin.persxfer-journal")
    }

    /// Opens it as a record would that has seen the file's size.
    fn open(&self) -> Opened {
        PartStore::open(&self.target, &claiming(), self.spec.clone()).expect("opened")
    }

    fn open_in(&mut self, boot: Boot) -> Opened {
        self.spec.boot = boot;
        self.open()
    }

    /// The names in the folder, sorted.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.dir.path())
            .expect("the folder")
            .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// A record that knows of the part file, and of nothing beyond.
fn claiming() -> Dossier {
    let part = Draft { content_type: Some("application/octet-stream".into()), ..Draft::default() };
    Dossier { part, ..Dossier::default() }
}

/// Bytes that look random, the same every time.
fn noise(n: usize, seed: u32) -> Vec<u8> {
    let mut x = seed.wrapping_mul(2_654_435_761) | 1;
    std::iter::repeat_with(|| {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        (x >> 11) as u8
    })
    .take(n)
    .collect()
}

/// Writes `bytes` at the end, in pieces like those of a connection.
fn write(store: &mut PartStore, place: Place, bytes: &[u8]) {
    for piece in bytes.chunks(40_000) {
        let at = store.held(place).as_end();
        store.write(place, at, Bytes::copy_from_slice(piece)).expect("written");
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("read")
}

fn at_ms(ms: u64) -> Mono {
    Mono::from_micros(ms * 1000)
}

/// The digest that `algorithm` gives for all of `bytes`.
fn digest_of(algorithm: Algorithm, bytes: &[u8]) -> Vec<u8> {
    let mut digests = super::digests::Digests::new(&[algorithm]);
    digests.update(bytes);
    digests.finish().remove(0).1
}

fn held(n: usize) -> Length {
    Length(n as u64)
}

fn offset(n: usize) -> Offset {
    Offset(n as u64)
}
