//! PersFileXfer: one file, one direction, over its whole life, as a machine.
//!
//! Design section 4; boinc.md 1.4 to 1.7 says what the fields mean to BOINC and where we depart from it. The engine feeds
//! [`PersFileXfer`] with [`Event`]s and carries out its [`Action`]s. What a failure means is decided in
//! [`crate::core::verdict`], which mirror is next in [`crate::core::mirrors`], how long to wait in
//! [`crate::core::backoff`]; here stands how these act together:
//!
//! | file | decides |
//! |---|---|
//! | `machine` | which event goes where, what is to be done next, and when to wake |
//! | `session` | what the events of a session change, and what its end means |
//! | `beside` | which other mirrors may be asked beside a session, and what they do |
//! | `waiting` | why and until when nothing is done; the failed pass |
//! | `upload` | what sessions of an upload leave, and which server is asked first |
//! | `named` | the mirrors that servers name |
//! | `life` | how a life ends, how another one begins, what people want |
//! | `sharing` | what other processes want of it |
//! | `view` | what is told to people |

mod beside;
mod life;
mod machine;
mod named;
pub mod options;
pub mod record;
mod rules;
mod session;
pub mod sharing;
#[cfg(test)]
mod tests;
mod upload;
mod view;
mod waiting;

pub use machine::PersFileXfer;
pub use rules::{LOCAL_AGAIN, OnLocalFault, PROGRESS, RESUME_AFTER, Rounds, Rules};
pub use view::View;

use std::path::PathBuf;

use crate::core::digest::Expected;
use crate::core::failure::{Failure, LocalFault};
use crate::core::file_xfer::dossier::Dossier;
use crate::core::file_xfer::{Freshness, Outcome};
use crate::core::pers_xfer::record::Finished;
use crate::core::range::Length;
use crate::core::time::Mono;
use crate::core::upload::{Persist, UploadSession};
use crate::core::url::{MirrorUrl, Origin};
use crate::core::verdict::Class;

/// What can happen to a transfer.
#[derive(Clone, Debug)]
pub enum Event {
    /// The moment of `wake_at` has come (or may have: the machine checks).
    Wake,
    /// The session it wished for has begun.
    Began,
    /// The host of the mirror it wished for must not be asked before this moment; nothing was tried, nothing counts.
    HostClosed {
        /// When it may be asked again.
        until: Mono,
    },
    /// This host is open again: what it was held back for is over.
    HostOpened(Origin),
    /// The running session learned something that a resume needs: to be stored before its bytes count.
    Learned(Box<Dossier>),
    /// The server has named the file: this is its path from now on.
    Named(PathBuf),
    /// The running session of an upload changed what is to be kept of it: to be stored as soon as it says.
    Kept(Box<UploadSession>, Persist),
    /// Bytes confirmed in the running session.
    Progress {
        /// Held now, in the draft that the session works on.
        held: Length,
    },
    /// Beside the running session, over another link, this mirror brought bytes of the file.
    Serves(MirrorUrl),
    /// Beside the running session, which goes on, this mirror failed.
    FailedBeside {
        /// Which.
        url: MirrorUrl,
        /// What happened.
        failure: Failure,
        /// The origin that answered, where one did.
        origin: Option<Origin>,
    },
    /// The running session ended.
    Ended(Box<Outcome>, Option<Finished>),
    /// The session could not begin, or something around it went wrong on this machine.
    Local(LocalFault),
    /// The URLs of the file, in order, as somebody now lists them: those already known keep their standing, those not
    /// listed stay behind them, and a new one is fresh activity that ends a wait. Positions in [`Action`]s change with it.
    Mirrors(Vec<MirrorUrl>),
    /// A server named these mirrors of the file that has this digest: they go behind all others.
    Duplicates {
        /// Of the whole file.
        digest: Expected,
        /// The best first.
        urls: Vec<MirrorUrl>,
    },
    /// A person wants it tried now; on a failed record: a new life.
    Retry,
    /// A person wants it to rest.
    Suspend,
    /// A person wants it to go on.
    Resume,
    /// A person wants it gone: it fails with BOINC's -197.
    Abort,
    /// Nothing can be tried (network down, process about to end) / can be again: the window does not run meanwhile.
    Paused,
    /// See [`Event::Paused`].
    Unpaused,
}

/// What a transfer wishes for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start a session with this mirror, as soon as there is a slot; answered by `Began`, `HostClosed` or `Local`.
    Start {
        /// Its position among the record's mirrors.
        mirror: usize,
        /// May a cache answer?
        freshness: Freshness,
    },
    /// Stop the running session, or drop the wish for one; a running one is answered by `Ended`, always: the transfer
    /// waits for it, because it tells what is held.
    Cancel,
    /// Drop every byte held, of both drafts: they are known to be wrong. The record's dossier holds none already.
    DropBytes,
    /// The record changed in a way that must reach the disk.
    Save(Urgency),
    /// For the user: a session failed.
    Failed {
        /// At which mirror.
        mirror: usize,
        /// What happened.
        failure: Failure,
        /// Its class.
        class: Class,
        /// The mirror is refused from now on.
        refused: bool,
    },
    /// Nothing more is done in this run: each mirror had its session (`--once`), its time has not come, or, with the
    /// fault, this machine is in trouble. The record says when it may go on. Only `Retry`, `Resume` and fresh mirrors
    /// wake it.
    Rest(Option<LocalFault>),
    /// The transfer is done, or failed for good: read the record's status. Emitted exactly once a life.
    Over,
}

/// How soon a record must be saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// With the next write, whenever that is.
    Later,
    /// Within this turn.
    Now,
}
