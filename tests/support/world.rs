//! A world around one transfer: mirrors with characters, a network told by outcomes, clocks that may be set, a disk that
//! may be a save behind, people who interfere. All of it from one seed, at some 100,000 events a second.
//!
//! [`Witness`] watches every turn and panics, with the seed, where a promise of design section 4 is broken.

use std::collections::VecDeque;

use persxfer::core::backoff::Policy;
use persxfer::core::failure::LocalFault;
use persxfer::core::file_xfer::{End, Outcome};
use persxfer::core::machine::{Cx, Machine};
use persxfer::core::pers_xfer::record::{Record, XferId};
use persxfer::core::pers_xfer::{Action, Event, OnLocalFault, PersFileXfer, Rules, Urgency, View};
use persxfer::core::range::Length;
use persxfer::core::time::{Delay, Epoch, Mono, Now};
use persxfer::core::url::MirrorUrl;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

#[path = "characters.rs"]
mod characters;
#[path = "witness.rs"]
mod witness;
pub(crate) use characters::Character;
use witness::{Before, Turn, Witness};

const DAWN: i64 = 1_767_218_400_000_000;
const MANY: u32 = 300_000;

/// What else happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    /// Nothing.
    Calm,
    /// Crashes, days off, clocks set, hosts closed, full disks, people.
    Rough,
}

/// How a transfer ended, and when, by true time.
#[derive(Clone, Debug)]
pub(crate) struct Story {
    pub(crate) record: Record,
    pub(crate) first_session: Delay,
    pub(crate) over: Delay,
    /// In so much time, while a process ran, something could be tried.
    pub(crate) counted: Delay,
    pub(crate) restarts: u32,
}

enum Step {
    Begins,
    Closed,
    Trouble,
    Bytes(u64),
    Ends(End),
}

struct Live {
    mirror: usize,
    begun: bool,
    steps: VecDeque<(Delay, Step)>,
}

/// One transfer's world.
pub(crate) struct World {
    seed: u64,
    rng: StdRng,
    rules: Rules,
    weather: Weather,
    machine: PersFileXfer,
    disk: Record,
    /// Time as it truly passes.
    t: Delay,
    counted: Delay,
    /// When this process began.
    boot: Delay,
    /// By how much the wall clock is wrong, in microseconds.
    skew: i64,
    characters: Vec<Character>,
    size: u64,
    part: u64,
    tainted: bool,
    live: Option<Live>,
    next_trouble: Delay,
    promised: Option<(Delay, Event)>,
    restarts: u32,
    witness: Witness,
}

/// Patience as of a service that nobody watches, with a policy that the seed chooses.
pub(crate) fn rules(seed: u64) -> Rules {
    let names = ["boinc", "boinc-7", "tor", "ladder", "ranged"];
    let policy = Policy::parse(names[(seed % 5) as usize]).expect("a policy");
    Rules { policy, on_local_fault: OnLocalFault::TryAgain, ..Rules::default() }
}

pub(crate) fn url(n: usize) -> MirrorUrl {
    MirrorUrl::parse(&format!("http://m{n}.example/file")).expect("a URL")
}

