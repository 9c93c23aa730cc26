//! Names of files: those that URLs and servers give, made safe; and those of the files that stand beside a target.
//!
//! A name from outside is always one component inside the folder that was chosen, whatever it tries: `../../x`,
//! `C:\x`, a device of Windows, an invisible mark that turns the ending around, a dot file from a server, 300 bytes.
//! The same text always gives the same name, so that a resume finds its file.

mod boinc;
mod disposition;
mod sibling;

use std::fmt;

use percent_encoding::percent_decode_str;

use crate::core::printable::is_hidden;
use crate::core::url::MirrorUrl;

pub use boinc::boinc_name;
pub use sibling::{is_working_name, journal_file_name, part_file_name, rival_file_name};

/// The longest name of a file on the systems we know, in bytes.
const NAME_MAX: usize = 255;

/// The longest safe name: what the systems take. The names beside it are shortened where their endings need the room.
pub const SAFE_MAX: usize = NAME_MAX;

/// Who gave a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Giver {
    /// The URL that the user typed: a dot file is what was asked for.
    Url,
    /// A server: a dot file could be `.bashrc`, so that its first dot becomes `_`.
    Server,
}

/// The name of a file that is safe to create inside a folder: one component of UTF-8, at most [`SAFE_MAX`] bytes, and
/// none of the names of our own part files.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SafeName(String);

impl SafeName {
    /// Makes a name from outside safe; `None` where nothing usable is left of it.
    ///
    /// Of a path (with either kind of separator) the final component counts. Characters that are not seen become `_`,
    /// and so do a leading dash (it would be an option to the next command) and, from a server, a leading dot. Blanks
    /// around and dots at the end go; a name of a device gets a `_` in front; what is too long is cut before its
    /// extension and marked with the checksum of the whole, so that two long names stay two.
    pub fn new(raw: &str, giver: Giver) -> Option<Self> {
        let last = raw.split(['/', '\\']).rev().find(|component| !component.trim().is_empty())?;
        if tidy(&last.replace(is_hidden, "")).is_empty() {
            return None;
        }
        let mut name = tidy(&last.replace(is_hidden, "_")).to_owned();
        if name.starts_with('-') || (giver == Giver::Server && name.starts_with('.')) {
            name.replace_range(..1, "_");
        }
        if is_device(&name) {
            name.insert(0, '_');
        }
        sibling::disarm(&mut name);
        Some(Self(shortened(name)))
    }

    /// The name that a URL gives: the last component of its path that is not empty, decoded; `index.html` where there
    /// is none. The query has no part in it.
    pub fn from_url(url: &MirrorUrl) -> Self {
        let mut segments = url.secret_url().path().split('/').rev();
        let named = segments.find_map(|segment| Self::new(&decoded(segment), Giver::Url));
        named.unwrap_or_else(|| Self("index.html".to_owned()))
    }

    /// The name where neither server nor URL has a usable one.
    pub fn fallback() -> Self {
        Self("download".to_owned())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SafeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<std::path::Path> for SafeName {
    fn as_ref(&self) -> &std::path::Path {
        self.0.as_ref()
    }
}

/// Without blanks around, and without dots at the end, which Windows drops.
fn tidy(name: &str) -> &str {
    name.trim_start().trim_end_matches(|c: char| c == '.' || c.is_whitespace())
}

/// A name that Windows takes for a device, whatever its extension.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_ascii_uppercase();
    if ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(&stem.as_str()) {
        return true;
    }
    let port = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
    port.is_some_and(|n| matches!(n, "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³"))
}

/// At most [`SAFE_MAX`] bytes, the extension kept.
fn shortened(name: String) -> String {
    if name.len() <= SAFE_MAX {
        return name;
    }
    let (stem, extension) = name.split_at(name.len() - extension(&name).len());
    let mark = sibling::mark(name.as_bytes());
    let cut = stem.floor_char_boundary(SAFE_MAX - mark.len() - extension.len());
    format!("{}{mark}{extension}", &stem[..cut])
}

/// `.gz`, or `.tar.gz` as one; empty where what follows the last dot is too long to be an extension.
fn extension(name: &str) -> &str {
    const LONGEST: usize = 16;
    let Some((stem, last)) = name.rsplit_once('.').filter(|(stem, last)| !stem.is_empty() && last.len() < LONGEST)
    else {
        return "";
    };
    let tar =
        stem.len().checked_sub(4).and_then(|at| stem.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(".tar"));
    &name[name.len() - (1 + last.len() + if tar { 4 } else { 0 })..]
}

/// A percent-encoded text decoded once; where that gives no UTF-8, the text as it is.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests;
