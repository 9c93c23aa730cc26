//! What came of a sync, module by module and source by source.

use crate::core::failure::LocalFault;
use crate::core::sync::config::{Mode, Module};
use crate::core::sync::source::Source;

/// What came of a module.
#[derive(Clone, Debug)]
pub struct ModuleReport {
    /// Its name.
    pub name: String,
    /// What was configured.
    pub mode: Mode,
    /// How it ended.
    pub outcome: Outcome,
    /// What went wrong with its own command, where something did.
    pub hook: Option<String>,
    /// Its sources, in the configured order.
    pub sources: Vec<SourceReport>,
    /// Files of `recent` that were too old for it.
    pub pruned: usize,
}

/// How a module ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ran to its end.
    Done,
    /// Nothing was to be done.
    Off,
    /// Another process is at it.
    Busy(LocalFault),
    /// It was told to stop.
    Stopped,
    /// Trouble on this machine.
    Local(LocalFault),
}

/// What came of a source.
#[derive(Clone, Debug)]
pub struct SourceReport {
    /// Its name.
    pub name: String,
    /// Its root, without secrets.
    pub url: String,
    /// Whether it could be read.
    pub state: SourceState,
    /// Why nothing was deleted, where something was to be.
    pub doubt: Option<String>,
    /// In numbers.
    pub counts: Counts,
}

/// Whether a source could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// It has not been asked.
    Unasked,
    /// Its index was read.
    Read,
    /// It could not be: why, printable.
    Failed(String),
}

/// A source in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Files of the module in its index.
    pub indexed: usize,
    /// Entries of the index that were refused.
    pub refused: usize,
    /// Files that were needed.
    pub needed: usize,
    /// Files that were fetched, from here or from a source that has the same.
    pub fetched: usize,
    /// Bytes received for that.
    pub bytes: u64,
    /// Files that were gone before they could be fetched.
    pub vanished: usize,
    /// Files that could not be fetched.
    pub failed: usize,
    /// Files that are still to be fetched.
    pub left: usize,
    /// Files that its index no longer has, and that were deleted here.
    pub deleted: usize,
    /// Files and descriptors that are not what they should be.
    pub rejected: usize,
    /// Files that nothing vouches for: no size, no digest, and no end that could be missing.
    pub unverified: usize,
    /// Files and descriptors that are new here.
    pub copied: usize,
    /// Those that took the place of something that was no valid copy.
    pub healed: usize,
    /// Those that took the place of a valid copy.
    pub replaced: usize,
    /// Those that stand here already.
    pub identical: usize,
    /// Those of which another copy stands here, and stays.
    pub conflicts: usize,
}

impl ModuleReport {
    pub(super) fn new(module: &Module, outcome: Outcome) -> Self {
        let sources = module.sources.iter().map(SourceReport::new).collect();
        Self { name: module.name.clone(), mode: module.mode, outcome, hook: None, sources, pruned: 0 }
    }

    /// Was all of it done?
    pub fn is_complete(&self) -> bool {
        let whole = |source: &SourceReport| {
            source.state == SourceState::Read && source.counts.failed == 0 && source.counts.left == 0
        };
        match self.outcome {
            Outcome::Off => true,
            Outcome::Done => self.hook.is_none() && self.sources.iter().all(whole),
            Outcome::Busy(_) | Outcome::Stopped | Outcome::Local(_) => false,
        }
    }
}

impl SourceReport {
    fn new(source: &Source) -> Self {
        Self {
            name: source.name.clone(),
            url: source.base.to_string(),
            state: SourceState::Unasked,
            doubt: None,
            counts: Counts::default(),
        }
    }
}
