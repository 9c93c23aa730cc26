//! The machine itself: which event goes where, what is to be done next, and when to wake.

use crate::core::file_xfer::Freshness;
use crate::core::giveup::Patience;
use crate::core::machine::{Cx, Machine};
use crate::core::mirrors::{self, Holds, Next};
use crate::core::pers_xfer::record::{Record, Status};
use crate::core::pers_xfer::rules::{Rounds, Rules};
use crate::core::pers_xfer::session::Session;
use crate::core::pers_xfer::waiting::{Reason, Wait};
use crate::core::pers_xfer::{Action, Event, Urgency};
use crate::core::time::{Mono, Now};

/// One transfer over its whole life.
///
/// After every event, [`PersFileXfer::record`] is what must be stored if anything is to be; a machine built from it wakes
/// when this one would have, unless a clock was set meanwhile.
#[derive(Clone, Debug)]
pub struct PersFileXfer {
    pub(super) record: Record,
    pub(super) rules: Rules,
    pub(super) state: State,
    pub(super) patience: Patience,
    pub(super) holds: Holds,
    /// The mirror that goes first in the pass under way: the one that was cut after progress, or is asked past caches.
    pub(super) prefer: Option<usize>,
    /// The mirrors, best first, as far as somebody has said so.
    pub(super) order: Vec<usize>,
    pub(super) net: Net,
    /// Failed passes in this run.
    pub(super) passes: u32,
    wake: Option<Mono>,
}

/// What it does.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// It waits for its time; the next pass, or the rest of this one, begins then.
    Waiting(Wait),
    /// It has wished for a session with this mirror.
    Wished(usize),
    /// A session runs.
    Running(Session),
    /// Nothing more in this run; it would wait so.
    Resting(Wait),
    /// Done, or failed for good.
    Over,
}

/// Can anything be tried?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Net {
    Up,
    Down,
}

impl PersFileXfer {
    /// The transfer of this record, new or from an earlier run. It wants to be woken as soon as its time has come; a
    /// record that is done or failed stays so until [`Event::Retry`].
    ///
    /// A stored wait is honoured as far as the policy could have drawn it, whatever the wall clock says now.
    pub fn from_record(mut record: Record, rules: Rules, now: Now) -> Self {
        if rules.rounds == Rounds::UntilDone {
            mirrors::ask_the_tellers_again(&mut record.mirrors, &record.dossier.part);
        }
        let mut machine = Self {
            patience: Self::patience_of(&record, &rules, now),
            state: State::Over,
            holds: Self::holds_of(&record, now),
            prefer: None,
            order: Vec::new(),
            net: Net::Up,
            passes: 0,
            wake: None,
            record,
            rules,
        };
        if matches!(machine.record.status, Status::Pending | Status::Suspended) {
            machine.state = State::Waiting(machine.stored_wait(now));
        }
        machine.return_to_most();
        machine.settle(now);
        machine
    }

    /// The mirrors by their positions, best first: who goes first in a pass where nothing else decides.
    pub fn rank(&mut self, order: Vec<usize>) {
        self.order = order;
    }

    /// What must be stored.
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// What must be stored, of a machine that is needed no more.
    pub fn into_record(self) -> Box<Record> {
        Box::new(self.record)
    }

    /// What has been decided is carried on: the window, the wish for a session, the rest.
    pub(super) fn go_on(&mut self, cx: &mut Cx<'_, Action>) {
        self.wind_window(cx.now);
        if self.deadline(cx.now).is_some_and(|end| end <= cx.now.mono) {
            return self.give_up(cx);
        }
        if !self.may_try() {
            return self.withdraw(cx);
        }
        let State::Waiting(wait) = &self.state else { return };
        if self.rests_in(wait, cx.now) {
            self.rest(cx);
        } else if wait.due <= cx.now.mono {
            self.ask_next(cx);
        }
    }

