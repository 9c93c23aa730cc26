//! The machine: which request comes first, where redirects lead, and who judges what comes back.

use crate::core::failure::Failure;
use crate::core::file_xfer::asking::Asking;
pub(super) use crate::core::file_xfer::asking::Purpose;
use crate::core::file_xfer::concord::Contradiction;
use crate::core::file_xfer::dossier::{Dossier, Draft, IfRange, OriginNotes, Ranges};
use crate::core::file_xfer::said::Said;
use crate::core::file_xfer::vouch::NamedMirrors;
use crate::core::file_xfer::{AnswerHead, Ask, Event, FileOp, Next, Place, Plan, Receive, Step, Unless, Wanted};
use crate::core::pers_xfer::record::Evidence;
use crate::core::range::{Length, Offset};
use crate::core::time::Epoch;
use crate::core::url::Origin;
use crate::core::validator::Sameness;

/// So many requests without a byte of progress end a session: whatever the server does, it is not going to work now.
const MAX_FRUITLESS_ASKS: u32 = 12;

/// So many origins are remembered for one file; a redirector with more loses the oldest.
const MAX_ORIGINS: usize = 32;

/// One session: see the folder's page.
#[derive(Clone, Debug)]
pub struct FileXfer {
    pub(super) plan: Plan,
    pub(super) dossier: Dossier,
    /// The draft that this session works on.
    pub(super) place: Place,
    /// What is being asked, hop after hop.
    pub(super) asking: Asking,
    /// The open answer.
    pub(super) open: Option<Open>,
    /// How far the comparison has stepped back already.
    pub(super) steps_back: usize,
    /// The other draft has been tried in this session.
    pub(super) switched: bool,
    /// The random earlier block was equal.
    pub(super) probed: bool,
    /// The file's length as a 416 of this session told it: a 200 of that length is no surprise.
    pub(super) told_by_416: Option<Length>,
    /// Why the open answer would be refused if no digest were known to judge it.
    pub(super) doubt: Option<Failure>,
    /// A plain request has been fallen back to in this session.
    pub(super) plain: bool,
    /// A part of the file came with another digest of the whole than is known.
    pub(super) contradicted: bool,
    /// Mirrors that servers named, until they are taken.
    pub(super) named: Option<NamedMirrors>,
    /// What servers said of the whole beside the session.
    pub(super) said: Said,
    /// Origins of other versions, until they are taken.
    pub(super) apart: Vec<Contradiction>,
    /// So often a redirector was asked again because it had led to another version.
    pub(super) detours: u32,
    asks: u32,
    /// File operations wished for since the last step.
    pub(super) ops: Vec<FileOp>,
}

/// An answer whose body is being read.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) head: AnswerHead,
    pub(super) origin: Origin,
    pub(super) receive: Receive,
    /// Where its first byte stands in the file.
    pub(super) first: Offset,
    /// It is a 200: the whole of one version.
    pub(super) whole: bool,
    /// How its validators compare with the draft's.
    pub(super) sameness: Sameness,
    /// The whole file's length as this answer tells it.
    pub(super) total: Option<Length>,
    /// It is of another version than those whose bytes the draft holds.
    pub(super) apart: Apart,
}

impl Open {
    /// By what its origin said before, or by what others say, it is of another version than the draft.
    pub(super) fn is_of_another_version(&self) -> bool {
        self.sameness == Sameness::Different || self.apart == Apart::Yes
    }
}

/// Is an answer of another version than the draft, by what its origin and others say?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Apart {
    /// Not as far as they say.
    No,
    /// They contradict each other.
    Yes,
}

impl FileXfer {
    /// A session by this plan.
    pub fn new(plan: Plan) -> Self {
        let dossier = plan.dossier.clone();
        let place = if dossier.rival.is_some() { Place::Rival } else { Place::Part };
        let asking = Asking::to(plan.url.clone(), Purpose::Body, &plan.first_origin, plan.named_by);
        let (ops, open) = (Vec::new(), None);
        Self {
            plan,
            dossier,
            place,
            asking,
            open,
            steps_back: 0,
            switched: false,
            probed: false,
            told_by_416: None,
            doubt: None,
            plain: false,
            contradicted: false,
            named: None,
            said: Said::default(),
            apart: Vec::new(),
            detours: 0,
            asks: 0,
            ops,
        }
    }

