//! The supervisor: one loop that drives machines and hands; no policy of its own.
//!
//! [`Job`] and [`Settings`] go in, [`Notice`]s come out while it runs, and a [`Report`] a job at the end. Several processes
//! do so with one state file at once ([`crate::core::pers_xfer::sharing`]):
//!
//! | file | about |
//! |---|---|
//! | `run`, `feed`, `serve`, `add`, `control` | what is asked: jobs, some that come meanwhile, whatever the state holds, entering only, a word to a transfer |
//! | `admit`, `enter`, `start`, `transfer`, `ended` | a transfer from the moment it is taken up to its report |
//! | `supervisor`, `mail`, `slots`, `hosts`, `leave` | the loop, its inbox, who may start, whom to leave alone, the end |
//! | `gate`, `steer`, `standing` | whether anything may pass, and how fast; preferences that change |
//! | `admit_upload`, `uploads`, `abandon`, `keys` | the same for uploads, and what they leave at servers |
//! | `way`, `fan` | how requests travel, over how many connections and to which mirrors |
//! | `world` | what all of it stands on: the system's clocks and network, or a simulation's |
//! | `claims`, `persist`, `save`, `watch` | whose a record is, when it is written, what others did meanwhile |
//! | `reports` | failures that a scheduling server is told of |
//! | `worker/` | what is due in a ledger, by jobs like any other |
//! | `sync/` | whole trees from several sources, by jobs like any other |
//! | `desk`, `rpc`, `tally`, `measures` | who asks over GUI RPC and for metrics, and what is answered |

mod abandon;
mod add;
mod admit;
mod admit_upload;
mod claims;
mod control;
mod desk;
mod ended;
mod enter;
mod fan;
mod feed;
mod gate;
mod hosts;
mod keys;
mod leave;
mod mail;
mod measures;
mod persist;
mod reports;
mod rpc;
mod run;
mod save;
mod serve;
mod slots;
mod standing;
mod start;
mod steer;
mod stop;
mod supervisor;
pub mod sync;
mod tally;
mod transfer;
mod uploads;
mod watch;
mod way;
pub mod worker;
mod world;

pub use abandon::{Abandoned, Dropped, abandon};
pub use add::{Added, add};
pub use control::{Told, control};
pub use feed::Feed;
pub use keys::{account, keys, manifest};
pub use reports::Reported;
pub use run::{EngineError, run, run_fed, run_in};
pub use serve::{Served, Service, serve, serve_in};
pub use standing::{Closed, Passage, QuotaLeft, Standing, standing};
pub use steer::Steer;
pub use stop::Stop;
pub use way::network;
pub use world::World;

use std::path::PathBuf;
use std::sync::Arc;

use crate::core::digest::{Algorithm, Expected, Pieces};
use crate::core::failure::{Failure, LocalFault};
pub use crate::core::file_xfer::Timeouts;
pub use crate::core::pers_xfer::Rounds;
pub use crate::core::pers_xfer::options::{AddressFamily, Existing, FailedPart, Mtime, NetOptions, Options};
use crate::core::pers_xfer::record::{Direction, Evidence, Placed, XferId};
use crate::core::prefs::Preferences;
use crate::core::range::Length;
use crate::core::time::{Delay, Epoch};
use crate::core::url::{MirrorUrl, Origin};
use crate::core::verdict::Class;
pub use crate::io::listen::Doors;
pub use crate::io::part::SyncMode;

/// One transfer that is asked for.
#[derive(Clone, Debug)]
pub struct Job {
    /// The first URL and its mirrors, or the servers of an upload, in order; at least one.
    pub urls: Vec<MirrorUrl>,
    /// Where the file goes, or comes from.
    pub target: Target,
    /// Digests that are law.
    pub digests: Vec<Expected>,
    /// The size that the file must have, where something that is law tells it (a metalink).
    pub expected: Option<Length>,
    /// Digests of its pieces.
    pub pieces: Option<Arc<Pieces>>,
    /// The largest size allowed.
    pub max_filesize: Option<Length>,
    /// Of an upload to a BOINC server: the signature of its name and limit.
    pub xml_signature: Option<String>,
    /// What else was said of it; stored with it, so that any later process can go on.
    pub options: Arc<Options>,
}

/// Where a download goes, or what an upload sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To this absolute path.
    File(PathBuf),
    /// Into this absolute folder, under the name the server gives, else the URL's.
    ServerNamed(PathBuf),
    /// An upload of the file at this absolute path.
    Source(PathBuf),
}

impl Target {
    /// Which way the bytes go.
    pub const fn direction(&self) -> Direction {
        match self {
            Self::File(_) | Self::ServerNamed(_) => Direction::Download,
            Self::Source(_) => Direction::Upload,
        }
    }
}

/// What holds for all jobs of one run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The client-state file.
    pub state_file: PathBuf,
    /// How often.
    pub rounds: Rounds,
    /// The whole run may take so long, then it stops with exit status 4.
    pub max_time: Option<Delay>,
    /// Transfers at once, in all.
    pub max_transfers: usize,
    /// Transfers at once, a host.
    pub max_per_host: usize,
    /// Bytes per second, all transfers together.
    pub limit_rate: Option<u64>,
    /// How eagerly data is flushed.
    pub sync: SyncMode,
    /// What the user prefers of transfers on this machine.
    pub prefs: Arc<Preferences>,
    /// Through which the run is told that preferences have changed.
    pub steer: Steer,
}

