//! Exactly what was typed: clap's side of the command line, nothing looked up and nothing decided.
//!
//! Texts of options become what the program needs in [`super::settings`]. The help texts here are also the manual
//! (`persxfer man`) and the shell completions.

mod later;
mod ledger;
mod state;
mod sync;
mod upload;
mod worker;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cli::epilogue::{DOWNLOAD_EXAMPLES, EXIT_STATUS};

pub(crate) use later::{Add, Addable, Chosen, Doors, Run};
pub(crate) use ledger::{Claimed, Ledger, LedgerCommand};
pub(crate) use state::{State, StateCommand};
pub(crate) use sync::SyncArgs;
pub(crate) use upload::{Draft, Special, Surplus, Upload};
pub(crate) use worker::WorkerArgs;

/// Persistent file transfer: downloads and uploads that outlive their servers, their network and their machine.
#[derive(Debug, Parser)]
#[command(name = "persxfer", version, propagate_version = true, arg_required_else_help = true, max_term_width = 100)]
#[command(disable_help_subcommand = true, after_help = EXIT_STATUS)]
pub(crate) struct Cli {
    /// Options that every command knows.
    #[command(flatten)]
    pub(crate) global: Global,
    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that stand before or after the command.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The client-state file [default: $XDG_STATE_HOME/persxfer/client_state.xml]
    #[arg(long, value_name = "PATH", global = true, env = "PERSXFER_STATE_FILE", hide_env_values = true)]
    pub(crate) state_file: Option<PathBuf>,
    /// The preferences of this machine [default: $XDG_CONFIG_HOME/persxfer/config.toml]
    #[arg(long, value_name = "FILE", global = true, env = "PERSXFER_CONFIG", hide_env_values = true)]
    pub(crate) config: Option<PathBuf>,
    /// Say nothing but errors, and warnings that matter
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Log what happens to standard error; twice: in detail (PERSXFER_LOG=FILTER chooses exactly)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// How progress is told: bars or plain lines on standard error, JSON events on standard output
    #[arg(long, value_name = "HOW", global = true, value_enum, default_value_t = Progress::Auto)]
    pub(crate) progress: Progress,
}

/// How progress is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Progress {
    /// Bars on a terminal, else plain lines
    #[default]
    Auto,
    /// Bars
    Bar,
    /// A line now and then
    Plain,
    /// One JSON object a line on standard output
    Json,
    /// Only how each transfer ends
    None,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Download files, run to the end: resumed, verified, retried for days
    Download(Box<Download>),
    /// Upload a file, run to the end: resumed from what the server confirms, verified, retried for days
    #[command(mut_args(upload::in_its_words))]
    Upload(Box<Upload>),
    /// Enter transfers into the client-state file, to be run later
    Add(Add),
    /// Run whatever the client-state file holds, until done
    Run(Run),
    /// Try transfers now; those that have failed begin a new life
    #[command(after_help = "Examples:\n  persxfer retry debian.iso\n  persxfer retry --all")]
    Retry(Chosen),
    /// Let transfers rest until they are resumed
    #[command(after_help = "Example:\n  persxfer suspend debian.iso")]
    Suspend(Chosen),
    /// Let suspended transfers go on
    #[command(after_help = "Example:\n  persxfer resume --all")]
    Resume(Chosen),
    /// End transfers for good; what they hold stays until `state forget`
    #[command(after_help = "Example:\n  persxfer abort debian.iso")]
    Abort(Chosen),
    /// Inspect the client-state file, and forget what is in it
    State(State),
    /// Keep whole trees of files like those of several sources: fetched, validated, merged
    Sync(Box<SyncArgs>),
    /// Remember files that could not be had yet, and hand them out when it is time to try again
    Ledger(Ledger),
    /// Fetch what is due in a ledger, again and again, and tell it what came of it
    Worker(Box<WorkerArgs>),
    /// Print the completions for a shell
    #[command(
        after_help = "Example:\n  persxfer completions bash > ~/.local/share/bash-completion/completions/persxfer"
    )]
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, of the program or of a command
    #[command(after_help = "Examples:\n  persxfer man | man -l -\n  persxfer man download > persxfer-download.1")]
    Man {
        /// The command, such as `download` or `state list`
        #[arg(value_name = "COMMAND")]
        of: Vec<String>,
    },
}

