//! Sessions: what their events change, and what the end of one means for its mirror and the transfer.

use crate::core::failure::{BadAnswer, Failure, LocalFault};
use crate::core::file_xfer::dossier::{Dossier, Draft};
use crate::core::file_xfer::{End, Outcome, is_html_type};
use crate::core::machine::Cx;
use crate::core::mirrors::{self, Fate, HeldBy, Hold};
use crate::core::pers_xfer::life::Stop;
use crate::core::pers_xfer::machine::{Net, PersFileXfer, State};
use crate::core::pers_xfer::record::{Finished, HISTORY, Past, error_code};
use crate::core::pers_xfer::rules::{PROGRESS, Rounds};
use crate::core::pers_xfer::waiting::Wait;
use crate::core::pers_xfer::{Action, Urgency};
use crate::core::range::Length;
use crate::core::time::{Delay, Mono, Now};
use crate::core::url::Origin;
use crate::core::verdict::{Class, Context, Scope, Verdict, judge};

/// A session that runs.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// With which mirror.
    pub(super) mirror: usize,
    /// Since when.
    since: Mono,
    /// Bytes held when it began.
    from: Length,
    /// Did the high-water mark rise enough?
    gain: Gain,
    /// It was told to stop, for this.
    pub(super) stop: Option<Stop>,
}

/// What a session has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gain {
    /// Nothing that counts.
    None,
    /// Progress.
    Progress,
}

impl Session {
    const fn new(mirror: usize, from: Length, now: Now) -> Self {
        Self { mirror, since: now.mono, from, gain: Gain::None, stop: None }
    }

    /// What it works on is another file, of which nothing is there yet.
    pub(super) const fn begins_from_nothing(&mut self) {
        self.from = Length::ZERO;
    }
}

impl PersFileXfer {
    pub(super) fn began(&mut self, cx: &mut Cx<'_, Action>) {
        match self.state {
            State::Wished(mirror) => {
                self.note_begin(mirror, cx.now);
                cx.out.push(Action::Save(Urgency::Later));
            }
            State::Running(_) => {}
            // Its wish was dropped while it was on its way.
            State::Waiting(_) | State::Resting(_) | State::Over => cx.out.push(Action::Cancel),
        }
    }

    fn note_begin(&mut self, mirror: usize, now: Now) {
        self.record.sessions = self.record.sessions.saturating_add(1);
        self.record.first_request_time.get_or_insert(now.wall);
        self.patience.start(now);
        self.state = State::Running(Session::new(mirror, self.record.held(), now));
    }

    /// What a resume needs is stored before any byte counts that rests on it.
    pub(super) fn learned(&mut self, dossier: Dossier, cx: &mut Cx<'_, Action>) {
        self.absorb(dossier);
        cx.out.push(Action::Save(Urgency::Now));
    }

    pub(super) fn progressed(&mut self, held: Length, now: Now) {
        let State::Running(session) = &self.state else { return };
        let brought = held > session.from;
        let mirror = &mut self.record.mirrors[session.mirror];
        (mirror.served, mirror.contributed) = (true, mirror.contributed || brought);
        self.confirm(held, now);
    }

    /// Raises the high-water mark, and where it rose enough: the window and the backoff begin anew.
    fn confirm(&mut self, held: Length, now: Now) {
        let record = &mut self.record;
        record.confirmed = record.confirmed.max(held);
        if record.confirmed < record.progress_mark + PROGRESS {
            return;
        }
        record.progress_mark = record.confirmed;
        record.backoff.progressed();
        self.patience.progress(now);
        if let State::Running(session) = &mut self.state {
            session.gain = Gain::Progress;
        }
    }

    fn absorb(&mut self, dossier: Dossier) {
        let record = &mut self.record;
        if dossier.changes > record.dossier.changes {
            // Of the version now begun nothing was confirmed yet. At most eight versions are begun in a life.
            (record.confirmed, record.progress_mark) = (Length::ZERO, Length::ZERO);
            record.mirrors.iter_mut().for_each(|mirror| mirror.contributed = false);
            if let State::Running(session) = &mut self.state {
                record.mirrors[session.mirror].contributed = true;
                session.from = Length::ZERO;
            }
        }
        record.nbytes = dossier.part.total.or(record.nbytes);
        let before = std::mem::replace(&mut record.dossier, dossier);
        if record.dossier.changes > before.changes || record.dossier.has_changed_since(&before) {
            // They were odd beside the version that was.
            let odd = record.mirrors.iter_mut().filter(|mirror| mirror.is_odd() && mirror.named_with.is_none());
            odd.for_each(|mirror| *mirror = mirror.afresh());
        }
        self.refuse_outdated(before.changes);
    }

