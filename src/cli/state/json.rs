//! Transfers as JSON, with BOINC's names where BOINC has one; described in `docs/events.md`.
//!
//! No secret is in it: URLs come without user-info and the values of their query.

use serde::Serialize;

use crate::cli::foreign::{Book, PartState, algorithm_name, printable};
use crate::cli::state::Desk;
use crate::cli::state::servers::{self, Server};
use crate::cli::state::waits::Waits;
use crate::core::file_xfer::dossier::{Draft, OriginNotes, Ranges};
use crate::core::hosts::HostRecord;
use crate::core::pers_xfer::record::{self, Direction, MirrorRecord, Past, Record, Standing, Status};
use crate::core::range::{ByteRange, Length, RangeSet};
use crate::core::time::Epoch;

/// The version of the forms in this file.
pub(super) const SCHEMA: u32 = 1;

/// For people or for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json,
}

impl Form {
    /// `--json` stands there, or not.
    pub(super) const fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

/// One transfer, as `state list` tells it.
#[derive(Serialize)]
pub(super) struct Entry {
    pub(super) id: String,
    name: String,
    path: Option<String>,
    urls: Vec<String>,
    nbytes: Option<u64>,
    is_upload: bool,
    status: &'static str,
    error_code: Option<i32>,
    error_msg: Option<String>,
    num_retries: u32,
    sessions: u32,
    first_request_time: Option<f64>,
    next_request_time: Option<f64>,
    time_so_far: f64,
    confirmed: u64,
    confirmed_from: &'static str,
    evidence: Option<&'static str>,
    digest_source: Option<&'static str>,
    file: Option<&'static str>,
    in_use_by: Option<String>,
    waits: Option<Waits>,
}

/// What stands beside a record: who works on it, and what became of its file.
pub(super) struct Around {
    holder: Option<String>,
    missing: bool,
    /// What the part file holds just now, where there is one.
    segments: Option<RangeSet>,
    waits: Option<Waits>,
}

/// Bytes held of the version that is put together, and what says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// The part file and its journal, as they are now.
    InPart(Length),
    /// The record, which learns it when a session ends.
    Recorded(Length),
    /// Of an upload: the server that has most, as it said itself.
    AtServer(Length),
}

impl Held {
    /// Of this record, whose part file holds this. A version that is put together beside the part is told apart, and its
    /// bytes are those that the record counts.
    pub(crate) fn of(record: &Record, found: Option<&RangeSet>) -> Self {
        match found.filter(|_| record.dossier.rival.is_none()) {
            // That of a BOINC client, which has no path, says so in BOINC's own element.
            _ if record.direction == Direction::Upload && record.path.is_some() => {
                Self::AtServer(match record.status {
                    Status::Done => record.nbytes.unwrap_or_else(|| record.held()),
                    _ => record.held(),
                })
            }
            Some(found) => Self::InPart(found.length()),
            None if record.status == Status::Done => Self::Recorded(record.nbytes.unwrap_or(record.confirmed)),
            None => Self::Recorded(record.confirmed),
        }
    }

    /// How many.
    pub(crate) const fn bytes(self) -> Length {
        match self {
            Self::InPart(bytes) | Self::Recorded(bytes) | Self::AtServer(bytes) => bytes,
        }
    }

    /// In a word.
    const fn source(self) -> &'static str {
        match self {
            Self::InPart(_) => "part",
            Self::Recorded(_) => "record",
            Self::AtServer(_) => "server",
        }
    }
}

impl Around {
    /// Of this record, as it is now.
    pub(super) fn of(desk: &Desk<'_>, record: &Record) -> Self {
        let book = desk.book;
        Self {
            holder: book.holder(record),
            missing: book.is_missing(record),
            segments: segments(book, record),
            waits: desk.waits_for(record),
        }
    }

    /// Of a download that is done: is its file where it was written?
    fn file(&self, record: &Record) -> Option<&'static str> {
        let done = record.status == Status::Done && record.direction == Direction::Download && record.path.is_some();
        done.then_some(if self.missing { "missing" } else { "present" })
    }
}

/// What the part file of an unfinished download holds just now; `None` where there is none.
pub(super) fn segments(book: &dyn Book, record: &Record) -> Option<RangeSet> {
    let begun = record.status != Status::Done && record.direction == Direction::Download;
    if !begun || record.dossier.part.is_blank() {
        return None;
    }
    let found = book.outline(record)?;
    (found.part == PartState::Regular).then_some(found.held)
}

