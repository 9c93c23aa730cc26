//! What was typed for an upload.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, Resettable};
use clap::{Arg, Args, ValueEnum};

use crate::cli::args::{Around, Patience, Requests, Speed};
use crate::cli::epilogue::UPLOAD_EXAMPLES;
use crate::cli::foreign::{protocol_words, verify_words};

/// `upload`.
#[derive(Args, Clone, Debug)]
#[command(after_help = UPLOAD_EXAMPLES)]
pub(crate) struct Upload {
    /// The file to send
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The server to send it to, and others that are as good; tus+https://... and its like say the protocol, s3://BUCKET/KEY is an
    /// object
    #[arg(value_name = "URL", required_unless_present = "s3_manifest")]
    pub(crate) servers: Vec<String>,
    /// How servers are spoken to.
    #[command(flatten)]
    pub(crate) speech: Speech,
    /// What only some protocols know.
    #[command(flatten)]
    pub(crate) special: Special,
    /// How much at once.
    #[command(flatten)]
    pub(crate) speed: Speed,
    /// What requests carry, and how they travel.
    #[command(flatten)]
    pub(crate) requests: Requests,
    /// How long, and how often.
    #[command(flatten)]
    pub(crate) patience: Patience,
    /// What happens around it.
    #[command(flatten)]
    pub(crate) around: Around,
}

/// How servers are spoken to.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Upload")]
pub(crate) struct Speech {
    /// How servers whose URL has no prefix are spoken to [default: boinc where the URL names file_upload_handler, else put]
    #[arg(long, value_name = "PROTOCOL", value_parser = PossibleValuesParser::new(protocol_words()))]
    pub(crate) protocol: Option<String>,
    /// The file's name at the server [default: its own]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// What the file is, such as application/zip
    #[arg(long, value_name = "TYPE")]
    pub(crate) content_type: Option<String>,
    /// Whether the file is read back and compared at the end, where the server names no digest of it [default: small]
    #[arg(long, value_name = "WHEN", value_parser = PossibleValuesParser::new(verify_words()))]
    pub(crate) verify: Option<String>,
}

/// What only some protocols know.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Upload by one protocol")]
pub(crate) struct Special {
    /// boinc: the project's signature of name and limit, in hex, passed through as it is
    #[arg(long, value_name = "FILE")]
    pub(crate) boinc_signature: Option<PathBuf>,
    /// boinc: the limit that was signed, such as 4g [default: the file's size]
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_nbytes: Option<String>,
    /// boinc: what a server means that holds more than the file has [default: conflict]
    #[arg(long, value_name = "MEANING", value_enum)]
    pub(crate) surplus: Option<Surplus>,
    /// tus: sessions have the scheme, host and port of the URL given, whatever the server names
    #[arg(long)]
    pub(crate) keep_authority: bool,
    /// ietf: which text is spoken [default: 8]
    #[arg(long, value_name = "DRAFT", value_enum)]
    pub(crate) interop: Option<Draft>,
    /// s3: whose keys, region and endpoint are used, of ~/.aws/credentials and ~/.aws/config [default: those in the environment, else
    /// $AWS_PROFILE, else "default"]
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// s3: the region [default: $AWS_REGION, else the profile's, else us-east-1, which tells where else to ask]
    #[arg(long, value_name = "REGION")]
    pub(crate) region: Option<String>,
    /// s3: where the store of s3://BUCKET/KEY is [default: $AWS_ENDPOINT_URL_S3, else $AWS_ENDPOINT_URL, else the profile's, else AWS]
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint_url: Option<String>,
    /// s3: a list of signed URLs that somebody made for this file; its object is the server, and no URL is needed
    #[arg(long, value_name = "FILE")]
    pub(crate) s3_manifest: Option<PathBuf>,
}

/// Options that both directions have go by the names that other programs have for this one.
pub(super) fn in_its_words(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "limit_rate" => arg.visible_alias(Resettable::Reset).visible_alias("max-overall-upload-limit"),
        "on_complete" | "on_failure" => arg.visible_alias(Resettable::Reset),
        _ => arg,
    }
}

/// A server holds more than the file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Surplus {
    /// It is another file, and that is reported
    Conflict,
    /// It counts as uploaded, as in BOINC's client
    Done,
}

/// Which text of resumable uploads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Draft {
    /// Drafts -04 and -05
    #[value(name = "6")]
    Six,
    /// Drafts -06 to -08
    #[value(name = "7")]
    Seven,
    /// Drafts -09 to -12
    #[value(name = "8")]
    Eight,
    /// No draft: the field that names one is not sent
    #[value(name = "final")]
    Final,
}
