//! Waiting: why and until when nothing is done, the pass that failed, and a wait that was stored.
//!
//! Waits run on the monotonic clock and are stored by the wall clock. Where the wall clock is set during a wait, what is
//! stored follows it; where it was set while nobody was looking, a stored wait is cut to the longest that was meant
//! (design section 4).

use crate::core::failure::LocalFault;
use crate::core::machine::Cx;
use crate::core::mirrors::{HeldBy, Hold, Holds};
use crate::core::pers_xfer::machine::{PersFileXfer, State};
use crate::core::pers_xfer::record::Record;
use crate::core::pers_xfer::rules::{CLOCK_SET, LOCAL_AGAIN, OnLocalFault, RESUME_AFTER, Rounds, Rules};
use crate::core::pers_xfer::{Action, Urgency};
use crate::core::time::{Delay, Epoch, Mono, Now};
use crate::core::url::Origin;
use crate::core::verdict::RETRY_AFTER_CAP;

/// A host backs off for so long at most, unless other bounds were given (BOINC's longest delay).
const HOST_BACKS_OFF: Delay = Delay::from_hours(4);

/// A wait.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    /// When it is over.
    pub(super) due: Mono,
    /// Why.
    pub(super) reason: Reason,
}

/// Why it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// For nothing: the pass under way goes on, or a first one begins.
    Ready,
    /// A pass failed, and the policy drew a delay.
    Backoff,
    /// A session made progress and was cut, or was stopped by somebody.
    Resuming,
    /// Every usable mirror is held back; this one will be free first.
    Held(HeldBy, Origin),
    /// Trouble on this machine.
    Local(LocalFault),
}

impl Wait {
    pub(super) const fn ready(now: Now) -> Self {
        Self { due: now.mono, reason: Reason::Ready }
    }
}

impl PersFileXfer {
    /// Every usable mirror failed, none of them after progress: BOINC's backoff step (boinc.md 1.4).
    pub(super) fn pass_failed(&mut self, cx: &mut Cx<'_, Action>) {
        self.record.num_retries = self.record.num_retries.saturating_add(1);
        self.passes = self.passes.saturating_add(1);
        self.begin_pass();
        // A policy that has come to "never" is asked again as rarely as it can be.
        let delay = self.record.backoff.fail(&self.rules.policy, cx.rng);
        let drawn = cx.now.mono + delay.unwrap_or_else(|| self.rules.policy.longest());
        self.wait(self.not_before_a_mirror_is_free(drawn, Reason::Backoff, cx.now), cx.now);
        cx.out.push(Action::Save(Urgency::Now));
        self.go_on(cx);
    }

    /// All mirrors are untried, in the order given.
    pub(super) fn begin_pass(&mut self) {
        self.prefer = None;
        for mirror in &mut self.record.mirrors {
            mirror.tried = false;
        }
    }

    fn not_before_a_mirror_is_free(&self, due: Mono, reason: Reason, now: Now) -> Wait {
        match self.holds.first_free(&self.record.mirrors, now.mono) {
            Some((mirror, hold)) if hold.until > due => Wait { due: hold.until, reason: self.held(mirror, hold) },
            _ => Wait { due, reason },
        }
    }

    fn held(&self, mirror: usize, hold: Hold) -> Reason {
        Reason::Held(hold.by, self.record.mirrors[mirror].url.origin())
    }

    pub(super) fn wait_for_hold(&mut self, mirror: usize, hold: Hold, cx: &mut Cx<'_, Action>) {
        self.wait(Wait { due: hold.until, reason: self.held(mirror, hold) }, cx.now);
        cx.out.push(Action::Save(Urgency::Later));
        self.go_on(cx);
    }

    /// The host that was asked for does not take sessions yet: another mirror, or a wait; nothing was tried.
    pub(super) fn host_closed(&mut self, until: Mono, cx: &mut Cx<'_, Action>) {
        let State::Wished(mirror) = self.state else { return };
        // A moment that has come already would have us ask again within this turn, for ever.
        let until = until.max(cx.now.mono + RESUME_AFTER);
        self.holds.add(mirror, Hold { until, by: HeldBy::HostBackoff });
        self.state = State::Waiting(Wait::ready(cx.now));
    }

    /// A host that backed off is open: who waited for it goes on at once.
    pub(super) fn host_opened(&mut self, origin: &Origin, now: Now) {
        let mirrors = self.record.mirrors.iter().enumerate();
        let concerned: Vec<usize> = mirrors.filter(|(_, m)| m.url.origin() == *origin).map(|(i, _)| i).collect();
        concerned.into_iter().for_each(|mirror| self.holds.clear_host_backoff(mirror));
        if let State::Waiting(Wait { reason: Reason::Held(HeldBy::HostBackoff, held), .. }) = &self.state
            && held == origin
        {
            self.state = State::Waiting(Wait::ready(now));
        }
    }

