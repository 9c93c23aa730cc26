//! Batches: many files get their final names together. First all of them are flushed, then each is renamed, then the
//! folders are flushed; a reader never sees half a file, and a loss of power never leaves a name with nothing behind it.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Read, Seek as _, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::core::failure::LocalFault;
use crate::core::time::Epoch;
use crate::io::durable::{self, Clobber, folder_of, local_fault};
use crate::io::effects;
use crate::io::regular::read_regular;

/// So many files are placed together.
const MANY: usize = 4_096;
/// What is gathered before it is written, in bytes.
const GATHER: usize = 64 << 10;

/// A file that waits for its name.
#[derive(Clone, Debug)]
pub struct Staged {
    /// Where it is, in the same file system.
    pub from: PathBuf,
    /// Its final name.
    pub to: PathBuf,
    /// What becomes of a file that has the name.
    pub clobber: Clobber,
}

/// A piece of a file that is made.
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// So many bytes of another file, from there on; fewer where it ends sooner.
    Of {
        /// The file.
        file: &'a Path,
        /// From where on.
        at: u64,
        /// How many.
        length: u64,
    },
}

/// Where a new file goes.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Its final name.
    pub path: PathBuf,
    /// What becomes of a file that has the name.
    pub clobber: Clobber,
    /// Its modification time, where it is not now.
    pub modified: Option<Epoch>,
}

/// Files that get their names together, in the order in which they were added.
#[derive(Debug)]
pub struct Batch {
    /// Where files are staged.
    folder: PathBuf,
    staged: Vec<Staged>,
    made: u64,
}

impl Batch {
    /// With a folder of its own for files under way; what an earlier process left in it is removed.
    ///
    /// # Errors
    /// What the system said.
    pub fn begin(folder: PathBuf) -> Result<Self, LocalFault> {
        durable::create_folder(&folder, durable::SHARED_FOLDER)?;
        for entry in std::fs::read_dir(&folder).map_err(|e| local_fault("list", &folder, &e))?.flatten() {
            durable::remove(&entry.path())?;
        }
        Ok(Self { folder, staged: Vec::new(), made: 0 })
    }

    /// A file that exists gets its name with the next commit.
    pub fn add(&mut self, staged: Staged) {
        self.staged.push(staged);
    }

    /// Stages a new file that is made of these pieces.
    ///
    /// # Errors
    /// What the system said.
    pub fn write(&mut self, pieces: &[Piece<'_>], to: Placed) -> Result<(), LocalFault> {
        self.made += 1;
        let from = self.folder.join(self.made.to_string());
        durable::remove(&from)?;
        fill(&from, pieces, to.modified)?;
        self.add(Staged { from, to: to.path, clobber: to.clobber });
        Ok(())
    }

    /// Is it time for a commit?
    pub const fn is_full(&self) -> bool {
        self.staged.len() >= MANY
    }

    /// Gives all of them their names. A name that was taken meanwhile, and may not be, stays as it is: its file is told to
    /// `refused`, and removed.
    ///
    /// # Errors
    /// What the system said; what has got its name has it.
    pub fn commit(&mut self, refused: &mut dyn FnMut(&Path)) -> Result<(), LocalFault> {
        let staged = std::mem::take(&mut self.staged);
        if staged.is_empty() {
            return Ok(());
        }
        let folders: BTreeSet<&Path> = staged.iter().map(|one| folder_of(&one.to)).collect();
        folders.iter().try_for_each(|folder| durable::create_folder(folder, durable::SHARED_FOLDER))?;
        durable::sync_files(&self.folder, staged.iter().map(|one| one.from.as_path()))?;
        for one in &staged {
            match durable::publish(&one.from, &one.to, one.clobber) {
                Err(LocalFault::NotOurs { .. }) => {
                    refused(&one.to);
                    durable::remove(&one.from)?;
                }
                other => other?,
            }
        }
        durable::sync_folders(&self.folder, folders.into_iter())
    }
}

fn fill(path: &Path, pieces: &[Piece<'_>], modified: Option<Epoch>) -> Result<(), LocalFault> {
    let local = |error| local_fault("write", path, &error);
    let file = effects::open(OpenOptions::new().write(true).create_new(true).mode(0o666), path).map_err(local)?;
    let mut out = BufWriter::with_capacity(GATHER, effects::Writer(&file));
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => out.write_all(bytes).map_err(local)?,
            Piece::Of { file, at, length } => {
                let read = |error| local_fault("read", file, &error);
                let mut from = read_regular(file).map_err(read)?;
                from.seek(SeekFrom::Start(*at)).map_err(read)?;
                pass(&mut from.take(*length), &mut out, read, local)?;
            }
        }
    }
    out.flush().map_err(local)?;
    drop(out);
    modified.map_or(Ok(()), |at| effects::set_modified(&file, at).map_err(local))
}

/// What fails tells which of the two files it was.
fn pass(
    from: &mut impl Read,
    to: &mut impl Write,
    read: impl Fn(io::Error) -> LocalFault,
    written: impl Fn(io::Error) -> LocalFault,
) -> Result<(), LocalFault> {
    let mut piece = vec![0; GATHER];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(n) => to.write_all(&piece[..n]).map_err(&written)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(read(error)),
        }
    }
}

/// Gives a file the time that an index tells.
///
/// # Errors
/// What the system said.
pub fn set_time(path: &Path, at: Epoch) -> Result<(), LocalFault> {
    let local = |error| local_fault("set the time of", path, &error);
    let file =
        OpenOptions::new().write(true).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()).open(path);
    effects::set_modified(&file.map_err(local)?, at).map_err(local)
}
