//! What a protocol of uploads must be able to do.

use std::fmt;

use super::ask::{Answer, Interim};
use super::found::{Call, Job, Turn};
use super::session::UploadSession;
use crate::core::digest::Expected;
use crate::core::range::{ByteRange, Length};
use crate::core::url::MirrorUrl;

/// The protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// BOINC's file_upload_handler.
    Boinc,
    /// One PUT.
    Put,
    /// PUT with Content-Range.
    PutRange,
    /// tus 1.0.
    Tus,
    /// Resumable uploads of the IETF.
    Ietf,
    /// Object stores that speak S3.
    S3,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Boinc, Self::Put, Self::PutRange, Self::Tus, Self::Ietf, Self::S3];

    /// Its name, as users write it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Boinc => "boinc",
            Self::Put => "put",
            Self::PutRange => "put-range",
            Self::Tus => "tus",
            Self::Ietf => "ietf",
            Self::S3 => "s3",
        }
    }

    /// The protocol of a server of which nothing else was said: BOINC's handler is known by its name, and what everybody
    /// else understands is one PUT.
    pub fn of_url(url: &MirrorUrl) -> Self {
        if url.secret_url().path().contains("file_upload_handler") { Self::Boinc } else { Self::Put }
    }

    /// The protocol of that name.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.word() == word)
    }
}

/// What the machine must know of a protocol, with this server, now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// Bodies are not cut smaller than this.
    pub floor: Length,
    /// Nor are they longer; `None` for no limit known.
    pub cap: Option<Length>,
    /// Can a body end before the file does?
    pub segments: bool,
    /// A file without bytes.
    pub empty: EmptyFile,
    /// Offsets beyond everything sent.
    pub foreign: Foreign,
    /// Offsets below those confirmed before.
    pub backward: Backward,
}

/// What makes a file without bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyFile {
    /// A body without bytes.
    Sent,
    /// Preparing and finishing are enough.
    Prepared,
}

/// What a server means that holds more than was sent by this session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// The file may have come by another way: several servers share a store.
    Welcome,
    /// The upload is not ours.
    Alien,
    /// Whatever it holds is compared by digests before it counts.
    Proven,
    /// It knows files only, and their sizes: one that the whole was not sent for says nothing.
    Unproven,
}

/// What a server means that holds less than it confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backward {
    /// It lost bytes; they are sent again.
    Follow,
    /// The upload is void.
    Void,
}

/// Who follows redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirects {
    /// The machine, which sends the same request again.
    Followed,
    /// The protocol: its requests are valid only where they were meant to go.
    Told,
}

/// What of the user's goes along with requests: fields, cookies, logins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// All of it, where it may go.
    Users,
    /// Nothing: a signature says who asks, and what it does not cover can void it.
    Nothing,
}

/// One kind of server. Pure: each call leaves one thing to do at a time, and `answered` takes what came of it.
///
/// The machine sees to it that `probe` comes after every body whose answer was lost, so that an implementation never
/// sends on a guess. What an implementation keeps beside the record in [`Job`] is for one call only.
pub trait UploadProtocol: fmt::Debug + Send {
    /// Which it is.
    fn protocol(&self) -> Protocol;

    /// What the machine must know of it.
    fn ways(&self, job: &Job) -> Ways;

    /// Who follows redirects.
    fn redirects(&self) -> Redirects {
        Redirects::Followed
    }

    /// What of the user's goes along.
    fn carries(&self) -> Carries {
        Carries::Users
    }

    /// Does an answer say that what was asked for is done?
    fn is_yes(&self, answer: &Answer) -> bool {
        answer.is_success()
    }

    /// Would the server tell again what the record has now and did not have when it was `kept` last? Then a record that is
    /// lost with the process costs nothing, and need not be on disk before the next request.
    fn tells_again(&self, _kept: &UploadSession, _now: &UploadSession) -> bool {
        false
    }

    /// Makes the server ready, or takes up the session of the record. Ends with [`super::Found::Ready`].
    fn prepare(&mut self, job: &mut Job) -> Turn;

    /// Asks what the server holds, without a body.
    fn probe(&mut self, job: &mut Job) -> Turn;

    /// Sends a range, which begins where the server stands. It is empty only for a file without bytes.
    fn send(&mut self, job: &mut Job, range: ByteRange) -> Turn;

    /// Would it take this range at all? Asked after bodies that died without an answer. `None` where there is no way to
    /// ask.
    fn challenge(&mut self, _job: &mut Job, _range: ByteRange) -> Option<Turn> {
        None
    }

    /// Closes, publishes and verifies. Ends with [`super::Found::Complete`].
    fn finish(&mut self, job: &mut Job) -> Turn;

    /// Cleans up, as well as can be. Every end of this call is as good as any other.
    fn abandon(&mut self, job: &mut Job) -> Turn;

    /// An informational answer came.
    fn informed(&mut self, _job: &mut Job, _interim: &Interim) {}

    /// The answer to what the call asked.
    fn answered(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn;

    /// The digest that the call wanted. Only those that ask for one are given one.
    fn digested(&mut self, job: &mut Job, call: Call, digest: &Expected) -> Turn;
}
