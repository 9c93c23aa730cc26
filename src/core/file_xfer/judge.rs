//! What an answer's head means: design 3, rules 1 to 5, before a byte of the body is looked at.

use crate::core::failure::{BadAnswer, Failure};
use crate::core::file_xfer::dossier::{Draft, IfRange, Joints, Ranges};
use crate::core::file_xfer::head::is_html_type;
use crate::core::file_xfer::machine::{Apart, FileXfer, Open, Purpose};
use crate::core::file_xfer::{AnswerHead, Company, FileOp, LastWord, MetalinkIs, Next, Place, Receive, Step};
use crate::core::printable::printable;
use crate::core::range::{ContentRange, Length, Offset};
use crate::core::url::Origin;
use crate::core::validator::{Sameness, Validators};

/// Where less than this is held, a 200 is read through rather than asked for again with another If-Range.
const CHEAP_TO_READ: Length = Length(1 << 20);

impl FileXfer {
    pub(super) fn judge(&mut self, purpose: Purpose, head: AnswerHead, origin: Origin) -> Step {
        match head.status {
            200 | 203 => self.whole(purpose, head, origin),
            206 => self.partial(purpose, head, origin),
            304 if purpose == Purpose::Revalidate => self.step(Next::Unchanged),
            416 => self.unsatisfiable(&head, &origin),
            code @ 201..=299 => self.fail(Failure::BadAnswer(BadAnswer::NoFile { code })),
            code => self.fail(Failure::Status { code, retry_after: head.retry_after }),
        }
    }

    /// 200: the whole of one version, to be read through.
    fn whole(&mut self, purpose: Purpose, head: AnswerHead, origin: Origin) -> Step {
        if purpose == Purpose::Revalidate && self.is_the_finished_one(&head, &origin) {
            return self.step(Next::Unchanged);
        }
        if let Some(bad) = part_of_200(&head) {
            return self.ranges_are_broken(&origin, bad);
        }
        if let Some(failure) = self.refusal(&head, head.length()) {
            return self.fail(failure);
        }
        self.place = self.place_for(&head, &origin);
        let sameness = self.sameness(self.draft(), &head, &origin);
        if self.part_digest_lied(sameness, &head, &origin) {
            return self.ask_for_the_rest();
        }
        // A length that was told once, truly or not, may not outweigh a digest: that judges what comes.
        self.doubt = head.length().and_then(|told| self.doubt_of_length(told, &head, sameness));
        if self.plan.digest == LastWord::Joints
            && let Some(failure) = self.doubt.take()
        {
            return self.fail(failure);
        }
        if self.asking.range.is_some() && self.ask_otherwise(sameness, &origin) {
            return self.ask_for_the_rest();
        }
        let (first, total) = (Offset::ZERO, head.length());
        let receive = Receive {
            place: self.place,
            at: first,
            compare_until: self.draft().held.as_end(),
            end: total.map(Length::as_end),
        };
        let apart = self.contradiction(self.place, &head, &origin);
        if let Some(contradiction) = &apart {
            self.keep_apart(contradiction);
        }
        let apart = if apart.is_some() { Apart::Yes } else { Apart::No };
        self.accept(Open { head, origin, receive, first, whole: true, sameness, total, apart })
    }

    /// 206: one range, which counts only if it holds the first byte asked for.
    fn partial(&mut self, purpose: Purpose, head: AnswerHead, origin: Origin) -> Step {
        let Some(wanted) = self.asking.range else {
            return self.fail(Failure::BadAnswer(BadAnswer::Unasked206));
        };
        if self.is_a_page_instead(&head) {
            return self.fail(Failure::BadAnswer(BadAnswer::HtmlPage));
        }
        let (range, total) = match head.one_range(wanted.from, self.draft().coding.as_deref()) {
            Ok(range) => range,
            Err(bad) => return self.ranges_are_broken(&origin, bad),
        };
        if let Some(failure) = self.refusal(&head, total) {
            return self.fail(failure);
        }
        let sameness = self.sameness(self.draft(), &head, &origin);
        self.contradicted |= self.contradicts(self.draft(), &head, &origin);
        if let Some(step) = self.other_version(sameness, &head, &origin, total) {
            return step;
        }
        if let Some(contradiction) = self.contradiction(self.place, &head, &origin) {
            return self.keep_out(&contradiction, &head);
        }
        let held = self.draft().held.as_end();
        let compare_until = if purpose == Purpose::Probe { range.end.min(held) } else { held };
        let receive = Receive { place: self.place, at: range.start, compare_until, end: Some(range.end) };
        let first = range.start;
        self.accept(Open { head, origin, receive, first, whole: false, sameness, total, apart: Apart::No })
    }

