//! What a body means while it comes in: joined, differing, ended, broken off.

use crate::core::failure::{Cut, Failure};
use crate::core::file_xfer::dossier::{Draft, Joints, Ranges};
use crate::core::file_xfer::judge::fresh_draft;
use crate::core::file_xfer::machine::{Apart, FileXfer, Open, Purpose};
use crate::core::file_xfer::{
    FileOp, Framing, LastWord, MAX_CHANGES, Next, OVERLAP, Place, Receive, STEPS_BACK, Step, Wanted, Weight,
};
use crate::core::range::{Length, Offset};
use crate::core::validator::Sameness;

impl FileXfer {
    /// Every byte to compare was equal: the answer vouches for the draft, and what follows may be appended.
    pub(super) fn joined(&mut self) -> Step {
        let Some(open) = self.open.clone() else { return self.nothing_open() };
        if self.asking.purpose() == Purpose::Probe && !open.whole {
            self.probed = true;
            return self.ask_for_the_rest();
        }
        if open.whole && self.is_other_than_islands(&open) {
            // Equal as far as the comparison went; what is held behind the gap is of the version that was.
            self.note_lying_tags(&open);
            return self.new_version(&open, open.receive.compare_until);
        }
        if open.whole {
            self.joined_whole(&open);
        } else {
            self.joined_range(&open);
        }
        self.go_on_from(open.receive.compare_until)
    }

    /// One answer brought every byte held: whatever the joints were, this version is vouched for as a whole.
    fn joined_whole(&mut self, open: &Open) {
        self.note_lying_tags(open);
        // How long another version is, the one before it does not tell.
        let known = if open.is_of_another_version() { None } else { self.draft().total };
        let (held, total) = (self.draft().held, open.total.or(known));
        let vouched = self.vouched_by_whole(open);
        *self.draft_mut() = Draft { held, total, vouched, ..fresh_draft(open, self.draft()) };
    }

    /// Is this the whole of another version than that of which segments are held behind a gap?
    fn is_other_than_islands(&self, open: &Open) -> bool {
        open.is_of_another_version() && self.place == Place::Part && self.dossier.part.beyond > Length::ZERO
    }

    /// Tags that differ although all the bytes held are equal, and the date and the size too, tell nothing.
    fn note_lying_tags(&mut self, open: &Open) {
        let draft = self.draft();
        let (told, known) = (&open.head.validators, draft.validators_of(&open.origin));
        let etags_differ =
            known.is_some_and(|v| v.etag.is_some() && v.etag != told.etag && (v.last_modified == told.last_modified));
        let same_size = draft.total.is_some() && draft.total == open.total;
        if etags_differ && same_size && draft.held >= OVERLAP {
            self.note(&open.origin, |n| n.etags_lie = true);
        }
    }

    fn joined_range(&mut self, open: &Open) {
        self.note(&open.origin, |n| n.ranges = Ranges::Work);
        let compared = open.receive.compare_until - open.first;
        let joint = match open.sameness {
            Sameness::Same => Joints::Validator,
            _ if compared > Length::ZERO && self.comparison_tells() => Joints::Overlap,
            _ => Joints::Length,
        };
        let vouched = self.vouched_by_range(open);
        let draft = self.draft_mut();
        draft.vouched = vouched;
        draft.joints = draft.joints.min(joint);
        draft.total = draft.total.or(open.total);
        draft.last_origin = Some(open.origin.clone());
        draft.vouch(&open.origin, &open.head.validators);
    }

    /// Was something compared that is not one byte repeated?
    fn comparison_tells(&self) -> bool {
        self.plan.proof.weight == Weight::Informative || self.probed && self.plan.probe_weight == Weight::Informative
    }

    /// The body differs from what is held (rules 3 and 4).
    pub(super) fn differs(&mut self, at: Offset) -> Step {
        let Some(open) = self.open.clone() else { return self.nothing_open() };
        if open.apart == Apart::No && self.is_odd(&open.origin) {
            return self.fail(Failure::OddMirror { at });
        }
        if open.whole {
            return self.new_version(&open, at);
        }
        if open.sameness == Sameness::Same && self.asking.purpose() == Purpose::Body {
            return self.doubt_the_tail(&open, at);
        }
        self.ask_plainly()
    }

