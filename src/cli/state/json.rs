//! Transfers as JSON, with BOINC's names where BOINC has one; described in `docs/events.md`.
//!
//! No secret is in it: URLs come without user-info and the values of their query.

use serde::Serialize;

use crate::cli::foreign::{Book, algorithm_name, printable};
use crate::core::file_xfer::dossier::Draft;
use crate::core::pers_xfer::record::{self, Direction, MirrorRecord, Past, Record, Standing, Status};
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
    evidence: Option<&'static str>,
    digest_source: Option<&'static str>,
    file: Option<&'static str>,
    in_use_by: Option<String>,
}

/// What stands beside a record: who works on it, and what became of its file.
pub(super) struct Around {
    holder: Option<String>,
    missing: bool,
}

impl Around {
    /// Of this record, as it is now.
    pub(super) fn of(book: &dyn Book, record: &Record) -> Self {
        Self { holder: book.holder(record), missing: book.is_missing(record) }
    }

    /// Of a download that is done: is its file where it was written?
    fn file(&self, record: &Record) -> Option<&'static str> {
        let done = record.status == Status::Done && record.direction == Direction::Download && record.path.is_some();
        done.then_some(if self.missing { "missing" } else { "present" })
    }
}

/// One transfer whole, as `state show --json` and `state export` tell it.
#[derive(Serialize)]
pub(super) struct Story {
    schema: u32,
    #[serde(flatten)]
    entry: Entry,
    max_nbytes: Option<u64>,
    checksums: Vec<String>,
    patience_used: f64,
    changes: u32,
    mirrors: Vec<Mirror>,
    part: Part,
    rival: Option<Part>,
    history: Vec<Failure>,
    finished: Option<Finished>,
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
            confirmed: record.confirmed.0,
            evidence: done(record).map(|f| f.evidence.word()),
            digest_source: done(record).and_then(|f| f.evidence.digest_source(f.server_digest)),
            file: around.file(record),
            in_use_by: around.holder,
        }
    }
}

impl Story {
    /// From a record.
    pub(super) fn new(record: &Record, around: Around) -> Self {
        let digest =
            |d: &crate::core::digest::Expected| format!("{}={}", algorithm_name(d.algorithm), hex::encode(&d.bytes));
        Self {
            schema: SCHEMA,
            entry: Entry::new(record, around),
            max_nbytes: record.max_nbytes.map(|n| n.0),
            checksums: record.digests.iter().map(digest).collect(),
            patience_used: record.patience_used.as_secs_f64(),
            changes: record.dossier.changes,
            mirrors: record.mirrors.iter().map(mirror).collect(),
            part: part(&record.dossier.part),
            rival: record.dossier.rival.as_ref().map(part),
            history: record.history.iter().map(failure).collect(),
            finished: record.finished.as_ref().map(|f| Finished {
                time: f.at.as_secs_f64(),
                evidence: f.evidence.word(),
                digest_source: f.evidence.digest_source(f.server_digest),
                size: f.size.0,
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

fn part(draft: &Draft) -> Part {
    let validator = |(origin, v): &(crate::core::url::Origin, crate::core::validator::Validators)| Validator {
        origin: origin.to_string(),
        etag: v.etag.as_ref().map(|tag| printable(&format!("{}{}", if tag.weak { "W/" } else { "" }, tag.opaque))),
        last_modified: seconds(v.last_modified),
    };
    Part {
        held: draft.held.0,
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
