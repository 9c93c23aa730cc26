//! What a protocol is asked and what it finds.

use super::ask::{Answer, Ask};
use super::failure::UpFailure;
use super::options::ReadBack;
use super::session::UploadSession;
use super::source::Source;
use crate::core::digest::Algorithm;
use crate::core::range::{ByteRange, Length, Offset};
use crate::core::time::{Delay, Epoch};
use crate::core::url::MirrorUrl;

/// The calls to a protocol. Each may take several requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Make the server ready, or take up what is there.
    Prepare,
    /// Ask how much it holds. No request of this call has a byte of the source.
    Probe,
    /// Send this range.
    Send(ByteRange),
    /// Ask, without a byte of the source, whether it would take this range at all.
    Challenge(ByteRange),
    /// Every byte is there: close, publish, verify.
    Finish,
    /// Clean up.
    Abandon,
}

/// What a protocol wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Send this, and hand in the answer.
    Ask(Box<Ask>),
    /// Compute this digest of a range of the source, and hand it in.
    Digest {
        /// Of which bytes.
        range: ByteRange,
        /// By which algorithm.
        algorithm: Algorithm,
    },
    /// The call is over.
    Found(Found),
}

/// What a call found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The server is ready; what it holds is known, or must be asked.
    Ready(Option<Offset>),
    /// It holds the bytes before this.
    Confirmed(Offset),
    /// The answer tells nothing about what it holds.
    Uncertain,
    /// The answer to a body is none of the protocol's: as good as none, and this is the failure if nothing has grown.
    Garbled(UpFailure),
    /// It has the whole, and this is what says so.
    Complete(Proof),
    /// It does not know the session any more.
    Lost,
    /// What it has is to be left alone, and everything sent again in another way.
    Anew,
    /// A status that this protocol has no use for: the table decides.
    Status(Said),
    /// Somebody else's request holds the upload.
    Busy,
    /// It ended badly.
    Failed(UpFailure),
}

/// A refusal, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The status code.
    pub code: u16,
    /// A Retry-After that could be read.
    pub retry_after: Option<Delay>,
    /// What the body said, made printable.
    pub text: String,
}

impl Said {
    /// What an answer says.
    pub fn of(answer: &Answer) -> Self {
        Self { code: answer.status, retry_after: answer.retry_after, text: answer.said() }
    }
}

/// What says that the server has the whole file, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A digest of what it stored, equal to that of the source.
    Digest(Algorithm),
    /// It said, asked on its own, that it holds as many bytes as the source has, each sent in order.
    Size,
    /// It said so in answer to the last request, and cannot be asked.
    Status,
}

/// What a protocol may see and change.
#[derive(Clone, Debug)]
pub struct Job {
    /// The name that the file is to have at the server, where the protocol has a word for it.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// The source as it is now.
    pub source: Source,
    /// The record.
    pub session: UploadSession,
    /// The wall clock of this turn.
    pub now: Epoch,
    /// A random word, fit for a name, drawn for this session with the server.
    pub token: String,
    /// A file up to this size is read back and compared where the server names no digest.
    pub read_back: Length,
}

impl Job {
    /// Nothing counts that was not read back and compared, or is not vouched for by a digest.
    pub(super) fn demands_reading(&self) -> bool {
        self.read_back == ReadBack::Always.up_to()
    }

    /// The size of the source.
    pub fn size(&self) -> Length {
        self.source.stamp.size
    }

    /// The server's URL as the user gave it.
    pub fn server(&self) -> &MirrorUrl {
        &self.session.server
    }
}

impl Turn {
    /// Send this.
    pub fn ask(ask: Ask) -> Self {
        Self::Ask(Box::new(ask))
    }

    /// The table decides about this answer.
    pub fn status(answer: &Answer) -> Self {
        Self::Found(Found::Status(Said::of(answer)))
    }

    /// It ended badly.
    pub fn failed(failure: UpFailure) -> Self {
        Self::Found(Found::Failed(failure))
    }
}
