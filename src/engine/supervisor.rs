//! The loop: inbox and timers in, machines driven, actions carried out. What is decided is decided below.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::core::failure::LocalFault;
use crate::core::file_xfer::Outcome;
use crate::core::hosts::{HostKey, Hosts};
use crate::core::machine::{Cx, Machine};
use crate::core::pers_xfer::record::XferId;
use crate::core::pers_xfer::{Action, Event, PersFileXfer, Urgency, View};
use crate::core::range::Length;
use crate::core::schedule::Slots;
use crate::core::state::Document;
use crate::core::time::{Mono, Now};
use crate::core::url::Origin;
use crate::engine::claims::Keep;
use crate::engine::desk::Desk;
use crate::engine::ended::Why;
use crate::engine::gate::Keeper;
use crate::engine::hosts::key_of;
use crate::engine::mail::{Mail, Mailbox};
use crate::engine::persist::Persist;
use crate::engine::reports::Reports;
use crate::engine::slots;
use crate::engine::transfer::{Running, Transfer};
use crate::engine::uploads::Uploads;
use crate::engine::watch::Watch;
use crate::engine::way::{LaneClients, Ways};
use crate::engine::world::World;
use crate::engine::{EngineError, Feed, Notice, Report, Service, Settings, Stop};
use crate::io::clock::Clock;
use crate::io::driver::{Closed, Tell};
use crate::io::lane::Lanes;
use crate::io::part::Spec;
use crate::io::transport::Throttle;

/// The state of the loop.
pub(super) struct Supervisor<'a> {
    pub(super) settings: Settings,
    pub(super) service: Option<Service>,
    /// Jobs that come meanwhile.
    pub(super) feed: Option<Feed>,
    /// Transfers that end with their session, whatever comes of it.
    pub(super) leaving: BTreeSet<XferId>,
    pub(super) clock: Clock,
    pub(super) rng: Box<dyn rand::Rng>,
    pub(super) lanes: Lanes<LaneClients>,
    /// How part files are opened.
    pub(super) spec: Spec,
    pub(super) ways: Ways,
    pub(super) throttle: Option<Throttle>,
    pub(super) persist: Persist,
    pub(super) hosts: Hosts,
    /// The hosts that this process has heard of itself.
    pub(super) heard_of: BTreeSet<HostKey>,
    pub(super) transfers: BTreeMap<XferId, Transfer>,
    /// Transfers of ours that are new and wait for their first slot; they are made from the state when they get it.
    pub(super) fresh: BTreeSet<XferId>,
    /// The state file as last read or written.
    pub(super) seen: Document,
    pub(super) watch: Watch,
    pub(super) slots: Slots,
    pub(super) uploads: Uploads,
    pub(super) reports: Reports,
    pub(super) keeper: Keeper,
    /// Who waits for a host that backs off.
    pub(super) waiting_for: BTreeMap<Origin, BTreeSet<XferId>>,
    pub(super) ended: BTreeMap<XferId, Report>,
    pub(super) notices: &'a mut dyn FnMut(Notice),
    pub(super) mailbox: Mailbox,
    pub(super) desk: Desk,
    /// A transfer that is made because a slot is free for it.
    pub(super) getting_its_slot: Option<XferId>,
    timers: BTreeSet<(Mono, XferId)>,
    why: Why,
}

/// What a supervisor is made of.
pub(super) struct Parts<'a> {
    pub(super) world: World,
    pub(super) settings: Settings,
    pub(super) service: Option<Service>,
    pub(super) throttle: Option<Throttle>,
    pub(super) persist: Persist,
    pub(super) hosts: Hosts,
    pub(super) seen: Document,
    pub(super) notices: &'a mut dyn FnMut(Notice),
}