/// One transfer whole, as `state show --json` and `state export` tell it.
#[derive(Serialize)]
pub(super) struct Story {
    schema: u32,
    #[serde(flatten)]
    entry: Entry,
    max_nbytes: Option<u64>,
    checksums: Vec<String>,
    expected: Option<u64>,
    pieces: Option<PieceDigests>,
    patience_used: f64,
    changes: u32,
    mirrors_apart: bool,
    mirrors: Vec<Mirror>,
    servers: Vec<Server>,
    origins: Vec<Origin>,
    part: Part,
    rival: Option<Part>,
    history: Vec<Failure>,
    finished: Option<Finished>,
}

#[derive(Serialize)]
struct PieceDigests {
    algorithm: &'static str,
    length: u64,
    count: usize,
}

/// What was learned of a server, for this transfer or (the rate) for all.
#[derive(Serialize)]
struct Origin {
    origin: String,
    ranges: &'static str,
    connections: Option<u32>,
    rate: Option<u64>,
}

#[derive(Serialize)]
struct Mirror {
    url: String,
    usable: bool,
    named_by: &'static str,
    class: Option<&'static str>,
    message: Option<String>,
    served: bool,
    not_before: Option<f64>,
}

/// One version of the file, as far as it is held.
#[derive(Serialize)]
struct Part {
    held: u64,
    beyond: u64,
    segments: Option<Vec<[u64; 2]>>,
    more_segments: usize,
    total: Option<u64>,
    last_origin: Option<String>,
    content_type: Option<String>,
    vouched: Vec<String>,
    validators: Vec<Validator>,
}

#[derive(Serialize)]
struct Validator {
    origin: String,
    etag: Option<String>,
    last_modified: Option<f64>,
}

#[derive(Serialize)]
struct Failure {
    time: f64,
    url: String,
    class: &'static str,
    message: String,
    held: u64,
}

#[derive(Serialize)]
struct Finished {
    time: f64,
    evidence: &'static str,
    digest_source: Option<&'static str>,
    size: u64,
    server: Option<String>,
    found_there: Option<u64>,
}

impl Entry {
    /// From a record.
    pub(super) fn new(record: &Record, around: Around) -> Self {
        let (status, error_code, error_msg) = match &record.status {
            Status::Pending => ("pending", None, None),
            Status::Suspended => ("suspended", None, None),
            Status::Done => ("done", None, None),
            Status::Failed { code, message } => ("failed", Some(*code), Some(printable(message))),
        };
        let held = Held::of(record, around.segments.as_ref());
        Self {
            id: record.id.to_string(),
            name: printable(&record.name),
            path: record.path.as_ref().map(|p| printable(&p.to_string_lossy())),
            urls: record.mirrors.iter().map(|m| m.url.redacted()).collect(),
            nbytes: record.nbytes.map(|n| n.0),
            is_upload: record.direction == Direction::Upload,
            status,
            error_code,
            error_msg,
            num_retries: record.num_retries,
            sessions: record.sessions,
            first_request_time: seconds(record.first_request_time),
            next_request_time: seconds(record.next_request_time),
            time_so_far: record.time_so_far.as_secs_f64(),
            confirmed: held.bytes().0,
            confirmed_from: held.source(),
            evidence: done(record).map(|f| f.evidence.word()),
            digest_source: done(record).and_then(|f| f.evidence.digest_source(f.server_digest)),
            file: around.file(record),
            in_use_by: around.holder,
            waits: around.waits,
        }
    }
}