    /// The answer will be read: what it tells of a draft that is still empty is noted now, the rest when it has joined.
    fn accept(&mut self, open: Open) -> Step {
        self.note_named(&open.head);
        if self.draft().held == Length::ZERO {
            self.begin_draft(&open);
        }
        let receive = open.receive;
        self.open = Some(open);
        self.step(Next::Receive(receive))
    }

    /// Nothing is held from the start on. Segments behind the gap stay where they may be of this very version.
    fn begin_draft(&mut self, open: &Open) {
        let part = &self.dossier.part;
        let islands = self.place == Place::Part && part.beyond > Length::ZERO && self.plan.judge == LastWord::Joints;
        let other_total = matches!((open.total, part.total), (Some(a), Some(b)) if a != b);
        if islands && !other_total && !open.is_of_another_version() {
            self.dossier.part.vouch(&open.origin, &open.head.validators);
            self.dossier.part.last_origin = Some(open.origin.clone());
            return;
        }
        if islands {
            self.ops.push(FileOp::Cut(Place::Part, Offset::ZERO));
        }
        *self.draft_mut() = fresh_draft(open, self.draft());
    }

    /// 416, judged by its total (rule 5).
    fn unsatisfiable(&mut self, head: &AnswerHead, origin: &Origin) -> Step {
        let Some(wanted) = self.asking.range else {
            return self.fail(Failure::Status { code: 416, retry_after: None });
        };
        let total = match ContentRange::parse(head.content_range.as_deref().unwrap_or_default()) {
            Ok(ContentRange::Unsatisfied { total }) => total,
            _ => return self.ranges_are_broken(origin, unsatisfiable("it names no total")),
        };
        let draft = self.draft();
        let sameness = self.sameness(draft, head, origin);
        let as_known = draft.total.is_none_or(|known| known == total) && sameness != Sameness::Different;
        if total == draft.held && wanted.from >= total.as_end() && as_known {
            if sameness != Sameness::Same {
                let draft = self.draft_mut();
                draft.joints = draft.joints.min(Joints::Length);
            }
            self.draft_mut().total = Some(total);
            return self.finish();
        }
        self.told_by_416 = Some(total);
        // The overlap lies before what the server says is the end: it contradicts itself.
        if total.as_end() > wanted.from {
            let detail = format!("from offset {} of {total}", wanted.from);
            return self.ranges_are_broken(origin, unsatisfiable(detail));
        }
        if self.plain { self.fail(Failure::Status { code: 416, retry_after: None }) } else { self.ask_plainly() }
    }

    /// Ranges do not work at this origin: the whole is asked for, once.
    pub(super) fn ranges_are_broken(&mut self, origin: &Origin, bad: BadAnswer) -> Step {
        self.note(origin, |n| n.ranges = Ranges::Broken);
        if self.plain { self.fail(Failure::BadAnswer(bad)) } else { self.ask_plainly() }
    }

    /// A range request was answered 200: should it be asked again in another way, rather than read through?
    fn ask_otherwise(&mut self, sameness: Sameness, origin: &Origin) -> bool {
        let Some(mode) = self.asking.conditional else {
            self.note(origin, |n| n.ranges = Ranges::Broken);
            return false;
        };
        if sameness != Sameness::Same {
            return false;
        }
        // The very same validator, and yet the whole: If-Range is broken here (rule 2).
        let next = match mode {
            IfRange::Best => IfRange::Date,
            IfRange::Date | IfRange::Bare => IfRange::Bare,
        };
        self.note(origin, |n| n.if_range = next);
        self.draft().held >= CHEAP_TO_READ
    }