/// Why a transfer does nothing just now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// The backoff after a failed pass.
    Backoff {
        /// Passes that failed.
        retries: u32,
        /// The last failure, for people.
        last: String,
    },
    /// One second between a cut session that made progress and the next.
    Resuming,
    /// The server asked to wait.
    RetryAfter(Origin),
    /// The host backs off as a whole.
    Host(Origin),
    /// Other transfers have the slots.
    Slot,
    /// Trouble on this machine.
    Local(LocalFault),
    /// Nothing may pass just now: by the hour, a quota, a person's word, or for want of a network; in words for people.
    Network(String),
    /// A person suspended it.
    Suspended,
}

/// Something happened: for bars, plain lines and JSON events.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A transfer was taken up.
    Accepted {
        /// Which.
        id: XferId,
        /// Which way its bytes go.
        direction: Direction,
        /// Its name.
        name: String,
        /// Its target, where known, or its source.
        path: Option<PathBuf>,
        /// Bytes held from before; of an upload, those that a server confirmed.
        held: Length,
        /// Size, where known from before.
        total: Option<Length>,
    },
    /// A session begins.
    Session {
        /// Which transfer.
        id: XferId,
        /// Its how-manieth, from 1.
        number: u32,
        /// Where.
        url: MirrorUrl,
        /// Position among the mirrors, from 1, and how many there are.
        mirror: (usize, usize),
        /// Bytes held.
        held: Length,
    },
    /// The server named the file, or told its size.
    Learned {
        /// Which transfer.
        id: XferId,
        /// The target.
        path: Option<PathBuf>,
        /// The size.
        total: Option<Length>,
    },
    /// Bytes moved. At most ten a second and transfer.
    Progress {
        /// Which transfer.
        id: XferId,
        /// Bytes held now; of an upload, those that the server confirmed.
        held: Length,
    },
    /// Bytes of an upload went out; what of them has arrived, only a confirmation tells. At most ten a second and transfer.
    Sending {
        /// Which transfer.
        id: XferId,
        /// The bytes of the file before this have been handed to the network.
        at: Length,
    },
    /// The whole file is being checked against its digest.
    Verifying {
        /// Which transfer.
        id: XferId,
    },
    /// A session failed; the transfer goes on.
    Failed {
        /// Which transfer.
        id: XferId,
        /// Where.
        url: MirrorUrl,
        /// What happened.
        failure: Failure,
        /// What kind of failure that is.
        class: Class,
        /// The mirror is refused for this transfer from now on.
        refused: bool,
    },
    /// Something a person should know that is no failure: a mirror dropped, a file that changes, damage set aside.
    Remark {
        /// Which transfer, where it is about one.
        id: Option<XferId>,
        /// One line, printable.
        text: String,
    },
    /// It waits.
    Waiting {
        /// Which transfer.
        id: XferId,
        /// For how long from now, where known.
        delay: Option<Delay>,
        /// Until when by the wall clock, where known.
        until: Option<Epoch>,
        /// Why.
        reason: WaitReason,
    },
    /// A scheduling server was told of its failure, or was to be (`--report-url`).
    Reported {
        /// Which transfer.
        id: XferId,
        /// Its name.
        name: String,
        /// The server.
        url: MirrorUrl,
        /// What came of it.
        how: Reported,
    },
    /// It ended, as far as this run goes.
    Ended(Report),
}

/// How one job ended in this run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Which transfer.
    pub id: XferId,
    /// Which way its bytes go.
    pub direction: Direction,
    /// Its name.
    pub name: String,
    /// The first URL.
    pub url: MirrorUrl,
    /// The file, where it has a name.
    pub path: Option<PathBuf>,
    /// Size, where known.
    pub total: Option<Length>,
    /// Bytes held; of an upload, those that a server confirmed.
    pub held: Length,
    /// Bytes received from the network in this run.
    pub received: Length,
    /// Where the evidence is a digest that a server named, and nobody else: by which algorithm.
    pub server_digest: Option<Algorithm>,
    /// Of an upload that is done: where it is, and what of it nobody sent from here.
    pub placed: Option<Box<Placed>>,
    /// When it was complete, where it is.
    pub finished: Option<Epoch>,
    /// Of a download that failed for good: what whoever remembers it needs.
    pub wanted: Option<Box<Wanted>>,
    /// How.
    pub ending: Ending,
}

/// A file that could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its mirrors, those that servers named left out.
    pub mirrors: Vec<MirrorUrl>,
    /// The digests that it must have.
    pub digests: Vec<Expected>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The right file stands under its name.
    Complete {
        /// On what evidence.
        evidence: Evidence,
    },
    /// It was there already, and is still what the server has (or was kept by `--no-clobber`, or has the digest).
    Unchanged {
        /// On what evidence.
        evidence: Evidence,
    },
    /// Failed for good.
    Failed {
        /// Its class.
        class: Class,
        /// One line, printable.
        message: String,
    },
    /// Stopped with work left; the state is saved.
    Stopped {
        /// The earliest time for the next session, where it waits for one.
        next: Option<Epoch>,
        /// Why, printable: the last failure, where there was one.
        why: String,
    },
    /// Trouble on this machine; the state is saved where it can be.
    Local(LocalFault),
}

impl Ending {
    /// The word for it, in events, hooks and metrics.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Complete { .. } => "complete",
            Self::Unchanged { .. } => "unchanged",
            Self::Failed { .. } => "failed",
            Self::Stopped { .. } => "stopped",
            Self::Local(_) => "local",
        }
    }
}
