//! What every transfer of a run is doing just now, as its notices told: what bars and plain lines show.
//!
//! Nothing here reads a clock or draws: `now` comes in, text goes out, so that what people see is tested as text.

use std::collections::{BTreeMap, HashMap};

use std::path::Path;

use crate::cli::foreign::{human_delay, human_size, printable};
use crate::cli::rate::Rate;
use crate::cli::report::label;
use crate::core::pers_xfer::record::{Direction, XferId};
use crate::core::range::Length;
use crate::core::time::{Delay, Mono, Now};
use crate::core::url::{MirrorUrl, Origin};
use crate::engine::{Ending, Notice, Report, WaitReason};

/// All transfers of a run.
#[derive(Debug, Default)]
pub(crate) struct Board {
    /// Those that have not ended, in the order in which they were taken up.
    rows: BTreeMap<usize, Row>,
    places: HashMap<XferId, usize>,
    accepted: usize,
    /// How many are complete, and how many ended otherwise.
    ended: (usize, usize),
}

/// One transfer.
#[derive(Debug)]
pub(crate) struct Row {
    /// What it is called, printable.
    pub(crate) name: String,
    record_name: String,
    /// Which way its bytes go.
    pub(crate) direction: Direction,
    /// Bytes held; of an upload, those that the server confirmed.
    pub(crate) held: Length,
    /// Of an upload: how far it has been handed to the network.
    sent: Length,
    /// Size, where known.
    pub(crate) total: Option<Length>,
    /// What it does.
    pub(crate) phase: Phase,
    /// How many mirrors it has, where it has begun.
    pub(crate) mirrors: usize,
    session: u32,
    host: String,
    rate: Rate,
}

/// What a transfer does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It waits for its first session.
    Queued,
    /// A session runs.
    Running,
    /// Its digest is being checked.
    Verifying,
    /// It waits.
    Waiting {
        /// Until when, where known.
        until: Option<Mono>,
        /// How many passes have failed, where that is why.
        retries: Option<u32>,
        /// Why.
        why: String,
    },
}

impl Board {
    /// Takes a notice in; answers the place of the transfer that it is about, where that has not ended.
    pub(crate) fn apply(&mut self, notice: &Notice, now: Now) -> Option<&Row> {
        match notice {
            Notice::Accepted { id, direction, name, path, held, total } => {
                let row = Row::new(*direction, name, path.as_deref(), (*held, *total));
                return Some(self.accept(*id, row));
            }
            Notice::Ended(report) => self.end(report),
            _ => {}
        }
        let row = self.rows.get_mut(self.places.get(&subject(notice)?)?)?;
        row.apply(notice, now);
        Some(row)
    }

    /// The transfers to show, at most `most`: those that do something first.
    pub(crate) fn shown(&self, most: usize) -> Vec<&Row> {
        let busy = |row: &&Row| matches!(row.phase, Phase::Running | Phase::Verifying);
        let (mut rows, idle): (Vec<&Row>, Vec<&Row>) = self.rows.values().partition(busy);
        rows.extend(idle);
        rows.truncate(most);
        rows
    }

    /// One line about all of them.
    pub(crate) fn summary(&self, now: Now) -> String {
        let count = |f: fn(&Phase) -> bool| self.rows.values().filter(|row| f(&row.phase)).count();
        let running = count(|p| matches!(p, Phase::Running | Phase::Verifying));
        let waiting = count(|p| matches!(p, Phase::Waiting { .. }));
        let rate: u64 = self.rows.values().map(|row| row.rate.per_second(now.mono)).sum();
        let (complete, other) = self.ended;
        let mut text = format!("{complete} of {} complete, {running} running, {waiting} waiting", self.accepted);
        if other > 0 {
            text += &format!(", {other} not complete");
        }
        text + &format!(", {}/s", human_size(rate))
    }

    /// How many have not ended.
    pub(crate) fn open(&self) -> usize {
        self.rows.len()
    }

    fn accept(&mut self, id: XferId, row: Row) -> &Row {
        let place = self.accepted;
        self.accepted += 1;
        self.places.insert(id, place);
        self.rows.entry(place).insert_entry(row).into_mut()
    }

    fn end(&mut self, report: &Report) {
        if let Some(place) = self.places.remove(&report.id) {
            self.rows.remove(&place);
        }
        match report.ending {
            Ending::Complete { .. } | Ending::Unchanged { .. } => self.ended.0 += 1,
            _ => self.ended.1 += 1,
        }
    }
}

/// Which transfer a notice is about, where it is about one that goes on.
fn subject(notice: &Notice) -> Option<XferId> {
    match notice {
        Notice::Remark { id, .. } => *id,
        // Its row may be gone, and does not change.
        Notice::Ended(_) | Notice::Reported { .. } => None,
        Notice::Accepted { id, .. }
        | Notice::Session { id, .. }
        | Notice::Learned { id, .. }
        | Notice::Progress { id, .. }
        | Notice::Sending { id, .. }
        | Notice::Verifying { id }
        | Notice::Failed { id, .. }
        | Notice::Waiting { id, .. } => Some(*id),
    }
}

