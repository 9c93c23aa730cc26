//! The state file, as the `state` commands use it.

use std::path::{Path, PathBuf};

use crate::cli::foreign::printable;
use crate::core::pers_xfer::record::{Record, XferId};
use crate::io::part;
use crate::io::state_file::{StateError, StateFile};

/// Damage, or something odd, in a state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    /// Which file.
    pub(crate) file: PathBuf,
    /// Line and column, from 1, where it has a place.
    pub(crate) at: Option<(usize, usize)>,
    /// What is the matter, and what was done about it.
    pub(crate) text: String,
}

/// What a state file held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// The transfers, in the file's order.
    pub(crate) records: Vec<Record>,
    /// Damage that was survived.
    pub(crate) warnings: Vec<Warning>,
}

/// Why a state file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BookError {
    /// No valid generation: nothing was overwritten.
    #[error("the state file {} is damaged: {}", path.display(), first(damage))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Every damage found.
        damage: Vec<Warning>,
    },
    /// It belongs to a BOINC client, and is never written.
    #[error("the state file {} belongs to a BOINC client; persxfer lists it, but never writes it", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Anything else.
    #[error(transparent)]
    Unusable(StateError),
}

fn first(damage: &[Warning]) -> String {
    damage.first().map(ToString::to_string).unwrap_or_default()
}

/// `client_state.xml:3:14: what`.
impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some((line, column)) = self.at {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {}", printable(&self.text))
    }
}

/// The state file, as the `state` commands use it.
pub(crate) trait Book {
    /// Where it is.
    fn path(&self) -> &Path;
    /// Reads it; no file at all is an empty one.
    fn load(&self) -> Result<Contents, BookError>;
    /// Takes records out, and writes the rest.
    fn remove(&self, ids: &[XferId]) -> Result<(), BookError>;
    /// The process that works on a transfer just now.
    fn holder(&self, record: &Record) -> Option<String>;
    /// The part file and what stands beside it, whether there or not; the part file first.
    fn parts(&self, record: &Record) -> Vec<PathBuf>;
}

/// The real one.
pub(crate) struct StateBook {
    path: PathBuf,
    file: StateFile,
}

impl StateBook {
    /// At this path, which need not exist.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), file: StateFile::at(path) }
    }

    /// What loading met, told with its place already.
    fn warning(&self, text: String) -> Warning {
        Warning { file: self.path.clone(), at: None, text }
    }
}

impl Book for StateBook {
    fn path(&self) -> &Path {
        &self.path
    }
    fn load(&self) -> Result<Contents, BookError> {
        let loaded = self.file.load()?;
        Ok(Contents {
            records: loaded.document.transfers().collect(),
            warnings: loaded.warnings.into_iter().map(|text| self.warning(text)).collect(),
        })
    }
    fn remove(&self, ids: &[XferId]) -> Result<(), BookError> {
        Ok(self.file.commit(|document| ids.iter().for_each(|id| _ = document.remove(*id)))?)
    }
    fn holder(&self, record: &Record) -> Option<String> {
        part::holder(record.path.as_deref()?)
    }
    fn parts(&self, record: &Record) -> Vec<PathBuf> {
        record.path.iter().flat_map(|p| part::file_names(p)).collect()
    }
}

impl From<StateError> for BookError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Damaged { path, damage } => {
                let at = Some((damage.line, damage.column));
                let warning = Warning { file: path.clone(), at, text: damage.to_string() };
                Self::Damaged { path, damage: vec![warning] }
            }
            StateError::Foreign { path } => Self::Foreign { path },
            other => Self::Unusable(other),
        }
    }
}
