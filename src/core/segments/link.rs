//! A link: where it stands, how far it goes, and whether it has fallen silent.

use crate::core::backoff::draw::doubled;
use crate::core::range::{ByteRange, Length, Offset};
use crate::core::segments::meter::Meter;
use crate::core::segments::{LinkId, Reach};
use crate::core::time::{Delay, Mono};

/// Without a byte for so long, a link may lose its range to one that has nothing to do.
pub(super) const PATIENCE: Delay = Delay::from_secs(2);
/// Without a head for so long, where the seat is on probation.
const SHORT_PATIENCE: Delay = Delay::from_millis(300);
/// The patience with the head of an answer is so many times what its origin took before.
const SLOWER_HEADS: f64 = 4.0;
/// Doubled patience ends here.
const MOST_PATIENCE: Delay = Delay::from_secs(120);

/// How far a link has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Asked; no head yet.
    Opening,
    /// Its head was good.
    Flowing,
    /// We asked for its end; its range belongs to others.
    Stopping,
}

/// Is what a link brought an example of its origin's speed?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Example {
    /// Yes.
    Fair,
    /// No: it was slow or silent beside others of its origin that are not, or has been counted.
    Odd,
}

/// One link.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) id: LinkId,
    pub(super) seat: usize,
    pub(super) reach: Reach,
    /// The next byte.
    pub(super) at: Offset,
    /// Its claim does not begin before: what it reads until then is held.
    pub(super) claims_from: Offset,
    /// Where its claim ends. A [`Reach::Through`] link reads on beyond it.
    pub(super) end: Offset,
    /// Where what it asked for ends.
    pub(super) asked_end: Offset,
    /// The end that the driver knows of; `None` before it was told to open it.
    pub(super) told: Option<Offset>,
    pub(super) asked: Mono,
    pub(super) phase: Phase,
    /// When the latest sign of life came.
    pub(super) last: Mono,
    pub(super) meter: Meter,
    /// Bytes that were missing until it brought them.
    pub(super) gained: Length,
    /// So many times has its range been taken from a silent link, without a byte since.
    pub(super) inherited: u32,
    pub(super) example: Example,
    /// Where it is read through as a mirror's chance: when the others would have been done without it.
    pub(super) due: Option<Mono>,
}

impl Link {
    /// A link just asked for.
    pub(super) fn new(id: LinkId, seat: usize, range: ByteRange, reach: Reach, now: Mono) -> Self {
        Self {
            id,
            seat,
            reach,
            at: range.start,
            claims_from: range.start,
            end: range.end,
            asked_end: range.end,
            told: None,
            asked: now,
            phase: Phase::Opening,
            last: now,
            meter: Meter::new(now),
            gained: Length::ZERO,
            inherited: 0,
            example: Example::Fair,
            due: None,
        }
    }

    /// Its head was good.
    pub(super) fn open(&mut self, now: Mono) {
        if self.phase == Phase::Opening {
            (self.phase, self.last, self.meter) = (Phase::Flowing, now, Meter::new(now));
        }
    }

    /// What belongs to it: from its position, or where the first missing byte is, to its end.
    pub(super) fn claim(&self) -> ByteRange {
        match self.phase {
            Phase::Stopping => ByteRange::new(self.at, self.at),
            Phase::Opening | Phase::Flowing => ByteRange::new(self.at.max(self.claims_from), self.end),
        }
    }

    /// How much belongs to it.
    pub(super) fn rest(&self) -> f64 {
        self.claim().length().0 as f64
    }

    /// Its bytes come, or came within the last moments.
    pub(super) fn flows(&self, now: Mono) -> bool {
        self.phase == Phase::Flowing && now.since(self.last) < PATIENCE
    }

    /// Without a sign of life for longer than may be. `head` is how long its origin takes to answer.
    pub(super) fn is_silent(&self, now: Mono, head: Option<f64>, rescue: Rescue) -> bool {
        let slower = Delay::from_secs_f64(head.unwrap_or(0.0) * SLOWER_HEADS);
        let patience = match (self.phase, rescue) {
            (Phase::Stopping, _) => return false,
            (Phase::Flowing, _) => PATIENCE,
            (Phase::Opening, Rescue::Sure) => SHORT_PATIENCE.max(slower),
            (Phase::Opening, Rescue::Likely) => PATIENCE.max(slower),
            (Phase::Opening, Rescue::Doubtful) => PATIENCE.max(slower).saturating_mul(4),
        };
        now.since(self.last) >= doubled(patience, self.inherited).min(MOST_PATIENCE)
    }
}

/// Has a new request better chances than one that waits for its head?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rescue {
    /// It goes elsewhere, and the seat of the old one has failed before.
    Sure,
    /// It goes elsewhere, or others flow at the same place.
    Likely,
    /// It goes to the same place, and nothing comes from there.
    Doubtful,
}
