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
    /// Where the request begins that comes next.
    start: usize,
    /// It does not end before this.
    searched: usize,
    head: Head,
}

/// How a request begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Head {
    /// With blanks, so far.
    #[default]
    Blank,
    /// With an element.
    Element,
}

impl Framer {
    /// Further bytes of the connection. Call [`Framer::next_request`] until it has no more before the next ones.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole request, without the byte that ends it; `None` until more has come.
    ///
    /// # Errors
    /// [`Unframed`]: the connection is to be closed.
    pub fn next_request(&mut self) -> Result<Option<Vec<u8>>, Unframed> {
        let fresh = &self.bytes[self.searched..];
        if self.head == Head::Blank
            && let Some(first) = fresh.iter().find(|byte| !byte.is_ascii_whitespace())
        {
            if !matches!(*first, b'<' | END) {
                return Err(Unframed::NotXml);
            }
            self.head = Head::Element;
        }
        let found = memchr::memchr(END, fresh).map(|at| self.searched + at);
        let end = found.unwrap_or(self.bytes.len());
        self.searched = end;
        if end - self.start >= MAX_REQUEST {
            return Err(Unframed::TooLong);
        }
        if found.is_none() {
            return Ok(None);
        }
        let request = self.bytes[self.start..end].to_vec();
        (self.start, self.searched, self.head) = (end + 1, end + 1, Head::Blank);
        Ok(Some(request))
    }

    /// Part of a request has come, and not its end; told after [`Framer::next_request`] had no more.
    pub fn is_within(&self) -> bool {
        self.head == Head::Element
    }
}
