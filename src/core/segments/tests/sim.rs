//! A world of mirrors in simulated time: it carries out what the planner wishes, and watches that every rule holds.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;

/// The driver breaks off what is silent for so long (microseconds).
const STALL: u64 = 10_000_000;

/// How a simulated mirror behaves. Times in milliseconds, rates in bytes per second.
#[derive(Clone, Debug)]
pub(super) struct Mirror {
    pub(super) origin: usize,
    pub(super) latency: u64,
    /// Of one connection.
    pub(super) rate: f64,
    /// Links beyond so many are refused.
    pub(super) most: Option<usize>,
    pub(super) retry_after: Option<u64>,
    /// Each body breaks off after so many bytes.
    pub(super) cut: Option<u64>,
    /// Each body ends in order after so many bytes.
    pub(super) short: Option<u64>,
    /// Links with these numbers (in the order opened at this mirror) fall silent after so many bytes.
    pub(super) silent: Option<(std::ops::Range<usize>, u64)>,
    /// Links with these numbers have this rate instead.
    pub(super) slow: Option<(std::ops::Range<usize>, f64)>,
    /// Its connections differ in rate by up to this part, up or down.
    pub(super) uneven: f64,
    pub(super) no_ranges: bool,
    pub(super) odd: bool,
    /// It dies then: open links are cut (or fall silent), new ones refused (or never answered).
    pub(super) dies: Option<(u64, Death)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    Reset,
    Silence,
}

impl Mirror {
    pub(super) fn new(origin: usize, latency: u64, rate: f64) -> Self {
        Self {
            origin,
            latency,
            rate,
            most: None,
            retry_after: None,
            cut: None,
            short: None,
            silent: None,
            slow: None,
            uneven: 0.0,
            no_ranges: false,
            odd: false,
            dies: None,
        }
    }

    fn is_dead(&self, now: u64) -> Option<Death> {
        self.dies.filter(|(at, _)| now >= *at * 1_000).map(|(_, death)| death)
    }
}

struct Conn {
    seat: usize,
    number: usize,
    /// The lowest place at its mirror that was free: what is uneven is the places.
    place: usize,
    start: u64,
    at: u64,
    end: u64,
    carry: f64,
    answers_at: u64,
    alive_at: u64,
    is_open: bool,
    stopped_at: Option<u64>,
    through: bool,
    refused: bool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Whole,
    Over,
    /// Neither within the time given.
    Running,
}

/// How the driver obeys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manners {
    /// A link that is stopped brings nothing more.
    Prompt,
    /// It goes on for a while, so that bytes come twice.
    Late,
}

impl Manners {
    fn delay(self) -> u64 {
        if self == Self::Late { 200_000 } else { 0 }
    }
}

pub(super) struct World {
    pub(super) planner: Segments,
    pub(super) mirrors: Vec<Mirror>,
    rules: Rules,
    total: u64,
    conns: BTreeMap<u32, Conn>,
    opened_at: Vec<usize>,
    rng: StdRng,
    /// Microseconds.
    pub(super) now: u64,
    pub(super) tick: u64,
    /// Bytes that came over ranged links, and over others.
    pub(super) ranged: u64,
    pub(super) through: u64,
    pub(super) opens: usize,
    pub(super) end: End,
    pub(super) manners: Manners,
    out: Vec<Action>,
}

impl World {
    pub(super) fn new(total: u64, held: RangeSet, mirrors: Vec<Mirror>, rules: Rules, seed: u64) -> Self {
        let seats = mirrors.iter().enumerate().map(|(at, mirror)| seat(at, mirror.origin)).collect();
        Self {
            planner: Segments::new(Length(total), held, seats, rules),
            opened_at: vec![0; mirrors.len()],
            mirrors,
            rules,
            total,
            conns: BTreeMap::new(),
            rng: StdRng::seed_from_u64(seed),
            now: 0,
            tick: 2_000,
            ranged: 0,
            through: 0,
            opens: 0,
            end: End::Running,
            manners: Manners::Prompt,
            out: Vec::new(),
        }
    }

