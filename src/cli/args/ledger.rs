//! What was typed for `ledger`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::epilogue::{LEDGER_ADD_EXAMPLES, LEDGER_CLAIM_EXAMPLES, LEDGER_EXAMPLES};

/// `ledger`.
#[derive(Args, Clone, Debug)]
#[command(arg_required_else_help = true, after_help = LEDGER_EXAMPLES)]
pub(crate) struct Ledger {
    /// The ledger: a file, or the URL of a PostgreSQL database [default: ledger.db beside the client-state file]
    #[arg(long, value_name = "PATH|URL", global = true, env = "PERSXFER_LEDGER", hide_env_values = true)]
    pub(crate) ledger: Option<PathBuf>,
    /// What to do with it.
    #[command(subcommand)]
    pub(crate) command: LedgerCommand,
}

/// What can be done with a ledger.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum LedgerCommand {
    /// Enter files; one that is known learns what is new
    #[command(after_help = LEDGER_ADD_EXAMPLES)]
    Add {
        /// URLs, or keys of files whose place is not known; `-` for JSON lines on standard input
        #[arg(value_name = "URL|KEY|-", required = true)]
        files: Vec<String>,
        /// The key of the file, where it is not its first URL; all URLs are of this one file then
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
        /// The digest that it must have
        #[arg(long, value_name = "ALGO=HEX", requires = "key")]
        checksum: Option<String>,
        /// The size that it must have, in bytes
        #[arg(long, value_name = "BYTES", requires = "key")]
        size: Option<u64>,
    },
    /// Tell that something was seen of files: they are tried sooner
    #[command(
        after_help = "Examples:\n  persxfer ledger observe http://example.org/f --kind listed\n  persxfer ledger observe --host example.org --kind host-up"
    )]
    Observe {
        /// Keys; `-` for JSON lines on standard input
        #[arg(value_name = "KEY|-", required_unless_present_any = ["host", "all"])]
        keys: Vec<String>,
        /// What was seen: announce, listed, mirror, digest, host-up, network-back, credential, config, capability, space, version, user
        #[arg(long, value_name = "KIND", default_value = "user")]
        kind: String,
        /// All files of this host
        #[arg(long, value_name = "HOST", conflicts_with_all = ["keys", "all"])]
        host: Option<String>,
        /// All files
        #[arg(long, conflicts_with = "keys")]
        all: bool,
        /// A further mirror
        #[arg(long, value_name = "URL")]
        mirror: Vec<String>,
        /// Who says so
        #[arg(long, value_name = "WHO", default_value = "a person")]
        source: String,
    },
    /// Hand out what is due, as JSON lines: each with the token that later words must carry
    #[command(after_help = LEDGER_CLAIM_EXAMPLES)]
    Claim {
        /// These, due or not
        #[arg(value_name = "KEY")]
        keys: Vec<String>,
        /// So many at most
        #[arg(short = 'n', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        count: u32,
        /// Who claims: the same name with every claim of one crawler
        #[arg(long = "as", value_name = "NAME", default_value = "someone")]
        owner: String,
        /// Another may claim after so long without a heartbeat [default: 10m]
        #[arg(long, value_name = "TIME")]
        lease: Option<String>,
        /// So many of a host at once [default: 2]
        #[arg(long, value_name = "N")]
        per_host: Option<u32>,
        /// Between two of a host [default: 0s]
        #[arg(long, value_name = "TIME")]
        gap: Option<String>,
    },
    /// Tell that claims are worked on
    Heartbeat {
        /// The claim.
        #[command(flatten)]
        claim: Claimed,
        /// Another may claim after so long without another heartbeat [default: 10m]
        #[arg(long, value_name = "TIME")]
        lease: Option<String>,
    },
    /// Tell that a file is here
    Complete {
        /// The claim.
        #[command(flatten)]
        claim: Claimed,
        /// Its size in bytes
        #[arg(long, value_name = "BYTES")]
        size: Option<u64>,
        /// Its digest
        #[arg(long, value_name = "ALGO=HEX")]
        checksum: Option<String>,
    },
    /// Tell that an attempt failed
    Fail {
        /// The claim.
        #[command(flatten)]
        claim: Claimed,
        /// How: interrupted, unreachable, throttled, missing, gone, unsupported, corrupt, denied, local-fault
        #[arg(long, value_name = "CLASS", required_unless_present = "lines")]
        class: Option<String>,
        /// The server asked for so long
        #[arg(long, value_name = "TIME")]
        retry_after: Option<String>,
        /// The mirror that failed
        #[arg(long, value_name = "URL")]
        mirror: Option<String>,
        /// So many bytes are held
        #[arg(long, value_name = "N", default_value_t = 0)]
        bytes: u64,
    },
    /// Give claims back, as if they had never been made
    Release {
        /// The claim.
        #[command(flatten)]
        claim: Claimed,
        /// All claims of this name: its holder has died
        #[arg(long, value_name = "NAME", conflicts_with_all = ["key", "token", "lines"])]
        of: Option<String>,
    },
    /// List files, in the order of their keys
    List {
        /// Only those that are waiting, due, leased, parked or done
        #[arg(long, value_name = "STATE")]
        state: Option<String>,
        /// As JSON lines, the same as `export`
        #[arg(long)]
        json: bool,
    },
    /// Show all that is known of a file
    Show {
        /// Its key
        key: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Count files by where they stand
    Stats {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Take files out for good; nothing else ever does
    Forget {
        /// Their keys
        #[arg(value_name = "KEY", required = true)]
        keys: Vec<String>,
    },
    /// Print everything as JSON lines
    Export,
    /// Enter what `export` printed, from standard input; what is known is left alone
    Import,
    /// Copy the whole ledger into a new file, while others work with it
    Backup {
        /// The copy
        to: PathBuf,
    },
}

/// A claim, or many on standard input.
#[derive(Args, Clone, Debug)]
pub(crate) struct Claimed {
    /// The key of the file
    #[arg(value_name = "KEY", requires = "token")]
    pub(crate) key: Option<String>,
    /// The token of the claim
    #[arg(value_name = "TOKEN")]
    pub(crate) token: Option<u64>,
    /// JSON lines on standard input, such as `claim` printed them
    #[arg(long, conflicts_with_all = ["key", "token"])]
    pub(crate) lines: bool,
}
