//! Link: one connection among several of one download, as a machine. It fetches one range of the version that the
//! session has begun, and never another one.
//!
//! Before bytes of an answer count, its origin must have shown that it has the same version (design 3.3 and 3.6): by the
//! bytes that lie right before the range, or by a block held elsewhere, byte for byte. Where a digest has the last word, a
//! strong validator that the origin gave for this version before is enough. What a link cannot
//! settle (another version, broken ranges) ends it; what that means for the whole is for others to judge.

#[cfg(test)]
mod tests;

use crate::core::failure::{BadAnswer, Failure};
use crate::core::file_xfer::asking::{Asking, Purpose};
use crate::core::file_xfer::dossier::{Draft, IfRange, Joints, OriginNotes, Ranges};
use crate::core::file_xfer::head::is_html_type;
use crate::core::file_xfer::{AnswerHead, Ask, Contradiction, Freshness, LastWord, NamedBy, Saying, Wanted};
use crate::core::range::{ByteRange, Length, Offset};
use crate::core::segments::Reach;
use crate::core::url::{MirrorUrl, Origin};
use crate::core::validator::{Sameness, Validators};

/// What a link is to do.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// Where it starts: the mirror's own URL.
    pub url: MirrorUrl,
    /// The origin of the transfer's first URL.
    pub first_origin: Origin,
    /// Who named the mirror.
    pub named_by: NamedBy,
    /// What to fetch; where it is read through, the whole file.
    pub range: ByteRange,
    /// So much is asked for behind it, by which what another link brings there is compared.
    pub beyond: Length,
    /// By a range, or by reading the whole through: then every byte held is compared as it comes.
    pub reach: Reach,
    /// So many bytes right before the range are held: they are asked for too, and compared before anything is written.
    pub overlap: Length,
    /// A block held elsewhere that is asked for and compared first.
    pub proof: Option<ByteRange>,
    /// The version: its length is known.
    pub version: Draft,
    /// What is known of the ways of origins.
    pub notes: Vec<OriginNotes>,
    /// Is there a digest of the whole that decides in the end?
    pub digest: LastWord,
    /// Is there a digest, of the whole or of pieces, that judges the bytes of several origins together?
    pub judge: LastWord,
    /// May a cache answer?
    pub freshness: Freshness,
}

impl LinkPlan {
    /// Is there anything by which its origin can show that it has the same version? What is read through is compared as it
    /// comes. Where a digest has the last word, nothing else need speak for it while nothing is held: the length it tells
    /// is all that is asked for.
    pub fn can_be_proven(&self) -> bool {
        let comparable = self.overlap > Length::ZERO || self.proof.is_some() || self.reach == Reach::Through;
        comparable || self.digest == LastWord::Digest
    }
}

/// What the driver does next for a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkStep {
    /// Drop the open answer, if any, and send this.
    Ask(Ask),
    /// Compare the open answer's body, which begins at `at`, with what is held, up to `until`.
    Compare {
        /// Where the body begins.
        at: Offset,
        /// One beyond the last byte to compare.
        until: Offset,
    },
    /// The open answer's body, which begins at `at`, brings what was asked for, up to `end`.
    Take {
        /// Where the body begins; at most where the range begins.
        at: Offset,
        /// One beyond the last byte that counts.
        end: Offset,
        /// How its bytes are joined to the others.
        joint: Joints,
    },
    /// It is of no more use.
    End(LinkEnd),
}

/// Why a link is of no more use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// The origin answers ranges with the whole file.
    RangesIgnored,
    /// The origin has another version than those whose bytes are held, by what it says: nothing of it is mixed in.
    Apart(Box<Contradiction>),
    /// The origin says that it has another version now than it had.
    Changed(Failure),
    /// The origin has another file, or other bytes than it said.
    OtherVersion(Failure),
    /// Anything else.
    Failed(Failure),
}

/// What came of a step.
#[derive(Clone, Debug)]
pub enum LinkEvent {
    /// An answer began.
    Answer(Box<AnswerHead>),
    /// Every byte to compare was equal.
    Equal,
    /// A byte to compare differed.
    Differs(Offset),
}

