//! Validators: what a server says about the identity of a version of a file, and when two of them name the same one.
//!
//! RFC 9110 8.8. A strong ETag identifies bytes. Last-Modified counts as strong only where 8.8.2.2 lets it: the answer's
//! own Date is at least a minute later. A weak ETag proves nothing about bytes and is never sent.

use crate::core::time::Epoch;

/// An entity tag as the server sent it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ETag {
    /// `W/` stood before it.
    pub weak: bool,
    /// The quoted text, quotes included.
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
