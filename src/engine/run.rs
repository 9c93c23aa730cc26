//! One run: jobs are taken up, the loop runs, reports come out.

use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};

use crate::core::hosts::Hosts;
use crate::core::name::boinc_name;
use crate::core::pers_xfer::record::{Record, XferId};
use crate::core::pers_xfer::{Event, OnLocalFault, PersFileXfer, Rules, Urgency};
use crate::core::range::Length;
use crate::core::state::{Document, Kind};
use crate::engine::admit::{self, Admission, Entry};
use crate::engine::persist::Persist;
use crate::engine::supervisor::{Parts, Supervisor};
use crate::engine::transfer::Transfer;
use crate::engine::{Ending, Job, Notice, Report, Settings, Stop};
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
    /// The delays contradict each other.
    #[error(transparent)]
    Policy(#[from] crate::core::backoff::BadPolicy),
    /// The system gives no event loop.
    #[error("cannot start the event loop: {0}")]
    Runtime(#[from] std::io::Error),
}

/// Runs these jobs until each is done, has failed for good or must rest, or until `stop` is requested. A report a job, in
/// their order. `notices` is called on this thread.
///
/// # Errors
/// [`EngineError`] where nothing can be done at all: then no transfer was begun, or the state could not be written.
pub fn run(
    settings: Settings,
    jobs: Vec<Job>,
    stop: &Stop,
    notices: &mut dyn FnMut(Notice),
) -> Result<Vec<Report>, EngineError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async { Run::begin(settings, jobs, notices)?.finish(stop).await })
}

/// A run with its jobs taken up.
struct Run<'a> {
    supervisor: Supervisor<'a>,
    order: Vec<Slot>,
}

/// A job's place in the order of reports.
enum Slot {
    Runs(XferId),
    Ended(Box<Report>),
}

impl<'a> Run<'a> {
    fn begin(settings: Settings, jobs: Vec<Job>, notices: &'a mut dyn FnMut(Notice)) -> Result<Self, EngineError> {
        let file = StateFile::at(&settings.state_file);
        let loaded = file.load()?;
        // A state that cannot be written is found out before anything is begun.
        file.commit(|_| ())?;
        for text in loaded.warnings {
            notices(Notice::Remark { id: None, text });
        }
        if loaded.document.kind() == Kind::Foreign {
            return Err(EngineError::State(StateError::Foreign { path: file.path().to_owned() }));
        }
        let mut run = Self { supervisor: supervisor(settings, &jobs, file, notices)?, order: Vec::new() };
        let mut document = loaded.document;
        // Of many, all are entered in one write before the first begins; one alone may be over within its first second.
        let urgency = if jobs.len() > 1 { Urgency::Now } else { Urgency::Later };
        for job in jobs {
            run.admit(job, &mut document, urgency);
        }
        Ok(run)
    }

    fn admit(&mut self, job: Job, document: &mut Document, urgency: Urgency) {
        let known = known(document, &job);
        let id = XferId(rand::RngExt::random(&mut *self.supervisor.rng));
        let fresh = || admit::new_record(&job, id, document.unique_name(&boinc_name(&plain_name(&job))));
        match admit::admit(&job, known.clone(), fresh) {
            Admission::Run(entry) => self.take_up(job, *entry, urgency),
            Admission::Done { evidence, record } => {
                if let (Some(found), Some(known)) = (&record, &known)
                    && found.status != known.status
                {
                    self.supervisor.persist.done_before(found, self.supervisor.clock.now().mono);
                }
                let record = record.map(|r| *r).or(known);
                self.end(&job, id, record, Ending::Unchanged { evidence });
            }
            Admission::Refused(fault) => self.end(&job, id, known, Ending::Local(fault)),
        }
    }

    fn take_up(&mut self, job: Job, entry: Entry, urgency: Urgency) {
        let rules = rules(&self.supervisor.settings, &job);
        let machine = PersFileXfer::from_record(entry.record, rules, self.supervisor.clock.now());
        let transfer = Transfer::new(job, machine, entry.revalidate, entry.clobber);
        self.order.push(Slot::Runs(transfer.id()));
        let first = if entry.failed_before { Event::Retry } else { Event::Wake };
        self.supervisor.take_up(transfer, urgency, first);
    }

    /// A job that is over before it began.
    fn end(&mut self, job: &Job, id: XferId, record: Option<Record>, ending: Ending) {
        let total = record.as_ref().and_then(|r| r.nbytes);
        let report = Report {
            id: record.as_ref().map_or(id, |r| r.id),
            name: record.as_ref().map_or_else(|| plain_name(job), |r| r.name.clone()),
            url: job.urls[0].clone(),
            path: record.and_then(|r| r.path).or_else(|| admit::path_of(&job.target)),
            total,
            held: total.unwrap_or_default(),
            received: Length::ZERO,
            ending,
        };
        (self.supervisor.notices)(Notice::Ended(report.clone()));
        self.order.push(Slot::Ended(Box::new(report)));
    }

    async fn finish(mut self, stop: &Stop) -> Result<Vec<Report>, EngineError> {
        let ran = self.supervisor.run(stop).await;
        self.supervisor.let_go();
        ran?;
        let mut reports: BTreeMap<XferId, Report> = self.supervisor.reports();
        let report = |slot| match slot {
            Slot::Runs(id) => reports.remove(&id),
            Slot::Ended(report) => Some(*report),
        };
        Ok(self.order.into_iter().filter_map(report).collect())
    }
}

fn supervisor<'a>(
    settings: Settings,
    jobs: &[Job],
    file: StateFile,
    notices: &'a mut dyn FnMut(Notice),
) -> Result<Supervisor<'a>, EngineError> {
    let clock = Clock::system();
    let client = Client::new(&settings.net)?;
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let lanes = NonZeroUsize::new(processors.min(MAX_LANES)).unwrap_or(NonZeroUsize::MIN);
    let throttle = settings.limit_rate.and_then(NonZeroU64::new).map(|rate| Throttle::new(Some(rate), clock.clone()));
    // The host's backoff keeps to the bounds that the user set for the transfers.
    let bounds = jobs.first().map(|job| job.policy.given_bounds()).unwrap_or_default();
    Ok(Supervisor::new(Parts {
        hosts: Hosts::new(bounds.0, bounds.1)?,
        rng: Box::new(system_rng()?),
        lanes: Lanes::new(lanes, move || client.with_own_pool()),
        persist: Persist::new(file),
        settings,
        clock,
        throttle,
        notices,
    }))
}

fn rules(settings: &Settings, job: &Job) -> Rules {
    Rules {
        policy: job.policy.clone(),
        give_up: job.give_up,
        give_up_from: job.give_up_from,
        rounds: settings.rounds,
        on_local_fault: OnLocalFault::Rest,
        retry_on: job.retry_on.clone(),
        stall: settings.timeouts.stall,
    }
}

/// The record that the state holds of this job.
fn known(document: &Document, job: &Job) -> Option<Record> {
    let by_path = admit::path_of(&job.target).map(|path| document.at_path(&path));
    match by_path {
        Some(ids) => ids.into_iter().filter_map(|id| document.get(id)).find(|r| admit::is_of(r, job)),
        None => document.transfers().find(|r| admit::is_of(r, job)),
    }
}

/// The name of a job for people: its file's, else its URL's.
fn plain_name(job: &Job) -> String {
    let path = admit::path_of(&job.target);
    let file = path.as_deref().and_then(std::path::Path::file_name).map(|n| n.to_string_lossy().into_owned());
    file.unwrap_or_else(|| crate::core::name::SafeName::from_url(&job.urls[0]).as_str().to_owned())
}
