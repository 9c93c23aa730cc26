//! Slots: who may start next. So many sessions at once in all, so many a host, first come, first served; and a host that
//! has no room holds up nobody else. Every step costs O(log n), however many wait.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::core::pers_xfer::record::XferId;
use crate::core::time::Mono;
use crate::core::url::Origin;

/// The sessions that run, and the transfers that wait for one.
#[derive(Debug)]
pub(super) struct Slots {
    most: usize,
    most_per_host: usize,
    running: usize,
    hosts: BTreeMap<Origin, Host>,
    /// The hosts that have room and somebody waiting, by when the first of them came.
    ready: BTreeSet<(u64, Origin)>,
    shut: BTreeSet<(Mono, Origin)>,
    came: u64,
}

/// How a transfer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// It may have other mirrors to go to, should its host be closed.
    Movable,
    /// It is new and has this host alone: while that is closed, it can stay where it is.
    Bound,
}

#[derive(Debug, Default)]
struct Host {
    running: usize,
    /// Sessions with other hosts that ask this one beside.
    guests: usize,
    movable: VecDeque<(u64, XferId)>,
    bound: VecDeque<(u64, XferId)>,
    /// Until then, nobody of `bound` is let in.
    shut: Option<Mono>,
}

impl Slots {
    pub(super) fn new(most: usize, most_per_host: usize) -> Self {
        Self {
            most,
            most_per_host,
            running: 0,
            hosts: BTreeMap::new(),
            ready: BTreeSet::new(),
            shut: BTreeSet::new(),
            came: 0,
        }
    }

    /// How many run.
    pub(super) const fn running(&self) -> usize {
        self.running
    }

    /// Somebody waits for this host.
    pub(super) fn wait(&mut self, host: &Origin, id: XferId, queue: Queue) {
        self.came += 1;
        let came = (self.came, id);
        self.change(host, |host| match queue {
            Queue::Movable => host.movable.push_back(came),
            Queue::Bound => host.bound.push_back(came),
        });
    }

    /// Who starts next, with which host; it has a slot from now on.
    pub(super) fn next(&mut self) -> Option<(Origin, XferId, Queue)> {
        if self.running >= self.most {
            return None;
        }
        let (_, origin) = self.ready.first().cloned()?;
        let mut taken = None;
        self.change(&origin, |host| {
            taken = host.take();
            host.running += usize::from(taken.is_some());
        });
        let (id, queue) = taken?;
        self.running += 1;
        Some((origin, id, queue))
    }

    /// A slot is free again.
    pub(super) fn free(&mut self, host: &Origin) {
        self.running = self.running.saturating_sub(1);
        self.change(host, |host| host.running = host.running.saturating_sub(1));
    }

    /// May a session with another host ask this one beside? It does then, until [`Slots::leave`]. Sessions of the host's own
    /// go before guests: these take room that is left, and none of theirs.
    pub(super) fn join(&mut self, host: &Origin) -> bool {
        let (mut joined, most) = (false, self.most_per_host);
        self.change(host, |host| {
            joined = host.running + host.guests < most;
            host.guests += usize::from(joined);
        });
        joined
    }

    /// A guest leaves.
    pub(super) fn leave(&mut self, host: &Origin) {
        self.change(host, |host| host.guests = host.guests.saturating_sub(1));
    }

    /// The host is closed until then: who is bound to it stays, the one that was just let out goes back to the front.
    pub(super) fn shut(&mut self, origin: &Origin, until: Mono, back: XferId) {
        self.change(origin, |host| {
            host.bound.push_front((0, back));
            host.shut = Some(until);
        });
        self.shut.insert((until, origin.clone()));
    }

    /// The host is open to all who wait for it.
    pub(super) fn open(&mut self, origin: &Origin) {
        if let Some(until) = self.hosts.get(origin).and_then(|host| host.shut) {
            self.shut.remove(&(until, origin.clone()));
            self.change(origin, |host| host.shut = None);
        }
    }

    /// Opens the hosts whose time has come.
    pub(super) fn open_due(&mut self, now: Mono) {
        while let Some((until, origin)) = self.shut.first().cloned()
            && until <= now
        {
            self.shut.remove(&(until, origin.clone()));
            self.open(&origin);
        }
    }

    /// When the next host opens.
    pub(super) fn next_opening(&self) -> Option<Mono> {
        self.shut.first().map(|(until, _)| *until)
    }

