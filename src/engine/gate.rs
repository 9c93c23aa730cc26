//! The gate in the supervisor's hands: it is asked when its time has come, what it says holds at once for all that runs, and
//! what passes is counted. What it says is decided in [`crate::core::schedule`].

use std::sync::Arc;

use crate::core::civil::{Day, Zone};
use crate::core::file_xfer::{End, Outcome};
use crate::core::pers_xfer::Event;
use crate::core::pers_xfer::record::{Direction, XferId};
use crate::core::prefs::{Mode, PerDirection, Preferences};
use crate::core::schedule::{
    History, Limits, Network, NetworkMode, Outlook, Outside, Reason, SaidMode, Sign, Turned, Way, outlook, sign_of,
};
use crate::core::time::{Delay, Mono, Now};
use crate::core::url::{MirrorUrl, Origin};
use crate::engine::slots;
use crate::engine::supervisor::Supervisor;
use crate::engine::{Rounds, Settings};
use crate::io::clock::{self, Clock};
use crate::io::transport::Throttle;

/// What passed is stored at the latest after so long (BOINC's number).
const STORE: Delay = Delay::from_mins(1);
/// How local clocks stand is read again after so long, should nothing else ask for it.
const ZONE_AGAIN: Delay = Delay::from_hours(1);
/// So many transfers at most are asked whether they would probe the network.
const PROBERS: usize = 64;

const BOTH: [Direction; 2] = [Direction::Upload, Direction::Download];

/// Who keeps the gate.
#[derive(Debug)]
pub(super) struct Keeper {
    prefs: Arc<Preferences>,
    mode: NetworkMode,
    /// The mode was set for good, and that is not stored yet.
    unsaid: Option<Option<SaidMode>>,
    network: Network,
    outlook: Outlook,
    /// Where nothing restrains anybody, and nothing will, there are none.
    brakes: Option<PerDirection<Throttle>>,
    zone: (Zone, Mono),
    /// What of the brakes' counts is in the history.
    counted: PerDirection<u64>,
    /// A quota is used up when so many are.
    marks: PerDirection<Option<u64>>,
    stored: History,
    /// What passed and is not stored yet, and since when.
    fresh: History,
    fresh_since: Option<Mono>,
    /// It is to be asked, whatever the time.
    asked_for: bool,
    /// The transfers that probe the network, or did last.
    probers: Vec<XferId>,
}

impl Keeper {
    /// `lasting`: the run goes on, so that preferences can come that are not there yet.
    pub(super) fn new(
        settings: &Settings,
        lasting: bool,
        outer: Option<&Throttle>,
        stored: History,
        clock: &Clock,
    ) -> Self {
        let brake = || Throttle::within(outer.cloned(), clock.clone());
        let now = clock.now();
        let restrained = lasting || settings.prefs.restrain();
        Self {
            mode: NetworkMode::lasting(settings.prefs.mode),
            unsaid: None,
            prefs: Arc::clone(&settings.prefs),
            network: Network::default(),
            outlook: Outlook::free(now),
            brakes: restrained.then(|| PerDirection { up: brake(), down: brake() }),
            zone: (clock::zone(now.wall), now.mono),
            counted: PerDirection::default(),
            marks: PerDirection::default(),
            stored,
            fresh: History::default(),
            fresh_since: None,
            asked_for: true,
            probers: Vec::new(),
        }
    }

    /// The brake for what goes this way.
    pub(super) fn brake(&self, direction: Direction) -> Option<Throttle> {
        self.brakes.as_ref().map(|brakes| brakes.of(direction).clone())
    }

    /// How many sessions a host may have by its own preference.
    pub(super) fn sessions_of(&self, host: &Origin) -> Option<usize> {
        self.prefs.hosts.of(host).and_then(|prefs| prefs.sessions)
    }

    /// How many connections a file may have that comes from this host alone, by its own preference.
    pub(super) fn connections_of(&self, host: &Origin) -> Option<u16> {
        self.prefs.hosts.of(host).and_then(|prefs| prefs.connections)
    }

    /// Why nothing passes this way, where nothing does, and until when.
    pub(super) fn shut(&self, direction: Direction, now: Now) -> Option<(String, Option<Mono>)> {
        match self.outlook.ways.of(direction) {
            Way::Open { .. } => None,
            // Its next try is told beside it, and changes.
            Way::Shut { reason: Reason::Offline { .. }, until } => Some(("offline".to_owned(), *until)),
            Way::Shut { reason, until } => Some((reason.text(&self.zone.0, now.wall), *until)),
        }
    }