impl Row {
    fn new(direction: Direction, name: &str, path: Option<&Path>, (held, total): (Length, Option<Length>)) -> Self {
        Self {
            name: label(name, path),
            record_name: name.to_owned(),
            direction,
            held,
            sent: held,
            total,
            phase: Phase::Queued,
            mirrors: 0,
            session: 0,
            host: String::new(),
            rate: Rate::default(),
        }
    }

    fn apply(&mut self, notice: &Notice, now: Now) {
        match notice {
            Notice::Session { number, url, held, mirror, .. } => {
                self.mirrors = mirror.1;
                (self.session, self.host) = (*number, host(&url.origin()));
                (self.held, self.sent) = (*held, *held);
                self.phase = Phase::Running;
                self.rate.restart(now.mono, *held);
            }
            Notice::Learned { path, total, .. } => {
                if let Some(path) = path {
                    self.name = label(&self.record_name, Some(path));
                }
                self.total = total.or(self.total);
            }
            Notice::Progress { held, .. } => {
                self.held = *held;
                self.rate.note(now.mono, self.reached());
            }
            Notice::Sending { at, .. } => {
                self.sent = *at;
                self.rate.note(now.mono, self.reached());
            }
            Notice::Verifying { .. } => self.phase = Phase::Verifying,
            Notice::Waiting { delay, reason, .. } => {
                self.phase =
                    Phase::Waiting { until: delay.map(|d| now.mono + d), retries: retries(reason), why: why(reason) };
                self.sent = self.held;
                self.rate = Rate::default();
            }
            _ => {}
        }
    }

    /// What it does, for people: `1.2 MiB of 3.0 MiB (40 %), 500.0 KiB/s, 4 s left, from example.org, session 2`.
    pub(crate) fn doing(&self, now: Now) -> String {
        match &self.phase {
            Phase::Queued => "queued".into(),
            Phase::Verifying if self.direction == Direction::Upload => "checking what the server stored".into(),
            Phase::Verifying => format!("checking {}", human_size(self.held.0)),
            Phase::Waiting { why, .. } => {
                self.next_try(now).map_or_else(|| why.clone(), |next| format!("{next}: {why}"))
            }
            Phase::Running => {
                let way = if self.direction == Direction::Upload { "to" } else { "from" };
                format!("{}, {way} {}, session {}", self.moving(now, percent), self.host, self.session)
            }
        }
    }

    /// How far the bytes have come that move: of an upload, what is on its way counts too.
    pub(crate) fn reached(&self) -> Length {
        match self.direction {
            Direction::Download => self.held,
            Direction::Upload => self.sent.max(self.held),
        }
    }

    /// `next try in 1 min 12 s (retry 3)`, where it waits and it is known until when.
    pub(crate) fn next_try(&self, now: Now) -> Option<String> {
        let Phase::Waiting { until: Some(until), retries, .. } = &self.phase else { return None };
        let retry = retries.map(|n| format!(" (retry {n})")).unwrap_or_default();
        Some(format!("next try in {}{retry}", human_delay(until.since(now.mono))))
    }

    /// What follows a failure that has been told: when it goes on, and why only then, where the failure does not say so.
    pub(crate) fn and_then(&self, failure: &str, now: Now) -> String {
        match &self.phase {
            Phase::Waiting { why, .. } if why == failure => self.next_try(now).unwrap_or_default(),
            _ => self.doing(now),
        }
    }

    /// The same beside a bar, where room is short and the bar shows the share.
    pub(crate) fn briefly(&self, now: Now) -> String {
        match (&self.phase, self.session) {
            (Phase::Running, 0 | 1) => format!("{}, {}", self.moving(now, |_, _| String::new()), self.host),
            (Phase::Running, n) => format!("{}, {}, session {n}", self.moving(now, |_, _| String::new()), self.host),
            _ => self.doing(now),
        }
    }

    /// Bytes, rate and time left; `share` says the part that is held, or on its way. Of an upload, what went out is not yet
    /// there: how much the server confirmed is told beside it.
    fn moving(&self, now: Now, share: fn(Length, Length) -> String) -> String {
        let rate = self.rate.per_second(now.mono);
        let reached = self.reached();
        let mut text = match self.total {
            Some(total) => format!("{} of {}{}", human_size(reached.0), human_size(total.0), share(reached, total)),
            None => human_size(reached.0),
        };
        if self.direction == Direction::Upload {
            text = format!("sending {text}, {} confirmed", human_size(self.held.0));
        }
        text += &format!(", {}/s", human_size(rate));
        let left = self.total.map_or(0, |total| total.saturating_sub(reached).0);
        if rate > 0 && left > 0 {
            text += &format!(", {} left", human_delay(Delay::from_secs(left.div_ceil(rate))));
        }
        text
    }
}

fn percent(held: Length, total: Length) -> String {
    match u128::from(held.0) * 100 / u128::from(total.0.max(1)) {
        percent if total.0 > 0 => format!(" ({} %)", percent.min(100)),
        _ => String::new(),
    }
}

