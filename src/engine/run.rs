//! One run over jobs: they are taken up, the loop runs, reports come out.

use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};

use crate::core::failure::LocalFault;
use crate::core::hosts::Hosts;
use crate::core::name::boinc_name;
use crate::core::pers_xfer::Urgency;
use crate::core::pers_xfer::record::{Record, Status, XferId};
use crate::core::range::Length;
use crate::engine::admit::{self, Admission, Entry};
use crate::engine::claims::{Keep, Twins};
use crate::engine::ended;
use crate::engine::persist::Persist;
use crate::engine::supervisor::{Parts, Supervisor};
use crate::engine::watch::is_new;
use crate::engine::way::LaneClients;
use crate::engine::{Ending, Job, Notice, Report, Service, Settings, Stop};
use crate::io::clock::Clock;
use crate::io::entropy::{NoEntropy, system_rng};
use crate::io::lane::Lanes;
use crate::io::state_file::{StateError, StateFile};
use crate::io::transport::{NetConfigError, Throttle};

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
    /// Stored options cannot be used, or no longer.
    #[error("{0}")]
    Options(String),
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
    on_an_event_loop(async { Run::begin(settings, jobs, notices)?.finish(stop).await })
}

/// Drives a future on this thread.
pub(super) fn on_an_event_loop<T>(future: impl Future<Output = Result<T, EngineError>>) -> Result<T, EngineError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, future)
}

/// A run with its jobs taken up.
struct Run<'a> {
    supervisor: Supervisor<'a>,
    order: Vec<Slot>,
    /// Records that are to be entered all at once, and wait for their slot.
    staged: BTreeMap<XferId, Record>,
}

/// A job's place in the order of reports.
enum Slot {
    Runs(XferId),
    Ended(Box<Report>),
}

/// What the state holds of a job, and whether we may have it.
type Known = Option<Result<Record, LocalFault>>;

impl<'a> Run<'a> {
    fn begin(settings: Settings, jobs: Vec<Job>, notices: &'a mut dyn FnMut(Notice)) -> Result<Self, EngineError> {
        let bounds = jobs.first().map(|job| job.options.policy.given_bounds()).unwrap_or_default();
        let supervisor = supervisor(settings, None, Hosts::new(bounds.0, bounds.1)?, notices)?;
        let mut run = Self { supervisor, order: Vec::new(), staged: BTreeMap::new() };
        let known = run.claim_known(&jobs)?;
        // One alone may be over within its first second; of many, the first begin while the others are entered.
        let (urgency, ahead) = match jobs.len() {
            1 => (Urgency::Later, 1),
            _ => (Urgency::Now, 2 * run.supervisor.settings.max_transfers),
        };
        for (n, (job, known)) in jobs.into_iter().zip(known).enumerate() {
            run.admit(job, known, urgency, if n < ahead { Place::Now } else { Place::InLine })?;
            if n + 1 == ahead {
                run.supervisor.start_queued();
            }
        }
        run.enter_staged()?;
        Ok(run)
    }

