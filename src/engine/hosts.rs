//! What sessions tell of their hosts: who fails as a whole is left alone, who answers is open to all at once.

use crate::core::failure::Failure;
use crate::core::file_xfer::Outcome;
use crate::core::file_xfer::vouch::NamedMirrors;
use crate::core::hosts::{Change, HostKey};
use crate::core::pers_xfer::Event;
use crate::core::pers_xfer::record::{Direction, XferId};
use crate::core::schedule::Sign;
use crate::core::time::{Delay, Now};
use crate::core::url::Origin;
use crate::core::verdict::Class;
use crate::engine::Notice;
use crate::engine::supervisor::Supervisor;
use crate::engine::transfer::{Answered, Transfer};
use crate::io::driver::Beside;

impl Supervisor<'_> {
    /// The first good answer of a host ends its backoff; nobody need wait for the end of the session.
    pub(super) fn host_answered(&mut self, id: XferId, now: Now) {
        let Some(running) = self.transfers.get_mut(&id).and_then(|t| t.running.as_mut()) else { return };
        if std::mem::replace(&mut running.answered, Answered::Well) == Answered::NotYet {
            let host = running.host.clone();
            let key = key_of(&host, self.direction(id));
            let change = self.hosts.succeeded(&key);
            self.host_changed(key, change, now);
            self.network_sign(&host, Sign::Reached, now);
        }
    }

    pub(super) fn report_to_host(&mut self, id: XferId, host: &Origin, outcome: &Outcome, now: Now) {
        let Some(transfer) = self.transfers.get(&id) else { return };
        let (news, direction) = (transfer.host_news(outcome), transfer.record().direction);
        self.host_news(key_of(host, direction), news, now);
    }

    fn direction(&self, id: XferId) -> Direction {
        self.transfers.get(&id).map_or(Direction::Download, |t| t.record().direction)
    }

    fn host_news(&mut self, key: HostKey, news: HostNews, now: Now) {
        match news {
            HostNews::Failing { floor, word } => {
                self.hosts.blame(&key, &word);
                self.hosts.failed(&key, now, &mut *self.rng);
                if let Some(floor) = floor {
                    self.hosts.hold_until(&key, now.mono + floor);
                }
                self.heard_of.insert(key);
            }
            HostNews::Good => {
                let change = self.hosts.succeeded(&key);
                self.host_changed(key, change, now);
            }
            HostNews::Nothing => self.hosts.probe_abandoned(&key),
        }
    }

    /// A server named mirrors: told once, where they are news.
    pub(super) fn duplicates(&mut self, id: XferId, named: NamedMirrors, now: Now) {
        let NamedMirrors { by, digest, urls } = named;
        let count = |transfer: &Transfer| transfer.record().mirrors.len();
        let before = self.transfers.get(&id).map_or(0, count);
        self.handle(id, Event::Duplicates { digest, urls }, now);
        let fresh = self.transfers.get(&id).map_or(0, count).saturating_sub(before);
        if fresh > 0 {
            let text = format!("{fresh} more {} named by {by}", if fresh == 1 { "mirror" } else { "mirrors" });
            (self.notices)(Notice::Remark { id: Some(id), text });
        }
    }

    /// What the links of a session tell of other mirrors than its own.
    pub(super) fn told_beside(&mut self, id: XferId, beside: Beside, now: Now) {
        match beside {
            Beside::Serves { url } => {
                let key = key_of(&url.origin(), Direction::Download);
                let change = self.hosts.succeeded(&key);
                self.host_changed(key, change, now);
                self.handle(id, Event::Serves(url), now);
            }
            Beside::Failed { url, failure, origin } => {
                if let Some(transfer) = self.transfers.get(&id) {
                    let news = transfer.news_of_failure(&failure);
                    self.host_news(key_of(&url.origin(), Direction::Download), news, now);
                }
                self.handle(id, Event::FailedBeside { url, failure, origin }, now);
            }
            Beside::Rate { origin, rate } => self.measured(&origin, rate),
        }
    }

    /// One connection to this host brought so many bytes per second.
    pub(super) fn measured(&mut self, origin: &Origin, rate: u64) {
        let key = key_of(origin, Direction::Download);
        self.hosts.measured(&key, rate);
        self.heard_of.insert(key);
    }

    /// A host that is open again: whoever waits for it goes on at once.
    pub(super) fn host_changed(&mut self, key: HostKey, change: Change, now: Now) {
        if change != Change::Opened {
            return;
        }
        let host = key.origin.clone();
        self.slots.open(&key);
        self.heard_of.insert(key);
        for id in self.waiting_for.remove(&host).unwrap_or_default() {
            self.handle(id, Event::HostOpened(host.clone()), now);
        }
    }
}

/// What a session's end says of its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HostNews {
    /// It does not do its work, as this word says; it may have asked to wait.
    Failing { floor: Option<Delay>, word: String },
    /// It answered.
    Good,
    /// Nothing.
    Nothing,
}

/// A failure in a word: the status, or the class.
pub(super) fn word_of(failure: &Failure, class: Class) -> String {
    match failure {
        Failure::Status { code, .. } => code.to_string(),
        _ => class.word().to_owned(),
    }
}

pub(super) fn key_of(host: &Origin, direction: Direction) -> HostKey {
    HostKey { origin: host.clone(), direction }
}