/// How many passes have failed, where a transfer waits for that.
pub(crate) const fn retries(reason: &WaitReason) -> Option<u32> {
    match reason {
        WaitReason::Backoff { retries, .. } => Some(*retries),
        _ => None,
    }
}

/// Why a transfer waits, for people.
pub(crate) fn why(reason: &WaitReason) -> String {
    printable(&match reason {
        WaitReason::Backoff { last, .. } => last.clone(),
        WaitReason::Resuming => "the connection broke off, continuing".into(),
        WaitReason::RetryAfter(origin) => format!("{} asks to wait", host(origin)),
        WaitReason::Host(origin) => format!("{} keeps failing and is left in peace", host(origin)),
        WaitReason::Slot => "queued".into(),
        WaitReason::Local(fault) => fault.to_string(),
        WaitReason::Network(why) => why.clone(),
        WaitReason::Suspended => "suspended".into(),
    })
}

/// The host of an origin, with its port where that is not the usual one.
pub(crate) fn host(origin: &Origin) -> String {
    let text = origin.as_str();
    printable(text.split_once("://").map_or(text, |(_, host)| host))
}

/// The host of a URL.
pub(crate) fn host_of(url: &MirrorUrl) -> String {
    host(&url.origin())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::samples::{self, at, id};

    fn board() -> Board {
        let mut board = Board::default();
        for notice in samples::story() {
            board.apply(&notice, at(0));
        }
        board
    }

    #[test]
    fn a_running_transfer() {
        let mut board = board();
        board.apply(&Notice::Progress { id: id(1), held: Length(2 << 20) }, at(2));
        let rows = board.shown(10);
        insta::assert_snapshot!(rows[0].doing(at(2)), @"2.0 MiB of 3.0 MiB (66 %), 512 KiB/s, 2 s left, from a.example:8080, session 2");
        insta::assert_snapshot!(rows[0].briefly(at(2)), @"2.0 MiB of 3.0 MiB, 512 KiB/s, 2 s left, a.example:8080, session 2");
        insta::assert_snapshot!(board.summary(at(2)), @"0 of 1 complete, 1 running, 0 waiting, 512 KiB/s");
    }

    #[test]
    fn a_wait_counts_down_with_its_reason() {
        let mut board = board();
        let reason = WaitReason::Backoff { retries: 3, last: "the server answered 503\u{1b}[31m".into() };
        board.apply(&Notice::Waiting { id: id(1), delay: Some(Delay::from_secs(72)), until: None, reason }, at(0));
        let doing = |seconds| board.shown(10)[0].doing(at(seconds));
        insta::assert_snapshot!(doing(0), @r"next try in 1 min 12 s (retry 3): the server answered 503\u{1b}[31m");
        insta::assert_snapshot!(doing(70), @r"next try in 2 s (retry 3): the server answered 503\u{1b}[31m");
        insta::assert_snapshot!(doing(700), @r"next try in 0 s (retry 3): the server answered 503\u{1b}[31m");
    }

    #[test]
    fn what_went_out_is_not_yet_confirmed() {
        let mut board = Board::default();
        for notice in samples::upload_story() {
            board.apply(&notice, at(0));
        }
        board.apply(&Notice::Sending { id: id(1), at: Length(2 << 20) }, at(2));
        insta::assert_snapshot!(board.shown(1)[0].doing(at(2)), @"sending 2.0 MiB of 3.0 MiB (66 %), 1.0 MiB confirmed, 512 KiB/s, 2 s left, to a.example:8080, session 2");
        insta::assert_snapshot!(board.shown(1)[0].briefly(at(2)), @"sending 2.0 MiB of 3.0 MiB, 1.0 MiB confirmed, 512 KiB/s, 2 s left, a.example:8080, session 2");
        board.apply(&Notice::Verifying { id: id(1) }, at(3));
        assert_eq!(board.shown(1)[0].doing(at(3)), "checking what the server stored");
        let reason = WaitReason::Backoff { retries: 1, last: "the line broke".into() };
        board.apply(&Notice::Waiting { id: id(1), delay: None, until: None, reason }, at(4));
        assert_eq!(board.shown(1)[0].reached(), Length(1 << 20), "what was on its way is lost");
    }

    #[test]
    fn busy_ones_are_shown_first_and_ended_ones_not() {
        let mut board = board();
        for n in 2..20 {
            board.apply(&samples::accepted(n), at(0));
        }
        let session =
            Notice::Session { id: id(9), number: 1, url: samples::url("http://b/9"), mirror: (1, 1), held: Length(0) };
        board.apply(&session, at(0));
        let names: Vec<_> = board.shown(3).iter().map(|row| row.name.clone()).collect();
        assert_eq!(names, ["f1.bin", "f9.bin", "f2.bin"]);
        board.apply(&Notice::Ended(Report { id: id(1), ..samples::report(samples::complete()) }), at(1));
        assert_eq!((board.open(), board.shown(1)[0].name.as_str()), (18, "f9.bin"));
    }
}