    /// The whole of another version is coming: the bytes before `at` are equal, the rest goes into the rival.
    fn new_version(&mut self, open: &Open, at: Offset) -> Step {
        self.dossier.changes += 1;
        if self.dossier.changes > MAX_CHANGES {
            // Another mirror begins with a clean slate.
            let times = std::mem::take(&mut self.dossier.changes);
            return self.fail(Failure::KeepsChanging { times });
        }
        let op = match self.place {
            Place::Part => FileOp::Fork(at),
            Place::Rival => FileOp::Cut(Place::Rival, at),
        };
        self.ops.push(op);
        let before = Draft { inode: self.dossier.rival.as_ref().and_then(|r| r.inode), ..Draft::default() };
        self.dossier.rival = Some(Draft { held: at.as_length(), ..fresh_draft(open, &before) });
        self.place = Place::Rival;
        self.go_on_from(at)
    }

    /// The validator is unchanged, so our own tail is in doubt: cut behind the last equal block, or step further back.
    fn doubt_the_tail(&mut self, open: &Open, at: Offset) -> Step {
        if at - open.first >= OVERLAP {
            self.ops.push(FileOp::Cut(self.place, at));
            self.draft_mut().held = at.as_length();
            self.joined_range(open);
            return self.go_on_from(at);
        }
        while let Some(back) = STEPS_BACK.get(self.steps_back) {
            self.steps_back += 1;
            let from = self.draft().held.as_end().back(*back);
            if from < open.first && from > Offset::ZERO {
                return self.ask(Purpose::Body, Some(Wanted { from, to: None }));
            }
        }
        self.ask_plainly()
    }

    /// Reads the open answer on, everything from here on to be appended.
    fn go_on_from(&mut self, at: Offset) -> Step {
        let place = self.place;
        let Some(open) = &mut self.open else { return self.nothing_open() };
        open.receive = Receive { place, at, compare_until: at, end: open.receive.end };
        let receive = open.receive;
        self.step(Next::Receive(receive))
    }

    /// The body ended where its framing says.
    pub(super) fn ended(&mut self, at: Offset) -> Step {
        let Some(open) = self.open.clone() else { return self.nothing_open() };
        if self.asking.purpose() == Purpose::Probe && !open.whole {
            return self.ask_for_the_rest();
        }
        self.reached(&open, at);
        if open.whole { self.whole_ended(&open, at) } else { self.range_ended(at) }
    }

    fn whole_ended(&mut self, open: &Open, at: Offset) -> Step {
        let known = self.draft().total.filter(|t| t.as_end() > at);
        let told = open.head.framing != Framing::Close;
        match known {
            Some(want) if !told || open.sameness == Sameness::Same => return self.short(at, want),
            None if !told && at < open.receive.compare_until => return self.short(at, self.draft().held),
            _ => {}
        }
        if open.head.length().is_none()
            && let Some(failure) = self.doubt_of_length(at.as_length(), &open.head, open.sameness)
        {
            if self.place == Place::Rival && self.plan.digest == LastWord::Digest {
                self.doubt = Some(failure);
                return self.finish_at(at);
            }
            if self.place == Place::Rival {
                self.dossier.rival = None;
                self.place = Place::Part;
                self.ops.push(FileOp::DropRival);
            }
            return self.fail(failure);
        }
        if at < open.receive.compare_until {
            // Equal as far as it goes, and in doubt: cutting what is held would be the dearer mistake.
            if let Some(failure) = self.doubt.take() {
                return self.fail(failure);
            }
            if self.is_odd(&open.origin) {
                return self.fail(Failure::OddMirror { at });
            }
            // A shorter version, equal as far as it goes: what is held beyond its end is not of it.
            self.ops.push(FileOp::Cut(self.place, at));
            self.draft_mut().held = at.as_length();
            self.joined_whole(open);
        }
        if told || self.draft().total.is_some() { self.finish_at(at) } else { self.finish() }
    }