    /// The first step.
    pub fn start(&mut self) -> Step {
        if self.plan.revalidate.is_some() {
            return self.ask(Purpose::Revalidate, None);
        }
        match self.plan.probe {
            Some(block) if self.place == Place::Part => {
                self.ask(Purpose::Probe, Some(Wanted { from: block.start, to: Some(block.end) }))
            }
            _ => self.ask_for_the_rest(),
        }
    }

    /// What is known now; to be stored when it differs from what was stored.
    pub fn dossier(&self) -> &Dossier {
        &self.dossier
    }

    /// The origin that answered last.
    pub fn origin(&self) -> Option<&Origin> {
        self.open.as_ref().map(|o| &o.origin)
    }

    /// The head of the open answer.
    pub fn head(&self) -> Option<&AnswerHead> {
        self.open.as_ref().map(|o| &o.head)
    }

    /// The whole file's length, as far as the open answer or the draft at hand tells it. The answer comes first: what an
    /// earlier one told may be more than any disk holds.
    pub fn total(&self) -> Option<Length> {
        self.open.as_ref().and_then(|o| o.total).or(self.draft().total)
    }

    /// Last-Modified of the draft at hand, as its last origin told it.
    pub fn last_modified(&self) -> Option<Epoch> {
        let draft = self.draft();
        draft.validators_of(draft.last_origin.as_ref()?)?.last_modified
    }

    /// The digest found the rival right (it takes the part's place) or wrong (it goes, and the session has failed).
    pub fn rival_judged(&mut self, verdict: Result<(), Failure>) -> Step {
        match verdict {
            Ok(()) => {
                self.promote();
                self.step(Next::Finish { place: Place::Part, evidence: Evidence::Digest })
            }
            Err(failure) => {
                self.dossier.rival = None;
                self.place = Place::Part;
                self.ops.push(FileOp::DropRival);
                let failure = self.doubt.take().unwrap_or(failure);
                self.fail(failure)
            }
        }
    }

    /// What to do after what happened.
    pub fn handle(&mut self, event: Event) -> Step {
        match event {
            Event::Answer(head) => self.answered(*head),
            Event::Joined => self.joined(),
            Event::Differs(at) => self.differs(at),
            Event::Ended(at) => self.ended(at),
            Event::Broke(at, failure) => self.broke(at, failure),
        }
    }

    /// The step that does this next, after the file operations gathered.
    pub(super) fn step(&mut self, next: Next) -> Step {
        Step { ops: std::mem::take(&mut self.ops), next }
    }

    pub(super) fn fail(&mut self, failure: Failure) -> Step {
        self.step(Next::Fail(failure))
    }

    pub(super) fn draft(&self) -> &Draft {
        self.draft_in(self.place)
    }

    pub(super) fn draft_in(&self, place: Place) -> &Draft {
        match (place, &self.dossier.rival) {
            (Place::Rival, Some(rival)) => rival,
            _ => &self.dossier.part,
        }
    }

    pub(super) fn draft_mut(&mut self) -> &mut Draft {
        match (self.place, &mut self.dossier.rival) {
            (Place::Rival, Some(rival)) => rival,
            (_, _) => &mut self.dossier.part,
        }
    }

    /// Asks for what is missing behind the draft: by a range that starts with the proof, or plainly.
    pub(super) fn ask_for_the_rest(&mut self) -> Step {
        let proof = match self.place {
            Place::Part => self.plan.proof.part,
            Place::Rival => self.plan.proof.rival,
        };
        let held = self.draft().held;
        if held == Length::ZERO || self.plain {
            return self.ask(Purpose::Body, None);
        }
        self.ask_from(proof.min(held.as_end()))
    }

