//! Every call from the face to what the floors below provide, in one place.
//!
//! The face knows the engine's types by name; what it *calls* goes through here, so that a change of a signature below
//! is mended in this folder alone, and so that tests can put a fake state file in the real one's place.

mod book;
mod net;
mod texts;

pub(crate) use book::{Book, BookError, Contents, StateBook, Warning, orphans};
pub(crate) use net::{Family, NetAsked, Trust, Verify, net, parse_header, parse_proxy, parse_resolve};
pub(crate) use texts::{
    Sums, algorithm_name, bounded, counted, human_delay, human_size, name_from_url, parse_delay, parse_digest,
    parse_rate, parse_size, plain_error, policy, printable, strongest,
};

pub(crate) use crate::engine::{EngineError, Stop};

use crate::core::time::Now;
use crate::engine::{self, Job, Notice, Report, Settings};
use crate::io::clock::Clock;

/// What the engine is called as, so that a test can take its place.
pub(crate) type Engine<'a> =
    dyn FnOnce(Settings, Vec<Job>, Stop, &mut dyn FnMut(Notice)) -> Result<Vec<Report>, EngineError> + 'a;

/// Runs all jobs on the calling thread.
pub(crate) fn run_engine(
    settings: Settings,
    jobs: Vec<Job>,
    stop: Stop,
    notices: &mut dyn FnMut(Notice),
) -> Result<Vec<Report>, EngineError> {
    engine::run(settings, jobs, &stop, notices)
}

/// Both clocks, now.
pub(crate) fn now() -> Now {
    Clock::system().now()
}