    /// The first request is open, from the first missing byte to the end of the file.
    pub(super) fn adopt(&mut self, seat: usize) {
        let through = self.mirrors[seat].no_ranges;
        let at = if through { 0 } else { self.planner.held().head().0 };
        let reach = if through { Reach::Through } else { Reach::Ranged };
        let id = self.planner.adopt(seat, Offset(at), Offset(self.total), reach, self.mono());
        self.connect(id, seat, at, self.total, through);
        let conn = self.conns.get_mut(&id.0).expect("just made");
        (conn.answers_at, conn.is_open) = (self.now, true);
    }

    pub(super) fn run(&mut self, until_millis: u64) -> End {
        while self.end == End::Running && self.now < until_millis * 1_000 {
            self.step();
        }
        self.end
    }

    pub(super) fn millis(&self) -> f64 {
        self.now as f64 / 1_000.0
    }

    fn mono(&self) -> Mono {
        Mono::from_micros(self.now)
    }

    pub(super) fn step(&mut self) {
        if self.planner.wake_at().is_some_and(|at| at <= self.mono()) {
            self.tell(Event::Wake);
            let again = self.planner.wake_at();
            assert!(again.is_none_or(|at| at > self.mono()), "it wants to be woken at once again: {again:?}");
        }
        self.now += self.tick;
        let links: Vec<u32> = self.conns.keys().copied().collect();
        for link in links {
            if self.end == End::Running {
                self.advance(link);
            }
        }
    }

    pub(super) fn tell(&mut self, event: Event) {
        let mono = self.mono();
        let mut out = std::mem::take(&mut self.out);
        self.planner.handle(event, &mut Cx { now: at(mono), rng: &mut self.rng, out: &mut out });
        for action in out.drain(..) {
            self.carry_out(action);
        }
        self.out = out;
        if !matches!(event, Event::Arrived(..)) {
            self.watch();
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Open { link, seat, range, reach } => {
                assert!(!range.is_empty(), "an empty range");
                let taken = self.planner.held().iter().any(|run| run.start < range.end && range.start < run.end);
                assert!(
                    reach == Reach::Through || !taken || self.manners == Manners::Late,
                    "{range:?} is held in part"
                );
                self.opens += 1;
                self.connect(link, seat, range.start.0, range.end.0, reach == Reach::Through);
            }
            Action::Limit { link, end } | Action::Extend { link, end } => {
                let conn = self.conns.get_mut(&link.0).expect("an open link");
                assert!(!conn.through && conn.at <= end.0);
                conn.end = end.0;
            }
            Action::Stop { link } => {
                let conn = self.conns.get_mut(&link.0).expect("an open link");
                assert!(conn.stopped_at.is_none(), "stopped twice");
                conn.stopped_at = Some(self.now);
            }
            Action::Whole => {
                assert_eq!(self.planner.held().length().0, self.total);
                self.end = End::Whole;
            }
            Action::Over => {
                assert!(self.conns.is_empty());
                self.end = End::Over;
            }
        }
    }

    fn connect(&mut self, link: LinkId, seat: usize, start: u64, end: u64, through: bool) {
        let origin = self.mirrors[seat].origin;
        let beside = self.conns.values().filter(|conn| self.mirrors[conn.seat].origin == origin).count();
        let busy = self.conns.values().filter(|conn| conn.seat == seat && !conn.refused).count();
        assert!(self.conns.len() < self.rules.connections, "too many links");
        assert!(beside < self.rules.per_origin, "too many links to one origin");
        let is_free = |place: &usize| self.conns.values().all(|conn| conn.seat != seat || conn.place != *place);
        let place = (0..).find(is_free).expect("there are fewer links");
        let mirror = &self.mirrors[seat];
        let number = self.opened_at[seat];
        self.opened_at[seat] += 1;
        let conn = Conn {
            seat,
            number,
            place,
            start,
            at: start,
            end,
            carry: 0.0,
            answers_at: self.now + mirror.latency * 1_000,
            alive_at: self.now,
            is_open: false,
            stopped_at: None,
            through,
            refused: mirror.most.is_some_and(|most| busy >= most),
        };
        self.conns.insert(link.0, conn);
    }

