//! A session that is joined by others: from then on the file comes over several links at once, and the session's own
//! answer is one of them. What the links brought comes back here at the end.

use crate::core::failure::Failure;
use crate::core::file_xfer::dossier::{Draft, Joints, OriginNotes};
use crate::core::file_xfer::machine::FileXfer;
use crate::core::file_xfer::{Place, Receive, Step};
use crate::core::range::{Length, Offset};
use crate::core::url::Origin;
use crate::core::validator::Validators;

/// The open answer, as one of several links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Who answers.
    pub origin: Origin,
    /// Where its body has come to.
    pub at: Offset,
    /// Where it ends.
    pub end: Offset,
    /// The whole file's length.
    pub total: Length,
}

/// How the links ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BesideEnd {
    /// Every byte is held.
    Whole,
    /// No link is left that could go on.
    Failed(Failure),
}

impl FileXfer {
    /// Can others fetch what lies elsewhere while the open answer is read by this plan? They can once it is joined, of a
    /// version whose length is known, and uncoded.
    pub fn split(&self, plan: Receive) -> Option<Split> {
        let open = self.open.as_ref()?;
        let total = self.dossier.part.total?;
        let joined = plan.at >= plan.compare_until && open.total.is_none_or(|told| told == total);
        let plain = self.dossier.part.coding.is_none() && open.head.coding.is_none();
        let end = plan.end.unwrap_or(total.as_end()).min(total.as_end());
        let split = Split { origin: open.origin.clone(), at: plan.at, end, total };
        (plan.place == Place::Part && joined && plain && plan.at < end).then_some(split)
    }

    /// The version that links fetch.
    pub fn version(&self) -> &Draft {
        &self.dossier.part
    }

    /// A link is about to bring bytes of this origin, joined so. To be stored before they are written.
    pub fn joined_beside(&mut self, origin: &Origin, validators: &Validators, joint: Joints) {
        let part = &mut self.dossier.part;
        part.joints = part.joints.min(joint);
        if part.validators_of(origin).is_none() {
            part.vouch(origin, validators);
        }
    }

    /// A link learned something of an origin's ways.
    pub fn noted_beside(&mut self, notes: &OriginNotes) {
        self.note(&notes.origin, |known| {
            // How many connections it bears is learned elsewhere.
            let (most, part_digests_lie) = (known.most, known.part_digests_lie || notes.part_digests_lie);
            *known = OriginNotes { most, part_digests_lie, ..notes.clone() };
        });
    }

    /// This origin bears so many connections for this file, and not one more.
    pub fn bears(&mut self, origin: &Origin, most: u32) {
        self.note(origin, |known| known.most = Some(most));
    }

    /// The links have ended, and so much is held without a gap.
    pub fn beside_ended(&mut self, held: Length, end: BesideEnd) -> Step {
        self.dossier.part.held = held;
        match (end, self.dossier.part.total) {
            (BesideEnd::Whole, Some(total)) if held == total => self.finish(),
            (BesideEnd::Failed(failure), _) => self.fail(failure),
            (BesideEnd::Whole, total) => {
                // The driver's mistake; the session ends rather than guess.
                let want = total.unwrap_or_default();
                self.fail(Failure::Cut(crate::core::failure::Cut::Short { got: held, want }))
            }
        }
    }
}
