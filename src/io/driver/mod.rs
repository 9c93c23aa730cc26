//! Driver: runs one FileXfer on a lane. The machine says what to do next; this carries it out on the network and on the
//! part files, and says what came of it. It decides nothing.

mod content;
mod described;
mod exchange;
mod fan;
mod finish;
mod intact;
mod receive;
pub mod report;
mod session;
mod trace;
pub mod upload;
mod vouched;

use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

use crate::core::digest::{Expected, Pieces};
use crate::core::failure::{Failure, LocalFault};
use crate::core::file_xfer::dossier::{Dossier, Draft};
use crate::core::file_xfer::vouch::NamedMirrors;
use crate::core::file_xfer::{Company, End, Freshness, LastWord, NamedBy, Outcome, Place, Timeouts};
pub use crate::core::pers_xfer::options::Mtime;
use crate::core::pers_xfer::record::{Evidence, Finished};
use crate::core::range::Length;
use crate::core::segments::Cuts;
use crate::core::time::Mono;
use crate::core::url::{MirrorUrl, Origin};
use crate::io::clock::Clock;
use crate::io::part::{Clobber, PartStore, Spec};
use crate::io::transport::{Client, Credentials, Throttle};
use intact::Ready;
use session::Session;
use vouched::adopt_law;

/// What a session is to do, and with what.
#[derive(Debug)]
pub struct Orders {
    /// The mirror.
    pub url: MirrorUrl,
    /// Where a server named the mirror: with which digest of the whole.
    pub named_with: Option<Expected>,
    /// The origin of the transfer's first URL.
    pub first_origin: Origin,
    /// What is known.
    pub dossier: Dossier,
    /// Where the file goes.
    pub home: Home,
    /// The part files, where an earlier session has opened them.
    pub store: Option<PartStore>,
    /// What makes a whole file a finished one.
    pub terms: Terms,
    /// Are there other mirrors?
    pub company: Company,
    /// Are there others that can be asked now, and have not failed yet? Then this one is not waited for if it drips.
    pub unasked: Company,
    /// May a cache answer?
    pub freshness: Freshness,
    /// The finished file that is only asked about.
    pub revalidate: Option<Draft>,
    /// The largest size allowed.
    pub max_filesize: Option<Length>,
    /// The size that the file must have.
    pub expected: Option<Length>,
    /// How patient to be.
    pub timeouts: Timeouts,
    /// Who else may be asked, and over how many connections.
    pub fan: FanPlan,
}

/// Over how many connections a file may come, and from whom.
#[derive(Clone, Debug)]
pub struct FanPlan {
    /// Connections in all.
    pub connections: usize,
    /// Connections to one origin.
    pub per_origin: usize,
    /// Nothing is split into parts smaller than this.
    pub least: Length,
    /// What follows on a connection that broke off.
    pub cuts: Cuts,
    /// The mirrors that may be asked; the session's own among them.
    pub seats: Vec<FanSeat>,
    /// Which of the seats is the session's own.
    pub own: usize,
}

/// A mirror that may be asked.
#[derive(Clone, Debug)]
pub struct FanSeat {
    /// Its URL.
    pub url: MirrorUrl,
    /// What one connection to it brought before, in bytes per second, where that is known.
    pub rate: Option<u64>,
    /// It must not be asked before.
    pub not_before: Option<Mono>,
    /// Where a server named it: the digest of the whole that it was named with.
    pub named_with: Option<Expected>,
    /// So often has it sent wrong bytes before; from the first time on it is asked past all caches.
    pub wrong: u32,
}

/// Where the file goes.
#[derive(Clone, Debug)]
pub enum Home {
    /// To this path.
    File(PathBuf),
    /// Into this folder, under the server's name, else the URL's.
    Folder(PathBuf),
}

impl FanSeat {
    /// Its URL, and who named it.
    pub(crate) fn asked(&self) -> (MirrorUrl, NamedBy) {
        let named_by = if self.named_with.is_some() { NamedBy::Server } else { NamedBy::User };
        (self.url.clone(), named_by)
    }
}

/// What makes a whole file a finished one.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Digests that are law.
    pub digests: Vec<Expected>,
    /// Digests of pieces, which are law too.
    pub pieces: Option<Arc<Pieces>>,
    /// The least evidence that counts.
    pub require: Evidence,
    /// What becomes of a file that stands under the final name.
    pub clobber: Clobber,
    /// The modification time of the file.
    pub mtime: Mtime,
    /// How the part files are opened.
    pub spec: Spec,
}

