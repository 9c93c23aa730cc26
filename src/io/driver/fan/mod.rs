//! Fan: a session that is joined by links, so that the file comes over several connections, and from several mirrors, at
//! once. The planner (`core::segments`) says who fetches what, each link's machine (`core::file_xfer::link`) what its
//! answers mean; this carries both out, and writes what comes.
//!
//! Everything runs on the session's lane. The wires only move bytes; this loop alone has the part file.

mod checks;
mod contents;
mod joints;
mod line;
mod links;
mod take;
mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::core::failure::{Failure, LocalFault};
use crate::core::file_xfer::{BesideEnd, Place, Receive, Split, Step};
use crate::core::machine::{Cx, Machine};
use crate::core::range::{ByteRange, Length, RangeSet};
use crate::core::segments::{Action, Ending, Event, LinkId, Reach, Rules, Segments};
use crate::core::time::{Delay, Mono};
use crate::core::url::MirrorUrl;
use crate::io::driver::session::Session;
use crate::io::driver::{Beside, Tell};
use crate::io::part::PartStore;
use checks::Checks;
pub(super) use joints::own_share;
use joints::{OpenJoints, Settled};
use line::Line;
use wire::Told;

/// How often the part file is written out while nothing arrives.
const BEAT: Duration = Duration::from_millis(250);
/// Progress is told at most so often.
const TELL_EVERY: Delay = Delay::from_millis(100);
/// Pieces of bodies that may wait for this loop.
const QUEUE: usize = 32;

/// The links of one session.
pub(super) struct Fan<'a> {
    session: &'a mut Session,
    planner: Segments,
    lines: BTreeMap<LinkId, Line>,
    /// Links that wait for a first block to be compared.
    unproven: Vec<Opening>,
    /// Up to here no block was found that can prove anything.
    proofless: Length,
    /// What the planner has not heard yet.
    events: VecDeque<Event>,
    acting: Acting,
    wires: JoinSet<()>,
    news: (mpsc::Sender<Told>, mpsc::Receiver<Told>),
    rng: rand::rngs::SmallRng,
    /// The seat of the session's own mirror.
    own: usize,
    /// The last failure of each seat.
    failures: BTreeMap<usize, Failure>,
    /// Mirrors that have served.
    served: Vec<usize>,
    told: Mono,
    began: Mono,
    checks: Option<Checks>,
    /// Which seat brought what in this session.
    brought: BTreeMap<usize, RangeSet>,
    /// Seats that sent a wrong piece, and what each had brought before that: it may have come from a cache.
    doubted: BTreeMap<usize, RangeSet>,
    joints: OpenJoints,
    total: Length,
    end: Option<BesideEnd>,
}

/// A smaller rest is left to whoever brings it.
const WORTH_WATCHING: Length = Length(256 << 10);

/// Are the planner's actions being carried out?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acting {
    Yes,
    No,
}

/// A link to be opened.
#[derive(Clone, Copy, Debug)]
struct Opening {
    link: LinkId,
    seat: usize,
    range: ByteRange,
    reach: Reach,
}

impl Session {
    /// Is it worth, or needed, to fetch over links from here on?
    pub(super) fn fans_out(&self, plan: Receive) -> Option<Split> {
        let (split, store) = (self.machine.split(plan)?, self.store.as_ref()?);
        let held = store.segments();
        let broken = held.iter().len() > 1 || held.iter().any(|run| run.end > split.at);
        let missing = held.gaps(split.total).fold(Length::ZERO, |sum, gap| sum + gap.length());
        let pieces = self.orders.terms.pieces.is_some();
        // With other mirrors at hand a small rest is not split, but taken from one that drips.
        let others = self.orders.fan.seats.len() > 1 && missing >= WORTH_WATCHING;
        let several = self.orders.fan.connections > 1 && (others || missing.0 >= 2 * self.orders.fan.least.0);
        (broken || several || pieces).then_some(split)
    }

