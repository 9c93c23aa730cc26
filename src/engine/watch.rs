//! What other processes did meanwhile: wishes they left, records they added or took out, and their deaths. The state file
//! is looked at twice a second, which costs a few hundred bytes as long as nobody has written.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::core::failure::LocalFault;
use crate::core::pers_xfer::Urgency;
use crate::core::pers_xfer::record::{Record, Status, XferId};
use crate::core::pers_xfer::sharing::{self, OwnerId, Wanted, Wish};
use crate::core::time::{Delay, Mono, Now};
use crate::engine::claims::{Living, Loss};
use crate::engine::ended::{self, Why};
use crate::engine::hosts::key_of;
use crate::engine::supervisor::Supervisor;
use crate::engine::{Ending, EngineError};

/// How often the state file is looked at.
pub(super) const EVERY: Delay = Delay::from_millis(500);
/// So many transfers are claimed at once at first, then twice as many, and so on.
const FIRST_BATCH: usize = 256;
/// A batch is never larger.
const LAST_BATCH: usize = 65_536;

/// What is known of transfers that are not ours.
#[derive(Debug)]
pub(super) struct Watch {
    due: Mono,
    every: Delay,
    /// To be claimed, in order.
    candidates: VecDeque<XferId>,
    waiting: BTreeSet<XferId>,
    /// Run by others, until those die.
    of_others: BTreeMap<OwnerId, Vec<XferId>>,
    batch: usize,
}

impl Watch {
    pub(super) fn new(now: Mono, every: Delay) -> Self {
        Self {
            due: now + every,
            every,
            candidates: VecDeque::new(),
            waiting: BTreeSet::new(),
            of_others: BTreeMap::new(),
            batch: FIRST_BATCH,
        }
    }

    pub(super) const fn due(&self) -> Mono {
        self.due
    }

    pub(super) fn has_candidates(&self) -> bool {
        !self.candidates.is_empty()
    }

    /// How many wait to be claimed.
    pub(super) fn waiting(&self) -> usize {
        self.candidates.len()
    }

    /// The state file is looked at now.
    pub(super) const fn look_now(&mut self) {
        self.due = Mono::ZERO;
    }

    /// What is to be claimed, and what others run.
    pub(super) fn not_ours(&self) -> impl Iterator<Item = XferId> {
        self.waiting.iter().chain(self.of_others.values().flatten()).copied()
    }

    /// How many are run by others.
    pub(super) fn elsewhere(&self) -> usize {
        self.of_others.values().map(Vec::len).sum()
    }

    /// Transfers that were ours want to be run again.
    pub(super) fn revived(&mut self, ids: Vec<XferId>) {
        ids.into_iter().for_each(|id| self.add(id));
    }

    fn add(&mut self, id: XferId) {
        if self.waiting.insert(id) {
            self.candidates.push_back(id);
        }
    }

    fn next_batch(&mut self) -> Vec<XferId> {
        let ids: Vec<XferId> = self.candidates.drain(..self.batch.min(self.candidates.len())).collect();
        ids.iter().for_each(|id| _ = self.waiting.remove(id));
        self.batch = self.batch.saturating_mul(2).min(LAST_BATCH);
        ids
    }
}

