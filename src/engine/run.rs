//! One run: jobs are taken up, the loop runs, reports come out.

use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::Arc;

use crate::core::machine::Machine;
use crate::core::name::boinc_name;
use crate::core::pers_xfer::record::{Record, Status, XferId};
use crate::core::pers_xfer::{Event, OnLocalFault, PersFileXfer, Rules, Urgency};
use crate::core::range::Length;
use crate::engine::admit::{self, Admission, Entry};
use crate::engine::persist::Persist;
use crate::engine::supervisor::{Parts, Supervisor};
use crate::engine::transfer::Transfer;
use crate::engine::{Ending, Job, Notice, Report, Settings, Stop, Target};
use crate::io::clock::Clock;
use crate::io::entropy::{NoEntropy, system_rng};
use crate::io::lane::Lanes;
use crate::io::state_file::{StateError, StateFile};
use crate::io::transport::{Client, NetConfigError, Throttle};

/// At most so many lanes, however many processors there are.
const MAX_LANES: usize = 4;

/// Why a run cannot begin, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The client-state file cannot be read or written.
    #[error(transparent)]
    State(#[from] StateError),
    /// The network options cannot be used.
    #[error(transparent)]
    Net(#[from] NetConfigError),
    /// The system gives no randomness.
    #[error(transparent)]
    Entropy(#[from] NoEntropy),
    /// The system gives no event loop.
    #[error("cannot start the event loop: {0}")]
    Runtime(#[from] std::io::Error),
}
