//! Criteria: what a file must be to be kept at all, and when it takes the place of another one (seed 003; B8).
//!
//! Two traits, registered by name a module. The first Keep that says no has the last word; the first Replace that says
//! take has it too. Those that are commands of the user's are made a floor above, and are asked through the same traits.

use super::kinds::Facts;
use crate::core::range::Length;

/// The Keep criteria that the program knows; the first is the default. `valid` is the reader's own verdict
/// ([`super::kinds`]), which every file has to pass whatever is configured.
pub const KEEP_NAMES: [&str; 1] = ["valid"];
/// The Replace criteria that the program knows; the first is the default.
pub const REPLACE_NAMES: [&str; 3] = ["never", "newer-content-date", "more-signatures"];

/// A file, or one descriptor, as criteria see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copy {
    /// What its content says.
    pub facts: Facts,
    /// Its length.
    pub size: Length,
    /// SHA-256 of its bytes.
    pub sha256: [u8; 32],
    /// Where its bytes can be read, for commands.
    pub place: std::path::PathBuf,
}

/// What is compared, for people and commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Its path below the source.
    pub path: &'a str,
    /// The name of its source.
    pub source: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Itself.
    pub copy: &'a Copy,
}

/// What a Keep criterion says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be kept.
    Accept,
    /// It may not, and why.
    Reject(String),
}

/// What a Replace criterion says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The local copy stays, as far as this one goes.
    KeepLocal,
    /// The candidate takes its place, and why.
    Take(String),
}

/// What a file must be to be kept.
pub trait Keep {
    /// Judges a candidate that is valid.
    fn judge(&self, candidate: &Candidate<'_>) -> Verdict;
}

/// When a file takes the place of another one.
pub trait Replace {
    /// Chooses between two that differ, both valid.
    fn choose(&self, local: &Copy, candidate: &Candidate<'_>) -> Choice;
}

/// Nothing is ever replaced.
#[derive(Clone, Copy, Debug)]
struct Never;

/// What its own content calls newer takes the place of what is older.
#[derive(Clone, Copy, Debug)]
struct NewerContentDate;

/// What more authorities have signed takes the place of what fewer have.
#[derive(Clone, Copy, Debug)]
struct MoreSignatures;

impl Replace for Never {
    fn choose(&self, _: &Copy, _: &Candidate<'_>) -> Choice {
        Choice::KeepLocal
    }
}

impl Replace for NewerContentDate {
    fn choose(&self, local: &Copy, candidate: &Candidate<'_>) -> Choice {
        match (local.facts.date, candidate.copy.facts.date) {
            (Some(here), Some(there)) if there > here => Choice::Take("its content is newer".to_owned()),
            _ => Choice::KeepLocal,
        }
    }
}

impl Replace for MoreSignatures {
    fn choose(&self, local: &Copy, candidate: &Candidate<'_>) -> Choice {
        let (here, there) = (local.facts.signatures, candidate.copy.facts.signatures);
        if there > here {
            Choice::Take(format!("it has {there} signatures, the local one {here}"))
        } else {
            Choice::KeepLocal
        }
    }
}

/// The Replace criterion of that name.
pub fn replace_named(name: &str) -> Option<Box<dyn Replace>> {
    match name {
        "never" => Some(Box::new(Never)),
        "newer-content-date" => Some(Box::new(NewerContentDate)),
        "more-signatures" => Some(Box::new(MoreSignatures)),
        _ => None,
    }
}
