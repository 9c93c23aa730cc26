//! The loop: inbox and timers in, machines driven, actions carried out. What is decided is decided below.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use crate::core::hosts::{Gate, Hosts};
use crate::core::machine::{Cx, Machine};
use crate::core::pers_xfer::record::XferId;
use crate::core::pers_xfer::{Action, Event, Urgency};
use crate::core::range::Length;
use crate::core::time::{Delay, Mono, Now};
use crate::core::url::Origin;
use crate::engine::hosts::key_of;
use crate::engine::persist::Persist;
use crate::engine::transfer::{Interrupted, Phase, Running, Transfer};
use crate::engine::{EngineError, Notice, Report, Settings, Stop};
use crate::io::clock::Clock;
use crate::io::driver::{self, Closed, Hands, Tell};
use crate::io::lane::{Lanes, TaskEnd};
use crate::io::transport::{Client, Throttle};

/// After a wish to stop, sessions have so long to write out what they hold.
const DRAIN: Delay = Delay::from_millis(1_500);

/// What reaches the loop from sessions.
#[derive(Debug)]
pub(super) enum Mail {
    Tell(Tell),
    Closed(Box<Closed>),
    Panicked(String),
}

/// The state of the loop.
pub(super) struct Supervisor<'a> {
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    pub(super) rng: Box<dyn rand::Rng>,
    pub(super) lanes: Lanes<Client>,
    pub(super) throttle: Option<Throttle>,
    pub(super) persist: Persist,
    pub(super) hosts: Hosts,
    pub(super) transfers: BTreeMap<XferId, Transfer>,
    pub(super) notices: &'a mut dyn FnMut(Notice),
    mailbox: Mailbox,
    queue: VecDeque<XferId>,
    timers: BTreeSet<(Mono, XferId)>,
    running: usize,
    per_host: BTreeMap<Origin, usize>,
    interrupted: Interrupted,
}

/// The two ends of the inbox.
pub(super) struct Mailbox {
    outbox: UnboundedSender<(XferId, Mail)>,
    inbox: UnboundedReceiver<(XferId, Mail)>,
}

impl Mailbox {
    pub(super) fn new() -> Self {
        let (outbox, inbox) = unbounded_channel();
        Self { outbox, inbox }
    }
}

/// What a supervisor is made of.
pub(super) struct Parts<'a> {
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    pub(super) rng: Box<dyn rand::Rng>,
    pub(super) lanes: Lanes<Client>,
    pub(super) throttle: Option<Throttle>,
    pub(super) persist: Persist,
    pub(super) hosts: Hosts,
    pub(super) notices: &'a mut dyn FnMut(Notice),
}

impl<'a> Supervisor<'a> {
    pub(super) fn new(parts: Parts<'a>) -> Self {
        let Parts { settings, clock, rng, lanes, throttle, persist, hosts, notices } = parts;
        Self {
            settings,
            clock,
            rng,
            lanes,
            throttle,
            persist,
            hosts,
            transfers: BTreeMap::new(),
            notices,
            mailbox: Mailbox::new(),
            queue: VecDeque::new(),
            timers: BTreeSet::new(),
            running: 0,
            per_host: BTreeMap::new(),
            interrupted: Interrupted::No,
        }
    }

    /// Takes up a transfer.
    pub(super) fn take_up(&mut self, transfer: Transfer, urgency: Urgency, first: Event) {
        let now = self.clock.now();
        let id = transfer.id();
        let record = transfer.record();
        let notice = Notice::Accepted {
            id,
            name: record.name.clone(),
            path: record.path.clone(),
            held: record.dossier.part.held,
            total: record.nbytes,
        };
        (self.notices)(notice);
        if transfer.revalidate.is_none() {
            self.persist.mark(id, urgency, now.mono);
        }
        self.transfers.insert(id, transfer);
        self.handle(id, first, now);
    }

