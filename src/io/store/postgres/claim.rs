//! Which records are handed out, as in the file: of the woken a share, then of hosts that are ready the ones that wait
//! longest.
//!
//! A claim waits for no other: hosts and records that somebody else has locked are left to him. All that is handed out of a
//! host is handed out by whoever has locked its row, so that no two claims together exceed what the host may have.
//! Records without a host share nothing, and their row is not locked for it.

use std::collections::BTreeMap;

use super::link::{Fault, Link};
use super::rows::{self, COLUMNS, Hosts, Item, Known};
use crate::core::ledger::host::Courtesy;
use crate::core::ledger::lease::{Claimed, Company};
use crate::core::ledger::pace;
use crate::core::ledger::record::{Owner, Record, Token};
use crate::core::time::{Delay, Epoch};
use crate::io::store::common::{DISPATCH, LATEST, LOOK, NOTE, PAUSED, courtesy};
use crate::io::store::{Handed, Turn, Want};

/// Where somebody else has locked what is ready, it may be there for us after so long.
const CONTENDED: Delay = Delay::from_millis(50);

/// A claim under way.
struct Claiming<'a, 'b> {
    link: &'a mut Link,
    want: Want,
    turn: &'a mut Turn<'b>,
    hosts: BTreeMap<i64, Seen>,
    changed: Vec<(i64, Record)>,
    handed: Handed,
}

/// A host as this claim finds and leaves it.
struct Seen {
    known: Known,
    /// So many may be handed out now.
    room: u32,
    /// So many more may be worked on at once.
    spare: u32,
    handed: u32,
    courtesy: Courtesy,
    row: Row,
}

/// Is a host's row locked by us?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Locked,
    Shared,
}

pub(super) fn claim(link: &mut Link, want: Want, turn: &mut Turn<'_>) -> Result<Handed, Fault> {
    let now = turn.now;
    let numbers = rows::numbers(link)?;
    let kept = |name: &str| numbers.get(name).copied().map_or(Epoch::ZERO, Epoch::from_micros);
    if kept(PAUSED) > now {
        return Ok(Handed { records: Vec::new(), not_before: Some(kept(PAUSED)) });
    }
    let full = turn.rules.dispatch;
    // Whoever shares an allowance takes from it one after another; where there is none, nobody waits.
    let limited = full.filling() > Delay::ZERO;
    let stored = if limited { Epoch::from_micros(rows::number(link, DISPATCH)?) } else { Epoch::ZERO };
    let mut dispatch = full.restored(stored, now, full.filling());
    let count = want.count.min(dispatch.available(now));
    if count == 0 {
        return Ok(Handed { records: Vec::new(), not_before: Some(dispatch.next(now)) });
    }
    let mut claiming = Claiming {
        link,
        want: Want { count, ..want },
        turn,
        hosts: BTreeMap::new(),
        changed: Vec::new(),
        handed: Handed::default(),
    };
    claiming.woken(pace::for_woken(count))?;
    claiming.by_host()?;
    let handed = claiming.done()?;
    if limited {
        dispatch.take(u32::try_from(handed.records.len()).unwrap_or(u32::MAX), now);
        rows::keep(link, DISPATCH, dispatch.stored().as_micros())?;
    }
    if now.since(kept(LATEST)) > NOTE {
        let sql = "UPDATE meta SET value = $2 WHERE name = $1 AND value < $2";
        link.execute(sql, &[&LATEST, &now.as_micros()])?;
    }
    Ok(handed)
}

impl Claiming<'_, '_> {
    fn now(&self) -> i64 {
        self.turn.now.as_micros()
    }

    fn wanted(&self) -> u32 {
        self.want.count.saturating_sub(u32::try_from(self.handed.records.len()).unwrap_or(u32::MAX))
    }

    /// Of the records that fresh activity woke, as many as their share.
    fn woken(&mut self, share: u32) -> Result<(), Fault> {
        let rest = "WHERE i.woken_at IS NOT NULL AND i.state < 2 AND i.due_at <= $1 ORDER BY i.due_at LIMIT $2
             FOR UPDATE OF i SKIP LOCKED";
        let look = i64::from(share) * i64::from(LOOK);
        let items = rows::pick(self.link, rest, &[&self.now(), &look])?;
        let mut named: Vec<i64> = items.iter().filter(|i| !i.record.host.is_empty()).map(|i| i.host).collect();
        named.sort_unstable();
        named.dedup();
        if !named.is_empty() {
            let sql = "SELECT id, name, penalty, not_before, ready_at FROM host WHERE id = ANY($1) ORDER BY id
                 FOR UPDATE SKIP LOCKED";
            self.look_at(sql, &[&named])?;
        }
        if items.iter().any(|item| item.record.host.is_empty()) {
            self.look_at("SELECT id, name, penalty, not_before, ready_at FROM host WHERE name = ''", &[])?;
        }
        let least = self.want.count.saturating_sub(share);
        for item in items {
            if self.wanted() <= least || self.is_alone() {
                break;
            }
            if self.hosts.get(&item.host).is_some_and(|seen| seen.room > 0) {
                self.hand_out(item);
            }
        }
        Ok(())
    }

