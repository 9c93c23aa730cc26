//! The start of things: a transfer is taken up, waits for a slot, and gets its session.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::core::failure::LocalFault;
use crate::core::hosts::{Gate, HostKey};
use crate::core::pers_xfer::record::{Direction, MirrorRecord, Record, XferId};
use crate::core::pers_xfer::{Event, OnLocalFault, PersFileXfer, Rules, Urgency, View};
use crate::core::schedule::{Grant, Queue};
use crate::core::time::Now;
use crate::core::url::Origin;
use crate::engine::admit::{self, Admission, Entry};
use crate::engine::ended::held_of;
use crate::engine::hosts::key_of;
use crate::engine::mail::Mail;
use crate::engine::supervisor::Supervisor;
use crate::engine::transfer::{Answered, Running, Transfer};
use crate::engine::way::Way;
use crate::engine::{EngineError, Notice, Rounds};
use crate::io::driver::{self, Hands};
use crate::io::lane::{LaneFault, Task, TaskEnd};
use crate::io::part::Clobber;

/// That a transfer was taken up.
pub(super) fn accepted(record: &Record) -> Notice {
    Notice::Accepted {
        id: record.id,
        direction: record.direction,
        name: record.name.clone(),
        path: record.path.clone(),
        held: held_of(record),
        total: record.nbytes,
    }
}

/// What became of a slot that was given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// A session runs in it.
    Taken,
    /// It is free again.
    Back,
}