    /// Fetches the rest over links; the step that follows.
    pub(super) async fn fan_out(&mut self, split: Split) -> Result<Step, LocalFault> {
        if let Some(store) = &mut self.store {
            // The version may have turned out shorter than it was taken for.
            store.cut(Place::Part, split.total)?;
        }
        let mut fan = Fan::new(self, &split)?;
        let end = fan.run().await?;
        drop(fan);
        let Some(store) = &mut self.store else { return Ok(self.machine.beside_ended(Length::ZERO, end)) };
        let held = store.settle(Place::Part)?;
        Ok(self.machine.beside_ended(held, end))
    }
}

impl<'a> Fan<'a> {
    fn new(session: &'a mut Session, split: &Split) -> Result<Self, LocalFault> {
        let now = session.hands.clock.now().mono;
        let held = session.store.as_ref().map(PartStore::segments).unwrap_or_default();
        links::leave_out_strangers(session);
        let (seats, own) = links::seats(session, &split.origin);
        let plan = &session.orders.fan;
        let rules =
            Rules { connections: plan.connections, per_origin: plan.per_origin, least: plan.least, cuts: plan.cuts };
        let known = plan.seats.iter().enumerate().filter(|(_, seat)| seat.wrong > 0);
        let doubted = known.map(|(n, _)| (n, RangeSet::new())).collect();
        let mut fan = Self {
            planner: Segments::new(split.total, held.clone(), seats, rules),
            lines: BTreeMap::new(),
            unproven: Vec::new(),
            proofless: Length::ZERO,
            events: VecDeque::new(),
            acting: Acting::No,
            wires: JoinSet::new(),
            news: mpsc::channel(QUEUE),
            rng: rand::SeedableRng::seed_from_u64(session.hands.seed),
            own,
            failures: BTreeMap::new(),
            served: Vec::new(),
            told: now,
            began: now,
            checks: Checks::of(&session.orders.terms, split.total),
            brought: BTreeMap::new(),
            doubted,
            joints: OpenJoints::of(&session.orders, &held),
            total: split.total,
            end: None,
            session,
        };
        fan.adopt(split, now)?;
        Ok(fan)
    }

    /// Runs until the file is whole, or nothing goes on.
    async fn run(&mut self) -> Result<BesideEnd, LocalFault> {
        loop {
            let now = self.session.hands.clock.now().mono;
            match self.end.take() {
                Some(BesideEnd::Whole) => match self.settle_joints(now)? {
                    Settled::Yes if self.check_the_rest().await? => return Ok(BesideEnd::Whole),
                    Settled::Yes | Settled::Again => continue,
                    Settled::NotYet => self.end = Some(BesideEnd::Whole),
                    Settled::Never(end) => return Ok(end),
                },
                Some(end) => return Ok(end),
                None => {}
            }
            let wake = self.planner.wake_at().map_or(BEAT, |at| at.since(now).as_std().min(BEAT));
            tokio::select! {
                biased;
                told = self.news.1.recv() => if let Some(told) = told { self.hear(told)? },
                () = tokio::time::sleep(wake) => self.beat()?,
            }
        }
    }

    /// Nothing came for a while.
    fn beat(&mut self) -> Result<(), LocalFault> {
        let now = self.session.hands.clock.now().mono;
        self.tick(now)?;
        self.open_unproven()?;
        self.plan(Event::Wake)?;
        if self.lines.is_empty() && !self.unproven.is_empty() && self.end.is_none() {
            // All wait for a block that proves something, and nothing comes any more that could bring one.
            self.act(Action::Over)?;
        }
        Ok(())
    }

    /// Tells the planner what happened, and does what it wants. What comes of that waits until all of it is done: the
    /// planner's actions are carried out in their order.
    fn plan(&mut self, event: Event) -> Result<(), LocalFault> {
        self.events.push_back(event);
        if self.acting == Acting::Yes {
            return Ok(());
        }
        self.acting = Acting::Yes;
        let done = self.work_off();
        self.acting = Acting::No;
        done
    }

