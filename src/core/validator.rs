//! Validators: what a server says about the identity of a version of a file, and when two of them name the same one.
//!
//! RFC 9110 8.8. A strong ETag identifies bytes. Last-Modified counts as strong only where 8.8.2.2 lets it: the
//! answer's own Date is at least a minute later. A weak ETag proves nothing about bytes and is never sent.
//!
//! Servers make slips. A tag without quotes, or with something else in it than RFC 9110 8.8.3 allows, is taken as a
//! weak one: when it differs, that is told; when it is equal, it proves nothing; it is never sent, for a server would
//! read it as a date. An empty tag (`""`) and a header that stands there twice with other texts count as none.

mod concord;

use std::fmt;
use std::str;
use std::time::{Duration, UNIX_EPOCH};

use http::header::{DATE, ETAG, LAST_MODIFIED};
use http::{HeaderMap, HeaderName};

pub use concord::{Concord, Odds};

use crate::core::file_xfer::Unless;
use crate::core::file_xfer::dossier::IfRange;
use crate::core::printable::is_hidden;
use crate::core::time::{Delay, Epoch};

/// How much later than Last-Modified an answer's Date must be, that no second change in the same second (or a clock
/// that is a little off) can hide behind it (RFC 9110 8.8.2.2).
const SETTLED: Delay = Delay::from_secs(60);

/// A longer tag counts as none: it would be carried in every record and request.
const MAX_TAG: usize = 1024;

/// An entity tag as the server sent it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ETag {
    /// `W/` stood before it, or it is malformed and therefore taken as weak.
    pub weak: bool,
    /// The quoted text, quotes included; of a malformed tag the text as it came.
    pub opaque: String,
}

/// What one answer said about the version it brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// The ETag, where there was a readable one.
    pub etag: Option<ETag>,
    /// Last-Modified, where there was a readable one.
    pub last_modified: Option<Epoch>,
    /// The answer's own Date, which decides whether Last-Modified is strong.
    pub date: Option<Epoch>,
}

/// What comparing two sets of validators tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sameness {
    /// A strong validator is equal on both sides, and nothing differs.
    Same,
    /// Some validator that both sides have differs (weak ETags included).
    Different,
    /// Nothing to compare, or only weak validators, which are equal.
    Unknown,
}

impl ETag {
    /// Reads a tag as it stands in a header, or as its `Display` wrote it. `None` for an empty one, one that could not
    /// be shown or stored (controls), or one of more than 1024 bytes.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (weak, opaque) = match text.strip_prefix("W/").or_else(|| text.strip_prefix("w/")) {
            Some(rest) => (true, rest.trim_start()),
            None => (false, text),
        };
        let usable = !bare(opaque).is_empty() && opaque.len() <= MAX_TAG && !opaque.chars().any(is_hidden);
        usable.then(|| Self { weak: weak || !well_formed(opaque), opaque: opaque.to_owned() })
    }

    /// Identifies bytes, and may be sent.
    pub fn is_strong(&self) -> bool {
        !self.weak && well_formed(&self.opaque)
    }
}

/// As a header carries it.
impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.weak { "W/" } else { "" }, self.opaque)
    }
}

/// RFC 9110 8.8.3, ASCII only: quotes around, and inside neither quotes nor blanks nor controls.
fn well_formed(opaque: &str) -> bool {
    let inner = opaque.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.is_some_and(|inner| !inner.is_empty() && inner.bytes().all(|b| b.is_ascii_graphic() && b != b'"'))
}

/// The tag without the quotes around it.
fn bare(opaque: &str) -> &str {
    opaque.trim_matches('"')
}