    /// What the state holds of these jobs: claimed, where it is not complete.
    fn claim_known(&mut self, jobs: &[Job]) -> Result<Vec<Known>, EngineError> {
        let (seen, mut twins) = (&self.supervisor.seen, Twins::default());
        let ids: Vec<Option<XferId>> = jobs.iter().map(|job| admit::known(seen, job, &mut twins)).collect();
        let records: Vec<Option<Record>> = ids.iter().map(|id| seen.get((*id)?)).collect();
        let open = |(record, job): (&'_ Option<Record>, _)| Some((record.as_ref()?.id, job));
        let wanted: Vec<(XferId, &Job)> = records
            .iter()
            .zip(jobs)
            .filter(|(record, _)| record.as_ref().is_some_and(|r| r.status != Status::Done))
            .filter_map(open)
            .collect();
        let Supervisor { persist, rng, clock, .. } = &mut self.supervisor;
        let mut claimed =
            if wanted.is_empty() { BTreeMap::new() } else { persist.take_over(&wanted, &mut **rng, clock)? };
        Ok(records.into_iter().map(|record| record.map(|r| claimed.remove(&r.id).unwrap_or(Ok(r)))).collect())
    }

    fn admit(&mut self, job: Job, known: Known, urgency: Urgency, place: Place) -> Result<(), EngineError> {
        let known = match known.transpose() {
            Ok(known) => known,
            Err(fault) => {
                let id = XferId(rand::RngExt::random(&mut *self.supervisor.rng));
                self.end(&job, id, None, Ending::Local(fault));
                return Ok(());
            }
        };
        let id = XferId(rand::RngExt::random(&mut *self.supervisor.rng));
        let seen = &mut self.supervisor.seen;
        let fresh = || admit::new_record(&job, id, seen.unique_name(&boinc_name(&plain_name(&job))));
        match admit::admit(&job, known.clone(), fresh) {
            Admission::Run(entry) => self.take_up(*entry, urgency, place)?,
            Admission::Done { evidence, record } => {
                let record = record.map(|r| *r).or(known);
                self.free(record.clone());
                self.end(&job, id, record, Ending::Unchanged { evidence });
            }
            Admission::Refused(fault) => {
                self.free(known.clone());
                self.end(&job, id, known, Ending::Local(fault));
            }
        }
        Ok(())
    }

    /// What was claimed for a job that does not run is nobody's again.
    fn free(&mut self, record: Option<Record>) {
        if let Some(record) = record.filter(|r| self.supervisor.persist.claims.holds(r.id)) {
            self.supervisor.free(record);
        }
    }

    fn take_up(&mut self, entry: Entry, urgency: Urgency, place: Place) -> Result<(), EngineError> {
        self.supervisor.accept(&entry.record);
        self.order.push(Slot::Runs(entry.record.id));
        let waits = place == Place::InLine && entry.revalidate.is_none() && !entry.failed_before;
        if waits && is_new(&entry.record) {
            // That its options can be used is found out now.
            self.supervisor.ways.of(&entry.record.options.net)?;
            self.staged.insert(entry.record.id, entry.record);
            return Ok(());
        }
        self.supervisor.take_up(entry, urgency)
    }

    /// All that wait are entered in one write.
    fn enter_staged(&mut self) -> Result<(), EngineError> {
        if self.staged.is_empty() {
            return Ok(());
        }
        let now = self.supervisor.clock.now();
        self.staged.keys().for_each(|id| self.supervisor.persist.mark(*id, Urgency::Now, now.mono));
        self.supervisor.save(Keep::Ours, &self.staged)?;
        self.supervisor.read_again()?;
        for record in std::mem::take(&mut self.staged).into_values() {
            if self.supervisor.persist.claims.holds(record.id) {
                self.supervisor.put_in_line(&record);
            }
        }
        Ok(())
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
        self.supervisor.run(stop).await?;
        let mut ended = std::mem::take(&mut self.supervisor.ended);
        let (seen, why) = (&self.supervisor.seen, self.supervisor.why());
        // Those that never got their slot stand in the state as they were entered.
        let waited = |id| seen.get(id).and_then(|r| ended::report(&r, ended::ending(&r, why)));
        let report = |slot| match slot {
            Slot::Runs(id) => ended.remove(&id).or_else(|| waited(id)),
            Slot::Ended(report) => Some(*report),
        };
        Ok(self.order.into_iter().filter_map(report).collect())
    }
}

/// Where a new transfer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It gets its machine at once.
    Now,
    /// It is entered, and gets its machine with its slot.
    InLine,
}

/// A supervisor with nothing to do yet, and what the state file holds.
pub(super) fn supervisor<'a>(
    settings: Settings,
    service: Option<Service>,
    mut hosts: Hosts,
    notices: &'a mut dyn FnMut(Notice),
) -> Result<Supervisor<'a>, EngineError> {
    let persist = Persist::new(StateFile::at(&settings.state_file));
    let loaded = persist.load()?;
    persist.check_writable(&loaded.document)?;
    for text in loaded.warnings {
        notices(Notice::Remark { id: None, text });
    }
    let clock = Clock::system();
    hosts.restore(loaded.document.hosts().iter().cloned(), clock.now());
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let lanes = NonZeroUsize::new(processors.min(MAX_LANES)).unwrap_or(NonZeroUsize::MIN);
    let throttle = settings.limit_rate.and_then(NonZeroU64::new).map(|rate| Throttle::new(Some(rate), clock.clone()));
    Ok(Supervisor::new(Parts {
        hosts,
        rng: Box::new(system_rng()?),
        lanes: Lanes::new(lanes, LaneClients::default),
        persist,
        settings,
        service,
        clock,
        throttle,
        seen: loaded.document,
        notices,
    }))
}

/// The name of a job for people: its file's, else its URL's.
pub(super) fn plain_name(job: &Job) -> String {
    let path = admit::path_of(&job.target);
    let file = path.as_deref().and_then(std::path::Path::file_name).map(|n| n.to_string_lossy().into_owned());
    file.unwrap_or_else(|| crate::core::name::SafeName::from_url(&job.urls[0]).as_str().to_owned())
}
