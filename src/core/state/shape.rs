//! Which elements we know, where, and in which order they are written. Everything else is somebody else's and stays.

use super::tree::Element;
use super::{backoff, options, reports, upload};
use crate::core::pers_xfer::record::Direction;
use crate::core::url::MirrorUrl;

/// The elements that hold other elements of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// `<persxfer>` at top level.
    Top,
    /// `<host>` therein.
    Host,
    /// `<day>` therein.
    Day,
    /// `<report>` therein.
    Report,
    /// `<file_info>` or `<file>` of a transfer in that direction.
    Record(Direction),
    /// `<persistent_file_xfer>`.
    Transfer,
    /// `<persxfer>` of a transfer.
    Ours,
    /// `<pieces>`.
    Pieces,
    /// `<mirror>`.
    Mirror,
    /// `<backoff>`.
    Backoff,
    /// `<dossier>`.
    Dossier,
    /// `<part>` and `<rival>`.
    Draft,
    /// `<validators>`.
    Validators,
    /// `<origin_notes>`.
    Origin,
    /// `<failure>`.
    Failure,
    /// `<finished>`.
    Finished,
    /// `<options>`.
    Options,
    /// `<upload_session>`.
    Upload,
    /// `<part>` therein.
    UploadPart,
    /// `<wish>`.
    Wish,
}

/// The six fields of BOINC's `<persistent_file_xfer>`, in its order.
pub(super) const SIX: &[&str] =
    &["num_retries", "first_request_time", "next_request_time", "time_so_far", "last_bytes_xferred", "is_upload"];

const RECORD: &[&str] = &[
    "name",
    "nbytes",
    "max_nbytes",
    "md5_cksum",
    "status",
    "uploaded",
    "url",
    "download_url",
    "upload_url",
    "persistent_file_xfer",
    "xml_signature",
    "error_msg",
    "persxfer",
];

const OURS: &[&str] = &[
    "id",
    "direction",
    "path",
    "folder",
    "zero_nbytes",
    "zero_max_nbytes",
    "suspended",
    "digest",
    "expected_nbytes",
    "pieces",
    "num_retries",
    "first_request_time",
    "next_request_time",
    "time_so_far",
    "last_bytes_xferred",
    "progress_mark",
    "sessions",
    "mirror",
    "backoff",
    "patience_used",
    "patience_at",
    "dossier",
    "mirrors_apart",
    "upload_session",
    "failure",
    "finished",
    "options",
    "owner",
    "wish",
];

/// Elements of ours that hold a number: a malformed one is damage, for nobody else writes them.
const NUMBERS: &[&str] = &[
    "format",
    "generation",
    "failures",
    "closed_until",
    "expected_nbytes",
    "length",
    "progress_mark",
    "sessions",
    "position",
    "missing_passes",
    "corrupt_fetches",
    "not_before",
    "patience_used",
    "patience_at",
    "held",
    "inode",
    "total",
    "last_modified",
    "date",
    "changes",
    "time",
    "size",
    "mtime_ns",
    "min_delay",
    "max_delay",
    "give_up",
    "retry_on",
    "connect_timeout",
    "first_byte_timeout",
    "stall_timeout",
    "created",
    "expires",
    "source_size",
    "source_mtime_ns",
    "source_ctime_ns",
    "source_inode",
    "confirmed",
    "reached",
    "part_size",
    "number",
    "segment_limit",
    "ceiling",
    "stalled_attempts",
    "whole_segments",
    "sessions_lost",
    "lost_since",
    "stale",
    "before_size",
    "before_modified",
];