    /// The session ended, or so late that nobody waits for it: then only what it holds is noted.
    pub(super) fn ended(&mut self, outcome: Outcome, finished: Option<Finished>, cx: &mut Cx<'_, Action>) {
        let held_before = self.record.held();
        let changes_before = self.record.dossier.changes;
        self.absorb(outcome.dossier);
        if let State::Wished(mirror) = self.state {
            self.note_begin(mirror, cx.now);
        }
        if !matches!(self.state, State::Running(_)) {
            return cx.out.push(Action::Save(Urgency::Later));
        }
        let held = self.record.held();
        self.confirm(held, cx.now);
        let State::Running(session) = std::mem::replace(&mut self.state, State::Waiting(Wait::ready(cx.now))) else {
            return;
        };
        if held > held_before || self.record.dossier.changes > changes_before {
            let mirror = &mut self.record.mirrors[session.mirror];
            (mirror.served, mirror.contributed) = (true, true);
        }
        self.record.time_so_far = self.record.time_so_far.saturating_add(cx.now.mono.since(session.since));
        match (outcome.end, session.stop.clone()) {
            // A file that is whole is whole, even if it had been told to stop.
            (End::Complete { evidence }, _) => {
                self.delivered_to(session.mirror);
                self.complete(evidence, finished, cx);
            }
            (End::Unchanged, _) => self.unchanged(finished, cx),
            (_, Some(Stop::LifeOver)) => self.outlived(cx),
            (_, Some(Stop::Local(fault))) => self.trouble_at(session.mirror, fault, cx),
            (End::Failed(Failure::NoRoom(fault)), _) => self.no_room(session.mirror, fault, cx),
            (End::Failed(Failure::Local(fault)), _) => self.trouble_at(session.mirror, fault, cx),
            (End::Failed(failure), _) => self.failed(&session, &failure, outcome.origin.as_ref(), cx),
            (End::Cancelled, _) => self.cancelled(&session, cx),
        }
    }

    fn cancelled(&mut self, session: &Session, cx: &mut Cx<'_, Action>) {
        self.prefer = Some(session.mirror);
        self.wait_to_resume(cx.now);
        cx.out.push(Action::Save(Urgency::Later));
    }

    fn failed(&mut self, session: &Session, failure: &Failure, origin: Option<&Origin>, cx: &mut Cx<'_, Action>) {
        let mirror = session.mirror;
        let page = self.page_instead(mirror, failure);
        let failure = page.as_ref().unwrap_or(failure);
        let context = Context { served: self.record.mirrors[mirror].served, retry_on: &self.rules.retry_on };
        let verdict = judge(failure, context);
        self.remember(mirror, verdict.class, failure, cx.now);
        // With one session a mirror, progress does not buy a second one.
        let gain = if self.rules.rounds == Rounds::Once { Gain::None } else { session.gain };
        if gain == Gain::Progress {
            self.begin_pass();
            self.record.mirrors[mirror].missing_passes = 0;
        }
        if page.is_some() {
            self.begin_afresh(cx);
        }
        let fate = match verdict.scope {
            Scope::Transient { floor } => {
                self.hold_back(mirror, floor, origin, cx.now);
                self.transient(mirror, gain, cx.now)
            }
            Scope::RefuseMirror => self.record.mirrors[mirror].refuse(verdict.class, &failure.to_string()),
            Scope::Doubtful => self.record.mirrors[mirror].doubted(verdict.class, &failure.to_string()),
            Scope::WrongDigest => self.wrong_digest(mirror, failure, cx),
            Scope::WrongBytes => self.wrong_bytes(mirror, failure),
            Scope::Local | Scope::FailTransfer => Fate::Kept,
        };
        self.report(mirror, failure.clone(), verdict, fate, cx);
        if verdict.scope == Scope::FailTransfer {
            self.fail(error_code::PERMANENT, failure.to_string(), cx);
        }
    }

    /// A small page of the wrong digest, where no page was asked for, is what a portal shows until somebody logs in: no fault
    /// of the mirror's, and no corrupt file.
    fn page_instead(&self, mirror: usize, failure: &Failure) -> Option<Failure> {
        let draft = &self.record.dossier.part;
        let is_page = draft.content_type.as_deref().is_some_and(is_html_type) && draft.held < PROGRESS;
        let wanted = self.record.mirrors[mirror].url.names_a_page();
        let wrong = matches!(failure, Failure::Digest { .. }) && self.sole_source(mirror);
        (wrong && is_page && !wanted).then_some(Failure::BadAnswer(BadAnswer::HtmlPage))
    }

    pub(super) fn remember(&mut self, mirror: usize, class: Class, failure: &Failure, now: Now) {
        let url = &self.record.mirrors[mirror].url;
        let past = Past::new(now.wall, url, class, failure, self.record.held());
        let history = &mut self.record.history;
        history.push(past);
        history.drain(..history.len().saturating_sub(HISTORY));
    }

    pub(super) fn report(
        &self,
        mirror: usize,
        failure: Failure,
        verdict: Verdict,
        fate: Fate,
        cx: &mut Cx<'_, Action>,
    ) {
        let class = verdict.class;
        cx.out.push(Action::Failed { mirror, failure, class, refused: fate == Fate::Refused });
        cx.out.push(Action::Save(Urgency::Later));
    }

