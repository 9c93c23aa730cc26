//! Life: how a transfer ends, how another life begins, and what people want of it.

use crate::core::failure::LocalFault;
use crate::core::file_xfer::MAX_CHANGES;
use crate::core::giveup::{GiveUpFrom, Patience};
use crate::core::machine::Cx;
use crate::core::mirrors::{self, Freshly};
use crate::core::pers_xfer::machine::{PersFileXfer, State};
use crate::core::pers_xfer::record::{Evidence, Finished, MirrorRecord, Record, Standing, Status, error_code};
use crate::core::pers_xfer::rules::Rules;
use crate::core::pers_xfer::waiting::{Wait, longest_wait};
use crate::core::pers_xfer::{Action, Urgency};
use crate::core::time::Now;
use crate::core::units::human_delay;
use crate::core::url::MirrorUrl;
use crate::core::verdict::Class;

/// So many refusals are told in full.
const REFUSALS_TOLD: usize = 4;

/// Why a running session was told to stop.
#[derive(Clone, Debug)]
pub(super) enum Stop {
    /// The transfer was suspended.
    Suspension,
    /// Trouble on this machine beside it.
    Local(LocalFault),
    /// The transfer has failed for good, and is over once what is held is known; or another life of it has begun since.
    LifeOver,
}

impl PersFileXfer {
    pub(super) fn complete(&mut self, evidence: Evidence, finished: Option<Finished>, cx: &mut Cx<'_, Action>) {
        let size = self.record.held();
        let facts = finished.unwrap_or(Finished::unseen(cx.now.wall, evidence, size));
        self.record.nbytes = Some(facts.size);
        self.record.confirmed = facts.size;
        self.record.finished = Some(facts);
        self.done(cx);
    }

    /// What was finished in an earlier life is still what the server has.
    pub(super) fn unchanged(&mut self, finished: Option<Finished>, cx: &mut Cx<'_, Action>) {
        self.record.finished = finished.or_else(|| self.record.finished.take());
        self.done(cx);
    }

    fn done(&mut self, cx: &mut Cx<'_, Action>) {
        self.end_life(Status::Done, cx);
    }

    pub(super) fn fail(&mut self, code: i32, message: String, cx: &mut Cx<'_, Action>) {
        self.end_life(Status::Failed { code, message }, cx);
    }

    /// A session that ran when its life ended has told what it held: that is all that counts of it.
    pub(super) fn outlived(&mut self, cx: &mut Cx<'_, Action>) {
        match self.record.status.clone() {
            status @ Status::Failed { .. } => self.end_life(status, cx),
            status => {
                self.new_life(cx.now);
                self.record.status = status;
                cx.out.push(Action::Save(Urgency::Now));
            }
        }
    }

    fn end_life(&mut self, status: Status, cx: &mut Cx<'_, Action>) {
        self.record.status = status;
        self.record.next_request_time = None;
        self.state = State::Over;
        cx.out.push(Action::Save(Urgency::Now));
        cx.out.push(Action::Over);
    }

    /// Every mirror is refused, and some only because they differ from what is held: whoever had that version is gone, so
    /// theirs is the file now (design 3.3). What is held goes, and they are asked anew; true where that may be. Whoever of
    /// them goes first is compared with the others as ever. What was known of that version stays: by it a page that stands
    /// in for the file is told from the file.
    pub(super) fn begins_with_the_odd(&mut self, cx: &mut Cx<'_, Action>) -> bool {
        let changes = self.record.dossier.changes;
        let is_odd = |mirror: &MirrorRecord| mirror.is_odd() && mirror.named_with.is_none();
        if changes >= MAX_CHANGES || !self.record.mirrors.iter().any(is_odd) {
            return false;
        }
        for mirror in self.record.mirrors.iter_mut().filter(|mirror| is_odd(mirror)) {
            *mirror = mirror.afresh();
        }
        let known = self.record.dossier.part.facts();
        self.begin_afresh(cx);
        self.record.dossier.part = known;
        self.record.dossier.changes = changes + 1;
        self.begin_pass();
        true
    }

    pub(super) fn fail_as_refused(&mut self, cx: &mut Cx<'_, Action>) {
        let refused: Vec<_> = self.record.mirrors.iter().filter_map(refusal).collect();
        let corrupt = refused.iter().any(|(class, _)| *class == Class::Corrupt);
        let code = if corrupt { error_code::DIGEST } else { error_code::PERMANENT };
        let told: Vec<_> = refused.iter().take(REFUSALS_TOLD).map(|(_, text)| text.as_str()).collect();
        let mut message = if told.is_empty() { "no mirror is known".to_owned() } else { told.join("; ") };
        if refused.len() > REFUSALS_TOLD {
            message += &format!("; and {} more mirrors refused", refused.len() - REFUSALS_TOLD);
        }
        self.fail(code, message, cx);
    }

    pub(super) fn give_up(&mut self, cx: &mut Cx<'_, Action>) {
        let since = match self.rules.give_up_from {
            GiveUpFrom::LastProgress => "no progress",
            GiveUpFrom::FirstRequest => "not complete",
        };
        let last =
            self.record.history.last().map_or(String::new(), |past| format!("; last, {}: {}", past.url, past.text));
        let open = match &self.state {
            State::Running(session) => {
                format!("; a session with {} was stopped", self.record.mirrors[session.mirror].url)
            }
            _ => String::new(),
        };
        let window = human_delay(self.rules.give_up);
        let message = format!("gave up: {since} within the give-up window of {window}{open}{last}");
        self.stop_for_good(error_code::GAVE_UP, message, cx);
    }