    /// Asks for the rest from here on; from the very start without a range.
    pub(super) fn ask_from(&mut self, from: Offset) -> Step {
        let until = self.plan.until.filter(|until| self.place == Place::Part && *until > self.draft().held.as_end());
        let range = (from > Offset::ZERO).then_some(Wanted { from, to: until });
        self.ask(Purpose::Body, range)
    }

    /// Ranges are of no use here now: asks for the whole, to be read through and compared.
    pub(super) fn ask_plainly(&mut self) -> Step {
        self.plain = true;
        self.ask(Purpose::Body, None)
    }

    pub(super) fn ask(&mut self, purpose: Purpose, range: Option<Wanted>) -> Step {
        self.asks += 1;
        if self.asks > MAX_FRUITLESS_ASKS {
            let detail = format!("{MAX_FRUITLESS_ASKS} requests brought nothing new");
            return self.fail(Failure::BadAnswer(crate::core::failure::BadAnswer::Unsatisfiable { detail }));
        }
        self.asking = Asking::to(self.plan.url.clone(), purpose, &self.plan.first_origin, self.plan.named_by);
        self.asking.range = range;
        self.hop()
    }

    /// Bytes arrived, so further requests are not fruitless.
    pub(super) fn progressed(&mut self) {
        self.asks = 0;
    }

    /// Sends the request to the hop that it has reached.
    fn hop(&mut self) -> Step {
        self.open = None;
        let origin = self.asking.url.origin();
        let body = self.asking.purpose() == Purpose::Body;
        if body && self.notes(&origin).ranges == Ranges::Broken {
            self.asking.range = None;
        }
        let (conditional, if_range) = self.if_range(&origin);
        self.asking.conditional = conditional;
        let ask = Ask {
            url: self.asking.url.clone(),
            carry: self.asking.carry,
            range: self.asking.range,
            if_range,
            unless: self.unless(&origin),
            freshness: self.plan.freshness,
        };
        self.step(Next::Ask(ask))
    }

    /// The text of If-Range for this origin, and by which mode.
    fn if_range(&self, origin: &Origin) -> (Option<IfRange>, Option<String>) {
        let notes = self.notes(origin);
        if self.asking.range.is_none() || notes.etags_lie {
            return (None, None);
        }
        let text = self.draft().validators_of(origin).and_then(|v| v.if_range(notes.if_range));
        (text.is_some().then_some(notes.if_range), text)
    }

    fn unless(&self, origin: &Origin) -> Option<Unless> {
        if self.asking.purpose != Purpose::Revalidate {
            return None;
        }
        self.plan.revalidate.as_ref()?.validators_of(origin)?.unless()
    }

    fn answered(&mut self, head: AnswerHead) -> Step {
        match head.status {
            301 | 302 | 303 | 307 | 308 => self.redirected(&head),
            _ => {
                let origin = self.asking.url.origin();
                self.judge(self.asking.purpose, head, origin)
            }
        }
    }

    fn redirected(&mut self, head: &AnswerHead) -> Step {
        self.note_named(head);
        match self.asking.follow(head) {
            Ok(()) => self.hop(),
            Err(fault) => self.fail(Failure::Redirect(fault)),
        }
    }

    /// What is known of an origin's ways, for those who ask it beside this session.
    pub fn ways(&self, origin: &Origin) -> OriginNotes {
        self.notes(origin)
    }

    /// What is known of an origin's ways.
    pub(super) fn notes(&self, origin: &Origin) -> OriginNotes {
        let known = self.dossier.origins.iter().find(|n| &n.origin == origin);
        known.cloned().unwrap_or_else(|| OriginNotes::new(origin.clone()))
    }

    /// Notes something of an origin's ways.
    pub(super) fn note(&mut self, origin: &Origin, change: impl FnOnce(&mut OriginNotes)) {
        let mut notes = self.notes(origin);
        change(&mut notes);
        let origins = &mut self.dossier.origins;
        origins.retain(|n| n.origin != *origin);
        origins.push(notes);
        if origins.len() > MAX_ORIGINS {
            origins.remove(0);
        }
    }
}