impl Shape {
    /// The names known inside, in the order of writing.
    pub(super) const fn order(self) -> &'static [&'static str] {
        match self {
            Self::Top => &["format", "generation", "network_mode", "host", "day", "report"],
            Self::Day => &["when", "up", "down"],
            Self::Host => {
                &["origin", "direction", "failures", "last_failure", "backoff", "closed_until", "not_before", "rate"]
            }
            Self::Report => reports::ORDER,
            Self::Record(_) => RECORD,
            Self::Transfer => SIX,
            Self::Ours => OURS,
            Self::Pieces => &["algorithm", "length", "digests"],
            Self::Mirror => &[
                "position",
                "url",
                "refused",
                "served",
                "contributed",
                "missing_passes",
                "corrupt_fetches",
                "not_before",
                "tried",
                "named_with",
            ],
            Self::Backoff => backoff::ORDER,
            Self::Dossier => &["part", "rival", "origin_notes", "changes"],
            Self::Draft => &[
                "held",
                "beyond",
                "total",
                "validators",
                "reserve",
                "last_origin",
                "content_type",
                "coding",
                "inode",
                "joints",
                "vouched",
            ],
            Self::Validators => &["origin", "etag", "last_modified", "date"],
            Self::Origin => &["origin", "ranges", "if_range", "etags_lie", "part_digests_lie", "connections"],
            Self::Failure => &["time", "url", "class", "held", "text"],
            Self::Finished => &[
                "time",
                "evidence",
                "size",
                "mtime_ns",
                "inode",
                "server_digest",
                "server",
                "found",
                "ctime_ns",
                "source_digest",
            ],
            Self::Options => options::ORDER,
            Self::Upload => upload::ORDER,
            Self::UploadPart => &["number", "size", "etag"],
            Self::Wish => &["serial", "time", "what", "url"],
        }
    }

    /// The shape of the element of that name inside, where it has one.
    pub(super) fn of(self, name: &str) -> Option<Self> {
        match (self, name) {
            (Self::Top, "host") => Some(Self::Host),
            (Self::Top, "day") => Some(Self::Day),
            (Self::Top, "report") => Some(Self::Report),
            (Self::Report, "options") => Some(Self::Options),
            (Self::Record(_), "persistent_file_xfer") => Some(Self::Transfer),
            (Self::Record(_), "persxfer") => Some(Self::Ours),
            (Self::Ours, "pieces") => Some(Self::Pieces),
            (Self::Ours, "mirror") => Some(Self::Mirror),
            (Self::Ours | Self::Host | Self::Report, "backoff") => Some(Self::Backoff),
            (Self::Ours, "dossier") => Some(Self::Dossier),
            (Self::Ours, "failure") => Some(Self::Failure),
            (Self::Ours, "finished") => Some(Self::Finished),
            (Self::Ours, "options") => Some(Self::Options),
            (Self::Ours, "upload_session") => Some(Self::Upload),
            (Self::Upload, "part") => Some(Self::UploadPart),
            (Self::Ours, "wish") => Some(Self::Wish),
            (Self::Dossier, "part" | "rival") => Some(Self::Draft),
            (Self::Dossier, "origin_notes") => Some(Self::Origin),
            (Self::Draft, "validators" | "reserve") => Some(Self::Validators),
            _ => None,
        }
    }

    /// The child that tells elements of this shape and the same name apart.
    pub(super) const fn key(self) -> Option<&'static str> {
        match self {
            Self::Mirror => Some("url"),
            Self::Host | Self::Validators | Self::Origin => Some("origin"),
            Self::Wish => Some("serial"),
            Self::Report => Some("id"),
            Self::Day => Some("when"),
            Self::Upload => Some("server"),
            Self::UploadPart => Some("number"),
            _ => None,
        }
    }

    /// We know this element here, so that our own view of it replaces it. A URL that we cannot read, or of the other
    /// direction, is none of our business.
    pub(super) fn knows(self, element: &Element<'_>) -> bool {
        match (self, element.name) {
            (Self::Record(direction), "url" | "download_url" | "upload_url") => {
                url_direction(element) == Some(direction) && MirrorUrl::parse(&element.text()).is_ok()
            }
            // Of a download it is BOINC's, and stays as it stands.
            (Self::Record(Direction::Download), "xml_signature") => false,
            (_, name) => self.order().contains(&name),
        }
    }
}

/// Which way the URL in this element of a record is for. The old `<url>` tells by its text (boinc.md 2.2).
pub(super) fn url_direction(element: &Element<'_>) -> Option<Direction> {
    match element.name {
        "download_url" => Some(Direction::Download),
        "upload_url" => Some(Direction::Upload),
        "url" if element.inner.contains("file_upload_handler") => Some(Direction::Upload),
        "url" => Some(Direction::Download),
        _ => None,
    }
}

/// This element of ours holds a number.
pub(super) fn is_number(name: &str) -> bool {
    NUMBERS.contains(&name) || backoff::ORDER.contains(&name)
}
