//! What is entered, and what is seen.

use rusqlite::Transaction;

use super::rows::{self, Fault, Item};
use super::settle;
use crate::core::ledger::class::Kind;
use crate::core::ledger::wake::{Seen, Woken};
use crate::core::time::Epoch;
use crate::io::store::common::{FAR, KEPT, WAKES, entered, facts, learned, source};
use crate::io::store::{Added, Addition, Sighting, Turn};

/// Enters one file.
pub(super) fn add(t: &Transaction<'_>, addition: &Addition, turn: &mut Turn<'_>) -> Result<Added, Fault> {
    if let Some(mut item) = rows::of_key(t, &addition.key)? {
        let news: Vec<Kind> = facts(addition).filter_map(|fact| learned(&mut item.record, fact)).collect();
        if !news.is_empty() {
            rows::update(t, item.id, &item.record)?;
        }
        for kind in &news {
            observe_one(t, &mut item, Seen { kind: *kind, at: turn.now }, turn)?;
        }
        return Ok(if news.is_empty() { Added::Known } else { Added::Richer });
    }
    rows::insert(t, &entered(addition, turn))?;
    Ok(Added::New)
}

/// Somebody saw something of one record; it is remembered, whatever comes of it.
pub(super) fn observe(
    t: &Transaction<'_>,
    item: &mut Item,
    sighting: &Sighting,
    turn: &mut Turn<'_>,
) -> Result<Woken, Fault> {
    let at = sighting.seen.at.min(turn.now);
    let mut best = None;
    for fact in sighting.facts.iter().cloned() {
        if let Some(kind) = learned(&mut item.record, fact) {
            rows::update(t, item.id, &item.record)?;
            best = Some(observe_one(t, item, Seen { kind, at }, turn)?);
        }
    }
    let woken = observe_one(t, item, Seen { at, ..sighting.seen }, turn)?;
    remember(t, item.id, sighting, at)?;
    Ok(match best {
        Some(Woken::Sooner | Woken::Later) => best.unwrap_or(woken),
        _ => woken,
    })
}

/// What comes of an observation.
pub(super) fn observe_one(
    t: &Transaction<'_>,
    item: &mut Item,
    seen: Seen,
    turn: &mut Turn<'_>,
) -> Result<Woken, Fault> {
    let rules = turn.rules;
    let stored = rows::number(t, WAKES)?.map_or(Epoch::ZERO, Epoch::from_micros);
    let mut budget = rules.wakes.restored(stored, turn.now, FAR);
    let host = rows::host(t, item.host)?;
    let before = item.record.clone();
    let woken = item.record.observe(seen, turn.now, host.not_before, &rules.table, rules.manners, &mut budget);
    if item.record != before {
        rows::update(t, item.id, &item.record)?;
        rows::sooner(t, item.host, item.record.due_at)?;
    }
    if budget.stored() != stored {
        rows::keep(t, WAKES, budget.stored().as_micros())?;
    }
    Ok(woken)
}

fn remember(t: &Transaction<'_>, item: i64, sighting: &Sighting, at: Epoch) -> Result<(), Fault> {
    t.prepare_cached("INSERT INTO observation (item, at, kind, source) VALUES (?1, ?2, ?3, ?4)")?.execute((
        item,
        at.as_micros(),
        sighting.seen.kind.word(),
        source(&sighting.source),
    ))?;
    let old = "DELETE FROM observation WHERE item = ?1 AND id NOT IN
         (SELECT id FROM observation WHERE item = ?1 ORDER BY at DESC, id DESC LIMIT ?2)";
    t.prepare_cached(old)?.execute((item, KEPT))?;
    Ok(())
}

/// The machine can be used again: what everybody paused for is over.
pub(super) fn ends_a_pause(t: &Transaction<'_>, kind: Kind) -> Result<(), Fault> {
    if kind == Kind::Space { settle::resume(t) } else { Ok(()) }
}