impl Story {
    /// From a record.
    pub(super) fn new(record: &Record, hosts: &[HostRecord], around: Around) -> Self {
        let held = around.segments.clone();
        let digest =
            |d: &crate::core::digest::Expected| format!("{}={}", algorithm_name(d.algorithm), hex::encode(&d.bytes));
        Self {
            schema: SCHEMA,
            entry: Entry::new(record, around),
            max_nbytes: record.max_nbytes.map(|n| n.0),
            checksums: record.digests.iter().map(digest).collect(),
            expected: record.expected.map(|n| n.0),
            pieces: record.pieces.as_deref().map(|pieces| PieceDigests {
                algorithm: algorithm_name(pieces.algorithm()),
                length: pieces.length().0,
                count: pieces.count(),
            }),
            patience_used: record.patience_used.as_secs_f64(),
            changes: record.dossier.changes,
            mirrors_apart: record.apart,
            mirrors: record.mirrors.iter().map(mirror).collect(),
            servers: servers::forms(record),
            origins: record.dossier.origins.iter().map(|notes| origin(notes, hosts)).collect(),
            part: part(&record.dossier.part, held.as_ref()),
            rival: record.dossier.rival.as_ref().map(|rival| part(rival, None)),
            history: record.history.iter().map(failure).collect(),
            finished: record.finished.as_ref().map(|f| Finished {
                time: f.at.as_secs_f64(),
                evidence: f.evidence.word(),
                digest_source: f.evidence.digest_source(f.server_digest),
                size: f.size.0,
                server: f.placed.as_ref().map(|placed| placed.server.redacted()),
                found_there: f.placed.as_ref().map(|placed| placed.found.0),
            }),
        }
    }
}

/// How it finished, where it is done: a download that is begun again still knows how it did the last time.
pub(super) fn done(record: &Record) -> Option<&record::Finished> {
    record.finished.as_ref().filter(|_| record.status == Status::Done)
}

fn mirror(mirror: &MirrorRecord) -> Mirror {
    let (class, message) = match &mirror.standing {
        Standing::Usable => (None, None),
        Standing::Refused { class, why } => (Some(class.word()), Some(printable(why))),
    };
    let usable = mirror.standing == Standing::Usable;
    let url = mirror.url.redacted();
    let named_by = if mirror.named_with.is_some() { "server" } else { "user" };
    Mirror { url, usable, named_by, class, message, served: mirror.served, not_before: seconds(mirror.not_before) }
}

/// What one connection to a server brought of late, in bytes a second.
pub(super) fn rate(origin: &crate::core::url::Origin, hosts: &[HostRecord]) -> Option<u64> {
    let of = |host: &&HostRecord| host.key.origin == *origin && host.key.direction == Direction::Download;
    hosts.iter().find(of)?.rate
}

fn origin(notes: &OriginNotes, hosts: &[HostRecord]) -> Origin {
    let ranges = match notes.ranges {
        Ranges::Unknown => "unknown",
        Ranges::Work => "work",
        Ranges::Broken => "broken",
    };
    let rate = rate(&notes.origin, hosts);
    Origin { origin: notes.origin.to_string(), ranges, connections: notes.most, rate }
}

/// How many ranges are told.
pub(super) const PAIRS: usize = 64;

/// Ranges as pairs: the first byte of each, and the one behind its last.
pub(super) fn pairs(ranges: &[ByteRange]) -> Vec<[u64; 2]> {
    ranges.iter().take(PAIRS).map(|range| [range.start.0, range.end.0]).collect()
}

/// What the file itself holds counts more than what the record says of it, which is older.
fn part(draft: &Draft, found: Option<&RangeSet>) -> Part {
    let ranges: Option<Vec<ByteRange>> = found.map(|held| held.iter().collect());
    let (held, beyond) = match found {
        Some(found) => (found.head(), found.length().saturating_sub(found.head())),
        None => (draft.held, draft.beyond),
    };
    let validator = |(origin, v): &(crate::core::url::Origin, crate::core::validator::Validators)| Validator {
        origin: origin.to_string(),
        etag: v.etag.as_ref().map(|tag| printable(&format!("{}{}", if tag.weak { "W/" } else { "" }, tag.opaque))),
        last_modified: seconds(v.last_modified),
    };
    Part {
        held: held.0,
        beyond: beyond.0,
        more_segments: ranges.as_ref().map_or(0, |all| all.len().saturating_sub(PAIRS)),
        segments: ranges.as_deref().map(pairs),
        total: draft.total.map(|t| t.0),
        last_origin: draft.last_origin.as_ref().map(ToString::to_string),
        content_type: draft.content_type.as_deref().map(printable),
        vouched: draft.vouched.iter().map(ToString::to_string).collect(),
        validators: draft.validators.iter().map(validator).collect(),
    }
}

fn failure(past: &Past) -> Failure {
    Failure {
        time: past.at.as_secs_f64(),
        url: printable(&past.url),
        class: past.class.word(),
        message: printable(&past.text),
        held: past.held.0,
    }
}

fn seconds(at: Option<Epoch>) -> Option<f64> {
    at.map(Epoch::as_secs_f64)
}

/// As JSON text; the forms above hold nothing that could fail.
pub(super) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
