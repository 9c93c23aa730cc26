//! Record: what survives of a transfer when the process ends; plain data, no rules.
//!
//! The client-state file holds one record a transfer (`core::state` turns it into BOINC's elements and our own
//! `<persxfer>` child), and a machine rebuilt from its record wakes when the old one would have.

use std::path::PathBuf;
use std::sync::Arc;

use crate::core::backoff::Backoff;
use crate::core::digest::{Algorithm, Expected, Pieces};
use crate::core::failure::{Failure, ODD_MIRROR};
use crate::core::file_xfer::dossier::Dossier;
use crate::core::pers_xfer::options::Options;
use crate::core::pers_xfer::session::at_work;
use crate::core::pers_xfer::sharing::{OwnerId, Wish};
use crate::core::range::{Length, RangeSet};
use crate::core::time::{Delay, Epoch};
use crate::core::upload::UploadSession;
use crate::core::url::MirrorUrl;
use crate::core::verdict::Class;

/// The identity of a transfer in its state file: random, never reused, printed as 16 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct XferId(pub u64);

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From a server to a file here.
    Download,
    /// From a file here to a server.
    Upload,
}

/// One transfer, as the state file keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its identity.
    pub id: XferId,
    /// BOINC's `<name>`, unique in the file.
    pub name: String,
    /// Which way.
    pub direction: Direction,
    /// The absolute path of the file here: the target of a download, the source of an upload. `None` while a download
    /// waits for the server to name it (`--remote-header-name`).
    pub path: Option<PathBuf>,
    /// The folder that a name from the server goes into, while `path` is `None`.
    pub folder: Option<PathBuf>,
    /// The mirrors in the order given; never empty for a transfer of ours.
    pub mirrors: Vec<MirrorRecord>,
    /// The file's size, where known.
    pub nbytes: Option<Length>,
    /// The largest size allowed (`--max-filesize`; BOINC's `max_nbytes`).
    pub max_nbytes: Option<Length>,
    /// Digests that are law (`--checksum`, BOINC's `md5_cksum`).
    pub digests: Vec<Expected>,
    /// The size that the file must have (a metalink's); what a server tells is `nbytes`.
    pub expected: Option<Length>,
    /// Digests of its pieces (a metalink's).
    pub pieces: Option<Arc<Pieces>>,
    /// Where it stands.
    pub status: Status,
    /// Failed passes so far, in this life (BOINC's `num_retries`).
    pub num_retries: u32,
    /// Sessions so far, in this life.
    pub sessions: u32,
    /// Start of the first session of this life.
    pub first_request_time: Option<Epoch>,
    /// The earliest time for a next session.
    pub next_request_time: Option<Epoch>,
    /// Time spent in sessions.
    pub time_so_far: Delay,
    /// The high-water mark of confirmed bytes of the version that is being fetched (BOINC's `last_bytes_xferred`).
    pub confirmed: Length,
    /// Where that mark stood at the last progress: many small gains add up, also over restarts.
    pub progress_mark: Length,
    /// The state of the retry policy.
    pub backoff: Backoff,
    /// How much of the give-up window is used up: time since the last progress in which something could be tried.
    pub patience_used: Delay,
    /// When `patience_used` was last brought up to date.
    pub patience_at: Option<Epoch>,
    /// What is known of the file's versions, and which bytes are held.
    pub dossier: Dossier,
    /// A file put together from several mirrors had the wrong digest, and nobody could tell whose bytes were wrong: from
    /// then on no two mirrors' bytes are mixed.
    pub apart: bool,
    /// Of an upload: what its servers hold, one a server and protocol.
    pub uploads: Vec<UploadSession>,
    /// Of an upload to a BOINC server: the signature of its name and limit, passed through as it is.
    pub xml_signature: Option<String>,
    /// The latest failures, newest last, at most [`HISTORY`].
    pub history: Vec<Past>,
    /// How it ended well, once it has.
    pub finished: Option<Finished>,
    /// What the command that asked for it said beyond URLs, target and digests.
    pub options: Arc<Options>,
    /// The process that runs it, if that is alive.
    pub owner: Option<OwnerId>,
    /// What others want of it, oldest first.
    pub wishes: Vec<Wish>,
}

/// How many failures a record remembers.
pub const HISTORY: usize = 16;