    /// Runs until nothing more is to be done, or until told to stop.
    pub(super) async fn run(&mut self, stop: &Stop) -> Result<(), EngineError> {
        let deadline = self.settings.max_time.map(|d| self.clock.now().mono + d);
        while self.transfers.values().any(|t| t.phase == Phase::Active) {
            self.start_queued();
            self.persist_if_due()?;
            let now = self.clock.now();
            let wake = self.next_wake(deadline);
            tokio::select! {
                biased;
                () = stop.requested() => {
                    self.interrupted = Interrupted::Yes;
                    break;
                }
                mail = self.mailbox.inbox.recv() => self.receive(mail),
                () = sleep_until(wake, now.mono) => {}
            }
            if deadline.is_some_and(|d| self.clock.now().mono >= d) {
                break;
            }
            self.fire_timers();
        }
        self.drain().await;
        self.save_all()
    }

    /// Closes the part files of whatever is left, so that what they hold is known to the next run.
    pub(super) fn let_go(&mut self) {
        self.transfers.values_mut().for_each(Transfer::let_go);
    }

    /// The reports, by transfer.
    pub(super) fn reports(&self) -> BTreeMap<XferId, Report> {
        self.transfers.iter().map(|(id, t)| (*id, t.report(self.interrupted))).collect()
    }

    fn next_wake(&self, deadline: Option<Mono>) -> Option<Mono> {
        let timer = self.timers.first().map(|(at, _)| *at);
        [timer, self.persist.due(), deadline].into_iter().flatten().min()
    }

    fn fire_timers(&mut self) {
        let now = self.clock.now();
        while let Some((at, id)) = self.timers.first().copied() {
            if at > now.mono {
                break;
            }
            self.timers.remove(&(at, id));
            if let Some(transfer) = self.transfers.get_mut(&id) {
                transfer.timer = None;
            }
            self.handle(id, Event::Wake, now);
        }
    }

    /// Takes the mail that came, and what else has come meanwhile.
    fn receive(&mut self, mail: Option<(XferId, Mail)>) {
        let mut next = mail;
        while let Some((id, mail)) = next {
            let now = self.clock.now();
            match mail {
                Mail::Tell(tell) => self.told(id, tell, now),
                Mail::Closed(closed) => self.closed(id, *closed, now),
                Mail::Panicked(message) => self.panicked(id, &message, now),
            }
            next = self.mailbox.inbox.try_recv().ok();
        }
    }

    fn told(&mut self, id: XferId, tell: Tell, now: Now) {
        match tell {
            Tell::Learned(dossier) => {
                let total = dossier.part.total;
                (self.notices)(Notice::Learned { id, path: None, total });
                self.handle(id, Event::Learned(dossier), now);
            }
            Tell::Named(path) => {
                (self.notices)(Notice::Learned { id, path: Some(path.clone()), total: None });
                self.handle(id, Event::Named(path), now);
            }
            Tell::Progress { held, received } => {
                if let Some(transfer) = self.transfers.get_mut(&id) {
                    transfer.moved(held, received);
                }
                (self.notices)(Notice::Progress { id, held });
                self.handle(id, Event::Progress { held }, now);
            }
            Tell::Verifying => (self.notices)(Notice::Verifying { id }),
            Tell::Remark(text) => (self.notices)(Notice::Remark { id: Some(id), text }),
        }
    }

    fn closed(&mut self, id: XferId, closed: Closed, now: Now) {
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        let Closed { outcome, finished, store, received } = closed;
        let Some(running) = transfer.session_closed(store, received) else { return };
        self.free_slot(&running.host);
        self.report_to_host(id, &running.host, &outcome, now);
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        let (outcome, finished) = transfer.settle(outcome, finished);
        self.handle(id, Event::Ended(Box::new(outcome), finished), now);
    }

    /// A defect of ours ended a session: its files are as they were, and the transfer says so and rests.
    fn panicked(&mut self, id: XferId, message: &str, now: Now) {
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        let Some(running) = transfer.session_closed(None, Length::ZERO) else { return };
        self.free_slot(&running.host);
        self.handle(id, Event::Local(transfer_defect(message)), now);
    }