/// `download`.
#[derive(Args, Clone, Debug)]
#[command(after_help = DOWNLOAD_EXAMPLES)]
pub(crate) struct Download {
    /// What to download; each URL is one file
    #[arg(value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// Where files go.
    #[command(flatten)]
    pub(crate) place: Place,
    /// Where files come from.
    #[command(flatten)]
    pub(crate) sources: Sources,
    /// What success rests on.
    #[command(flatten)]
    pub(crate) proof: Proof,
    /// Remember files that fail for good in this ledger, to be tried for as long as it takes
    #[arg(long, value_name = "PATH", env = "PERSXFER_LEDGER", hide_env_values = true)]
    pub(crate) ledger: Option<PathBuf>,
    /// How much at once.
    #[command(flatten)]
    pub(crate) speed: Speed,
    /// What is flushed to disk
    #[arg(long, help_heading = "Speed", value_name = "HOW", value_enum, default_value_t = Sync::Full)]
    pub(crate) sync: Sync,
    /// Connections for one file, over all its mirrors; at most 16 to one host [default: one to each host, over at most
    /// 4 mirrors]
    #[arg(short = 'x', long, help_heading = "Speed", value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) connections: Option<u16>,
    /// What requests carry, and how they travel.
    #[command(flatten)]
    pub(crate) requests: Requests,
    /// Refuse files larger than this, such as 700m or 4g
    #[arg(long, help_heading = "Requests", value_name = "SIZE")]
    pub(crate) max_filesize: Option<String>,
    /// How long, and how often.
    #[command(flatten)]
    pub(crate) patience: Patience,
    /// Delete the part file at once where a download fails for good
    #[arg(long, help_heading = "Patience")]
    pub(crate) delete_partial: bool,
    /// What happens around it.
    #[command(flatten)]
    pub(crate) around: Around,
}

/// Where files go.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Target")]
pub(crate) struct Place {
    /// Write to FILE (with one file in all)
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["remote_name", "remote_header_name"])]
    pub(crate) output: Option<PathBuf>,
    /// Name the file as the URL does; this is the default
    #[arg(short = 'O', long)]
    pub(crate) remote_name: bool,
    /// Put files into DIR, which is created where it is missing
    #[arg(short, long, value_name = "DIR", short_alias = 'P', visible_alias = "directory-prefix")]
    pub(crate) dir: Option<PathBuf>,
    /// Name the file as the server says (Content-Disposition), else as the URL does
    #[arg(short = 'J', long)]
    pub(crate) remote_header_name: bool,
    /// Give the file the server's modification time
    #[arg(short = 'R', long)]
    pub(crate) remote_time: bool,
    /// Replace a file that stands there and is not ours, once the download is whole
    #[arg(long, conflicts_with = "no_clobber")]
    pub(crate) overwrite: bool,
    /// Keep a file that stands there, and count the download as done
    #[arg(long)]
    pub(crate) no_clobber: bool,
}

/// Where files come from.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Sources")]
pub(crate) struct Sources {
    /// Another URL of the same file (with one URL; repeatable)
    #[arg(short, long = "mirror", value_name = "URL")]
    pub(crate) mirrors: Vec<String>,
    /// Read downloads from FILE, or from standard input: one a line, mirrors after a TAB; indented lines below it
    /// say `out=`, `dir=` or `checksum=`
    #[arg(short, long, value_name = "FILE|-")]
    pub(crate) input_file: Option<PathBuf>,
    /// Download the files of a metalink, version 3 or 4, from FILE or from standard input (repeatable)
    ///
    /// Its URLs count as if they were typed, the best first; its strongest digest and its size are law.
    #[arg(short = 'M', long = "metalink", value_name = "FILE|-", conflicts_with = "remote_header_name")]
    pub(crate) metalinks: Vec<PathBuf>,
}

/// What success rests on.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Proof")]
pub(crate) struct Proof {
    /// The digest that the file must have, as sha-256=HEX (with one file in all; repeatable)
    ///
    /// Algorithms: sha-256, sha-512, sha-1, md5, blake3, crc32c.
    #[arg(long = "checksum", value_name = "ALGO=HEX")]
    pub(crate) checksums: Vec<String>,
    /// A file of digests as sha256sum writes it; every download must be in it, by its name
    #[arg(long = "checksums", value_name = "SHA256SUMS")]
    pub(crate) checksum_file: Option<PathBuf>,
    /// Fail rather than accept a file that rests on less
    #[arg(long, value_name = "EVIDENCE", value_enum)]
    pub(crate) require_evidence: Option<Required>,
}

/// The least evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Required {
    /// A digest of the whole file
    Digest,
    /// One strong validator from the first byte to the last
    Validator,
    /// Bytes of every session compared with those of the one before
    Overlap,
    /// The length that the server told
    Length,
}

/// How much at once.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Speed")]
pub(crate) struct Speed {
    /// Transfers at once, in all [default: 8]
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_transfers: Option<u16>,
    /// Transfers at once from one host [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_transfers_per_host: Option<u16>,
    /// Bytes per second, all transfers together, such as 500k or 2.5m; 0 for no limit
    #[arg(long, value_name = "RATE", visible_alias = "max-overall-download-limit")]
    pub(crate) limit_rate: Option<String>,
}