    /// What happens to one link within a tick.
    fn advance(&mut self, link: u32) {
        let Some(conn) = self.conns.get(&link) else { return };
        let mirror = &self.mirrors[conn.seat];
        let dead = mirror.is_dead(self.now);
        let ending = match () {
            () if conn.stopped_at.is_some_and(|at| self.now > at + self.manners.delay()) => Some(Ending::Stopped),
            () if conn.stopped_at.is_some() && self.manners == Manners::Prompt => return,
            () if self.now - conn.alive_at > STALL => Some(Ending::Cut),
            () if conn.at >= conn.end => Some(Ending::Served),
            () if dead == Some(Death::Silence) => return,
            () if self.now < conn.answers_at => return,
            () if dead == Some(Death::Reset) && conn.is_open => Some(Ending::Cut),
            () if dead == Some(Death::Reset) => Some(Ending::Refused { retry_after: None }),
            () if conn.refused => Some(Ending::Refused { retry_after: mirror.retry_after.map(Delay::from_millis) }),
            () if mirror.odd => Some(Ending::Odd),
            () if mirror.no_ranges && !conn.through => Some(Ending::RangesIgnored),
            () if mirror.cut.is_some_and(|cut| conn.at - conn.start >= cut) => Some(Ending::Cut),
            () if mirror.short.is_some_and(|short| conn.at - conn.start >= short) => Some(Ending::Served),
            () => None,
        };
        if let Some(ending) = ending {
            self.conns.remove(&link);
            return self.tell(Event::Ended(LinkId(link), ending));
        }
        if !conn.is_open {
            let conn = self.conns.get_mut(&link).expect("it is there");
            (conn.is_open, conn.alive_at) = (true, self.now);
            return self.tell(Event::Opened(LinkId(link)));
        }
        self.flow(link);
    }

    fn flow(&mut self, link: u32) {
        let conn = self.conns.get_mut(&link).expect("it is there");
        let mirror = &self.mirrors[conn.seat];
        let slow = mirror.slow.as_ref().filter(|(which, _)| which.contains(&conn.number));
        let spread = 1.0 + mirror.uneven * ((conn.place * 7 % 16) as f64 / 7.5 - 1.0);
        let rate = slow.map_or(mirror.rate * spread, |(_, rate)| *rate);
        let silent = mirror.silent.as_ref().filter(|(which, _)| which.contains(&conn.number)).map(|(_, after)| *after);
        let body = [mirror.cut, mirror.short, silent].into_iter().flatten().min();
        conn.carry += rate * self.tick as f64 / 1e6;
        let room = body.map_or(u64::MAX, |body| conn.start + body).min(conn.end) - conn.at;
        let bytes = (conn.carry as u64).min(room);
        conn.carry -= conn.carry.floor();
        if bytes > 0 {
            let passed = range(conn.at, conn.at + bytes);
            conn.at += bytes;
            conn.alive_at = self.now;
            if conn.through {
                self.through += bytes;
            } else {
                self.ranged += bytes;
                let missing = !self.planner.held().iter().any(|run| run.start < passed.end && passed.start < run.end);
                assert!(missing || self.manners == Manners::Late, "{passed:?} comes twice");
            }
            self.tell(Event::Arrived(LinkId(link), Length(bytes)));
        }
    }

    /// No byte belongs to two links; none that is held belongs to a ranged one.
    fn watch(&self) {
        let mut claims: Vec<ByteRange> = self.planner.links.iter().map(|link| link.claim()).collect();
        claims.retain(|claim| !claim.is_empty());
        claims.sort_by_key(|claim| claim.start);
        assert!(claims.windows(2).all(|two| two[0].end <= two[1].start), "claims overlap: {claims:?}");
        for link in self.planner.links.iter().filter(|link| link.reach == Reach::Ranged && link.rest() > 0.0) {
            let claim = link.claim();
            let held = self.planner.held().iter().any(|run| run.start < claim.end && claim.start < run.end);
            assert!(!held || self.manners == Manners::Late, "{claim:?} is held");
        }
    }
}
