//! Served: one file, served as RFC 9110 says, with the ways of a server (validators, ranges, conditions) to choose.
//!
//! Its replies are where a script starts from: right in everything but what the script then changes.

use std::sync::Arc;

use super::{Asked, Reply};

/// A Last-Modified long before [`DATE`].
pub(crate) const MODIFIED: &str = "Mon, 02 Nov 2026 10:00:00 GMT";
/// Another one, later.
pub(crate) const MODIFIED_LATER: &str = "Tue, 03 Nov 2026 11:30:00 GMT";
/// The server's idea of now, where it tells: far enough behind both for them to be strong validators.
pub(crate) const DATE: &str = "Mon, 30 Nov 2026 10:00:00 GMT";

/// One version of a file, and how it is served.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    data: Arc<Vec<u8>>,
    etag: Option<String>,
    modified: Option<String>,
    ranges: bool,
    reads_if_range: bool,
    headers: Vec<(String, String)>,
}

impl Served {
    /// With the strong ETag `"one"` and ranges, and without Last-Modified.
    pub(crate) fn new(data: &Arc<Vec<u8>>) -> Self {
        Self {
            data: Arc::clone(data),
            etag: Some("\"one\"".to_owned()),
            modified: None,
            ranges: true,
            reads_if_range: true,
            headers: vec![("Content-Type".to_owned(), "application/octet-stream".to_owned())],
        }
    }

    /// With this ETag, quotes included.
    pub(crate) fn etag(mut self, etag: &str) -> Self {
        self.etag = Some(etag.to_owned());
        self
    }

    /// Without ETag.
    pub(crate) fn no_etag(mut self) -> Self {
        self.etag = None;
        self
    }

    /// With this Last-Modified, and a Date that makes it a strong validator.
    pub(crate) fn modified(mut self, modified: &str) -> Self {
        self.modified = Some(modified.to_owned());
        self.header("Date", DATE)
    }

    /// Range requests are not understood: always the whole file.
    pub(crate) fn no_ranges(mut self) -> Self {
        self.ranges = false;
        self
    }

    /// If-Range is not understood: a range is sent whatever it says.
    pub(crate) fn blind(mut self) -> Self {
        self.reads_if_range = false;
        self
    }

    /// One more header line in every answer; Content-Type replaces the one there is.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        if name.eq_ignore_ascii_case("content-type") {
            self.headers.clear();
        }
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The answer to a request.
    pub(crate) fn reply(&self, asked: &Asked) -> Reply {
        let size = self.data.len();
        if self.is_unchanged_for(asked) {
            return self.dressed(Reply::status(304));
        }
        match self.honoured(asked) {
            None => self.dressed(Reply::status(200)).body(&self.data, 0..size),
            Some((first, _)) if first >= size => {
                self.dressed(Reply::status(416)).header("Content-Range", &format!("bytes */{size}"))
            }
            Some((first, last)) => {
                let end = last.map_or(size, |last| size.min(last + 1));
                self.dressed(Reply::status(206))
                    .header("Content-Range", &format!("bytes {first}-{}/{size}", end - 1))
                    .body(&self.data, first..end)
            }
        }
    }

    fn dressed(&self, mut reply: Reply) -> Reply {
        for (name, value) in &self.headers {
            reply = reply.header(name, value);
        }
        for (name, value) in [("ETag", &self.etag), ("Last-Modified", &self.modified)] {
            if let Some(value) = value {
                reply = reply.header(name, value);
            }
        }
        reply.header("Accept-Ranges", if self.ranges { "bytes" } else { "none" })
    }

    /// RFC 9110 13.1.2 and 13.1.3: If-Modified-Since counts only without If-None-Match.
    fn is_unchanged_for(&self, asked: &Asked) -> bool {
        match (asked.header("if-none-match"), asked.header("if-modified-since")) {
            (Some(tag), _) => self.etag.as_deref() == Some(tag),
            (None, Some(date)) => self.modified.as_deref() == Some(date),
            (None, None) => false,
        }
    }

    /// The range to answer, where there is one and If-Range (RFC 9110 13.1.5) does not forbid it.
    fn honoured(&self, asked: &Asked) -> Option<(usize, Option<usize>)> {
        let range = asked.range().filter(|_| self.ranges)?;
        let stands = |held: &str| {
            !held.starts_with("W/") && [&self.etag, &self.modified].into_iter().flatten().any(|ours| ours == held)
        };
        match asked.header("if-range") {
            Some(held) if self.reads_if_range && !stands(held) => None,
            _ => Some(range),
        }
    }
}
