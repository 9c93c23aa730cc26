//! UpXfer: one session with one server, as a machine. The rules that hold for every protocol are here.

mod attempt;
mod gone;
mod look;
mod redirect;
mod start;
mod turn;

use attempt::Attempt;
use gone::Gone;

use super::ask::{Answer, Ask, Interim};
use super::failure::UpFailure;
use super::found::{Call, Job, Proof};
use super::protocol::{Carries, UploadProtocol};
use super::session::UploadSession;
use super::source::{Change, Mark, Sight, Source};
use crate::core::digest::{Algorithm, Expected};
use crate::core::failure::Failure;
use crate::core::range::{ByteRange, Length, Offset};
use crate::core::time::{Delay, Epoch};
use crate::core::url::MirrorUrl;

/// Requests without any progress, and the session ends.
const MAX_FRUITLESS: u32 = 60;

/// A session begins anew so many times because the server can do less than was hoped; then it is no server for today.
const MAX_ANEW: u32 = 3;

/// What a session is to do.
#[derive(Debug)]
pub struct Plan {
    /// How to speak.
    pub protocol: Box<dyn UploadProtocol>,
    /// To whom: the URL as the user gave it.
    pub server: MirrorUrl,
    /// The record of the last session with it, by this protocol.
    pub saved: Option<UploadSession>,
    /// The source as it is now; its digest, where it is known.
    pub source: Source,
    /// The name that the file is to have at the server.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// A random word, fit for a name.
    pub token: String,
    /// A file up to this size is read back and compared where the server names no digest.
    pub read_back: Length,
    /// At any server of this transfer, bytes of an older version of the source may stand up to here: servers can share a store.
    pub stale: Offset,
}

/// What came of a step.
#[derive(Clone, Debug)]
pub enum Event {
    /// An informational answer came; the request goes on.
    Informed(Interim),
    /// The final answer came, and its body is read. It may come while the request's body still flows, which then ends.
    Answer(Box<Answer>),
    /// No whole answer came.
    Broke {
        /// So many bytes of the body were handed to the connection; no server is believed to hold more.
        sent: Length,
        /// What happened.
        failure: Failure,
    },
    /// The digest asked for.
    Digested(Expected),
    /// What the file system says of the source.
    Looked(Sight),
    /// The digest of the whole source, which nobody waits for, and what the file system says of it now. It may come while a
    /// request is under way, which goes on.
    Known {
        /// Of all that was read.
        digest: Expected,
        /// Since it was read.
        sight: Sight,
    },
    /// The source cannot be read any more, says the system.
    SourceGone(String),
    /// The rest is over.
    Rested,
    /// Stop.
    Stopped {
        /// So many bytes of the body of the open request, which is dropped, were handed to the connection.
        sent: Length,
    },
}

/// What the driver does: first it stores the record where it should, then the move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Is [`UpXfer::session`] to be stored?
    pub persist: Persist,
    /// Then this.
    pub next: Next,
}

/// When the record is to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persist {
    /// It is as it was.
    Not,
    /// Within some seconds: only offsets differ.
    Soon,
    /// On disk before the move.
    Now,
}

/// The move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send this; answered by [`Event::Informed`] any number of times, then [`Event::Answer`] or [`Event::Broke`]. The
    /// user's credentials go along only where its origin is that of the server's own URL.
    Ask(Ask),
    /// Nothing new: what was asked for goes on.
    Await,
    /// Compute this digest of a range of the source; answered by [`Event::Digested`].
    Digest {
        /// Of which bytes.
        range: ByteRange,
        /// By which algorithm.
        algorithm: Algorithm,
    },
    /// Ask the file system about the source; answered by [`Event::Looked`] or [`Event::SourceGone`].
    Look,
    /// Wait so long; answered by [`Event::Rested`].
    Rest(Delay),
    /// The session is over.
    End(UpEnd),
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpEnd {
    /// The server has the whole file; the record can go.
    Stored {
        /// What says so.
        confirmed: Proof,
    },
    /// It failed; what it means says [`super::judge`].
    Failed(UpFailure),
    /// It was told to stop; the record stays.
    Stopped,
    /// Cleaned up, as far as the protocol has a way; the record can go.
    Abandoned,
    /// The server was asked to clean up and did not say that it has: the record stays, so that it can be asked again.
    NotAbandoned(UpFailure),
}

/// The wait before what is still held is cleaned up again, and how often.
const STILL_HELD: Delay = Delay::from_secs(1);
const MAX_HELD: u32 = 8;

