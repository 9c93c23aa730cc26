//! The words that stand for our enums in the state file, and digests and entity tags as text.
//!
//! A word that this version does not know reads as the cautious default, never as an error: a later version may have it.

use crate::core::digest::{Algorithm, Expected};
use crate::core::file_xfer::dossier::{IfRange, Joints, Ranges};
use crate::core::pers_xfer::record::Direction;
use crate::core::validator::ETag;

/// `sha-256=0123...`
pub(super) fn digest(expected: &Expected) -> String {
    format!("{}={}", expected.algorithm.name(), expected.hex())
}

/// The digest of such a text; `None` for an algorithm that we do not have.
pub(super) fn read_digest(text: &str) -> Option<Expected> {
    let (name, digits) = text.split_once('=')?;
    Expected::from_hex(Algorithm::from_name(name)?, digits).ok()
}

/// `W/"x"` or `"x"`.
pub(super) fn etag(tag: &ETag) -> String {
    format!("{}{}", if tag.weak { "W/" } else { "" }, tag.opaque)
}

/// The entity tag of such a text.
pub(super) fn read_etag(text: &str) -> ETag {
    let opaque = text.strip_prefix("W/");
    ETag { weak: opaque.is_some(), opaque: opaque.unwrap_or(text).to_owned() }
}

/// `download` or `upload`.
pub(super) const fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Download => "download",
        Direction::Upload => "upload",
    }
}

/// The direction of that word.
pub(super) fn read_direction(word: &str) -> Option<Direction> {
    [Direction::Download, Direction::Upload].into_iter().find(|d| direction(*d) == word)
}

/// The weakest joint of a draft.
pub(super) const fn joints(joints: Joints) -> &'static str {
    match joints {
        Joints::Length => "length",
        Joints::Overlap => "overlap",
        Joints::Validator => "validator",
    }
}

/// The joints of that word; the weakest for one that is not known.
pub(super) fn read_joints(word: &str) -> Joints {
    [Joints::Overlap, Joints::Validator].into_iter().find(|j| joints(*j) == word).unwrap_or(Joints::Length)
}

/// Whether ranges work.
pub(super) const fn ranges(ranges: Ranges) -> &'static str {
    match ranges {
        Ranges::Unknown => "unknown",
        Ranges::Work => "work",
        Ranges::Broken => "broken",
    }
}

/// Whether ranges work, from that word.
pub(super) fn read_ranges(word: &str) -> Ranges {
    [Ranges::Work, Ranges::Broken].into_iter().find(|r| ranges(*r) == word).unwrap_or_default()
}

/// What If-Range carries.
pub(super) const fn if_range(if_range: IfRange) -> &'static str {
    match if_range {
        IfRange::Best => "best",
        IfRange::Date => "date",
        IfRange::Bare => "bare",
    }
}

/// What If-Range carries, from that word.
pub(super) fn read_if_range(word: &str) -> IfRange {
    [IfRange::Date, IfRange::Bare].into_iter().find(|i| if_range(*i) == word).unwrap_or_default()
}
