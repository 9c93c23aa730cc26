//! Texts of people: durations, sizes, policies, names, digests, metalinks.

use std::io::Read;

use crate::core::backoff::{BadPolicy, Policy};
use crate::core::digest::{Algorithm, Expected};
use crate::core::metalink::{self, MetaFile, Metalink};
use crate::core::name::SafeName;
use crate::core::printable::is_hidden;
pub(crate) use crate::core::printable::plain_error;
use crate::core::range::Length;
use crate::core::time::Delay;
use crate::core::units;
use crate::core::upload::{Protocol, ReadBack};
use crate::core::url::MirrorUrl;

/// `50ms 10s 5m 2h 14d`.
pub(crate) fn parse_delay(text: &str) -> Result<Delay, String> {
    units::parse_duration(text).map_err(|e| e.to_string())
}

/// A rate in bytes per second: `64k 2.5m 1g`, 1024-based.
pub(crate) fn parse_rate(text: &str) -> Result<u64, String> {
    units::parse_rate(text).map_err(|e| e.to_string())
}

/// `64k 2.5m 1g`, 1024-based.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    units::parse_size(text).map(|n| n.0).map_err(|e| e.to_string())
}

/// A span of time for people: `1 min 12 s`.
pub(crate) fn human_delay(delay: Delay) -> String {
    units::human_delay(delay)
}

/// A number of bytes for people: `3.0 MiB`.
pub(crate) fn human_size(bytes: u64) -> String {
    units::human_bytes(Length(bytes))
}

/// The text with every character escaped that does something else than to be seen; never cut, as a path or a command
/// must be whole.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

/// `1 transfer`, `2 transfers`.
pub(crate) fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A retry policy by its text.
pub(crate) fn policy(text: &str) -> Result<Policy, String> {
    Policy::parse(text).map_err(|e| e.to_string())
}

/// A policy within these bounds instead of its own; what is wrong with them is told with the options' names.
pub(crate) fn bounded(policy: Policy, min: Option<Delay>, max: Option<Delay>) -> Result<Policy, String> {
    policy.with_bounds(min, max).map_err(|e| match e {
        BadPolicy::Bounds { .. } => "--min-delay is longer than --max-delay".to_owned(),
        other => other.to_string(),
    })
}

/// The name of the file that a URL points to: one safe component; `index.html` where it names none.
pub(crate) fn name_from_url(url: &MirrorUrl) -> String {
    SafeName::from_url(url).as_str().to_owned()
}

/// `sha-256=HEX` or `sha256:HEX`.
pub(crate) fn parse_digest(text: &str) -> Result<Expected, String> {
    Expected::parse(text).map_err(|e| e.to_string())
}

/// A list of digests as `sha256sum` writes it.
#[derive(Debug)]
pub(crate) struct Sums(crate::core::digest::Sums);

impl Sums {
    /// Reads it; `list` is its own name, which tells the algorithm where its lines do not.
    pub(crate) fn parse(text: &[u8], list: &str) -> Result<Self, String> {
        let algorithm = Algorithm::of_list_name(list);
        crate::core::digest::Sums::parse(text, algorithm).map(Self).map_err(|e| e.to_string())
    }

    /// The digests of a file, by its name or by the last component of the names in the list.
    pub(crate) fn find(&self, name: &str) -> Result<Vec<Expected>, String> {
        self.0.find(name).map_err(|e| e.to_string())
    }
}

/// The bytes of a metalink, and at most one beyond what it may have.
pub(crate) fn read_metalink(mut from: &mut dyn Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Read::take(&mut from, metalink::MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The files of a metalink, version 3 or 4.
pub(crate) fn parse_metalink(bytes: &[u8]) -> Result<Vec<MetaFile>, String> {
    Metalink::parse(bytes).map(|read| read.files).map_err(|e| e.to_string())
}

/// The strongest of several digests, by the name of its algorithm.
pub(crate) fn strongest(digests: &[Expected]) -> Option<&'static str> {
    Expected::strongest(digests).map(|d| d.algorithm.name())
}

/// What protocols of uploads are called.
pub(crate) fn protocol_words() -> Vec<&'static str> {
    Protocol::ALL.into_iter().map(Protocol::word).collect()
}

/// The protocol of that name.
pub(crate) fn protocol(word: &str) -> Option<Protocol> {
    Protocol::from_word(word)
}

/// When what was stored is read back.
pub(crate) fn verify_words() -> Vec<&'static str> {
    [ReadBack::Small, ReadBack::Always, ReadBack::Never].into_iter().map(ReadBack::word).collect()
}

/// What such a word says.
pub(crate) fn verify(word: &str) -> Option<ReadBack> {
    ReadBack::from_word(word)
}

/// The algorithm's name, as people write it.
pub(crate) fn algorithm_name(algorithm: Algorithm) -> &'static str {
    algorithm.name()
}
