//! `boinc`: the protocol of BOINC's file_upload_handler.
//!
//! A size query tells how much the server holds, an upload carries the rest behind a head of lines that are never
//! closed, and a request without data tells a refusal that a hung-up connection hides.
//!
//! What stands under the name and was not sent by this record, of this very source, is never appended to: it is written over
//! from the start, which the handler accepts. Up to where it reached, a size then says nothing of the new bytes, and only the
//! handler's own word for a body counts.

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
    /// In this session the server told less than the file has, or, of a small file, was not asked: so the right size in the end
    /// says something.
    pub grows: bool,
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
        Self { signature, max_nbytes, md5: None, surplus: Surplus::default(), doubt: false, short: 0, grows: false }
    }

    /// The head of a body that begins there, of a file of `nbytes`.
    fn head(&self, job: &Job, offset: Offset, nbytes: Length) -> Vec<u8> {
        let (signature, md5) = (self.signature.as_deref(), self.md5.as_deref());
        let head = Head { name: &job.name, signature, max_nbytes: self.max_nbytes, nbytes, md5, offset };
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

    /// The size that the answer to a size query tells.
    fn told(&self, job: &Job, answer: &Answer) -> Result<Offset, Turn> {
        let reply = Reply::of(answer)?;
        match (reply.status, reply.file_size) {
            (0, Some(told)) => Ok(self.meant(job, told)),
            _ => Err(reply.refusal()),
        }
    }

    /// What of the bytes that stand there is ours.
    fn held(&mut self, job: &mut Job, at: Offset) -> Turn {
        let size = job.size();
        self.grows |= at < size.as_end();
        if at > size.as_end() {
            return self.surplus(job, at);
        }
        let session = &mut job.session;
        let ours = match at {
            // Somebody else wrote there, or it stood there before.
            _ if at > session.reached.max(session.stale) => {
                session.stale = at;
                Offset::ZERO
            }
            // It has grown beyond what stood there: written from the start, in order, by us.
            _ if at > session.stale => at,
            // Confirmed body by body, by status.
            _ if at >= session.confirmed => session.confirmed,
            _ => Offset::ZERO,
        };
        Turn::Found(Found::Confirmed(ours))
    }

    /// More stands there than the file has: another file, or, where the user says so, this one. One that is known to be an older
    /// version's never counts.
    fn surplus(&self, job: &mut Job, at: Offset) -> Turn {
        let size = job.size();
        if self.surplus == Surplus::Done && job.session.stale <= size.as_end() {
            job.session.found = size.as_end();
            return Turn::Found(Found::Complete(Proof::Status));
        }
        Turn::failed(UpFailure::Conflict { told: at.as_length(), ours: size })
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
        let last = range.end == promised(job, range).as_end();
        match reply.status {
            0 if last => Turn::Found(Found::Confirmed(range.end)),
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
        let size = job.size().as_end();
        match self.told(job, answer) {
            Ok(at) if at < size => self.fell_short(),
            Ok(at) if at > size => self.surplus(job, at),
            // A file of this size stood there before: that the size is right says nothing, and the handler's word has to do.
            Ok(_) if job.session.stale >= size && !self.grows => {
                job.session.found = size;
                Turn::Found(Found::Complete(Proof::Status))
            }
            Ok(_) => Turn::Found(Found::Complete(Proof::Size)),
            Err(turn) => turn,
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

/// The size of the file that a body's head tells. Over what stood there before no later size shows whether a part of the file
/// has arrived, so that each body is a file of its own: the handler then says of each that all of it was taken.
fn promised(job: &Job, range: ByteRange) -> Length {
    if job.session.stale > range.start { range.end.as_length() } else { job.size() }
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
        let fresh = job.session.reached == Offset::ZERO && job.session.stale == Offset::ZERO;
        if !fresh || job.size() >= ASK_FROM {
            return Turn::Found(Found::Ready(None));
        }
        self.grows = true;
        // Where the answer is lost, what stands there then may have stood there before.
        job.session.stale = job.size().as_end();
        Turn::Found(Found::Ready(Some(Offset::ZERO)))
    }

    fn probe(&mut self, job: &mut Job) -> Turn {
        Self::query(job)
    }

    fn send(&mut self, job: &mut Job, range: ByteRange) -> Turn {
        Self::post(job, Body::Framed { before: self.head(job, range.start, promised(job, range)), range })
    }

    /// The head with the real size and offset, and no data: a refusal is then answered, and nothing changes.
    fn challenge(&mut self, job: &mut Job, range: ByteRange) -> Option<Turn> {
        (!range.is_empty()).then(|| Self::post(job, Body::Bytes(self.head(job, range.start, job.size()))))
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
            _ => self.told(job, answer).map_or_else(|turn| turn, |at| self.held(job, at)),
        }
    }

    fn digested(&mut self, _: &mut Job, _: Call, _: &Expected) -> Turn {
        Turn::Found(Found::Uncertain)
    }
}
