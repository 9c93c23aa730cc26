//! One module, from its lock to its report (B8, steps 1 to 10).

use super::merge::gone;
use super::source::At;
use super::sweep::When;
use super::{Depth, Halt, ModuleReport, Outcome, SourceState, SyncJob, SyncNotice, Tell};
use crate::core::failure::LocalFault;
use crate::core::printable::printable;
use crate::core::sync::config::{Mode, Module};
use crate::core::sync::diff::{Guard, lost};
use crate::core::time::{Delay, Epoch};
use crate::engine::{EngineError, Stop};
use crate::io::clock::Clock;
use crate::io::durable::{self, SHARED_FOLDER};
use crate::io::lock::Lock;
use crate::io::sync::{OWN, run_hook};

/// A module at work.
pub(super) struct Work<'a, 't> {
    pub(super) job: &'a SyncJob,
    pub(super) module: &'a Module,
    pub(super) stop: &'a Stop,
    pub(super) tell: &'a mut Tell<'t>,
    pub(super) now: Epoch,
    pub(super) report: ModuleReport,
}

/// Runs a module; its trouble is its own.
pub(super) fn run(
    job: &SyncJob,
    module: &Module,
    stop: &Stop,
    tell: &mut Tell<'_>,
) -> Result<ModuleReport, EngineError> {
    let now = Clock::system().now().wall;
    let report = ModuleReport::new(module, Outcome::Done);
    let mut work = Work { job, module, stop, tell, now, report };
    match work.run() {
        Ok(()) if stop.is_requested() => work.report.outcome = Outcome::Stopped,
        Ok(()) => {}
        Err(Halt::Local(fault @ LocalFault::InUse { .. })) => work.report.outcome = Outcome::Busy(fault),
        Err(Halt::Local(fault)) => work.report.outcome = Outcome::Local(fault),
        Err(Halt::Engine(error)) => return Err(error),
    }
    Ok(work.report)
}

impl Work<'_, '_> {
    pub(super) fn warn(&mut self, text: impl Into<String>) {
        (self.tell)(SyncNotice::Warning(format!("{}: {}", self.module.name, text.into())));
    }

    pub(super) fn news(&mut self, text: impl Into<String>) {
        (self.tell)(SyncNotice::News(format!("{}: {}", self.module.name, text.into())));
    }

    fn run(&mut self) -> Result<(), Halt> {
        let folder = self.job.config.sync_folder.join(OWN);
        durable::create_folder(&folder, SHARED_FOLDER)?;
        let _lock = Lock::acquire(&folder.join(format!("{}.lock", self.module.name)), Delay::ZERO)?;
        let mut sources = Vec::new();
        for source in &self.module.sources {
            sources.push(At::open(source, &self.job.config.sync_folder, &self.module.name)?);
        }
        if self.job.depth == Depth::Full {
            self.hook();
        }
        self.fetch_indexes(&mut sources)?;
        for (n, at) in sources.iter_mut().enumerate() {
            at.weigh()?;
            let counts = &mut self.report.sources[n].counts;
            counts.indexed = at.index.as_ref().map_or(0, |index| index.listing.len());
            counts.refused = at.index.as_ref().map_or(0, |index| index.refused.count);
            counts.needed = at.needed.iter().filter(|needed| **needed).count();
            counts.left = if self.job.depth == Depth::Full { counts.needed } else { 0 };
        }
        if self.job.depth == Depth::Plan {
            sources.iter().enumerate().for_each(|(n, at)| self.count_lost(n, at));
            return Ok(());
        }
        self.sweep(&sources, When::Before)?;
        self.fetch_files(&mut sources)?;
        if !self.stop.is_requested() {
            // What another source's folder turned out to hold was not taken from where it was staged.
            self.sweep(&sources, When::After)?;
        }
        for (n, at) in sources.iter_mut().enumerate() {
            self.delete(n, at)?;
        }
        self.merge(&mut sources)?;
        self.tend_recent()
    }

    /// The module itself; its failure does not stop the sync (B1).
    fn hook(&mut self) {
        if self.module.mode != Mode::Sync || self.module.hook.is_empty() {
            return;
        }
        if let Err(why) = run_hook(&self.module.hook, &self.module.name) {
            self.warn(format!("its command: {}; its sources are fetched all the same", printable(&why)));
            self.report.hook = Some(why);
        }
    }

    fn count_lost(&mut self, n: usize, at: &At<'_>) {
        self.report.sources[n].counts.deleted = at.index.as_ref().map_or(0, |index| lost(index, &at.manifest).count());
    }

    /// Files that a source no longer has go, unless the guard has doubts (B8.7).
    fn delete(&mut self, n: usize, at: &mut At<'_>) -> Result<(), Halt> {
        let Some(index) = at.index.take() else { return Ok(()) };
        let judged = Guard::default().judge(&index, &at.manifest, self.now);
        let paths: Vec<String> = lost(&index, &at.manifest).map(|entry| entry.path.to_owned()).collect();
        if judged.memory != at.manifest.memory {
            at.book.remember(&judged.memory);
        }
        match judged.doubt {
            Some(doubt) => {
                self.warn(format!("{}: its index: {doubt}; nothing is deleted", at.source.name));
                self.report.sources[n].doubt = Some(doubt.to_string());
            }
            None => {
                for path in &paths {
                    durable::remove(&at.place(path))?;
                    at.book.note(&gone(path));
                }
                at.fresh.retain(|path| paths.binary_search(path).is_err());
                self.report.sources[n].counts.deleted = paths.len();
            }
        }
        at.index = Some(index);
        Ok(at.book.flush()?)
    }

    /// A source could not be read.
    pub(super) fn source_failed(&mut self, n: usize, why: impl Into<String>) {
        let why = why.into();
        self.warn(format!("{}: no index: {why}", self.report.sources[n].name));
        self.report.sources[n].state = SourceState::Failed(why);
    }
}
