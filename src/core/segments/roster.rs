//! The seats and their origins: who may be asked, when, for how many links at a time, and who is preferred.

use crate::core::backoff::draw::{between, doubled, fraction};
use crate::core::file_xfer::dossier::Ranges;
use crate::core::mirrors::WRONG_DIGESTS_TO_REFUSE;
use crate::core::segments::link::PATIENCE;
use crate::core::segments::{Learned, Reach, Seat};
use crate::core::time::{Delay, Mono};
use crate::core::url::Origin;

/// So many fruitless endings in a row, and a seat is given up.
const FRUITLESS: u32 = 3;
/// The pause after the first fruitless ending; each further one doubles it.
const FIRST_PAUSE: Delay = Delay::from_secs(1);
/// The pause after bytes came and broke off is between these two.
const BREATH: [Delay; 2] = [Delay::from_millis(100), Delay::from_millis(250)];
/// A breath that bytes hardly followed is doubled at most so often.
const MOST_GASPS: u32 = 4;
/// Waiting so long is still part of the session.
pub(super) const SOON: Delay = Delay::from_millis(1_250);

/// Every seat, and every origin once.
#[derive(Clone, Debug)]
pub(super) struct Roster {
    seats: Vec<SeatState>,
    origins: Vec<OriginState>,
}

/// A seat over the life of the planner.
#[derive(Clone, Debug)]
struct SeatState {
    origin: usize,
    standing: Standing,
    /// Not to be asked before.
    pause: Mono,
    failures: u32,
    failed_at: Option<Mono>,
    /// Links in a row that brought hardly a byte.
    gasps: u32,
    blames: u32,
}

/// May a seat be asked at all?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Good,
    /// Not unless a link of its own still brings bytes.
    GivenUp,
    /// Never.
    Dropped,
}

/// What is known of an origin.
#[derive(Clone, Debug)]
pub(super) struct OriginState {
    name: Origin,
    pub(super) ranges: Ranges,
    /// The most links it bears, where known.
    most: Option<usize>,
    /// It is not asked before.
    floor: Mono,
    told_rate: Option<f64>,
    measured: Option<f64>,
    /// Over so many seconds.
    measured_for: f64,
    /// Seconds from request to head.
    head: Option<f64>,
    /// When it last sent a byte.
    flowed: Option<Mono>,
}

impl Roster {
    pub(super) fn new(seats: Vec<Seat>) -> Self {
        let mut roster = Self { seats: Vec::with_capacity(seats.len()), origins: Vec::new() };
        for seat in seats {
            let blames = seat.blames;
            let origin = roster.origin_of(seat);
            roster.seats.push(SeatState {
                origin,
                standing: Standing::Good,
                pause: Mono::ZERO,
                failures: 0,
                failed_at: None,
                gasps: 0,
                blames,
            });
        }
        roster
    }

    /// The position of a seat's origin, with what the seat tells of it.
    fn origin_of(&mut self, seat: Seat) -> usize {
        let known = self.origins.iter().position(|origin| origin.name == seat.origin);
        let at = known.unwrap_or_else(|| {
            self.origins.push(OriginState::new(seat.origin));
            self.origins.len() - 1
        });
        let origin = &mut self.origins[at];
        origin.floor = origin.floor.max(seat.not_before.unwrap_or(Mono::ZERO));
        origin.most = [origin.most, seat.most].into_iter().flatten().min();
        origin.told_rate = origin.told_rate.or(seat.rate.map(|rate| rate as f64));
        if seat.ranges != Ranges::Unknown {
            origin.ranges = seat.ranges;
        }
        at
    }

    pub(super) fn len(&self) -> usize {
        self.seats.len()
    }

    /// The position of a seat's origin.
    pub(super) fn origin(&self, seat: usize) -> usize {
        self.seats[seat].origin
    }

    pub(super) fn of(&self, seat: usize) -> &OriginState {
        &self.origins[self.seats[seat].origin]
    }

