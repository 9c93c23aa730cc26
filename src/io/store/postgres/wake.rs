//! What is entered, and what is seen.

use std::collections::{BTreeMap, BTreeSet};

use super::link::{Fault, Link};
use super::rows::{self, Hosts, Item};
use crate::core::ledger::class::Kind;
use crate::core::ledger::record::{Key, Record};
use crate::core::ledger::wake::{Seen, Woken};
use crate::core::time::{Delay, Epoch};
use crate::io::store::common::{FAR, KEPT, WAKES, count, entered, facts, learned, source};
use crate::io::store::{Added, Addition, Sighting, Turn, Whom};

/// Enters files, all that are named once at a time.
pub(super) fn add(link: &mut Link, additions: &[Addition], turn: &mut Turn<'_>) -> Result<Vec<Added>, Fault> {
    let mut added = Vec::with_capacity(additions.len());
    for part in parts(additions, |addition| &addition.key) {
        added.extend(add_part(link, part, turn)?);
    }
    Ok(added)
}

/// Cuts a list into parts in each of which no key comes twice.
pub(super) fn parts<T>(all: &[T], key: impl Fn(&T) -> &Key) -> Vec<&[T]> {
    let (mut parts, mut from, mut seen) = (Vec::new(), 0, BTreeSet::new());
    for (n, one) in all.iter().enumerate() {
        if !seen.insert(key(one)) {
            parts.push(&all[from..n]);
            (from, seen) = (n, BTreeSet::from([key(one)]));
        }
    }
    parts.push(&all[from..]);
    parts
}

fn add_part(link: &mut Link, additions: &[Addition], turn: &mut Turn<'_>) -> Result<Vec<Added>, Fault> {
    let mut watch = Watch::begin(link, turn)?;
    let mut items = rows::locked(link, additions.iter().map(|addition| &addition.key))?;
    let mut hosts = rows::hosts(link, items.values())?;
    let (mut added, mut new) = (Vec::with_capacity(additions.len()), Vec::new());
    let (mut richer, mut touched) = (Vec::new(), BTreeSet::new());
    for addition in additions {
        let Some(mut item) = items.remove(&addition.key) else {
            new.push(entered(addition, turn));
            added.push(Added::New);
            continue;
        };
        let news: Vec<Kind> = facts(addition).filter_map(|fact| learned(&mut item.record, fact)).collect();
        for kind in &news {
            watch.observe(&mut item, &mut hosts, Seen { kind: *kind, at: turn.now }, turn);
        }
        added.push(if news.is_empty() { Added::Known } else { Added::Richer });
        if !news.is_empty() {
            touched.insert(item.host);
            richer.push(item);
        }
    }
    rows::update(link, richer.iter().map(|item| (item.id, &item.record)))?;
    hosts.retain(|id, _| touched.contains(id));
    rows::update_hosts(link, &hosts)?;
    rows::insert(link, &new)?;
    watch.end(link)?;
    Ok(added)
}

/// Enters whole records where they are not known; how many there were.
pub(super) fn import(link: &mut Link, records: &[Record], turn: &Turn<'_>) -> Result<u64, Fault> {
    let mut entered = 0;
    for part in parts(records, |record| &record.key) {
        let known = rows::locked(link, part.iter().map(|record| &record.key))?;
        let mut new: Vec<Record> = part.iter().filter(|record| !known.contains_key(&record.key)).cloned().collect();
        new.iter_mut().for_each(|record| _ = record.clamp(turn.now, &turn.rules.table, turn.rules.terms));
        rows::insert(link, &new)?;
        entered += new.len() as u64;
    }
    Ok(entered)
}

/// The allowance of wakes, as one call uses it.
pub(super) struct Watch {
    before: Epoch,
    stored: Epoch,
    limit: Limit,
}

/// Is there an allowance at all?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Some,
    None,
}

impl Watch {
    /// Whoever shares an allowance takes from it one after another; where there is none, nobody waits.
    pub(super) fn begin(link: &mut Link, turn: &Turn<'_>) -> Result<Self, Fault> {
        let limit = if turn.rules.wakes.filling() > Delay::ZERO { Limit::Some } else { Limit::None };
        let stored = match limit {
            Limit::Some => Epoch::from_micros(rows::number(link, WAKES)?),
            Limit::None => Epoch::ZERO,
        };
        Ok(Self { before: stored, stored, limit })
    }

    /// What comes of an observation.
    pub(super) fn observe(&mut self, item: &mut Item, hosts: &mut Hosts, seen: Seen, turn: &Turn<'_>) -> Woken {
        let rules = turn.rules;
        let mut budget = rules.wakes.restored(self.stored, turn.now, FAR);
        let known = hosts.get_mut(&item.host);
        let until = known.as_ref().and_then(|known| known.host.not_before);
        let before = item.record.due_at;
        let woken = item.record.observe(seen, turn.now, until, &rules.table, rules.manners, &mut budget);
        if let Some(known) = known.filter(|_| item.record.due_at != before) {
            known.sooner(item.record.due_at);
        }
        self.stored = budget.stored();
        woken
    }

