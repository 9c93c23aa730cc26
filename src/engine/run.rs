//! One run over jobs: they are taken up, the loop runs, reports come out.

use std::num::NonZeroU64;

use crate::core::failure::LocalFault;
use crate::core::hosts::Hosts;
use crate::core::name::boinc_name;
use crate::core::pers_xfer::Urgency;
use crate::core::pers_xfer::record::{Record, Status, XferId};
use crate::core::range::Length;
use crate::engine::admit::{self, Admission, Entry};
use crate::engine::claims::Twins;
use crate::engine::ended;
use crate::engine::enter::Entered;
use crate::engine::feed::Fed;
use crate::engine::persist::Persist;
use crate::engine::supervisor::{Parts, Supervisor};
use crate::engine::world::World;
use crate::engine::{Ending, Feed, Job, Notice, Report, Service, Settings, Stop};
use crate::io::entropy::NoEntropy;
use crate::io::owner;
use crate::io::state_file::{StateError, StateFile};
use crate::io::transport::{NetConfigError, Throttle};

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
    /// Nobody can ask where it was said, or with which password.
    #[error(transparent)]
    Listen(LocalFault),
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
    let world = World::of_the_system(settings.sync)?;
    on_an_event_loop(run_in(world, settings, jobs, stop, notices))
}

/// Runs jobs as they come, until the feed is closed and all is over, or until `stop` is requested. How each ended is told by
/// [`Notice::Ended`], but for those that `stop` ends.
///
/// # Errors
/// As [`run`].
pub fn run_fed(
    settings: Settings,
    feed: Feed,
    stop: &Stop,
    notices: &mut dyn FnMut(Notice),
) -> Result<(), EngineError> {
    let world = World::of_the_system(settings.sync)?;
    on_an_event_loop(async {
        let mut supervisor = supervisor(world, settings, None, Hosts::new(None, None)?, notices)?;
        supervisor.feed = Some(feed);
        supervisor.run(stop).await?;
        supervisor.read_again()?;
        supervisor.remove_marks();
        Ok(())
    })
}

/// The same in a world of one's own, on the local set that polls it.
///
/// # Errors
/// As [`run`].
pub async fn run_in(
    world: World,
    settings: Settings,
    jobs: Vec<Job>,
    stop: &Stop,
    notices: &mut dyn FnMut(Notice),
) -> Result<Vec<Report>, EngineError> {
    Run::begin(world, settings, jobs, notices)?.finish(stop).await
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
}

/// A job's place in the order of reports.
enum Slot {
    Runs(XferId),
    Ended(Box<Report>),
}

impl<'a> Run<'a> {
    fn begin(
        world: World,
        settings: Settings,
        mut jobs: Vec<Job>,
        notices: &'a mut dyn FnMut(Notice),
    ) -> Result<Self, EngineError> {
        let bounds = jobs.first().map(|job| job.options.policy.given_bounds()).unwrap_or_default();
        let mut supervisor = supervisor(world, settings, None, Hosts::new(bounds.0, bounds.1)?, notices)?;
        if let Some(job) = jobs.first() {
            // Options that cannot be used end the run before it has begun.
            supervisor.ways.of(&job.options.net)?;
        }
        let mut run = Self { supervisor, order: Vec::with_capacity(jobs.len()) };
        if jobs.len() == 1 {
            jobs.into_iter().try_for_each(|job| run.begin_alone(job))?;
            return Ok(run);
        }
        // The first begin while the others are still being entered.
        let ahead = jobs.len().min(2 * run.supervisor.settings.max_transfers);
        let rest = jobs.split_off(ahead);
        run.enter(jobs)?;
        run.supervisor.start_queued();
        run.enter(rest)?;
        Ok(run)
    }