    /// Why something does not pass, where something does not: uploads first, as BOINC tells it.
    pub(super) fn reason(&self) -> Option<&Reason> {
        BOTH.into_iter().find_map(|direction| match self.outlook.ways.of(direction) {
            Way::Open { .. } => None,
            Way::Shut { reason, .. } => Some(reason),
        })
    }

    /// When it is to be asked again, or what passed is to be stored.
    pub(super) fn wake(&self) -> Option<Mono> {
        let store = self.fresh_since.map(|since| since + STORE);
        self.outlook.wake.into_iter().chain(store).min()
    }

    /// Has what passed waited long enough?
    pub(super) fn is_to_be_stored(&self, now: Mono) -> bool {
        self.fresh_since.is_some_and(|since| since + STORE <= now)
    }

    /// The mode that a person set for good, where that is not stored yet.
    pub(super) const fn said_mode(&self) -> Option<Option<SaidMode>> {
        self.unsaid
    }

    /// A person had said so, before this run.
    pub(super) fn was_said(&mut self, said: Option<SaidMode>) {
        self.mode = NetworkMode::lasting(SaidMode::holding(said, self.prefs.mode));
        if said.is_some_and(|said| said.over != self.prefs.mode) {
            self.unsaid = Some(None);
        }
    }

    /// Who is told of failures, where a transfer does not say.
    pub(super) fn report_url(&self) -> Option<&MirrorUrl> {
        self.prefs.report_url.as_ref()
    }

    /// What passed and is not stored yet.
    pub(super) fn unstored(&self, now: Now) -> (History, Day) {
        (self.fresh.clone(), self.zone.0.civil(now.wall).day)
    }

    /// That was stored; this is what the state file holds now.
    pub(super) fn stored(&mut self, all: History) {
        (self.stored, self.fresh, self.fresh_since) = (all, History::default(), None);
        self.unsaid = None;
    }

    /// What the state file holds, as others may have left it.
    pub(super) fn read(&mut self, all: &History) {
        if self.stored != *all {
            self.stored = all.clone();
            self.asked_for = true;
        }
    }

    /// Other preferences hold. A mode that the file sets anew replaces what people said before.
    fn prefer(&mut self, prefs: Arc<Preferences>) {
        if prefs.mode != self.prefs.mode {
            self.mode = NetworkMode::lasting(prefs.mode);
            self.unsaid = Some(None);
        }
        self.prefs = prefs;
        self.asked_for = true;
    }

    fn count(&mut self, now: Now) {
        let Some(brakes) = &self.brakes else { return };
        for direction in BOTH {
            let passed = brakes.of(direction).passed();
            let before = std::mem::replace(self.counted.of_mut(direction), passed);
            if passed > before {
                let today = self.zone.0.civil(now.wall).day;
                self.fresh.count(today, direction, passed - before);
                self.fresh_since.get_or_insert(now.mono);
            }
            self.asked_for |= self.marks.of(direction).is_some_and(|mark| passed >= mark);
        }
    }

    fn look(&mut self, now: Now) -> Outlook {
        self.zone = (clock::zone(now.wall), now.mono);
        self.asked_for = false;
        let mut history = self.stored.clone();
        history.add(&self.fresh);
        let outside =
            Outside { history: &history, mode: self.mode, offline: self.network.offline(), zone: self.zone.0 };
        outlook(&self.prefs, &outside, now)
    }

    /// What is said of rates and quotas holds from now on.
    fn brake_as_said(&mut self) {
        self.marks = PerDirection::default();
        let Some(brakes) = &self.brakes else { return };
        for direction in BOTH {
            if let Way::Open { rate, left } = self.outlook.ways.of(direction) {
                let (brake, mark) = (brakes.of(direction), self.marks.of_mut(direction));
                brake.set_rate(*rate);
                *mark = left.map(|left| self.counted.of(direction).saturating_add(left.bytes.0));
                brake.set_mark(*mark);
            }
        }
    }

    fn limits(&self, settings: &Settings) -> Limits {
        let limits = slots::limits(settings, &self.prefs.sessions);
        let probing = self.network.is_probing();
        let shut = |direction| match self.outlook.ways.of(direction) {
            // A single session goes and sees.
            Way::Shut { reason: Reason::Offline { .. }, .. } if probing => Some(1),
            Way::Shut { .. } => Some(0),
            Way::Open { .. } => *limits.per_direction.of(direction),
        };
        let rated = |direction| matches!(self.outlook.ways.of(direction), Way::Open { rate: Some(_), .. });
        Limits {
            all: if probing { 1 } else { limits.all },
            per_direction: PerDirection { up: shut(Direction::Upload), down: shut(Direction::Download) },
            // Those who wait for their share of a rate are silent, and not for their hosts' fault.
            quiet: limits.quiet.filter(|_| !BOTH.into_iter().any(rated)),
            ..limits
        }
    }

