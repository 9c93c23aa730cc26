//! A bench: one machine, two clocks that the test moves, and the words tests are written in.

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::core::failure::{Cut, Failure, LocalFault};
use crate::core::file_xfer::dossier::{Dossier, Draft};
use crate::core::file_xfer::{End, Freshness, Outcome};
use crate::core::machine::{Cx, Machine};
use crate::core::pers_xfer::record::{Evidence, Finished, Record, Status, XferId};
use crate::core::pers_xfer::{Action, Event, PersFileXfer, Rules};
use crate::core::range::Length;
use crate::core::time::{Delay, Epoch, Mono, Now};
use crate::core::url::MirrorUrl;

pub(super) const START: Now = Now { wall: Epoch::from_secs(1_700_000_000), mono: Mono::from_micros(5_000_000) };
pub(super) const MIB: u64 = 1 << 20;

pub(super) struct Bench {
    pub(super) machine: PersFileXfer,
    pub(super) now: Now,
    pub(super) held: u64,
    rng: StdRng,
}

pub(super) fn url(n: usize) -> MirrorUrl {
    MirrorUrl::parse(&format!("http://m{n}.example/file")).expect("a URL")
}

pub(super) fn record(mirrors: usize) -> Record {
    let urls: Vec<_> = (0..mirrors).map(url).collect();
    Record::download(XferId(7), "file".to_owned(), &urls)
}

pub(super) fn status(code: u16) -> Failure {
    Failure::Status { code, retry_after: None }
}

pub(super) fn later(code: u16, secs: u64) -> Failure {
    Failure::Status { code, retry_after: Some(Delay::from_secs(secs)) }
}

pub(super) fn cut() -> Failure {
    Failure::Cut(Cut::Broken { detail: "reset".to_owned() })
}

pub(super) fn wrong_digest() -> Failure {
    Failure::Digest { algorithm: "sha-256", expected: "00".to_owned(), found: "11".to_owned() }
}

pub(super) fn disk_full() -> LocalFault {
    LocalFault::DiskFull { path: "file".to_owned(), detail: "1 MiB needed".to_owned() }
}

pub(super) fn holding(held: u64) -> Dossier {
    Dossier { part: Draft { held: Length(held), ..Draft::default() }, ..Dossier::default() }
}

/// The mirrors that were wished for, in order.
pub(super) fn started(actions: &[Action]) -> Vec<usize> {
    actions.iter().filter_map(|a| if let Action::Start { mirror, .. } = a { Some(*mirror) } else { None }).collect()
}

pub(super) fn overs(actions: &[Action]) -> usize {
    actions.iter().filter(|a| **a == Action::Over).count()
}

impl Bench {
    pub(super) fn new(mirrors: usize, rules: Rules) -> Self {
        Self::of(record(mirrors), rules, START)
    }

    pub(super) fn of(record: Record, rules: Rules, now: Now) -> Self {
        let held = record.dossier.part.held.0;
        Self { machine: PersFileXfer::from_record(record, rules, now), now, held, rng: StdRng::seed_from_u64(1) }
    }

    pub(super) fn record(&self) -> &Record {
        self.machine.record()
    }

    pub(super) fn feed(&mut self, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        self.machine.handle(event, &mut Cx { now: self.now, rng: &mut self.rng, out: &mut out });
        out
    }

    /// Both clocks go on.
    pub(super) fn pass(&mut self, delay: Delay) {
        self.now = Now { wall: self.now.wall + delay, mono: self.now.mono + delay };
    }

    pub(super) fn secs(&mut self, secs: u64) {
        self.pass(Delay::from_secs(secs));
    }

    /// When it wants to be woken.
    pub(super) fn wakes(&self) -> Option<Mono> {
        self.machine.wake_at()
    }

    /// To the moment it wants to be woken at, and wakes it.
    pub(super) fn wake(&mut self) -> Vec<Action> {
        let at = self.wakes().expect("it wants to be woken");
        self.pass(at.since(self.now.mono));
        self.feed(Event::Wake)
    }

    /// How long it wants to sleep.
    pub(super) fn sleeps(&self) -> Delay {
        self.wakes().expect("it wants to be woken").since(self.now.mono)
    }

    /// Bytes arrive in the running session.
    pub(super) fn arrive(&mut self, bytes: u64) {
        self.held += bytes;
        self.feed(Event::Progress { held: Length(self.held) });
    }

    pub(super) fn end(&mut self, end: End) -> Vec<Action> {
        let mut dossier = self.record().dossier.clone();
        dossier.part.held = Length(self.held);
        self.feed(Event::Ended(Box::new(Outcome { dossier, origin: None, end }), None))
    }

    pub(super) fn fails(&mut self, failure: Failure) -> Vec<Action> {
        self.end(End::Failed(failure))
    }

    /// The session that was wished for begins and fails at once.
    pub(super) fn begins_and_fails(&mut self, failure: Failure) -> Vec<Action> {
        self.feed(Event::Began);
        self.fails(failure)
    }

    pub(super) fn completes(&mut self) -> Vec<Action> {
        let mut dossier = self.record().dossier.clone();
        dossier.part.held = Length(self.held);
        dossier.part.total = Some(Length(self.held));
        let facts = Finished {
            at: self.now.wall,
            evidence: Evidence::Validator,
            size: Length(self.held),
            mtime_ns: 1,
            server_digest: None,
            placed: None,
            inode: 2,
        };
        let end = End::Complete { evidence: Evidence::Validator };
        self.feed(Event::Ended(Box::new(Outcome { dossier, origin: None, end }), Some(facts)))
    }

    /// The process ends and another takes up what was stored, after so long.
    pub(super) fn restart_after(&mut self, off: Delay) {
        let rules = Rules { ..self.machine.rules.clone() };
        let wall = self.now.wall + off;
        *self = Self::of(self.record().clone(), rules, Now { wall, mono: Mono::from_micros(77) });
    }

    pub(super) fn error_code(&self) -> Option<i32> {
        if let Status::Failed { code, .. } = &self.record().status { Some(*code) } else { None }
    }

    pub(super) fn message(&self) -> &str {
        if let Status::Failed { message, .. } = &self.record().status { message } else { "" }
    }
}

pub(super) fn start(mirror: usize) -> Action {
    Action::Start { mirror, freshness: Freshness::CacheAllowed }
}