    /// After a session that made progress, or was stopped by somebody.
    pub(super) fn wait_to_resume(&mut self, now: Now) {
        self.wait(self.not_before_a_mirror_is_free(now.mono + RESUME_AFTER, Reason::Resuming, now), now);
    }

    /// After trouble on this machine; nothing is counted, and what is stored stays as it is.
    pub(super) fn wait_for_this_machine(&mut self, fault: LocalFault, now: Now) {
        self.state = State::Waiting(Wait { due: now.mono + LOCAL_AGAIN, reason: Reason::Local(fault) });
    }

    fn wait(&mut self, wait: Wait, now: Now) {
        self.record.next_request_time = Some(now.wall_of(wait.due));
        self.state = State::Waiting(wait);
    }

    /// Does this wait end what is done in this run?
    pub(super) fn rests_in(&self, wait: &Wait, now: Now) -> bool {
        let once = self.rules.rounds == Rounds::Once;
        match wait.reason {
            Reason::Local(_) => once || self.rules.on_local_fault == OnLocalFault::Rest,
            Reason::Resuming => false,
            Reason::Ready | Reason::Backoff | Reason::Held(..) => once && (self.passes > 0 || wait.due > now.mono),
        }
    }

    pub(super) fn rest(&mut self, cx: &mut Cx<'_, Action>) {
        let State::Waiting(wait) = &self.state else { return };
        let fault = if let Reason::Local(fault) = &wait.reason { Some(fault.clone()) } else { None };
        self.state = State::Resting(wait.clone());
        cx.out.push(Action::Save(Urgency::Now));
        cx.out.push(Action::Rest(fault));
    }

    /// The wait that a stored record still has before it: at most what was drawn, and not before some mirror may be asked.
    pub(super) fn stored_wait(&self, now: Now) -> Wait {
        let stored = self.record.next_request_time.map_or(Delay::ZERO, |at| at.since(now.wall));
        let due = now.mono + stored.min(longest_wait(&self.record, &self.rules));
        self.not_before_a_mirror_is_free(due, self.stored_reason(stored), now)
    }

    /// Why it waits for so long, as far as the record tells: before its first session, it can only have been for a host.
    fn stored_reason(&self, stored: Delay) -> Reason {
        let first = self.record.mirrors.first().filter(|_| self.record.sessions == 0);
        match (stored, self.record.num_retries, first) {
            (Delay::ZERO, ..) => Reason::Ready,
            (short, 0, _) if short <= RESUME_AFTER => Reason::Resuming,
            (_, 0, Some(mirror)) => Reason::Held(HeldBy::HostBackoff, mirror.url.origin()),
            _ => Reason::Backoff,
        }
    }

    /// What stored Retry-Afters still hold back, each for a day at most.
    pub(super) fn holds_of(record: &Record, now: Now) -> Holds {
        let mut holds = Holds::default();
        for (mirror, known) in record.mirrors.iter().enumerate() {
            let left = known.not_before.map_or(Delay::ZERO, |at| at.since(now.wall)).min(RETRY_AFTER_CAP);
            if left > Delay::ZERO {
                holds.add(mirror, Hold { until: now.mono + left, by: HeldBy::Server });
            }
        }
        holds
    }

    /// Keeps the stored moments at the same distance when the wall clock is set.
    pub(super) fn follow_the_wall_clock(&mut self, now: Now) {
        let next = &mut self.record.next_request_time;
        match &self.state {
            State::Waiting(Wait { due, reason }) | State::Resting(Wait { due, reason }) if reason.is_stored() => {
                follow(next, *due, now);
            }
            // What is due already must not come to lie ahead.
            _ => *next = next.map(|at| at.min(now.wall)),
        }
        for (i, mirror) in self.record.mirrors.iter_mut().enumerate() {
            match self.holds.of(i, now.mono) {
                Some(Hold { until, by: HeldBy::Server }) => follow(&mut mirror.not_before, until, now),
                _ => mirror.not_before = None,
            }
        }
    }
}

impl Reason {
    /// Is such a wait honoured by a later run?
    const fn is_stored(&self) -> bool {
        !matches!(self, Self::Ready | Self::Local(_))
    }
}

/// No stored wait was meant to be longer: the delay that was drawn last, or what a host backs off, where that is more;
/// else the longest that can be drawn. What a server asks for beyond that is stored with its mirror.
pub(super) fn longest_wait(record: &Record, rules: &Rules) -> Delay {
    let longest = rules.policy.longest();
    match record.backoff.previous {
        Delay::ZERO => longest,
        // Shorter bounds may have been given since.
        drawn => drawn.max(HOST_BACKS_OFF).min(longest),
    }
}

/// Moves a stored moment where it no longer says when `due` will come.
fn follow(stored: &mut Option<Epoch>, due: Mono, now: Now) {
    let right = now.wall_of(due);
    let off = |at: Epoch| at.since(right).max(right.since(at));
    if due > now.mono && stored.is_none_or(|at| off(at) > CLOCK_SET) {
        *stored = Some(right);
    }
}