    fn finish_at(&mut self, at: Offset) -> Step {
        self.draft_mut().total = Some(at.as_length());
        self.finish()
    }

    fn range_ended(&mut self, at: Offset) -> Step {
        match self.draft().total {
            Some(total) if at >= total.as_end() => self.finish(),
            // The server ended sooner than asked, or does not tell the total: ask on at once. A server that sends little at
            // a time is not asked for little else than what is held.
            Some(_) => {
                let sent = self.open.as_ref().map_or(OVERLAP, |open| at - open.first);
                self.ask_from(self.draft().held.as_end().back(OVERLAP.min(Length(sent.0 / 8))))
            }
            None => self.ask(Purpose::Body, Some(Wanted { from: self.draft().held.as_end(), to: None })),
        }
    }

    /// No answer, or the body broke off.
    pub(super) fn broke(&mut self, at: Offset, failure: Failure) -> Step {
        let Some(open) = self.open.clone() else { return self.fail(failure) };
        self.reached(&open, at);
        if matches!(failure, Failure::OtherSize { .. }) {
            return self.undo(failure);
        }
        match (failure, self.draft().total) {
            (Failure::Cut(Cut::Broken { .. }), Some(want)) if at < want.as_end() => self.short(at, want),
            (failure, _) => self.end_badly(failure),
        }
    }

    fn short(&mut self, at: Offset, want: Length) -> Step {
        self.end_badly(Failure::Cut(Cut::Short { got: at.as_length(), want }))
    }

    /// Ends the session; a rival that has grown beyond the part takes its place.
    fn end_badly(&mut self, failure: Failure) -> Step {
        let longer = self.dossier.rival.as_ref().is_some_and(|r| r.held > self.dossier.part.in_all());
        if longer {
            self.promote();
        }
        self.fail(failure)
    }

    /// The draft at hand is whole.
    pub(super) fn finish(&mut self) -> Step {
        let is_html = self.open.as_ref().is_some_and(|open| open.head.is_html());
        if let Some(failure) = self.other_size(self.draft().held, is_html) {
            return self.undo(failure);
        }
        let evidence = self.draft().evidence();
        // A digest judges a rival before it may cost what is held; without one, a whole version is the file.
        if self.place == Place::Rival && self.plan.digest == LastWord::Joints {
            self.promote();
        }
        if self.place == Place::Part && self.dossier.rival.take().is_some() {
            self.ops.push(FileOp::DropRival);
        }
        self.step(Next::Finish { place: self.place, evidence })
    }

    /// What came in is not the file, for it has another size: what this session added to what was held goes.
    fn undo(&mut self, failure: Failure) -> Step {
        if self.place == Place::Rival {
            self.dossier.rival = None;
            self.place = Place::Part;
            self.ops.push(FileOp::DropRival);
        } else {
            let before = &self.plan.dossier.part;
            let (held, inode) = (self.draft().held.min(before.held), self.draft().inode);
            self.ops.push(FileOp::Cut(Place::Part, held.as_end()));
            self.dossier.part = Draft { held, inode, ..before.clone() };
        }
        self.fail(failure)
    }

    pub(super) fn promote(&mut self) {
        if let Some(rival) = self.dossier.rival.take() {
            self.dossier.part = rival;
            self.ops.push(FileOp::Promote);
            self.place = Place::Part;
        }
    }

    /// Takes note of how far the body came: beyond the comparison, its bytes are held.
    fn reached(&mut self, open: &Open, at: Offset) {
        if at > open.receive.compare_until {
            let draft = self.draft_mut();
            draft.held = draft.held.max(at.as_length());
            self.progressed();
        }
    }

    /// A body event without an answer: the driver's mistake; the session ends rather than guess.
    fn nothing_open(&mut self) -> Step {
        self.fail(Failure::Cut(Cut::Broken { detail: "a body without an answer".to_owned() }))
    }
}
