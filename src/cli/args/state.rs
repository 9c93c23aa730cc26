//! What was typed for `state`.

use clap::{Args, Subcommand};

/// `state`.
#[derive(Args, Clone, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct State {
    /// What to do with it.
    #[command(subcommand)]
    pub(crate) command: StateCommand,
}

/// What to do with the state file.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum StateCommand {
    /// List the transfers
    #[command(
        after_help = "Examples:\n  persxfer state list\n  persxfer state list --all --json | jq '.transfers[].name'"
    )]
    List {
        /// Finished transfers too
        #[arg(long)]
        all: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Again and again, until Ctrl-C
        #[arg(long, conflicts_with = "json")]
        watch: bool,
    },
    /// Tell the whole story of a transfer: why it waits, which mirror or server said what, what is held or confirmed, on what
    /// evidence
    #[command(
        after_help = "Examples:\n  persxfer state show debian.iso\n  persxfer state show --json 00f3a9c2d4e5b617"
    )]
    Show {
        /// Its name, its path or its id
        #[arg(value_name = "NAME|PATH|ID")]
        transfer: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Check the state file and the part files; exit status 3 where something is damaged
    ///
    /// Part files are read whole, as far as their blocks have sums, and compared with what was written; the files of uploads
    /// are looked at, and never touched. Each thing found comes with what to do about it. Nothing is changed without
    /// --repair.
    #[command(
        after_help = "Examples:\n  persxfer state check\n  persxfer state check --repair\n  persxfer state check --state-file /mnt/backup/client_state.xml"
    )]
    Check {
        /// Let go of the blocks that are damaged, and of no others: the next session fetches them again
        #[arg(long)]
        repair: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print BOINC's <file_xfer_error> for each transfer that failed for good
    #[command(after_help = "Example:\n  persxfer state report > errors.xml")]
    Report,
    /// Print everything but secrets, one JSON object a line
    #[command(after_help = "Example:\n  persxfer state export | jq 'select(.status == \"failed\")'")]
    Export,
    /// Drop transfers and their part files; finished files stay, and so do those that were to be uploaded
    #[command(after_help = "Example:\n  persxfer state forget debian.iso")]
    Forget {
        /// Names, paths or ids
        #[arg(value_name = "NAME|PATH|ID", required = true)]
        transfers: Vec<String>,
    },
}
