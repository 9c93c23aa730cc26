//! What the machine does about what a protocol finds.

use super::attempt::Ended;
use super::{Doing, MAX_ANEW, Next, Step, Then, UpXfer};
use crate::core::failure::Failure;
use crate::core::range::{ByteRange, Offset};
use crate::core::time::Delay;
use crate::core::upload::failure::UpFailure;
use crate::core::upload::found::{Call, Found, Said, Turn};
use crate::core::upload::protocol::EmptyFile;
use crate::core::upload::verdict::{Row, UpScope, row};

/// How long somebody else's request may hold the upload before that is a failure.
const MAX_WAIT: Delay = Delay::from_mins(10);

/// The longest of the waits for it.
const LONGEST_WAIT: Delay = Delay::from_secs(60);

/// How often a lost answer to the closing request is asked for again in one session.
const MAX_FINISHES: u32 = 3;

impl UpXfer {
    /// Carries out what the protocol wants.
    pub(super) fn take(&mut self, turn: Turn) -> Step {
        match turn {
            Turn::Ask(ask) => {
                self.hops = 0;
                self.send_out(*ask)
            }
            Turn::Digest { range, algorithm } => {
                self.doing = Doing::Call;
                self.step(Next::Digest { range, algorithm })
            }
            Turn::Found(_) if self.call == Call::Abandon => self.cleaned_up(),
            Turn::Found(found) => self.found(found),
        }
    }

    fn found(&mut self, found: Found) -> Step {
        match (found, self.call) {
            (Found::Failed(failure), _) => self.failed(failure),
            // The server would take it: so the line is to blame, and what it did is the failure.
            (Found::Ready(_) | Found::Confirmed(_) | Found::Uncertain, Call::Challenge(_)) => self.broken_attempt(),
            (Found::Garbled(failure), Call::Send(_)) => {
                self.ended(Ended::Broke(failure));
                self.probe()
            }
            (Found::Garbled(failure), _) => self.fail(failure),
            (Found::Ready(None) | Found::Uncertain, _) => self.probe(),
            (Found::Ready(Some(at)) | Found::Confirmed(at), _) => self.confirmed(at),
            // The one way to that end, for every protocol: over a look at the source.
            (Found::Complete(confirmed), _) => self.look(Then::Stored(confirmed)),
            (Found::Lost, _) => self.lost_session(),
            (Found::Anew, _) => self.all_again(),
            (Found::Busy, _) => self.wait(),
            (Found::Status(said), _) => self.refused(said),
        }
    }

    /// What was sent is void. A server that answers well and keeps nothing must not get the file for ever.
    fn all_again(&mut self) -> Step {
        self.anew += 1;
        if self.anew > MAX_ANEW {
            return self.fail(UpFailure::NoGrowth { times: self.anew });
        }
        self.begin_anew();
        self.prepare()
    }

    /// No whole answer came. After a body nothing is certain, so the server is asked; a question that is not answered
    /// ends the session, and costs nothing of what the server holds.
    pub(super) fn broke(&mut self, failure: UpFailure) -> Step {
        match self.call {
            Call::Abandon => self.not_cleaned_up(failure),
            _ if matches!(failure, UpFailure::Transfer(Failure::Local(_))) => self.fail(failure),
            Call::Send(_) => {
                self.ended(Ended::Broke(failure));
                self.probe()
            }
            Call::Challenge(_) => self.broken_attempt(),
            // A closing request is no body: it is asked again, and begins by looking whether it was heard.
            Call::Finish if self.finishes < MAX_FINISHES => self.finish(),
            Call::Prepare | Call::Probe | Call::Finish => self.fail(failure),
        }
    }

    fn refused(&mut self, said: Said) -> Step {
        let status = self.status(&said);
        match (row(self.protocol.protocol(), self.call, said.code, said.retry_after), self.call) {
            // Nobody can be asked: what is left is a yes that was none.
            (Row::End(UpScope::RefuseServer), Call::Probe) if self.was_early() => self.broken_attempt(),
            (Row::End(_), _) => self.fail(status),
            (Row::NewSession, _) => self.lost_session(),
            (Row::Wait, _) => self.wait(),
            (Row::Probe, Call::Send(_)) => {
                self.ended(Ended::Refused { code: said.code, failure: status });
                self.probe()
            }
            (Row::Segment, Call::Send(range)) => self.too_large(range, status),
            (Row::Probe | Row::Segment, _) => self.fail(status),
        }
    }

