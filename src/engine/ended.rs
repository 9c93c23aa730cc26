//! How a transfer ended, as far as this run goes.

use crate::core::failure::LocalFault;
use crate::core::pers_xfer::record::{Direction, Evidence, Record, Status};
use crate::core::range::Length;
use crate::core::url::MirrorUrl;
use crate::core::verdict::Class;
use crate::engine::claims::{Loss, place};
use crate::engine::transfer::{Asked, Transfer};
use crate::engine::{Ending, Report, Wanted};

/// Why nothing more is done for a transfer in this run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It is done, or failed for good.
    Over,
    /// Its machine rests: its time has not come, or this machine is in trouble.
    Rests(Option<LocalFault>),
    /// A person suspended it.
    Suspended,
    /// The run was told to stop.
    Interrupted,
    /// Nothing may pass, and the run does not wait.
    Barred(String),
    /// The run's time is up.
    OutOfTime,
    /// It is not ours.
    Lost(Loss),
}

impl Transfer {
    /// How it ended.
    pub(super) fn report(&self, why: &Why) -> Option<Report> {
        let record = self.record();
        let whole = record.status == Status::Done || self.only_asks();
        let held = if whole { record.nbytes.unwrap_or(self.held) } else { self.held };
        Some(Report { held, received: self.received, ..report(record, self.ending(why))? })
    }

    fn ending(&self, why: &Why) -> Ending {
        let unchanged = self.asked == Asked::Unchanged;
        match ending(self.record(), why) {
            Ending::Complete { evidence } if unchanged => Ending::Unchanged { evidence },
            Ending::Stopped { next, why } if self.only_asks() => Ending::Stopped { next, why: not_found_out(&why) },
            Ending::Failed { class, message } if self.only_asks() => {
                Ending::Failed { class, message: not_found_out(&message) }
            }
            other => other,
        }
    }
}

/// A finished file was only asked about, in vain.
fn not_found_out(why: &str) -> String {
    format!("the finished file stays as it is, but whether the server still has it was not to be found out: {why}")
}

/// What is held of the file, as people are told: here, or of an upload at the server.
pub(super) fn held_of(record: &Record) -> Length {
    match record.direction {
        Direction::Download => record.dossier.part.in_all(),
        Direction::Upload => record.held(),
    }
}

/// The report of a record; `None` where it has no URL.
pub(super) fn report(record: &Record, ending: Ending) -> Option<Report> {
    Some(Report {
        id: record.id,
        direction: record.direction,
        name: record.name.clone(),
        url: first_url(record)?.clone(),
        path: record.path.clone(),
        total: record.nbytes,
        held: held_of(record),
        received: Length::ZERO,
        server_digest: record.finished.as_ref().and_then(|f| f.server_digest),
        placed: record.finished.as_ref().and_then(|f| f.placed.clone()).map(Box::new),
        finished: record.finished.as_ref().map(|f| f.at),
        wanted: matches!(ending, Ending::Failed { .. }).then(|| wanted(record)).flatten(),
        ending,
    })
}

/// What whoever remembers a download needs.
fn wanted(record: &Record) -> Option<Box<Wanted>> {
    let typed = record.mirrors.iter().filter(|mirror| mirror.named_with.is_none()).map(|mirror| mirror.url.clone());
    let wanted = || Wanted { mirrors: typed.collect(), digests: record.digests.clone() };
    (record.direction == Direction::Download).then(|| Box::new(wanted()))
}

/// How a record stands.
pub(super) fn ending(record: &Record, why: &Why) -> Ending {
    match (&record.status, why) {
        (_, Why::Lost(Loss::InUse(fault))) => Ending::Local(fault.clone()),
        (_, Why::Lost(Loss::Forgotten)) => {
            Ending::Stopped { next: None, why: "its record was taken out of the state file".to_owned() }
        }
        (Status::Done, _) => {
            Ending::Complete { evidence: record.finished.as_ref().map_or(Evidence::None, |f| f.evidence) }
        }
        (Status::Failed { message, .. }, _) => {
            Ending::Failed { class: record.failed_class().unwrap_or(Class::Unsupported), message: message.clone() }
        }
        (_, Why::Rests(Some(fault))) => Ending::Local(fault.clone()),
        _ => Ending::Stopped { next: record.next_request_time, why: why_stopped(record, why) },
    }
}

fn why_stopped(record: &Record, why: &Why) -> String {
    match (why, record.history.last()) {
        (Why::Interrupted, _) => "interrupted".to_owned(),
        (Why::Barred(why), _) => why.clone(),
        (Why::OutOfTime, _) => "the time of this run is up (--max-time)".to_owned(),
        (Why::Suspended, _) => format!("suspended; `persxfer resume {}` lets it go on", place(record)),
        (_, Some(past)) => past.text.clone(),
        (_, None) => "its time has not come".to_owned(),
    }
}

fn first_url(record: &Record) -> Option<&MirrorUrl> {
    record.mirrors.first().map(|m| &m.url)
}