    /// Changes a host and keeps the list of those that are ready.
    fn change(&mut self, origin: &Origin, how: impl FnOnce(&mut Host)) {
        if !self.hosts.contains_key(origin) {
            self.hosts.insert(origin.clone(), Host::default());
        }
        let Some(host) = self.hosts.get_mut(origin) else { return };
        let before = host.first(self.most_per_host);
        how(host);
        let after = host.first(self.most_per_host);
        let blank = host.is_blank();
        if before != after {
            before.map(|came| self.ready.remove(&(came, origin.clone())));
            self.ready.extend(after.map(|came| (came, origin.clone())));
        }
        if blank {
            self.hosts.remove(origin);
        }
    }
}

impl Host {
    /// When the first came of those that may start now.
    fn first(&self, most: usize) -> Option<u64> {
        if self.running >= most {
            return None;
        }
        let bound = self.bound.front().filter(|_| self.shut.is_none());
        self.movable.front().into_iter().chain(bound).map(|(came, _)| *came).min()
    }

    fn take(&mut self) -> Option<(XferId, Queue)> {
        let bound = self.bound.front().filter(|_| self.shut.is_none()).map(|(came, _)| *came);
        let movable = self.movable.front().map(|(came, _)| *came);
        let (came, queue) = match (movable, bound) {
            (Some(movable), Some(bound)) if bound < movable => (self.bound.pop_front(), Queue::Bound),
            (Some(_), _) => (self.movable.pop_front(), Queue::Movable),
            (None, Some(_)) => (self.bound.pop_front(), Queue::Bound),
            (None, None) => return None,
        };
        came.map(|(_, id)| (id, queue))
    }

    fn is_blank(&self) -> bool {
        self.running == 0 && self.guests == 0 && self.movable.is_empty() && self.bound.is_empty() && self.shut.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::Delay;

    fn host(name: &str) -> Origin {
        Origin::parse(&format!("http://{name}.example")).expect("an origin")
    }

    fn slots(waiting: &[(&str, u64)]) -> Slots {
        let mut slots = Slots::new(3, 2);
        waiting.iter().for_each(|(h, id)| slots.wait(&host(h), XferId(*id), Queue::Movable));
        slots
    }

    fn started(slots: &mut Slots) -> Vec<u64> {
        std::iter::from_fn(|| slots.next()).map(|(_, id, _)| id.0).collect()
    }

    #[test]
    fn first_come_first_served_within_both_limits() {
        let mut slots = slots(&[("a", 1), ("a", 2), ("a", 3), ("b", 4), ("b", 5)]);
        assert_eq!(started(&mut slots), [1, 2, 4]);
        slots.free(&host("b"));
        assert_eq!(started(&mut slots), [5], "a has no room");
        slots.free(&host("a"));
        assert_eq!(started(&mut slots), [3]);
        assert_eq!(slots.running(), 3);
    }

    #[test]
    fn a_closed_host_keeps_those_who_have_no_other() {
        let mut slots = Slots::new(9, 9);
        let a = host("a");
        (1..=3).for_each(|n| slots.wait(&a, XferId(n), Queue::Bound));
        slots.wait(&a, XferId(4), Queue::Movable);
        let (_, first, _) = slots.next().expect("one");
        let until = Mono::ZERO + Delay::from_secs(9);
        slots.shut(&a, until, first);
        slots.free(&a);
        assert_eq!(started(&mut slots), [4], "who can go elsewhere is let out to do so");
        assert_eq!(slots.next_opening(), Some(until));
        slots.open_due(Mono::ZERO);
        assert_eq!(started(&mut slots), [0; 0]);
        slots.open_due(until);
        assert_eq!((started(&mut slots), slots.next_opening()), (vec![1, 2, 3], None));
    }

    #[test]
    fn guests_take_what_room_is_left() {
        let (mut slots, a) = (slots(&[("a", 1)]), host("a"));
        assert_eq!(started(&mut slots), [1]);
        assert_eq!([slots.join(&a), slots.join(&a)], [true, false], "two at a time from one host");
        slots.wait(&a, XferId(2), Queue::Movable);
        assert_eq!(started(&mut slots), [2], "a guest keeps nobody away");
        slots.leave(&a);
        assert!(!slots.join(&a));
        slots.free(&a);
        slots.free(&a);
        assert!(slots.join(&a));
        slots.leave(&a);
        assert!(slots.hosts.is_empty());
    }

    #[test]
    fn nothing_is_left_of_a_host_that_is_done_with() {
        let mut slots = slots(&[("a", 1), ("b", 2)]);
        assert_eq!(started(&mut slots), [1, 2]);
        slots.free(&host("a"));
        slots.free(&host("b"));
        assert!(slots.hosts.is_empty() && slots.ready.is_empty());
    }
}
