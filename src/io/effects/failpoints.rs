//! Failpoints: records what is done to the disk, and ends the process where a test wants it to end. Not in a usual build.
//!
//! | variable | does |
//! |---|---|
//! | `PERSXFER_ABORT_AT=N` | the process ends right before its Nth effect, as by `kill -9` |
//! | `PERSXFER_ABORT_AT=N:after` | right after it |
//! | `PERSXFER_ABORT_AT=N:torn` | with half of it done, where it is a write; else before it |
//! | `PERSXFER_EFFECTS=FILE` | each effect is appended to the file as a line: number, name |
//!
//! All effects of a process are done one after the other here, so that their order is the one recorded.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, IoSlice, Seek as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// A change that was made. Files are told by their inode, names by the path that was used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields say what they are")]
pub enum Effect {
    /// A folder was made.
    Folder { path: PathBuf },
    /// A file was opened, and made where it was not there.
    Create { path: PathBuf, inode: u64 },
    /// Bytes were written.
    Write { inode: u64, at: u64, bytes: Vec<u8> },
    /// A file was cut, or made longer with zeros.
    Length { inode: u64, length: u64 },
    /// A mode was set.
    Mode { inode: u64, mode: u32 },
    /// Something else was set that no byte depends on.
    Attributes { inode: u64 },
    /// Data and length were flushed.
    Sync { inode: u64 },
    /// Data, length and everything else were flushed.
    SyncAll { inode: u64 },
    /// The names in a folder were flushed.
    SyncFolder { path: PathBuf },
    /// A file got another name, in place of whatever had it.
    Rename { from: PathBuf, to: PathBuf },
    /// A file got a second name.
    Link { from: PathBuf, to: PathBuf },
    /// A name was taken away.
    Unlink { path: PathBuf },
}

/// What is done below a folder, from [`Recording::of`] until this is dropped.
#[derive(Debug)]
pub struct Recording {
    tape: Arc<Mutex<Tape>>,
}

#[derive(Debug)]
struct Tape {
    root: PathBuf,
    inodes: Vec<u64>,
    effects: Vec<Effect>,
}

/// When the process is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Abort {
    number: u64,
    moment: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Before,
    Torn,
    After,
}

static TAPES: Mutex<Vec<Arc<Mutex<Tape>>>> = Mutex::new(Vec::new());
/// How many effects there have been. Held while one is done.
static COUNT: Mutex<u64> = Mutex::new(0);
static ABORT: LazyLock<Option<Abort>> = LazyLock::new(|| Abort::parse(&std::env::var("PERSXFER_ABORT_AT").ok()?));
static LINES: LazyLock<Option<PathBuf>> = LazyLock::new(|| std::env::var_os("PERSXFER_EFFECTS").map(PathBuf::from));

thread_local! {
    /// How many effects this thread may still have; `None` for any number.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// What this thread does to the disk from its nth effect on does not happen, as if its process had been killed: the effects
/// fail, until [`revive`].
pub fn die_after(effects: u64) {
    LEFT.set(Some(effects));
}

/// Another process begins.
pub fn revive() {
    LEFT.set(None);
}

/// Has this thread been killed?
pub fn is_dead() -> bool {
    LEFT.get() == Some(0)
}

/// One effect less.
fn live_on() -> Result<(), rustix::io::Errno> {
    if is_dead() {
        return Err(rustix::io::Errno::IO);
    }
    LEFT.set(LEFT.get().map(|left| left - 1));
    Ok(())
}

impl Recording {
    /// Records what this process does below `root`, an absolute path. The files that stand there already are known.
    pub fn of(root: &Path) -> Self {
        let tape = Tape { root: root.to_owned(), inodes: inodes_below(root), effects: Vec::new() };
        let tape = Arc::new(Mutex::new(tape));
        locked(&TAPES).push(Arc::clone(&tape));
        Self { tape }
    }

    /// How many effects it holds.
    pub fn count(&self) -> usize {
        locked(&self.tape).effects.len()
    }

    /// The effects so far, in order.
    pub fn effects(&self) -> Vec<Effect> {
        locked(&self.tape).effects.clone()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        locked(&TAPES).retain(|tape| !Arc::ptr_eq(tape, &self.tape));
    }
}

impl Tape {
    fn take(&mut self, effect: &Effect) {
        if let Effect::Create { path, inode } = effect {
            // A number may be given again, to a file of another recording.
            self.inodes.retain(|known| known != inode);
            if path.starts_with(&self.root) {
                self.inodes.push(*inode);
            }
        }
        if self.concerns(effect) {
            self.effects.push(effect.clone());
        }
    }

    fn concerns(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Create { path, .. }
            | Effect::Folder { path }
            | Effect::SyncFolder { path }
            | Effect::Unlink { path } => path.starts_with(&self.root),
            Effect::Rename { to, .. } | Effect::Link { to, .. } => to.starts_with(&self.root),
            Effect::Write { inode, .. }
            | Effect::Length { inode, .. }
            | Effect::Mode { inode, .. }
            | Effect::Attributes { inode }
            | Effect::Sync { inode }
            | Effect::SyncAll { inode } => self.inodes.contains(inode),
        }
    }
}