/// One session with one server.
#[derive(Debug)]
pub struct UpXfer {
    protocol: Box<dyn UploadProtocol>,
    job: Job,
    call: Call,
    doing: Doing,
    /// The record as the driver last got it to store.
    kept: Option<UploadSession>,
    /// The last request, to be sent again where a redirect leads.
    last: Option<Ask>,
    hops: u32,
    attempt: Option<Attempt>,
    gone: Gone,
    /// Confirmed and not lost again, in this session.
    high: Offset,
    /// How often the server was found to have lost what it had confirmed.
    losses: u32,
    /// It has grown since a body broke off without growth: parts are kept whole or not at all.
    moved: bool,
    /// Answers without growth in a row.
    unmoved: u32,
    /// Requests without progress in a row.
    fruitless: u32,
    waits: u32,
    waited: Delay,
    finishes: u32,
    anew: u32,
    sent_empty: bool,
    /// Why the upload was begun anew.
    restarted: Option<Change>,
    /// The source was touched while it was sent, and is the same by its digest.
    touched: bool,
    /// What follows when the server has been cleaned up.
    cleanup: Cleanup,
    /// Why it has not been.
    left: Option<UpFailure>,
    /// What other servers of the transfer may have of older versions ends no later than here.
    stale: Offset,
}

/// What the driver is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// A digest of the whole source, to compare it with the one begun with.
    Likeness,
    /// What the protocol wants.
    Call,
    /// A look at the source, and then this.
    Look(Then),
    /// A digest of a source that was touched so, to see whether it is what it was, and then this.
    Reread(Mark, Then),
    /// A rest, and then this.
    Rest(Then),
    /// Nothing any more.
    Over,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Probe,
    GoOn,
    Send,
    Finish,
    CleanUp,
    /// The end: the server has the whole.
    Stored(Proof),
}

/// What follows when the server has been cleaned up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cleanup {
    /// The end.
    Last,
    /// A new upload.
    BeforeAnew,
}

impl UpXfer {
    /// A session by this plan.
    pub fn new(plan: Plan, now: Epoch) -> Self {
        let fresh = || UploadSession {
            stale: plan.stale,
            ..UploadSession::new(plan.protocol.protocol(), plan.server.clone(), plan.source.clone(), now)
        };
        let fits = |s: &UploadSession| s.protocol == plan.protocol.protocol() && s.server == plan.server;
        let kept = plan.saved.filter(fits);
        let job = Job {
            name: plan.name,
            media_type: plan.media_type,
            session: kept.clone().unwrap_or_else(fresh),
            source: plan.source,
            now,
            token: plan.token,
            read_back: plan.read_back,
        };
        Self {
            protocol: plan.protocol,
            job,
            call: Call::Prepare,
            doing: Doing::Over,
            kept,
            last: None,
            hops: 0,
            attempt: None,
            gone: Gone::default(),
            high: Offset::ZERO,
            losses: 0,
            moved: false,
            unmoved: 0,
            fruitless: 0,
            waits: 0,
            waited: Delay::ZERO,
            finishes: 0,
            anew: 0,
            sent_empty: false,
            restarted: None,
            touched: false,
            cleanup: Cleanup::Last,
            left: None,
            stale: plan.stale,
        }
    }

    /// The record as it is now.
    pub fn session(&self) -> &UploadSession {
        &self.job.session
    }

    /// The source was another than the one that the upload had been begun with, so it was begun anew.
    pub fn restarted(&self) -> Option<Change> {
        self.restarted
    }

    /// Why an older version of the source was not cleaned up at the server, told once.
    pub fn take_left(&mut self) -> Option<UpFailure> {
        self.left.take_if(|_| self.cleanup == Cleanup::BeforeAnew)
    }