impl World {
    pub(crate) fn new(seed: u64, characters: Vec<Character>, rules: Rules, weather: Weather) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let urls: Vec<_> = (0..characters.len()).map(url).collect();
        let record = Record::download(XferId(seed), "file".to_owned(), &urls);
        let size = rng.random_range(1..16 << 20);
        let boot = Delay::ZERO;
        let machine = PersFileXfer::from_record(record.clone(), rules.clone(), now_at(boot, boot, 0));
        let mut world = Self {
            seed,
            rng,
            rules,
            weather,
            machine,
            disk: record,
            t: boot,
            counted: Delay::ZERO,
            boot,
            skew: 0,
            characters,
            size,
            part: 0,
            tainted: false,
            live: None,
            next_trouble: Delay::MAX,
            promised: None,
            restarts: 0,
            witness: Witness::new(seed),
        };
        world.plan_trouble();
        world
    }

    /// Lives the transfer to its end.
    pub(crate) fn live(mut self) -> Story {
        for _ in 0..MANY {
            if self.witness.is_over() {
                return self.told();
            }
            self.turn();
        }
        panic!("seed {}: no end after {MANY} events: {:?}", self.seed, self.machine.view());
    }

    fn told(mut self) -> Story {
        // What comes late changes nothing.
        for event in [Event::Wake, Event::Suspend, Event::Resume, Event::Abort, Event::Unpaused] {
            self.feed(event);
        }
        let whole = self.part == self.size && !self.tainted;
        self.witness.ended(self.machine.record(), whole);
        let first_session = self.witness.first_session.unwrap_or_default();
        Story {
            record: self.machine.record().clone(),
            first_session,
            over: self.t,
            counted: self.counted,
            restarts: self.restarts,
        }
    }

    fn now(&self) -> Now {
        now_at(self.t, self.boot, self.skew)
    }

    fn turn(&mut self) {
        let wake = self.machine.wake_at().map(|at| self.boot.saturating_add(at.since(Mono::ZERO)));
        let step = self.live.as_ref().and_then(|live| live.steps.front()).map(|(at, _)| *at);
        let promised = self.promised.as_ref().map(|(at, _)| *at);
        let first = [wake, step, promised, Some(self.next_trouble)].into_iter().flatten().min().unwrap_or(Delay::MAX);
        assert!(first < Delay::MAX, "seed {}: it waits for nothing: {:?}", self.seed, self.machine.view());
        self.pass_to(self.t.max(first));
        if step == Some(first) {
            self.step();
        } else if promised == Some(first) {
            let event = self.promised.take().map_or(Event::Wake, |(_, event)| event);
            self.feed(event);
        } else if self.next_trouble == first {
            self.trouble();
        } else {
            self.feed(Event::Wake);
        }
    }

    fn pass_to(&mut self, t: Delay) {
        let idle = matches!(
            self.machine.view(),
            View::Slot { .. } | View::Local { .. } | View::Suspended | View::Paused | View::Ready
        );
        if !idle && self.witness.first_session.is_some() {
            self.counted = self.counted.saturating_add(t.saturating_sub(self.t));
        }
        self.t = t;
    }

    fn feed(&mut self, event: Event) {
        let before = Before::of(self.machine.record());
        let mut actions = Vec::new();
        let now = self.now();
        self.machine.handle(event.clone(), &mut Cx { now, rng: &mut self.rng, out: &mut actions });
        let after = self.machine.record();
        let wake = self.machine.wake_at();
        self.witness.saw(&Turn { t: self.t, now, event: &event, before: &before, after, wake, actions: &actions });
        for action in actions {
            self.carry_out(action);
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Start { mirror, .. } => self.plan_session(mirror),
            Action::Cancel => self.cancel(),
            Action::DropBytes => (self.part, self.tainted) = (0, false),
            Action::Save(urgency) if self.reaches_the_disk(urgency) => self.disk = self.machine.record().clone(),
            Action::Save(_) | Action::Failed { .. } | Action::Over => {}
            Action::Rest(fault) => panic!("seed {}: it rests: {fault:?}", self.seed),
        }
    }

    /// In calm weather nobody reads the disk.
    fn reaches_the_disk(&mut self, urgency: Urgency) -> bool {
        self.weather == Weather::Rough && (urgency == Urgency::Now || self.rng.random_bool(0.5))
    }

    fn cancel(&mut self) {
        match &mut self.live {
            Some(live) if live.begun => {
                let at = self.t.saturating_add(Delay::from_millis(500));
                live.steps = VecDeque::from([(at, Step::Ends(End::Cancelled))]);
            }
            _ => self.live = None,
        }
    }

    fn step(&mut self) {
        let Some((_, step)) = self.live.as_mut().and_then(|live| live.steps.pop_front()) else { return };
        match step {
            Step::Begins => {
                if let Some(live) = &mut self.live {
                    live.begun = true;
                }
                self.feed(Event::Began);
            }
            Step::Closed => {
                self.live = None;
                let closed = Delay::from_secs(self.rng.random_range(1..10_000));
                let until = self.now().mono + closed;
                self.feed(Event::HostClosed { until });
            }
            Step::Trouble => {
                self.live = None;
                self.feed(Event::Local(LocalFault::DiskFull { path: "file".to_owned(), detail: String::new() }));
            }
            Step::Bytes(bytes) => {
                self.part = (self.part + bytes).min(self.size);
                let liar = self.live.as_ref().is_some_and(|l| self.character(l.mirror) == Character::Lying);
                self.tainted |= liar && bytes > 0;
                self.feed(Event::Progress { held: Length(self.part) });
            }
            Step::Ends(end) => self.session_ends(end),
        }
    }

    fn session_ends(&mut self, end: End) {
        self.live = None;
        let mut dossier = self.machine.record().dossier.clone();
        dossier.part.held = Length(self.part);
        dossier.part.total = (self.part > 0).then_some(Length(self.size));
        let end = match end {
            End::Complete { .. } if self.tainted => End::Failed(characters::wrong_digest()),
            end => end,
        };
        self.feed(Event::Ended(Box::new(Outcome { dossier, origin: None, end }), None));
    }

    fn character(&self, mirror: usize) -> Character {
        let known = &self.machine.record().mirrors[mirror].url;
        let n = (0..self.characters.len()).find(|n| url(*n) == *known);
        n.map_or(Character::Dead, |n| self.characters[n])
    }

    fn plan_session(&mut self, mirror: usize) {
        let mut steps = VecDeque::new();
        // In calm weather there is a slot at once: time without one is not counted.
        let slot = if self.weather == Weather::Calm { 0 } else { self.rng.random_range(0..3_000_000) };
        let mut at = self.t.saturating_add(Delay::from_micros(slot));
        if self.weather == Weather::Rough && self.rng.random_bool(0.02) {
            steps.push_back((at, if self.rng.random_bool(0.5) { Step::Closed } else { Step::Trouble }));
        } else {
            steps.push_back((at, Step::Begins));
            let (gain, end) = self.character(mirror).session(self.t, self.size - self.part, &mut self.rng);
            let mut left = gain;
            while left > 0 {
                at = at.saturating_add(Delay::from_millis(self.rng.random_range(100..20_000)));
                let some = self.rng.random_range(1..=1 << 20).min(left);
                steps.push_back((at, Step::Bytes(some)));
                left -= some;
            }
            at = at.saturating_add(Delay::from_micros(self.rng.random_range(1_000..40_000_000)));
            steps.push_back((at, Step::Ends(end)));
        }
        self.live = Some(Live { mirror, begun: false, steps });
    }

    fn plan_trouble(&mut self) {
        if self.weather == Weather::Rough {
            let gap = Delay::from_secs(self.rng.random_range(60..200_000));
            self.next_trouble = self.t.saturating_add(gap);
        }
    }

    fn trouble(&mut self) {
        self.plan_trouble();
        let in_a_while = self.t.saturating_add(Delay::from_secs(self.rng.random_range(1..300_000)));
        match self.rng.random_range(0..10) {
            0..3 => self.restart(self.disk.clone()),
            3..5 => self.restart(self.machine.record().clone()),
            5..7 => self.set_clock(),
            7 if self.promised.is_none() => {
                self.feed(Event::Suspend);
                self.promised = Some((in_a_while, Event::Resume));
            }
            8 if self.promised.is_none() => {
                self.feed(Event::Paused);
                self.promised = Some((in_a_while, Event::Unpaused));
            }
            _ => self.feed(Event::Retry),
        }
    }

    /// The process ends, in a crash or well, and another begins, perhaps after days.
    fn restart(&mut self, record: Record) {
        self.live = None;
        self.restarts += 1;
        let off = if self.rng.random_bool(0.5) { 10 } else { 900_000 };
        self.t = self.t.saturating_add(Delay::from_secs(self.rng.random_range(0..off)));
        self.boot = self.t;
        if self.rng.random_bool(0.1) {
            self.set_clock();
        }
        // A pause ends with the process; a suspension does not.
        self.promised.take_if(|(_, event)| matches!(event, Event::Unpaused));
        self.witness.restarted(&record, self.t);
        self.machine = PersFileXfer::from_record(record, self.rules.clone(), self.now());
        self.disk = self.machine.record().clone();
        if self.disk.status == persxfer::core::pers_xfer::record::Status::Suspended && self.promised.is_none() {
            self.promised = Some((self.t.saturating_add(Delay::from_hours(1)), Event::Resume));
        }
        self.next_trouble = self.next_trouble.max(self.t);
    }

    fn set_clock(&mut self) {
        let reach = if self.rng.random_bool(0.5) { 7_200 } else { 86_400 * 400 };
        self.skew += self.rng.random_range(-reach..reach) * 1_000_000;
        self.witness.clock_was_set();
    }
}

fn now_at(t: Delay, boot: Delay, skew: i64) -> Now {
    let wall = Epoch::from_micros(DAWN + skew) + t;
    Now { wall, mono: Mono::ZERO + t.saturating_sub(boot) }
}