impl Terms {
    /// Does a digest that is law, of the whole or of its pieces, decide in the end?
    fn last_word(&self) -> LastWord {
        if self.digests.is_empty() && self.pieces.is_none() { LastWord::Joints } else { LastWord::Digest }
    }
}

/// What the sessions of one lane share.
#[derive(Clone, Debug)]
pub struct Hands {
    /// Connections.
    pub client: Client,
    /// The user's headers.
    pub credentials: Credentials,
    /// User-Agent.
    pub user_agent: String,
    /// The rate limit.
    pub throttle: Option<Throttle>,
    /// The clocks.
    pub clock: Clock,
    /// For drawing the block that is compared beside the tail.
    pub seed: u64,
}

/// What a running session tells.
#[derive(Debug)]
pub enum Tell {
    /// Something that a resume needs, to be stored.
    Learned(Box<Dossier>),
    /// The file has a name now.
    Named(PathBuf),
    /// Bytes moved.
    Progress {
        /// Held in the draft at hand.
        held: Length,
        /// Received in this session.
        received: Length,
    },
    /// A server named mirrors of the file.
    Duplicates(NamedMirrors),
    /// The digest is being computed.
    Verifying,
    /// For the user: something that is no failure.
    Remark(String),
    /// Something of the mirrors that are asked beside the session's own.
    Beside(Box<Beside>),
}

/// What the links of a session tell of mirrors.
#[derive(Debug)]
pub enum Beside {
    /// Its bytes are part of the file.
    Serves {
        /// Its URL.
        url: MirrorUrl,
    },
    /// It failed, while others go on.
    Failed {
        /// Its URL.
        url: MirrorUrl,
        /// What happened.
        failure: Failure,
        /// The origin that answered, where one did.
        origin: Option<Origin>,
    },
    /// One connection to this origin brings so much.
    Rate {
        /// Whose.
        origin: Origin,
        /// Bytes per second.
        rate: u64,
    },
}

/// How a session closed.
#[derive(Debug)]
pub struct Closed {
    /// The result for the machine.
    pub outcome: Outcome,
    /// The finished file.
    pub finished: Option<Finished>,
    /// The part files, for the next session.
    pub store: Option<PartStore>,
    /// Bytes received.
    pub received: Length,
    /// What the session's own connection brought, in bytes per second, where it is worth a word.
    pub rate: Option<u64>,
}

/// Runs one session to its end, or until `stop`; what is held is on disk (in the page cache at least) when it returns.
pub async fn run(mut orders: Orders, hands: Hands, tell: Box<dyn Fn(Tell)>, stop: CancellationToken) -> Closed {
    let server_digest = adopt_law(&mut orders);
    match intact::open(&mut orders, &*tell, &stop).await {
        Ok(Ready::Yes) => {}
        Ok(Ready::Stopped) => return Closed::unbegun(orders.dossier, End::Cancelled, orders.store),
        Err(fault) => return Closed::failed(orders.dossier, fault),
    }
    let dossier = orders.dossier.clone();
    let mut session = match Session::new(orders, hands, tell, server_digest) {
        Ok(session) => session,
        Err(fault) => return Closed::failed(dossier, fault),
    };
    let leg = tokio::select! {
        biased;
        () = stop.cancelled() => Leg::End(End::Cancelled),
        leg = session.drive() => leg,
    };
    // A file that is whole is verified and published, whoever wants to stop.
    let end = match leg {
        Leg::End(end) => end,
        Leg::Whole(place, evidence) => session.finish(place, evidence).await,
    };
    session.close(end)
}

/// How far the network part of a session came.
enum Leg {
    /// To its end.
    End(End),
    /// To a whole draft, which rests on this.
    Whole(Place, Evidence),
}

impl Closed {
    fn failed(dossier: Dossier, fault: LocalFault) -> Self {
        Self::unbegun(dossier, End::Failed(Failure::Local(fault)), None)
    }

    /// Before anything was asked for.
    const fn unbegun(dossier: Dossier, end: End, store: Option<PartStore>) -> Self {
        let outcome = Outcome { dossier, origin: None, end };
        Self { outcome, finished: None, store, received: Length::ZERO, rate: None }
    }
}

/// Each place's held length, as the files have it, written into the dossier.
fn settle_held(dossier: &mut Dossier, store: &PartStore) {
    dossier.part.held = store.held(Place::Part);
    dossier.part.beyond = store.segments().length().saturating_sub(dossier.part.held);
    if let Some(rival) = &mut dossier.rival {
        rival.held = store.held(Place::Rival);
    }
}