impl Supervisor<'_> {
    /// Says that a transfer was taken up.
    pub(super) fn accept(&mut self, record: &Record) {
        (self.notices)(accepted(record));
    }

    /// Takes up a transfer that was admitted. One that is about to start may be stored as `urgency` says; one that has to
    /// wait says at once whose it is.
    pub(super) fn take_up(&mut self, entry: Entry, urgency: Urgency) -> Result<(), EngineError> {
        let first = if entry.failed_before { Event::Retry } else { Event::Wake };
        let (id, asks_only) = (entry.record.id, entry.revalidate.is_some());
        let way = self.ways.of(&entry.record.options.net)?;
        let now = self.clock.now();
        self.make(entry, way, now);
        self.wait_for_its_host(id, now);
        self.handle(id, first, now);
        let starts = self.transfers.get(&id).is_some_and(|t| t.wanted.is_some() && t.record().path.is_some());
        if !asks_only {
            self.persist.mark(id, if starts { urgency } else { Urgency::Now }, now.mono);
        }
        Ok(())
    }

    /// Takes up a record that is ours already, as it stands in the state.
    pub(super) fn take_up_record(&mut self, record: Record, now: Now) {
        if let Some(done) = admit::settled(&record) {
            return self.end_done(done);
        }
        let Some(job) = admit::job_of(&record) else { return };
        let way = match self.ways.of(&record.options.net) {
            Ok(way) => way,
            Err(error) => return self.end_unusable(&record, &error),
        };
        let id = record.id;
        match admit::admit(&job, Some(record.clone()), || record.clone()) {
            Admission::Run(entry) => self.make(*entry, way, now),
            Admission::Done { record: done, evidence } => {
                return self.end_done(admit::kept(done.map_or(record, |r| *r), evidence, now));
            }
            Admission::Refused(fault) => {
                let entry = Entry { record, revalidate: None, clobber: Clobber::Refuse, failed_before: false };
                self.make(entry, way, now);
                if let Some(transfer) = self.transfers.get_mut(&id) {
                    transfer.blocked = Some(fault);
                }
            }
        }
        self.wait_for_its_host(id, now);
        self.handle(id, Event::Wake, now);
    }

    /// One that waited for a host when it was stored waits for what is known of the host now.
    fn wait_for_its_host(&mut self, id: XferId, now: Now) {
        let Some(transfer) = self.transfers.get(&id) else { return };
        let View::Host { origin, .. } = transfer.machine.view() else { return };
        if self.hosts.closed(&key_of(&origin, transfer.record().direction), now).is_none() {
            return self.handle(id, Event::HostOpened(origin), now);
        }
        self.waiting_for.entry(origin).or_default().insert(id);
    }

    fn make(&mut self, entry: Entry, way: Arc<Way>, now: Now) {
        let rules = self.rules(&entry.record);
        let machine = PersFileXfer::from_record(entry.record, rules, now);
        let mut transfer = Transfer::new(machine, way, entry.clobber);
        transfer.revalidate = entry.revalidate;
        let id = transfer.id();
        self.transfers.insert(id, transfer);
        self.rank_mirrors(id);
        self.pause_if_shut(id, now);
    }

    fn rules(&self, record: &Record) -> Rules {
        let on_local_fault = if self.service.is_some() { OnLocalFault::TryAgain } else { OnLocalFault::Rest };
        Rules { rounds: self.settings.rounds, on_local_fault, ..Rules::of(&record.options) }
    }

    /// A record of ours that is new: it gets its machine when it gets its slot.
    pub(super) fn put_in_line(&mut self, record: &Record) {
        let key = |m: &MirrorRecord| key_of(&m.url.origin(), record.direction);
        self.line_up(record.id, &record.mirrors.iter().map(key).collect::<Vec<_>>());
    }

    /// The same, of one that stands in the state as we have seen it.
    pub(super) fn put_in_line_as_seen(&mut self, id: XferId) {
        self.line_up(id, &self.seen.hosts_of(id));
    }

    fn line_up(&mut self, id: XferId, hosts: &[HostKey]) {
        let Some(first) = hosts.first() else { return };
        let bound = hosts.iter().all(|host| host == first);
        self.fresh.insert(id);
        self.wait_for_slot(id, first.clone(), if bound { Queue::Bound } else { Queue::Movable });
    }

    /// The machine wishes for a session with this mirror.
    pub(super) fn queue(&mut self, id: XferId, mirror: usize) {
        let Some(transfer) = self.transfers.get(&id) else { return };
        if let Some(url) = transfer.url(mirror)
            && self.getting_its_slot != Some(id)
        {
            let key = key_of(&url.origin(), transfer.record().direction);
            self.wait_for_slot(id, key, Queue::Movable);
        }
    }

    /// Starts what waits for a slot, in order, as far as slots and hosts allow.
    pub(super) fn start_queued(&mut self) {
        loop {
            let now = self.clock.now();
            let Some(grant) = self.slots.next(now.mono) else { return };
            let id = grant.ask.id;
            let slot = if self.fresh.contains(&id) {
                self.start_fresh(grant, now)
            } else {
                self.start(&grant.ask.key.origin, id, now)
            };
            if slot == Slot::Back {
                self.slots.free(id);
            }
        }
    }

    /// A new one gets its machine, unless it would only learn from it that its host is closed.
    fn start_fresh(&mut self, grant: Grant, now: Now) -> Slot {
        let (id, key) = (grant.ask.id, grant.ask.key.clone());
        let Some(record) = self.seen.get(id) else {
            self.fresh.remove(&id);
            return Slot::Back;
        };
        let closed = self.hosts.closed(&key, now).filter(|_| self.settings.rounds == Rounds::UntilDone);
        if let (Queue::Bound, Some((until, _))) = (grant.ask.queue, closed) {
            self.slots.shut(grant, until);
            return Slot::Back;
        }
        self.fresh.remove(&id);
        self.getting_its_slot = Some(id);
        self.take_up_record(record, now);
        self.getting_its_slot = None;
        let wanted = self.transfers.get(&id).and_then(|t| t.wanted);
        let slot = self.start(&key.origin, id, now);
        // It may want another host, or wait for something: then it is in no line yet.
        let still = self.transfers.get(&id).filter(|t| t.running.is_none()).and_then(|t| t.wanted);
        if let Some((mirror, _)) = still.filter(|still| wanted.is_some_and(|w| w.0 == still.0)) {
            self.queue(id, mirror);
        }
        slot
    }

    /// Starts the session wished for.
    fn start(&mut self, host: &Origin, id: XferId, now: Now) -> Slot {
        let Some(transfer) = self.transfers.get_mut(&id) else { return Slot::Back };
        let Some((mirror, freshness)) = transfer.wanted else { return Slot::Back };
        // It has changed its mind since it came into this line, and stands in another one.
        if transfer.lost.is_some() || transfer.url(mirror).is_none_or(|url| url.origin() != *host) {
            return Slot::Back;
        }
        if transfer.blocked.is_some()
            && let Err(fault) = self.look_again(id)
        {
            self.unwish(id);
            self.handle(id, Event::Local(fault), now);
            return Slot::Back;
        }
        let Some(direction) = self.transfers.get(&id).map(|t| t.record().direction) else { return Slot::Back };
        let key = key_of(host, direction);
        if let Gate::Closed { until, .. } = self.hosts.gate(&key, now) {
            self.unwish(id);
            self.waiting_for.entry(host.clone()).or_default().insert(id);
            self.handle(id, Event::HostClosed { until }, now);
            return Slot::Back;
        }
        self.unwish(id);
        if direction == Direction::Upload {
            return self.start_upload(host, id, mirror, now);
        }
        let Some(way) = self.way_to(host, id, now) else { return Slot::Back };
        let Some((fan, guests)) = self.fan_plan(id, mirror, now) else { return Slot::Back };
        let Some(transfer) = self.transfers.get_mut(&id) else { return Slot::Back };
        transfer.said = None;
        let Some(orders) = transfer.orders(mirror, freshness, &self.spec, fan) else {
            guests.iter().for_each(|host| self.slots.leave(host));
            return Slot::Back;
        };
        let stop = CancellationToken::new();
        transfer.running = Some(Running { stop: stop.clone(), host: host.clone(), guests, answered: Answered::NotYet });
        self.handle(id, Event::Began, now);
        self.announce(id, mirror);
        self.spawn(id, orders, way, stop);
        Slot::Taken
    }

    /// How requests travel to this host.
    fn way_to(&mut self, host: &Origin, id: XferId, now: Now) -> Option<Arc<Way>> {
        let transfer = self.transfers.get(&id)?;
        let (usual, net) = (Arc::clone(&transfer.way), Arc::clone(&transfer.record().options.net));
        match self.ways.of_host(host, &net, &usual) {
            Ok(way) => Some(way),
            Err(error) => {
                let (path, detail) = (host.as_str().to_owned(), error.to_string());
                self.handle(id, Event::Local(LocalFault::Io { doing: "use the preferences for", path, detail }), now);
                None
            }
        }
    }

    /// The same for an upload, which goes to one server at a time.
    fn start_upload(&mut self, host: &Origin, id: XferId, mirror: usize, now: Now) -> Slot {
        let Some(way) = self.way_to(host, id, now) else { return Slot::Back };
        let Some(transfer) = self.transfers.get_mut(&id) else { return Slot::Back };
        let orders = match transfer.upload_orders(mirror) {
            Ok(orders) => orders,
            Err(fault) => {
                self.handle(id, Event::Local(fault), now);
                return Slot::Back;
            }
        };
        let stop = CancellationToken::new();
        transfer.said = None;
        let host = host.clone();
        transfer.running = Some(Running { stop: stop.clone(), host, guests: Vec::new(), answered: Answered::NotYet });
        self.handle(id, Event::Began, now);
        self.announce(id, mirror);
        self.spawn_upload(id, orders, &way, stop);
        Slot::Taken
    }

    fn unwish(&mut self, id: XferId) {
        if let Some(transfer) = self.transfers.get_mut(&id) {
            transfer.wanted = None;
        }
    }

    /// Does what stood in the way of a transfer still stand there?
    fn look_again(&mut self, id: XferId) -> Result<(), LocalFault> {
        let Some(transfer) = self.transfers.get_mut(&id) else { return Ok(()) };
        let record = transfer.record().clone();
        let Some(job) = admit::job_of(&record) else { return Ok(()) };
        match admit::admit(&job, Some(record.clone()), || record) {
            Admission::Refused(fault) => return Err(fault),
            Admission::Run(entry) => (transfer.clobber, transfer.revalidate) = (entry.clobber, entry.revalidate),
            Admission::Done { .. } => {}
        }
        transfer.blocked = None;
        Ok(())
    }

    fn announce(&mut self, id: XferId, mirror: usize) {
        let Some(transfer) = self.transfers.get(&id) else { return };
        let record = transfer.record();
        let Some(url) = transfer.url(mirror).cloned() else { return };
        let (number, held) = (record.sessions, held_of(record));
        let mirror = (mirror + 1, record.mirrors.len());
        (self.notices)(Notice::Session { id, number, url, mirror, held });
    }

    fn spawn(&mut self, id: XferId, orders: driver::Orders, way: Arc<Way>, stop: CancellationToken) {
        let outbox = self.mailbox.outbox.clone();
        let (clock, throttle) = (self.clock.clone(), self.brake(Direction::Download));
        let seed = rand::RngExt::random(&mut *self.rng);
        let task = self.lanes.spawn(move |clients| {
            let (credentials, user_agent) = (way.credentials.clone(), way.user_agent.clone());
            let hands = Hands { client: clients.of(&way), credentials, user_agent, throttle, clock, seed };
            let tell_box = outbox.clone();
            // The loop outlives its sessions, or nobody is interested any more.
            let tell = Box::new(move |tell| drop(tell_box.send((id, Mail::Tell(tell)))));
            async move {
                let closed = driver::run(orders, hands, tell, stop).await;
                drop(outbox.send((id, Mail::Closed(Box::new(closed)))));
            }
        });
        self.look_after(id, task);
    }

    /// What slows down bytes that go this way.
    pub(super) fn brake(&self, direction: Direction) -> Option<crate::io::transport::Throttle> {
        self.keeper.brake(direction).or_else(|| self.throttle.clone())
    }

    /// A session that ends in a defect of ours, or cannot begin, is told of like any other.
    pub(super) fn look_after(&self, id: XferId, task: Result<Task, LaneFault>) {
        let post = self.mailbox.outbox.clone();
        match task {
            Ok(task) => drop(tokio::task::spawn_local(async move {
                if let TaskEnd::Panicked(message) = task.await {
                    drop(post.send((id, Mail::Panicked(message))));
                }
            })),
            Err(fault) => drop(post.send((id, Mail::Panicked(fault.to_string())))),
        }
    }
}