    /// Fails for good. The record says so at once; a running session still has to tell what is held.
    fn stop_for_good(&mut self, code: i32, message: String, cx: &mut Cx<'_, Action>) {
        match &mut self.state {
            State::Running(session) => {
                if !self.record.status.is_open() {
                    return;
                }
                if session.stop.replace(Stop::LifeOver).is_none() {
                    cx.out.push(Action::Cancel);
                }
                self.record.status = Status::Failed { code, message };
                self.record.next_request_time = None;
                cx.out.push(Action::Save(Urgency::Now));
            }
            State::Wished(_) => {
                cx.out.push(Action::Cancel);
                self.fail(code, message, cx);
            }
            State::Waiting(_) | State::Resting(_) => self.fail(code, message, cx),
            State::Over => {}
        }
    }

    pub(super) fn abort(&mut self, cx: &mut Cx<'_, Action>) {
        self.stop_for_good(error_code::ABORTED, "aborted by the user".to_owned(), cx);
    }

    /// A person wants it now: the backoff is cut short, a server's Retry-After is not. What has ended gets a new life.
    pub(super) fn retry(&mut self, cx: &mut Cx<'_, Action>) {
        match self.state {
            State::Over => self.new_life(cx.now),
            State::Waiting(_) | State::Resting(_) => {
                self.holds.clear_host_backoffs();
                self.wait_no_longer(cx.now);
            }
            // Its session was told to end, and has not yet: the new life goes on from what that will have held.
            State::Running(_) if !self.record.status.is_open() => self.record.begin_new_life(),
            State::Wished(_) | State::Running(_) => return,
        }
        cx.out.push(Action::Save(Urgency::Now));
    }

    fn new_life(&mut self, now: Now) {
        self.record.begin_new_life();
        self.patience = Patience::new(self.rules.give_up, self.rules.give_up_from);
        self.holds = mirrors::Holds::default();
        self.prefer = None;
        self.wait_no_longer(now);
    }

    fn wait_no_longer(&mut self, now: Now) {
        self.passes = 0;
        self.record.next_request_time = None;
        self.state = State::Waiting(Wait::ready(now));
    }

    pub(super) fn list_mirrors(&mut self, urls: &[MirrorUrl], cx: &mut Cx<'_, Action>) {
        let merged = mirrors::merge(&mut self.record.mirrors, &mut self.holds, urls);
        let moved = |mirror: usize| merged.moved_to.get(mirror).copied().unwrap_or(mirror);
        self.prefer = self.prefer.map(moved);
        self.order = std::mem::take(&mut self.order).into_iter().map(moved).collect();
        match &mut self.state {
            State::Running(session) => session.mirror = moved(session.mirror),
            // The wish names a position that may be another mirror's now.
            State::Wished(_) => self.drop_wish(cx),
            State::Waiting(_) | State::Resting(_) if merged.fresh == Freshly::Listed => {
                self.record.backoff.woken();
                self.wait_no_longer(cx.now);
            }
            State::Waiting(_) | State::Resting(_) | State::Over => {}
        }
        cx.out.push(Action::Save(Urgency::Now));
    }

    pub(super) fn suspend(&mut self, cx: &mut Cx<'_, Action>) {
        if self.record.status != Status::Pending {
            return;
        }
        self.record.status = Status::Suspended;
        if let State::Running(session) = &mut self.state
            && session.stop.is_none()
        {
            session.stop = Some(Stop::Suspension);
            cx.out.push(Action::Cancel);
        }
        cx.out.push(Action::Save(Urgency::Now));
    }

    pub(super) fn resume(&mut self, cx: &mut Cx<'_, Action>) {
        if self.record.status == Status::Suspended {
            self.record.status = Status::Pending;
            cx.out.push(Action::Save(Urgency::Now));
        }
        if let State::Resting(wait) = &self.state {
            self.state = State::Waiting(wait.clone());
        }
    }

    /// Nothing can be tried: a wish for a session is dropped.
    pub(super) fn withdraw(&mut self, cx: &mut Cx<'_, Action>) {
        if let State::Wished(_) = self.state {
            self.drop_wish(cx);
        }
    }

    fn drop_wish(&mut self, cx: &mut Cx<'_, Action>) {
        cx.out.push(Action::Cancel);
        self.state = State::Waiting(Wait::ready(cx.now));
    }

    pub(super) fn patience_of(record: &Record, rules: &Rules, now: Now) -> Patience {
        // What was suspended waited for nothing.
        let due = record.next_request_time.filter(|_| record.status == Status::Pending);
        let latest = record.patience_at.map(|at| at + longest_wait(record, rules));
        let due = due.map(|due| latest.map_or(due, |latest| due.min(latest)));
        Patience::restore(
            rules.give_up,
            rules.give_up_from,
            record.patience_used,
            record.patience_at,
            due,
            record.first_request_time,
            now,
        )
    }

    pub(super) fn store_patience(&mut self, now: Now) {
        if self.record.first_request_time.is_some() && !matches!(self.state, State::Over) {
            self.record.patience_used = self.patience.used(now);
            self.record.patience_at = Some(now.wall);
        }
    }
}

fn refusal(mirror: &MirrorRecord) -> Option<(Class, String)> {
    match &mirror.standing {
        Standing::Usable => None,
        Standing::Refused { class, why } => Some((*class, format!("{} ({}): {why}", mirror.url, class.word()))),
    }
}
