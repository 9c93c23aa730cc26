//! What became of a body, judged by what the server says it holds.

use super::{Step, Then, UpXfer};
use crate::core::range::{ByteRange, Offset};
use crate::core::time::Delay;
use crate::core::upload::LEAST_GROWTH;
use crate::core::upload::failure::UpFailure;
use crate::core::upload::found::Call;
use crate::core::upload::protocol::{Backward, Foreign};

/// After a body that was cut and grew all the same (as with downloads).
const AFTER_A_CUT: Delay = Delay::from_secs(1);

/// So many bodies without growth and without an answer, and the server is asked whether it would take any.
const STALLS_TO_CHALLENGE: u32 = 2;

/// So many answers without growth, and they are the server's way.
const MAX_UNMOVED: u32 = 2;

/// So often what a server lost is sent again in one session.
const MAX_LOSSES: u32 = 3;

/// A checksum that did not agree is given one more: the chunk is read and counted anew each time.
const MAX_MISMATCHES: u32 = 3;

/// A body on its way, or just ended.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    range: ByteRange,
    ended: Ended,
}

/// How a body ended.
#[derive(Clone, Debug)]
pub(super) enum Ended {
    /// With an answer of the protocol.
    Answered,
    /// With a refusal that may mean that the server stands elsewhere.
    Refused {
        /// The status code.
        code: u16,
        /// What it is when it does not.
        failure: UpFailure,
    },
    /// Without one.
    Broke(UpFailure),
}

impl UpXfer {
    pub(super) fn begin_attempt(&mut self, range: ByteRange) {
        self.attempt = Some(Attempt { range, ended: Ended::Answered });
    }

    pub(super) fn ended(&mut self, how: Ended) {
        if let Some(attempt) = &mut self.attempt {
            attempt.ended = how;
        }
    }

    /// Did the last body end with a yes that came too early?
    pub(super) fn was_early(&self) -> bool {
        matches!(self.attempt, Some(Attempt { ended: Ended::Broke(UpFailure::Early { .. }), .. }))
    }

    /// The server says that it holds the bytes before `at`.
    pub(super) fn confirmed(&mut self, at: Offset) -> Step {
        let (ways, size) = (self.protocol.ways(&self.job), self.job.size());
        let begun_at = self.attempt.as_ref().map(|attempt| attempt.range.start);
        let at = match (ways.foreign, begun_at) {
            (Foreign::Welcome | Foreign::Proven | Foreign::Unproven, _) if at > size.as_end() => {
                return self.fail(UpFailure::Conflict { told: at.as_length(), ours: size });
            }
            (Foreign::Alien, _) if at > size.as_end() || at > self.job.session.reached => return self.overclaimed(at),
            (Foreign::Welcome, Some(begun_at)) => self.doubted(at, begun_at),
            _ => at,
        };
        let session = &mut self.job.session;
        if at < session.confirmed && ways.backward == Backward::Void {
            return self.lost_session();
        }
        session.confirmed = at;
        match self.attempt.take() {
            None => {
                self.lost_some(at);
                self.go_on()
            }
            Some(attempt) => self.judged(attempt, at),
        }
    }

    /// What the server lost counts as growth when it is sent again: but not for ever.
    fn lost_some(&mut self, at: Offset) {
        if at < self.high && self.losses < MAX_LOSSES {
            self.losses += 1;
            self.high = at;
        }
    }

    fn judged(&mut self, attempt: Attempt, at: Offset) -> Step {
        let whole = at >= attempt.range.end;
        if whole {
            self.job.session.pace.whole();
        }
        let grown = at - self.high >= LEAST_GROWTH || (whole && (at > self.high || attempt.range.is_empty()));
        if !grown {
            return self.unmoved(attempt);
        }
        self.progressed(at);
        self.job.session.pace.grew();
        match attempt.ended {
            Ended::Broke(_) if !whole => self.rest(AFTER_A_CUT, Then::GoOn),
            _ => self.go_on(),
        }
    }

    fn unmoved(&mut self, attempt: Attempt) -> Step {
        let ways = self.protocol.ways(&self.job);
        let floor = ways.floor;
        // A part is kept whole or not at all. Where the one before it arrived, a cut is no reason to end the session.
        let in_parts = ways.segments && ways.cap == Some(floor);
        self.unmoved += 1;
        let fruitless = self.unmoved >= MAX_UNMOVED;
        match &attempt.ended {
            Ended::Refused { code: 460, .. } if self.unmoved < MAX_MISMATCHES => self.go_on(),
            Ended::Refused { failure, .. } if fruitless => self.fail(failure.clone()),
            Ended::Refused { .. } => self.go_on(),
            Ended::Answered => {
                self.job.session.pace.stall(floor);
                if fruitless { self.fail(UpFailure::NoGrowth { times: self.unmoved }) } else { self.go_on() }
            }
            Ended::Broke(_) => {
                self.job.session.pace.stall(floor);
                if in_parts && std::mem::take(&mut self.moved) {
                    self.rest(AFTER_A_CUT, Then::GoOn)
                } else {
                    self.challenge(attempt)
                }
            }
        }
    }

    /// A body died without an answer, as it does where a server refuses and hangs up: from the second time on, it is
    /// asked without a body.
    fn challenge(&mut self, attempt: Attempt) -> Step {
        let range = attempt.range;
        self.attempt = Some(attempt);
        if self.job.session.pace.stalled < STALLS_TO_CHALLENGE {
            return self.broken_attempt();
        }
        self.call = Call::Challenge(range);
        match self.protocol.challenge(&mut self.job, range) {
            Some(turn) => self.take(turn),
            None => self.broken_attempt(),
        }
    }

    /// The session ends with what broke the last body.
    pub(super) fn broken_attempt(&mut self) -> Step {
        match self.attempt.take().map(|a| a.ended) {
            Some(Ended::Broke(failure)) => self.fail(failure),
            _ => self.fail(UpFailure::NoGrowth { times: self.unmoved }),
        }
    }
}
