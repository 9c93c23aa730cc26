//! What stops a command before or beside its transfers: one line for people, and its exit status.

use std::path::Path;

use crate::cli::exit::Exit;
use crate::cli::foreign::{BookError, EngineError, LEAST_DESCRIPTORS, plain_error, printable};
use crate::core::failure::LocalFault;

/// Why a command cannot do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// An option, or what it names, makes no sense.
    #[error("{}", option_line(option, value, why))]
    Option {
        /// The option as the user writes it.
        option: &'static str,
        /// Its value; no secret.
        value: String,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// The command line as a whole makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A file or folder that cannot be had.
    #[error("cannot {doing} {path}: {detail}")]
    Io {
        /// A verb.
        doing: &'static str,
        /// The file.
        path: String,
        /// What the system said, and what to do.
        detail: String,
    },
    /// The state file.
    #[error(transparent)]
    Book(#[from] BookError),
    /// The engine could not run.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] crate::io::store::StoreError),
    /// A worker cannot go on.
    #[error(transparent)]
    Worker(#[from] crate::engine::worker::WorkerError),
    /// This machine.
    #[error(transparent)]
    Local(#[from] LocalFault),
    /// This process may have too few files open.
    #[error(
        "this process may have only {limit} files open at a time (ulimit -n), and needs at least {LEAST_DESCRIPTORS}; raise \
         that limit, and run again"
    )]
    Descriptors {
        /// How many.
        limit: u64,
    },
    /// A transfer is in use.
    #[error("{name} is in use by process {holder}; stop that first")]
    InUse {
        /// Its name.
        name: String,
        /// Which process.
        holder: String,
    },
}

impl Trouble {
    /// An option's value that makes no sense.
    pub(crate) fn option(option: &'static str, value: impl Into<String>, why: impl ToString) -> Self {
        Self::Option { option, value: value.into(), why: why.to_string() }
    }

    /// A file or folder that cannot be had.
    pub(crate) fn io(doing: &'static str, path: &Path, error: &std::io::Error) -> Self {
        Self::Io { doing, path: printable(&path.display().to_string()), detail: plain_error(error) }
    }

    /// Its exit status.
    pub(crate) const fn exit(&self) -> Exit {
        match self {
            Self::Option { .. } | Self::Usage(_) | Self::Engine(EngineError::Net(_)) => Exit::Usage,
            Self::Io { .. } | Self::Book(_) | Self::Ledger(_) | Self::Worker(_) | Self::Engine(_) | Self::Local(_) => {
                Exit::Local
            }
            Self::Descriptors { .. } | Self::InUse { .. } => Exit::Local,
        }
    }
}

/// An option's line; its value is quoted only where what is wrong with it does not quote it already.
fn option_line(option: &str, value: &str, why: &str) -> String {
    let value = printable(value);
    if !value.is_empty() && why.contains(&value) {
        format!("{option}: {why}")
    } else {
        format!("{option} '{value}': {why}")
    }
}