    pub(super) fn of_mut(&mut self, seat: usize) -> &mut OriginState {
        &mut self.origins[self.seats[seat].origin]
    }

    /// When a seat may be asked; `None` for never.
    pub(super) fn ready_at(&self, seat: usize) -> Option<Mono> {
        let state = &self.seats[seat];
        (state.standing == Standing::Good).then(|| state.pause.max(self.of(seat).floor))
    }

    /// It may be asked now, or within the session's patience.
    pub(super) fn is_ready_soon(&self, seat: usize, now: Mono) -> bool {
        self.ready_at(seat).is_some_and(|at| at <= now + SOON)
    }

    /// It may be asked for another range over the connection that has just served one: pauses are for new ones.
    pub(super) fn may_be_reused(&self, seat: usize, now: Mono) -> bool {
        self.seats[seat].standing == Standing::Good && self.of(seat).floor <= now
    }

    /// It answers ranges, as far as is known.
    pub(super) fn is_ranged(&self, seat: usize) -> bool {
        self.of(seat).ranges != Ranges::Broken
    }

    /// Nothing came of the last link from it.
    pub(super) fn is_on_probation(&self, seat: usize) -> bool {
        self.seats[seat].failures > 0
    }

    /// It sent wrong bytes, and another that has not can be asked soon.
    pub(super) fn is_outdone(&self, seat: usize, now: Mono) -> bool {
        let better =
            |other: usize| self.seats[other].blames == 0 && self.is_ranged(other) && self.is_ready_soon(other, now);
        self.seats[seat].blames > 0 && (0..self.len()).any(better)
    }

    /// An ending without a byte, not explained by other links of the origin. A link that was asked for before the last
    /// one failed tells nothing new.
    pub(super) fn failed(&mut self, seat: usize, asked: Mono, now: Mono, rng: &mut dyn rand::Rng) {
        let state = &mut self.seats[seat];
        if state.failed_at.is_some_and(|at| asked <= at) {
            return;
        }
        state.pause = state.pause.max(now + spread(doubled(FIRST_PAUSE, state.failures), rng));
        state.failures += 1;
        state.failed_at = Some(now);
        if state.failures >= FRUITLESS && state.standing == Standing::Good {
            state.standing = Standing::GivenUp;
        }
    }

    /// A short pause after a link that broke off, longer where hardly a byte came. One that is running already is not
    /// prolonged: with many links there would be no end to it.
    pub(super) fn breathe(&mut self, seat: usize, yielded: Yield, now: Mono, rng: &mut dyn rand::Rng) {
        let state = &mut self.seats[seat];
        state.gasps = match yielded {
            Yield::Fair => 0,
            Yield::Meagre => (state.gasps + 1).min(MOST_GASPS),
        };
        if state.pause <= now {
            state.pause = now + doubled(between(BREATH[0], BREATH[1], rng), state.gasps);
        }
    }

    /// No new link for a moment: one was so slow that it lost its range.
    pub(super) fn rest(&mut self, seat: usize, now: Mono) {
        let state = &mut self.seats[seat];
        state.pause = state.pause.max(now + FIRST_PAUSE);
    }

    /// A byte came that was missing.
    pub(super) fn gained(&mut self, seat: usize) {
        let state = &mut self.seats[seat];
        state.failures = 0;
        if state.standing == Standing::GivenUp {
            state.standing = Standing::Good;
        }
    }

    /// Never to be asked again.
    pub(super) fn drop_out(&mut self, seat: usize) {
        self.seats[seat].standing = Standing::Dropped;
    }

    /// It is never to be asked again.
    pub(super) fn is_dropped(&self, seat: usize) -> bool {
        self.seats.get(seat).is_some_and(|state| state.standing == Standing::Dropped)
    }

    /// It sent wrong bytes. As often as makes it refused in the record, and it is not asked again.
    pub(super) fn blame(&mut self, seat: usize) {
        let Some(state) = self.seats.get_mut(seat) else { return };
        state.blames += 1;
        if state.blames >= WRONG_DIGESTS_TO_REFUSE {
            state.standing = Standing::Dropped;
        }
    }

