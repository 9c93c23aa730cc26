//! What was found in a file: descriptors, each good or bad.

use super::fault::Fault;
use crate::core::time::Epoch;

/// A descriptor in a file, or the whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it begins in the file, its annotations included.
    pub at: u64,
    /// Its length in bytes, its annotations included.
    pub length: u64,
    /// Its bytes, of kinds that split; of others nothing is held.
    pub bytes: Vec<u8>,
    /// It says of itself what it is.
    pub annotated: bool,
    /// What is known of it, or what is wrong with it.
    pub verdict: Result<Facts, Fault>,
}

/// What is known of something good.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its own date.
    pub date: Option<Epoch>,
    /// What names it, of kinds that split: a digest in lower-case hex, or another safe name.
    pub identity: Option<String>,
    /// How many have signed it.
    pub signatures: u32,
}
