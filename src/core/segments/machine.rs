//! The machine: what happens to links, and which are opened next.

use std::cmp::Ordering;

use crate::core::machine::{Cx, Machine};
use crate::core::range::{ByteRange, Length, Offset, RangeSet};
use crate::core::segments::link::{Example, Link, Phase};
use crate::core::segments::roster::Roster;
use crate::core::segments::work::{Crowd, Job};
use crate::core::segments::{Action, Event, Learned, LinkId, Reach, Rules, Seat};
use crate::core::time::{Delay, Mono};

/// While a link more could be opened, but has nothing to do, the others are looked at so often.
const LOOK: Delay = Delay::from_millis(100);
/// Where all places are taken and a mirror waits for one, so often.
const SELDOM: Delay = Delay::from_secs(1);

/// The planner of one download: see the folder's page.
#[derive(Clone, Debug)]
pub struct Segments {
    pub(super) total: Length,
    pub(super) held: RangeSet,
    pub(super) rules: Rules,
    pub(super) roster: Roster,
    pub(super) links: Vec<Link>,
    pub(super) stage: Stage,
    next_link: u32,
    wake: Option<Mono>,
}

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Bytes are missing.
    Fetching,
    /// None are, and that was said.
    Whole,
    /// It has given up.
    Over,
}

type Context<'c, 'a> = &'c mut Cx<'a, Action>;

impl Segments {
    /// A file of this length, of which so much is held. Nothing is opened before the first event.
    pub fn new(total: Length, held: RangeSet, seats: Vec<Seat>, rules: Rules) -> Self {
        let rules = Rules { connections: rules.connections.max(1), per_origin: rules.per_origin.max(1), ..rules };
        Self {
            total,
            held,
            rules,
            roster: Roster::new(seats),
            links: Vec::new(),
            stage: Stage::Fetching,
            next_link: 0,
            wake: Some(Mono::ZERO),
        }
    }

    /// A link that is open already: it reads from `at` on and could go on to `end`. If `at` is held (a joint is being
    /// compared), its bytes are counted as they pass; at the next island behind that it is made to end.
    pub fn adopt(&mut self, seat: usize, at: Offset, end: Offset, reach: Reach, now: Mono) -> LinkId {
        let range = ByteRange::new(at, end.min(self.total.as_end()));
        let gap = self.held.gaps(self.total).find(|gap| gap.end > at).unwrap_or(ByteRange::new(range.end, range.end));
        let id = self.add(seat, range, reach, now);
        if let Some(link) = self.links.last_mut() {
            link.open(now);
            link.told = Some(range.end);
            (link.claims_from, link.end) = (gap.start, gap.end.min(range.end));
        }
        self.wake = Some(now);
        id
    }

    /// The bytes that are held.
    pub const fn held(&self) -> &RangeSet {
        &self.held
    }