    /// One alone may be over within its first second: unless it is known, or has to wait, it enters the state at its end.
    fn begin_alone(&mut self, job: Job) -> Result<(), EngineError> {
        let id = XferId(rand::RngExt::random(&mut *self.supervisor.rng));
        let known = match self.claim_known(&job)? {
            Some(Ok(record)) => Some(record),
            Some(Err(fault)) => {
                self.end(&job, id, None, Ending::Local(fault));
                return Ok(());
            }
            None => None,
        };
        let seen = &mut self.supervisor.seen;
        let fresh = || admit::new_record(&job, id, seen.unique_name(&boinc_name(&plain_name(&job))));
        match admit::admit(&job, known.clone(), fresh) {
            Admission::Run(entry) => self.take_up(*entry)?,
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

    /// What the state holds of a job: claimed, where it is not complete.
    fn claim_known(&mut self, job: &Job) -> Result<Option<Result<Record, LocalFault>>, EngineError> {
        let Supervisor { seen, persist, rng, clock, .. } = &mut self.supervisor;
        let record = admit::known(seen, job, &mut Twins::default()).and_then(|id| seen.get(id));
        match record {
            Some(record) if record.status != Status::Done => Ok(persist.take_over(job, &mut **rng, clock)?),
            other => Ok(other.map(Ok)),
        }
    }

    /// What was claimed for a job that does not run is nobody's again.
    fn free(&mut self, record: Option<Record>) {
        if let Some(record) = record.filter(|r| self.supervisor.persist.claims.holds(r.id)) {
            self.supervisor.free(record);
        }
    }

    fn take_up(&mut self, entry: Entry) -> Result<(), EngineError> {
        self.order.push(Slot::Runs(entry.record.id));
        self.supervisor.accept(&entry.record);
        self.supervisor.take_up(entry, Urgency::Later)
    }

    fn enter(&mut self, jobs: Vec<Job>) -> Result<(), EngineError> {
        self.supervisor.enter(jobs, &mut |slot| self.order.push(slot))
    }

    fn end(&mut self, job: &Job, id: XferId, record: Option<Record>, ending: Ending) {
        let slot = self.supervisor.end_unbegun(job, id, record, ending);
        self.order.push(slot);
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

impl Supervisor<'_> {
    /// Enters jobs, all in one write.
    fn enter(&mut self, jobs: Vec<Job>, order: &mut dyn FnMut(Slot)) -> Result<(), EngineError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let Supervisor { persist, rng, clock, .. } = self;
        let entered = persist.enter(jobs, &mut **rng, clock)?;
        self.read_again()?;
        for entered in entered {
            match entered {
                Entered::InLine(id, accepted) => {
                    (self.notices)(*accepted);
                    order(Slot::Runs(id));
                    self.put_in_line_as_seen(id);
                }
                Entered::Runs(entry) => {
                    order(Slot::Runs(entry.record.id));
                    self.accept(&entry.record);
                    self.take_up(*entry, Urgency::Later)?;
                }
                Entered::Ended(job, record, ending) => {
                    let id = XferId(rand::RngExt::random(&mut *self.rng));
                    order(self.end_unbegun(&job, id, record.map(|r| *r), ending));
                }
            }
        }
        Ok(())
    }

    /// Does what was said by way of the feed.
    pub(super) fn fed(&mut self) -> Result<(), EngineError> {
        let Some(feed) = &self.feed else { return Ok(()) };
        let (mut jobs, mut gone) = (Vec::new(), Vec::new());
        for fed in feed.take() {
            match fed {
                Fed::Job(job) => jobs.push(*job),
                Fed::LetGo(path) => gone.push(path),
            }
        }
        self.enter(jobs, &mut |_| ())?;
        gone.iter().for_each(|path| self.let_go_of(path));
        Ok(())
    }

    /// A job that is over before it began.
    fn end_unbegun(&mut self, job: &Job, id: XferId, record: Option<Record>, ending: Ending) -> Slot {
        let total = record.as_ref().and_then(|r| r.nbytes);
        let finished = record.as_ref().and_then(|r| r.finished.as_ref()).map(|f| f.at);
        let placed = record.as_ref().and_then(|r| r.finished.as_ref()).and_then(|f| f.placed.clone()).map(Box::new);
        let report = Report {
            id: record.as_ref().map_or(id, |r| r.id),
            direction: job.target.direction(),
            name: record.as_ref().map_or_else(|| plain_name(job), |r| r.name.clone()),
            url: job.urls[0].clone(),
            path: record.and_then(|r| r.path).or_else(|| admit::path_of(&job.target)),
            total,
            held: total.unwrap_or_default(),
            received: Length::ZERO,
            server_digest: None,
            placed,
            finished,
            wanted: None,
            ending,
        };
        (self.notices)(Notice::Ended(report.clone()));
        Slot::Ended(Box::new(report))
    }
}

/// A supervisor with nothing to do yet, and what the state file holds.
pub(super) fn supervisor<'a>(
    world: World,
    settings: Settings,
    service: Option<Service>,
    mut hosts: Hosts,
    notices: &'a mut dyn FnMut(Notice),
) -> Result<Supervisor<'a>, EngineError> {
    let persist = Persist::new(StateFile::at(&settings.state_file));
    let loaded = persist.load()?;
    persist.check_writable(&loaded.document)?;
    owner::sweep(&settings.state_file);
    for text in loaded.warnings {
        notices(Notice::Remark { id: None, text });
    }
    let clock = world.clock.clone();
    hosts.restore(loaded.document.hosts().iter().cloned(), clock.now());
    let throttle = settings.limit_rate.and_then(NonZeroU64::new).map(|rate| Throttle::new(Some(rate), clock));
    let mut supervisor =
        Supervisor::new(Parts { world, hosts, persist, settings, service, throttle, seen: loaded.document, notices });
    let reports = supervisor.seen.reports().to_vec();
    supervisor.meet_reports(&reports);
    if supervisor.service.is_some() {
        let said = supervisor.seen.network_mode();
        supervisor.keeper.was_said(said);
    }
    supervisor.mind_the_gate();
    Ok(supervisor)
}

/// The name of a job for people: its file's, else its URL's.
pub(super) fn plain_name(job: &Job) -> String {
    let path = admit::path_of(&job.target);
    let file = path.as_deref().and_then(std::path::Path::file_name).map(|n| n.to_string_lossy().into_owned());
    file.unwrap_or_else(|| crate::core::name::SafeName::from_url(&job.urls[0]).as_str().to_owned())
}