/// One mirror of a transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorRecord {
    /// Where a session starts, every time.
    pub url: MirrorUrl,
    /// What this transfer knows of it.
    pub standing: Standing,
    /// It has served bytes of this transfer, in this life.
    pub served: bool,
    /// Some of the bytes that are held came from it.
    pub contributed: bool,
    /// Passes in a row in which it failed in a way that looks final but may not be (`verdict::Scope::Doubtful`): 404,
    /// 410 or 403 after having served, a certificate that is not trusted, an answer that contradicts the request.
    pub missing_passes: u32,
    /// Whole fetches from it whose digest was wrong.
    pub corrupt_fetches: u32,
    /// Not before this time (its Retry-After).
    pub not_before: Option<Epoch>,
    /// It failed in the pass that is under way.
    pub tried: bool,
    /// Where a server named it (`Link: rel=duplicate`), and not the user: the digest of the whole that makes the bytes
    /// from there the file (RFC 6249). Nothing of the user's goes there.
    pub named_with: Option<Expected>,
}

/// BOINC's error numbers for transfers that failed for good (boinc.md 1.6).
pub mod error_code {
    /// ERR_MD5_FAILED: the digest is wrong.
    pub const DIGEST: i32 = -119;
    /// ERR_TIMEOUT: the give-up window has passed.
    pub const GAVE_UP: i32 = -182;
    /// ERR_ABORTED_VIA_GUI: a person said so.
    pub const ABORTED: i32 = -197;
    /// ERR_HTTP_PERMANENT: every mirror refuses.
    pub const PERMANENT: i32 = -224;
}

impl Record {
    /// A new download from these mirrors, of which nothing is known yet. A URL given twice counts once.
    pub fn download(id: XferId, name: String, urls: &[MirrorUrl]) -> Self {
        let first = |(i, url): &(usize, &MirrorUrl)| !urls[..*i].contains(url);
        let mirrors = urls.iter().enumerate().filter(first).map(|(_, url)| MirrorRecord::new(url.clone())).collect();
        Self {
            id,
            name,
            direction: Direction::Download,
            path: None,
            folder: None,
            mirrors,
            nbytes: None,
            max_nbytes: None,
            digests: Vec::new(),
            expected: None,
            pieces: None,
            status: Status::Pending,
            num_retries: 0,
            sessions: 0,
            first_request_time: None,
            next_request_time: None,
            time_so_far: Delay::ZERO,
            confirmed: Length::ZERO,
            progress_mark: Length::ZERO,
            backoff: Backoff::default(),
            patience_used: Delay::ZERO,
            patience_at: None,
            dossier: Dossier::default(),
            apart: false,
            uploads: Vec::new(),
            xml_signature: None,
            history: Vec::new(),
            finished: None,
            options: Arc::default(),
            owner: None,
            wishes: Vec::new(),
        }
    }

    /// A new upload of this file to the first of these servers that takes it.
    pub fn upload(id: XferId, name: String, source: PathBuf, servers: &[MirrorUrl]) -> Self {
        Self { direction: Direction::Upload, path: Some(source), ..Self::download(id, name, servers) }
    }

    /// Confirmed bytes: held here, of a download; at the server that holds most, as it said itself, of an upload.
    pub fn held(&self) -> Length {
        match self.direction {
            Direction::Download => at_work(&self.dossier),
            Direction::Upload => self.uploads.iter().map(|u| u.confirmed.as_length()).max().unwrap_or_default(),
        }
    }

    /// Begins another life: verdicts, counts and times anew. What is held, what is known of the file's versions and the story
    /// of the past are kept.
    pub fn begin_new_life(&mut self) {
        for mirror in &mut self.mirrors {
            *mirror = mirror.afresh();
        }
        self.apart = false;
        self.status = Status::Pending;
        (self.num_retries, self.sessions) = (0, 0);
        (self.first_request_time, self.next_request_time) = (None, None);
        self.time_so_far = Delay::ZERO;
        self.backoff = Backoff::default();
        (self.patience_used, self.patience_at) = (Delay::ZERO, None);
        self.dossier.changes = 0;
        (self.confirmed, self.progress_mark) = (self.held(), self.held());
    }

    /// Only these bytes are left in the part file: what it has come to is no more than that.
    pub fn holds_only(&mut self, left: &RangeSet) {
        let part = &mut self.dossier.part;
        (part.held, part.beyond) = (left.head(), left.length().saturating_sub(left.head()));
        let now = at_work(&self.dossier);
        (self.confirmed, self.progress_mark) = (self.confirmed.min(now), self.progress_mark.min(now));
    }

    /// The class of the failure that ended it, where it failed for good.
    pub fn failed_class(&self) -> Option<Class> {
        let Status::Failed { code, .. } = self.status else { return None };
        Some(match code {
            error_code::GAVE_UP => Class::GaveUp,
            error_code::ABORTED => Class::Aborted,
            error_code::DIGEST => Class::Corrupt,
            _ => self.history.last().map_or(Class::Unsupported, |past| past.class),
        })
    }
}

impl MirrorRecord {
    /// A mirror of which nothing is known yet.
    pub const fn new(url: MirrorUrl) -> Self {
        Self {
            url,
            standing: Standing::Usable,
            served: false,
            contributed: false,
            missing_passes: 0,
            corrupt_fetches: 0,
            not_before: None,
            tried: false,
            named_with: None,
        }
    }