impl<'a> Supervisor<'a> {
    pub(super) fn new(parts: Parts<'a>) -> Self {
        let Parts { world, settings, service, throttle, persist, hosts, seen, notices } = parts;
        let World { clock, rng, lanes, spec, looks, network } = world;
        let prefs = Arc::clone(&settings.prefs);
        Self {
            slots: Slots::new(slots::limits(&settings, &settings.prefs.sessions)),
            keeper: Keeper::new(&settings, service.is_some(), throttle.as_ref(), seen.history().clone(), &clock),
            watch: Watch::new(clock.now().mono, looks),
            uploads: Uploads::default(),
            reports: Reports::default(),
            settings,
            service,
            feed: None,
            leaving: BTreeSet::new(),
            clock,
            rng,
            lanes,
            spec,
            ways: Ways::new(prefs, network),
            throttle,
            persist,
            hosts,
            heard_of: BTreeSet::new(),
            transfers: BTreeMap::new(),
            fresh: BTreeSet::new(),
            seen,
            waiting_for: BTreeMap::new(),
            ended: BTreeMap::new(),
            notices,
            mailbox: Mailbox::new(),
            desk: Desk::default(),
            getting_its_slot: None,
            timers: BTreeSet::new(),
            why: Why::OutOfTime,
        }
    }

    /// Runs until nothing more is to be done, or until told to stop.
    pub(super) async fn run(&mut self, stop: &Stop) -> Result<(), EngineError> {
        let deadline = self.settings.max_time.map(|d| self.clock.now().mono + d);
        loop {
            self.mind_the_gate();
            if let Some(why) = self.is_barred() {
                self.why = Why::Barred(why);
                break;
            }
            self.claim_more()?;
            self.start_queued();
            self.persist_if_due()?;
            self.send_reports()?;
            // What was to start may have come to its end instead.
            if !self.has_work() {
                // The last write may meet a wish that has one of them begin again.
                self.save(Keep::Ours)?;
                if !self.has_work() {
                    break;
                }
            }
            let now = self.clock.now();
            let wake = self.next_wake(deadline);
            let (steer, brakes, feed) = (self.settings.steer.clone(), self.keeper.brakes(), self.feed.clone());
            tokio::select! {
                biased;
                () = stop.requested() => {
                    self.why = Why::Interrupted;
                    break;
                }
                mail = self.mailbox.recv() => self.receive(mail),
                ask = self.desk.next() => self.answer(ask),
                () = steer.said() => {}
                () = said(feed.as_ref()) => {}
                () = Keeper::spent(brakes) => self.keeper.ask_soon(),
                () = sleep_until(wake, now.mono) => {}
            }
            if deadline.is_some_and(|d| self.clock.now().mono >= d) {
                break;
            }
            self.fed()?;
            self.fire_timers();
            self.watch_others()?;
        }
        self.drain().await;
        self.leave()?;
        self.finish_cleaning(stop).await;
        Ok(())
    }

    fn has_work(&self) -> bool {
        let more = match self.service {
            None | Some(Service::UntilDone) => self.watch.has_candidates(),
            Some(Service::Forever) => true,
        };
        let fed = self.feed.as_ref().is_some_and(Feed::is_open);
        more || fed || self.has_reports() || !self.transfers.is_empty() || !self.fresh.is_empty()
    }

