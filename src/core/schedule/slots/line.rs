//! A line: those who wait for one host in one direction, in order, and its own place among the lines that are ready.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Priority, Queue};
use crate::core::pers_xfer::record::XferId;
use crate::core::time::Mono;

/// A place in a line: the higher priority first, then who came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Came(Reverse<Priority>, u64);

/// A place among lines: the higher priority first, then whose turn is longest ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(Reverse<Priority>, u64);

/// Those who wait.
#[derive(Debug, Default)]
pub(super) struct Line {
    movable: BTreeMap<Came, XferId>,
    bound: BTreeMap<Came, XferId>,
    /// Until then, nobody of `bound` is let in.
    pub(super) shut: Option<Mono>,
    /// Its place among those that are ready, while it is.
    pub(super) listed: Option<Rank>,
}

impl Came {
    pub(super) const fn new(priority: Priority, serial: u64) -> Self {
        Self(Reverse(priority), serial)
    }

    pub(super) const fn priority(self) -> Priority {
        self.0.0
    }
}

impl Rank {
    pub(super) const fn new(priority: Priority, serial: u64) -> Self {
        Self(Reverse(priority), serial)
    }

    /// The same turn with another priority.
    pub(super) const fn with(self, priority: Priority) -> Self {
        Self(Reverse(priority), self.1)
    }
}

impl Line {
    pub(super) fn add(&mut self, came: Came, id: XferId, queue: Queue) {
        match queue {
            Queue::Movable => self.movable.insert(came, id),
            Queue::Bound => self.bound.insert(came, id),
        };
    }

    /// The place of the first that may start.
    pub(super) fn first(&self) -> Option<Came> {
        self.front().map(|(came, _)| came)
    }

    /// Takes it out.
    pub(super) fn take(&mut self) -> Option<(Came, XferId, Queue)> {
        let (came, queue) = self.front()?;
        let line = match queue {
            Queue::Movable => &mut self.movable,
            Queue::Bound => &mut self.bound,
        };
        line.remove(&came).map(|id| (came, id, queue))
    }

    fn front(&self) -> Option<(Came, Queue)> {
        let movable = self.movable.first_key_value().map(|(came, _)| (*came, Queue::Movable));
        let bound = self.bound.first_key_value().map(|(came, _)| (*came, Queue::Bound));
        let open = bound.filter(|_| self.shut.is_none());
        movable.into_iter().chain(open).min_by_key(|(came, _)| *came)
    }

    pub(super) fn is_blank(&self) -> bool {
        self.movable.is_empty() && self.bound.is_empty() && self.shut.is_none()
    }
}