    pub(super) fn status(&self, said: &Said) -> UpFailure {
        UpFailure::Status {
            protocol: self.protocol.protocol(),
            call: self.call,
            code: said.code,
            retry_after: said.retry_after,
            said: said.text.clone(),
        }
    }

    /// 413: smaller bodies, where the protocol has them and smaller ones are left.
    fn too_large(&mut self, range: ByteRange, status: UpFailure) -> Step {
        let ways = self.protocol.ways(&self.job);
        if !ways.segments || !self.job.session.pace.too_large(range.length(), ways.floor) {
            return self.fail(status);
        }
        self.attempt = None;
        self.probe()
    }

    fn failed(&mut self, failure: UpFailure) -> Step {
        let wrong = match failure {
            UpFailure::WrongDigest { .. } => true,
            // A server with sessions is given a new one.
            UpFailure::WrongSize { .. } => self.call == Call::Finish && self.job.session.handle.is_some(),
            _ => false,
        };
        if !wrong || self.job.session.resent {
            return self.fail(failure);
        }
        // Once more from the start: what was stored may have been spoilt on the way.
        self.begin_anew();
        self.job.session.resent = true;
        self.prepare()
    }

    /// The server does not know the session any more.
    pub(super) fn lost_session(&mut self) -> Step {
        match self.lose() {
            true => self.begin_again(),
            false => self.given_up(UpFailure::KeepsForgetting { times: self.job.session.lost.times }),
        }
    }

    /// No new session today. The old one is no use either: who tries again all the same begins without it.
    pub(super) fn given_up(&mut self, failure: UpFailure) -> Step {
        self.begin_anew();
        self.fail(failure)
    }

    /// One session more is given up. `false` where there have been too many.
    pub(super) fn lose(&mut self) -> bool {
        self.job.session.lost.another(self.job.now)
    }

    pub(super) fn begin_again(&mut self) -> Step {
        self.begin_anew();
        self.prepare()
    }

    /// Somebody's request, ours of a moment ago perhaps, still holds the upload.
    fn wait(&mut self) -> Step {
        self.attempt = None;
        if self.waited >= MAX_WAIT {
            return self.fail(UpFailure::Busy { waited: self.waited });
        }
        let delay = Delay::from_secs(1 << self.waits.min(6)).min(LONGEST_WAIT);
        self.waits += 1;
        self.waited = self.waited.saturating_add(delay);
        self.rest(delay, Then::Probe)
    }

    pub(super) fn probe(&mut self) -> Step {
        self.call = Call::Probe;
        let turn = self.protocol.probe(&mut self.job);
        self.take(turn)
    }

    /// Everything is there, or something is to be sent; a look at the source comes before either.
    pub(super) fn go_on(&mut self) -> Step {
        let (at, size) = (self.job.session.confirmed, self.job.size());
        let ways = self.protocol.ways(&self.job);
        let empty_to_send = size.0 == 0 && ways.empty == EmptyFile::Sent && !self.sent_empty;
        self.look(if at == size.as_end() && !empty_to_send { Then::Finish } else { Then::Send })
    }

    pub(super) fn send(&mut self) -> Step {
        let range = self.next_range();
        self.sent_empty |= range.is_empty();
        self.begin_sending(range);
        self.begin_attempt(range);
        self.call = Call::Send(range);
        let turn = self.protocol.send(&mut self.job, range);
        self.take(turn)
    }

    /// From where the server stands: all the rest, or as much as it has shown to take.
    fn next_range(&self) -> ByteRange {
        let ways = self.protocol.ways(&self.job);
        let (start, end) = (self.job.session.confirmed, self.job.size().as_end());
        // What was learned with smaller bodies does not cut those of a protocol that has a least size.
        let segment = self.job.session.pace.segment.map(|segment| segment.max(ways.floor));
        let most = [segment, ways.cap].into_iter().flatten().min();
        match most {
            Some(most) if ways.segments => ByteRange::new(start, end.min(start + most)),
            _ => ByteRange::new(start, end),
        }
    }

    pub(super) fn finish(&mut self) -> Step {
        self.finishes += 1;
        self.call = Call::Finish;
        let turn = self.protocol.finish(&mut self.job);
        self.take(turn)
    }

    /// The server has moved: what was counted against it counts no more.
    pub(super) fn progressed(&mut self, at: Offset) {
        self.high = self.high.max(at);
        self.moved = true;
        (self.unmoved, self.fruitless, self.waits, self.waited) = (0, 0, 0, Delay::ZERO);
    }
}
