//! Slots: who may start next. So many sessions at once in all, so many a host, so many a direction; and nobody holds up
//! others. Every step costs O(log n), however many wait.
//!
//! **Whose turn it is.** Hosts take turns: each grant goes to the host whose last one is longest ago, so that a host with
//! ten thousand files delays the others by one session and not by ten thousand. A higher priority goes before a lower one
//! all the same. Among the files of a host, first come, first served.
//!
//! **Guests.** A session whose file comes from several hosts at once takes one place at each of them, over however many
//! connections; none beyond the limit of any.
//!
//! **Who counts.** A session of which nothing has been heard for a moment, because its host does not answer or its bytes
//! have stopped, is *silent*: it counts against its host, but others may use its place meanwhile. So many sessions may be
//! silent at once, beyond those that are busy; hosts that are dead hold no more than that. Should a silent one be heard of
//! again while all places are taken, it goes on, and nobody starts until there is room. So at most `all` sessions are busy
//! when one starts, and never more than `all + silent` exist.

mod line;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use line::{Came, Line, Rank};

use crate::core::hosts::HostKey;
use crate::core::pers_xfer::record::{Direction, XferId};
use crate::core::prefs::PerDirection;
use crate::core::time::{Delay, Mono};
use crate::core::url::Origin;

/// How many sessions at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Busy ones, in all.
    pub all: usize,
    /// Transfers with one host: its own sessions, silent ones too, and guests.
    pub per_host: usize,
    /// Busy ones of a direction; zero shuts it.
    pub per_direction: PerDirection<Option<usize>>,
    /// Silent ones, beyond the busy ones.
    pub silent: usize,
    /// A session is silent after so long; `None` for never.
    pub quiet: Option<Delay>,
}

/// Who goes first: the higher one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i8);

/// How a transfer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// It may have other mirrors to go to, should its host be closed.
    Movable,
    /// It is new and has this host alone: while that is closed, it can stay where it is.
    Bound,
}

/// A wish for a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Of which transfer.
    pub id: XferId,
    /// With which host, in which direction.
    pub key: HostKey,
    /// How it waits.
    pub queue: Queue,
    /// Before whom.
    pub priority: Priority,
}

/// A slot that was given out: it is taken until [`Slots::free`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the slot is taken until it is freed"]
pub struct Grant {
    /// The wish that is granted.
    pub ask: Ask,
    came: Came,
}

/// The sessions there are, and the transfers that wait for one.
#[derive(Debug)]
pub struct Slots {
    limits: Limits,
    hosts: BTreeMap<Origin, Host>,
    /// Hosts with a limit of their own.
    own_limits: BTreeMap<Origin, usize>,
    /// The lines that have room at their host and somebody waiting.
    ready: PerDirection<BTreeSet<(Rank, Origin)>>,
    shut: BTreeSet<(Mono, HostKey)>,
    sessions: BTreeMap<XferId, Session>,
    busy: PerDirection<usize>,
    silent: usize,
    /// When to see whether a busy session is still heard of.
    checks: BTreeSet<(Mono, XferId)>,
    serial: u64,
}

#[derive(Debug, Default)]
struct Host {
    sessions: usize,
    /// Sessions with other hosts that ask this one beside.
    guests: usize,
    lines: PerDirection<Line>,
}

#[derive(Clone, Debug)]
struct Session {
    key: HostKey,
    heard: Mono,
    /// When that is looked at; `None` of a silent one.
    check: Option<Mono>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Busy,
    Silent,
}