    /// Of hosts that are ready, the records that wait longest.
    fn by_host(&mut self) -> Result<(), Fault> {
        if self.wanted() == 0 || self.is_alone() {
            return Ok(());
        }
        let look = i64::from(self.want.count) * i64::from(LOOK);
        let sql = "SELECT id, name, penalty, not_before, ready_at FROM host WHERE ready_at <= $1 AND name <> ''
             ORDER BY ready_at LIMIT $2 FOR UPDATE SKIP LOCKED";
        let mut ready = self.look_at(sql, &[&self.now(), &look])?;
        let sql = "SELECT id, name, penalty, not_before, ready_at FROM host WHERE ready_at <= $1 AND name = ''";
        ready.extend(self.look_at(sql, &[&self.now()])?);
        ready.sort_by_key(|(_, ready_at)| *ready_at);
        let mut ready = ready.into_iter().map(|(id, _)| id).peekable();
        while ready.peek().is_some() && self.wanted() > 0 && !self.is_alone() {
            // As many hosts as have room for what is wanted; where they have less than that, the next ones.
            let (mut ids, mut most, mut left) = (Vec::new(), Vec::new(), self.wanted());
            while let Some(id) = ready.next_if(|_| left > 0) {
                let room = self.hosts.get(&id).map_or(0, |seen| seen.room).min(left);
                if room > 0 {
                    ids.push(id);
                    most.push(i64::from(room));
                    left -= room;
                }
            }
            let sql = format!(
                "SELECT {COLUMNS} FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS w (host, most, nth)
                 CROSS JOIN LATERAL (SELECT * FROM item WHERE item.host = w.host AND item.state < 3 AND item.due_at <= $3
                 ORDER BY item.due_at LIMIT w.most FOR UPDATE SKIP LOCKED) AS i ORDER BY w.nth, i.due_at"
            );
            let now = self.now();
            let items = if ids.is_empty() { Vec::new() } else { rows::items(self.link, &sql, &[&ids, &most, &now])? };
            for item in items {
                if self.is_alone() {
                    break;
                }
                self.hand_out(item);
            }
        }
        Ok(())
    }

    /// What may kill its holder is handed out alone.
    fn is_alone(&self) -> bool {
        self.handed.records.last().is_some_and(|(.., company)| *company == Company::Alone)
    }

