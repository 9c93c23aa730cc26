//! Which records are handed out: of the woken a share, then of hosts that are ready the ones that wait longest.

use std::collections::BTreeMap;

use rusqlite::Transaction;

use super::rows::{self, Fault, Item};
use crate::core::ledger::clock::{self, Reading};
use crate::core::ledger::host::{Courtesy, Host};
use crate::core::ledger::lease::{Claimed, Company};
use crate::core::ledger::pace::{self, Bucket};
use crate::core::ledger::record::{Record, Token};
use crate::core::time::{Delay, Epoch};
use crate::io::store::common::{DISPATCH, LATEST, LOOK, NOTE, PAUSED, courtesy};
use crate::io::store::{Handed, Turn, Want};

/// A claim under way.
struct Claiming<'a, 'b, 't> {
    t: &'a Transaction<'t>,
    want: Want,
    turn: &'a mut Turn<'b>,
    hosts: BTreeMap<i64, Seen>,
    handed: Handed,
}

/// A host as this claim finds and leaves it.
struct Seen {
    host: Host,
    /// So many may be handed out now.
    room: u32,
    /// So many more may be worked on at once.
    spare: u32,
    handed: u32,
    courtesy: Courtesy,
}

pub(super) fn claim(t: &Transaction<'_>, want: Want, turn: &mut Turn<'_>) -> Result<Handed, Fault> {
    let now = turn.now;
    watch_clock(t, turn)?;
    if let Some(until) = rows::number(t, PAUSED)?.map(Epoch::from_micros).filter(|until| *until > now) {
        return Ok(Handed { records: Vec::new(), not_before: Some(until) });
    }
    let mut dispatch = allowance(t, DISPATCH, turn.rules.dispatch, now)?;
    let count = want.count.min(dispatch.available(now));
    if count == 0 {
        return Ok(Handed { records: Vec::new(), not_before: Some(dispatch.next(now)) });
    }
    let mut claiming =
        Claiming { t, want: Want { count, ..want }, turn, hosts: BTreeMap::new(), handed: Handed::default() };
    claiming.woken(pace::for_woken(count))?;
    claiming.by_host()?;
    let handed = claiming.done()?;
    dispatch.take(u32::try_from(handed.records.len()).unwrap_or(u32::MAX), now);
    rows::keep(t, DISPATCH, dispatch.stored().as_micros())?;
    Ok(handed)
}

/// An allowance as it was left.
pub(super) fn allowance(t: &Transaction<'_>, name: &str, full: Bucket, now: Epoch) -> Result<Bucket, Fault> {
    let stored = rows::number(t, name)?.map_or(Epoch::ZERO, Epoch::from_micros);
    Ok(full.restored(stored, now, full.filling()))
}

/// Where the clock was set back, what is stored is measured from now on.
pub(super) fn watch_clock(t: &Transaction<'_>, turn: &Turn<'_>) -> Result<(), Fault> {
    let now = turn.now;
    let latest = rows::number(t, LATEST)?.map_or(Epoch::ZERO, Epoch::from_micros);
    if clock::read(latest, now) == Reading::SetBack {
        clamp(t, turn)?;
        rows::keep(t, LATEST, now.as_micros())?;
    } else if now.since(latest) > NOTE {
        rows::keep(t, LATEST, now.as_micros())?;
    }
    Ok(())
}

/// Cuts what lies too far ahead; how many records there were. A host at a time, by the index.
pub(super) fn clamp(t: &Transaction<'_>, turn: &Turn<'_>) -> Result<u64, Fault> {
    let (now, rules) = (turn.now, turn.rules);
    let mut cut = 0;
    let hosts: Vec<i64> =
        t.prepare_cached("SELECT id FROM host")?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for host in hosts {
        let beyond = (now + rules.table.longest()).as_micros();
        let waiting = rows::pick(t, "WHERE i.host = ?1 AND i.state < 3 AND i.due_at > ?2", (host, beyond))?;
        let beyond = (now + rules.terms.longest()).as_micros();
        let leased = rows::pick(t, "WHERE i.host = ?1 AND i.state = 2 AND i.due_at > ?2", (host, beyond))?;
        for mut item in waiting.into_iter().chain(leased) {
            item.record.clamp(now, &rules.table, rules.terms);
            rows::update(t, item.id, &item.record)?;
            rows::sooner(t, host, item.record.due_at)?;
            cut += 1;
        }
        let mut known = rows::host(t, host)?;
        let longest = now + rules.table.longest();
        if known.not_before.is_some_and(|until| until > longest) {
            known.not_before = Some(longest);
            rows::update_host(t, host, &known, now)?;
        }
    }
    Ok(cut)
}

