//! Whether bytes of another origin may be mixed into what is held (design 3.6). Blocks that are equal do not tell two versions
//! apart that differ in a few places; where no digest judges the whole, what servers say of their versions may. An origin
//! that contradicts those whose bytes are held is kept apart: its version may come whole, beside what is held, and
//! not a byte of it goes into that.

use std::fmt;

use crate::core::digest::Expected;
use crate::core::file_xfer::dossier::{Dossier, Draft, OriginNotes};
use crate::core::file_xfer::machine::FileXfer;
use crate::core::file_xfer::{AnswerHead, LastWord, Place, Step};
use crate::core::range::Length;
use crate::core::url::Origin;
use crate::core::validator::{Concord, Odds, Sameness, Validators};

/// So many origins are remembered as kept apart from one draft.
const MAX_RESERVE: usize = 32;

/// So often is a URL asked again that was redirected to an origin of another version: the next time it may lead home.
const MAX_DETOURS: u32 = 2;

/// An origin that has another version than those whose bytes are held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Who.
    pub origin: Origin,
    /// What it says of its version.
    pub validators: Validators,
    /// Whom it contradicts.
    pub with: Origin,
    /// By what.
    pub by: Odds,
}

/// For the user.
impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (origin, by, with) = (&self.origin, self.by.word(), &self.with);
        write!(
            f,
            "mirror {origin} has another {by} than {with}; its bytes are not mixed in (give --checksum to use both)"
        )
    }
}

impl Draft {
    /// Does this answer contradict any other origin that vouches for the draft? A digest of the whole that both name is
    /// stronger than tags and dates. One that says what it said before is where it was.
    pub(super) fn contradicted_by(
        &self,
        notes: &[OriginNotes],
        origin: &Origin,
        told: &Validators,
        digests: &[Expected],
    ) -> Option<Contradiction> {
        let as_before = self.validators_of(origin).is_some_and(|known| known.says_the_same(told));
        let proven = digests.iter().any(|digest| digest.algorithm.proves() && self.vouched.contains(digest));
        if as_before || proven {
            return None;
        }
        let told = believed(notes, origin, told);
        let others = self.validators.iter().filter(|(other, _)| other != origin);
        let odds = others.filter_map(|(other, known)| match believed(notes, other, known).concord(&told) {
            Concord::Contradict(by) => Some((other, by)),
            Concord::Agree | Concord::Silent => None,
        });
        let (with, by) = odds.into_iter().next()?;
        Some(Contradiction { origin: origin.clone(), validators: told, with: with.clone(), by })
    }

    /// Is this origin known to have another version?
    pub fn keeps_in_reserve(&self, origin: &Origin) -> bool {
        self.reserve.iter().any(|(known, _)| known == origin)
    }
}

impl Dossier {
    /// Does an origin say of the draft that is being put together something else than it said `before`?
    pub fn has_changed_since(&self, before: &Self) -> bool {
        let (old, new) = (before.at_work(), self.at_work());
        new.validators.iter().any(|(origin, told)| {
            let notes = self.origins.iter().find(|notes| notes.origin == *origin).cloned();
            let notes = notes.unwrap_or_else(|| OriginNotes::new(origin.clone()));
            notes.sameness(old, told) == Sameness::Different
        })
    }

    fn at_work(&self) -> &Draft {
        self.rival.as_ref().unwrap_or(&self.part)
    }
}

/// What an origin says of its version, as far as that is believed.
fn believed(notes: &[OriginNotes], origin: &Origin, told: &Validators) -> Validators {
    let lies = notes.iter().any(|notes| notes.origin == *origin && notes.etags_lie);
    if lies { told.clone().without_etag() } else { told.clone() }
}

impl FileXfer {
    /// Does an answer contradict those whose bytes the draft in this place holds?
    pub(super) fn contradiction(&self, place: Place, head: &AnswerHead, origin: &Origin) -> Option<Contradiction> {
        let draft = self.draft_in(place);
        if self.plan.judge == LastWord::Digest || draft.in_all() == Length::ZERO {
            return None;
        }
        draft.contradicted_by(&self.dossier.origins, origin, &head.validators, &head.vouched())
    }

    /// A range came that must not be joined to the draft: that of the other draft is asked for, where it belongs to that; else
    /// the whole, to be put together beside what is held. A redirector may lead elsewhere the next time.
    pub(super) fn keep_out(&mut self, contradiction: &Contradiction, head: &AnswerHead) -> Step {
        let origin = &contradiction.origin;
        if !self.switched && self.belongs_to_other(head, origin) {
            self.switched = true;
            self.place = self.place.other();
            return self.ask_for_the_rest();
        }
        self.keep_apart(contradiction);
        if self.asking.url != self.plan.url && self.detours < MAX_DETOURS {
            self.detours += 1;
            return self.ask(self.asking.purpose, self.asking.range);
        }
        self.ask_plainly()
    }

    /// Is an answer of the version of which the other draft is?
    pub(super) fn belongs_to_other(&self, head: &AnswerHead, origin: &Origin) -> bool {
        let place = self.place.other();
        let draft = self.draft_in(place);
        self.dossier.rival.is_some()
            && draft.in_all() > Length::ZERO
            && self.sameness(draft, head, origin) != Sameness::Different
            && self.contradiction(place, head, origin).is_none()
    }

    /// Remembers an origin of another version, and has the user told where that is news.
    pub fn keep_apart(&mut self, contradiction: &Contradiction) {
        let reserve = &mut self.dossier.part.reserve;
        if reserve.iter().any(|(known, _)| *known == contradiction.origin) {
            return;
        }
        reserve.push((contradiction.origin.clone(), contradiction.validators.clone()));
        if reserve.len() > MAX_RESERVE {
            reserve.remove(0);
        }
        self.apart.push(contradiction.clone());
    }

    /// The origins that were found to have another version since this was last asked.
    pub fn take_apart(&mut self) -> Vec<Contradiction> {
        std::mem::take(&mut self.apart)
    }

    /// A link of this origin is about to bring bytes: may they be mixed in, by what others have brought meanwhile?
    pub fn contradicted_beside(&self, origin: &Origin, told: &Validators) -> Option<Contradiction> {
        if self.plan.judge == LastWord::Digest {
            return None;
        }
        self.dossier.part.contradicted_by(&self.dossier.origins, origin, told, &[])
    }
}