    fn work_off(&mut self) -> Result<(), LocalFault> {
        while let Some(event) = self.events.pop_front() {
            let mut out = Vec::new();
            let now = self.session.hands.clock.now();
            self.planner.handle(event, &mut Cx { now, rng: &mut self.rng, out: &mut out });
            out.into_iter().try_for_each(|action| self.act(action))?;
        }
        Ok(())
    }

    fn act(&mut self, action: Action) -> Result<(), LocalFault> {
        match action {
            Action::Open { link, seat, range, reach } => self.open(Opening { link, seat, range, reach }),
            Action::Limit { link, end } | Action::Extend { link, end } => {
                if let Some(line) = self.lines.get_mut(&link) {
                    line.range.end = end;
                }
                self.unproven.iter_mut().filter(|o| o.link == link).for_each(|o| o.range.end = end);
                Ok(())
            }
            Action::Stop { link } => {
                if !self.stays_to_read_on(link) {
                    self.drop_line(link);
                }
                self.plan(Event::Ended(link, Ending::Stopped))
            }
            Action::Whole => {
                self.end = Some(BesideEnd::Whole);
                Ok(())
            }
            Action::Over => {
                let own = self.failures.remove(&self.own);
                let last = own.or_else(|| self.failures.pop_last().map(|(_, failure)| failure));
                self.end = Some(BesideEnd::Failed(last.unwrap_or_else(links::nobody_left)));
                Ok(())
            }
        }
    }

    fn drop_line(&mut self, link: LinkId) {
        self.unproven.retain(|opening| opening.link != link);
        if let Some(line) = self.lines.remove(&link) {
            line.task.abort();
        }
    }

    /// Writes out what has waited, and tells how far it is.
    fn tick(&mut self, now: Mono) -> Result<(), LocalFault> {
        if let Some(store) = &mut self.session.store {
            store.tick(now)?;
        }
        if now.since(self.told) >= TELL_EVERY && self.session.told_received != self.session.received {
            self.told = now;
            self.session.told_received = self.session.received;
            let held = self.planner.held().length();
            (self.session.tell)(Tell::Progress { held, received: self.session.received });
        }
        Ok(())
    }

    fn tell_beside(&self, seat: usize, beside: impl FnOnce(MirrorUrl) -> Beside) {
        if let Some(url) = self.session.orders.fan.seats.get(seat).map(|seat| seat.url.clone()) {
            (self.session.tell)(Tell::Beside(Box::new(beside(url))));
        }
    }

    /// What was learned of origins, for the sessions to come.
    fn learn_ways(&mut self) {
        let learned: Vec<_> = self.planner.learned().collect();
        for origin in learned {
            if let Some(most) = origin.connections {
                self.session.machine.bears(&origin.origin, u32::try_from(most).unwrap_or(u32::MAX));
            }
            if let Some(rate) = origin.rate {
                (self.session.tell)(Tell::Beside(Box::new(Beside::Rate { origin: origin.origin, rate })));
            }
        }
    }
}

impl Drop for Fan<'_> {
    /// However it ends, also where it is told to stop: what was learned of origins is kept, and what is not proven is left
    /// so that the next session looks at it.
    fn drop(&mut self) {
        self.learn_ways();
        if let Err(fault) = self.leave_joints_open() {
            // The disk fails; whoever writes next hears of it.
            tracing::debug!(%fault, "what was not compared could not be given up");
        }
    }
}

/// The reach of the session's own answer: where its origin is known to ignore ranges, it can only be read through.
const fn reach_of(ranges: crate::core::file_xfer::dossier::Ranges) -> Reach {
    match ranges {
        crate::core::file_xfer::dossier::Ranges::Broken => Reach::Through,
        _ => Reach::Ranged,
    }
}
