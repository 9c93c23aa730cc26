//! The identity of the file that is sent: what is compared before every resume, so that two versions are never mixed.

use std::fmt;

use crate::core::digest::Expected;
use crate::core::range::Length;

/// What the file system says of the source, for the price of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its size.
    pub size: Length,
    /// Its time of last modification, in nanoseconds since the Unix epoch.
    pub mtime_ns: i128,
}

/// The identity of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Size and time.
    pub stamp: Stamp,
    /// A digest of the whole, where it has been computed.
    pub digest: Option<Expected>,
}

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The size.
    Size,
    /// The time of modification, and no digest says that the content is the same all the same.
    Time,
    /// The content, by its digest.
    Content,
}

/// How a source compares with the one that an upload was begun with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// It is the same, as far as is known on both sides.
    Same,
    /// It is another.
    Changed(Change),
    /// A digest of the old one is known and one of the new is not: compute it, by the same algorithm, then compare.
    AskDigest,
}

impl Source {
    /// Compares this source, as it is now, with `begun`. A digest decides where both have one by the same algorithm:
    /// a file that was only touched is the same, one that was edited in place with its time set back is not.
    pub fn likeness(&self, begun: &Self) -> Likeness {
        if self.stamp.size != begun.stamp.size {
            return Likeness::Changed(Change::Size);
        }
        match (&self.digest, &begun.digest) {
            (Some(now), Some(then)) if now.algorithm == then.algorithm && now == then => Likeness::Same,
            (Some(now), Some(then)) if now.algorithm == then.algorithm => Likeness::Changed(Change::Content),
            (_, Some(_)) => Likeness::AskDigest,
            (_, None) if self.stamp.mtime_ns != begun.stamp.mtime_ns => Likeness::Changed(Change::Time),
            (_, None) => Likeness::Same,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Size => "its size is another",
            Self::Time => "its time of modification is another",
            Self::Content => "its content is another although its size is the same",
        })
    }
}
