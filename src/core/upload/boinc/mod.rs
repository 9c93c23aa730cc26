//! `boinc`: the protocol of BOINC's file_upload_handler.
//!
//! A size query tells how much the server holds, an upload carries the rest behind a head of lines that are never
//! closed, and a request without data tells a refusal that a hung-up connection hides.

mod message;

use message::{Head, Reply};

use super::ask::{Answer, Ask, Body, Method};
use super::failure::{FoundAtServer, UpFailure};
use super::found::{Call, Found, Job, Proof, Said, Turn};
use super::protocol::{Backward, EmptyFile, Foreign, Protocol, UploadProtocol, Ways};
use crate::core::digest::Expected;
use crate::core::range::{ByteRange, Length, Offset};

/// Segments are not smaller: front ends keep blocks of this size, or nothing.
const FLOOR: Length = Length(256 << 10);

/// A smaller file is sent at once, without a question, as BOINC's client does.
const ASK_FROM: Length = Length(8192);

/// BOINC's file_upload_handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boinc {
    /// The signature of name and limit, as the state file has it; none where the project wants none.
    pub signature: Option<String>,
    /// The largest size that the signature allows.
    pub max_nbytes: Length,
    /// MD5 of the file, hex; servers do not check it.
    pub md5: Option<String>,
    /// What to do when the server holds more than the file has.
    pub surplus: Surplus,
    /// The last size told did not fit what the server would take: sizes are counted from the smallest again.
    pub doubt: bool,
    /// How often in this session everything was taken with thanks, and the size then said otherwise.
    pub short: u32,
}

/// A server holds more than the file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Surplus {
    /// It is another file, and that is reported.
    #[default]
    Conflict,
    /// It counts as uploaded, as in BOINC's client.
    Done,
}

impl Boinc {
    /// For a file with this limit.
    pub fn new(max_nbytes: Length, signature: Option<String>) -> Self {
        Self { signature, max_nbytes, md5: None, surplus: Surplus::default(), doubt: false, short: 0 }
    }

    fn head(&self, job: &Job, offset: Offset) -> Vec<u8> {
        let (signature, md5) = (self.signature.as_deref(), self.md5.as_deref());
        let head = Head { name: &job.name, signature, max_nbytes: self.max_nbytes, nbytes: job.size(), md5, offset };
        head.text().into_bytes()
    }

    fn post(job: &Job, body: Body) -> Turn {
        Turn::ask(Ask::new(Method::Post, job.server()).with("content-type", "text/xml").carrying(body))
    }

    fn query(job: &Job) -> Turn {
        Self::post(job, Body::Bytes(message::size_query(&job.name).into_bytes()))
    }

    /// The size that the server means. It prints only the lower 32 bits, as a signed number; and it never cuts a file,
    /// so that it holds no less than it has confirmed. An overlap is accepted, a gap is not: too small is safe.
    fn meant(&self, job: &Job, told: i64) -> Offset {
        const WRAP: u64 = 1 << 32;
        let Ok(low) = u64::try_from(told.rem_euclid(1 << 32)) else { return Offset::ZERO };
        if told > i64::from(i32::MAX) {
            return Offset(told.unsigned_abs());
        }
        let known = if self.doubt { 0 } else { job.session.confirmed.0 };
        let wraps = known.saturating_sub(low).div_ceil(WRAP);
        let meant = low + wraps * WRAP;
        Offset(if meant <= job.size().0 { meant } else { low })
    }

    /// What the answer to a size query says.
    fn asked(&self, job: &mut Job, answer: &Answer) -> Turn {
        let reply = match Reply::of(answer) {
            Ok(reply) => reply,
            Err(turn) => return turn,
        };
        match (reply.status, reply.file_size) {
            (0, Some(told)) => self.held(job, self.meant(job, told)),
            _ => reply.refusal(),
        }
    }

    fn held(&self, job: &mut Job, at: Offset) -> Turn {
        note_found(job, at);
        if at > job.size().as_end() && self.surplus == Surplus::Done {
            return Turn::Found(Found::Complete(Proof::Status));
        }
        // What may be an older version's counts only once the new one has grown beyond it.
        let stale = at <= job.session.stale;
        Turn::Found(Found::Confirmed(if stale { Offset::ZERO } else { at }))
    }