    /// Looks at hosts, and how many records of each are worked on; which they are, and when each is ready.
    fn look_at(
        &mut self,
        sql: &str,
        params: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> Result<Vec<(i64, i64)>, Fault> {
        let (mut answered, mut new) = (Vec::new(), Vec::new());
        for row in &self.link.query(sql, params)? {
            let (id, name, known): (i64, String, _) = (row.try_get(0)?, row.try_get(1)?, Known::read(row, 2)?);
            answered.push((id, known.ready_at()));
            if !self.hosts.contains_key(&id) {
                new.push((id, name, known));
            }
        }
        let ids: Vec<i64> = new.iter().filter(|(_, name, _)| !name.is_empty()).map(|(id, ..)| *id).collect();
        let sql = "SELECT host, count(*) FROM item WHERE host = ANY($1) AND state = 2 AND due_at > $2 GROUP BY host";
        let mut inflight = BTreeMap::new();
        if !ids.is_empty() {
            for row in &self.link.query(sql, &[&ids, &self.turn.now.as_micros()])? {
                let n: i64 = row.try_get(1)?;
                inflight.insert(row.try_get::<_, i64>(0)?, u32::try_from(n).unwrap_or(u32::MAX));
            }
        }
        for (id, name, known) in new {
            let inflight = inflight.get(&id).copied().unwrap_or(0);
            let courtesy = courtesy(&name, self.turn.rules.courtesy);
            let room = known.host.room(inflight, courtesy, self.turn.now);
            let spare = courtesy.at_once.saturating_sub(inflight);
            let row = if name.is_empty() { Row::Shared } else { Row::Locked };
            self.hosts.insert(id, Seen { known, room, spare, handed: 0, courtesy, row });
        }
        Ok(answered)
    }

    fn hand_out(&mut self, item: Item) {
        let Item { id, host, mut record } = item;
        let (rules, now) = (self.turn.rules, self.turn.now);
        match record.claim(self.want.owner, rules.terms, now, &rules.table, self.turn.rng) {
            Claimed::No => {}
            Claimed::Rests => self.changed.push((id, record)),
            Claimed::Yes { company: Company::Alone, .. } if !self.handed.records.is_empty() => {
                // Its turn comes with the next claim.
            }
            Claimed::Yes { token, company } => {
                if let Some(seen) = self.hosts.get_mut(&host) {
                    seen.room = seen.room.saturating_sub(1);
                    seen.spare = seen.spare.saturating_sub(1);
                    seen.handed += 1;
                }
                self.changed.push((id, record.clone()));
                self.handed.records.push((record, token, company));
            }
        }
    }

    /// Writes what became of the records, and of the hosts that were looked at.
    fn done(self) -> Result<Handed, Fault> {
        let Self { link, want, turn, mut hosts, changed, mut handed } = self;
        let now = turn.now;
        rows::update(link, changed.iter().map(|(id, record)| (*id, record)))?;
        lock_shared(link, &mut hosts)?;
        // Looked for once the rows are locked: whatever is entered from here on makes them ready sooner by itself.
        let ids: Vec<i64> = hosts.keys().copied().collect();
        let sql = "SELECT w.host, (SELECT min(due_at) FROM item WHERE item.host = w.host AND item.state < 3),
             (SELECT min(due_at) FROM item WHERE item.host = w.host AND item.state = 2) FROM unnest($1::bigint[]) AS w (host)";
        let mut after = Hosts::new();
        for row in &if ids.is_empty() { Vec::new() } else { link.query(sql, &[&ids])? } {
            let id: i64 = row.try_get(0)?;
            let Some(Seen { mut known, spare, handed, courtesy, .. }) = hosts.remove(&id) else { continue };
            known.host.handed_out(handed, courtesy, now);
            let (first, lease): (Option<i64>, Option<i64>) = (row.try_get(1)?, row.try_get(2)?);
            // Where it has no room, the first lease has to end. One with nothing is ready when something is entered.
            let next = if spare == 0 { lease.or(first) } else { first };
            known.ready(Epoch::from_micros(next.unwrap_or(i64::MAX)));
            after.insert(id, known);
        }
        rows::update_hosts(link, &after)?;
        if u32::try_from(handed.records.len()).is_ok_and(|n| n < want.count) {
            let next = link.number("SELECT min(ready_at) FROM host", &[])?.filter(|at| *at < i64::MAX);
            let later = |at: Epoch| if at > now { at } else { now + CONTENDED };
            handed.not_before = next.map(|at| later(Epoch::from_micros(at)));
        }
        Ok(handed)
    }
}

/// The row of the records without a host is locked only now, and left alone where somebody else has it: it is ready too soon
/// then, which costs the next claim a look.
fn lock_shared(link: &mut Link, hosts: &mut BTreeMap<i64, Seen>) -> Result<(), Fault> {
    let shared = hosts.iter().find(|(_, seen)| seen.row == Row::Shared).map(|(id, _)| *id);
    let Some(id) = shared else { return Ok(()) };
    let sql = "SELECT penalty, not_before, ready_at FROM host WHERE id = $1 FOR UPDATE SKIP LOCKED";
    match (link.query(sql, &[&id])?.first(), hosts.get_mut(&id)) {
        (Some(row), Some(seen)) => seen.known = Known::read(row, 0)?,
        _ => drop(hosts.remove(&id)),
    }
    Ok(())
}

/// Hands out one by its name.
pub(super) fn claim_early(
    link: &mut Link,
    mut item: Item,
    owner: Owner,
    turn: &mut Turn<'_>,
) -> Result<Option<(Record, Token, Company)>, Fault> {
    match item.record.claim_early(owner, turn.rules.terms, turn.now) {
        Claimed::Yes { token, company } => {
            let mut hosts = rows::hosts(link, [&item])?;
            hosts.values_mut().for_each(|known| known.sooner(item.record.due_at));
            rows::update(link, [(item.id, &item.record)])?;
            rows::update_hosts(link, &hosts)?;
            Ok(Some((item.record, token, company)))
        }
        Claimed::No | Claimed::Rests => Ok(None),
    }
}
