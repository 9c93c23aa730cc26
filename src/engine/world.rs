//! The world that a run stands in: the system's, or a simulation's.
//!
//! Everything in it that is not decided by the machines is handed in here: clocks, randomness, threads, this boot of the
//! machine, the network. A simulation hands in its own, and the same supervisor, drivers and part files live through
//! weeks of it in moments (`docs/testing.md`).

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::core::time::Delay;
use crate::engine::EngineError;
use crate::engine::watch;
use crate::engine::way::LaneClients;
use crate::io::clock::Clock;
use crate::io::entropy::system_rng;
use crate::io::lane::Lanes;
use crate::io::part::{Boot, Slow, Spec, SyncMode};
use crate::io::transport::Network;

/// At most so many lanes, however many processors there are.
const MAX_LANES: usize = 4;

/// What a run stands on.
pub struct World {
    pub(super) clock: Clock,
    pub(super) rng: Box<dyn rand::Rng>,
    pub(super) lanes: Lanes<LaneClients>,
    /// How part files are opened; the digests are each transfer's.
    pub(super) spec: Spec,
    /// How often the state file is looked at, for what others wrote.
    pub(super) looks: Delay,
    pub(super) network: Option<Arc<dyn Network>>,
}

impl World {
    /// The system's.
    ///
    /// # Errors
    /// [`EngineError::Entropy`] where it gives no randomness.
    pub(super) fn of_the_system(sync: SyncMode) -> Result<Self, EngineError> {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let lanes = NonZeroUsize::new(processors.min(MAX_LANES)).unwrap_or(NonZeroUsize::MIN);
        Ok(Self {
            clock: Clock::system(),
            rng: Box::new(system_rng()?),
            lanes: Lanes::new(lanes, LaneClients::default),
            spec: Spec::new(Vec::new(), sync),
            looks: watch::EVERY,
            network: None,
        })
    }

    /// One of a simulation: all happens on the local set that it runs in, one thing after the other. Nobody else is there
    /// who would write into the state file.
    pub fn simulated(clock: Clock, rng: Box<dyn rand::Rng>, boot: Boot, network: Arc<dyn Network>) -> Self {
        let lanes = Lanes::here(LaneClients::default);
        let spec = Spec { boot, slow: Slow::InTurn, ..Spec::new(Vec::new(), SyncMode::Full) };
        Self { clock, rng, lanes, spec, looks: Delay::from_days(1), network: Some(network) }
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("spec", &self.spec).finish_non_exhaustive()
    }
}
