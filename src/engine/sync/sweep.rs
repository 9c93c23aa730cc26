//! What earlier runs left behind: staged files that no transfer claims, and transfers of files that no source has any more.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::Halt;
use super::module::Work;
use super::source::At;
use crate::core::failure::LocalFault;
use crate::core::pers_xfer::record::{Record, Status};
use crate::engine::EngineError;
use crate::io::durable::{self, local_fault};
use crate::io::part;
use crate::io::state_file::StateFile;

/// When staging folders are swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Before files are fetched.
    Before,
    /// After all of them were.
    After,
}

impl Work<'_, '_> {
    /// Clears the staging folders of what nobody goes on with. Before anything is fetched, a file that is whole there stays
    /// where a digest will tell whether it was flushed; any other is fetched again.
    pub(super) fn sweep(&mut self, sources: &[At<'_>], when: When) -> Result<(), Halt> {
        let staged: Vec<(&At<'_>, PathBuf)> = sources.iter().map(|at| (at, at.staging())).collect();
        if staged.iter().all(|(_, folder)| !folder.exists()) {
            return Ok(());
        }
        let state = StateFile::at(&self.job.settings.state_file);
        let document = state.load().map_err(EngineError::from)?.document;
        let (mut claimed, mut stale) = (HashSet::new(), Vec::new());
        for record in document.transfers() {
            let Some((at, path)) = staged_of(&record, &staged) else { continue };
            let wanted = at.index.is_none() || at.needs_path(path);
            match (record.path.as_deref().filter(|_| wanted), &record.status) {
                (Some(target), Status::Pending | Status::Suspended | Status::Failed { .. }) => {
                    claimed.extend(part::file_names(target));
                }
                (Some(target), Status::Done) if when == When::Before && !record.digests.is_empty() => {
                    _ = claimed.insert(target.to_owned())
                }
                _ => stale.push(record.id),
            }
        }
        if !stale.is_empty() {
            let removed = state.commit(|document| stale.iter().for_each(|id| _ = document.remove(*id)));
            removed.map_err(EngineError::from)?;
        }
        for (_, folder) in staged {
            clear(&folder, &claimed)?;
        }
        Ok(())
    }

    /// Everything that is staged goes, and the transfers of it.
    pub(super) fn clear_staging(&mut self, sources: &[At<'_>]) -> Result<(), Halt> {
        for at in sources {
            clear(&at.staging(), &HashSet::new())?;
            clear(&at.own.join("placing"), &HashSet::new())?;
        }
        Ok(())
    }
}

/// The source into whose staging folder a transfer goes, and the path of its file there.
fn staged_of<'s, 'r>(record: &'r Record, staged: &'s [(&'s At<'s>, PathBuf)]) -> Option<(&'s At<'s>, &'r str)> {
    let target = record.path.as_deref()?;
    staged.iter().find_map(|(at, folder)| Some((*at, target.strip_prefix(folder).ok()?.to_str()?)))
}

/// Removes all files below a folder, but these.
fn clear(folder: &Path, but: &HashSet<PathBuf>) -> Result<(), LocalFault> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|error| local_fault("list", folder, &error))?,
    };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => clear(&path, but)?,
            _ if but.contains(&path) => {}
            _ => durable::remove(&path)?,
        }
    }
    Ok(())
}