    /// A failure that may pass. After progress it is none: the same mirror goes first in the pass that begins anew. While
    /// the network is known to be down it is nobody's fault.
    fn transient(&mut self, mirror: usize, after: Gain, now: Now) -> Fate {
        match after {
            Gain::Progress => {
                self.prefer = Some(mirror);
                self.wait_to_resume(now);
                Fate::Kept
            }
            Gain::None if self.net == Net::Down => Fate::Kept,
            Gain::None => self.record.mirrors[mirror].failed(),
        }
    }

    pub(super) fn hold_back(&mut self, mirror: usize, floor: Option<Delay>, origin: Option<&Origin>, now: Now) {
        let Some(floor) = floor else { return };
        for concerned in mirrors::of_origin(&self.record.mirrors, mirror, origin) {
            self.holds.add(concerned, Hold { until: now.mono + floor, by: HeldBy::Server });
        }
    }

    /// The bytes are known to be wrong and go. The mirror is asked once more, past all caches, before it is refused.
    fn wrong_digest(&mut self, mirror: usize, failure: &Failure, cx: &mut Cx<'_, Action>) -> Fate {
        let culprit = self.sole_source(mirror);
        self.begin_afresh(cx);
        self.prefer = Some(mirror);
        if !culprit {
            self.record.apart = true;
            self.record.mirrors[mirror].tried = self.rules.rounds == Rounds::Once;
            return Fate::Kept;
        }
        let known = &mut self.record.mirrors[mirror];
        known.tried = self.rules.rounds == Rounds::Once;
        known.served_wrong(&failure.to_string())
    }

    /// Bytes of one answer were wrong; what was held before stays. The mirror is asked once more, past all caches.
    fn wrong_bytes(&mut self, mirror: usize, failure: &Failure) -> Fate {
        let known = &mut self.record.mirrors[mirror];
        known.tried = self.rules.rounds == Rounds::Once;
        known.served_wrong(&failure.to_string())
    }

    /// Did every byte held come from this mirror?
    fn sole_source(&self, mirror: usize) -> bool {
        self.record.mirrors.iter().enumerate().all(|(i, known)| i == mirror || !known.contributed)
    }

    /// What is held goes.
    pub(super) fn begin_afresh(&mut self, cx: &mut Cx<'_, Action>) {
        let record = &mut self.record;
        (record.dossier.part, record.dossier.rival) = (Draft::default(), None);
        (record.confirmed, record.progress_mark) = (Length::ZERO, Length::ZERO);
        record.mirrors.iter_mut().for_each(|mirror| mirror.contributed = false);
        cx.out.push(Action::DropBytes);
        cx.out.push(Action::Save(Urgency::Now));
    }

    /// Where no two mirrors' bytes may be mixed, what others brought goes before this mirror is asked.
    pub(super) fn keep_apart(&mut self, mirror: usize, cx: &mut Cx<'_, Action>) {
        if self.record.apart && !self.sole_source(mirror) {
            self.begin_afresh(cx);
        }
    }

    /// A mirror tells of more than there is room for: where another one may be asked in this pass, it may tell of less.
    fn no_room(&mut self, mirror: usize, fault: LocalFault, cx: &mut Cx<'_, Action>) {
        self.record.mirrors[mirror].tried = true;
        let next = mirrors::next(&self.record.mirrors, &self.holds, None, &self.order, cx.now.mono);
        if !matches!(next, mirrors::Next::Ask(_)) {
            self.begin_pass();
            return self.trouble_at(mirror, fault, cx);
        }
        let failure = Failure::NoRoom(fault);
        let verdict = judge(&failure, Context { served: false, retry_on: &[] });
        self.remember(mirror, verdict.class, &failure, cx.now);
        self.report(mirror, failure, verdict, Fate::Kept, cx);
    }

    /// Trouble on this machine: before a session, or beside one, which is then stopped.
    pub(super) fn local_fault(&mut self, fault: LocalFault, cx: &mut Cx<'_, Action>) {
        match &mut self.state {
            State::Wished(mirror) => {
                let mirror = *mirror;
                self.trouble_at(mirror, fault, cx);
            }
            State::Running(session) if session.stop.is_none() => {
                session.stop = Some(Stop::Local(fault));
                cx.out.push(Action::Cancel);
            }
            _ => {}
        }
    }

    /// The same trouble again is not told again.
    fn trouble_at(&mut self, mirror: usize, fault: LocalFault, cx: &mut Cx<'_, Action>) {
        let failure = Failure::Local(fault.clone());
        let text = failure.to_string();
        if self.record.history.last().is_none_or(|past| past.text != text) {
            let verdict = judge(&failure, Context { served: false, retry_on: &[] });
            self.remember(mirror, verdict.class, &failure, cx.now);
            self.report(mirror, failure, verdict, Fate::Kept, cx);
        }
        self.wait_for_this_machine(fault, cx.now);
    }
}

/// Bytes held in the draft that is being put together: of the newer version, where one has been begun.
pub(super) fn at_work(dossier: &Dossier) -> Length {
    dossier.rival.as_ref().unwrap_or(&dossier.part).in_all()
}