    /// Writes what was taken.
    pub(super) fn end(self, link: &mut Link) -> Result<(), Fault> {
        if self.limit == Limit::None || self.stored == self.before {
            return Ok(());
        }
        rows::keep(link, WAKES, self.stored.as_micros())
    }
}

/// Somebody saw something of single records; it is remembered, whatever comes of it.
pub(super) fn observe(link: &mut Link, sightings: &[Sighting], turn: &Turn<'_>) -> Result<Vec<(Woken, u64)>, Fault> {
    let named = |sighting: &'_ Sighting| match &sighting.of {
        Whom::Key(key) => Some(key.clone()),
        _ => None,
    };
    let sightings: Vec<(Key, &Sighting)> = sightings.iter().filter_map(|s| named(s).zip(Some(s))).collect();
    if sightings.is_empty() {
        return Ok(Vec::new());
    }
    let mut watch = Watch::begin(link, turn)?;
    let mut items = rows::locked(link, sightings.iter().map(|(key, _)| key))?;
    let mut hosts = rows::hosts(link, items.values())?;
    let before: BTreeMap<Key, Record> = items.iter().map(|(key, item)| (key.clone(), item.record.clone())).collect();
    let (mut told, mut kept) = (Vec::new(), Vec::new());
    for (key, sighting) in &sightings {
        let Some(item) = items.get_mut(key) else { continue };
        let at = sighting.seen.at.min(turn.now);
        let mut best = None;
        for fact in sighting.facts.iter().cloned() {
            if let Some(kind) = learned(&mut item.record, fact) {
                best = Some(watch.observe(item, &mut hosts, Seen { kind, at }, turn));
            }
        }
        let woken = watch.observe(item, &mut hosts, Seen { at, ..sighting.seen }, turn);
        count(&mut told, best.filter(|best| matches!(best, Woken::Sooner | Woken::Later)).unwrap_or(woken));
        kept.push((item.id, at.as_micros(), sighting.seen.kind.word(), source(&sighting.source)));
    }
    items.retain(|key, item| before.get(key) != Some(&item.record));
    rows::update(link, items.values().map(|item| (item.id, &item.record)))?;
    rows::update_hosts(link, &hosts)?;
    remember(link, &kept)?;
    watch.end(link)?;
    Ok(told)
}

fn remember(link: &mut Link, kept: &[(i64, i64, &str, String)]) -> Result<(), Fault> {
    if kept.is_empty() {
        return Ok(());
    }
    let items: Vec<i64> = kept.iter().map(|(item, ..)| *item).collect();
    let at: Vec<i64> = kept.iter().map(|(_, at, ..)| *at).collect();
    let kinds: Vec<&str> = kept.iter().map(|(_, _, kind, _)| *kind).collect();
    let sources: Vec<&str> = kept.iter().map(|(.., source)| source.as_str()).collect();
    let sql = "INSERT INTO observation (item, at, kind, source) SELECT o.item, o.at, o.kind, o.source FROM
         unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) WITH ORDINALITY AS o (item, at, kind, source, nth)
         ORDER BY o.nth";
    link.execute(sql, &[&items, &at, &kinds, &sources])?;
    let old =
        "DELETE FROM observation o USING (SELECT id, row_number() OVER (PARTITION BY item ORDER BY at DESC, id DESC)
         AS nth FROM observation WHERE item = ANY($1)) AS k WHERE o.id = k.id AND k.nth > $2";
    link.execute(old, &[&items, &i64::from(KEPT)]).map(drop)
}

/// What somebody saw of some of many: those behind a row, so many at most. The last row, and what came of each.
pub(super) fn observe_some(
    link: &mut Link,
    condition: &str,
    (after, host, most): (i64, Option<&str>, u32),
    seen: Seen,
    turn: &Turn<'_>,
) -> Result<Option<(i64, Vec<Woken>)>, Fault> {
    let mut watch = Watch::begin(link, turn)?;
    let mut items = rows::pick(link, condition, &[&after, &turn.now.as_micros(), &host, &i64::from(most)])?;
    let mut hosts = rows::hosts(link, &items)?;
    let mut woken = Vec::with_capacity(items.len());
    let mut changed = Vec::new();
    let last = items.last().map(|item| item.id);
    for item in &mut items {
        let before = item.record.clone();
        woken.push(watch.observe(item, &mut hosts, seen, turn));
        if item.record != before {
            changed.push((item.id, &item.record));
        }
    }
    rows::update(link, changed)?;
    rows::update_hosts(link, &hosts)?;
    watch.end(link)?;
    Ok(last.map(|last| (last, woken)))
}