/// One link.
#[derive(Clone, Debug)]
pub struct Link {
    plan: LinkPlan,
    asking: Asking,
    /// The head of the answer that is open.
    open: Option<(Origin, Validators)>,
    /// This origin returned the block, under these validators.
    proven: Option<(Origin, Validators)>,
    /// What its answers say of the whole, until that is taken.
    sayings: Vec<Saying>,
}

impl Link {
    /// A link by this plan.
    pub fn new(plan: LinkPlan) -> Self {
        let asking = Asking::to(plan.url.clone(), Purpose::Body, &plan.first_origin, plan.named_by);
        Self { plan, asking, open: None, proven: None, sayings: Vec::new() }
    }

    /// The first step.
    pub fn start(&mut self) -> LinkStep {
        match self.plan.proof.take() {
            _ if self.plan.reach == Reach::Through => self.ask_plainly(),
            Some(block) => self.ask(Purpose::Probe, block),
            None => self.ask_for_the_range(),
        }
    }

    /// What to do after what happened.
    pub fn handle(&mut self, event: LinkEvent) -> LinkStep {
        match event {
            LinkEvent::Answer(head) => self.answered(&head),
            LinkEvent::Equal => {
                self.proven = self.open.take();
                self.ask_for_the_range()
            }
            LinkEvent::Differs(at) => self.differs(at),
        }
    }

    /// Who answers, and with which validators.
    pub fn answering(&self) -> Option<&(Origin, Validators)> {
        self.open.as_ref()
    }

    /// Whom it asks, or asked last.
    pub fn origin(&self) -> Origin {
        self.asking.url.origin()
    }

    /// What its answers say of the whole file, since this was last asked.
    pub fn take_sayings(&mut self) -> Vec<Saying> {
        std::mem::take(&mut self.sayings)
    }

    /// What it learned of the ways of origins.
    pub fn notes(&self) -> &[OriginNotes] {
        &self.plan.notes
    }

    fn ask_for_the_range(&mut self) -> LinkStep {
        let from = self.plan.range.start.back(self.plan.overlap);
        self.ask(Purpose::Body, ByteRange::new(from, self.plan.range.end + self.plan.beyond))
    }

    fn ask(&mut self, purpose: Purpose, range: ByteRange) -> LinkStep {
        self.asking = Asking::to(self.plan.url.clone(), purpose, &self.plan.first_origin, self.plan.named_by);
        self.asking.range = Some(Wanted { from: range.start, to: Some(range.end) });
        self.hop()
    }

    fn ask_plainly(&mut self) -> LinkStep {
        self.asking = Asking::to(self.plan.url.clone(), Purpose::Body, &self.plan.first_origin, self.plan.named_by);
        self.hop()
    }

    fn hop(&mut self) -> LinkStep {
        self.open = None;
        let origin = self.asking.url.origin();
        let (conditional, if_range) = self.if_range(&origin);
        self.asking.conditional = conditional;
        LinkStep::Ask(Ask {
            url: self.asking.url.clone(),
            carry: self.asking.carry,
            range: self.asking.range,
            if_range,
            unless: None,
            freshness: self.plan.freshness,
        })
    }

    fn if_range(&self, origin: &Origin) -> (Option<IfRange>, Option<String>) {
        let notes = self.known(origin);
        if notes.etags_lie || self.asking.range.is_none() {
            return (None, None);
        }
        let text = self.validators(origin).and_then(|v| v.if_range(notes.if_range));
        (text.is_some().then_some(notes.if_range), text)
    }

    fn answered(&mut self, head: &AnswerHead) -> LinkStep {
        let origin = self.asking.url.origin();
        match head.status {
            301 | 302 | 303 | 307 | 308 => match self.asking.follow(head) {
                Ok(()) => self.hop(),
                Err(fault) => LinkStep::failed(Failure::Redirect(fault)),
            },
            206 => self.partial(head, origin),
            200 | 203 => self.whole(head, &origin),
            code @ 201..=299 => LinkStep::bad(BadAnswer::NoFile { code }),
            416 => LinkStep::bad(BadAnswer::Unsatisfiable { detail: self.asked().to_string() }),
            code => LinkStep::failed(Failure::Status { code, retry_after: head.retry_after }),
        }
    }

