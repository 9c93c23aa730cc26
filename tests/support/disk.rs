//! Disk: what a loss of power, or the end of a process, leaves of what a program did to the disk (`docs/crash-safety.md`).
//!
//! A [`Disk`] is fed the effects that were recorded, in order. From it come images: [`Disk::killed`] is what the page
//! cache holds, [`Disk::crashed`] one of the many things that may be on the disk. An image is laid out in a folder, where
//! the program can be asked what it makes of it; that folder with what is still in flight is a [`Disk`] again.
//!
//! What may happen to effects that were not flushed:
//! - bytes of a file: each block holds any of the contents that it had since the last flush, one is torn at a byte; the
//!   length is any that the file had since then, or one between; so data can be behind the length, and the length behind
//!   the data;
//! - names: none of them, all, the first few, or any choice; each one by itself is done or not done, never by halves;
//! - modes: the old one or the new one.
//!
//! The number (inode) of a file that is gone may have been given to a later one.
#![allow(dead_code, reason = "each test binary uses its own part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use persxfer::io::effects::failpoints::Effect;

use crate::disk_seed::Rng;

/// Sizes of what the disk writes at once.
const BLOCKS: [usize; 2] = [512, 4096];

/// A folder on a disk, and what of it is still in flight. Paths are relative to the folder.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    root: PathBuf,
    files: Vec<FileState>,
    by_inode: BTreeMap<u64, usize>,
    folders: BTreeSet<PathBuf>,
    names: BTreeMap<PathBuf, usize>,
    synced_folders: BTreeSet<PathBuf>,
    synced_names: BTreeMap<PathBuf, usize>,
    in_flight: Vec<NameEffect>,
    steps: usize,
}

#[derive(Clone, Debug)]
struct FileState {
    inode: u64,
    /// What it held when it was last flushed, then after each effect since.
    contents: Vec<Vec<u8>>,
    modes: Vec<u32>,
    born: usize,
    /// When it lost its last name.
    died: Option<usize>,
}

#[derive(Clone, Debug)]
enum NameEffect {
    Folder(PathBuf),
    Give { path: PathBuf, file: usize },
    Move { from: PathBuf, to: PathBuf, file: usize },
    Take { path: PathBuf, file: usize },
}

/// What is left.
#[derive(Clone, Debug)]
struct Image {
    folders: BTreeSet<PathBuf>,
    names: BTreeMap<PathBuf, usize>,
    contents: BTreeMap<usize, (Vec<u8>, u32)>,
}

/// A folder in which an image was laid out.
#[derive(Debug)]
pub(crate) struct LaidOut {
    pub(crate) dir: tempfile::TempDir,
    /// The same, with what is in flight.
    pub(crate) disk: Disk,
    /// The numbers that files have now, by those they had.
    pub(crate) inodes: BTreeMap<u64, u64>,
}

