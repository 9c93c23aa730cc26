//! Reports of failures to a scheduling server: whose turn it is, and what came of it. What is decided is decided in
//! [`crate::core::report`].
//!
//! The state file knows every report until it is settled. This process claims one there before it sends it, as it claims
//! transfers, so that no other sends it too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::core::failure::Failure;
use crate::core::hosts::{Change, Gate};
use crate::core::pers_xfer::options::NetOptions;
use crate::core::pers_xfer::record::{Direction, XferId};
use crate::core::pers_xfer::sharing::OwnerId;
use crate::core::report::{ErrorReport, Next, Reporting};
use crate::core::state::Document;
use crate::core::time::{Delay, Epoch, Mono, Now};
use crate::core::url::MirrorUrl;
use crate::core::verdict::{Context, HostSign, judge};
use crate::engine::claims::Living;
use crate::engine::hosts::{key_of, word_of};
use crate::engine::mail::Mail;
use crate::engine::supervisor::Supervisor;
use crate::engine::{EngineError, Notice, Rounds, Service};
use crate::io::driver::report::{Hands, NotTaken, Posting, post};

/// So many are sent at once.
const AT_ONCE: usize = 2;
/// So many are claimed with one write.
const CLAIMED: usize = 64;
/// One that cannot be tried now, for no fault of its server's, is looked at again after so long.
const LATER: Delay = Delay::from_secs(5);
/// And at the latest after so long.
const LATEST: Delay = Delay::from_mins(1);

/// What became of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reported {
    /// The server took it.
    Sent,
    /// Not yet: why, and when it is tried again.
    Later {
        /// What went wrong, printable.
        why: String,
        /// When.
        next: Epoch,
    },
    /// Its window has passed.
    GivenUp {
        /// What went wrong last, printable.
        why: String,
    },
}

/// The reports that this process knows of.
#[derive(Debug, Default)]
pub(super) struct Reports {
    live: BTreeMap<XferId, Reporting>,
    due: BTreeSet<(Mono, XferId)>,
    /// Ours in the state file.
    claimed: BTreeSet<XferId>,
    sending: BTreeSet<XferId>,
}

/// What is to be done with reports in the state file, with its next write.
#[derive(Debug, Default)]
pub(super) struct Settling {
    pub(super) claim: BTreeSet<XferId>,
    pub(super) settled: BTreeMap<XferId, (ErrorReport, Left)>,
}

/// What is left of a report after a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing: it was taken, or is given up.
    Nothing,
    /// It is to be tried again.
    Again,
}

impl Settling {
    pub(super) fn is_empty(&self) -> bool {
        self.claim.is_empty() && self.settled.is_empty()
    }

    /// Does it: what was settled first. One that another living process sends is its own.
    pub(super) fn carry_out(&self, document: &mut Document, me: Option<OwnerId>, living: &mut Living<'_>) {
        for (id, (report, left)) in &self.settled {
            // The transfer may have failed once more meanwhile: that is another report.
            let stands = document.reports().iter().any(|r| is_same(r, report));
            match left {
                Left::Nothing if stands => document.drop_report(*id),
                Left::Again if stands => document.put_report(ErrorReport { owner: None, ..report.clone() }),
                Left::Nothing | Left::Again => {}
            }
        }
        let free: Vec<ErrorReport> = document
            .reports()
            .iter()
            .filter(|r| self.claim.contains(&r.id))
            .filter(|r| r.owner.is_none_or(|owner| Some(owner) == me || living.holder(owner).is_none()))
            .cloned()
            .collect();
        free.into_iter().for_each(|report| document.put_report(ErrorReport { owner: me, ..report }));
    }
}

/// They tell of the same failure.
fn is_same(one: &ErrorReport, other: &ErrorReport) -> bool {
    one.id == other.id && one.message == other.message && one.url == other.url
}

impl Reports {
    fn set_due(&mut self, id: XferId, before: Option<Mono>) {
        before.map(|at| self.due.remove(&(at, id)));
        self.due.extend(self.live.get(&id).map(|reporting| (reporting.due(), id)));
    }

    /// When the next one is due that is not on its way.
    pub(super) fn wake(&self) -> Option<Mono> {
        self.due.iter().find(|(_, id)| !self.sending.contains(id)).map(|(at, _)| *at).filter(|_| self.has_room())
    }

    fn has_room(&self) -> bool {
        self.sending.len() < AT_ONCE
    }

