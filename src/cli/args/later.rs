//! What was typed for commands that act on the state file now, so that something is run later, or elsewhere.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::args::{Download, Speed, Sync, Upload, upload};
use crate::cli::epilogue::{ADD_EXAMPLES, RUN_EXAMPLES};

/// Transfers that a word is for.
#[derive(Args, Clone, Debug)]
pub(crate) struct Chosen {
    /// Names, paths or ids
    #[arg(value_name = "NAME|PATH|ID", required_unless_present = "all")]
    pub(crate) transfers: Vec<String>,
    /// All transfers that it can concern
    #[arg(long, conflicts_with = "transfers")]
    pub(crate) all: bool,
}

/// `add`.
#[derive(Args, Clone, Debug)]
#[command(arg_required_else_help = true, after_help = ADD_EXAMPLES)]
pub(crate) struct Add {
    /// What to add.
    #[command(subcommand)]
    pub(crate) what: Addable,
}

/// What can be added.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Addable {
    /// Enter downloads; the options are those of `persxfer download`
    Download(Box<Download>),
    /// Enter an upload; the options are those of `persxfer upload`
    #[command(mut_args(upload::in_its_words))]
    Upload(Box<Upload>),
}

/// `run`.
#[derive(Args, Clone, Debug)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct Run {
    /// Go on when all is done, and wait for more; SIGTERM ends it with exit status 0
    #[arg(long)]
    pub(crate) forever: bool,
    /// How much at once.
    #[command(flatten)]
    pub(crate) speed: Speed,
    /// What is flushed to disk
    #[arg(long, help_heading = "Speed", value_name = "HOW", value_enum, default_value_t = Sync::Full)]
    pub(crate) sync: Sync,
    /// Stop after so long, with the state saved and exit status 4
    #[arg(long, value_name = "TIME")]
    pub(crate) max_time: Option<String>,
    /// One session a mirror or server, and none before its time
    #[arg(long, conflicts_with = "forever")]
    pub(crate) once: bool,
    /// Remember files that fail for good in this ledger, to be tried for as long as it takes
    #[arg(long, value_name = "PATH", env = "PERSXFER_LEDGER", hide_env_values = true)]
    pub(crate) ledger: Option<PathBuf>,
    /// Run CMD after each transfer that is complete: words, no shell; {path} and {name} are filled in
    #[arg(long, value_name = "CMD")]
    pub(crate) on_complete: Option<String>,
    /// Run CMD after each transfer that failed for good, or for trouble on this machine
    #[arg(long, value_name = "CMD")]
    pub(crate) on_failure: Option<String>,
    /// Who may ask.
    #[command(flatten)]
    pub(crate) doors: Doors,
}

/// Who may ask a run how it stands.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Doors")]
pub(crate) struct Doors {
    /// Answer BOINC's tools, such as boinccmd, at an address of this machine; without one, at 127.0.0.1:31416
    ///
    /// The password is in gui_rpc_auth.cfg beside the state file, which is made where it is missing.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:31416")]
    pub(crate) gui_rpc: Option<String>,
    /// Tell Prometheus how things stand, at /metrics; a port alone is one of 127.0.0.1
    #[arg(long, value_name = "PORT|ADDRESS:PORT")]
    pub(crate) metrics: Option<String>,
}
