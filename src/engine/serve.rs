//! The service: whatever the state file holds and nobody runs is driven, until all is done, or for ever.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use crate::core::backoff::Policy;
use crate::core::hosts::Hosts;
use crate::core::pers_xfer::record::{Direction, Record, Status};
use crate::core::state::Document;
use crate::engine::claims::Living;
use crate::engine::desk::Quit;
use crate::engine::ended::{self, Why};
use crate::engine::run::{on_an_event_loop, supervisor};
use crate::engine::supervisor::Supervisor;
use crate::engine::tally::Tally;
use crate::engine::world::World;
use crate::engine::{Doors, Ending, EngineError, Notice, Report, Settings, Stop};
use crate::io::part;
use crate::io::service_manager::{self, Word};
use crate::io::state_file::StateFile;

/// How long a service goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Until all that it found, or that was added meanwhile, is over.
    UntilDone,
    /// Until it is told to stop.
    Forever,
}

/// What a service has done.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// How each transfer ended; empty for one that ran for ever.
    pub reports: Vec<Report>,
    /// How many never had their turn.
    pub left: usize,
    /// Somebody said so over GUI RPC, and it ended.
    pub told_to_quit: bool,
}

/// Drives every transfer of the state file that is to be run and that no living process runs, honouring the time of each
/// one's next try; takes over what others leave when they die. Others may ask at `doors`; whoever
/// started it is told when it is ready (`sd_notify`). `notices` is called on this thread.
///
/// # Errors
/// [`EngineError`] where the state cannot be read or written, or nobody can listen at a door.
pub fn serve(
    settings: Settings,
    service: Service,
    doors: Doors,
    stop: &Stop,
    notices: &mut dyn FnMut(Notice),
) -> Result<Served, EngineError> {
    let world = World::of_the_system(settings.sync)?;
    on_an_event_loop(serve_in(world, settings, service, doors, stop, notices))
}

/// The same in a world of one's own, on the local set that polls it.
///
/// # Errors
/// As [`serve`].
pub async fn serve_in(
    world: World,
    settings: Settings,
    service: Service,
    doors: Doors,
    stop: &Stop,
    notices: &mut dyn FnMut(Notice),
) -> Result<Served, EngineError> {
    let hosts = hosts_for(&settings)?;
    let tally = Rc::<RefCell<Tally>>::default();
    let clock = world.clock.clone();
    let mut noted = |notice: Notice| {
        tally.borrow_mut().note(&notice, clock.now().mono);
        notices(notice);
    };
    let mut supervisor = supervisor(world, settings, Some(service), hosts, &mut noted)?;
    supervisor.desk.tally = Rc::clone(&tally);
    supervisor.desk.stop = stop.clone();
    supervisor.open_desk(doors)?;
    supervisor.look_for_work();
    service_manager::tell(Word::Ready);
    supervisor.run(stop).await?;
    if service == Service::UntilDone {
        supervisor.read_again()?;
        supervisor.remove_marks();
        supervisor.tell_of_the_rest();
    }
    let told_to_quit = supervisor.desk.quit == Quit::Asked;
    let left = supervisor.fresh.len() + supervisor.watch.waiting();
    Ok(Served { reports: std::mem::take(&mut supervisor.ended).into_values().collect(), left, told_to_quit })
}

/// The hosts' backoff keeps to the bounds that were typed for the first transfer to be run, as it does for a download.
fn hosts_for(settings: &Settings) -> Result<Hosts, EngineError> {
    let loaded = StateFile::at(&settings.state_file).load();
    let first = loaded.ok().and_then(|l| first_policy(&l.document));
    let (min, max) = first.map_or((None, None), |policy| policy.given_bounds());
    // Bounds that were accepted once are accepted again; should they not be, the hosts have their own.
    Ok(Hosts::new(min, max).or_else(|_| Hosts::new(None, None))?)
}

/// That of the first transfer to be run, else of the first report to be sent.
fn first_policy(document: &Document) -> Option<Policy> {
    let pending = document.transfers().find(|r| r.status == Status::Pending).map(|r| r.options.policy.clone());
    pending.or_else(|| document.reports().first().map(|report| report.policy.clone()))
}

impl Supervisor<'_> {
    /// What is not complete, and was not ours to run: that others run it, or that a person suspended it. A run that ends well
    /// says that everything is complete.
    fn tell_of_the_rest(&mut self) {
        let state_file: PathBuf = self.persist.path().to_owned();
        let mut living = Living::new(&state_file);
        let me = self.persist.me();
        let mut others = |record: &Record| living.in_use(record).filter(|_| record.owner != me);
        let open = |status: &Status| matches!(status, Status::Pending | Status::Suspended);
        let unfinished = self
            .seen
            .transfers()
            .filter(|r| open(&r.status) && (r.direction == Direction::Download || r.path.is_some()));
        let rest: Vec<_> = unfinished.filter(|record| !self.ended.contains_key(&record.id)).collect();
        for record in rest {
            let ending = match (&record.status, others(&record)) {
                (Status::Suspended, _) => ended::ending(&record, &Why::Suspended),
                (_, Some(fault)) => Ending::Local(fault),
                (_, None) => ended::ending(&record, &Why::Interrupted),
            };
            let report = ended::report(&record, ending);
            self.tell_end(report);
        }
    }

    /// What stands beside finished files whose process was killed right after the state knew of them goes.
    pub(super) fn remove_marks(&self) {
        let finished = |r: &Record| r.status == Status::Done && r.direction == Direction::Download;
        part::tidy_all(self.seen.transfers().filter(finished).filter_map(|record| record.path));
    }
}