    /// What the session showed, origin by origin.
    pub fn learned(&self) -> impl Iterator<Item = Learned> + '_ {
        self.roster.learned()
    }

    pub(super) fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.id == id)
    }

    fn add(&mut self, seat: usize, range: ByteRange, reach: Reach, now: Mono) -> LinkId {
        let id = LinkId(self.next_link);
        self.next_link += 1;
        self.links.push(Link::new(id, seat, range, reach, now));
        id
    }

    fn opened(&mut self, id: LinkId, now: Mono) {
        let Some(link) = self.link_mut(id) else { return };
        if link.phase == Phase::Opening {
            let (after, reach, seat) = (now.since(link.asked), link.reach, link.seat);
            link.open(now);
            self.roster.of_mut(seat).answered(after, reach);
        }
    }

    fn arrived(&mut self, id: LinkId, bytes: Length, cx: Context<'_, '_>) {
        let (now, end_of_file, before) = (cx.now.mono, self.total.as_end(), self.held.length());
        self.opened(id, now);
        let Some(link) = self.links.iter_mut().find(|link| link.id == id) else { return };
        let passed = ByteRange::new(link.at, (link.at + bytes).min(end_of_file));
        self.held.insert(passed);
        let gained = self.held.length().saturating_sub(before);
        link.at = passed.end.max(link.at);
        link.last = now;
        link.inherited = 0;
        link.gained = link.gained + gained;
        link.meter.add(bytes, now);
        let (seat, reach) = (link.seat, link.reach);
        self.roster.of_mut(seat).flowed(now);
        if gained > Length::ZERO {
            self.roster.gained(seat);
        }
        if reach == Reach::Through {
            self.overtake(id, passed, cx);
        }
        if self.is_whole() {
            self.conclude(cx);
        }
    }

    /// A link that reads through has caught up with others: it is the faster one, and goes on with their ranges.
    fn overtake(&mut self, id: LinkId, passed: ByteRange, cx: Context<'_, '_>) {
        let touched = |link: &&mut Link| {
            let claim = link.claim();
            link.id != id && !claim.is_empty() && claim.start < passed.end && claim.end > passed.start
        };
        let mut end = passed.end;
        for link in self.links.iter_mut().filter(touched) {
            end = end.max(link.end);
            stop(link, cx.out);
        }
        if let Some(link) = self.link_mut(id).filter(|link| end > link.end) {
            link.end = end;
        }
    }

    fn lost(&mut self, range: ByteRange, blamed: Option<usize>, cx: Context<'_, '_>) {
        self.held.remove(range);
        if let Some(seat) = blamed {
            self.roster.blame(seat);
        }
        if self.stage == Stage::Whole && !self.is_whole() {
            self.stage = Stage::Fetching;
        }
        self.plan(None, cx);
    }

    fn is_whole(&self) -> bool {
        self.held.first_gap(self.total).is_none()
    }

    /// Opens what may be opened and helps. `reuse` is the seat of a link that has just served well: its connection is
    /// open, and idle.
    pub(super) fn plan(&mut self, reuse: Option<usize>, cx: Context<'_, '_>) {
        if self.stage == Stage::Fetching && self.is_whole() {
            self.conclude(cx);
        } else if self.stage == Stage::Fetching {
            self.read_on(cx);
            let mut reuse = reuse;
            while let Some((seat, job)) = self.next_job(reuse.take(), cx.now.mono) {
                self.begin(seat, job, cx);
            }
            self.make_room(cx);
            self.extend();
            self.conclude(cx);
            self.tell(cx.out);
        }
        self.wake = self.next_wake(cx.now.mono);
    }

    /// Links that read through go on into the gap before them; one with nothing but held bytes before it is of no use.
    fn read_on(&mut self, cx: Context<'_, '_>) {
        let gaps = self.gaps();
        let missing_beyond = |at| self.held.gaps(self.total).any(|gap| gap.end > at);
        for link in &mut self.links {
            if link.reach != Reach::Through || link.phase == Phase::Stopping {
                continue;
            }
            let at = link.end.max(link.at);
            if let Some(gap) = gaps.iter().find(|gap| gap.start <= at && at < gap.end) {
                link.end = gap.end;
            } else if link.at < self.total.as_end() && !missing_beyond(link.at) {
                stop(link, cx.out);
            }
        }
    }

    /// The next link to open: the best seat that has something to do, as one of all that may be opened now. Where
    /// their shares would be too small, as if it were the only one.
    fn next_job(&self, reuse: Option<usize>, now: Mono) -> Option<(usize, Job)> {
        let seats = self.candidates(reuse, now);
        let places = self.places(&seats);
        let best = |crowd: Crowd| seats.iter().find_map(|seat| Some((*seat, self.job_for(*seat, crowd, now)?)));
        match places[..] {
            [] => None,
            [_] => best(Crowd::Alone),
            [..] => {
                let rate = places.iter().map(|seat| self.expected_rate(*seat, now)).sum();
                best(Crowd::Of(rate)).or_else(|| best(Crowd::Alone))
            }
        }
    }

    /// The seats at which links may be opened, each as often as it may.
    fn places(&self, seats: &[usize]) -> Vec<usize> {
        let free = self.rules.connections.saturating_sub(self.links.len());
        let is_first = |seat: &&usize| {
            seats.iter().find(|first| self.roster.origin(**first) == self.roster.origin(**seat)) == Some(*seat)
        };
        let each = seats.iter().filter(is_first).flat_map(|seat| std::iter::repeat_n(*seat, self.free_at(*seat)));
        each.take(free).collect()
    }

    /// Where all places are taken, a link that is much too slow makes room for a seat whose origin has none.
    fn make_room(&mut self, cx: Context<'_, '_>) {
        let now = cx.now.mono;
        let victim = self.challenger(now).and_then(|seat| self.outpaced_by(seat, now));
        if let Some(link) = victim.and_then(|victim| self.link_mut(victim)) {
            let seat = link.seat;
            stop(link, cx.out);
            self.roster.rest(seat, now);
        }
    }

    /// The best seat without a link that would be asked if there were a place.
    fn challenger(&self, now: Mono) -> Option<usize> {
        let is_settling = self.links.iter().any(|link| link.phase == Phase::Stopping);
        if self.links.len() < self.rules.connections || is_settling {
            return None;
        }
        self.candidates(None, now).into_iter().find(|seat| self.links_of(*seat).next().is_none())
    }

    /// How many links more the origin of a seat may have.
    fn free_at(&self, seat: usize) -> usize {
        self.roster.of(seat).bears(self.rules.per_origin).saturating_sub(self.links_of(seat).count())
    }

    /// The seats that may be asked now for a range, best first.
    fn candidates(&self, reuse: Option<usize>, now: Mono) -> Vec<usize> {
        let reused = |seat: usize| reuse == Some(seat) && self.roster.may_be_reused(seat, now);
        let ready = |seat: usize| reused(seat) || self.roster.ready_at(seat).is_some_and(|at| at <= now);
        let mut seats: Vec<usize> = (0..self.roster.len())
            .filter(|seat| ready(*seat) && self.free_at(*seat) > 0)
            .filter(|seat| self.roster.is_ranged(*seat) && !self.roster.is_outdone(*seat, now))
            .collect();
        seats.sort_by_cached_key(|seat| if reused(*seat) { (0, 0, 0) } else { self.rank(*seat, now) });
        seats
    }

    /// Less is better: origins without a link first; of these, once something is under way, first
    /// those of which nothing is known, so that they get their chance; then by what each link would bring.
    fn rank(&self, seat: usize, now: Mono) -> (u8, u8, u64) {
        let links = self.links_of(seat).count();
        let begun = !self.links.is_empty() || self.roster.has_measured();
        let chance = links == 0 && begun && !self.is_rated(seat, now);
        let each = self.expected_rate(seat, now) / (1 + links) as f64;
        // A float-to-integer cast saturates.
        (if links == 0 { 1 } else { 2 }, u8::from(!chance), u64::MAX - each as u64)
    }

    fn begin(&mut self, seat: usize, job: Job, cx: Context<'_, '_>) {
        let now = cx.now.mono;
        let (range, inherited) = match job {
            Job::Gap(range) => (range, 0),
            Job::Part { victim, from } => (self.cut_off(victim, from), 0),
            Job::All { victim } => self.take_all(victim, cx),
        };
        let link = self.add(seat, range, Reach::Ranged, now);
        if let Some(link) = self.link_mut(link) {
            link.inherited = inherited;
        }
    }

    /// Takes the end of a link's range from it.
    fn cut_off(&mut self, victim: LinkId, from: Offset) -> ByteRange {
        let Some(link) = self.link_mut(victim) else { return ByteRange::new(from, from) };
        let range = ByteRange::new(from, link.end);
        link.end = from;
        range
    }

    /// Takes everything from a link; how often that was done to its range, without a byte between.
    fn take_all(&mut self, victim: LinkId, cx: Context<'_, '_>) -> (ByteRange, u32) {
        let now = cx.now.mono;
        let Some(at) = self.links.iter().position(|link| link.id == victim) else { return Default::default() };
        let (seat, asked) = (self.links[at].seat, self.links[at].asked);
        let silent = !self.links[at].flows(now);
        let others = self.links_of(seat).filter(|link| link.id != victim && link.flows(now)).count();
        let link = &mut self.links[at];
        let (range, inherited) = (link.claim(), link.inherited);
        if silent || others > 0 {
            link.example = Example::Odd;
        }
        let nothing_came = link.gained == Length::ZERO;
        stop(link, cx.out);
        if !silent {
            self.roster.rest(seat, now);
            return (range, 0);
        }
        if nothing_came && others > 0 {
            self.roster.of_mut(seat).step_down(others);
        }
        self.roster.failed(seat, asked, now, cx.rng);
        (range, inherited + 1)
    }

    /// Gaps that nobody can take now, behind links that were limited: these may go on.
    fn extend(&mut self) {
        for gap in self.gaps() {
            let fits = |link: &&mut Link| {
                link.reach == Reach::Ranged && link.end == gap.start && link.asked_end > link.end && link.rest() > 0.0
            };
            if let Some(link) = self.links.iter_mut().find(fits) {
                link.end = gap.end.min(link.asked_end);
            }
        }
    }

    /// Tells what this turn made of the ends of links, and which are new.
    fn tell(&mut self, out: &mut Vec<Action>) {
        let live = |link: &&mut Link| link.phase != Phase::Stopping;
        for link in self.links.iter_mut().filter(live).filter(|link| link.reach == Reach::Ranged) {
            let (id, end) = (link.id, link.end);
            match link.told.map(|told| end.cmp(&told)) {
                Some(Ordering::Less) => out.push(Action::Limit { link: id, end }),
                Some(Ordering::Greater) => out.push(Action::Extend { link: id, end }),
                Some(Ordering::Equal) | None => continue,
            }
            link.told = Some(end);
        }
        for link in self.links.iter_mut().filter(|link| link.told.is_none()) {
            if link.reach == Reach::Ranged {
                link.asked_end = link.end;
            }
            link.told = Some(link.asked_end);
            let range = ByteRange::new(link.at, link.asked_end);
            out.push(Action::Open { link: link.id, seat: link.seat, range, reach: link.reach });
        }
    }

    /// Says when it is whole, or over; where ranges are of no help, reads the whole file through.
    fn conclude(&mut self, cx: Context<'_, '_>) {
        if self.is_whole() {
            let reads_on =
                |link: &&mut Link| link.phase != Phase::Stopping && link.told.is_some_and(|told| link.at < told);
            self.links.iter_mut().filter(reads_on).for_each(|link| stop(link, cx.out));
            self.stage = Stage::Whole;
            cx.out.push(Action::Whole);
            self.wake = None;
        } else if self.links.is_empty() {
            self.read_through_or_end(cx);
        }
    }

    fn read_through_or_end(&mut self, cx: Context<'_, '_>) {
        let now = cx.now.mono;
        let (ranged, through): (Vec<usize>, Vec<usize>) = (0..self.roster.len())
            .filter(|seat| self.roster.is_ready_soon(*seat, now))
            .partition(|seat| self.roster.is_ranged(*seat));
        if !ranged.is_empty() {
            return;
        }
        let ready = through.iter().filter(|seat| self.roster.ready_at(**seat).is_some_and(|at| at <= now));
        if let Some(seat) = ready.min_by_key(|seat| self.rank(**seat, now)).copied() {
            let range = ByteRange::new(Offset::ZERO, self.total.as_end());
            self.add(seat, range, Reach::Through, now);
            if let Some(link) = self.links.last_mut() {
                // It claims each gap when it comes to it.
                link.end = link.at;
            }
        } else if through.is_empty() {
            self.stage = Stage::Over;
            cx.out.push(Action::Over);
        }
    }

    fn next_wake(&self, now: Mono) -> Option<Mono> {
        if self.stage != Stage::Fetching {
            return None;
        }
        let idle = !self.links.is_empty() && !self.places(&self.candidates(None, now)).is_empty();
        let pauses = (0..self.roster.len()).filter_map(|seat| self.roster.ready_at(seat)).filter(|at| *at > now);
        let challenged = self.challenger(now).is_some();
        pauses.chain(idle.then(|| now + LOOK)).chain(challenged.then(|| now + SELDOM)).min()
    }
}

/// Asks for the end of a link; its range is free from now on.
pub(super) fn stop(link: &mut Link, out: &mut Vec<Action>) {
    link.phase = Phase::Stopping;
    out.push(Action::Stop { link: link.id });
}

impl Machine for Segments {
    type Event = Event;
    type Action = Action;

    fn handle(&mut self, event: Event, cx: &mut Cx<'_, Action>) {
        match event {
            Event::Wake => self.plan(None, cx),
            Event::Opened(id) => self.opened(id, cx.now.mono),
            Event::Arrived(id, bytes) => self.arrived(id, bytes, cx),
            Event::Ended(id, ending) => self.ended(id, ending, cx),
            Event::Lost(range, blamed) => self.lost(range, blamed, cx),
        }
    }

    fn wake_at(&self) -> Option<Mono> {
        self.wake
    }
}
