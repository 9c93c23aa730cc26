//! The worker: claims what is due in a ledger, has the engine fetch it, and says what came of it.
//!
//! Two threads: one runs the engine, which is fed jobs; the other speaks with the ledger, so that a slow store holds up no
//! transfer. What a claim is worth is the ledger's to say: a holder whose lease is lost lets its transfer go.
//!
//! | file | about |
//! |---|---|
//! | `desk` | the loop: claims, beats, last words |
//! | `held` | one claimed record from its job to its last word |

mod desk;
mod held;

use std::path::PathBuf;
use std::sync::Arc;

use crate::core::failure::LocalFault;
use crate::core::ledger::Rules;
use crate::core::pers_xfer::sharing::OwnerId;
use crate::core::time::Delay;
use crate::engine::{EngineError, Notice, Options, Settings, Stop};
use crate::io::store::{LedgerStore, StoreError};

/// What a worker is given.
#[derive(Debug)]
pub struct WorkerJob {
    /// Where the files go.
    pub folder: PathBuf,
    /// What holds for all transfers. Each record is one round: the ledger has the patience.
    pub settings: Settings,
    /// How each transfer is made.
    pub options: Arc<Options>,
    /// The ledger's rules.
    pub rules: Rules,
    /// Until when.
    pub until: Until,
}

/// How long a worker goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until nothing is due any more.
    Idle,
    /// Until it is told to stop.
    Told,
}

/// Something happened.
#[derive(Debug)]
pub enum WorkerNotice<'a> {
    /// In a transfer.
    Transfer(&'a Notice),
    /// In the ledger, for people; printable.
    Ledger(&'a str),
}

/// What a worker did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records that are done by it.
    pub done: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Claims that it gave back.
    pub released: u64,
    /// Leases that it lost.
    pub lost: u64,
}

/// Why a worker cannot begin, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The ledger.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// This machine.
    #[error(transparent)]
    Local(#[from] LocalFault),
    /// No thread for the engine.
    #[error("cannot start a thread for the transfers: {0}")]
    Thread(std::io::Error),
}

/// Who the worker is to the ledger and to the others of this machine.
#[derive(Clone, Copy, Debug)]
struct Me(OwnerId);

/// Between two looks for what is due, where nothing says when: a second.
const LOOK: Delay = Delay::from_secs(1);
/// After trouble with the ledger: five seconds.
const AGAIN: Delay = Delay::from_secs(5);

/// Works until told to stop, or until nothing is due. `tell` is called on this thread.
///
/// What dead workers of this machine held is due again at once. Told to stop, it lets its transfers go, with what they hold, and
/// gives its claims back.
///
/// # Errors
/// [`WorkerError`]: nothing is lost; leases that could not be given back end by themselves.
pub fn work(
    job: WorkerJob,
    store: &mut dyn LedgerStore,
    stop: &Stop,
    tell: &mut dyn FnMut(WorkerNotice<'_>),
) -> Result<Tally, WorkerError> {
    desk::Desk::open(job, store, tell)?.run(stop)
}