    fn ask_next(&mut self, cx: &mut Cx<'_, Action>) {
        let turn = mirrors::in_turn(&self.record.mirrors, &self.record.dossier.part, self.prefer, &self.order);
        match mirrors::next(&self.record.mirrors, &self.holds, None, &turn, cx.now.mono) {
            Next::Ask(mirror) => {
                self.keep_apart(mirror, cx);
                self.state = State::Wished(mirror);
                cx.out.push(Action::Start { mirror, freshness: self.freshness(mirror) });
            }
            Next::Held(mirror, hold) => self.wait_for_hold(mirror, hold, cx),
            Next::PassOver => self.pass_failed(cx),
            Next::AllRefused if self.begins_with_the_odd(cx) => self.ask_next(cx),
            Next::AllRefused => self.fail_as_refused(cx),
        }
    }

    /// A mirror that has once served the wrong bytes is asked past all caches from then on; and each one, once a mix of
    /// several was wrong.
    fn freshness(&self, mirror: usize) -> Freshness {
        match (self.record.apart, self.record.mirrors[mirror].corrupt_fetches) {
            (false, 0) => Freshness::CacheAllowed,
            _ => Freshness::NoCache,
        }
    }

    pub(super) fn may_try(&self) -> bool {
        self.net == Net::Up && self.record.status == Status::Pending
    }

    /// Does the window run? Not while nothing can be tried: suspended, offline, without a slot, in trouble of our own.
    fn window_runs(&self) -> bool {
        let trying = match &self.state {
            State::Waiting(wait) | State::Resting(wait) => !matches!(wait.reason, Reason::Local(_)),
            State::Running(_) => true,
            State::Wished(_) | State::Over => false,
        };
        trying && self.may_try()
    }

    /// When the window ends it, if it makes no progress until then: also within a session, however busy that is.
    fn deadline(&self, now: Now) -> Option<Mono> {
        self.patience.ends_at(now).filter(|_| self.window_runs())
    }

    /// The window's clock runs or stands, as the state has it.
    fn wind_window(&mut self, now: Now) {
        if self.window_runs() { self.patience.unpause(now) } else { self.patience.pause(now) }
    }

    /// After every turn: the record is what must be stored, and the next wake is known.
    fn settle(&mut self, now: Now) {
        self.wind_window(now);
        self.store_patience(now);
        self.follow_the_wall_clock(now);
        self.wake = self.next_wake(now);
    }

    fn next_wake(&self, now: Now) -> Option<Mono> {
        let due = match &self.state {
            // A rest is announced at once.
            State::Waiting(wait) if self.may_try() && self.rests_in(wait, now) => Some(now.mono),
            State::Waiting(wait) if self.may_try() => Some(wait.due),
            State::Resting(_) | State::Over => return None,
            _ => None,
        };
        due.into_iter().chain(self.deadline(now)).min()
    }
}

impl Machine for PersFileXfer {
    type Event = Event;
    type Action = Action;

    /// Events that make no sense in the present state change nothing, but for two: a session that begins although its wish
    /// was dropped is cancelled, and what an ended session holds is noted in any state.
    fn handle(&mut self, event: Event, cx: &mut Cx<'_, Action>) {
        match event {
            Event::Wake => {}
            Event::Began => self.began(cx),
            Event::HostClosed { until } => self.host_closed(until, cx),
            Event::HostOpened(origin) => self.host_opened(&origin, cx.now),
            Event::Learned(dossier) => self.learned(*dossier, cx),
            Event::Named(path) => {
                self.record.path = Some(path);
                cx.out.push(Action::Save(Urgency::Now));
            }
            Event::Kept(session, persist) => self.kept(*session, persist, cx),
            Event::Progress { held } => self.progressed(held, cx.now),
            Event::Serves(url) => self.serves(&url),
            Event::FailedBeside { url, failure, origin } => self.failed_beside(&url, &failure, origin.as_ref(), cx),
            Event::Ended(outcome, finished) => self.ended(*outcome, finished, cx),
            Event::Local(fault) => self.local_fault(fault, cx),
            Event::Mirrors(urls) => self.list_mirrors(&urls, cx),
            Event::Duplicates { digest, urls } => self.take_named(&digest, urls, cx),
            Event::Retry => self.retry(cx),
            Event::Suspend => self.suspend(cx),
            Event::Resume => self.resume(cx),
            Event::Abort => self.abort(cx),
            Event::Paused => self.net = Net::Down,
            Event::Unpaused => self.net = Net::Up,
        }
        self.go_on(cx);
        self.settle(cx.now);
    }

    fn wake_at(&self) -> Option<Mono> {
        self.wake
    }
}
