//! The witness: what must hold in every turn of every transfer, by accounts of its own.

use std::collections::HashMap;

use persxfer::core::file_xfer::End;
use persxfer::core::pers_xfer::record::{MirrorRecord, Record, Standing, Status};
use persxfer::core::pers_xfer::{Action, Event};
use persxfer::core::range::Length;
use persxfer::core::time::{Delay, Epoch, Mono, Now};
use persxfer::core::url::MirrorUrl;
use persxfer::core::verdict::RETRY_AFTER_CAP;

/// The shortest delay of every policy that worlds are lived with.
const SHORTEST: Delay = Delay::from_secs(1);

/// One turn, as seen from outside.
pub(crate) struct Turn<'a> {
    pub(crate) t: Delay,
    pub(crate) now: Now,
    pub(crate) event: &'a Event,
    pub(crate) before: &'a Before,
    pub(crate) after: &'a Record,
    pub(crate) wake: Option<Mono>,
    pub(crate) actions: &'a [Action],
}

/// What the record said before the turn, as far as it matters.
pub(crate) struct Before {
    sessions: u32,
    num_retries: u32,
    held: Length,
    confirmed: Length,
    mirrors: Vec<Trial>,
}

/// Where a mirror stood in the pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trial {
    Open,
    Tried,
    Refused,
    Held,
}

impl Before {
    pub(crate) fn of(record: &Record) -> Self {
        let trial = |m: &MirrorRecord| match (&m.standing, m.tried, m.not_before) {
            (Standing::Refused { .. }, _, _) => Trial::Refused,
            (_, true, _) => Trial::Tried,
            (_, _, Some(_)) => Trial::Held,
            _ => Trial::Open,
        };
        Self {
            sessions: record.sessions,
            num_retries: record.num_retries,
            held: record.dossier.part.held,
            confirmed: record.confirmed,
            mirrors: record.mirrors.iter().map(trial).collect(),
        }
    }
}

pub(crate) struct Witness {
    seed: u64,
    pub(crate) first_session: Option<Delay>,
    overs: u32,
    session_is_ending: bool,
    /// Before which true time a mirror must not be asked, by its server's word; and how that is stored.
    floors: HashMap<MirrorUrl, (Delay, Option<Epoch>)>,
    /// The same by the backoff of its host, in this process.
    closed: HashMap<MirrorUrl, Delay>,
    /// The clock was set since: stored floors may come out shorter.
    clock_was_set: bool,
    /// Before which true time no pass may begin.
    backoff_until: Delay,
    asked: Option<MirrorUrl>,
}

