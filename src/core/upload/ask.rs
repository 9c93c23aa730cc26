//! What is sent to a server and what comes back, as plain data.

use std::fmt;

use http::HeaderMap;

use super::{BODY_PATIENCE, GATE_ABOVE, GATE_WAIT, PATIENCE};
use crate::core::digest::{Algorithm, Expected};
use crate::core::printable::printable_bytes;
use crate::core::range::{ByteRange, Length};
use crate::core::time::Delay;
use crate::core::url::MirrorUrl;

/// The methods that uploads need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Method {
    Get,
    Head,
    Options,
    Post,
    Put,
    Patch,
    Delete,
    /// WebDAV (RFC 4918 9.9).
    Move,
    /// WebDAV (RFC 4918 9.3).
    Mkcol,
}

impl Method {
    /// As it stands in the request line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Options => "OPTIONS",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Move => "MOVE",
            Self::Mkcol => "MKCOL",
        }
    }
}

/// A request. Its `Debug` names no path, no query and no value of a field: they may be secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Ask {
    /// The method.
    pub method: Method,
    /// Where to.
    pub url: MirrorUrl,
    /// Fields beside those that every request has; Content-Length is the driver's to add, always.
    pub fields: Vec<(&'static str, String)>,
    /// The body.
    pub body: Body,
    /// May the body flow at once?
    pub gate: Gate,
    /// What is kept of the answer's body.
    pub keep: Keep,
    /// How long the answer is waited for once the whole request is out.
    pub patience: Delay,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// None; Content-Length is still sent as 0 where the method wants one.
    Nothing,
    /// These few bytes.
    Bytes(Vec<u8>),
    /// This range of the source.
    Source(ByteRange),
    /// These bytes and then this range of the source, which may be empty.
    Framed {
        /// What comes first.
        before: Vec<u8>,
        /// Then this.
        range: ByteRange,
    },
}

impl Body {
    /// The range of the source that it carries, where it carries any byte of it.
    pub fn range(&self) -> Option<ByteRange> {
        match self {
            Self::Source(range) | Self::Framed { range, .. } if !range.is_empty() => Some(*range),
            _ => None,
        }
    }

    /// How many bytes it has: the Content-Length.
    pub fn length(&self) -> Length {
        match self {
            Self::Nothing => Length::ZERO,
            Self::Bytes(bytes) => Length(bytes.len() as u64),
            Self::Source(range) => range.length(),
            Self::Framed { before, range } => Length(before.len() as u64) + range.length(),
        }
    }
}

/// May the body flow at once?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// It may.
    Open,
    /// `Expect: 100-continue`: the head goes first; the body follows on 100, or when this time has passed without any
    /// answer, and never once a final answer has begun. It saves bytes where a server refuses; it proves nothing.
    Continue(Delay),
}

/// What is kept of an answer's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Its first [`Answer::MOST_KEPT`] bytes.
    Small,
    /// Its length and digest, as it passes by.
    Digest(Algorithm),
}

impl Ask {
    /// A request without fields and body.
    pub fn new(method: Method, url: &MirrorUrl) -> Self {
        let (fields, body) = (Vec::new(), Body::Nothing);
        Self { method, url: url.clone(), fields, body, gate: Gate::Open, keep: Keep::Small, patience: PATIENCE }
    }

    /// With this field too.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    /// With this body, gated where it is large.
    #[must_use]
    pub fn carrying(mut self, body: Body) -> Self {
        if body.length() > GATE_ABOVE {
            self.gate = Gate::Continue(GATE_WAIT);
        }
        if body.range().is_some() {
            self.patience = BODY_PATIENCE;
        }
        self.body = body;
        self
    }

    /// The value of a field that it carries; names are compared without regard to case.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.fields.iter().map(|(name, _)| *name).collect();
        let mut shown = f.debug_struct("Ask");
        shown.field("method", &self.method).field("origin", &self.url.origin()).field("fields", &names);
        shown.field("range", &self.body.range()).field("length", &self.body.length()).field("gate", &self.gate);
        shown.finish_non_exhaustive()
    }
}

/// An informational answer (1xx). Any number of them may come before the final one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interim {
    /// 100, 103, 104, ...
    pub status: u16,
    /// Its fields.
    pub fields: HeaderMap,
}

/// A final answer, read to the end of its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Its fields.
    pub fields: HeaderMap,
    /// The first bytes of the body, at most [`Answer::MOST_KEPT`].
    pub body: Vec<u8>,
    /// How long the body was.
    pub length: Length,
    /// The body's digest, where [`Keep::Digest`] asked for it.
    pub digest: Option<Expected>,
    /// A Retry-After that could be read.
    pub retry_after: Option<Delay>,
    /// So many bytes of the request's body had been handed to the connection when this came, and no more were after it:
    /// fewer than the body has where the server did not wait for it.
    pub sent: Length,
}

impl Answer {
    /// So much of a body is kept: a page of the longest list that a protocol here reads.
    pub const MOST_KEPT: usize = 1 << 20;

    /// 2xx.
    pub const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    /// The text of a field that stands there once. Twice with different texts is as good as not at all.
    pub fn field(&self, name: &str) -> Option<&str> {
        single(&self.fields, name)
    }

    /// What a person may read of the body.
    pub fn said(&self) -> String {
        printable_bytes(self.body.trim_ascii())
    }
}

/// The text of a field that stands there once.
pub(super) fn single<'a>(fields: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut all = fields.get_all(name).iter();
    let first = all.next()?;
    if all.any(|other| other != first) {
        return None;
    }
    first.to_str().ok().map(str::trim)
}