    /// Is it refused because its bytes differ from those that are held?
    pub fn is_odd(&self) -> bool {
        matches!(&self.standing, Standing::Refused { class: Class::Changed, why } if why.starts_with(ODD_MIRROR))
    }

    /// A mirror that a server named, of a file with this digest.
    pub fn named(url: MirrorUrl, digest: Expected) -> Self {
        Self { named_with: Some(digest), ..Self::new(url) }
    }

    /// The same mirror, of which nothing is known yet but whether bytes that are held came from it.
    #[must_use]
    pub fn afresh(&self) -> Self {
        let (named_with, contributed) = (self.named_with.clone(), self.contributed);
        Self { named_with, contributed, ..Self::new(self.url.clone()) }
    }
}

/// What a transfer thinks of a mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// May be asked.
    Usable,
    /// Permanently refused, for this transfer and life.
    Refused {
        /// The class of the failure that did it.
        class: Class,
        /// What it said, for people.
        why: String,
    },
}

/// Where a transfer stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Not complete: running, or waiting for its time (BOINC's status 0 for a download, 1 for an upload).
    Pending,
    /// Not complete, and not to be tried until resumed.
    Suspended,
    /// Complete (BOINC's status 1; an upload has `<uploaded/>` too).
    Done,
    /// Failed for good.
    Failed {
        /// BOINC's error number, negative (boinc.md 1.6).
        code: i32,
        /// What is said of it: BOINC's `<error_msg>`.
        message: String,
    },
}

impl Status {
    /// Neither done nor failed for good.
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Pending | Self::Suspended)
    }
}

/// One failure of the past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// When.
    pub at: Epoch,
    /// At which mirror, redacted.
    pub url: String,
    /// Its class.
    pub class: Class,
    /// What it said.
    pub text: String,
    /// Bytes held when it happened.
    pub held: Length,
}

impl Past {
    /// A failure as it is remembered.
    pub fn new(at: Epoch, url: &MirrorUrl, class: Class, failure: &Failure, held: Length) -> Self {
        Self { at, url: url.redacted(), class, text: failure.to_string(), held }
    }
}

/// How a transfer ended well, and the file as it was left: the evidence that a later run compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// When.
    pub at: Epoch,
    /// On what evidence.
    pub evidence: Evidence,
    /// Size of the file as written.
    pub size: Length,
    /// Its modification time in nanoseconds since the Unix epoch.
    pub mtime_ns: i128,
    /// Its inode.
    pub inode: u64,
    /// Where the evidence is a digest that a server named, and nobody else: by which algorithm.
    pub server_digest: Option<Algorithm>,
    /// Of an upload: where it is.
    pub placed: Option<Placed>,
}

impl Finished {
    /// Of a file that nobody has looked at: nothing that a later run could compare.
    pub const fn unseen(at: Epoch, evidence: Evidence, size: Length) -> Self {
        Self { at, evidence, size, mtime_ns: 0, inode: 0, server_digest: None, placed: None }
    }
}

/// Where a file is that was uploaded, and what stood there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The server that holds it, as the user gave it.
    pub server: MirrorUrl,
    /// A file that was no shorter was there before, so that the size says nothing of the content: then the size of this one.
    pub found: Length,
    /// The time of the last change of the file's inode as it was sent, in nanoseconds since the Unix epoch, where it is known:
    /// no program can set it back.
    pub ctime_ns: Option<i128>,
    /// A digest of the file as it was sent, where one was computed.
    pub digest: Option<Expected>,
}

/// What a complete file rests on, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// Nothing: the length itself was not told.
    None,
    /// The length the server told.
    Length,
    /// Bytes of every session compared with those of the one before.
    Overlap,
    /// One strong validator from the first byte to the last.
    Validator,
    /// A digest of the whole.
    Digest,
}

impl Evidence {
    /// The word for it, in help texts, XML and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Length => "length",
            Self::Overlap => "overlap",
            Self::Validator => "validator",
            Self::Digest => "digest",
        }
    }

    /// Who named the digest that a file rests on: `server`, or `given` where it was law (`--checksum` and its like).
    pub const fn digest_source(self, server: Option<Algorithm>) -> Option<&'static str> {
        match (self, server) {
            (Self::Digest, Some(_)) => Some("server"),
            (Self::Digest, None) => Some("given"),
            _ => None,
        }
    }

    /// The evidence of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::None, Self::Length, Self::Overlap, Self::Validator, Self::Digest].into_iter().find(|e| e.word() == word)
    }
}

impl std::fmt::Display for XferId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl std::fmt::Debug for XferId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "XferId({self})")
    }
}
