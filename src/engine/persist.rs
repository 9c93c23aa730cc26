//! When records are written. Changes are gathered: what is urgent is written within the turn, the rest within a second,
//! all of it in one write. Where the state is so large that a write takes long, writes are spaced, so that they never take
//! more than a small part of the time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::core::civil::Day;
use crate::core::failure::LocalFault;
use crate::core::hosts::{HostKey, HostRecord};
use crate::core::pers_xfer::Urgency;
use crate::core::pers_xfer::record::{Direction, Record, Status, XferId};
use crate::core::pers_xfer::sharing::{self, OwnerId, Wanted};
use crate::core::report::ErrorReport;
use crate::core::schedule::{History, SaidMode};
use crate::core::state::Document;
use crate::core::time::{Delay, Mono, Now};
use crate::core::upload::UploadSession;
use crate::core::url::MirrorUrl;
use crate::engine::Job;
use crate::engine::admit;
use crate::engine::claims::{After, Claims, Keep, Living, Loss, Put, Twins};
use crate::engine::control::leave_wish;
use crate::engine::enter::{Entered, Entering};
use crate::engine::reports::{Left, Settling};
use crate::io::clock::Clock;
use crate::io::part;
use crate::io::state_file::{Loaded, StateError, StateFile};

/// So long a change may wait for company.
const GATHER: Delay = Delay::from_secs(1);
/// After a write of a large state, so many times its duration passes before the next.
const REST: u64 = 4;
/// Where there are fewer transfers, a write is short, and nothing need wait for it.
const MANY: usize = 2_000;
/// So many finished transfers are remembered.
const FINISHED: usize = 10_000;

/// The records that are to be written.
#[derive(Debug)]
pub(super) struct Persist {
    file: StateFile,
    pub(super) claims: Claims,
    dirty: BTreeSet<XferId>,
    last: BTreeMap<XferId, Last>,
    due: Option<Mono>,
    not_before: Mono,
    /// What is to be done with reports.
    pub(super) settling: Settling,
}

/// A transfer that is over, or rests: the last that is written of it.
#[derive(Debug)]
struct Last {
    record: Box<Record>,
    obeyed: Vec<u64>,
}

/// What a write is about.
pub(super) struct Flush<'a> {
    /// The records of the transfers that run, with the wishes that were obeyed.
    pub(super) live: &'a dyn Fn(XferId) -> Option<(&'a Record, &'a [u64])>,
    /// Are they still ours afterwards?
    pub(super) keep: Keep,
    /// The hosts of which something is known, and which of them we have heard of ourselves.
    pub(super) hosts: (Vec<HostRecord>, &'a BTreeSet<HostKey>),
    pub(super) traffic: Traffic<'a>,
    pub(super) said: Said<'a>,
    pub(super) rng: &'a mut dyn rand::Rng,
}

/// What people and preferences say that matters to a write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'a> {
    /// The network mode that a person set for good; the outer one where nobody said anything in this process.
    pub(super) mode: Option<Option<SaidMode>>,
    /// Who is told of failures, where a transfer does not say.
    pub(super) report_to: Option<&'a MirrorUrl>,
}

/// What passed since the last write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic<'a> {
    pub(super) by_day: &'a History,
    pub(super) today: Day,
    /// It is to be written though nothing else is.
    pub(super) is_due: bool,
}

/// What a write met.
#[derive(Debug, Default)]
pub(super) struct Met {
    /// These are not ours.
    pub(super) lost: Vec<(XferId, Loss)>,
    /// These are nobody's and want to be run.
    pub(super) revived: Vec<XferId>,
    /// What the state file holds now of what passed, and the reports in it, where it was written.
    pub(super) stored: Option<(History, Vec<ErrorReport>)>,
}

/// What came of claiming records of the state.
#[derive(Debug, Default)]
pub(super) struct Claimed {
    /// These are ours now.
    pub(super) records: Vec<Record>,
    /// These are run by others.
    pub(super) others: Vec<XferId>,
}