    /// The whole file where a part was asked for: it tells whether the version is another one, or ranges are ignored.
    fn whole(&mut self, head: &AnswerHead, origin: &Origin) -> LinkStep {
        if self.is_page(head) {
            return LinkStep::bad(BadAnswer::HtmlPage);
        }
        let other_length = head.length().is_some_and(|told| Some(told) != self.plan.version.total);
        match self.sameness(head, origin) {
            Sameness::Different => self.changed(),
            _ if other_length => self.other_version(origin, self.asked()),
            _ if let Some(apart) = self.contradiction(head, origin) => LinkStep::End(LinkEnd::Apart(Box::new(apart))),
            sameness if self.plan.reach == Reach::Through => self.take_whole(head, origin, sameness),
            // The very same validator, and yet the whole: If-Range may be what is broken (design 3.2).
            Sameness::Same if self.step_if_range_down(origin) => self.hop(),
            _ => {
                self.note(origin, |notes| notes.ranges = Ranges::Broken);
                LinkStep::End(LinkEnd::RangesIgnored)
            }
        }
    }

    /// The whole, as it was asked for. One that is coded, or whose end nobody can tell, is left to a session of its own.
    fn take_whole(&mut self, head: &AnswerHead, origin: &Origin, sameness: Sameness) -> LinkStep {
        if head.coding != self.plan.version.coding {
            return LinkStep::bad(BadAnswer::Coded { coding: head.coding.clone().unwrap_or_default() });
        }
        self.open = Some((origin.clone(), head.validators.clone()));
        self.sayings.push(Saying { origin: origin.clone(), part: None, digests: head.vouched() });
        let joint = match sameness {
            Sameness::Same => Joints::Validator,
            _ if self.plan.version.held > Length::ZERO => Joints::Overlap,
            _ => Joints::Length,
        };
        LinkStep::Take { at: Offset::ZERO, end: self.plan.range.end, joint }
    }

    fn step_if_range_down(&mut self, origin: &Origin) -> bool {
        let next = match self.asking.conditional {
            None | Some(IfRange::Bare) => return false,
            Some(IfRange::Best) => IfRange::Date,
            Some(IfRange::Date) => IfRange::Bare,
        };
        self.note(origin, |notes| notes.if_range = next);
        true
    }

    fn partial(&mut self, head: &AnswerHead, origin: Origin) -> LinkStep {
        if self.is_page(head) {
            return LinkStep::bad(BadAnswer::HtmlPage);
        }
        let (range, total) = match head.one_range(self.asked(), self.plan.version.coding.as_deref()) {
            Ok(range) => range,
            Err(bad) => return LinkStep::bad(bad),
        };
        if self.asking.range.is_none() {
            return LinkStep::bad(BadAnswer::Unasked206);
        }
        let (known, sameness) = (self.plan.version.total, self.sameness(head, &origin));
        if total.is_some_and(|total| Some(total) != known) {
            return self.other_version(&origin, self.asked());
        }
        if sameness == Sameness::Different && self.plan.digest == LastWord::Joints {
            return self.changed();
        }
        if let Some(apart) = self.contradiction(head, &origin) {
            return LinkStep::End(LinkEnd::Apart(Box::new(apart)));
        }
        self.open = Some((origin.clone(), head.validators.clone()));
        self.sayings.push(Saying { origin: origin.clone(), part: Some(range), digests: head.vouched() });
        match self.asking.purpose() {
            Purpose::Probe => self.compare(range),
            Purpose::Body | Purpose::Revalidate => {
                let left_to_digest = total.is_some() && self.plan.digest == LastWord::Digest && self.proven.is_none();
                self.take(range, sameness, head, &origin, left_to_digest)
            }
        }
    }

