//! What of the source can have left this machine: a server is believed up to there.
//!
//! Bytes that were handed to the connection need not have arrived; bytes that were not cannot have.

use super::{Step, UpXfer};
use crate::core::range::{ByteRange, Length, Offset};
use crate::core::upload::ask::{Answer, Ask, Body};
use crate::core::upload::failure::UpFailure;
use crate::core::upload::found::Call;
use crate::core::upload::protocol::Foreign;

/// What had gone before the call that is under way, and what goes in its requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gone {
    floor: Offset,
    by_now: Offset,
}

impl UpXfer {
    /// A session begins, or is taken up. Nothing can have gone to an upload that has no name yet.
    pub(super) fn begin_creating(&mut self) {
        let alien = self.protocol.ways(&self.job).foreign == Foreign::Alien;
        let session = &mut self.job.session;
        if alien && session.handle.is_none() {
            (session.reached, session.confirmed) = (Offset::ZERO, Offset::ZERO);
        }
        self.gone = Gone { floor: session.reached, by_now: Offset::ZERO };
    }

    /// A body is to be sent. An earlier one may still be read by the server, so that its bytes count as well: but not
    /// where only the size of a file is told, which begins anew with each.
    pub(super) fn begin_sending(&mut self, range: ByteRange) {
        if self.is_told_by_size() {
            self.job.session.reached = range.start;
        }
        self.gone = Gone { floor: self.job.session.reached, by_now: Offset::ZERO };
    }

    fn is_told_by_size(&self) -> bool {
        self.protocol.ways(&self.job).foreign == Foreign::Unproven
    }

    /// A request is about to go out. If the process dies meanwhile, nobody knows how far its body came: so its end counts,
    /// but not where the server would say nothing more than that.
    pub(super) fn goes_out(&mut self, ask: &Ask) {
        if let Some(range) = ask.body.range().filter(|_| !self.is_told_by_size()) {
            self.job.session.reached = self.job.session.reached.max(range.end);
        }
    }

    /// So much of the last request's body was handed to the connection.
    pub(super) fn handed_over(&mut self, sent: Length) {
        let Some(body) = self.last.as_ref().map(|ask| &ask.body) else { return };
        let Some(range) = body.range() else { return };
        let of_source = sent.saturating_sub(body.length().saturating_sub(range.length())).min(range.length());
        if of_source > Length::ZERO {
            self.gone.by_now = self.gone.by_now.max(range.start + of_source);
        }
        self.job.session.reached = self.gone.floor.max(self.gone.by_now);
        if self.protocol.ways(&self.job).foreign == Foreign::Alien {
            // An informational answer may have said more.
            let session = &mut self.job.session;
            session.confirmed = session.confirmed.min(session.reached);
        }
    }

    /// A yes that came before the request was through: whatever it means, it is not about what was to be sent. What is
    /// made of a part of the bytes is found by asking.
    pub(super) fn early(&self, answer: &Answer) -> Option<UpFailure> {
        let body = self.last.as_ref().map(|ask| &ask.body)?;
        let whole = body.length();
        // A creation that carries bytes names the upload, and an offset that is judged like any.
        let creates = self.call == Call::Prepare && matches!(body, Body::Source(_));
        let counts = creates || self.call == Call::Abandon || answer.sent >= whole || !self.protocol.is_yes(answer);
        (!counts).then_some(UpFailure::Early { sent: answer.sent, whole })
    }

    /// The server claims what cannot be there. One with sessions has somebody else's; they are given up, a few times.
    pub(super) fn overclaimed(&mut self, told: Offset) -> Step {
        let sent = self.job.session.reached.as_length();
        match self.lose() {
            true => self.begin_again(),
            false => self.given_up(UpFailure::Overclaimed { told: told.as_length(), sent }),
        }
    }

    /// What may be believed of a server's word where several may share a store, just after a body: no more than was there
    /// and was sent. Beyond, its sizes say nothing of this file until all of it was sent in one piece.
    pub(super) fn doubted(&mut self, at: Offset, begun_at: Offset) -> Offset {
        let session = &mut self.job.session;
        if at <= session.reached.max(begun_at) {
            return at;
        }
        session.stale = session.stale.max(at);
        Offset::ZERO
    }
}