impl Witness {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            first_session: None,
            overs: 0,
            session_is_ending: false,
            floors: HashMap::new(),
            closed: HashMap::new(),
            clock_was_set: false,
            backoff_until: Delay::ZERO,
            asked: None,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.overs > 0
    }

    pub(crate) fn clock_was_set(&mut self) {
        self.clock_was_set = true;
    }

    /// What a save had not reached is not known any more; what it had is kept, but for clocks.
    pub(crate) fn restarted(&mut self, from: &Record, t: Delay) {
        let stored = |url: &MirrorUrl, at| from.mirrors.iter().any(|m| m.url == *url && m.not_before == at);
        let trust = !self.clock_was_set;
        self.floors.retain(|url, (_, at)| trust && stored(url, *at));
        self.clock_was_set = false;
        self.asked = None;
        // The failure was stored, and with the process the session has gone.
        self.overs += u32::from(self.session_is_ending && matches!(from.status, Status::Failed { .. }));
        self.session_is_ending = false;
        self.closed.clear();
        if !trust || from.next_request_time.is_none() {
            self.backoff_until = t;
        }
    }

    pub(crate) fn saw(&mut self, turn: &Turn<'_>) {
        self.hosts(turn);
        self.counts(turn);
        self.starts(turn);
        self.bytes(turn);
        self.ends(turn);
        self.wakes(turn);
    }

    /// What a machine that is over must be like.
    pub(crate) fn ended(&self, record: &Record, whole: bool) {
        let seed = self.seed;
        assert_eq!(self.overs, 1, "seed {seed}: over exactly once");
        match &record.status {
            Status::Done => assert!(whole, "seed {seed}: done without the right bytes"),
            Status::Failed { code: -182, .. } => {
                assert!(record.num_retries > 0, "seed {seed}: gave up without a failed pass")
            }
            Status::Failed { code: -224 | -119, message } => {
                assert!(record.mirrors.iter().all(|m| m.standing != Standing::Usable), "seed {seed}: {message}");
            }
            other => panic!("seed {seed}: ended as {other:?}"),
        }
    }

    fn hosts(&mut self, turn: &Turn<'_>) {
        if let (Event::HostClosed { until }, Some(asked)) = (turn.event, &self.asked) {
            let until = turn.t.saturating_add(until.since(turn.now.mono));
            self.closed.insert(asked.clone(), until);
        }
        if let Event::Retry = turn.event {
            self.closed.clear();
        }
    }

    /// A retry is counted by a failed pass and by nothing else: every usable mirror failed in it, or was held back.
    fn counts(&mut self, turn: &Turn<'_>) {
        let Turn { before, after, .. } = turn;
        let seed = self.seed;
        let begun = u32::from(matches!(turn.event, Event::Began));
        assert_eq!(after.sessions, before.sessions + begun, "seed {seed}: sessions");
        if begun > 0 {
            self.first_session.get_or_insert(turn.t);
        }
        if after.num_retries == before.num_retries {
            return;
        }
        assert_eq!(after.num_retries, before.num_retries + 1, "seed {seed}: retries");
        let Event::Ended(outcome, _) = turn.event else {
            // Or the moment came at which the mirrors left over in a pass were found to be held back, all of them.
            let tried = before.mirrors.contains(&Trial::Tried);
            return assert!(tried, "seed {seed}: a retry counted by {:?} without a failure", turn.event);
        };
        assert!(matches!(outcome.end, End::Failed(_)), "seed {seed}: a retry counted by {:?}", outcome.end);
        for (trial, mirror) in before.mirrors.iter().zip(&after.mirrors) {
            let asked = self.asked.as_ref() == Some(&mirror.url);
            let closed = self.closed.get(&mirror.url).is_some_and(|until| *until > turn.t);
            assert!(*trial != Trial::Open || asked || closed, "seed {seed}: {} was left out of a pass", mirror.url);
        }
        self.backoff_until = turn.t.saturating_add(SHORTEST);
    }

    /// No session before its time, none at a refused mirror, none while another runs or when it is over.
    fn starts(&mut self, turn: &Turn<'_>) {
        let seed = self.seed;
        for action in turn.actions {
            match action {
                Action::Start { mirror, .. } => {
                    let asked = &turn.after.mirrors[*mirror];
                    assert_eq!(asked.standing, Standing::Usable, "seed {seed}: asked a refused mirror");
                    assert_eq!(turn.after.status, Status::Pending, "seed {seed}: asked in vain");
                    let (floor, _) = self.floors.get(&asked.url).copied().unwrap_or_default();
                    assert!(turn.t >= floor, "seed {seed}: {} before its Retry-After", asked.url);
                    let freed = matches!(turn.event, Event::Retry | Event::Mirrors(_));
                    assert!(freed || turn.t >= self.backoff_until, "seed {seed}: before the backoff was over");
                    self.asked = Some(asked.url.clone());
                }
                Action::Failed { mirror, failure, .. } => {
                    let failed = &turn.after.mirrors[*mirror];
                    if let persxfer::core::failure::Failure::Status { retry_after: Some(asked), .. } = failure {
                        let floor = turn.t.saturating_add((*asked).min(RETRY_AFTER_CAP));
                        self.floors.insert(failed.url.clone(), (floor, failed.not_before));
                    }
                }
                _ => {}
            }
        }
        if matches!(turn.event, Event::Retry) {
            self.backoff_until = Delay::ZERO;
        }
        let starts = turn.actions.iter().filter(|a| matches!(a, Action::Start { .. })).count();
        assert!(starts <= 1, "seed {seed}: {starts} sessions at once");
    }

    /// What is held shrinks only when it is dropped as wrong.
    fn bytes(&self, turn: &Turn<'_>) {
        let dropped = turn.actions.contains(&Action::DropBytes);
        let (before, after) = (turn.before.held, turn.after.dossier.part.held);
        assert!(dropped || after >= before, "seed {}: {before} bytes became {after}", self.seed);
        assert!(dropped || turn.after.confirmed >= turn.before.confirmed, "seed {}: the mark sank", self.seed);
    }

    fn ends(&mut self, turn: &Turn<'_>) {
        let overs = turn.actions.iter().filter(|a| **a == Action::Over).count();
        self.overs += u32::try_from(overs).unwrap_or(u32::MAX);
        assert!(self.overs <= 1, "seed {}: over twice", self.seed);
        let failed = matches!(turn.after.status, Status::Failed { .. });
        // It says at once that it has failed, and is over when the session that it told to end has told what it held.
        self.session_is_ending |= failed && turn.actions.contains(&Action::Cancel);
        self.session_is_ending &= self.overs == 0;
        let ended = failed || turn.after.status == Status::Done;
        assert_eq!(
            ended,
            self.overs == 1 || self.session_is_ending,
            "seed {}: over and the status disagree",
            self.seed
        );
    }

    /// Awake means to do something: a moment that has come is never left standing.
    fn wakes(&self, turn: &Turn<'_>) {
        assert!(turn.wake.is_none_or(|at| at > turn.now.mono), "seed {}: wakes in a circle", self.seed);
        // What is stored is what is meant, whatever was done to the wall clock; only the window's end may come before it.
        if let (Some(at), Some(next)) = (turn.wake, turn.after.next_request_time.filter(|next| *next > turn.now.wall)) {
            let late = turn.now.wall_of(at).since(next);
            assert!(late < Delay::from_secs(3), "seed {}: {next} is stored, {late} later is meant", self.seed);
        }
    }
}
