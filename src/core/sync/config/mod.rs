//! The configuration of `sync`: the properties of CollecTor's outline (seed 003), in Java's syntax or the same keys in
//! TOML, and what they mean.
//!
//! | key | says |
//! |---|---|
//! | `SyncFolder` | where sources are mirrored |
//! | `RecentPath`, `IndexPath`, `InstanceBaseUrl` | our own `recent` tree, its index, and its URL for that |
//! | `SyncX` | `Sync`, `NoSync` or `SyncOnly`, of the module X |
//! | `SyncSourcesX` | its sources: `[NAME ]URL`, with commas between |
//! | `XOutDirectory` | where its files are kept for good |
//! | `XFolders`, `XKind`, `XWindow` | what of a source is its (`.`: all), what that should be, how long it stays in `recent` |
//! | `XHook` | a command: the module itself |
//! | `XKeep`, `XReplace` | its criteria, by name |
//! | `CriterionNAME` | a command that is a criterion |
//!
//! X is one of the seed's four, or any word: `SyncFoo` makes a module `foo`. Other keys are left alone, so that all of it
//! may stand in a larger file; those that look like one of these and are none are errors, because they were meant.

mod properties;
mod read;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;

use super::path::Part;
use super::source::Source;
use crate::core::printable::printable;
use crate::core::time::Delay;

/// How a configuration is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `key = value`, as `java.util.Properties` reads it.
    Properties,
    /// TOML.
    Toml,
}

/// What was configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncConfig {
    /// Where sources are mirrored. As written: what is relative is meant from the folder of the file.
    pub sync_folder: PathBuf,
    /// Our own `recent` tree.
    pub recent: Option<PathBuf>,
    /// Its index; beside `recent` where nothing is said.
    pub index: Option<PathBuf>,
    /// The URL of our own instance, for that index.
    pub base_url: String,
    /// The modules, in the file's order.
    pub modules: Vec<Module>,
    /// Keys that were left alone, with their lines.
    pub left_alone: Vec<(usize, String)>,
}

/// One module: a part of the trees of its sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its name: `relaydescs`.
    pub name: String,
    /// What is done.
    pub mode: Mode,
    /// Where its files come from, in order; at least one, unless nothing is done.
    pub sources: Vec<Source>,
    /// Where its files are kept for good; none where nothing is done.
    pub out: PathBuf,
    /// What of a tree is its.
    pub parts: Vec<Part>,
    /// What its files should be.
    pub kind: KindChoice,
    /// How old by its content a file may be to stand in `recent`.
    pub window: Delay,
    /// The module itself, run first under [`Mode::Sync`]: the words of a command.
    pub hook: Vec<String>,
    /// What a file must be to be kept at all.
    pub keep: Vec<Criterion>,
    /// When a file takes the place of another one.
    pub replace: Vec<Criterion>,
}

/// What is done with a module; the seed's `SyncType`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The module runs first, then its sources are fetched.
    Sync,
    /// Nothing.
    #[default]
    NoSync,
    /// The sources are fetched, the module is not run.
    SyncOnly,
}

/// How the kind of a file is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindChoice {
    /// By the folder that it is in.
    ByFolder,
    /// This one.
    Named(String),
}

/// A criterion, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// One that the program knows.
    Known(String),
    /// A command of the user's.
    Command {
        /// Its name.
        name: String,
        /// Its words.
        words: Vec<String>,
    },
}

impl Criterion {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Known(name) | Self::Command { name, .. } => name,
        }
    }
}

/// The first thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct BadConfig {
    /// The line, from 1; 0 where something is missing from the whole.
    pub line: usize,
    /// The key; empty where it is about the syntax.
    pub key: String,
    /// What is wrong, and what would be right.
    pub why: String,
}

impl BadConfig {
    fn new(line: usize, key: &str, why: impl Into<String>) -> Self {
        Self { line, key: key.to_owned(), why: why.into() }
    }
}

impl fmt::Display for BadConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", printable(&self.key))?;
        }
        f.write_str(&self.why)
    }
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    key: String,
    line: usize,
    value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Text(String),
    /// TOML only.
    List(Vec<String>),
}

impl SyncConfig {
    /// Reads a configuration.
    ///
    /// # Errors
    /// [`BadConfig`]: the first place that makes no sense.
    pub fn parse(text: &str, syntax: Syntax) -> Result<Self, BadConfig> {
        let settings = match syntax {
            Syntax::Properties => properties::read(text)?,
            Syntax::Toml => table::read(text)?,
        };
        read::config(&settings)
    }
}
