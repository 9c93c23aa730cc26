//! Concord: what the validators of two origins say of each other. One origin's own word over time is compared by
//! [`Validators::compare`]; here two servers are held against each other that may write their tags in their own ways.

use crate::core::validator::{ETag, Validators};

/// May two origins have the same version, as far as what they say tells? Files that differ in a few places only are not
/// told apart by comparing blocks, so a contradiction keeps their bytes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concord {
    /// They name one version: the same strong tag, or the same date (where the sizes are equal, too).
    Agree,
    /// They name two.
    Contradict(Odds),
    /// One of them says nothing that could be compared.
    Silent,
}

/// By what two origins contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Odds {
    /// Last-Modified.
    Date,
    /// A strong ETag, where there are not two dates.
    Tag,
}

impl Odds {
    /// The word for it, for people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::Tag => "ETag",
        }
    }
}

impl Validators {
    /// What these and another origin's say of each other. A tag that is the same decides; then dates do; tags that differ
    /// contradict only where there are no two dates, for servers write the same file's tags in their own ways. A weak tag
    /// says nothing for or against.
    pub fn concord(&self, other: &Self) -> Concord {
        let tags = self.strong_etag().zip(other.strong_etag()).map(|(a, b): (&ETag, &ETag)| a == b);
        let dates = self.last_modified.zip(other.last_modified).map(|(a, b)| a == b);
        match (tags, dates) {
            (Some(true), _) | (_, Some(true)) => Concord::Agree,
            (_, Some(false)) => Concord::Contradict(Odds::Date),
            (Some(false), None) => Concord::Contradict(Odds::Tag),
            (None, None) => Concord::Silent,
        }
    }
}