impl Disk {
    /// An empty folder, of which everything is flushed.
    pub(crate) fn empty(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            files: Vec::new(),
            by_inode: BTreeMap::new(),
            folders: BTreeSet::new(),
            names: BTreeMap::new(),
            synced_folders: BTreeSet::new(),
            synced_names: BTreeMap::new(),
            in_flight: Vec::new(),
            steps: 0,
        }
    }

    /// A file that stands there from the start, written by somebody else and flushed.
    pub(crate) fn with_file(mut self, name: &str) -> Self {
        let path = self.root.join(name);
        let meta = fs::metadata(&path).expect("it is there");
        let file = self.new_file(meta.ino(), fs::read(&path).expect("read"), meta.mode() & 0o7777);
        self.names.insert(name.into(), file);
        self.synced_names.insert(name.into(), file);
        self
    }

    /// The same disk, whose folder has this path now.
    pub(crate) fn at(self, root: &Path) -> Self {
        Self { root: root.to_owned(), ..self }
    }

    /// One effect more was done.
    pub(crate) fn take(&mut self, effect: &Effect) {
        self.steps += 1;
        match effect {
            Effect::Folder { path } => {
                let path = self.relative(path);
                self.folders.insert(path.clone());
                self.in_flight.push(NameEffect::Folder(path));
            }
            Effect::Create { path, inode } => self.create(&self.relative(path), *inode),
            Effect::Write { inode, at, bytes } => self.change(*inode, |content| {
                let (at, end) = (*at as usize, *at as usize + bytes.len());
                content.resize(content.len().max(end), 0);
                content[at..end].copy_from_slice(bytes);
            }),
            Effect::Length { inode, length } => self.change(*inode, |content| content.resize(*length as usize, 0)),
            Effect::Mode { inode, mode } => self.file(*inode).modes.push(*mode),
            Effect::Attributes { .. } => {}
            Effect::Sync { inode } => keep_last(&mut self.file(*inode).contents),
            Effect::SyncAll { inode } => {
                keep_last(&mut self.file(*inode).contents);
                keep_last(&mut self.file(*inode).modes);
            }
            Effect::SyncFolder { path } => self.sync_folder(&self.relative(path)),
            Effect::Rename { from, to } => {
                let (from, to) = (self.relative(from), self.relative(to));
                let file = self.names.remove(&from).expect("it has the name that it loses");
                self.give(&to, file);
                self.in_flight.push(NameEffect::Move { from, to, file });
            }
            Effect::Link { from, to } => {
                let file = self.names[&self.relative(from)];
                let path = self.relative(to);
                self.give(&path, file);
                self.in_flight.push(NameEffect::Give { path, file });
            }
            Effect::Unlink { path } => {
                let path = self.relative(path);
                // The mark of a living process comes without an effect: nothing of it matters after a loss of power.
                if is_life_sign(&path) {
                    return;
                }
                let file = self.names.remove(&path).expect("it has the name that it loses");
                self.bury(file);
                self.in_flight.push(NameEffect::Take { path, file });
            }
        }
    }

    /// What the next process finds when this one has ended: everything that was done. It stays in flight.
    pub(crate) fn killed(&self, rng: &mut Rng) -> LaidOut {
        let last = |file: &FileState| (last(&file.contents).clone(), *last(&file.modes));
        let contents = self.names.values().map(|id| (*id, last(&self.files[*id]))).collect();
        let image = Image { folders: self.folders.clone(), names: self.names.clone(), contents };
        self.lay_out(&image, rng, InFlight::Stays)
    }

    /// Something that may be on the disk after a loss of power at this moment.
    pub(crate) fn crashed(&self, rng: &mut Rng) -> LaidOut {
        let (folders, mut names) = self.names_left(rng);
        names.retain(|path, _| path.parent().is_none_or(|p| p == Path::new("") || folders.contains(p)));
        let ids: BTreeSet<usize> = names.values().copied().collect();
        let contents = ids.into_iter().map(|id| (id, self.files[id].left(rng))).collect();
        self.lay_out(&Image { folders, names, contents }, rng, InFlight::Lost)
    }

    fn names_left(&self, rng: &mut Rng) -> (BTreeSet<PathBuf>, BTreeMap<PathBuf, usize>) {
        let (mut folders, mut names) = (self.synced_folders.clone(), self.synced_names.clone());
        let way = rng.below(4);
        let first = rng.below(self.in_flight.len() + 1);
        for (i, effect) in self.in_flight.iter().enumerate() {
            let done = match way {
                0 => false,
                1 => true,
                2 => i < first,
                _ => rng.below(2) == 0,
            };
            if done {
                effect.on(&mut folders, &mut names);
            }
        }
        (folders, names)
    }

    fn lay_out(&self, image: &Image, rng: &mut Rng, in_flight: InFlight) -> LaidOut {
        let dir = tempfile::Builder::new().prefix("persxfer-crash-").tempdir_in(memory()).expect("a folder");
        for folder in &image.folders {
            fs::create_dir_all(dir.path().join(folder)).expect("made");
        }
        let mut inodes = BTreeMap::new();
        let mut first: BTreeMap<usize, PathBuf> = BTreeMap::new();
        for (name, id) in &image.names {
            let path = dir.path().join(name);
            if let Some(other) = first.get(id) {
                fs::hard_link(other, path).expect("linked");
                continue;
            }
            fs::write(&path, b"").expect("written");
            inodes.insert(self.files[*id].inode, fs::metadata(&path).expect("there").ino());
            first.insert(*id, path);
        }
        self.reuse_numbers(&mut inodes, rng);
        for (id, path) in &first {
            let (content, mode) = &image.contents[id];
            fs::write(path, renumbered(content, &inodes)).expect("written");
            fs::set_permissions(path, fs::Permissions::from_mode(*mode)).expect("set");
        }
        let disk = match in_flight {
            InFlight::Stays => self.moved(dir.path(), &inodes),
            InFlight::Lost => Self::flushed(dir.path(), image),
        };
        LaidOut { dir, disk, inodes }
    }

    /// A file that is gone may have left its number to one made later, which has it then wherever it is written down.
    fn reuse_numbers(&self, inodes: &mut BTreeMap<u64, u64>, rng: &mut Rng) {
        let living: Vec<(usize, u64)> =
            self.files.iter().filter_map(|f| inodes.get(&f.inode).map(|now| (f.born, *now))).collect();
        for gone in &self.files {
            let later = living.iter().filter(|(born, _)| gone.died.is_some_and(|died| *born > died));
            let heirs: Vec<u64> = later.map(|(_, now)| *now).collect();
            if !heirs.is_empty() && rng.below(2) == 0 {
                inodes.entry(gone.inode).or_insert(heirs[rng.below(heirs.len())]);
            }
        }
    }

    /// The same in another folder, where files have other numbers.
    fn moved(&self, root: &Path, inodes: &BTreeMap<u64, u64>) -> Self {
        let mut disk = self.clone();
        root.clone_into(&mut disk.root);
        disk.by_inode.clear();
        for (id, file) in disk.files.iter_mut().enumerate() {
            for content in &mut file.contents {
                *content = renumbered(content, inodes);
            }
            if file.died.is_none() {
                file.inode = inodes[&file.inode];
                disk.by_inode.insert(file.inode, id);
            } else {
                // A number that no file has; what was written down of it is another matter.
                file.inode = u64::MAX / 2 + id as u64;
            }
        }
        disk
    }

    fn flushed(root: &Path, image: &Image) -> Self {
        let mut disk = Self::empty(root);
        for name in image.names.keys() {
            let meta = fs::metadata(root.join(name)).expect("there");
            let file = match disk.by_inode.get(&meta.ino()) {
                Some(file) => *file,
                None => disk.new_file(meta.ino(), fs::read(root.join(name)).expect("read"), meta.mode() & 0o7777),
            };
            disk.names.insert(name.clone(), file);
        }
        (disk.folders, disk.synced_folders) = (image.folders.clone(), image.folders.clone());
        disk.synced_names = disk.names.clone();
        disk
    }

    fn create(&mut self, path: &Path, inode: u64) {
        if self.names.get(path).is_some_and(|file| self.files[*file].inode == inode) {
            return;
        }
        let file = self.new_file(inode, Vec::new(), 0o600);
        self.give(path, file);
        self.in_flight.push(NameEffect::Give { path: path.to_owned(), file });
    }

    fn new_file(&mut self, inode: u64, content: Vec<u8>, mode: u32) -> usize {
        let file = FileState { inode, contents: vec![content], modes: vec![mode], born: self.steps, died: None };
        self.files.push(file);
        self.by_inode.insert(inode, self.files.len() - 1);
        self.files.len() - 1
    }

    fn give(&mut self, path: &Path, file: usize) {
        if let Some(old) = self.names.insert(path.to_owned(), file) {
            self.bury(old);
        }
    }

    fn bury(&mut self, file: usize) {
        if !self.names.values().any(|named| *named == file) {
            self.files[file].died = Some(self.steps);
        }
    }

    fn sync_folder(&mut self, folder: &Path) {
        for effect in std::mem::take(&mut self.in_flight) {
            if effect.is_in(folder) {
                effect.on(&mut self.synced_folders, &mut self.synced_names);
            } else {
                self.in_flight.push(effect);
            }
        }
    }

    fn change(&mut self, inode: u64, change: impl FnOnce(&mut Vec<u8>)) {
        let contents = &mut self.file(inode).contents;
        let mut content = last(contents).clone();
        change(&mut content);
        if content != *last(contents) {
            contents.push(content);
        }
    }

    fn file(&mut self, inode: u64) -> &mut FileState {
        let id = *self.by_inode.get(&inode).expect("a file that was made or stood there");
        &mut self.files[id]
    }

    fn relative(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.root).expect("below the folder").to_owned()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum InFlight {
    Stays,
    Lost,
}

