//! The names of the files that stand beside a target while it is being fetched.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::core::name::{journal_file_name, part_file_name, rival_file_name};

/// The longest file name, in bytes, that the usual file systems take.
const NAME_MAX: usize = 255;

/// Where the files of one download stand.
#[derive(Clone, Debug)]
pub(super) struct Names {
    /// The final name.
    pub(super) target: PathBuf,
    /// The part file.
    pub(super) part: PathBuf,
    /// The second part file, of a newer version.
    pub(super) rival: PathBuf,
    /// The journal of both.
    pub(super) journal: PathBuf,
}

impl Names {
    pub(super) fn of(target: &Path) -> Self {
        let name = target.file_name().unwrap_or(target.as_os_str());
        Self {
            target: target.to_owned(),
            part: target.with_file_name(part_file_name(name)),
            rival: target.with_file_name(rival_file_name(name)),
            journal: target.with_file_name(journal_file_name(name)),
        }
    }

    /// The folder of them all.
    pub(super) fn folder(&self) -> &Path {
        folder_of(&self.target)
    }
}

/// The folder a path is in.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The path of a helper file beside `target`: its name with `suffix`. One that would be too long is cut and marked with a hash of the whole, so that two
/// long names which begin alike do not meet.
pub(super) fn sibling(target: &Path, suffix: &str) -> PathBuf {
    let name = target.file_name().unwrap_or(target.as_os_str());
    let mut full = if name.len() + suffix.len() > NAME_MAX { shortened(name, suffix) } else { name.to_owned() };
    full.push(suffix);
    target.with_file_name(full)
}

/// The beginning of `name`, `~` and 16 hex digits, with room left for `suffix`.
fn shortened(name: &OsStr, suffix: &str) -> OsString {
    let mark = format!("~{}", &blake3::hash(name.as_bytes()).to_hex()[..16]);
    let room = NAME_MAX - suffix.len() - mark.len();
    let bytes = name.as_bytes();
    // A character is not cut in half: a continuation byte of UTF-8 is never the first one left out.
    let cut = (0..=room).rev().find(|&i| bytes.get(i).is_none_or(|b| b & 0xC0 != 0x80)).unwrap_or(room);
    let mut short = OsStr::from_bytes(&bytes[..cut.min(bytes.len())]).to_owned();
    short.push(mark);
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(path: &Path) -> &str {
        path.file_name().and_then(OsStr::to_str).expect("a UTF-8 name")
    }

    #[test]
    fn a_plain_name_gets_the_suffix() {
        assert_eq!(sibling(Path::new("/d/a.iso"), ".persxfer-part"), Path::new("/d/a.iso.persxfer-part"));
        assert_eq!(sibling(Path::new("a.iso"), ".x"), Path::new("a.iso.x"));
    }

    #[test]
    fn a_long_name_is_cut_between_characters_and_stays_distinct() {
        let long = |last: char| PathBuf::from(format!("/d/{}{last}", "é".repeat(125)));
        let (a, b) = (sibling(&long('a'), ".persxfer-journal"), sibling(&long('b'), ".persxfer-journal"));
        assert!(name_of(&a).len() <= NAME_MAX && name_of(&a).len() > NAME_MAX - 3);
        assert!(name_of(&a).ends_with(".persxfer-journal"));
        assert_ne!(a, b);
        assert_eq!(a, sibling(&long('a'), ".persxfer-journal"));
    }

    #[test]
    fn the_longest_name_that_fits_is_left_alone() {
        let name = "n".repeat(NAME_MAX - 2);
        assert_eq!(name_of(&sibling(Path::new(&name), ".x")), format!("{name}.x"));
    }
}
