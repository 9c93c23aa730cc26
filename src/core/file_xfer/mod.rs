//! FileXfer: one session with one mirror, as a machine.
//!
//! The driver (`io::driver`) carries out one [`Step`] at a time and answers with what came of it; the rules are those of
//! design section 3: which request to send, what an answer's head means, which bytes are compared and which appended,
//! and how the session ends.

mod asking;
mod beside;
mod body;
mod concord;
pub mod dossier;
pub mod head;
mod judge;
pub mod link;
mod machine;
mod said;
#[cfg(test)]
pub(super) mod tests;
pub mod vouch;

pub use beside::{BesideEnd, Split};
pub use concord::Contradiction;
pub use head::{AnswerHead, Framing, is_html_type};
pub use machine::FileXfer;
pub use said::Saying;

use crate::core::digest::Expected;
use crate::core::failure::Failure;
use crate::core::file_xfer::dossier::{Dossier, Draft};
use crate::core::pers_xfer::record::Evidence;
use crate::core::range::{ByteRange, Length, Offset, range_from, range_of};
use crate::core::time::Delay;
use crate::core::url::{MirrorUrl, Origin};

/// How much of the tail held is asked for again and compared (design 3.3).
pub const OVERLAP: Length = Length(64 << 10);

/// How far the comparison steps back when the tail differs although the validator does not (design 3.3).
pub const STEPS_BACK: [Length; 4] = [Length(64 << 10), Length(1 << 20), Length(16 << 20), Length(256 << 20)];

/// Up to so many versions of a file that changes are begun in one life (design 3.3).
pub const MAX_CHANGES: u32 = 8;

/// Redirects followed in one session (design 3.11).
pub const MAX_REDIRECTS: u32 = 20;

/// Which of a download's two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The part file.
    Part,
    /// The second part file, of a newer version.
    Rival,
}

impl Place {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Part => Self::Rival,
            Self::Rival => Self::Part,
        }
    }
}

/// A request that the driver is to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Where to.
    pub url: MirrorUrl,
    /// Which credentials may go along.
    pub carry: Carry,
    /// `Range: bytes=N-`, or `bytes=N-M` where the end is given.
    pub range: Option<Wanted>,
    /// The text of If-Range.
    pub if_range: Option<String>,
    /// If-None-Match or If-Modified-Since: only where the finished file is asked for again.
    pub unless: Option<Unless>,
    /// `Cache-Control: no-cache`.
    pub freshness: Freshness,
}

/// A range to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The first byte.
    pub from: Offset,
    /// One beyond the last byte; `None` for all the rest.
    pub to: Option<Offset>,
}

impl Wanted {
    /// The text of the Range field (RFC 9110 14.2).
    pub fn text(self) -> String {
        let part = self.to.and_then(|to| range_of(ByteRange::new(self.from, to)));
        part.unwrap_or_else(|| range_from(self.from))
    }
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
    /// A mirror that a server named, and wherever that redirects: nothing of the user's, trusted locations or not.
    Never,
}

/// Who named a mirror.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NamedBy {
    /// The user.
    #[default]
    User,
    /// A server (`Link: rel=duplicate`).
    Server,
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

/// What a session is to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where it starts: the mirror's own URL, every time.
    pub url: MirrorUrl,
    /// The origin of the transfer's first URL, whose credentials the user gave.
    pub first_origin: Origin,
    /// Who named the mirror.
    pub named_by: NamedBy,
    /// What is known; `held` as the files really hold it.
    pub dossier: Dossier,
    /// Where the comparison starts: at the last informative block held.
    pub proof: Proof,
    /// Where the rest of the part file is to be asked for only up to here: others will fetch what lies behind, or it is held.
    pub until: Option<Offset>,
    /// One random earlier block to compare first, where no strong validator speaks for the bytes held.
    pub probe: Option<ByteRange>,
    /// What that block proves.
    pub probe_weight: Weight,
    /// Is there a digest that will have the last word?
    pub digest: LastWord,
    /// Is there a digest, of the whole or of pieces, that judges the bytes of several origins together?
    pub judge: LastWord,
    /// The strongest of such digests, where that proves the whole.
    pub law: Option<Expected>,
    /// Are there other mirrors, so that an odd one can be dropped?
    pub company: Company,
    /// May a cache answer?
    pub freshness: Freshness,
    /// The validators of the finished file, where the server is only asked whether it is still the one.
    pub revalidate: Option<Draft>,
    /// Codings that a file of this very ending is stored in, as sent (`.gz`: gzip).
    pub stored_codings: &'static [&'static str],
    /// The largest size allowed.
    pub max_filesize: Option<Length>,
    /// The size that the file must have.
    pub expected: Option<Length>,
    /// What a metalink is that comes as an answer.
    pub metalink: MetalinkIs,
}

