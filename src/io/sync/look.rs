//! A look at a file: what is in it, by the reader of its kind, and the digest of what would be kept of it.

use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::core::failure::LocalFault;
use crate::core::range::Length;
use crate::core::sync::diff::Standing;
use crate::core::sync::kinds::{Kind, Reader, Segment};
use crate::core::time::Epoch;
use crate::io::durable::local_fault;
use crate::io::regular::read_regular;

const PIECE: usize = 256 << 10;

/// What was seen of a whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// The annotation that is put in front of what is kept; empty where it has one.
    pub prefix: String,
    /// The length of what is kept, that annotation included.
    pub size: Length,
    /// Its SHA-256.
    pub sha256: [u8; 32],
    /// The SHA-256 of the file as it is.
    pub sha256_as_is: [u8; 32],
}

/// Reads a file of this kind; `see` is given each descriptor.
///
/// # Errors
/// The file cannot be read.
pub fn look(path: &Path, kind: &'static Kind, see: &mut dyn FnMut(Segment)) -> Result<Looked, LocalFault> {
    let local = |error| local_fault("read", path, &error);
    let mut file = read_regular(path).map_err(local)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (mut reader, mut found) = (Reader::new(kind, &name), Vec::new());
    let mut looked = Looked { prefix: String::new(), size: Length::ZERO, sha256: [0; 32], sha256_as_is: [0; 32] };
    let (mut kept, mut as_is, mut size) = (Sha256::new(), Sha256::new(), 0);
    let mut piece = vec![0; PIECE];
    loop {
        let n = match file.read(&mut piece) {
            Ok(n) => n,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(local(error)),
        };
        if size == 0 && piece[..n].first() != Some(&b'@') {
            looked.prefix = kind.annotation();
            kept.update(&looked.prefix);
        }
        if n == 0 {
            break;
        }
        size += n as u64;
        kept.update(&piece[..n]);
        as_is.update(&piece[..n]);
        reader.feed(&piece[..n], &mut found);
        found.drain(..).for_each(&mut *see);
    }
    reader.finish(&mut found);
    found.into_iter().for_each(see);
    looked.size = Length(size + looked.prefix.len() as u64);
    (looked.sha256, looked.sha256_as_is) = (kept.finalize().into(), as_is.finalize().into());
    Ok(looked)
}

/// Can a file stand at this path below a folder? Not where a folder stands there, or a file in the place of a folder.
///
/// # Errors
/// What the system said.
pub fn is_free(root: &Path, path: &str) -> Result<bool, LocalFault> {
    let mut place = root.to_owned();
    let mut components = path.split('/').peekable();
    while let Some(component) = components.next() {
        place.push(component);
        match place.metadata() {
            Ok(meta) if meta.is_dir() == components.peek().is_some() => {}
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
            Err(error) if error.kind() == ErrorKind::NotADirectory => return Ok(false),
            Err(error) => return Err(local_fault("look at", &place, &error)),
        }
    }
    Ok(true)
}

/// A regular file as it stands; nothing where there is none, or something else.
///
/// # Errors
/// What the system said.
pub fn standing(path: &Path) -> Result<Option<Standing>, LocalFault> {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_file() => {
            Ok(Some(Standing { size: Length(meta.len()), modified: Epoch::from_secs(meta.mtime()) }))
        }
        Ok(_) => Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(local_fault("look at", path, &error)),
    }
}
