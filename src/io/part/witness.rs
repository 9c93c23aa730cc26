//! The witness: a second name of a finished file, from just before it gets its final name until the state knows of it.
//!
//! A process may be killed between the two. Then the state may not even know the download (a small one enters it at its
//! end), and the file under the final name could be anybody's. The witness tells: nobody but us gives a file that name.
//! It is the name of the rival, which by then is gone. File systems without second names have no witness; there, such a
//! file is taken for somebody else's, and left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::core::failure::LocalFault;
use crate::core::file_xfer::dossier::Draft as DraftRecord;
use crate::core::name::{is_working_name, journal_file_name, rival_file_name};
use crate::io::effects;
use crate::io::part::PartStore;
use crate::io::part::fault::unlink;
use crate::io::part::names::Names;
use crate::io::part::take::look;

/// The file of this name was written and verified by us, although perhaps no record says so.
pub fn is_witnessed(target: &Path) -> bool {
    stands(&Names::of(target)).unwrap_or(false)
}

/// The file of this name is what the record calls its part file, which got its final name when it was whole and verified.
pub fn is_published(target: &Path, part: &DraftRecord, meta: &Metadata) -> bool {
    part.inode == Some(meta.ino()) && is_witnessed(target)
}

/// The state knows of the finished file: what may still stand beside it goes. Of a download that is running, nothing is
/// touched. What cannot be removed stays; it is not needed.
pub fn tidy(target: &Path) {
    let names = Names::of(target);
    if let Ok(true) = stands(&names) {
        let _ = unlink(&names.rival);
    }
    if let (Ok(None), Ok(Some(_))) = (look(&names.part), look(&names.journal)) {
        let _ = PartStore::remove(target);
    }
}

/// The same for many: what processes left that were killed right after the state knew. Folders without such files cost one
/// look.
pub fn tidy_all(finished: impl Iterator<Item = PathBuf>) {
    let mut folders: BTreeMap<PathBuf, BTreeSet<OsString>> = BTreeMap::new();
    for target in finished {
        let (Some(folder), Some(name)) = (target.parent(), target.file_name()) else { continue };
        let found = folders.entry(folder.to_owned()).or_insert_with(|| working_names(folder));
        if found.contains(&rival_file_name(name)) || found.contains(&journal_file_name(name)) {
            tidy(&target);
        }
    }
}

fn working_names(folder: &Path) -> BTreeSet<OsString> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).filter(|name| is_working_name(name)).collect()
}

/// Sets the witness for the part file, which is about to get its final name.
pub(super) fn set(names: &Names) -> Result<(), LocalFault> {
    unlink(&names.rival)?;
    // It is worth having, and no more.
    let _ = effects::link(&names.part, &names.rival);
    Ok(())
}

/// The part file was not published after all, or the process that was about to do so is no more.
pub(super) fn part_is_not_published(names: &Names) -> Result<(), LocalFault> {
    if same(&names.part, &names.rival)? { unlink(&names.rival) } else { Ok(()) }
}

/// The witness of the file under the final name is there.
pub(super) fn stands(names: &Names) -> Result<bool, LocalFault> {
    same(&names.target, &names.rival)
}

fn same(a: &Path, b: &Path) -> Result<bool, LocalFault> {
    let Some(b) = look(b)?.filter(|meta| meta.is_file() && meta.nlink() > 1) else { return Ok(false) };
    Ok(look(a)?.is_some_and(|a| (a.dev(), a.ino()) == (b.dev(), b.ino())))
}
