//! Runs one upload session on a lane: the machine says what to do next, this carries it out on the network and on the file
//! that is sent, and says what came of it. It decides nothing. The file is only ever read.

mod aside;
mod ask;
mod session;
mod source;

use std::path::PathBuf;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::core::digest::Algorithm;
use crate::core::failure::Failure;
use crate::core::file_xfer::{End, Timeouts};
use crate::core::pers_xfer::record::{Evidence, Finished, Placed};
use crate::core::range::{Length, Offset};
use crate::core::time::Epoch;
use crate::core::upload::{ABANDON_PATIENCE, Persist, Proof, Protocol, UpEnd, UploadProtocol, UploadSession};
use crate::core::url::{MirrorUrl, Origin};
use crate::io::clock::Clock;
use crate::io::transport::{Credentials, Throttle, Uplink};
use session::Session;

pub use source::{Known, digest_of_file, identity_of};

/// What a session is to do, and with what.
#[derive(Debug)]
pub struct Orders {
    /// How to speak.
    pub protocol: Box<dyn UploadProtocol>,
    /// To whom.
    pub server: MirrorUrl,
    /// The origin of the transfer's first URL.
    pub first_origin: Origin,
    /// What was kept of the last session there.
    pub saved: Option<UploadSession>,
    /// The file.
    pub path: PathBuf,
    /// The file as an earlier session of this process knew it.
    pub known: Option<Known>,
    /// By which digest the file is known again, where one is taken before it is sent; else one is taken meanwhile.
    pub identity: Option<Algorithm>,
    /// The name that it is to have at the server.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// A file up to this size is read back and compared where the server names no digest.
    pub read_back: Length,
    /// At any server of the transfer, bytes of an older version of the file may stand up to here.
    pub stale: Offset,
    /// How patient to be.
    pub timeouts: Timeouts,
}

/// What the sessions of one lane share.
#[derive(Clone, Debug)]
pub struct Hands {
    /// Connections.
    pub uplink: Uplink,
    /// The user's headers.
    pub credentials: Credentials,
    /// The rate limit.
    pub throttle: Option<Throttle>,
    /// The clocks.
    pub clock: Clock,
    /// A random word, fit for a name.
    pub token: String,
}

/// What a running session tells.
#[derive(Debug)]
pub enum Tell {
    /// What is kept of it changed.
    Kept {
        /// As it is now.
        session: Box<UploadSession>,
        /// How soon it must be on disk.
        persist: Persist,
        /// To be told once it is.
        stored: Option<oneshot::Sender<()>>,
    },
    /// The file has been handed to the network up to here; nothing says that it has arrived.
    Sending(Length),
    /// The file is being read for a digest.
    Verifying,
    /// For the user: something that is no failure.
    Remark(String),
}

/// How a session closed.
#[derive(Debug)]
pub struct Closed {
    /// How it ended.
    pub end: End,
    /// What was sent, where all of it is at the server.
    pub finished: Option<Finished>,
    /// The file as it is known now.
    pub known: Option<Known>,
    /// Bytes of bodies that went out.
    pub sent: Length,
}

/// Runs one session to its end, or until `stop`; what a resume needs has been told when it returns.
pub async fn run(orders: Orders, hands: Hands, tell: Box<dyn Fn(Tell)>, stop: CancellationToken) -> Closed {
    let path = orders.path.display().to_string();
    let clock = hands.clock.clone();
    let mut session = match Session::open(orders, hands, tell, stop).await {
        Ok(session) => session,
        Err(end) => return Closed { end, finished: None, known: None, sent: Length::ZERO },
    };
    let end = session.drive().await;
    session.close(end, &path, clock.now().wall)
}

/// Cleans up what a session left at its server, as well as can be, within [`ABANDON_PATIENCE`].
pub async fn abandon(orders: Orders, hands: Hands) -> Cleaned {
    let stop = CancellationToken::new();
    let server = orders.server.clone();
    let protocol = orders.protocol.protocol();
    let mut session = Session::to_clean_up(orders, hands, stop);
    let done = tokio::time::timeout(ABANDON_PATIENCE.as_std(), session.clean_up()).await;
    let how = match done {
        Ok(UpEnd::NotAbandoned(failure)) => Cleanup::Refused(failure.to_string()),
        Ok(_) => Cleanup::Done,
        Err(_) => Cleanup::OutOfTime,
    };
    Cleaned { server, protocol, how }
}

/// What came of cleaning up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleaned {
    /// The server.
    pub server: MirrorUrl,
    /// By which protocol.
    pub protocol: Protocol,
    /// How.
    pub how: Cleanup,
}

/// How cleaning up went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cleanup {
    /// The server says so, or the protocol has no way to ask.
    Done,
    /// It said no, or nothing: why.
    Refused(String),
    /// The server did not answer in time.
    OutOfTime,
}

/// What says that the server has the whole file, in the words of evidence.
const fn evidence_of(proof: Proof) -> Evidence {
    match proof {
        Proof::Digest(_) => Evidence::Digest,
        Proof::Size => Evidence::Length,
        Proof::Status => Evidence::None,
    }
}

/// How a session ended, in the words of all sessions.
fn end_of(end: UpEnd, path: &str) -> End {
    match end {
        UpEnd::Stored { confirmed } => End::Complete { evidence: evidence_of(confirmed) },
        UpEnd::Failed(failure) => End::Failed(failure.into_failure(path)),
        UpEnd::Stopped | UpEnd::Abandoned | UpEnd::NotAbandoned(_) => End::Cancelled,
    }
}

/// The file that a server has now.
fn finished_of(end: &UpEnd, session: &UploadSession, inode: u64, at: Epoch) -> Option<Finished> {
    let UpEnd::Stored { confirmed } = end else { return None };
    let stamp = session.source.stamp;
    let server_digest = if let Proof::Digest(algorithm) = confirmed { Some(*algorithm) } else { None };
    let evidence = evidence_of(*confirmed);
    let placed = Some(Placed {
        server: session.server.clone(),
        found: session.found.as_length(),
        ctime_ns: session.source.mark.map(|mark| mark.ctime_ns),
        digest: session.source.digest.clone(),
    });
    Some(Finished { at, evidence, size: stamp.size, mtime_ns: stamp.mtime_ns, inode, server_digest, placed })
}

/// Trouble with the file before anything was sent.
fn local(fault: crate::core::failure::LocalFault) -> End {
    End::Failed(Failure::Local(fault))
}
