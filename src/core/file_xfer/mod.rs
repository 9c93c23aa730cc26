//! FileXfer: one session with one mirror, as a machine.
//!
//! The driver (`io::driver`) carries out one [`Step`] at a time and answers with what came of it; the rules are those of
//! design section 3: which request to send, what an answer's head means, which bytes are compared and which appended,
//! and how the session ends.

pub mod dossier;

use crate::core::failure::Failure;
use crate::core::file_xfer::dossier::Dossier;
use crate::core::pers_xfer::record::Evidence;
use crate::core::range::Offset;
use crate::core::url::{MirrorUrl, Origin};

/// Which of a download's two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The part file.
    Part,
    /// The second part file, of a newer version.
    Rival,
}

/// A request that the driver is to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Where to.
    pub url: MirrorUrl,
    /// Which credentials may go along.
    pub carry: Carry,
    /// `Range: bytes=N-`.
    pub from: Option<Offset>,
    /// The text of If-Range.
    pub if_range: Option<String>,
    /// If-None-Match or If-Modified-Since: only where the finished file is asked for again.
    pub unless: Option<Unless>,
    /// `Cache-Control: no-cache`.
    pub freshness: Freshness,
}

/// What a hop may carry of the user's headers and credentials (design 3.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carry {
    /// A URL that was typed, on the first origin: every header, Authorization, Cookie, `-u`.
    Everything,
    /// A URL that was typed, on another origin: the headers without credentials.
    Headers,
    /// Another origin, reached by redirect: nothing of the user's.
    Nothing,
}

/// A condition under which the server need not send the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unless {
    /// If-None-Match with this text.
    Match(String),
    /// If-Modified-Since with this text.
    ModifiedSince(String),
}

/// May a cache on the way answer?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freshness {
    /// It may.
    #[default]
    CacheAllowed,
    /// Only the origin server may.
    NoCache,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Where the dossier stands now; its `part.held` and `rival.held` are what the files hold.
    pub dossier: Dossier,
    /// The origin that answered last, where one did.
    pub origin: Option<Origin>,
    /// The result.
    pub end: End,
}

/// The result of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Every byte is here, verified where a digest is known, and the file stands under its final name.
    Complete {
        /// On what evidence.
        evidence: Evidence,
    },
    /// The finished file of an earlier life is still what the server has.
    Unchanged,
    /// It failed.
    Failed(Failure),
    /// It was told to stop; what is held is on disk.
    Cancelled,
}