impl FileState {
    /// What may be on the disk of it.
    fn left(&self, rng: &mut Rng) -> (Vec<u8>, u32) {
        let content = match rng.below(4) {
            0 => self.contents[0].clone(),
            1 => last(&self.contents).clone(),
            2 => rng.choose(&self.contents).clone(),
            _ => self.torn(rng),
        };
        (content, *rng.choose(&self.modes))
    }

    fn torn(&self, rng: &mut Rng) -> Vec<u8> {
        let lengths: Vec<usize> = self.contents.iter().map(Vec::len).collect();
        let (least, most) = (lengths.iter().min().copied().unwrap_or(0), lengths.iter().max().copied().unwrap_or(0));
        let length = if rng.below(2) == 0 { *rng.choose(&lengths) } else { least + rng.below(most - least + 1) };
        let block = *rng.choose(&BLOCKS);
        let byte = |content: &Vec<u8>, i: usize| content.get(i).copied().unwrap_or(0);
        let mut left: Vec<u8> = Vec::with_capacity(length);
        while left.len() < length {
            let (start, end) = (left.len(), length.min(left.len() + block));
            let content = rng.choose(&self.contents);
            left.extend((start..end).map(|i| byte(content, i)));
        }
        if length > 0 {
            // One block, torn: what was written of it up to some byte, and something else beyond.
            let (at, content) = (rng.below(length), rng.choose(&self.contents));
            let end = length.min(at / block * block + block);
            (at..end).for_each(|i| left[i] = byte(content, i));
        }
        left
    }
}

