//! Every call from the face to what the floors below provide, in one place.
//!
//! The face knows the engine's types by name; what it *calls* goes through here, so that a change of a signature below
//! is mended in this folder alone, and so that tests can put a fake state file in the real one's place.

mod book;
mod net;
mod texts;

#[cfg(test)]
pub(crate) use book::HeldParts;
pub(crate) use book::{Book, BookError, Contents, Left, SourceNow, StateBook, Warning, create_folder, orphans};
pub(crate) use net::{try_header, try_net, try_proxy, try_resolve};
pub(crate) use texts::{
    Sums, algorithm_name, bounded, counted, human_delay, human_size, name_from_url, parse_delay, parse_digest,
    parse_metalink, parse_rate, parse_size, plain_error, policy, printable, protocol, protocol_words, read_metalink,
    strongest, verify, verify_words,
};

pub(crate) use crate::core::metalink::MetaFile;

pub(crate) use crate::core::pers_xfer::sharing::Wanted;
pub(crate) use crate::io::limits::{LEAST_DESCRIPTORS, descriptors, largest_file};
pub(crate) use crate::io::part::{Inspection, JournalState, PartState};

pub(crate) use crate::engine::sync::{
    Counts, Depth, ModuleReport, Outcome, SourceReport, SourceState, SyncJob, SyncNotice, Tell,
};
pub(crate) use crate::engine::worker::{Tally, Until, WorkerError, WorkerJob, WorkerNotice};
pub(crate) use crate::engine::{Abandoned, Added, Dropped, EngineError, Stop, Told};

use std::path::Path;

use crate::core::failure::LocalFault;
pub(crate) use crate::core::name::{boinc_name, is_working_name};
use crate::core::pers_xfer::record::XferId;
use crate::core::prefs::Preferences;
use crate::core::time::Now;
use crate::core::upload::s3::{Account, Credentials, Manifest};
use crate::engine::{self, Doors, Job, Notice, Report, Served, Service, Settings};
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

/// Runs the modules of a sync once, on the calling thread.
pub(crate) fn sync(job: &SyncJob, stop: &Stop, tell: &mut Tell<'_>) -> Result<Vec<ModuleReport>, EngineError> {
    engine::sync::sync(job, stop, tell)
}

/// Fetches what is due in a ledger.
pub(crate) fn work(
    job: WorkerJob,
    store: &mut dyn crate::io::store::LedgerStore,
    stop: &Stop,
    tell: &mut dyn FnMut(WorkerNotice<'_>),
) -> Result<Tally, WorkerError> {
    engine::worker::work(job, store, stop, tell)
}

/// Runs whatever the state file holds, on the calling thread.
pub(crate) fn serve(
    settings: Settings,
    service: Service,
    doors: Doors,
    stop: Stop,
    notices: &mut dyn FnMut(Notice),
) -> Result<Served, EngineError> {
    engine::serve(settings, service, doors, &stop, notices)
}

/// Enters downloads into the state file.
pub(crate) fn add(state_file: &Path, jobs: &[Job]) -> Result<Vec<Added>, EngineError> {
    engine::add(state_file, jobs)
}

/// Says a word to transfers.
pub(crate) fn control(state_file: &Path, ids: &[XferId], wanted: &Wanted) -> Result<Vec<Told>, EngineError> {
    engine::control(state_file, ids, wanted)
}

/// Asks servers to drop what they have of these uploads.
pub(crate) fn abandon(state_file: &Path, ids: &[XferId]) -> Result<Vec<Abandoned>, EngineError> {
    engine::abandon(state_file, ids)
}

/// Who is known to object stores here.
pub(crate) fn account(profile: Option<&str>) -> Result<Account, LocalFault> {
    engine::account(profile)
}

/// The keys of an account.
pub(crate) fn keys(account: Account) -> Result<Credentials, LocalFault> {
    engine::keys(account)
}

/// A list of signed URLs.
pub(crate) fn manifest(path: &Path) -> Result<Manifest, LocalFault> {
    engine::manifest(path)
}

/// Why nothing may be transferred now, where nothing may.
pub(crate) fn standing(state_file: &Path, prefs: &Preferences) -> engine::Standing {
    engine::standing(state_file, prefs)
}

/// Both clocks, now.
pub(crate) fn now() -> Now {
    Clock::system().now()
}

/// Randomness of the system.
pub(crate) fn chance() -> Result<Box<dyn rand::Rng>, LocalFault> {
    let rng = crate::io::entropy::system_rng();
    rng.map(|rng| Box::new(rng) as Box<dyn rand::Rng>).map_err(|e| LocalFault::Io {
        doing: "get randomness from",
        path: "the operating system".to_owned(),
        detail: e.to_string(),
    })
}
