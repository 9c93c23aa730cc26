//! Sync: runs the modules of a configuration, each from its sources' indexes to our own trees (seed 003; B8 of the facts).
//!
//! Everything is decided in [`crate::core::sync`]; files and requests are those of the floors below, transfers are this
//! engine's own jobs. One module after the other:
//!
//! | file | about |
//! |---|---|
//! | `module` | a module from its lock to its report |
//! | `source` | a source at work: its folder, lock, manifest, index, and what is needed of it |
//! | `indexes` | fetching indexes, and the pages of web servers |
//! | `fetch` | files that are needed: one transfer for all sources that have the same one |
//! | `sweep` | what earlier runs left: staged files that no transfer claims, files that are gone |
//! | `merge`, `split` | what was fetched, looked at and merged into our own trees |
//! | `recent` | what is too old for `recent`, and our own index |
//! | `report` | what came of it |

mod fetch;
mod indexes;
mod merge;
mod module;
mod recent;
mod report;
mod source;
mod split;
mod sweep;

use std::path::PathBuf;
use std::sync::Arc;

use crate::core::failure::LocalFault;
use crate::core::sync::config::{Mode, SyncConfig};
use crate::engine::{EngineError, Notice, Options, Settings, Stop};

pub use report::{Counts, ModuleReport, Outcome, SourceReport, SourceState};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct SyncJob {
    /// The configuration; its paths are absolute.
    pub config: SyncConfig,
    /// What holds for all transfers.
    pub settings: Settings,
    /// How patient each is, and how its requests travel.
    pub options: Arc<Options>,
    /// Only the module of this name.
    pub only: Option<String>,
    /// How far it goes.
    pub depth: Depth,
}

/// How far a sync goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// All the way.
    Full,
    /// Indexes are fetched, and what would be done is counted.
    Plan,
}

/// Something happened.
#[derive(Clone, Debug)]
pub enum SyncNotice {
    /// With a transfer.
    Transfer(Box<Notice>),
    /// A warning: one line, printable.
    Warning(String),
    /// News: one line, printable.
    News(String),
}

/// Where notices go.
pub type Tell<'t> = dyn FnMut(SyncNotice) + 't;

/// Why a file cannot get its place.
const TAKEN: &str = "its place is taken by a folder, or lies in what is a file here";

/// Why something of a module cannot go on.
#[derive(Debug, thiserror::Error)]
enum Halt {
    /// Trouble on this machine.
    #[error(transparent)]
    Local(#[from] LocalFault),
    /// The engine cannot run at all.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Runs every module once, or the one that was asked for. Trouble of this machine ends a module, not the others.
///
/// # Errors
/// [`EngineError`] where no transfer can be run at all.
pub fn sync(job: &SyncJob, stop: &Stop, tell: &mut Tell<'_>) -> Result<Vec<ModuleReport>, EngineError> {
    let mut reports = Vec::new();
    for module in &job.config.modules {
        if job.only.as_ref().is_some_and(|only| *only != module.name) || stop.is_requested() {
            continue;
        }
        if module.mode == Mode::NoSync {
            reports.push(ModuleReport::new(module, Outcome::Off));
            continue;
        }
        reports.push(module::run(job, module, stop, tell)?);
    }
    Ok(reports)
}

/// Our own `recent` tree, where there is one.
fn own_index_of(config: &SyncConfig) -> Option<PathBuf> {
    let recent = config.recent.as_ref()?;
    let beside = || recent.parent().map(|folder| folder.join("index").join("index.json"));
    config.index.clone().or_else(beside)
}