impl NameEffect {
    fn is_in(&self, folder: &Path) -> bool {
        let (Self::Folder(path) | Self::Give { path, .. } | Self::Move { to: path, .. } | Self::Take { path, .. }) =
            self;
        path.parent() == Some(folder)
    }

    fn on(&self, folders: &mut BTreeSet<PathBuf>, names: &mut BTreeMap<PathBuf, usize>) {
        let mut lose = |path: &PathBuf, file: &usize| {
            if names.get(path) == Some(file) {
                names.remove(path);
            }
        };
        match self {
            Self::Folder(path) => _ = folders.insert(path.clone()),
            Self::Take { path, file } => lose(path, file),
            Self::Move { from, to, file } => {
                lose(from, file);
                names.insert(to.clone(), *file);
            }
            Self::Give { path, file } => _ = names.insert(path.clone(), *file),
        }
    }
}

/// Where nothing has to wait for a disk, if there is such a place.
pub(crate) fn memory() -> PathBuf {
    let shared = PathBuf::from("/dev/shm");
    if shared.is_dir() { shared } else { std::env::temp_dir() }
}

/// A journal with the numbers that its files have now; anything else as it is. The records are those of
/// `docs/part-file.md`; one that is torn stays as it is.
fn renumbered(content: &[u8], inodes: &BTreeMap<u64, u64>) -> Vec<u8> {
    let mut content = content.to_vec();
    let mut at = 0;
    while content.get(at + 8) == Some(&b'H') || at > 0 {
        let Some(head) = content.get(at..at + 8) else { break };
        let number = |range: std::ops::Range<usize>| u32::from_le_bytes(head[range].try_into().expect("four bytes"));
        let (length, sum) = (number(0..4), number(4..8));
        let Some(body) = content.get(at + 8..at + 8 + length as usize) else { break };
        let sum_of = |body: &[u8]| crc32c::crc32c_append(crc32c::crc32c(&length.to_le_bytes()), body);
        if sum != sum_of(body) || body.is_empty() {
            break;
        }
        let mut body = body.to_vec();
        let place = match body[0] {
            b'C' => Some(11..19),
            b'P' => Some(2..10),
            b'S' => Some(3..11),
            _ => None,
        };
        if let Some(place) = place {
            let was = u64::from_le_bytes(body[place.clone()].try_into().expect("eight bytes"));
            // A file that is gone has a number that no file has.
            let now = inodes.get(&was).copied().unwrap_or(u64::MAX);
            body[place].copy_from_slice(&(if was == 0 { 0 } else { now }).to_le_bytes());
        }
        content[at + 4..at + 8].copy_from_slice(&sum_of(&body).to_le_bytes());
        content[at + 8..at + 8 + body.len()].copy_from_slice(&body);
        at += 8 + body.len();
    }
    content
}

fn is_life_sign(path: &Path) -> bool {
    path.extension().and_then(|text| text.to_str()).is_some_and(|text| text.starts_with("run-"))
}

fn last<T>(all: &[T]) -> &T {
    all.last().expect("never empty")
}

fn keep_last<T>(all: &mut Vec<T>) {
    all.drain(..all.len() - 1);
}