    /// The rate of some origin was measured.
    pub(super) fn has_measured(&self) -> bool {
        self.origins.iter().any(|origin| origin.measured.is_some())
    }

    pub(super) fn learned(&self) -> impl Iterator<Item = Learned> + '_ {
        self.origins.iter().map(|origin| Learned {
            origin: origin.name.clone(),
            connections: origin.most,
            // A float-to-integer cast saturates.
            rate: origin.measured.map(|rate| rate as u64),
            ranges: origin.ranges,
        })
    }
}

/// How much a link brought before it broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Yield {
    /// Enough to go on soon.
    Fair,
    /// A few bytes.
    Meagre,
}

/// What was measured before counts as no more than so many seconds.
const MEMORY: f64 = 10.0;

impl OriginState {
    const fn new(name: Origin) -> Self {
        Self {
            name,
            ranges: Ranges::Unknown,
            most: None,
            floor: Mono::ZERO,
            told_rate: None,
            measured: None,
            measured_for: 0.0,
            head: None,
            flowed: None,
        }
    }

    /// How many links it may have, where so many are allowed.
    pub(super) fn bears(&self, allowed: usize) -> usize {
        self.most.map_or(allowed, |most| most.min(allowed)).max(1)
    }

    /// A link beside `others` was too much.
    pub(super) fn step_down(&mut self, others: usize) {
        self.most = Some(self.most.map_or(others, |most| most.min(others)).max(1));
    }

    /// It asked to be left alone until then.
    pub(super) fn close_until(&mut self, at: Mono) {
        self.floor = self.floor.max(at);
    }

    /// What one connection brought in this session, in bytes per second.
    pub(super) const fn measured(&self) -> Option<f64> {
        self.measured
    }

    /// What one connection brought earlier.
    pub(super) const fn told_rate(&self) -> Option<f64> {
        self.told_rate
    }

    /// What a link brought in the end, and for how long it was open. The mean is weighed by time: the many short links near
    /// the end of a file, served from what a server lets through at once, are no example of what lasts.
    pub(super) fn measure(&mut self, rate: f64, open: Delay) {
        let seconds = open.as_secs_f64().max(0.001);
        let before = self.measured_for.min(MEMORY);
        self.measured = Some(self.measured.map_or(rate, |old| (old * before + rate * seconds) / (before + seconds)));
        self.measured_for = before + seconds;
    }

    /// How long a head takes, in seconds.
    pub(super) const fn head(&self) -> Option<f64> {
        self.head
    }

    /// A good head took so long.
    pub(super) fn answered(&mut self, after: Delay, reach: Reach) {
        let new = after.as_secs_f64();
        self.head = Some(self.head.map_or(new, |old| f64::midpoint(old, new)));
        if reach == Reach::Ranged {
            self.ranges_work();
        }
    }

    /// It answered a range, unless it has failed to before.
    pub(super) fn ranges_work(&mut self) {
        if self.ranges == Ranges::Unknown {
            self.ranges = Ranges::Work;
        }
    }

    /// A byte came.
    pub(super) const fn flowed(&mut self, now: Mono) {
        self.flowed = Some(now);
    }

    /// A byte came after that.
    pub(super) fn flowed_since(&self, then: Mono) -> bool {
        self.flowed.is_some_and(|at| at > then)
    }

    /// It has sent bytes in this session, and does not bear more connections than some number.
    pub(super) const fn leaves_waiting(&self) -> bool {
        self.flowed.is_some() && self.most.is_some()
    }

    /// Bytes come, or came within the last moments.
    pub(super) fn flows(&self, now: Mono) -> bool {
        self.flowed.is_some_and(|at| now.since(at) < PATIENCE)
    }
}

/// A tenth more or less, so that many do not come back in step.
fn spread(pause: Delay, rng: &mut dyn rand::Rng) -> Delay {
    pause.mul_f64(0.9 + 0.2 * fraction(rng))
}
