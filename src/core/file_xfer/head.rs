//! The head of an answer, read once into what the judging needs; nothing in it is believed yet.

use http::HeaderMap;
use http::header::{CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, LOCATION};

use crate::core::digest::{Expected, content_digests, repr_digests};
use crate::core::failure::BadAnswer;
use crate::core::links::{Link, links_of_a_file};
use crate::core::printable::{printable, printable_bytes};
use crate::core::range::{ByteRange, ContentRange, Length, Offset};
use crate::core::retry_after;
use crate::core::time::{Delay, Epoch};
use crate::core::validator::Validators;

/// How the end of a body is known (RFC 9112 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// By Content-Length.
    Length(Length),
    /// By a last chunk, or by the end of an HTTP/2 stream.
    Marked,
    /// By the end of the connection: nothing tells a cut from an end.
    Close,
}

/// The head of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerHead {
    /// The status code.
    pub status: u16,
    /// ETag, Last-Modified, Date.
    pub validators: Validators,
    /// Content-Range as sent.
    pub content_range: Option<String>,
    /// How the body ends.
    pub framing: Framing,
    /// Content-Type, lower case, without parameters.
    pub content_type: Option<String>,
    /// Content-Encoding other than identity, lower case.
    pub coding: Option<String>,
    /// Location as sent, made UTF-8.
    pub location: Option<String>,
    /// Retry-After that could be read.
    pub retry_after: Option<Delay>,
    /// Content-Disposition as sent.
    pub disposition: Option<Vec<u8>>,
    /// Repr-Digest, or else the older Digest: what the answer says of the whole file.
    pub repr_digests: Vec<Expected>,
    /// Content-Digest: what it says of its own body.
    pub content_digests: Vec<Expected>,
    /// Its links to the same file elsewhere, and to descriptions of it.
    pub links: Vec<Link>,
}

impl AnswerHead {
    /// Reads a head. `now` is the wall clock, against which a Retry-After date is read where the answer has no Date.
    pub fn read(status: u16, framing: Framing, headers: &HeaderMap, now: Epoch) -> Self {
        let bytes = |name| headers.get(name).map(|v: &http::HeaderValue| v.as_bytes());
        let validators = Validators::from_headers(headers);
        let date = validators.date;
        Self {
            status,
            validators,
            content_range: bytes(CONTENT_RANGE).map(|b| String::from_utf8_lossy(b).into_owned()),
            framing,
            content_type: bytes(CONTENT_TYPE).and_then(content_type),
            coding: coding(headers),
            location: bytes(LOCATION).map(|b| String::from_utf8_lossy(b).into_owned()),
            retry_after: retry_after::told(headers, date, now),
            disposition: bytes(CONTENT_DISPOSITION).map(<[u8]>::to_vec),
            repr_digests: repr_digests(headers),
            content_digests: content_digests(headers),
            links: links_of_a_file(headers),
        }
    }

    /// Says that its body is an HTML page.
    pub fn is_html(&self) -> bool {
        self.content_type.as_deref().is_some_and(is_html_type)
    }

    /// Says that its body is a metalink: a list of mirrors.
    pub fn is_metalink(&self) -> bool {
        let types = ["application/metalink4+xml", "application/metalink+xml"];
        self.content_type.as_deref().is_some_and(|t| types.contains(&t))
    }

    /// Says that its body is in parts.
    pub fn is_multipart(&self) -> bool {
        self.content_type.as_deref().is_some_and(|t| t.starts_with("multipart/"))
    }

    /// The range that a 206 brings and the total, if it may be used: one range, in this coding, honest about itself, with
    /// the first byte asked for.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn one_range(
        &self,
        asked: Offset,
        coding: Option<&str>,
    ) -> Result<(ByteRange, Option<Length>), BadAnswer> {
        if self.is_multipart() {
            return Err(BadAnswer::Multipart);
        }
        if self.coding.as_deref() != coding {
            return Err(BadAnswer::Coded { coding: self.coding.clone().unwrap_or_else(|| "identity".to_owned()) });
        }
        let text = self.content_range.as_deref().unwrap_or_default();
        let unreadable = || BadAnswer::ContentRange { text: printable(text).into_owned() };
        let Ok(ContentRange::Satisfied { range, total }) = ContentRange::parse(text) else { return Err(unreadable()) };
        if self.length().is_some_and(|n| n != range.length()) {
            return Err(unreadable());
        }
        if range.start > asked || range.end <= asked {
            return Err(BadAnswer::OtherRange { asked, got: range });
        }
        Ok((range, total))
    }

    /// The length that Content-Length tells.
    pub fn length(&self) -> Option<Length> {
        match self.framing {
            Framing::Length(n) => Some(n),
            Framing::Marked | Framing::Close => None,
        }
    }
}

/// Is this a media type of HTML pages?
pub fn is_html_type(content_type: &str) -> bool {
    matches!(content_type, "text/html" | "application/xhtml+xml")
}

fn content_type(raw: &[u8]) -> Option<String> {
    let text = printable_bytes(raw).to_ascii_lowercase();
    let media = text.split(';').next().unwrap_or_default().trim();
    (!media.is_empty()).then(|| media.to_owned())
}

/// Every coding named, identity left out.
fn coding(headers: &HeaderMap) -> Option<String> {
    let named: Vec<String> = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .flat_map(|v| {
            printable_bytes(v.as_bytes()).split(',').map(|c| c.trim().to_ascii_lowercase()).collect::<Vec<_>>()
        })
        .filter(|c| !c.is_empty() && c != "identity")
        .collect();
    (!named.is_empty()).then(|| named.join(", "))
}
