//! The events of `--progress json`: one JSON object a line on standard output. Their forms are a promise, written down
//! in `docs/events.md`; a change that breaks a reader raises [`VERSION`].
//!
//! Sizes are whole bytes, moments are seconds since the Unix epoch, spans are seconds. No event holds a secret: URLs come
//! without user-info and query.

use std::path::Path;

use serde::Serialize;

use crate::cli::board;
use crate::cli::exit::Exit;
use crate::cli::foreign::printable;
use crate::core::pers_xfer::record::{Direction, XferId};
use crate::core::time::Epoch;
use crate::core::url::MirrorUrl;
use crate::engine::{Ending, Notice, Report, Reported, WaitReason};

/// The version of the schema, in every event.
const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Serialize)]
struct Line {
    v: u32,
    #[serde(flatten)]
    event: Event,
    time: f64,
}

/// What happened.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Event {
    Accepted {
        id: String,
        name: String,
        path: Option<String>,
        is_upload: bool,
        held: u64,
        total: Option<u64>,
    },
    Session {
        id: String,
        number: u32,
        url: String,
        mirror: usize,
        mirrors: usize,
        held: u64,
    },
    Learned {
        id: String,
        path: Option<String>,
        total: Option<u64>,
    },
    Progress {
        id: String,
        held: u64,
    },
    Sending {
        id: String,
        at: u64,
    },
    Verifying {
        id: String,
    },
    Failed {
        id: String,
        url: String,
        class: &'static str,
        message: String,
        refused: bool,
    },
    Remark {
        id: Option<String>,
        message: String,
    },
    Waiting {
        id: String,
        reason: &'static str,
        message: String,
        retries: Option<u32>,
        delay: Option<f64>,
        until: Option<f64>,
    },
    Reported {
        id: String,
        name: String,
        url: String,
        status: &'static str,
        message: Option<String>,
        next: Option<f64>,
    },
    Ended(Ended),
    Exit {
        status: u8,
    },
}

/// How a transfer ended in this run.
#[derive(Debug, Serialize)]
struct Ended {
    id: String,
    name: String,
    url: String,
    path: Option<String>,
    is_upload: bool,
    held: u64,
    total: Option<u64>,
    received: u64,
    status: &'static str,
    evidence: Option<&'static str>,
    digest_source: Option<&'static str>,
    server: Option<String>,
    found_there: Option<u64>,
    class: Option<&'static str>,
    message: Option<String>,
    next: Option<f64>,
}

/// The line of a notice, with its line end.
pub(crate) fn line(notice: &Notice, time: Epoch) -> Vec<u8> {
    encode(of_notice(notice), time)
}

/// The last line: the exit status of the run.
pub(crate) fn exit_line(exit: Exit, time: Epoch) -> Vec<u8> {
    encode(Event::Exit { status: exit.code() }, time)
}

fn encode(event: Event, time: Epoch) -> Vec<u8> {
    let line = Line { v: VERSION, event, time: time.as_secs_f64() };
    // Strings and numbers into memory: there is nothing that could fail, and nothing is printed if it did.
    let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

fn of_notice(notice: &Notice) -> Event {
    match notice {
        Notice::Accepted { id, direction, name, path, held, total } => Event::Accepted {
            id: id.to_string(),
            name: printable(name),
            path: path.as_deref().map(text),
            is_upload: *direction == Direction::Upload,
            held: held.0,
            total: total.map(|t| t.0),
        },
        Notice::Session { id, number, url, mirror, held } => Event::Session {
            id: id.to_string(),
            number: *number,
            url: url.to_string(),
            mirror: mirror.0,
            mirrors: mirror.1,
            held: held.0,
        },
        Notice::Learned { id, path, total } => {
            Event::Learned { id: id.to_string(), path: path.as_deref().map(text), total: total.map(|t| t.0) }
        }
        Notice::Progress { id, held } => Event::Progress { id: id.to_string(), held: held.0 },
        Notice::Sending { id, at } => Event::Sending { id: id.to_string(), at: at.0 },
        Notice::Verifying { id } => Event::Verifying { id: id.to_string() },
        Notice::Failed { id, url, failure, class, refused } => Event::Failed {
            id: id.to_string(),
            url: url.to_string(),
            class: class.word(),
            message: printable(&failure.to_string()),
            refused: *refused,
        },
        Notice::Remark { id, text } => Event::Remark { id: id.map(|id| id.to_string()), message: printable(text) },
        Notice::Waiting { id, delay, until, reason } => Event::Waiting {
            id: id.to_string(),
            reason: word(reason),
            message: board::why(reason),
            retries: board::retries(reason),
            delay: delay.map(|d| d.as_secs_f64()),
            until: until.map(Epoch::as_secs_f64),
        },
        Notice::Reported { id, name, url, how } => reported(*id, name, url, how),
        Notice::Ended(report) => Event::Ended(ended(report)),
    }
}

/// What became of a report to a scheduling server.
fn reported(id: XferId, name: &str, url: &MirrorUrl, how: &Reported) -> Event {
    let (status, message, next) = match how {
        Reported::Sent => ("sent", None, None),
        Reported::Later { why, next } => ("later", Some(printable(why)), Some(next.as_secs_f64())),
        Reported::GivenUp { why } => ("given-up", Some(printable(why)), None),
    };
    Event::Reported { id: id.to_string(), name: printable(name), url: url.to_string(), status, message, next }
}

/// The word for a reason to wait.
const fn word(reason: &WaitReason) -> &'static str {
    match reason {
        WaitReason::Backoff { .. } => "backoff",
        WaitReason::Resuming => "resuming",
        WaitReason::RetryAfter(_) => "retry-after",
        WaitReason::Host(_) => "host",
        WaitReason::Slot => "slot",
        WaitReason::Local(_) => "local",
        WaitReason::Network(_) => "network",
        WaitReason::Suspended => "suspended",
    }
}

fn ended(report: &Report) -> Ended {
    let mut ended = Ended {
        id: report.id.to_string(),
        name: printable(&report.name),
        url: report.url.to_string(),
        path: report.path.as_deref().map(text),
        is_upload: report.direction == Direction::Upload,
        held: report.held.0,
        total: report.total.map(|t| t.0),
        received: report.received.0,
        status: report.ending.word(),
        evidence: None,
        digest_source: None,
        server: None,
        found_there: None,
        class: None,
        message: None,
        next: None,
    };
    match &report.ending {
        Ending::Complete { evidence } | Ending::Unchanged { evidence } => {
            ended.evidence = Some(evidence.word());
            ended.digest_source = evidence.digest_source(report.server_digest);
            ended.server = report.placed.as_ref().map(|placed| placed.server.redacted());
            ended.found_there = report.placed.as_ref().map(|placed| placed.found.0);
        }
        Ending::Failed { class, message } => {
            (ended.class, ended.message) = (Some(class.word()), Some(printable(message)))
        }
        Ending::Stopped { next, why } => {
            (ended.next, ended.message) = (next.map(Epoch::as_secs_f64), Some(printable(why)))
        }
        Ending::Local(fault) => {
            (ended.class, ended.message) = (Some("local-fault"), Some(printable(&fault.to_string())))
        }
    }
    ended
}

fn text(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

#[cfg(test)]
mod tests;