    /// What the answer to a body says.
    fn sent(&mut self, job: &mut Job, range: ByteRange, answer: &Answer) -> Turn {
        let reply = match Reply::of(answer) {
            Ok(reply) => reply,
            // A refusal that its front end turned into a page, for instance.
            Err(Turn::Found(Found::Failed(failure))) => return Turn::Found(Found::Garbled(failure)),
            Err(Turn::Found(Found::Status(said))) => return Self::page(range, said),
            Err(turn) => return turn,
        };
        let last = range.end == job.size().as_end();
        match reply.status {
            0 if last => {
                if range.start == Offset::ZERO {
                    (job.session.stale, job.session.found) = (Offset::ZERO, Offset::ZERO);
                }
                Turn::Found(Found::Confirmed(range.end))
            }
            // Fewer bytes than it was promised are kept, and called transient: the size tells.
            0 => Turn::Found(Found::Uncertain),
            1 if !last && !reply.is_locked() => Turn::Found(Found::Uncertain),
            1 if reply.is_beyond() => {
                self.doubt = true;
                Turn::Found(Found::Uncertain)
            }
            _ => reply.refusal(),
        }
    }

    /// 5xx with a page: what the handler said is not in it. Where a wait is asked for, it is obeyed.
    fn page(range: ByteRange, said: Said) -> Turn {
        if said.code < 500 || said.retry_after.is_some() {
            return Turn::Found(Found::Status(said));
        }
        let Said { code, retry_after, text } = said;
        let (protocol, call) = (Protocol::Boinc, Call::Send(range));
        Turn::Found(Found::Garbled(UpFailure::Status { protocol, call, code, retry_after, said: text }))
    }

    fn finished(&mut self, job: &mut Job, answer: &Answer) -> Turn {
        match self.asked(job, answer) {
            Turn::Found(Found::Confirmed(at)) if at == job.size().as_end() => Turn::Found(Found::Complete(Proof::Size)),
            Turn::Found(Found::Confirmed(at)) if at < job.size().as_end() => self.fell_short(),
            other => other,
        }
    }

    /// Everything was taken, and not all of it is there. The size may lag behind, so it is asked once more a moment later,
    /// before anything is sent again; a handler that cannot write its file throws away what it takes, every time.
    fn fell_short(&mut self) -> Turn {
        self.short += 1;
        match self.short {
            1 => Turn::Found(Found::Busy),
            times => Turn::failed(UpFailure::NoGrowth { times }),
        }
    }
}

/// What is there before anything was sent is the file, for a name stands for one file here: nobody can compare it, so that it
/// is remembered.
fn note_found(job: &mut Job, at: Offset) {
    let untouched = job.session.reached == Offset::ZERO && at > job.session.stale;
    let found = if untouched { at } else { job.session.found };
    job.session.found = found.min(at).min(job.size().as_end());
}

impl UploadProtocol for Boinc {
    fn protocol(&self) -> Protocol {
        Protocol::Boinc
    }

    fn ways(&self, _: &Job) -> Ways {
        Ways {
            floor: FLOOR,
            cap: None,
            segments: true,
            empty: EmptyFile::Sent,
            foreign: Foreign::Welcome,
            backward: Backward::Follow,
        }
    }

    /// Its refusals are 200 as well.
    fn is_yes(&self, answer: &Answer) -> bool {
        Reply::of(answer).is_ok_and(|reply| reply.status == 0)
    }

    fn prepare(&mut self, job: &mut Job) -> Turn {
        if !message::can_carry(&job.name) {
            return Turn::failed(UpFailure::Unsupported { protocol: Protocol::Boinc, why: FoundAtServer::Name });
        }
        if job.size() > self.max_nbytes {
            let why = FoundAtServer::AtMost(self.max_nbytes);
            return Turn::failed(UpFailure::Unsupported { protocol: Protocol::Boinc, why });
        }
        let at_once = job.size() < ASK_FROM && job.session.reached == Offset::ZERO && job.session.stale == Offset::ZERO;
        Turn::Found(Found::Ready(at_once.then_some(Offset::ZERO)))
    }

    fn probe(&mut self, job: &mut Job) -> Turn {
        Self::query(job)
    }

    fn send(&mut self, job: &mut Job, range: ByteRange) -> Turn {
        Self::post(job, Body::Framed { before: self.head(job, range.start), range })
    }

    /// The head with the real size and offset, and no data: a refusal is then answered, and nothing changes.
    fn challenge(&mut self, job: &mut Job, range: ByteRange) -> Option<Turn> {
        (!range.is_empty()).then(|| Self::post(job, Body::Bytes(self.head(job, range.start))))
    }

    fn finish(&mut self, job: &mut Job) -> Turn {
        Self::query(job)
    }

    fn abandon(&mut self, _: &mut Job) -> Turn {
        Turn::Found(Found::Lost)
    }

    fn answered(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn {
        match call {
            Call::Send(range) => self.sent(job, range, answer),
            Call::Finish => self.finished(job, answer),
            Call::Challenge(_) => match Reply::of(answer) {
                Ok(reply) if reply.status == -1 => reply.refusal(),
                _ => Turn::Found(Found::Uncertain),
            },
            _ => self.asked(job, answer),
        }
    }

    fn digested(&mut self, _: &mut Job, _: Call, _: &Expected) -> Turn {
        Turn::Found(Found::Uncertain)
    }
}
