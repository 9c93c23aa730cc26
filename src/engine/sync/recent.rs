//! Our own `recent`: what its own content calls too old goes, and at the very end our index of it is written anew.

use std::path::Path;

use super::module::Work;
use super::{Halt, own_index_of};
use crate::core::sync::merge::is_recent;
use crate::core::time::{Delay, Epoch};
use crate::io::durable::{self, SHARED_FOLDER};
use crate::io::lock::Lock;
use crate::io::sync::{OWN, OwnIndex, files_below, look, standing, write_own_index};

/// How long another module's index is waited for.
const PATIENCE: Delay = Delay::from_mins(10);

impl Work<'_, '_> {
    /// Prunes `recent`, and writes the index of it where it is not that of what stands there.
    pub(super) fn tend_recent(&mut self) -> Result<(), Halt> {
        let Some(recent) = self.job.config.recent.clone() else { return Ok(()) };
        if self.stop.is_requested() || !recent.exists() {
            return Ok(());
        }
        self.prune(&recent)?;
        let Some(index) = own_index_of(&self.job.config) else { return Ok(()) };
        let changed = self.report.pruned > 0
            || self
                .report
                .sources
                .iter()
                .any(|s| s.counts.copied + s.counts.healed + s.counts.replaced + s.counts.identical > 0);
        if !changed && index.exists() {
            return Ok(());
        }
        let own = recent.join(OWN);
        durable::create_folder(&own, SHARED_FOLDER)?;
        let _lock = Lock::acquire(&own.join("index.lock"), PATIENCE)?;
        let base_url = &self.job.config.base_url;
        let folder = durable::folder_of(&index).join(OWN);
        Ok(write_own_index(OwnIndex { recent: &recent, index: &index, base_url, now: self.now }, folder)?)
    }

    fn prune(&mut self, recent: &Path) -> Result<(), Halt> {
        for path in files_below(recent)? {
            let in_a_source = format!("recent/{path}");
            let ours = |path: &str| self.module.parts.iter().any(|part| part.of(path).is_some());
            // Of a tree that knows no `recent`, paths are the same on both sides.
            let Some(theirs) = [in_a_source.as_str(), path.as_str()].into_iter().find(|path| ours(path)) else {
                continue;
            };
            let file = recent.join(&path);
            let Some(stands) = standing(&file)? else { continue };
            // What was written lately is not older by its content, as far as this program wrote it.
            if is_recent(Some(stands.modified), self.now, self.module.window) {
                continue;
            }
            if !is_recent(Some(self.date_of(&file, theirs, stands.modified)?), self.now, self.module.window) {
                durable::remove(&file)?;
                self.report.pruned += 1;
            }
        }
        Ok(())
    }

    /// The newest date in a file; that of the file where it tells none.
    fn date_of(&self, file: &Path, path: &str, modified: Epoch) -> Result<Epoch, Halt> {
        let Some(kind) = self.kind_of(path) else { return Ok(modified) };
        let mut newest = None;
        look(file, kind, &mut |segment| {
            newest = newest.max(segment.verdict.ok().and_then(|facts| facts.date));
        })?;
        Ok(newest.unwrap_or(modified))
    }
}