    /// A proof by part of the block would be a weaker one.
    fn compare(&mut self, range: ByteRange) -> LinkStep {
        let end = self.asking.range.and_then(|wanted| wanted.to).unwrap_or(range.end);
        if range.start != self.asked() || range.end < end {
            return LinkStep::bad(BadAnswer::OtherRange { asked: self.asked(), got: range });
        }
        LinkStep::Compare { at: range.start, until: end }
    }

    fn take(
        &mut self,
        range: ByteRange,
        sameness: Sameness,
        head: &AnswerHead,
        origin: &Origin,
        left_to_digest: bool,
    ) -> LinkStep {
        let joint = if sameness == Sameness::Same {
            Joints::Validator
        } else if self.plan.overlap > Length::ZERO || self.is_proven(origin, head) {
            Joints::Overlap
        } else if left_to_digest {
            Joints::Length
        } else {
            // Redirected elsewhere each time, or nothing to compare with.
            return LinkStep::bad(BadAnswer::Unproven);
        };
        self.note(origin, |notes| notes.ranges = Ranges::Work);
        LinkStep::Take { at: range.start, end: range.end.min(self.plan.range.end + self.plan.beyond), joint }
    }

    /// Did this origin return the block, and does it still speak of the same version?
    fn is_proven(&self, origin: &Origin, head: &AnswerHead) -> bool {
        let Some((proven, validators)) = &self.proven else { return false };
        proven == origin && validators.compare(&head.validators) != Sameness::Different
    }

    fn differs(&mut self, at: Offset) -> LinkStep {
        match self.open.take() {
            Some((origin, _)) => self.other_version(&origin, at),
            None => LinkStep::bad(BadAnswer::Unproven),
        }
    }

    /// It says something else than it said before: it has changed, and is nobody's odd mirror.
    fn changed(&self) -> LinkStep {
        LinkStep::End(LinkEnd::Changed(Failure::ChangedMeanwhile { at: self.asked() }))
    }

    /// An origin that has vouched for the version has changed; any other is the odd one out. Where a digest decides in the
    /// end, it may be what is held that is odd.
    fn other_version(&self, origin: &Origin, at: Offset) -> LinkStep {
        let known = self.plan.version.validators_of(origin).is_some();
        let failure = match self.plan.digest {
            LastWord::Joints if !known => Failure::OddMirror { at },
            LastWord::Joints | LastWord::Digest => Failure::ChangedMeanwhile { at },
        };
        LinkStep::End(LinkEnd::OtherVersion(failure))
    }

    /// Does an answer contradict those whose bytes are held, where no digest judges?
    fn contradiction(&self, head: &AnswerHead, origin: &Origin) -> Option<Contradiction> {
        let judged = self.plan.judge == LastWord::Digest;
        let of = |version: &Draft| version.contradicted_by(&self.plan.notes, origin, &head.validators, &head.vouched());
        if judged { None } else { of(&self.plan.version) }
    }

    fn is_page(&self, head: &AnswerHead) -> bool {
        head.is_html() && !self.plan.version.content_type.as_deref().is_some_and(is_html_type)
    }

    fn asked(&self) -> Offset {
        self.asking.range.map_or(Offset::ZERO, |wanted| wanted.from)
    }

    fn sameness(&self, head: &AnswerHead, origin: &Origin) -> Sameness {
        self.known(origin).sameness(&self.plan.version, &head.validators)
    }

    fn validators(&self, origin: &Origin) -> Option<&Validators> {
        self.plan.version.validators_of(origin)
    }

    fn known(&self, origin: &Origin) -> OriginNotes {
        let known = self.plan.notes.iter().find(|notes| notes.origin == *origin);
        known.cloned().unwrap_or_else(|| OriginNotes::new(origin.clone()))
    }

    fn note(&mut self, origin: &Origin, change: impl FnOnce(&mut OriginNotes)) {
        let mut notes = self.known(origin);
        change(&mut notes);
        self.plan.notes.retain(|known| known.origin != *origin);
        self.plan.notes.push(notes);
    }
}

impl LinkStep {
    const fn failed(failure: Failure) -> Self {
        Self::End(LinkEnd::Failed(failure))
    }

    const fn bad(bad: BadAnswer) -> Self {
        Self::failed(Failure::BadAnswer(bad))
    }
}