    fn forget(&mut self, id: XferId) {
        if let Some(gone) = self.live.remove(&id) {
            self.due.remove(&(gone.due(), id));
        }
        self.claimed.remove(&id);
    }
}

impl Supervisor<'_> {
    /// The state file holds these reports now.
    pub(super) fn meet_reports(&mut self, stored: &[ErrorReport]) {
        let now = self.clock.now();
        if stored.is_empty() && self.reports.live.is_empty() {
            return;
        }
        let ids: BTreeSet<XferId> = stored.iter().map(|report| report.id).collect();
        let gone: Vec<XferId> = self
            .reports
            .live
            .keys()
            .filter(|id| !ids.contains(id) && !self.reports.sending.contains(id))
            .copied()
            .collect();
        gone.into_iter().for_each(|id| self.reports.forget(id));
        let me = self.persist.claims.me();
        let mut living = Living::new(self.persist.path());
        for report in stored {
            let ours = report.owner.is_some() && report.owner == me;
            let of_another = report.owner.is_some_and(|owner| !ours && living.holder(owner).is_some());
            if of_another || !self.is_to_report(report.id) {
                continue;
            }
            if ours {
                self.reports.claimed.insert(report.id);
            }
            let known = self.reports.live.get(&report.id);
            if known.is_none_or(|known| !is_same(known.report(), report)) && !self.reports.sending.contains(&report.id)
            {
                let before = known.map(Reporting::due);
                self.reports.live.insert(report.id, Reporting::of(report.clone(), now));
                self.reports.set_due(report.id, before);
            }
        }
    }

    /// A service sends whatever there is, a command what failed in it.
    fn is_to_report(&self, id: XferId) -> bool {
        self.service.is_some() || self.ended.contains_key(&id)
    }

    /// Is there one that the run is not to end before? A service waits for all of them; whatever runs once makes one try of
    /// those whose time has come.
    pub(super) fn has_reports(&self) -> bool {
        let once = self.service.is_none() || self.settings.rounds == Rounds::Once;
        if !self.reports.sending.is_empty() {
            return true;
        }
        let now = self.clock.now();
        let shut = self.keeper.shut(Direction::Upload, now).is_some();
        match once {
            true => !shut && self.reports.wake().is_some_and(|due| due <= now.mono),
            false => self.service == Some(Service::UntilDone) && !self.reports.live.is_empty(),
        }
    }

    /// Sends those whose time has come, as far as anything may pass.
    pub(super) fn send_reports(&mut self) -> Result<(), EngineError> {
        let now = self.clock.now();
        while self.reports.wake().is_some_and(|due| due <= now.mono) {
            let next = self.reports.due.iter().find(|(_, id)| !self.reports.sending.contains(id)).copied();
            let Some((_, id)) = next else { break };
            if self.rests(id, now) {
                continue;
            }
            if !self.reports.claimed.contains(&id) {
                self.claim_reports(now)?;
                if !self.reports.claimed.contains(&id) {
                    // Another process has it, or has settled it.
                    self.reports.forget(id);
                    continue;
                }
            }
            self.send_report(id, now);
        }
        Ok(())
    }

    /// Can nothing be sent now? Then its time is put off, and its window stands still.
    fn rests(&mut self, id: XferId, now: Now) -> bool {
        let Some(url) = self.reports.live.get(&id).map(|reporting| reporting.report().url.clone()) else {
            return false;
        };
        let shut = self.keeper.shut(Direction::Upload, now).map(|(_, until)| until.unwrap_or(now.mono + LATER));
        let closed = self.hosts.closed(&key_of(&url.origin(), Direction::Upload), now).map(|(until, _)| until);
        let Some(reporting) = self.reports.live.get_mut(&id) else { return false };
        let before = Some(reporting.due());
        match (shut, closed) {
            // It may open before its time.
            (Some(until), _) => reporting.rest(until.min(now.mono + LATEST).max(now.mono + LATER), now),
            // Time counts while the server rests.
            (None, Some(until)) => reporting.put_off(until),
            (None, None) => return false,
        }
        self.reports.set_due(id, before);
        true
    }

    /// Those whose time has come are made ours.
    fn claim_reports(&mut self, now: Now) -> Result<(), EngineError> {
        self.persist.claims.show_life(&mut *self.rng).map_err(crate::io::state_file::StateError::from)?;
        let due = self.reports.due.iter().take_while(|(at, _)| *at <= now.mono).map(|(_, id)| *id);
        let wanted: BTreeSet<XferId> = due.filter(|id| !self.reports.claimed.contains(id)).take(CLAIMED).collect();
        self.persist.settling.claim = wanted;
        self.save(crate::engine::claims::Keep::Ours)
    }

    fn send_report(&mut self, id: XferId, now: Now) {
        let Some(reporting) = self.reports.live.get_mut(&id) else { return };
        let report = reporting.report().clone();
        let host = report.url.origin();
        if let Gate::Closed { until, .. } = self.hosts.gate(&key_of(&host, Direction::Upload), now) {
            let before = Some(reporting.due());
            reporting.put_off(until);
            return self.reports.set_due(id, before);
        }
        let net = Arc::new(NetOptions::default());
        let way = self.ways.of(&net).and_then(|usual| self.ways.of_host(&host, &net, &usual));
        let way = match way {
            Ok(way) => way,
            Err(error) => {
                tracing::warn!(%error, "a report cannot be sent");
                self.hosts.probe_abandoned(&key_of(&host, Direction::Upload));
                return self.not_reported(id, &error.to_string(), None, now);
            }
        };
        reporting.begin(now);
        self.reports.sending.insert(id);
        let (outbox, clock) = (self.mailbox.outbox.clone(), self.clock.clone());
        let posting = Posting {
            url: report.url.clone(),
            body: report.body(),
            key: report.id.to_string(),
            timeouts: way.timeouts,
        };
        let task = self.lanes.spawn(move |clients| {
            let hands = Hands { uplink: clients.of(&way).uplink(), credentials: way.credentials.clone(), clock };
            async move {
                let told = post(posting, hands).await;
                drop(outbox.send((id, Mail::Reported(told))));
            }
        });
        if let Err(fault) = task {
            self.reported(
                id,
                Err(NotTaken { failure: Failure::Connect { detail: fault.to_string() }, floor: None }),
                now,
            );
        }
    }

    /// What came of one.
    pub(super) fn reported(&mut self, id: XferId, told: Result<(), NotTaken>, now: Now) {
        self.reports.sending.remove(&id);
        let Some(report) = self.reports.live.get(&id).map(|reporting| reporting.report().clone()) else { return };
        let key = key_of(&report.url.origin(), Direction::Upload);
        match told {
            Ok(()) => {
                let change = self.hosts.succeeded(&key);
                self.host_changed(key, change, now);
                self.settle_report(&report, Left::Nothing, Reported::Sent, now);
            }
            Err(NotTaken { failure, floor }) => {
                let verdict = judge(&failure, Context { served: false, retry_on: &[] });
                let change = match verdict.host {
                    HostSign::Failing => {
                        self.hosts.blame(&key, &word_of(&failure, verdict.class));
                        self.hosts.failed(&key, now, &mut *self.rng)
                    }
                    HostSign::Answering => self.hosts.succeeded(&key),
                    HostSign::Nothing => {
                        self.hosts.probe_abandoned(&key);
                        Change::None
                    }
                };
                self.heard_of.insert(key.clone());
                self.host_changed(key, change, now);
                self.not_reported(id, &failure.to_string(), floor, now);
            }
        }
    }

    fn not_reported(&mut self, id: XferId, why: &str, floor: Option<Delay>, now: Now) {
        let Some(reporting) = self.reports.live.get_mut(&id) else { return };
        let (before, why) = (Some(reporting.due()), why.to_owned());
        let next = reporting.failed(floor, now, &mut *self.rng);
        let report = reporting.report().clone();
        match next {
            Next::At(at) => {
                self.reports.set_due(id, before);
                self.settle_report(&report, Left::Again, Reported::Later { why, next: now.wall_of(at) }, now);
            }
            Next::GivenUp => self.settle_report(&report, Left::Nothing, Reported::GivenUp { why }, now),
        }
    }

    /// What is left of a report is stored at once, and told.
    fn settle_report(&mut self, report: &ErrorReport, left: Left, how: Reported, now: Now) {
        let (id, url, name) = (report.id, report.url.clone(), report.name.clone());
        self.reports.claimed.remove(&id);
        if left == Left::Nothing {
            self.reports.forget(id);
        }
        self.persist.settle(report.clone(), left, now.mono);
        self.tell_of_report(id, name, url, how);
    }

    fn tell_of_report(&mut self, id: XferId, name: String, url: MirrorUrl, how: Reported) {
        (self.notices)(Notice::Reported { id, name, url, how });
    }
}