    /// Does the range belong to another version than the draft? Then the step that this asks for.
    fn other_version(
        &mut self,
        sameness: Sameness,
        head: &AnswerHead,
        origin: &Origin,
        total: Option<Length>,
    ) -> Option<Step> {
        let other_total = matches!((total, self.draft().total), (Some(a), Some(b)) if a != b);
        if sameness != Sameness::Different && !other_total {
            return None;
        }
        if !self.switched && self.other_draft_matches(head, origin) {
            self.switched = true;
            self.place = self.place.other();
            return Some(self.ask_for_the_rest());
        }
        if self.is_odd(origin) && other_total {
            let at = total.unwrap_or_default().min(self.draft().total.unwrap_or_default()).as_end();
            return Some(self.fail(Failure::OddMirror { at }));
        }
        if self.plan.digest == LastWord::Digest && !other_total {
            return None;
        }
        Some(self.ask_plainly())
    }

    fn other_draft_matches(&self, head: &AnswerHead, origin: &Origin) -> bool {
        self.dossier.rival.is_some() && self.sameness(self.draft_in(self.place.other()), head, origin) == Sameness::Same
    }

    /// Has this origin never vouched for the draft, while others may still be asked? Where a digest is known, the digest
    /// decides which of two versions is the odd one.
    pub(super) fn is_odd(&self, origin: &Origin) -> bool {
        let draft = self.draft();
        self.plan.company == Company::Others
            && self.plan.digest == LastWord::Joints
            && draft.held > Length::ZERO
            && !draft.validators.iter().any(|(o, _)| o == origin)
    }

    /// A server that says that the whole has another digest than it had says that the file is another one, whatever
    /// its validators say.
    pub(super) fn sameness(&self, draft: &Draft, head: &AnswerHead, origin: &Origin) -> Sameness {
        if self.contradicts(draft, head, origin) {
            return Sameness::Different;
        }
        self.notes(origin).sameness(draft, &head.validators)
    }

    /// A 200 is compared with the draft whose validators it carries; in doubt with the newer one.
    fn place_for(&self, head: &AnswerHead, origin: &Origin) -> Place {
        let Some(rival) = &self.dossier.rival else { return Place::Part };
        let same = |draft: &Draft| self.sameness(draft, head, origin) == Sameness::Same;
        if same(&self.dossier.part) && !same(rival) || self.is_apart_from_rival(head, origin) {
            Place::Part
        } else {
            Place::Rival
        }
    }

    /// Is this an answer of the version in the part file, which the newer one's origin contradicts?
    fn is_apart_from_rival(&self, head: &AnswerHead, origin: &Origin) -> bool {
        let part = &self.dossier.part;
        self.contradiction(Place::Rival, head, origin).is_some()
            && self.contradiction(Place::Part, head, origin).is_none()
            && self.sameness(part, head, origin) != Sameness::Different
    }

    fn is_the_finished_one(&self, head: &AnswerHead, origin: &Origin) -> bool {
        let Some(finished) = &self.plan.revalidate else { return false };
        let same_size = head.length().is_none_or(|n| Some(n) == finished.total);
        same_size && self.sameness(finished, head, origin) == Sameness::Same
    }

    /// Why nothing of this answer's body may be used, whatever range it is.
    fn refusal(&self, head: &AnswerHead, total: Option<Length>) -> Option<Failure> {
        if let Some(coding) = head.coding.as_ref().filter(|c| !self.plan.stored_codings.contains(&c.as_str())) {
            return Some(Failure::BadAnswer(BadAnswer::Coded { coding: coding.clone() }));
        }
        if self.is_a_page_instead(head) {
            return Some(Failure::BadAnswer(BadAnswer::HtmlPage));
        }
        if head.is_metalink() && self.plan.metalink == MetalinkIs::InItsPlace {
            return Some(Failure::BadAnswer(BadAnswer::Metalink));
        }
        if let Some(failure) = total.and_then(|size| self.other_size(size, head.is_html())) {
            return Some(failure);
        }
        let (size, limit) = (total?, self.plan.max_filesize?);
        (size > limit).then_some(Failure::TooLarge { size, limit })
    }

    /// Is this another size than the file must have? An HTML page of another size stands in, and will go away again.
    pub(super) fn other_size(&self, size: Length, is_html: bool) -> Option<Failure> {
        let expected = self.plan.expected.filter(|expected| *expected != size)?;
        let page = Failure::BadAnswer(BadAnswer::HtmlPage);
        Some(if is_html { page } else { Failure::OtherSize { size, expected } })
    }

