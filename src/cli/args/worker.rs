//! What was typed for `worker`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::args::{Patience, Requests, Speed};
use crate::cli::epilogue::WORKER_EXAMPLES;

/// `worker`.
#[derive(Args, Clone, Debug)]
#[command(after_help = WORKER_EXAMPLES)]
pub(crate) struct WorkerArgs {
    /// The ledger: a file, or the URL of a PostgreSQL database [default: ledger.db beside the client-state file]
    #[arg(long, value_name = "PATH", env = "PERSXFER_LEDGER", hide_env_values = true)]
    pub(crate) ledger: Option<PathBuf>,
    /// Where files go: below it, each in its host's folder, as its URL says
    #[arg(short = 'd', long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// End when nothing is due any more, with exit status 4 where an attempt failed
    #[arg(long)]
    pub(crate) until_idle: bool,
    /// Another may claim after so long without a heartbeat [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub(crate) lease: Option<String>,
    /// Between two files of a host [default: 0s]
    #[arg(long, value_name = "TIME")]
    pub(crate) gap: Option<String>,
    /// How much at once.
    #[command(flatten)]
    pub(crate) speed: Speed,
    /// What requests carry.
    #[command(flatten)]
    pub(crate) requests: Requests,
    /// How patient to be.
    #[command(flatten)]
    pub(crate) patience: Patience,
}
