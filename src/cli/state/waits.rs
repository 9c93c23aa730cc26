//! Why a transfer waits, beyond its own time: nothing may pass its way, or every host that it could ask is left alone.

use serde::Serialize;

use crate::cli::board::host;
use crate::cli::foreign::{counted, printable};
use crate::cli::state::Desk;
use crate::core::hosts::HostRecord;
use crate::core::pers_xfer::record::{Record, Status};
use crate::core::prefs::PerDirection;
use crate::core::time::{Delay, Epoch};
use crate::engine::{Passage, Standing};

/// Two stored moments that mean the same one may differ by so much.
const ROUNDING: Delay = Delay::from_secs(1);

/// Why one waits, in the form that JSON has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Waits {
    /// `suspended`, `hours`, `quota`, `host-backoff` or `retry-after`.
    pub(super) reason: &'static str,
    /// One line.
    pub(super) message: String,
    /// Until when, as far as it is known.
    pub(super) until: Option<f64>,
    /// The host, where one is why.
    host: Option<String>,
    /// Its failures in a row.
    failures: Option<u32>,
    /// The last of them: a status, or a class.
    last_failure: Option<String>,
}

/// May bytes pass, in the form that JSON has it.
#[derive(Serialize)]
pub(super) struct Network {
    upload: Direction,
    download: Direction,
}

#[derive(Serialize)]
struct Direction {
    open: bool,
    reason: Option<&'static str>,
    message: Option<String>,
    until: Option<f64>,
    quota: Option<Quota>,
}

#[derive(Serialize)]
struct Quota {
    left: u64,
    of: u64,
    more_at: Option<f64>,
    message: String,
}

impl Network {
    /// As it stands; nothing where nothing restrains anybody.
    pub(super) fn of(standing: &Standing) -> Option<Self> {
        let free = Passage::default();
        let PerDirection { up, down } = &standing.ways;
        let restrained = *up != free || *down != free;
        restrained.then(|| Self { upload: direction(up), download: direction(down) })
    }
}

fn direction(way: &Passage) -> Direction {
    let quota = way.left.as_ref().map(|left| Quota {
        left: left.bytes,
        of: left.of,
        more_at: left.more.map(Epoch::as_secs_f64),
        message: left.text.clone(),
    });
    let shut = way.shut.as_ref();
    Direction {
        open: shut.is_none(),
        reason: shut.map(|shut| shut.reason),
        message: shut.map(|shut| shut.text.clone()),
        until: shut.and_then(|shut| shut.until).map(Epoch::as_secs_f64),
        quota,
    }
}

impl Desk<'_> {
    /// Why this one waits, though its time may have come.
    pub(super) fn waits_for(&self, record: &Record) -> Option<Waits> {
        if record.status != Status::Pending {
            return None;
        }
        let way = self.standing.ways.of(record.direction);
        let shut = way.shut.as_ref().map(|shut| Waits {
            reason: shut.reason,
            message: shut.text.clone(),
            until: shut.until.map(Epoch::as_secs_f64),
            host: None,
            failures: None,
            last_failure: None,
        });
        shut.or_else(|| self.waits_for_hosts(record))
    }

    /// Every host that it could ask is left alone: the one that opens first is told.
    fn waits_for_hosts(&self, record: &Record) -> Option<Waits> {
        let mut first: Option<(Epoch, &HostRecord)> = None;
        for mirror in record.mirrors.iter().filter(|mirror| mirror.is_usable()) {
            let origin = mirror.url.origin();
            let of_it = |host: &&HostRecord| host.key.origin == origin && host.key.direction == record.direction;
            let host = self.standing.hosts.iter().find(of_it)?;
            let until = left_alone(host, self.now.wall)?;
            if first.is_none_or(|(at, _)| until < at) {
                first = Some((until, host));
            }
        }
        // Its own time may come later.
        let first = first.filter(|(until, _)| record.next_request_time.is_none_or(|next| next <= *until + ROUNDING));
        first.map(|(until, host)| self.of_host(host, until))
    }

    fn of_host(&self, record: &HostRecord, until: Epoch) -> Waits {
        let backs_off = record.closed_until.is_some_and(|at| at > self.now.wall);
        let name = host(&record.key.origin);
        let (reason, failures) = match backs_off {
            true => ("host-backoff", Some(record.failures_in_a_row())),
            false => ("retry-after", None),
        };
        let message = told(record, &name, &self.standing.zone.say(until, self.now.wall), failures);
        let last_failure = record.last.as_deref().filter(|_| backs_off).map(printable);
        Waits { reason, message, until: Some(until.as_secs_f64()), host: Some(name), failures, last_failure }
    }
}

/// `a.example backs off until 14:02 (3 failures, last 503)`.
fn told(record: &HostRecord, name: &str, until: &str, failures: Option<u32>) -> String {
    let Some(n) = failures else { return format!("{name} asks to wait until {until}") };
    let last = record.last.as_deref().map(|last| format!(", last {}", printable(last))).unwrap_or_default();
    format!("{name} backs off until {until} ({}{last})", counted(n as usize, "failure"))
}

/// Until when a host is left alone, while it is.
fn left_alone(host: &HostRecord, now: Epoch) -> Option<Epoch> {
    host.closed_until.max(host.not_before).filter(|until| *until > now)
}