impl Slots {
    /// No sessions, and nobody waits.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            hosts: BTreeMap::new(),
            own_limits: BTreeMap::new(),
            ready: PerDirection::default(),
            shut: BTreeSet::new(),
            sessions: BTreeMap::new(),
            busy: PerDirection::default(),
            silent: 0,
            checks: BTreeSet::new(),
            serial: 0,
        }
    }

    /// How many sessions there are.
    pub fn running(&self) -> usize {
        self.sessions.len()
    }

    /// How many of them are silent.
    pub const fn silent(&self) -> usize {
        self.silent
    }

    /// Other limits from now on. Sessions beyond them go on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        let hosts: Vec<Origin> = self.hosts.keys().cloned().collect();
        hosts.iter().for_each(|host| self.change(host, |_| {}));
        let ids: Vec<XferId> = self.sessions.keys().copied().collect();
        ids.into_iter().for_each(|id| self.check_again(id));
    }

    /// The limits in force.
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// This host has a limit of its own, or not any more.
    pub fn set_host_limit(&mut self, host: &Origin, most: Option<usize>) {
        let before = match most {
            Some(most) => self.own_limits.insert(host.clone(), most),
            None => self.own_limits.remove(host),
        };
        if before != most {
            self.change(host, |_| {});
        }
    }

    /// Somebody waits.
    pub fn wait(&mut self, ask: Ask) {
        self.serial += 1;
        let came = Came::new(ask.priority, self.serial);
        self.change(&ask.key.origin.clone(), |host| host.lines.of_mut(ask.key.direction).add(came, ask.id, ask.queue));
    }

    /// Who starts next; it has a slot from now on.
    pub fn next(&mut self, now: Mono) -> Option<Grant> {
        loop {
            let (direction, origin) = self.first()?;
            let mut taken = None;
            self.serve(&origin, direction, |host| {
                taken = host.lines.of_mut(direction).take();
            });
            let (came, id, queue) = taken?;
            // One that runs already has got what it waited for in another line.
            if self.sessions.contains_key(&id) {
                continue;
            }
            let key = HostKey { origin, direction };
            self.begin(id, &key, now);
            return Some(Grant { ask: Ask { id, key, queue, priority: came.priority() }, came });
        }
    }

    /// The session of this transfer is over, or did not come about.
    pub fn free(&mut self, id: XferId) {
        let Some(session) = self.sessions.remove(&id) else { return };
        match session.state {
            State::Busy => *self.busy.of_mut(session.key.direction) -= 1,
            State::Silent => self.silent -= 1,
        }
        session.check.map(|at| self.checks.remove(&(at, id)));
        self.change(&session.key.origin, |host| host.sessions -= 1);
    }

    /// Something was heard of a session: its host answered, or bytes moved.
    pub fn heard(&mut self, id: XferId, now: Mono) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.heard = now;
        if session.state == State::Silent {
            session.state = State::Busy;
            self.silent -= 1;
            *self.busy.of_mut(session.key.direction) += 1;
            self.check_again(id);
        }
    }

    /// The host is closed until then: who is bound to it stays, the one that was just let out goes back to where it was.
    pub fn shut(&mut self, grant: Grant, until: Mono) {
        let Grant { ask: Ask { id, key, queue, .. }, came } = grant;
        self.free(id);
        self.open(&key);
        self.change(&key.origin, |host| {
            let line = host.lines.of_mut(key.direction);
            line.add(came, id, queue);
            line.shut = Some(until);
        });
        self.shut.insert((until, key));
    }

    /// The host is open to all who wait for it.
    pub fn open(&mut self, key: &HostKey) {
        let line = self.hosts.get(&key.origin).map(|host| host.lines.of(key.direction));
        if let Some(until) = line.and_then(|line| line.shut) {
            self.shut.remove(&(until, key.clone()));
            self.change(&key.origin, |host| host.lines.of_mut(key.direction).shut = None);
        }
    }

    /// May a session with another host ask this one beside? It does then, until [`Slots::leave`], and counts as one of the
    /// host's own. These go before guests: where one of them waits, nobody becomes a guest.
    pub fn join(&mut self, origin: &Origin) -> bool {
        let (mut joined, most) = (false, self.most(origin));
        self.change(origin, |host| {
            joined = host.in_all() < most && !host.is_waited_for();
            host.guests += usize::from(joined);
        });
        joined
    }

    /// A guest leaves.
    pub fn leave(&mut self, host: &Origin) {
        self.change(host, |host| host.guests = host.guests.saturating_sub(1));
    }

    /// Time has passed: hosts open, sessions of which nothing was heard are silent.
    pub fn tick(&mut self, now: Mono) {
        while let Some((until, key)) = self.shut.first().cloned()
            && until <= now
        {
            self.shut.remove(&(until, key.clone()));
            self.open(&key);
        }
        while let Some((at, id)) = self.checks.first().copied()
            && at <= now
        {
            self.checks.remove(&(at, id));
            self.listen(id, now);
        }
    }

    /// When time matters next: a host opens, or, where somebody could use its place, a session may have fallen silent.
    pub fn wake_at(&self) -> Option<Mono> {
        let wanted = !self.ready.up.is_empty() || !self.ready.down.is_empty();
        let check = self.checks.first().filter(|_| wanted).map(|(at, _)| *at);
        self.shut.first().map(|(until, _)| *until).into_iter().chain(check).min()
    }

    /// The line that is served next, of the directions that have room.
    fn first(&self) -> Option<(Direction, Origin)> {
        if self.busy.up + self.busy.down >= self.limits.all {
            return None;
        }
        let room =
            |direction| self.limits.per_direction.of(direction).is_none_or(|most| *self.busy.of(direction) < most);
        let fronts = [Direction::Upload, Direction::Download].into_iter().filter(|direction| room(*direction));
        let fronts = fronts.filter_map(|direction| self.ready.of(direction).first().map(|front| (front, direction)));
        fronts.min().map(|((_, origin), direction)| (direction, origin.clone()))
    }

    fn begin(&mut self, id: XferId, key: &HostKey, now: Mono) {
        let session = Session { key: key.clone(), heard: now, check: None, state: State::Busy };
        self.sessions.insert(id, session);
        *self.busy.of_mut(key.direction) += 1;
        self.change(&key.origin, |host| host.sessions += 1);
        self.check_again(id);
    }

    /// Has a busy session been heard of?
    fn listen(&mut self, id: XferId, now: Mono) {
        let Some(quiet) = self.limits.quiet else { return };
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.check = None;
        let is_silent = session.heard + quiet <= now;
        match is_silent {
            true if self.silent < self.limits.silent => {
                session.state = State::Silent;
                self.silent += 1;
                *self.busy.of_mut(session.key.direction) -= 1;
            }
            // No room among the silent: it is looked at later.
            true => self.check_at(id, now + quiet),
            false => self.check_again(id),
        }
    }

    fn check_again(&mut self, id: XferId) {
        let quiet = self.limits.quiet;
        let busy = self.sessions.get(&id).filter(|session| session.state == State::Busy);
        match busy.and_then(|session| quiet.map(|quiet| session.heard + quiet)) {
            Some(at) => self.check_at(id, at),
            None => self.check_never(id),
        }
    }

    fn check_at(&mut self, id: XferId, at: Mono) {
        self.check_never(id);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.check = Some(at);
            self.checks.insert((at, id));
        }
    }

    fn check_never(&mut self, id: XferId) {
        if let Some(at) = self.sessions.get_mut(&id).and_then(|session| session.check.take()) {
            self.checks.remove(&(at, id));
        }
    }

    fn most(&self, host: &Origin) -> usize {
        self.own_limits.get(host).copied().unwrap_or(self.limits.per_host)
    }

    /// Changes a host whose line is served: it goes to the end of those that are ready.
    fn serve(&mut self, origin: &Origin, direction: Direction, how: impl FnOnce(&mut Host)) {
        if let Some(host) = self.hosts.get_mut(origin)
            && let Some(rank) = host.lines.of_mut(direction).listed.take()
        {
            self.ready.of_mut(direction).remove(&(rank, origin.clone()));
        }
        self.change(origin, how);
    }

    /// Changes a host, and keeps the lists of those that are ready.
    fn change(&mut self, origin: &Origin, how: impl FnOnce(&mut Host)) {
        let most = self.most(origin);
        let host = self.hosts.entry(origin.clone()).or_default();
        how(host);
        let room = host.in_all() < most;
        for direction in [Direction::Upload, Direction::Download] {
            let (line, ready) = (host.lines.of_mut(direction), self.ready.of_mut(direction));
            let before = line.listed;
            let first = line.first().filter(|_| room);
            line.listed = first.map(|came| match before {
                Some(rank) => rank.with(came.priority()),
                None => {
                    self.serial += 1;
                    Rank::new(came.priority(), self.serial)
                }
            });
            if before != line.listed {
                before.map(|rank| ready.remove(&(rank, origin.clone())));
                ready.extend(line.listed.map(|rank| (rank, origin.clone())));
            }
        }
        if host.is_blank() {
            self.hosts.remove(origin);
        }
    }
}

impl Host {
    const fn in_all(&self) -> usize {
        self.sessions + self.guests
    }

    /// Could somebody start here, were there a slot?
    const fn is_waited_for(&self) -> bool {
        self.lines.up.listed.is_some() || self.lines.down.listed.is_some()
    }

    fn is_blank(&self) -> bool {
        self.sessions == 0 && self.guests == 0 && self.lines.up.is_blank() && self.lines.down.is_blank()
    }
}
