//! Frames: requests end with the byte 3, and many of them come over one connection (boinc.md 4.1).

/// A request of so many bytes, or more, ends its connection: BOINC's number.
pub const MAX_REQUEST: usize = 100_000;

/// The byte that ends a request, and a reply.
pub(super) const END: u8 = 3;

/// Why nothing more is read from a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unframed {
    /// A request is too long.
    #[error("a request has {MAX_REQUEST} bytes or more")]
    TooLong,
    /// A request does not begin with an element: a browser that was led here, for one.
    #[error("a request does not begin with an element")]
    NotXml,
}

/// Puts requests together from whatever pieces the bytes come in.
#[derive(Clone, Debug, Default)]
pub struct Framer {
    bytes: Vec<u8>,
    /// There is no end before this.
    searched: usize,
}

impl Framer {
    /// Further bytes of the connection. Call [`Framer::next_request`] until it has no more before the next ones.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole request, without the byte that ends it; `None` until more has come.
    ///
    /// # Errors
    /// [`Unframed`]: the connection is to be closed.
    pub fn next_request(&mut self) -> Result<Option<Vec<u8>>, Unframed> {
        let first = self.bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        if first.is_some_and(|byte| !matches!(*byte, b'<' | END)) {
            return Err(Unframed::NotXml);
        }
        let found = memchr::memchr(END, &self.bytes[self.searched..]).map(|at| self.searched + at);
        if found.unwrap_or(self.bytes.len()) >= MAX_REQUEST {
            return Err(Unframed::TooLong);
        }
        let Some(end) = found else {
            self.searched = self.bytes.len();
            return Ok(None);
        };
        let rest = self.bytes.split_off(end + 1);
        let mut request = std::mem::replace(&mut self.bytes, rest);
        request.truncate(end);
        self.searched = 0;
        Ok(Some(request))
    }

    /// Part of a request has come, and not its end.
    pub fn is_within(&self) -> bool {
        self.bytes.iter().any(|byte| !byte.is_ascii_whitespace())
    }
}