    /// Does the length of a 200, told or come to, speak against it? One validator names one length; and less than was known, with nothing
    /// that vouches for it, is a page that stands in as likely as it is the file.
    pub(super) fn doubt_of_length(&self, told: Length, head: &AnswerHead, sameness: Sameness) -> Option<Failure> {
        let known = self.longest_known(told)?;
        let draft_total = self.draft().total;
        if sameness == Sameness::Same && draft_total.is_some_and(|total| total != told) {
            let known = draft_total.unwrap_or_default();
            return Some(Failure::BadAnswer(BadAnswer::SameTagOtherLength { known, told }));
        }
        let vouched = sameness == Sameness::Same
            || self.told_by_416 == Some(told)
            || self.plan.expected == Some(told)
            || told > Length::ZERO
                && (head.validators.has_strong() || self.is_of_its_kind(head) || self.is_later_than_finished(head));
        (told < known && !vouched).then_some(Failure::BadAnswer(BadAnswer::Shrunk { known, told }))
    }

    /// A server that never gave a validator gives none now either, and the same type: that is all it can say.
    fn is_of_its_kind(&self, head: &AnswerHead) -> bool {
        let bare = |v: &Validators| v.etag.is_none() && v.last_modified.is_none();
        bare(&head.validators)
            && self.known_drafts().all(|draft| {
                draft.content_type == head.content_type && draft.validators.iter().all(|(_, known)| bare(known))
            })
    }

    /// A finished file of which the server gave nothing but a date has a later one now, and the same type (rule 3.10).
    fn is_later_than_finished(&self, head: &AnswerHead) -> bool {
        let Some(finished) = &self.plan.revalidate else { return false };
        let Some(date) = head.validators.last_modified else { return false };
        let mut known = finished.validators.iter().filter_map(|(_, known)| known.last_modified).peekable();
        known.peek().is_some() && known.all(|known| known < date) && finished.content_type == head.content_type
    }

    /// The longest file known: told, or held. A rival that is being put together from this very answer is not known.
    fn longest_known(&self, told: Length) -> Option<Length> {
        let lengths = self.known_drafts().map(|draft| draft.total.unwrap_or(draft.held));
        lengths.filter(|length| *length != told).max()
    }

    /// An HTML page where another type or a larger size was known: a login or error page.
    fn is_a_page_instead(&self, head: &AnswerHead) -> bool {
        head.is_html() && self.known_drafts().any(|draft| rules_out_page(draft, head))
    }

    fn known_drafts(&self) -> impl Iterator<Item = &Draft> {
        let drafts = [Some(&self.dossier.part), self.dossier.rival.as_ref(), self.plan.revalidate.as_ref()];
        drafts.into_iter().flatten().filter(|d| !d.is_blank())
    }
}

/// Does what is known of the draft say that an HTML page with this head is not the file?
fn rules_out_page(draft: &Draft, head: &AnswerHead) -> bool {
    match &draft.content_type {
        Some(known) => !is_html_type(known),
        None => draft.total.is_some_and(|known| head.length().is_none_or(|n| n < known)),
    }
}

/// A 200 brings the whole; what its Content-Range says must be that.
fn part_of_200(head: &AnswerHead) -> Option<BadAnswer> {
    let text = head.content_range.as_deref()?;
    let whole = match ContentRange::parse(text) {
        Ok(ContentRange::Satisfied { range, total }) => range.start == Offset::ZERO && Some(range.length()) == total,
        _ => false,
    };
    (!whole).then(|| BadAnswer::PartOf200 { text: printable(text).into_owned() })
}

/// A draft as the head of its first answer describes it; the file behind it stays.
pub(super) fn fresh_draft(open: &Open, before: &Draft) -> Draft {
    Draft {
        total: open.total,
        validators: vec![(open.origin.clone(), open.head.validators.clone())],
        last_origin: Some(open.origin.clone()),
        content_type: open.head.content_type.clone(),
        coding: open.head.coding.clone(),
        inode: before.inode,
        vouched: open.head.vouched(),
        ..Draft::default()
    }
}

fn unsatisfiable(detail: impl Into<String>) -> BadAnswer {
    BadAnswer::Unsatisfiable { detail: detail.into() }
}
