//! What is kept of an upload between two sessions with one server: one record a server, stored before the first byte of
//! the source goes out.

use std::fmt;

use super::MAX_LOST;
use super::pace::Pace;
use super::protocol::Protocol;
use super::source::Source;
use crate::core::range::{Length, Offset};
use crate::core::time::{Delay, Epoch};
use crate::core::url::MirrorUrl;
use crate::core::validator::ETag;

/// The record of an upload to one server.
///
/// It belongs to the server whose URL it names, whatever place that has in the list. Nothing in it is proof of what the
/// server holds: that is asked each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadSession {
    /// By which protocol.
    pub protocol: Protocol,
    /// The server's URL as the user gave it.
    pub server: MirrorUrl,
    /// What the server calls the session, where it has a name for it.
    pub handle: Option<Handle>,
    /// When it was begun.
    pub created: Epoch,
    /// When the server will forget it, if it said so.
    pub expires: Option<Epoch>,
    /// The source that it was begun with.
    pub source: Source,
    /// What the server confirmed last; to be shown, and to choose a server by.
    pub confirmed: Offset,
    /// So far bytes of the source can have left this machine: while a body is on its way its end, after it what was really
    /// handed to the connection. A server that claims more holds other bytes. Of a server that knows files only, it is
    /// noted after a body, and not before.
    pub reached: Offset,
    /// Of a server that takes parts: their size, the same for the whole session, and those it has confirmed.
    pub part_size: Option<Length>,
    /// The parts confirmed, by number.
    pub parts: Vec<Part>,
    /// What has been learned of bodies.
    pub pace: Pace,
    /// How far it is.
    pub phase: Phase,
    /// Sessions that the server forgot.
    pub lost: Lost,
    /// The whole was sent again because a digest did not agree.
    pub resent: bool,
    /// Where a server without sessions is to put the bytes.
    pub target: Target,
    /// At a server without sessions: what stood under the name and was not sent by this record, of this source, ended no later
    /// than here. A size up to this is evidence of nothing.
    pub stale: Offset,
    /// It counts as uploaded on the server's word alone, for what stood there before was no shorter: the size of the file then.
    pub found: Offset,
    /// Since when an upload may be there that nobody knows the name of: it was asked for, and the answer was not heard.
    pub creating: Option<Epoch>,
}

/// What a server calls a session. Whoever knows it can write to it: it is stored, and shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub enum Handle {
    /// A URL.
    Url(MirrorUrl),
    /// A word.
    Id(String),
}

/// A part that a server has confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 1.
    pub number: u32,
    /// Its size.
    pub size: Length,
    /// The server's tag for it, as sent.
    pub etag: String,
}

/// How far an upload is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Bytes are being sent.
    #[default]
    Sending,
    /// The closing request was sent, and perhaps its answer was lost.
    Finishing,
}

/// Sessions that a server forgot lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// How many.
    pub times: u32,
    /// Since when they are counted: a day.
    pub since: Epoch,
}

/// Where the bytes go at a server that only knows files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The temporary name; `None` for the final one.
    pub temporary: Option<MirrorUrl>,
    /// What stood under the final name before; `None` while that has not been asked.
    pub before: Option<Before>,
    /// The server refused a temporary name, or to move it.
    pub direct: bool,
    /// Can it append?
    pub ranges: RangesHere,
    /// A body that was to be appended broke off: whether the pieces fit must be shown by reading all of it back.
    pub cut_within: bool,
}

/// What stood under a name before something was sent there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Before {
    /// Nothing.
    Nothing,
    /// A file.
    File {
        /// Its size, where it was told.
        size: Option<Length>,
        /// Its tag, where there was one.
        etag: Option<ETag>,
        /// Last-Modified, where there was one.
        modified: Option<Epoch>,
    },
    /// The server does not say.
    Untold,
}

/// Does a server honour Content-Range in a request?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RangesHere {
    /// Not tried.
    #[default]
    Unknown,
    /// It passed the trial.
    Proven,
    /// It refuses or, worse, ignores it.
    Broken,
}

impl UploadSession {
    /// A new one, of which the server knows nothing yet.
    pub fn new(protocol: Protocol, server: MirrorUrl, source: Source, now: Epoch) -> Self {
        Self {
            protocol,
            server,
            handle: None,
            created: now,
            expires: None,
            source,
            confirmed: Offset::ZERO,
            reached: Offset::ZERO,
            part_size: None,
            parts: Vec::new(),
            pace: Pace::default(),
            phase: Phase::Sending,
            lost: Lost::default(),
            resent: false,
            target: Target::default(),
            stale: Offset::ZERO,
            found: Offset::ZERO,
            creating: None,
        }
    }

    /// The URL of the session, where it has one.
    pub fn url(&self) -> Option<&MirrorUrl> {
        match &self.handle {
            Some(Handle::Url(url)) => Some(url),
            _ => None,
        }
    }

    /// Begins anew at the same server: what was learned of the server stays, what it held does not count.
    pub(super) fn restart(&mut self, source: Source, now: Epoch) {
        let fresh = Self::new(self.protocol, self.server.clone(), source, now);
        // Under the same temporary name, as long as it is the same source: another would leave there what is there.
        let temporary = self.target.temporary.clone().filter(|_| !self.target.direct);
        let target = Target { temporary, direct: self.target.direct, ranges: self.target.ranges, ..Target::default() };
        let old = std::mem::replace(self, fresh);
        self.stale = old.stale.max(old.reached).max(old.confirmed);
        (self.pace, self.lost, self.resent, self.target) = (old.pace, old.lost, old.resent, target);
        self.creating = old.creating;
    }

    /// Its time has come, as far as the server's word goes.
    pub fn is_past(&self, now: Epoch) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }
}

impl Lost {
    /// One more. `false` where there have been too many within a day.
    #[must_use]
    pub(super) fn another(&mut self, now: Epoch) -> bool {
        if self.times == 0 || now.since(self.since) > Delay::from_days(1) || self.since > now {
            *self = Self { times: 0, since: now };
        }
        self.times += 1;
        self.times <= MAX_LOST
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Url(_) => "Url(***)",
            Self::Id(_) => "Id(***)",
        })
    }
}