    /// Feeds a machine, and carries out what it wishes for.
    fn handle(&mut self, id: XferId, event: Event, now: Now) {
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        let mut out = Vec::new();
        let changes = transfer.record().dossier.changes;
        transfer.machine.handle(event, &mut Cx { now, rng: &mut *self.rng, out: &mut out });
        if let Some(text) = transfer.changed_since(changes) {
            (self.notices)(Notice::Remark { id: Some(id), text });
        }
        for action in out {
            self.act(id, action, now);
        }
        self.set_timer(id);
        if let Some(notice) = self.transfers.get_mut(&id).and_then(|t| t.waiting(now)) {
            (self.notices)(notice);
        }
    }

    fn set_timer(&mut self, id: XferId) {
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        let wanted = transfer.wake_at();
        if transfer.timer != wanted {
            if let Some(old) = transfer.timer {
                self.timers.remove(&(old, id));
            }
            transfer.timer = wanted;
            self.timers.extend(wanted.map(|at| (at, id)));
        }
    }

    fn act(&mut self, id: XferId, action: Action, now: Now) {
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        match action {
            Action::Start { mirror, freshness } => {
                transfer.wish = Some((mirror, freshness));
                self.queue.push_back(id);
            }
            Action::Cancel => match &transfer.running {
                Some(running) => running.stop.cancel(),
                None => transfer.wish = None,
            },
            Action::DropBytes => {
                if let Err(fault) = transfer.drop_bytes() {
                    let text = format!("the part file could not be removed: {fault}");
                    (self.notices)(Notice::Remark { id: Some(id), text });
                }
            }
            Action::Save(urgency) => {
                let urgency = transfer.how_soon(urgency);
                self.persist.mark(id, urgency, now.mono);
            }
            Action::Failed { mirror, failure, class, refused } => {
                if let Some(url) = transfer.url(mirror).cloned() {
                    (self.notices)(Notice::Failed { id, url, failure, class, refused });
                }
            }
            Action::Rest(fault) => transfer.phase = Phase::Resting(fault),
            Action::Over => self.over(id),
        }
    }

    fn over(&mut self, id: XferId) {
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        transfer.phase = Phase::Over;
        transfer.let_go();
        let report = transfer.report(self.interrupted);
        (self.notices)(Notice::Ended(report));
    }

    /// Starts what waits for a slot, in order, as far as slots and hosts allow.
    fn start_queued(&mut self) {
        for _ in 0..self.queue.len() {
            if self.running >= self.settings.max_transfers {
                return;
            }
            let Some(id) = self.queue.pop_front() else { return };
            if !self.start(id) {
                self.queue.push_back(id);
            }
        }
    }

    /// Starts the session wished for. `false` where its host has no slot, so that it must wait in the queue.
    fn start(&mut self, id: XferId) -> bool {
        let now = self.clock.now();
        let Some(transfer) = self.transfers.get_mut(&id) else { return true };
        let Some((mirror, freshness)) = transfer.wish else { return true };
        let Some(url) = transfer.url(mirror).cloned() else { return true };
        let host = url.origin();
        if self.per_host.get(&host).copied().unwrap_or(0) >= self.settings.max_per_host {
            return false;
        }
        if let Gate::Closed { until, .. } = self.hosts.gate(&key_of(&host), now) {
            transfer.wish = None;
            self.handle(id, Event::HostClosed { until }, now);
            return true;
        }
        transfer.wish = None;
        transfer.said = None;
        let Some(orders) = transfer.orders(mirror, freshness, &self.settings) else { return true };
        let stop = CancellationToken::new();
        transfer.running = Some(Running { stop: stop.clone(), host: host.clone(), received: Length::ZERO });
        self.running += 1;
        *self.per_host.entry(host).or_default() += 1;
        self.handle(id, Event::Began, now);
        self.announce(id, mirror);
        self.spawn(id, orders, stop);
        true
    }