impl Validators {
    /// Those of an answer.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        Self {
            etag: only(headers, &ETAG).and_then(ETag::parse),
            last_modified: only(headers, &LAST_MODIFIED).and_then(read_http_date),
            date: only(headers, &DATE).and_then(read_http_date),
        }
    }

    /// There is nothing to compare by.
    pub const fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }

    /// Without the ETag: for an origin whose tags differ although the bytes are the same.
    #[must_use]
    pub fn without_etag(self) -> Self {
        Self { etag: None, ..self }
    }

    /// The ETag, where it is strong.
    pub fn strong_etag(&self) -> Option<&ETag> {
        self.etag.as_ref().filter(|tag| tag.is_strong())
    }

    /// Last-Modified, where it counts as strong: the answer's own Date is at least a minute later. Without a Date it
    /// does not.
    pub fn strong_date(&self) -> Option<Epoch> {
        self.last_modified.filter(|modified| self.date.is_some_and(|date| date >= *modified + SETTLED))
    }

    /// Has a strong validator.
    pub fn has_strong(&self) -> bool {
        self.strong_etag().is_some() || self.strong_date().is_some()
    }

    /// The text to send in If-Range. RFC 9110 13.1.5 would have a date sent only where there is no tag at all; here it
    /// is sent beside a weak tag as well, and after a strong one has proved to be broken: what comes back is compared
    /// anyway.
    pub fn if_range(&self, mode: IfRange) -> Option<String> {
        match mode {
            IfRange::Best => self.strong_etag().map(ETag::to_string).or_else(|| self.strong_date_text()),
            IfRange::Date => self.strong_date_text(),
            IfRange::Bare => None,
        }
    }

    /// The condition under which a finished file need not be sent again: by a strong validator only, for an answer of
    /// 304 to a weak one would prove nothing about the bytes. `None`: it has to be asked for plainly.
    pub fn unless(&self) -> Option<Unless> {
        let tag = self.strong_etag().map(|tag| Unless::Match(tag.to_string()));
        tag.or_else(|| self.strong_date_text().map(Unless::ModifiedSince))
    }

    /// Are tag and date the very same texts?
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.etag == other.etag && self.last_modified == other.last_modified
    }

    /// Do both name the same version? See [`Sameness`].
    pub fn compare(&self, other: &Self) -> Sameness {
        if differ(&self.etag, &other.etag, |a, b| bare(&a.opaque) != bare(&b.opaque))
            || differ(&self.last_modified, &other.last_modified, |a, b| a != b)
        {
            return Sameness::Different;
        }
        // From here on what both sides have is equal.
        let tags = self.strong_etag().is_some() && other.strong_etag().is_some();
        let dates = self.strong_date().is_some() && other.strong_date().is_some();
        if tags || dates { Sameness::Same } else { Sameness::Unknown }
    }

    fn strong_date_text(&self) -> Option<String> {
        self.strong_date().and_then(http_date)
    }
}

/// Both are there, and they differ.
fn differ<T>(a: &Option<T>, b: &Option<T>, unequal: impl Fn(&T, &T) -> bool) -> bool {
    matches!((a, b), (Some(a), Some(b)) if unequal(a, b))
}

/// The header's one value (the same again counts once), where it is text.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    let alone = values.all(|other| other == first);
    alone.then(|| str::from_utf8(first.as_bytes()).ok()).flatten()
}

/// Reads any of the three forms of an HTTP date (RFC 9110 5.6.7); `None` for anything else and for years before 1970.
pub fn read_http_date(text: &str) -> Option<Epoch> {
    let time = httpdate::parse_http_date(text.trim()).ok()?;
    let secs = time.duration_since(UNIX_EPOCH).ok()?.as_secs();
    i64::try_from(secs).ok().map(Epoch::from_secs)
}

/// The moment as an HTTP date, whole seconds, rounded down; `None` before 1970 and after 9999.
pub fn http_date(at: Epoch) -> Option<String> {
    const YEAR_10_000: u64 = 253_402_300_800;
    let secs = u64::try_from(at.as_micros().div_euclid(1_000_000)).ok()?;
    (secs < YEAR_10_000).then(|| httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(secs)))
}

#[cfg(test)]
mod tests;
