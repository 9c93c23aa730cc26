//! The chance of mirrors that ignore ranges: where all that comes is a trickle, one of them is read through beside it.
//!
//! Reading through costs what is held once more, so it is done only where the rest would take many times longer at the
//! pace of late. Once its rate is known, a reader that would not be through in that time is left.

use crate::core::range::{ByteRange, Length, Offset};
use crate::core::segments::link::{Link, Phase};
use crate::core::segments::machine::{Context, stop};
use crate::core::segments::turn::UNANSWERED;
use crate::core::segments::work::{CHANCE, MUCH_SLOWER, TRICKLE, USUAL_HEAD};
use crate::core::segments::{LinkId, Reach, Segments};
use crate::core::time::{Delay, Mono};

/// The pace of the whole is taken over so long. A reader is not judged sooner, either.
const SPELL: Delay = Delay::from_secs(3);

/// How fast missing bytes come, over all links and all pauses between them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    since: Option<Mono>,
    gained: Length,
    /// Bytes per second in the last spell that is over.
    last: Option<f64>,
}

impl Pace {
    /// So many missing bytes came.
    pub(super) fn gained(&mut self, bytes: Length) {
        self.gained = self.gained + bytes;
    }

    /// Time has passed: a spell that is over is counted.
    pub(super) fn turn(&mut self, now: Mono) {
        let Some(since) = self.since else {
            self.since = Some(now);
            return;
        };
        let span = now.since(since);
        if span >= SPELL {
            self.last = Some(self.gained.0 as f64 / span.as_secs_f64());
            (self.since, self.gained) = (Some(now), Length::ZERO);
        }
    }

    /// What was before tells nothing any more.
    pub(super) fn begin_anew(&mut self, now: Mono) {
        *self = Self { since: Some(now), ..Self::default() };
    }

    fn next(&self) -> Option<Mono> {
        self.since.map(|since| since + SPELL)
    }
}

impl Segments {
    /// Where this link is a mirror's chance, read through although others may still go on: how many bytes that were
    /// missing it has brought.
    pub fn gained_on_trial(&self, id: LinkId) -> Option<Length> {
        self.links.iter().find(|link| link.id == id && link.due.is_some()).map(|link| link.gained)
    }

    /// Begins to read a mirror through, or makes room for that, where the others take much too long; and leaves one that
    /// is no better.
    pub(super) fn give_a_chance(&mut self, cx: Context<'_, '_>) {
        let now = cx.now.mono;
        self.pace.turn(now);
        self.leave_vain_readers(cx);
        if self.is_settling() {
            return;
        }
        let Some((seat, due)) = self.reader(now) else { return };
        if self.links.len() < self.rules.connections {
            self.read_through(seat, now);
            self.links.iter_mut().rev().take(1).for_each(|link| link.due = Some(due));
        } else if let Some(link) = self.links.iter_mut().max_by_key(|link| link.claim().length()) {
            let slow = link.seat;
            stop(link, cx.out);
            self.roster.rest(slow, now);
        }
    }

    /// A link that reads the whole file through.
    pub(super) fn read_through(&mut self, seat: usize, now: Mono) {
        let range = ByteRange::new(Offset::ZERO, self.total.as_end());
        self.add(seat, range, Reach::Through, now);
        if let Some(link) = self.links.last_mut() {
            // It claims each gap when it comes to it.
            link.end = link.at;
        }
    }

    /// When there is to be looked whether a reader is worth it.
    pub(super) fn chance_wake(&self, now: Mono) -> Option<Mono> {
        let waits = |seat: usize| !self.roster.is_ranged(seat) && self.roster.ready_at(seat).is_some();
        let reads = self.links.iter().any(|link| link.reach == Reach::Through);
        let judged = self.links.iter().any(|link| link.due.is_some() && link.gained == Length::ZERO);
        let looks = judged || !reads && (0..self.roster.len()).any(waits);
        self.pace.next().filter(|at| looks && *at > now)
    }

    fn is_settling(&self) -> bool {
        self.links.iter().any(|link| link.phase == Phase::Stopping)
    }

    /// The seat that is to be read through, and when the others would be done without it.
    fn reader(&self, now: Mono) -> Option<(usize, Mono)> {
        let pace = self.pace.last?;
        let missing = self.total.saturating_sub(self.held.length()).0 as f64;
        let lasts = missing / pace.max(1.0);
        if lasts <= CHANCE || self.links.iter().any(|link| link.reach == Reach::Through) {
            return None;
        }
        let may = |seat: &usize| {
            let ready = self.roster.ready_at(*seat).is_some_and(|at| at <= now);
            let apart = !self.roster.is_ranged(*seat) && self.links_of(*seat).next().is_none();
            ready && apart && !self.roster.is_outdone(*seat, now)
        };
        let seats = (0..self.roster.len()).filter(may).filter(|seat| self.is_worth_reading(*seat, pace, lasts, now));
        let seat = seats.min_by_key(|seat| self.rank(*seat, now))?;
        Some((seat, now + Delay::from_secs_f64(lasts)))
    }

    /// Would a seat be read through many times sooner than the others are done? Where its rate is not known, it may be,
    /// beside a trickle.
    fn is_worth_reading(&self, seat: usize, pace: f64, lasts: f64, now: Mono) -> bool {
        match self.known_rate(seat, now) {
            Some(rate) => {
                let head = self.roster.of(seat).head().unwrap_or(USUAL_HEAD);
                lasts > MUCH_SLOWER * (head + self.total.0 as f64 / rate)
            }
            None => pace < TRICKLE * self.links.len().max(1) as f64,
        }
    }

    /// Readers that would be through later than the others would have been, and such as have no answer while nobody else
    /// is asked. One that has reached what is missing is of use, however slow.
    fn leave_vain_readers(&mut self, cx: Context<'_, '_>) {
        let now = cx.now.mono;
        let alone = self.links.len() == 1;
        let end = self.total.as_end();
        let is_late = |link: &Link, due: Mono| {
            let left = (end - link.at).0 as f64 / link.meter.rate(now).max(1.0);
            link.meter.age(now) >= SPELL && now + Delay::from_secs_f64(left) > due
        };
        let in_vain = |link: &&mut Link| match (link.phase, link.due) {
            (_, None) | (Phase::Stopping, _) => false,
            (Phase::Opening, Some(_)) => alone && now.since(link.asked) >= UNANSWERED,
            (Phase::Flowing, Some(due)) => link.gained == Length::ZERO && is_late(link, due),
        };
        let Some(link) = self.links.iter_mut().find(in_vain) else { return };
        let (seat, asked, phase) = (link.seat, link.asked, link.phase);
        stop(link, cx.out);
        match phase {
            Phase::Opening => self.roster.failed(seat, asked, now, cx.rng),
            Phase::Flowing | Phase::Stopping => self.roster.rest(seat, now),
        }
    }
}