    /// What to do after what happened. An event that does not answer the last step is passed over.
    pub fn handle(&mut self, event: Event, now: Epoch) -> Step {
        self.job.now = now;
        match (event, self.doing) {
            (_, Doing::Over) => self.step(Next::Await),
            (Event::Stopped { sent }, doing) => {
                // What was not handed over is no part of what a server may claim the next time.
                if doing == Doing::Call {
                    self.handed_over(sent);
                }
                self.end(UpEnd::Stopped)
            }
            (Event::SourceGone(detail), _) => self.fail(UpFailure::SourceGone { detail }),
            (Event::Informed(interim), Doing::Call) => {
                self.protocol.informed(&mut self.job, &interim);
                self.step(Next::Await)
            }
            (Event::Answer(answer), Doing::Call) => {
                self.handed_over(answer.sent);
                match self.early(&answer) {
                    Some(failure) => self.broke(failure),
                    None => self.answered(&answer),
                }
            }
            (Event::Broke { sent, failure }, Doing::Call) => {
                self.handed_over(sent);
                self.broke(UpFailure::Transfer(failure))
            }
            (Event::Digested(digest), Doing::Call) => {
                let turn = self.protocol.digested(&mut self.job, self.call, &digest);
                self.take(turn)
            }
            (Event::Digested(digest), Doing::Likeness) => self.compared(digest),
            (Event::Digested(digest), Doing::Reread(mark, then)) => self.reread(&digest, mark, then),
            (Event::Known { digest, sight }, Doing::Call) => {
                self.known(digest, &sight);
                self.step(Next::Await)
            }
            (Event::Looked(sight), Doing::Look(then)) => self.looked(&sight, then),
            (Event::Rested, Doing::Rest(then)) => self.then(then),
            _ => self.step(Next::Await),
        }
    }

    fn answered(&mut self, answer: &Answer) -> Step {
        match self.redirected(answer) {
            Some(Ok(ask)) => self.send_out(ask),
            Some(Err(fault)) if self.call == Call::Abandon => {
                self.not_cleaned_up(UpFailure::Transfer(Failure::Redirect(fault)))
            }
            Some(Err(fault)) => self.fail(UpFailure::Transfer(Failure::Redirect(fault))),
            None if self.call == Call::Abandon && self.is_still_held(answer) => self.rest(STILL_HELD, Then::CleanUp),
            None => {
                self.note_left(answer);
                let turn = self.protocol.answered(&mut self.job, self.call, answer);
                self.take(turn)
            }
        }
    }

    /// What is to be cleaned up is held by a request that was cut a moment ago, and that the server still reads.
    fn is_still_held(&mut self, answer: &Answer) -> bool {
        self.waits += 1;
        matches!(answer.status, 409 | 423) && self.waits <= MAX_HELD
    }

    fn then(&mut self, then: Then) -> Step {
        match then {
            Then::Probe => self.probe(),
            Then::GoOn => self.go_on(),
            Then::Send => self.send(),
            Then::Finish => self.finish(),
            Then::CleanUp => self.clean_up(self.cleanup),
            Then::Stored(confirmed) => self.end(UpEnd::Stored { confirmed }),
        }
    }

    fn rest(&mut self, delay: Delay, then: Then) -> Step {
        self.doing = Doing::Rest(then);
        self.step(Next::Rest(delay))
    }

    fn send_out(&mut self, ask: Ask) -> Step {
        self.fruitless += 1;
        if self.fruitless > MAX_FRUITLESS {
            return self.fail(UpFailure::NoGrowth { times: self.fruitless });
        }
        self.doing = Doing::Call;
        self.goes_out(&ask);
        self.last = Some(ask.clone());
        self.step(Next::Ask(ask))
    }

    fn fail(&mut self, failure: UpFailure) -> Step {
        self.end(UpEnd::Failed(failure))
    }

    fn end(&mut self, end: UpEnd) -> Step {
        self.doing = Doing::Over;
        self.step(Next::End(end))
    }

    /// The step that does this next, and what of the record must be stored first.
    fn step(&mut self, next: Next) -> Step {
        let session = &self.job.session;
        let persist = match &self.kept {
            Some(kept) if kept == session => Persist::Not,
            Some(kept) if !matches!(next, Next::End(_)) && self.can_wait(kept) => Persist::Soon,
            _ => Persist::Now,
        };
        if persist != Persist::Not {
            self.kept = Some(session.clone());
        }
        Step { persist, next }
    }

    /// Is what the record has beyond this known without it?
    fn can_wait(&self, kept: &UploadSession) -> bool {
        let session = &self.job.session;
        if !self.protocol.tells_again(kept, session) {
            return only_offsets_differ(kept, session);
        }
        // Not compared by value: there may be ten thousand, and they are told again.
        let rest = |one: &UploadSession| UploadSession { parts: Vec::new(), reached: Offset::ZERO, ..one.clone() };
        only_offsets_differ(&rest(kept), &rest(session))
    }

    /// What of the user's goes along with requests.
    pub fn carries(&self) -> Carries {
        self.protocol.carries()
    }
}

/// Nothing that a resume rests on.
fn only_offsets_differ(a: &UploadSession, b: &UploadSession) -> bool {
    UploadSession { confirmed: b.confirmed, pace: b.pace, ..a.clone() } == *b
}