impl Supervisor<'_> {
    /// Is anything to be looked for?
    pub(super) fn looks_at_others(&self) -> bool {
        self.service.is_some() || self.persist.claims.holds_any()
    }

    /// Looks, if it is time.
    pub(super) fn watch_others(&mut self) -> Result<(), EngineError> {
        let now = self.clock.now();
        if now.mono < self.watch.due || !self.looks_at_others() {
            return Ok(());
        }
        self.watch.due = now.mono + self.watch.every;
        if self.persist.has_changed() {
            self.read_again()?;
            self.hear_wishes(now);
            self.notice_forgotten();
            self.look_for_work();
        }
        self.notice_deaths();
        Ok(())
    }

    /// What is on disk now is what we have seen.
    pub(super) fn read_again(&mut self) -> Result<(), EngineError> {
        let loaded = self.persist.load()?;
        for text in loaded.warnings {
            (self.notices)(crate::engine::Notice::Remark { id: None, text });
        }
        self.keeper.read(loaded.document.history());
        self.seen = loaded.document;
        let reports = self.seen.reports().to_vec();
        self.meet_reports(&reports);
        Ok(())
    }

    fn hear_wishes(&mut self, now: Now) {
        let ids: Vec<XferId> = self.seen.with_wishes().filter(|id| self.persist.claims.holds(*id)).collect();
        for id in ids {
            let Some(record) = self.seen.get(id) else { continue };
            self.hear(id, &record, now);
        }
    }

    /// All that was left in a record since is obeyed at once, in order. What comes after the end of the transfer is obeyed
    /// by the write that lets go of it.
    fn hear(&mut self, id: XferId, record: &Record, now: Now) {
        if self.fresh.remove(&id) {
            self.take_up_record(record.clone(), now);
        }
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        let news: Vec<&Wish> = record.wishes.iter().filter(|w| !transfer.obeyed.contains(&w.serial)).collect();
        if news.is_empty() {
            return;
        }
        transfer.obeyed.extend(news.iter().map(|wish| wish.serial));
        self.persist.mark(id, Urgency::Now, now.mono);
        if news.iter().any(|wish| wish.what == Wanted::Retry) {
            self.ask_hosts_at_once(id);
        }
        self.drive(id, now, |machine, cx| sharing::obey(machine, news.iter().map(|wish| &wish.what), cx));
    }

    /// A person wants it tried: hosts that back off are probed now, unless they asked to wait.
    pub(super) fn ask_hosts_at_once(&mut self, id: XferId) {
        let Some(transfer) = self.transfers.get(&id) else { return };
        let record = transfer.record();
        let hosts: Vec<_> = record.mirrors.iter().map(|m| key_of(&m.url.origin(), record.direction)).collect();
        hosts.iter().for_each(|host| self.hosts.try_now(host));
    }

    fn notice_forgotten(&mut self) {
        let gone: Vec<XferId> = self.persist.claims.held().filter(|id| !self.seen.contains(*id)).collect();
        if self.persist.claims.is_older(&self.seen) {
            // Another file has taken the place of ours: what we run is entered there again.
            return;
        }
        gone.into_iter().for_each(|id| self.lose(id, Loss::Forgotten));
    }

    /// A transfer is not ours: its session ends, and nothing is written.
    pub(super) fn lose(&mut self, id: XferId, loss: Loss) {
        self.persist.drop(id);
        if self.fresh.remove(&id) {
            let record = self.seen.get(id);
            let report = record.and_then(|r| ended::report(&r, ended::ending(&r, &Why::Lost(loss))));
            return self.tell_end(report);
        }
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        match &transfer.running {
            Some(running) => {
                running.stop.cancel();
                transfer.lost = Some(loss);
            }
            None => self.finish(id, &Why::Lost(loss)),
        }
    }

    /// A service takes up what is nobody's.
    pub(super) fn look_for_work(&mut self) {
        if self.service.is_none() {
            return;
        }
        self.watch.of_others.clear();
        let mut living = Living::new(self.persist.path());
        let ours = |id: &XferId| self.persist.claims.holds(*id) || self.transfers.contains_key(id);
        let ids: Vec<XferId> = self.seen.perhaps_unfinished().filter(|id| !ours(id)).collect();
        let mut others: BTreeMap<OwnerId, Vec<XferId>> = BTreeMap::new();
        let mut free = Vec::new();
        for id in ids {
            match self.seen.owner(id) {
                Some(owner) if living.holder(owner).is_some() => others.entry(owner).or_default().push(id),
                _ => free.push(id),
            }
        }
        self.watch.of_others = others;
        free.into_iter().for_each(|id| self.watch.add(id));
    }

    /// What those ran who have died since is nobody's now.
    fn notice_deaths(&mut self) {
        let mut living = Living::new(self.persist.path());
        let dead: Vec<OwnerId> =
            self.watch.of_others.keys().copied().filter(|owner| living.holder(*owner).is_none()).collect();
        for owner in dead {
            let ids = self.watch.of_others.remove(&owner).unwrap_or_default();
            ids.into_iter().for_each(|id| self.watch.add(id));
        }
    }

    /// Claims what waits to be claimed, in batches: a few at first, so that the first can start, and not many more than
    /// there is room for.
    pub(super) fn claim_more(&mut self) -> Result<(), EngineError> {
        while self.may_claim_more() {
            let ids = self.watch.next_batch();
            let claimed = self.persist.claim(&ids, &mut *self.rng, &self.clock)?;
            self.read_again()?;
            let now = self.clock.now();
            for record in claimed.records {
                self.accept(&record);
                if is_new(&record) { self.put_in_line(&record) } else { self.take_up_record(record, now) }
            }
            if !claimed.others.is_empty() {
                self.look_for_work();
            }
        }
        Ok(())
    }

    /// Something waits to be claimed, and not enough is claimed already.
    pub(super) fn may_claim_more(&self) -> bool {
        self.watch.has_candidates() && self.fresh.len() < 4 * self.settings.max_transfers
    }

    /// A record of ours cannot be run at all: its options name something that is gone.
    pub(super) fn end_unusable(&mut self, record: &Record, error: &EngineError) {
        let path = ended::report(record, Ending::Stopped { next: None, why: String::new() });
        let detail = error.to_string();
        let fault =
            LocalFault::Io { doing: "use the options of", path: path.map_or_else(String::new, |r| r.name), detail };
        self.free(record.clone());
        self.tell_end(ended::report(record, Ending::Local(fault)));
    }

    /// A record of ours that needs nothing more.
    pub(super) fn end_done(&mut self, record: Record) {
        let evidence = record.finished.as_ref().map_or(crate::core::pers_xfer::record::Evidence::None, |f| f.evidence);
        let report = ended::report(&record, Ending::Unchanged { evidence });
        self.free(record);
        self.tell_end(report);
    }

    /// A record is nobody's with the next write.
    pub(super) fn free(&mut self, record: Record) {
        self.persist.mark(record.id, Urgency::Now, self.clock.now().mono);
        self.persist.part_with(Box::new(record), Vec::new());
    }
}

/// Nothing was done for it yet, and nothing is known of it: its machine can wait for its slot.
pub(super) fn is_new(record: &Record) -> bool {
    let untried = record.first_request_time.is_none() && record.next_request_time.is_none();
    untried && record.status == Status::Pending && record.finished.is_none() && record.wishes.is_empty()
}
