//! The tally: what a service has done since it began, counted from what it tells.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::pers_xfer::record::{Direction, XferId};
use crate::core::range::Length;
use crate::core::time::Mono;
use crate::engine::{Notice, Report, WaitReason};

/// Hosts with a count of their own; what others bring is counted as one.
const MOST_HOSTS: usize = 100;
/// The name of all others.
const OTHERS: &str = "other";

/// Counts since the process began.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Sessions that began, downloads and uploads.
    pub(super) sessions: BTreeMap<Direction, u64>,
    /// Bytes, by host: written here, or confirmed there.
    pub(super) bytes: BTreeMap<(Direction, String), u64>,
    /// Sessions that failed, by class.
    pub(super) failures: BTreeMap<&'static str, u64>,
    /// Passes over all mirrors that failed.
    pub(super) retries: u64,
    /// Transfers that ended here, by how.
    pub(super) ended: BTreeMap<&'static str, u64>,
    hosts: BTreeSet<String>,
    uploads: BTreeSet<XferId>,
    meters: BTreeMap<XferId, Meter>,
}

/// The latest session of a transfer.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    /// With whom, without secrets.
    pub(super) url: String,
    /// Since when.
    pub(super) since: Mono,
    /// Bytes held when it began.
    pub(super) from: Length,
    /// How far it is: bytes held, or handed to the network.
    pub(super) at: Length,
    host: String,
    held: Length,
    pass: Pass,
}

/// Is there a pass whose failure was not counted yet?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Open,
    Counted,
}

impl Tally {
    /// The latest session of a transfer that is not over.
    pub(super) fn meter(&self, id: XferId) -> Option<&Meter> {
        self.meters.get(&id)
    }

    /// Something happened.
    pub(super) fn note(&mut self, notice: &Notice, now: Mono) {
        match notice {
            Notice::Accepted { id, direction: Direction::Upload, .. } => _ = self.uploads.insert(*id),
            Notice::Session { id, url, held, .. } => self.begin(*id, url, *held, now),
            Notice::Progress { id, held } => self.moved(*id, *held, Length(u64::MAX)),
            Notice::Sending { id, at } => {
                if let Some(meter) = self.meters.get_mut(id) {
                    meter.at = *at;
                }
            }
            Notice::Failed { class, .. } => *self.failures.entry(class.word()).or_default() += 1,
            Notice::Waiting { id, reason: WaitReason::Backoff { .. }, .. } => self.pass_failed(*id),
            Notice::Ended(report) => self.end(report),
            _ => {}
        }
    }

    fn begin(&mut self, id: XferId, url: &crate::core::url::MirrorUrl, held: Length, now: Mono) {
        // What the session before held, it may have told only at its end.
        self.moved(id, held, Length(u64::MAX));
        *self.sessions.entry(self.direction(id)).or_default() += 1;
        let (host, url) = (url.origin().to_string(), url.redacted());
        let meter = Meter { url, since: now, from: held, at: held, host, held, pass: Pass::Open };
        self.meters.insert(id, meter);
    }

    fn moved(&mut self, id: XferId, held: Length, most: Length) {
        let Some(meter) = self.meters.get_mut(&id) else { return };
        let gained = held.saturating_sub(meter.held).min(most);
        (meter.held, meter.at) = (held, held);
        if gained > Length::ZERO {
            let host = meter.host.clone();
            let host = self.counted_as(host);
            *self.bytes.entry((self.direction(id), host)).or_default() += gained.0;
        }
    }

    fn pass_failed(&mut self, id: XferId) {
        let Some(meter) = self.meters.get_mut(&id) else { return };
        if std::mem::replace(&mut meter.pass, Pass::Counted) == Pass::Open {
            self.retries += 1;
        }
    }

    fn end(&mut self, report: &Report) {
        // A file that was only asked about has brought no bytes, whatever it holds.
        self.moved(report.id, report.held, report.received);
        self.meters.remove(&report.id);
        self.uploads.remove(&report.id);
        *self.ended.entry(report.ending.word()).or_default() += 1;
    }

    fn direction(&self, id: XferId) -> Direction {
        if self.uploads.contains(&id) { Direction::Upload } else { Direction::Download }
    }

    /// The first hosts have a count each.
    fn counted_as(&mut self, host: String) -> String {
        if self.hosts.contains(&host) {
            return host;
        }
        if self.hosts.len() >= MOST_HOSTS {
            return OTHERS.to_owned();
        }
        self.hosts.insert(host.clone());
        host
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::pers_xfer::record::Evidence;
    use crate::core::time::Delay;
    use crate::core::url::MirrorUrl;
    use crate::engine::Ending;

    fn url(host: &str) -> MirrorUrl {
        MirrorUrl::parse(&format!("http://{host}/f?token=s3cret")).expect("a URL")
    }

    fn session(id: u64, host: &str, held: u64) -> Notice {
        Notice::Session { id: XferId(id), number: 1, url: url(host), mirror: (1, 1), held: Length(held) }
    }

    fn ended(id: u64, held: u64, received: u64) -> Notice {
        Notice::Ended(Report {
            id: XferId(id),
            direction: Direction::Download,
            name: "f".into(),
            url: url("a"),
            path: None,
            total: None,
            held: Length(held),
            placed: None,
            received: Length(received),
            server_digest: None,
            finished: None,
            wanted: None,
            ending: Ending::Complete { evidence: Evidence::Length },
        })
    }

    fn told(notices: &[Notice]) -> Tally {
        let mut tally = Tally::default();
        notices.iter().for_each(|notice| tally.note(notice, Mono::ZERO));
        tally
    }

    fn progress(id: u64, held: u64) -> Notice {
        Notice::Progress { id: XferId(id), held: Length(held) }
    }

    #[test]
    fn bytes_are_those_that_were_gained_and_each_is_its_hosts() {
        let tally = told(&[
            session(1, "a", 100),
            progress(1, 150),
            progress(1, 120),
            progress(1, 130),
            session(1, "b", 200),
            ended(1, 1000, 900),
            session(2, "a", 0),
            ended(2, 500, 0),
        ]);
        let bytes = |host: &str| tally.bytes.get(&(Direction::Download, format!("http://{host}"))).copied();
        assert_eq!((bytes("a"), bytes("b")), (Some(50 + 10 + 70), Some(800)));
        assert_eq!((tally.sessions[&Direction::Download], tally.ended["complete"]), (3, 2));
        assert!(tally.meter(XferId(1)).is_none());
    }

    #[test]
    fn a_pass_counts_once_and_not_where_it_failed_in_another_life() {
        let waits = |id| {
            let reason = WaitReason::Backoff { retries: 1, last: String::new() };
            Notice::Waiting { id: XferId(id), delay: Some(Delay::ZERO), until: None, reason }
        };
        let tally = told(&[waits(1), session(1, "a", 0), waits(1), waits(1), session(1, "a", 0), waits(1)]);
        assert_eq!(tally.retries, 2);
    }

    #[test]
    fn the_number_of_hosts_is_bounded() {
        let all: Vec<_> =
            (0..MOST_HOSTS as u64 + 5).flat_map(|n| [session(n, &format!("h{n}"), 0), progress(n, 7)]).collect();
        let tally = told(&all);
        assert_eq!(tally.bytes.len(), MOST_HOSTS + 1);
        assert_eq!(tally.bytes[&(Direction::Download, OTHERS.to_owned())], 35);
        assert_eq!(tally.meter(XferId(3)).map(|m| m.url.as_str()), Some("http://h3/f?token=***"));
    }
}
