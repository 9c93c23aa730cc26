//! An index, from its file through its reader.

use std::io::{BufReader, Read};
use std::path::Path;

use super::unpack::unpacked;
use crate::core::failure::LocalFault;
use crate::core::printable::plain_error;
use crate::core::sync::index::{BadIndex, Index, MAX_HELD, Reader};
use crate::core::sync::path::Part;
use crate::core::sync::source::Form;
use crate::io::durable::local_fault;
use crate::io::regular::read_regular;

/// So much is read at once.
const PIECE: usize = 64 << 10;

/// Why there is no index.
#[derive(Debug, thiserror::Error)]
pub enum ReadFault {
    /// Its file cannot be read.
    #[error(transparent)]
    Local(#[from] LocalFault),
    /// It cannot be unpacked.
    #[error("it cannot be unpacked: {0}")]
    Packed(String),
    /// It is none.
    #[error(transparent)]
    Bad(#[from] BadIndex),
}

/// Reads an index, packed or not.
///
/// # Errors
/// [`ReadFault`].
pub fn read_index(path: &Path, form: Form, parts: &[Part], name: &str) -> Result<Index, ReadFault> {
    let mut reader = Reader::new(form, parts, name);
    each_piece(path, &mut |piece| reader.feed(piece))?;
    Ok(reader.finish()?)
}

/// Reads something small, such as a page.
///
/// # Errors
/// [`ReadFault`].
pub fn read_small(path: &Path) -> Result<Vec<u8>, ReadFault> {
    let mut bytes = Vec::new();
    each_piece(path, &mut |piece| match bytes.len() + piece.len() > MAX_HELD {
        true => Err(BadIndex::TooLarge { limit: MAX_HELD as u64 }),
        false => {
            bytes.extend_from_slice(piece);
            Ok(())
        }
    })?;
    Ok(bytes)
}

fn each_piece(path: &Path, take: &mut dyn FnMut(&[u8]) -> Result<(), BadIndex>) -> Result<(), ReadFault> {
    let local = |error| local_fault("read", path, &error);
    let file = read_regular(path).map_err(local)?;
    let mut content = unpacked(BufReader::with_capacity(PIECE, file)).map_err(local)?;
    let mut piece = vec![0; PIECE];
    loop {
        match content.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(n) => take(&piece[..n])?,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(ReadFault::Packed(plain_error(&error))),
        }
    }
}
