//! Buffers for what is read from files, used again and again: the allocator gives memory of this size back to the system
//! at every chance, and faulting it in anew costs more than sending it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// So much is read and handed on at once; larger pieces cost as much, also where the kernel sends the file.
pub(super) const PIECE: usize = 256 << 10;
/// So many are kept: hyper holds two at a time for each request.
const KEPT: usize = 8;

/// The buffers that are free.
#[derive(Debug, Default)]
pub(super) struct Buffers(Mutex<Vec<Vec<u8>>>);

/// A buffer in use; it comes back when dropped.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    filled: usize,
    home: Arc<Buffers>,
}

impl Buffers {
    /// One of [`PIECE`] bytes, of which `length` are to be filled.
    pub(super) fn take(self: &Arc<Self>, length: usize) -> Buffer {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let bytes = free.unwrap_or_else(|| vec![0; PIECE]);
        Buffer { filled: length.min(PIECE), bytes, home: Arc::clone(self) }
    }

    fn give_back(&self, bytes: Vec<u8>) {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < KEPT {
            free.push(bytes);
        }
    }
}

impl Buffer {
    /// What is to be filled.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.filled]
    }

    /// What was filled, to be sent.
    pub(super) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.home.give_back(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_once_all_who_hold_it_are_gone() {
        let buffers = Arc::new(Buffers::default());
        let mut buffer = buffers.take(3);
        buffer.room().copy_from_slice(b"abc");
        let at = buffer.room().as_ptr();
        let bytes = buffer.into_bytes();
        let (slice, other) = (bytes.slice(1..), buffers.take(3));
        drop(bytes);
        assert_eq!(slice, b"bc".as_slice());
        assert_ne!(other.as_ref().as_ptr(), at, "it is still held");
        drop(slice);
        assert_eq!(buffers.take(1).as_ref().as_ptr(), at);
    }
}
