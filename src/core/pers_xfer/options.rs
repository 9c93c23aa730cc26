//! Options: what a command said about a transfer beyond its URLs, its file and digests, as a later process needs it to go
//! on (design section 5). Plain data; texts that the transport understands stay texts here.
//!
//! Some of it is secret (headers, passwords, the proxy's URL). It stands in the state file, which its owner alone can
//! read, because a resume needs it, and is shown nowhere.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::core::backoff::Policy;
use crate::core::giveup::GiveUpFrom;
use crate::core::pers_xfer::record::Evidence;
use crate::core::time::Delay;
use crate::core::upload::UploadOptions;
use crate::core::url::MirrorUrl;

/// The options of one transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What becomes of a file that stands there and is not ours.
    pub existing: Existing,
    /// The least evidence that counts as success.
    pub require: Evidence,
    /// Retry policy with its bounds.
    pub policy: Policy,
    /// The give-up window.
    pub give_up: Delay,
    /// What the window counts from.
    pub give_up_from: GiveUpFrom,
    /// Further statuses that count as transient (`--retry-on`).
    pub retry_on: Vec<u16>,
    /// May the part file of a failed download stay?
    pub failed_part: FailedPart,
    /// The file's modification time when it is done.
    pub mtime: Mtime,
    /// `--connections`; `None` for one a host, over at most four mirrors.
    pub connections: Option<u16>,
    /// The server that is told of its failure (`--report-url`); it may hold secrets.
    pub report_url: Option<MirrorUrl>,
    /// Of an upload.
    pub upload: UploadOptions,
    /// What requests carry, and how they travel; shared by all transfers of one command.
    pub net: Arc<NetOptions>,
}

/// What becomes of a file that stands at the target and is not ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// An error that says so.
    #[default]
    Refuse,
    /// It is replaced, once the download is whole (`--overwrite`).
    Overwrite,
    /// It is kept and the download counts as done (`--no-clobber`).
    Keep,
}

/// What becomes of the part file when a transfer fails for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailedPart {
    /// It stays until `state forget`.
    #[default]
    Keep,
    /// It goes at once (`--delete-partial`).
    Delete,
}

/// The modification time of a finished file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mtime {
    /// When it was written.
    #[default]
    Local,
    /// The server's Last-Modified.
    Remote,
}

/// What requests carry, and how they travel, as it was typed. Paths are absolute. Shown without its secrets.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetOptions {
    /// `-H`, in the order given.
    pub headers: Vec<String>,
    /// `-u`, `USER:PASSWORD`.
    pub user: Option<String>,
    /// `--netrc`
    pub netrc: bool,
    /// `--cookies`
    pub cookies: Option<PathBuf>,
    /// `--user-agent`
    pub user_agent: Option<String>,
    /// `--proxy`
    pub proxy: Option<String>,
    /// `--cacert`
    pub cacert: Option<PathBuf>,
    /// `--cert`
    pub cert: Option<PathBuf>,
    /// `--key`
    pub key: Option<PathBuf>,
    /// `--insecure`
    pub insecure: bool,
    /// `--resolve`
    pub resolve: Vec<String>,
    /// `-4`, `-6`
    pub family: AddressFamily,
    /// `--location-trusted`
    pub location_trusted: bool,
    /// `--connect-timeout`
    pub connect_timeout: Delay,
    /// `--first-byte-timeout`
    pub first_byte_timeout: Delay,
    /// `--stall-timeout`
    pub stall_timeout: Delay,
}

/// Which addresses may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressFamily {
    /// All.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            existing: Existing::default(),
            require: Evidence::None,
            policy: Policy::default(),
            give_up: Delay::from_days(14),
            give_up_from: GiveUpFrom::default(),
            retry_on: Vec::new(),
            failed_part: FailedPart::default(),
            mtime: Mtime::default(),
            connections: None,
            report_url: None,
            upload: UploadOptions::default(),
            net: Arc::default(),
        }
    }
}

impl Default for NetOptions {
    fn default() -> Self {
        Self {
            headers: Vec::new(),
            user: None,
            netrc: false,
            cookies: None,
            user_agent: None,
            proxy: None,
            cacert: None,
            cert: None,
            key: None,
            insecure: false,
            resolve: Vec::new(),
            family: AddressFamily::default(),
            location_trusted: false,
            connect_timeout: Delay::from_secs(30),
            first_byte_timeout: Delay::from_secs(300),
            stall_timeout: Delay::from_secs(60),
        }
    }
}

impl fmt::Debug for NetOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetOptions").field("headers", &self.headers.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let net = NetOptions {
            headers: vec!["Authorization: Bearer s3cret".into()],
            user: Some("me:s3cret".into()),
            proxy: Some("http://me:s3cret@proxy".into()),
            ..NetOptions::default()
        };
        let options = Options { net: Arc::new(net), ..Options::default() };
        assert!(!format!("{options:?}").contains("s3cret"));
    }
}
