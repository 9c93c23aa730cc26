//! `config.toml`: the preferences of this machine (`docs/config.md`). Every mistake names the file and the line, and ends
//! the command with exit status 2 before anything is touched.
//!
//! What is typed comes before what the file says, and that before what is built in.

mod keys;
mod ledger;
#[cfg(test)]
mod tests;
mod value;

use std::path::{Path, PathBuf};

use crate::cli::foreign::plain_error;
use crate::cli::trouble::Trouble;
use crate::core::prefs::Preferences;
use value::Page;

/// A file that is larger is none of ours.
const MAX_SIZE: u64 = 1 << 20;

/// Where the preferences stand.
#[derive(Clone, Debug)]
pub(crate) struct ConfigFile {
    path: Option<PathBuf>,
    given: Given,
}

/// Who named the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    /// A person: it must be there.
    Yes,
    /// Nobody: where it is missing, nothing is preferred.
    No,
}

impl ConfigFile {
    /// The file as given, else the one in the folder where configuration belongs (XDG Base Directory).
    pub(crate) fn find(given: Option<&Path>, cwd: &Path) -> Self {
        use etcetera::BaseStrategy;
        if let Some(given) = given {
            return Self { path: Some(cwd.join(given)), given: Given::Yes };
        }
        let folder = etcetera::choose_base_strategy().ok().map(|dirs| dirs.config_dir());
        Self { path: folder.map(|folder| folder.join("persxfer").join("config.toml")), given: Given::No }
    }

    /// What it says now.
    ///
    /// # Errors
    /// It cannot be read, or says something that makes no sense.
    pub(crate) fn read(&self) -> Result<Preferences, Trouble> {
        let Some(path) = &self.path else { return Ok(Preferences::default()) };
        let refuse = |e: &std::io::Error| Trouble::option("--config", path.to_string_lossy(), unreadable(e));
        match text_of(path) {
            Ok(text) => parse(&text, path).map_err(Trouble::Usage),
            Err(e) if self.given == Given::No && is_absent(&e) => Ok(Preferences::default()),
            Err(e) => Err(refuse(&e)),
        }
    }
}

/// Reads the text of a file; relative paths in it are meant from its folder.
pub(crate) fn parse(text: &str, path: &Path) -> Result<Preferences, String> {
    let page = Page { text, path };
    keys::preferences(&page)
}

fn text_of(path: &Path) -> std::io::Result<String> {
    use std::io::{Error, ErrorKind, Read};
    let file = crate::io::regular::read_regular(path)?;
    let mut text = String::new();
    file.take(MAX_SIZE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_SIZE {
        return Err(Error::new(ErrorKind::FileTooLarge, "it is larger than 1 MiB"));
    }
    Ok(text)
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

fn unreadable(error: &std::io::Error) -> String {
    let what = match error.kind() {
        std::io::ErrorKind::InvalidData => "it is no text (UTF-8)".to_owned(),
        std::io::ErrorKind::FileTooLarge => error.to_string(),
        _ => format!("cannot read it: {}", plain_error(error)),
    };
    format!("{what}; name a file of preferences")
}