/// What a body is that says to be a metalink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetalinkIs {
    /// The file that was asked for.
    TheFile,
    /// A list of mirrors in its place, as mirror directors send it.
    InItsPlace,
}

impl MetalinkIs {
    /// By the names of the file, on the server and here: one with the ending of another kind of file asks for that.
    pub fn of_names(names: &[&str]) -> Self {
        let endings = || names.iter().filter_map(|n| n.rsplit_once('.')).filter(|(stem, _)| !stem.is_empty());
        let is_list = |ending: &str| ["meta4", "metalink", "xml"].iter().any(|e| ending.eq_ignore_ascii_case(e));
        let asked = endings().next().is_none() || endings().any(|(_, ending)| is_list(ending));
        if asked { Self::TheFile } else { Self::InItsPlace }
    }
}

/// How long one session may be patient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For the first byte of an answer.
    pub first_byte: Delay,
    /// How long the body may stay below `stall_rate`.
    pub stall: Delay,
    /// The least rate, bytes per second.
    pub stall_rate: u64,
}

/// The codings in which a file of this name is stored as sent: those that its ending is (design 3.1).
pub fn codings_of_name(name: &str) -> &'static [&'static str] {
    let ending = name.rsplit_once('.').map(|(_, e)| e.to_ascii_lowercase());
    match ending.as_deref() {
        Some("gz" | "tgz" | "gzip") => &["gzip", "x-gzip"],
        Some("br") => &["br"],
        Some("zst" | "tzst") => &["zstd"],
        Some("z" | "taz") => &["compress", "x-compress"],
        _ => &[],
    }
}

/// From where on each draft's tail is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// In the part file.
    pub part: Offset,
    /// In the second part file.
    pub rival: Offset,
    /// What equal bytes there prove.
    pub weight: Weight,
}

/// What an equal block proves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// That the files are one, as far as a comparison goes.
    #[default]
    Informative,
    /// Nothing: it is one byte repeated, as in too many files.
    Constant,
}

/// Does a digest of the whole decide in the end?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastWord {
    /// One is known.
    Digest,
    /// None is: every joint must be proven.
    Joints,
}

/// Is there another mirror that may still be asked?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// Only this one.
    Alone,
    /// Others too.
    Others,
}

/// What the driver does next: the file operations in order, then the move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// On the part files, in this order.
    pub ops: Vec<FileOp>,
    /// Then this.
    pub next: Next,
}

/// The move after the file operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Drop the open answer, if any, and send this; answered by [`Event::Answer`] or [`Event::Broke`].
    Ask(Ask),
    /// Read the open answer's body on, under this plan; answered by any body event.
    Receive(Receive),
    /// The draft in this place is whole: verify it, publish it.
    Finish {
        /// Which draft.
        place: Place,
        /// What it rests on, should no digest be known.
        evidence: Evidence,
    },
    /// The server still has the finished file.
    Unchanged,
    /// The session failed.
    Fail(Failure),
}

/// An operation on the part files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOp {
    /// Cut this draft to a length.
    Cut(Place, Offset),
    /// Begin the rival as a copy of the part's first bytes; an older rival goes.
    Fork(Offset),
    /// The rival takes the part's place.
    Promote,
    /// The rival goes.
    DropRival,
}

/// How a body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// The draft that it is compared with and appended to.
    pub place: Place,
    /// The position in the file of the next byte of the body.
    pub at: Offset,
    /// Bytes before this position are compared with those held, the others appended.
    pub compare_until: Offset,
    /// Bytes from here on are not ours.
    pub end: Option<Offset>,
}

/// What came of a step.
#[derive(Clone, Debug)]
pub enum Event {
    /// An answer began.
    Answer(Box<AnswerHead>),
    /// Every byte to compare was equal; answered by [`Next::Receive`] with the same plan, or another move.
    Joined,
    /// The body differs from what is held, first at this position; the answer is still open there.
    Differs(Offset),
    /// The body came to its framed end at this position, or to [`Receive::end`].
    Ended(Offset),
    /// The request brought no answer, or the body broke off at this position.
    Broke(Offset, Failure),
}
