//! Dossier: what a transfer knows of its file across sessions, mirrors and versions.
//!
//! A *draft* is one version of the file being put together here. There is normally one, in the part file. When a server
//! turns out to hold other content than the draft, a *rival* draft is begun beside it, and takes its place only when it
//! is whole or longer; so a login page or an odd mirror never costs the bytes already held.

use crate::core::digest::Expected;
use crate::core::pers_xfer::record::Evidence;
use crate::core::range::Length;
use crate::core::url::Origin;
use crate::core::validator::{Sameness, Validators};

/// So many origins may vouch for one draft. A redirector with more loses the oldest, but never the first: it began the draft.
const MAX_VOUCHERS: usize = 32;

/// What a transfer knows of its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dossier {
    /// The draft in the part file.
    pub part: Draft,
    /// The draft of a newer version, in the second part file, where one has been begun.
    pub rival: Option<Draft>,
    /// What was learned of the ways of each origin.
    pub origins: Vec<OriginNotes>,
    /// How often another version was met, in this life.
    pub changes: u32,
}

/// One version of the file, as far as it is held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// Bytes held, from the start of the file without a gap.
    pub held: Length,
    /// Bytes held behind the first gap, in segments; only the part file and its journal know where.
    pub beyond: Length,
    /// The whole file's length, where told.
    pub total: Option<Length>,
    /// The version's validators at each origin that has answered for it.
    pub validators: Vec<(Origin, Validators)>,
    /// The origins that have another version, by what they said: their bytes are never mixed in.
    pub reserve: Vec<(Origin, Validators)>,
    /// The origin whose bytes stand at the end of what is held.
    pub last_origin: Option<Origin>,
    /// Content-Type of the first answer, lower case, without parameters.
    pub content_type: Option<String>,
    /// Content-Encoding of what is held, where a file of that very ending is stored as sent.
    pub coding: Option<String>,
    /// The inode of the file that holds it: what tells, after a crash, which file is which.
    pub inode: Option<u64>,
    /// Every session but the first proved its joint by comparing bytes, or by a strong validator.
    pub joints: Joints,
    /// What servers say that the whole has as digests (`vouch`).
    pub vouched: Vec<Expected>,
}

/// How the sessions of one draft were joined: the weakest joint counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Joints {
    /// Some joint rests on nothing but the length.
    Length,
    /// Every joint was compared, some without a strong validator.
    Overlap,
    /// One strong validator held at all of them (or there is no joint).
    #[default]
    Validator,
}

/// What was learned of an origin's ways; kept for the transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginNotes {
    /// Whose.
    pub origin: Origin,
    /// Does it answer ranges?
    pub ranges: Ranges,
    /// What to send in If-Range.
    pub if_range: IfRange,
    /// Its ETags differ although the bytes are the same, so they are not looked at.
    pub etags_lie: bool,
    /// It bears so many connections at once and not one more, where that was found out.
    pub most: Option<u32>,
    /// What its answers to range requests call the digest of the whole is not that, so it is not looked at.
    pub part_digests_lie: bool,
}

impl OriginNotes {
    /// Nothing learned yet.
    pub fn new(origin: Origin) -> Self {
        Self {
            origin,
            ranges: Ranges::default(),
            if_range: IfRange::default(),
            etags_lie: false,
            part_digests_lie: false,
            most: None,
        }
    }
}

impl OriginNotes {
    /// How what an answer of this origin says of its version compares with what it said of the draft's.
    pub(super) fn sameness(&self, draft: &Draft, told: &Validators) -> Sameness {
        let Some(stored) = draft.validators_of(&self.origin) else { return Sameness::Unknown };
        if self.etags_lie {
            return stored.clone().without_etag().compare(&told.clone().without_etag());
        }
        stored.compare(told)
    }
}

impl Draft {
    /// The validators that this origin gave for this version.
    pub(super) fn validators_of(&self, origin: &Origin) -> Option<&Validators> {
        self.validators.iter().find(|(o, _)| o == origin).map(|(_, v)| v)
    }

    /// This origin vouches for the draft, with these validators.
    pub(super) fn vouch(&mut self, origin: &Origin, validators: &Validators) {
        self.reserve.retain(|(known, _)| known != origin);
        match self.validators.iter_mut().find(|(known, _)| known == origin) {
            Some((_, known)) => known.clone_from(validators),
            None => self.validators.push((origin.clone(), validators.clone())),
        }
        if self.validators.len() > MAX_VOUCHERS {
            self.validators.remove(1);
        }
    }

    /// What the whole draft rests on where no digest is known.
    pub fn evidence(&self) -> Evidence {
        if self.total.is_none() {
            return Evidence::None;
        }
        let last = self.last_origin.as_ref().and_then(|origin| self.validators_of(origin));
        match self.joints {
            Joints::Validator if last.is_some_and(Validators::has_strong) => Evidence::Validator,
            Joints::Overlap => Evidence::Overlap,
            Joints::Validator | Joints::Length => Evidence::Length,
        }
    }

    /// What is known of the version, without the bytes: a page in place of the file is told by it.
    pub fn facts(&self) -> Self {
        Self { held: Length::ZERO, beyond: Length::ZERO, inode: None, ..self.clone() }
    }

    /// Bytes held in all.
    pub fn in_all(&self) -> Length {
        self.held + self.beyond
    }

    /// The digest to check the whole by, where servers vouch for it.
    pub fn vouched(&self) -> Option<&Expected> {
        Expected::strongest(&self.vouched)
    }

    /// Nothing is held, and nothing known.
    pub fn is_blank(&self) -> bool {
        *self == Self::default()
    }
}

/// Does an origin answer range requests?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ranges {
    /// Not known: ask.
    #[default]
    Unknown,
    /// It has.
    Work,
    /// It ignores or breaks them: ask plainly.
    Broken,
}

/// What to send in If-Range: stepped down where an origin answers 200 although its validator is the very same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfRange {
    /// The strong ETag, else the date where it is strong.
    #[default]
    Best,
    /// The date only.
    Date,
    /// None: a bare Range, and the comparison decides.
    Bare,
}