    fn next_wake(&self, deadline: Option<Mono>) -> Option<Mono> {
        let timer = self.next_timer();
        let look = self.looks_at_others().then(|| self.watch.due());
        let claim = self.may_claim_more().then_some(Mono::ZERO);
        [
            timer,
            self.persist.due(),
            deadline,
            look,
            claim,
            self.slots.wake_at(),
            self.keeper.wake(),
            self.reports.wake(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// When the next transfer is to be driven.
    pub(super) fn next_timer(&self) -> Option<Mono> {
        self.timers.first().map(|(at, _)| *at)
    }

    fn fire_timers(&mut self) {
        let now = self.clock.now();
        self.slots.tick(now.mono);
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
    pub(super) fn receive(&mut self, mail: Option<(XferId, Mail)>) {
        let mut next = mail;
        while let Some((id, mail)) = next {
            let now = self.clock.now();
            self.slots.heard(id, now.mono);
            match mail {
                Mail::Tell(tell) => self.told(id, tell, now),
                Mail::Closed(closed) => self.closed(id, *closed, now),
                Mail::Upload(tell) => self.told_of_upload(id, tell, now),
                Mail::UploadClosed(closed) => self.upload_closed(id, *closed, now),
                Mail::Reported(told) => self.reported(id, told, now),
                Mail::Cleaned(cleaned) => self.cleaned(id, &cleaned),
                Mail::Panicked(message) => self.panicked(id, &message, now),
            }
            next = self.mailbox.try_recv();
        }
    }

    fn told(&mut self, id: XferId, tell: Tell, now: Now) {
        match tell {
            Tell::Learned(dossier) => {
                if let Some(transfer) = self.transfers.get_mut(&id) {
                    transfer.is_superseded();
                }
                self.host_answered(id, now);
                let total = dossier.part.total;
                (self.notices)(Notice::Learned { id, path: None, total });
                self.handle(id, Event::Learned(dossier), now);
            }
            Tell::Named(path) => {
                (self.notices)(Notice::Learned { id, path: Some(path.clone()), total: None });
                self.handle(id, Event::Named(path), now);
            }
            Tell::Progress { held, .. } => {
                self.host_answered(id, now);
                if let Some(transfer) = self.transfers.get_mut(&id) {
                    transfer.held = held;
                }
                (self.notices)(Notice::Progress { id, held });
                self.handle(id, Event::Progress { held }, now);
            }
            Tell::Beside(beside) => self.told_beside(id, *beside, now),
            Tell::Duplicates(named) => self.duplicates(id, named, now),
            Tell::Verifying => (self.notices)(Notice::Verifying { id }),
            Tell::Remark(text) => (self.notices)(Notice::Remark { id: Some(id), text }),
        }
    }

    pub(super) fn closed(&mut self, id: XferId, closed: Closed, now: Now) {
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        let Closed { outcome, finished, store, received, rate } = closed;
        let Some(running) = transfer.session_closed(store, received) else { return };
        self.vacate(id, &running);
        let outcome = self.network_news(&running.host, outcome, now);
        self.report_to_host(id, &running.host, &outcome, now);
        if let (Some(rate), Some(origin)) = (rate, &outcome.origin) {
            self.measured(origin, rate);
        }
        self.rank_mirrors(id);
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        if let Some(loss) = transfer.lost.clone() {
            return self.finish(id, &Why::Lost(loss));
        }
        let (outcome, finished) = transfer.settle(outcome, finished);
        self.handle(id, Event::Ended(Box::new(outcome), finished), now);
        if self.leaving.remove(&id) {
            self.finish(id, &Why::Interrupted);
        }
    }

    /// The room that a session took is free again.
    fn vacate(&mut self, id: XferId, running: &Running) {
        self.slots.free(id);
        running.guests.iter().for_each(|host| self.slots.leave(host));
    }

    /// A defect of ours ended a session: its files are as they were, and the transfer says so and rests.
    fn panicked(&mut self, id: XferId, message: &str, now: Now) {
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        let Some(running) = transfer.session_closed(None, Length::ZERO) else { return };
        let (dossier, direction) = (transfer.record().dossier.clone(), transfer.record().direction);
        self.vacate(id, &running);
        self.hosts.probe_abandoned(&key_of(&running.host, direction));
        let outcome = Outcome {
            dossier,
            origin: None,
            end: crate::core::file_xfer::End::Failed(crate::core::failure::Failure::Local(defect(message))),
        };
        self.handle(id, Event::Ended(Box::new(outcome), None), now);
    }

    /// Feeds a machine, and carries out what it wishes for.
    pub(super) fn handle(&mut self, id: XferId, event: Event, now: Now) {
        self.drive(id, now, |machine, cx| machine.handle(event, cx));
    }

    /// The same, of whatever a machine is told.
    pub(super) fn drive(&mut self, id: XferId, now: Now, tell: impl FnOnce(&mut PersFileXfer, &mut Cx<'_, Action>)) {
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        let mut out = Vec::new();
        let changes = transfer.record().dossier.changes;
        tell(&mut transfer.machine, &mut Cx { now, rng: &mut *self.rng, out: &mut out });
        if let Some(text) = transfer.changed_since(changes) {
            (self.notices)(Notice::Remark { id: Some(id), text });
        }
        for action in out {
            self.act(id, action, now);
        }
        self.set_timer(id);
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        if let Some(notice) = transfer.waiting(&self.keeper, now) {
            (self.notices)(notice);
        }
        // What nobody watches does not keep a process for it; `resume` changes its record.
        let suspended = matches!(self.transfers.get(&id).map(|t| t.machine.view()), Some(View::Suspended));
        if suspended && self.service.is_some() {
            self.persist.mark(id, Urgency::Now, now.mono);
            self.finish(id, &Why::Suspended);
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
                transfer.wanted = Some((mirror, freshness));
                self.queue(id, mirror);
            }
            Action::Cancel => match &transfer.running {
                Some(running) => running.stop.cancel(),
                None => transfer.wanted = None,
            },
            Action::DropBytes => {
                if let Err(fault) = transfer.drop_bytes() {
                    let text = format!("the part file could not be removed: {fault}");
                    (self.notices)(Notice::Remark { id: Some(id), text });
                }
            }
            Action::Save(_) if transfer.only_asks() => {}
            Action::Save(urgency) => {
                let urgency = transfer.how_soon(urgency);
                self.persist.mark(id, urgency, now.mono);
            }
            Action::Failed { mirror, failure, class, refused } => {
                if let Some(url) = transfer.url(mirror).cloned() {
                    (self.notices)(Notice::Failed { id, url, failure, class, refused });
                }
            }
            Action::Rest(fault) => self.finish(id, &Why::Rests(fault)),
            Action::Over => self.finish(id, &Why::Over),
        }
    }

    /// Nothing more is done for a transfer in this run: its files are closed, its report is made, its record is nobody's
    /// with the next write.
    pub(super) fn finish(&mut self, id: XferId, why: &Why) {
        let Some(mut transfer) = self.transfers.remove(&id) else { return };
        if let Some(at) = transfer.timer {
            self.timers.remove(&(at, id));
        }
        transfer.let_go();
        let report = transfer.report(why);
        match why {
            Why::Lost(_) => self.persist.drop(id),
            _ => {
                let record = transfer.machine.into_record();
                self.clean_up_after(&record, &transfer.way);
                self.persist.part_with(record, transfer.obeyed);
            }
        }
        self.tell_end(report);
    }

    pub(super) fn tell_end(&mut self, report: Option<Report>) {
        let Some(report) = report else { return };
        (self.notices)(Notice::Ended(report.clone()));
        // A service would remember for ever.
        if self.service != Some(Service::Forever) && self.feed.is_none() {
            self.ended.insert(report.id, report);
        }
    }

    /// Why transfers that are not over are not.
    pub(super) fn why(&self) -> &Why {
        &self.why
    }
}

pub(super) fn defect(message: &str) -> LocalFault {
    let detail = format!("a defect of persxfer, please report it: {message}");
    LocalFault::Io { doing: "run", path: "the session".to_owned(), detail }
}

async fn said(feed: Option<&Feed>) {
    match feed {
        Some(feed) => feed.said().await,
        None => std::future::pending().await,
    }
}

pub(super) async fn sleep_until(wake: Option<Mono>, now: Mono) {
    match wake {
        Some(at) => tokio::time::sleep(at.since(now).as_std()).await,
        None => std::future::pending().await,
    }
}