impl Claiming<'_, '_, '_> {
    fn now(&self) -> i64 {
        self.turn.now.as_micros()
    }

    fn wanted(&self) -> u32 {
        self.want.count.saturating_sub(u32::try_from(self.handed.records.len()).unwrap_or(u32::MAX))
    }

    /// Of the records that fresh activity woke, as many as their share.
    fn woken(&mut self, share: u32) -> Result<(), Fault> {
        let sql = "WHERE i.woken_at IS NOT NULL AND i.state < 2 AND i.due_at <= ?1 ORDER BY i.due_at LIMIT ?2";
        let items = rows::pick(self.t, sql, (self.now(), share.saturating_mul(LOOK)))?;
        let least = self.want.count.saturating_sub(share);
        for item in items {
            if self.wanted() <= least || self.is_alone() {
                break;
            }
            let (host, name) = (item.host, item.record.host.clone());
            if self.host(host, &name)?.room > 0 {
                self.hand_out(item)?;
            }
        }
        Ok(())
    }

    /// Of hosts that are ready, the records that wait longest.
    fn by_host(&mut self) -> Result<(), Fault> {
        let sql = "SELECT id, name FROM host WHERE ready_at <= ?1 ORDER BY ready_at LIMIT ?2";
        let look = self.want.count.saturating_mul(LOOK);
        let ready: Vec<(i64, String)> = {
            let mut statement = self.t.prepare_cached(sql)?;
            let rows = statement.query_map((self.now(), look), |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<Result<_, _>>()?
        };
        for (id, name) in ready {
            if self.wanted() == 0 || self.is_alone() {
                break;
            }
            let most = self.host(id, &name)?.room.min(self.wanted());
            let sql = "WHERE i.host = ?1 AND i.state < 3 AND i.due_at <= ?2 ORDER BY i.due_at LIMIT ?3";
            let items = if most == 0 { Vec::new() } else { rows::pick(self.t, sql, (id, self.now(), most))? };
            for item in items {
                if self.is_alone() {
                    break;
                }
                self.hand_out(item)?;
            }
        }
        Ok(())
    }

    /// What may kill its holder is handed out alone.
    fn is_alone(&self) -> bool {
        self.handed.records.last().is_some_and(|(.., company)| *company == Company::Alone)
    }

    fn host(&mut self, id: i64, name: &str) -> Result<&mut Seen, Fault> {
        if let std::collections::btree_map::Entry::Vacant(vacant) = self.hosts.entry(id) {
            let host = rows::host(self.t, id)?;
            let sql = "SELECT count(*) FROM item WHERE host = ?1 AND state = 2 AND due_at > ?2";
            let inflight: u32 =
                self.t.prepare_cached(sql)?.query_row((id, self.turn.now.as_micros()), |row| row.get(0))?;
            let courtesy = courtesy(name, self.turn.rules.courtesy);
            let room = host.room(inflight, courtesy, self.turn.now);
            let spare = courtesy.at_once.saturating_sub(inflight);
            vacant.insert(Seen { host, room, spare, handed: 0, courtesy });
        }
        let none = Courtesy { gap: Delay::ZERO, at_once: 0 };
        let unseen = || Seen { host: Host::default(), room: 0, spare: 0, handed: 0, courtesy: none };
        // It has just been entered, if it was not there.
        Ok(self.hosts.entry(id).or_insert_with(unseen))
    }

    fn hand_out(&mut self, item: Item) -> Result<(), Fault> {
        let Item { id, host, mut record } = item;
        let (rules, now) = (self.turn.rules, self.turn.now);
        match record.claim(self.want.owner, rules.terms, now, &rules.table, self.turn.rng) {
            Claimed::No => {}
            Claimed::Rests => rows::update(self.t, id, &record)?,
            Claimed::Yes { company: Company::Alone, .. } if !self.handed.records.is_empty() => {
                // Its turn comes with the next claim.
            }
            Claimed::Yes { token, company } => {
                rows::update(self.t, id, &record)?;
                let name = record.host.clone();
                let seen = self.host(host, &name)?;
                seen.room = seen.room.saturating_sub(1);
                seen.spare = seen.spare.saturating_sub(1);
                seen.handed += 1;
                self.handed.records.push((record, token, company));
            }
        }
        Ok(())
    }

    /// Writes what became of the hosts that were looked at.
    fn done(self) -> Result<Handed, Fault> {
        let (t, now) = (self.t, self.turn.now);
        for (id, Seen { mut host, spare, handed, courtesy, .. }) in self.hosts {
            host.handed_out(handed, courtesy, now);
            let ready = next_of(t, id, spare)?;
            rows::update_host(t, id, &host, ready)?;
        }
        let mut handed = self.handed;
        if u32::try_from(handed.records.len()).is_ok_and(|n| n < self.want.count) {
            let sql = "SELECT min(ready_at) FROM host";
            let next: Option<i64> = t.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
            handed.not_before = next.filter(|at| *at < i64::MAX).map(|at| Epoch::from_micros(at).max(now));
        }
        Ok(handed)
    }
}

/// When the next record of a host may be handed out: when the first is due, or, where it has no room, when the first lease
/// ends. A host with nothing is ready when something is entered.
fn next_of(t: &Transaction<'_>, id: i64, spare: u32) -> Result<Epoch, Fault> {
    let sql = match spare {
        0 => "SELECT min(due_at) FROM item WHERE host = ?1 AND state = 2",
        _ => "SELECT min(due_at) FROM item WHERE host = ?1 AND state < 3",
    };
    let first: Option<i64> = t.prepare_cached(sql)?.query_row([id], |row| row.get(0))?;
    match (first, spare) {
        (None, 0) => next_of(t, id, 1),
        (first, _) => Ok(Epoch::from_micros(first.unwrap_or(i64::MAX))),
    }
}

/// Hands out one by its name.
pub(super) fn claim_early(
    t: &Transaction<'_>,
    mut item: Item,
    owner: crate::core::ledger::record::Owner,
    turn: &mut Turn<'_>,
) -> Result<Option<(Record, Token, Company)>, Fault> {
    match item.record.claim_early(owner, turn.rules.terms, turn.now) {
        Claimed::Yes { token, company } => {
            rows::update(t, item.id, &item.record)?;
            Ok(Some((item.record, token, company)))
        }
        Claimed::No | Claimed::Rests => Ok(None),
    }
}