    /// A quota may be used up: returns when the gate is to be asked for that.
    pub(super) async fn spent(brakes: Option<PerDirection<Throttle>>) {
        match brakes {
            Some(PerDirection { up, down }) => tokio::select! {
                () = up.reached() => {}
                () = down.reached() => {}
            },
            None => std::future::pending().await,
        }
    }

    /// The brakes, for [`Keeper::spent`].
    pub(super) fn brakes(&self) -> Option<PerDirection<Throttle>> {
        self.brakes.clone()
    }

    /// Something may have changed that the gate depends on.
    pub(super) const fn ask_soon(&mut self) {
        self.asked_for = true;
    }
}

/// What keeps a direction shut, whatever its details.
fn why(outlook: &Outlook, direction: Direction) -> Option<std::mem::Discriminant<Reason>> {
    match outlook.ways.of(direction) {
        Way::Shut { reason, .. } => Some(std::mem::discriminant(reason)),
        Way::Open { .. } => None,
    }
}

impl Supervisor<'_> {
    /// Counts what passed, and asks the gate if it is time.
    pub(super) fn mind_the_gate(&mut self) {
        let now = self.clock.now();
        if let Some(prefs) = self.settings.steer.take() {
            self.ways.prefer(Arc::clone(&prefs));
            self.keeper.prefer(prefs);
            self.persist.write_soon(now.mono);
        }
        self.keeper.count(now);
        let old_zone = now.mono.since(self.keeper.zone.1) > ZONE_AGAIN;
        if self.keeper.asked_for || self.keeper.outlook.is_stale(now) || old_zone {
            self.ask_the_gate(now);
        }
    }

    /// What the gate says holds at once, for what runs as well.
    pub(super) fn ask_the_gate(&mut self, now: Now) {
        let was_probing = self.keeper.network.is_probing();
        let probes = self.keeper.network.probe(now.mono);
        let before = std::mem::replace(&mut self.keeper.outlook, Outlook::free(now));
        self.keeper.outlook = self.keeper.look(now);
        self.keeper.brake_as_said();
        let limits = self.keeper.limits(&self.settings);
        if self.slots.limits() != limits {
            self.slots.set_limits(limits);
        }
        for direction in BOTH {
            let (was, is) = (before.ways.of(direction).is_open(), self.keeper.outlook.ways.of(direction).is_open());
            match (was, is) {
                (true, false) => self.of_way(direction).into_iter().for_each(|id| self.pause(id, now)),
                (false, true) => {
                    self.of_way(direction).into_iter().for_each(|id| self.handle(id, Event::Unpaused, now));
                }
                // Why it is shut may be another reason now.
                (false, false) if why(&before, direction) != why(&self.keeper.outlook, direction) => {
                    self.of_way(direction).into_iter().for_each(|id| self.handle(id, Event::Paused, now));
                }
                _ => {}
            }
        }
        if probes {
            self.send_probe(now);
        } else if was_probing && !self.keeper.network.is_probing() {
            self.recall_probe(now);
        }
    }

    fn of_way(&self, direction: Direction) -> Vec<XferId> {
        self.transfers.iter().filter(|(_, t)| t.record().direction == direction).map(|(id, _)| *id).collect()
    }

    /// A transfer rests until the gate opens: its session ends, which counts for nothing.
    pub(super) fn pause(&mut self, id: XferId, now: Now) {
        if let Some(running) = self.transfers.get(&id).and_then(|t| t.running.as_ref()) {
            running.stop.cancel();
        }
        self.handle(id, Event::Paused, now);
    }

    /// One that was made while nothing may pass its way rests from the start.
    pub(super) fn pause_if_shut(&mut self, id: XferId, now: Now) {
        let direction = self.transfers.get(&id).map(|t| t.record().direction);
        if direction.is_none_or(|direction| self.keeper.outlook.ways.of(direction).is_open()) {
            return;
        }
        if self.keeper.network.is_probing() && self.getting_its_slot == Some(id) {
            return self.keeper.probers.push(id);
        }
        self.handle(id, Event::Paused, now);
    }

    /// Somebody whose time has come goes to see whether the network is back: another one each time. Those that are new
    /// stand in their lines anyway.
    fn send_probe(&mut self, now: Now) {
        let last = std::mem::take(&mut self.keeper.probers).pop();
        let later = self
            .transfers
            .range((last.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded), std::ops::Bound::Unbounded));
        let ids: Vec<XferId> = later.chain(self.transfers.iter()).map(|(id, _)| *id).take(PROBERS).collect();
        for id in ids {
            self.handle(id, Event::Unpaused, now);
            self.keeper.probers = vec![id];
            if self.transfers.get(&id).is_some_and(|t| t.wanted.is_some()) {
                return;
            }
            self.handle(id, Event::Paused, now);
        }
        if self.fresh.is_empty() {
            self.keeper.network.abandon(now.mono);
            self.keeper.ask_soon();
        }
    }

    /// The network is not back: who went to see rests again.
    fn recall_probe(&mut self, now: Now) {
        if self.keeper.network.offline().is_some() {
            let probers = self.keeper.probers.clone();
            probers.into_iter().for_each(|id| self.handle(id, Event::Paused, now));
        }
    }

    /// What a session's end says of the network. Where that is down, the end counts for nothing: nobody is to blame.
    pub(super) fn network_news(&mut self, host: &Origin, mut outcome: Outcome, now: Now) -> Outcome {
        let sign = match &outcome.end {
            End::Complete { .. } | End::Unchanged => Sign::Reached,
            End::Cancelled => Sign::Nothing,
            End::Failed(failure) => sign_of(failure),
        };
        self.network_sign(host, sign, now);
        if sign == Sign::NoNetwork && self.keeper.network.offline().is_some() {
            outcome.end = End::Cancelled;
        }
        outcome
    }

    /// The same, of a sign within a session.
    pub(super) fn network_sign(&mut self, host: &Origin, sign: Sign, now: Now) {
        // With one session a mirror, each is as good as any.
        if self.settings.rounds == Rounds::Once {
            return;
        }
        let asked = if sign == Sign::NoNetwork { self.hosts_asked() } else { 0 };
        let was_probing = self.keeper.network.is_probing();
        let turned = self.keeper.network.sign(host, sign, asked, now.mono);
        if turned != Turned::No || was_probing != self.keeper.network.is_probing() {
            self.keeper.ask_soon();
        }
    }

    /// How many hosts the transfers of this run go to; more than two need not be told apart.
    fn hosts_asked(&self) -> usize {
        let made = self.transfers.values().flat_map(|t| t.record().mirrors.iter().map(|m| m.url.origin()));
        let fresh = self.fresh.iter().flat_map(|id| self.seen.hosts_of(*id)).map(|key| key.origin);
        let mut hosts = made.chain(fresh);
        let first = hosts.next();
        let second = hosts.find(|host| Some(host) != first.as_ref());
        usize::from(first.is_some()) + usize::from(second.is_some())
    }

    /// Each mirror was to have one session, and nothing may pass: then this is all that there is to do.
    pub(super) fn is_barred(&self) -> Option<String> {
        // Whoever feeds a run waits with it.
        if self.settings.rounds != Rounds::Once || self.feed.is_some() {
            return None;
        }
        let now = self.clock.now();
        let fresh = self.fresh.iter().filter_map(|id| self.seen.hosts_of(*id).first().map(|key| key.direction));
        let ways = self.transfers.values().map(|t| t.record().direction).chain(fresh);
        let mut why = None;
        for way in ways {
            why = Some(self.keeper.shut(way, now)?.0);
        }
        why
    }
}

impl Supervisor<'_> {
    /// The network mode, as people set it.
    pub(super) const fn network_mode(&self) -> NetworkMode {
        self.keeper.mode
    }

    /// A person sets it, for so long, or for good.
    pub(super) fn set_network_mode(&mut self, mode: Mode, duration: Delay) {
        self.keeper.mode.set(mode, duration, self.clock.now().mono);
        if duration == Delay::ZERO {
            self.keeper.unsaid = Some(SaidMode::of(mode, self.keeper.prefs.mode));
            self.persist.write_soon(self.clock.now().mono);
        }
        self.keeper.ask_soon();
    }

    /// A person ends one that was to hold for a while.
    pub(super) fn restore_network_mode(&mut self) {
        self.keeper.mode.restore();
        self.keeper.ask_soon();
    }

    /// A person, or the system, says that the network is there.
    pub(super) fn network_available(&mut self) {
        self.keeper.network.changed(self.clock.now().mono);
        self.keeper.ask_soon();
    }
}