/// What is flushed to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sync {
    /// Data before the final name, and the folder after it
    Full,
    /// Nothing: for files that can be had again
    None,
}

/// What requests carry, and how they travel.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Requests")]
pub(crate) struct Requests {
    /// A header of every request, as 'Name: value' (repeatable)
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub(crate) headers: Vec<String>,
    /// User and password, for the first origin only
    #[arg(short, long, value_name = "USER:PASSWORD")]
    pub(crate) user: Option<String>,
    /// Take user and password from ~/.netrc, or from the file that $NETRC names
    #[arg(short, long, conflicts_with = "user")]
    pub(crate) netrc: bool,
    /// Send the cookies of FILE, which is in Netscape's form
    #[arg(short = 'b', long, value_name = "FILE", visible_alias = "load-cookies")]
    pub(crate) cookies: Option<PathBuf>,
    /// What User-Agent says
    #[arg(short = 'A', long, value_name = "TEXT", short_alias = 'U')]
    pub(crate) user_agent: Option<String>,
    /// Go through this proxy: http://, socks5:// or socks5h:// HOST:PORT
    #[arg(long, value_name = "URL", visible_alias = "all-proxy")]
    pub(crate) proxy: Option<String>,
    /// Trust the certificates of FILE (PEM), and no others
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Show this certificate (PEM) to servers that ask for one
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// The key of --cert (PEM), where it is not in the same file
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Accept any certificate: whoever sits on the line can send what they like
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,
    /// Use ADDRESS for that host and port (repeatable)
    #[arg(long, value_name = "HOST:PORT:ADDRESS")]
    pub(crate) resolve: Vec<String>,
    /// IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// IPv6 only
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// Send credentials and cookies to other origins too, where a redirect leads there
    #[arg(long)]
    pub(crate) location_trusted: bool,
}

/// How long, and how often.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Patience")]
pub(crate) struct Patience {
    /// How waits between passes grow: boinc, boinc-7, tor, ladder or ranged, with :key=value for details
    #[arg(long, value_name = "POLICY", default_value = "boinc")]
    pub(crate) retry_policy: String,
    /// The shortest wait [default: the policy's]
    #[arg(long, value_name = "TIME")]
    pub(crate) min_delay: Option<String>,
    /// The longest wait [default: the policy's]
    #[arg(long, value_name = "TIME")]
    pub(crate) max_delay: Option<String>,
    /// Fail for good after so long without progress
    #[arg(long, value_name = "TIME", default_value = "14d")]
    pub(crate) give_up: String,
    /// What --give-up counts from
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = GiveUpFrom::LastProgress)]
    pub(crate) give_up_from: GiveUpFrom,
    /// Stop after so long, with the state saved and exit status 4
    #[arg(long, value_name = "TIME")]
    pub(crate) max_time: Option<String>,
    /// Further statuses that are worth another try, such as 403,404
    #[arg(long, value_name = "CODES", visible_alias = "retry-on-http-error")]
    pub(crate) retry_on: Option<String>,
    /// How long a connection may take [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub(crate) connect_timeout: Option<String>,
    /// How long the first byte of an answer may take [default: 300s]
    #[arg(long, value_name = "TIME")]
    pub(crate) first_byte_timeout: Option<String>,
    /// How long fewer than 10 bytes per second may move [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub(crate) stall_timeout: Option<String>,
    /// One session a mirror or server, then stop with the state saved and exit status 4
    #[arg(long)]
    pub(crate) once: bool,
}

/// What the give-up window counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GiveUpFrom {
    /// The last progress; time in which nothing could be tried does not count
    LastProgress,
    /// The first session, as BOINC counts
    FirstRequest,
}

/// What happens around a transfer.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Around it")]
pub(crate) struct Around {
    /// Run CMD after each transfer that is complete: words, no shell; {path} and {name} are filled in
    #[arg(long, value_name = "CMD", visible_alias = "on-download-complete")]
    pub(crate) on_complete: Option<String>,
    /// Run CMD after each transfer that failed for good, or for trouble on this machine
    #[arg(long, value_name = "CMD", visible_alias = "on-download-error")]
    pub(crate) on_failure: Option<String>,
    /// Tell a scheduling server where it fails for good: BOINC's <file_xfer_error>, until it is taken
    #[arg(long, value_name = "URL")]
    pub(crate) report_url: Option<String>,
    /// Print what would be done, and do nothing; no network is used
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Accepted: transfers are always continued
    #[arg(short = 'c', long = "continue", hide = true)]
    pub(crate) resume: bool,
    /// Accepted as `-C -`
    #[arg(short = 'C', long, value_name = "-", hide = true, allow_hyphen_values = true)]
    pub(crate) continue_at: Option<String>,
    /// Accepted: redirects are always followed
    #[arg(short = 'L', long, hide = true)]
    pub(crate) location: bool,
}
