//! The files that stand beside a target while it is not complete: `NAME.persxfer-part`, `NAME.persxfer-part2`,
//! `NAME.persxfer-journal` (design 3.9).
//!
//! Two targets never share them. Where the target's name leaves no room for the ending, its end gives way to a
//! checksum of the whole; a name that itself looks like such a shortened one is shortened too, so that it cannot be
//! met by chance.

use std::ffi::{OsStr, OsString};

const PART: &str = ".persxfer-part";
const RIVAL: &str = ".persxfer-part2";
const JOURNAL: &str = ".persxfer-journal";

/// The bytes of the longest ending.
pub(super) const LONGEST_SUFFIX: usize = JOURNAL.len();

/// A `~` and eight hex digits.
const MARK_LEN: usize = 9;

/// The name of the part file of a target of this name.
pub fn part_file_name(target: impl AsRef<OsStr>) -> OsString {
    beside(target.as_ref(), PART)
}

/// The name of the second part file: that of a newer version.
pub fn rival_file_name(target: impl AsRef<OsStr>) -> OsString {
    beside(target.as_ref(), RIVAL)
}

/// The name of the journal of a target of this name.
pub fn journal_file_name(target: impl AsRef<OsStr>) -> OsString {
    beside(target.as_ref(), JOURNAL)
}

/// Is this the name of a part file, a second part file or a journal?
pub fn is_working_name(name: impl AsRef<OsStr>) -> bool {
    let name = name.as_ref().as_encoded_bytes();
    [PART, RIVAL, JOURNAL].into_iter().any(|suffix| name.len() > suffix.len() && name.ends_with(suffix.as_bytes()))
}

/// Makes a name that ends like one of ours end otherwise: a server could name the part file of another transfer.
pub(super) fn disarm(name: &mut String) {
    let lower = name.to_ascii_lowercase();
    if let Some(suffix) = [PART, RIVAL, JOURNAL].into_iter().find(|suffix| lower.ends_with(suffix)) {
        let dot = name.len() - suffix.len();
        name.replace_range(dot..=dot, "_");
    }
}

/// The longest name that leaves room for every ending of ours.
const STEM_MAX: usize = super::NAME_MAX - LONGEST_SUFFIX;

/// The mark that keeps two shortened names apart: `~` and the CRC-32C of the whole.
pub(super) fn mark(whole: &[u8]) -> String {
    format!("~{:08x}", crc32c::crc32c(whole))
}

fn beside(target: &OsStr, suffix: &str) -> OsString {
    let mut name = if fits(target) { target.to_os_string() } else { shortened(target).into() };
    name.push(suffix);
    name
}

/// There is room for every ending, and no shortened name looks like this one.
fn fits(target: &OsStr) -> bool {
    let bytes = target.as_encoded_bytes();
    // Cutting between two characters costs up to three bytes.
    let like_ours = bytes.len() + 3 >= STEM_MAX && ends_in_mark(bytes);
    bytes.len() <= STEM_MAX && !like_ours
}

fn ends_in_mark(name: &[u8]) -> bool {
    let Some((_, [b'~', digits @ ..])) = name.split_last_chunk::<MARK_LEN>() else { return false };
    digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn shortened(target: &OsStr) -> String {
    let text = target.to_string_lossy();
    let cut = text.floor_char_boundary(STEM_MAX - MARK_LEN);
    format!("{}{}", &text[..cut], mark(target.as_encoded_bytes()))
}
