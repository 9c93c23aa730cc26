//! What was typed for `sync`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::args::{Patience, Requests, Speed};
use crate::cli::epilogue::SYNC_EXAMPLES;

/// `sync`.
#[derive(Args, Clone, Debug)]
#[command(after_help = SYNC_EXAMPLES)]
pub(crate) struct SyncArgs {
    /// What is synchronised: Java properties, or the same keys in TOML where its name ends in .toml
    #[arg(value_name = "CONFIG")]
    pub(crate) file: PathBuf,
    /// Only this module, such as exitlists
    #[arg(long, value_name = "NAME")]
    pub(crate) module: Option<String>,
    /// Again and again, so long from one beginning to the next; without it, once
    #[arg(long, value_name = "TIME", conflicts_with = "once")]
    pub(crate) every: Option<String>,
    /// Fetch indexes only, and tell what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Report as JSON
    #[arg(long)]
    pub(crate) json: bool,
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