    fn announce(&mut self, id: XferId, mirror: usize) {
        let Some(transfer) = self.transfers.get(&id) else { return };
        let record = transfer.record();
        let Some(url) = transfer.url(mirror).cloned() else { return };
        let (number, held) = (record.sessions, record.dossier.part.held);
        let mirror = (mirror + 1, record.mirrors.len());
        (self.notices)(Notice::Session { id, number, url, mirror, held });
    }

    fn spawn(&mut self, id: XferId, orders: driver::Orders, stop: CancellationToken) {
        let outbox = self.mailbox.outbox.clone();
        let (clock, throttle) = (self.clock.clone(), self.throttle.clone());
        let (credentials, user_agent) = (self.settings.credentials.clone(), self.settings.net.user_agent.clone());
        let seed = rand::RngExt::random(&mut *self.rng);
        let post = outbox.clone();
        let task = self.lanes.spawn(move |client| {
            let hands = Hands { client: (*client).clone(), credentials, user_agent, throttle, clock, seed };
            let tell_box = outbox.clone();
            // The loop outlives its sessions, or nobody is interested any more.
            let tell = Box::new(move |tell| drop(tell_box.send((id, Mail::Tell(tell)))));
            async move {
                let closed = driver::run(orders, hands, tell, stop).await;
                drop(outbox.send((id, Mail::Closed(Box::new(closed)))));
            }
        });
        match task {
            Ok(task) => drop(tokio::task::spawn_local(async move {
                if let TaskEnd::Panicked(message) = task.await {
                    drop(post.send((id, Mail::Panicked(message))));
                }
            })),
            Err(fault) => drop(post.send((id, Mail::Panicked(fault.to_string())))),
        }
    }

    fn free_slot(&mut self, host: &Origin) {
        self.running = self.running.saturating_sub(1);
        if let Some(n) = self.per_host.get_mut(host) {
            *n = n.saturating_sub(1);
            if *n == 0 {
                self.per_host.remove(host);
            }
        }
    }

    fn persist_if_due(&mut self) -> Result<(), EngineError> {
        if self.persist.due().is_some_and(|due| due <= self.clock.now().mono) {
            self.save()?;
        }
        Ok(())
    }

    fn save(&mut self) -> Result<(), EngineError> {
        let transfers = &self.transfers;
        self.persist.flush(|id| transfers.get(&id).map(Transfer::record)).map_err(EngineError::State)
    }

    /// Everything that is not over is stored as it stands.
    fn save_all(&mut self) -> Result<(), EngineError> {
        let now = self.clock.now();
        let ids: Vec<XferId> = self.transfers.values().filter(|t| t.is_to_be_stored()).map(Transfer::id).collect();
        for id in ids {
            self.persist.mark(id, Urgency::Now, now.mono);
        }
        self.save()
    }

    /// Tells every session to end, and waits a moment for what they hold.
    async fn drain(&mut self) {
        let now = self.clock.now();
        let until = now.mono + DRAIN;
        let ids: Vec<XferId> = self.transfers.keys().copied().collect();
        for id in ids {
            if let Some(running) = self.transfers.get(&id).and_then(|t| t.running.as_ref()) {
                running.stop.cancel();
            }
            self.handle(id, Event::Paused, now);
        }
        while self.running > 0 {
            let now = self.clock.now().mono;
            if now >= until {
                break;
            }
            tokio::select! {
                mail = self.mailbox.inbox.recv() => self.receive(mail),
                () = sleep_until(Some(until), now) => {}
            }
        }
    }
}

fn transfer_defect(message: &str) -> crate::core::failure::LocalFault {
    let detail = format!("a defect of persxfer, please report it: {message}");
    crate::core::failure::LocalFault::Io { doing: "run", path: "the session".to_owned(), detail }
}

async fn sleep_until(wake: Option<Mono>, now: Mono) {
    match wake {
        Some(at) => tokio::time::sleep(at.since(now).as_std()).await,
        None => std::future::pending().await,
    }
}