impl Persist {
    pub(super) fn new(file: StateFile) -> Self {
        let claims = Claims::new(file.path());
        Self {
            file,
            claims,
            dirty: BTreeSet::new(),
            last: BTreeMap::new(),
            due: None,
            not_before: Mono::ZERO,
            settling: Settling::default(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(super) fn load(&self) -> Result<Loaded, StateError> {
        self.file.load()
    }

    /// May this file be written, and can it? Found out before anything is begun.
    pub(super) fn check_writable(&self, document: &Document) -> Result<(), StateError> {
        self.file.check_ours(document)?;
        self.file.commit(|_| ())
    }

    /// Has another process written?
    pub(super) fn has_changed(&self) -> bool {
        self.file.has_changed()
    }

    /// This record differs from what is stored.
    pub(super) fn mark(&mut self, id: XferId, urgency: Urgency, now: Mono) {
        self.dirty.insert(id);
        let due = match urgency {
            Urgency::Now => now,
            Urgency::Later => now + GATHER,
        };
        self.due = Some(self.due.map_or(due, |d| d.min(due)));
    }

    /// What is left of a report is to be stored.
    pub(super) fn settle(&mut self, report: ErrorReport, left: Left, now: Mono) {
        self.settling.settled.insert(report.id, (report, left));
        self.write_soon(now);
    }

    /// Something else than a record is to be written.
    pub(super) fn write_soon(&mut self, now: Mono) {
        self.due = Some(self.due.map_or(now, |due| due.min(now)));
    }

    /// A transfer is over, or rests: if its record is to be written, then so.
    pub(super) fn part_with(&mut self, record: Box<Record>, obeyed: Vec<u64>) {
        if self.dirty.contains(&record.id) {
            self.last.insert(record.id, Last { record, obeyed });
        }
    }

    /// What such a session left at its server is cleaned up: the record of a transfer that is over need not know of it.
    pub(super) fn forget_session(
        &mut self,
        id: XferId,
        gone: impl Fn(&UploadSession) -> bool,
    ) -> Result<(), StateError> {
        if let Some(last) = self.last.get_mut(&id) {
            last.record.uploads.retain(|session| !gone(session));
            return Ok(());
        }
        self.file.commit(|document| {
            // Somebody may go on with it by now.
            if let Some(mut record) = document.get(id).filter(|record| !record.abandoned().is_empty()) {
                record.uploads.retain(|session| !gone(session));
                document.put(&record);
            }
        })
    }

    /// This process, once it has claimed something.
    pub(super) fn me(&self) -> Option<OwnerId> {
        self.claims.me()
    }

    /// A record that is not ours: nothing of it is written any more.
    pub(super) fn drop(&mut self, id: XferId) {
        self.dirty.remove(&id);
        self.last.remove(&id);
        self.claims.let_go(id);
    }

    /// When the next write is due.
    pub(super) fn due(&self) -> Option<Mono> {
        self.due.map(|due| due.max(self.not_before))
    }

    /// Writes what is dirty, in one write. What cannot be written stays dirty.
    pub(super) fn flush(&mut self, flush: Flush<'_>, clock: &Clock) -> Result<Met, StateError> {
        let now = clock.now();
        let Flush { live, keep, hosts, traffic, said, rng } = flush;
        let last_word = keep == Keep::Free && !traffic.by_day.is_empty();
        if self.dirty.is_empty() && !traffic.is_due && !last_word && self.settling.is_empty() && said.mode.is_none() {
            return Ok(Met::default());
        }
        if keep == Keep::Ours && self.dirty.iter().any(|id| !self.last.contains_key(id)) {
            self.claims.show_life(rng)?;
        }
        let (claims, dirty, last, settling) = (&mut self.claims, &self.dirty, &self.last, &self.settling);
        let path = self.file.path();
        let (met, transfers) = self.file.commit(|document| {
            let mut met = Met::default();
            document.report_failures_to(said.report_to.cloned());
            let (mut living, mut twins) = (Living::new(path), Twins::default());
            let mut after = After { now, rng, living: &mut living, twins: &mut twins };
            for id in dirty {
                let put = match (last.get(id), live(*id)) {
                    (Some(Last { record, obeyed }), _) => claims.put(document, record, Keep::Free, obeyed, &mut after),
                    (None, Some((record, obeyed))) => claims.put(document, record, keep, obeyed, &mut after),
                    (None, None) => continue,
                };
                match put {
                    Put::Written => {}
                    Put::Revived => met.revived.push(*id),
                    Put::Lost(loss) => met.lost.push((*id, loss)),
                }
            }
            store_hosts(document, hosts.0, hosts.1);
            document.count(traffic.by_day, traffic.today);
            settling.carry_out(document, claims.me(), &mut Living::new(path));
            if let Some(mode) = said.mode {
                document.set_network_mode(mode);
            }
            met.stored = Some((document.history().clone(), document.reports().to_vec()));
            document.prune_finished(FINISHED);
            claims.committed(document);
            (met, document.len())
        })?;
        let stored =
            dirty.iter().filter_map(|id| last.get(id).map(|l| &*l.record).or_else(|| live(*id).map(|(r, _)| r)));
        let done = stored.filter(|r| r.status == Status::Done && r.direction == Direction::Download);
        done.filter_map(|record| record.path.as_deref()).for_each(part::tidy);
        self.dirty.clear();
        self.last.clear();
        self.settling = Settling::default();
        self.due = None;
        self.space_writes(transfers, now, clock);
        Ok(met)
    }

    /// Makes records of the state ours, as far as they are nobody's and can be run.
    pub(super) fn claim(
        &mut self,
        ids: &[XferId],
        rng: &mut dyn rand::Rng,
        clock: &Clock,
    ) -> Result<Claimed, StateError> {
        let now = clock.now();
        let me = self.claims.show_life(rng)?;
        let (claims, path) = (&mut self.claims, self.file.path());
        let claimed = self.file.commit(|document| {
            let (mut claimed, mut living) = (Claimed::default(), Living::new(path));
            for id in ids {
                let Some(mut record) = document.get(*id).filter(is_to_be_run) else { continue };
                if record.owner.is_some_and(|owner| owner != me) && living.in_use(&record).is_some() {
                    claimed.others.push(*id);
                    continue;
                }
                // What is left of wishes to one that died.
                record = sharing::obeyed(record, &[], now, &mut *rng);
                let ours = record.status == Status::Pending;
                record.owner = ours.then_some(me);
                document.put(&record);
                if ours {
                    claims.hold(*id);
                    claimed.records.push(record);
                }
            }
            claims.committed(document);
            claimed
        })?;
        Ok(claimed)
    }

    /// Enters jobs, all in one write; an answer each, in their order.
    pub(super) fn enter(
        &mut self,
        jobs: Vec<Job>,
        rng: &mut dyn rand::Rng,
        clock: &Clock,
    ) -> Result<Vec<Entered>, StateError> {
        let now = clock.now();
        let me = self.claims.show_life(rng)?;
        let (claims, path) = (&mut self.claims, self.file.path());
        self.file.commit(|document| {
            let living = Living::new(path);
            let mut entering = Entering { me, claims, now, rng, living, twins: Twins::default() };
            let entered = jobs.into_iter().map(|job| entering.enter(job, document)).collect();
            entering.claims.committed(document);
            entered
        })
    }

    /// Makes the record of a job ours, unless it is complete, and gives it; none where the state holds none, whatever it held
    /// when it was last read. A process that runs it is told of the job's URLs.
    pub(super) fn take_over(
        &mut self,
        job: &Job,
        rng: &mut dyn rand::Rng,
        clock: &Clock,
    ) -> Result<Option<Result<Record, LocalFault>>, StateError> {
        let now = clock.now();
        let me = self.claims.show_life(rng)?;
        let (claims, path) = (&mut self.claims, self.file.path());
        self.file.commit(|document| {
            let known = admit::known(document, job, &mut Twins::default());
            let record = known.and_then(|id| document.get(id))?;
            if record.status == Status::Done {
                return Some(Ok(record));
            }
            if let Some(fault) = Living::new(path).in_use(&record) {
                leave_wish(document, &record, Wanted::Mirrors(job.urls.clone()), now, rng);
                return Some(Err(fault));
            }
            let mut record = sharing::obeyed(record, &[], now, rng);
            record.owner = Some(me);
            document.put(&record);
            claims.hold(record.id);
            claims.committed(document);
            Some(Ok(record))
        })
    }

    fn space_writes(&mut self, transfers: usize, began: Now, clock: &Clock) {
        if transfers >= MANY {
            let ended = clock.now().mono;
            self.not_before = ended + ended.since(began.mono).saturating_mul(REST);
        }
    }
}

/// Something can be done for it: it is not over, or somebody wants something of it.
pub(super) fn is_to_be_run(record: &Record) -> bool {
    let known = record.direction == Direction::Download || record.path.is_some();
    known && !record.mirrors.is_empty() && (record.status == Status::Pending || !record.wishes.is_empty())
}

/// What we have heard of hosts ourselves replaces what the state says of them; the rest is other processes' business.
fn store_hosts(document: &mut Document, ours: Vec<HostRecord>, heard_of: &BTreeSet<HostKey>) {
    if heard_of.is_empty() {
        return;
    }
    let mut hosts: Vec<HostRecord> = document.hosts().to_vec();
    hosts.retain(|host| !heard_of.contains(&host.key));
    hosts.extend(ours.into_iter().filter(|host| heard_of.contains(&host.key)));
    hosts.sort_by(|a, b| a.key.cmp(&b.key));
    document.set_hosts(hosts);
}

#[cfg(test)]
mod tests;
