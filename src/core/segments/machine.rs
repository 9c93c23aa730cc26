//! The machine: what it holds, and what events do to it.

use crate::core::machine::{Cx, Machine};
use crate::core::range::{ByteRange, Length, Offset, RangeSet};
use crate::core::segments::chance::Pace;
use crate::core::segments::link::{Link, Phase};
use crate::core::segments::roster::Roster;
use crate::core::segments::{Action, Event, Learned, LinkId, Reach, Rules, Seat};
use crate::core::time::Mono;

/// The planner of one download: see the folder's page.
#[derive(Clone, Debug)]
pub struct Segments {
    pub(super) total: Length,
    pub(super) held: RangeSet,
    pub(super) rules: Rules,
    pub(super) roster: Roster,
    pub(super) links: Vec<Link>,
    pub(super) stage: Stage,
    pub(super) pace: Pace,
    next_link: u32,
    pub(super) wake: Option<Mono>,
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

/// The context of a turn.
pub(super) type Context<'c, 'a> = &'c mut Cx<'a, Action>;

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
            pace: Pace::default(),
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
        if reach == Reach::Ranged {
            self.roster.of_mut(seat).ranges_work();
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

    /// An open link.
    pub(super) fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.id == id)
    }

    /// A new link, of which the driver is to be told.
    pub(super) fn add(&mut self, seat: usize, range: ByteRange, reach: Reach, now: Mono) -> LinkId {
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
        self.pace.gained(gained);
        let seat = link.seat;
        let reads_through = link.reach == Reach::Through && link.phase != Phase::Stopping;
        self.roster.of_mut(seat).flowed(now);
        if gained > Length::ZERO {
            self.roster.gained(seat);
        }
        if reads_through {
            self.overtake(id, passed, cx);
        }
        if self.stage == Stage::Fetching && self.is_whole() {
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
            if self.roster.is_dropped(seat) {
                self.stop_links_of(seat, cx.out);
            }
        }
        if self.stage == Stage::Whole && !self.is_whole() {
            self.stage = Stage::Fetching;
        }
        self.plan(None, cx);
    }

    /// Ends what a seat still brings: it is not asked any more.
    pub(super) fn stop_links_of(&mut self, seat: usize, out: &mut Vec<Action>) {
        let same = |link: &&mut Link| link.seat == seat && link.phase != Phase::Stopping;
        self.links.iter_mut().filter(same).for_each(|link| stop(link, out));
    }

    pub(super) fn is_whole(&self) -> bool {
        self.held.first_gap(self.total).is_none()
    }

    /// Says when it is whole, or over; where ranges are of no help, reads the whole file through.
    pub(super) fn conclude(&mut self, cx: Context<'_, '_>) {
        if self.is_whole() {
            let reads_on =
                |link: &&mut Link| link.phase != Phase::Stopping && link.told.is_some_and(|told| link.at < told);
            self.links.iter_mut().filter(reads_on).for_each(|link| stop(link, cx.out));
            self.measure_all(cx.now.mono);
            self.stage = Stage::Whole;
            cx.out.push(Action::Whole);
            self.wake = None;
        } else if self.links.is_empty() {
            self.read_through_or_end(cx);
        }
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
            Event::Opened(id) => {
                self.opened(id, cx.now.mono);
                self.plan(None, cx);
            }
            Event::Arrived(id, bytes) => self.arrived(id, bytes, cx),
            Event::Ended(id, ending) => self.ended(id, ending, cx),
            Event::Lost(range, blamed) => self.lost(range, blamed, cx),
        }
    }

    fn wake_at(&self) -> Option<Mono> {
        self.wake
    }
}