impl Abort {
    fn parse(text: &str) -> Option<Self> {
        let (number, moment) = text.split_once(':').unwrap_or((text, "before"));
        let moment = match moment {
            "before" => Moment::Before,
            "torn" => Moment::Torn,
            "after" => Moment::After,
            _ => return None,
        };
        Some(Self { number: number.parse().ok()?, moment })
    }

    fn is_due(moment: Moment, number: u64) -> bool {
        *ABORT == Some(Self { number, moment })
    }
}

/// Does an effect, and tells everybody.
pub(super) fn announced<R, E: From<rustix::io::Errno>>(
    name: &str,
    act: impl FnOnce() -> Result<R, E>,
    effect: impl FnOnce(&R) -> Effect,
) -> Result<R, E> {
    live_on()?;
    let mut count = locked(&COUNT);
    *count += 1;
    tell(*count, name);
    if Abort::is_due(Moment::Before, *count) || Abort::is_due(Moment::Torn, *count) {
        std::process::abort();
    }
    let result = act();
    if let Ok(done) = &result
        && !locked(&TAPES).is_empty()
    {
        let effect = effect(done);
        locked(&TAPES).iter().for_each(|tape| locked(tape).take(&effect));
    }
    if Abort::is_due(Moment::After, *count) {
        std::process::abort();
    }
    result
}

/// Where the next effect, a write, is to be torn: does half of it, and ends the process.
pub(super) fn torn(file: &File, slices: &[IoSlice<'_>], at: u64) {
    let count = locked(&COUNT);
    if Abort::is_due(Moment::Torn, *count + 1) {
        let bytes = joined(slices);
        tell(*count + 1, "torn write");
        // Whatever comes of it: the process ends.
        let _ = file.write_all_at(&bytes[..bytes.len() / 2], at);
        std::process::abort();
    }
}

pub(super) fn written(file: &File, slices: &[IoSlice<'_>], at: u64, n: usize) -> Effect {
    let mut bytes = joined(slices);
    bytes.truncate(n);
    Effect::Write { inode: inode_of(file), at, bytes }
}

fn joined(slices: &[IoSlice<'_>]) -> Vec<u8> {
    slices.iter().flat_map(|slice| slice.iter().copied()).collect()
}

/// What an empty file holds after something was copied into it.
pub(super) fn copied(file: &File) -> Effect {
    let length = file.metadata().map_or(0, |meta| meta.len());
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    // A recording is right or of no use at all; the test that reads it will tell.
    let _ = file.read_exact_at(&mut bytes, 0);
    Effect::Write { inode: inode_of(file), at: 0, bytes }
}

pub(super) fn inode_of(file: &File) -> u64 {
    file.metadata().map_or(0, |meta| meta.ino())
}

/// Where a file's cursor stands.
pub(super) fn position(mut file: &File) -> io::Result<u64> {
    file.stream_position()
}

fn tell(number: u64, name: &str) {
    let Some(path) = LINES.as_ref() else { return };
    let file = File::options().append(true).create(true).open(path);
    // For tests, which look whether the lines are there.
    let _ = file.and_then(|mut file| writeln!(file, "{number} {name}"));
}

fn inodes_below(folder: &Path) -> Vec<u64> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(meta) if meta.is_dir() => found.extend(inodes_below(&entry.path())),
            Ok(meta) => found.push(meta.ino()),
            Err(_) => {}
        }
    }
    found
}

fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
