//! What is entered, and what is seen.

use rusqlite::Transaction;

use super::rows::{self, Fault, Item};
use super::settle;
use crate::core::ledger::class::{Class, Kind};
use crate::core::ledger::fail::Failed;
use crate::core::ledger::lease::Claimed;
use crate::core::ledger::record::{Fact, Learned, Owner, Record};
use crate::core::ledger::wake::{Seen, Woken};
use crate::core::time::{Delay, Epoch};
use crate::io::store::{Added, Addition, Sighting, Turn};

/// When the next wake beyond the allowance has its effect.
const WAKES: &str = "wakes";
/// So many observations of a file are kept.
const KEPT: u32 = 16;
/// So many bytes of who said something are kept.
const SOURCE: usize = 200;
/// Wakes beyond the allowance come later: this much at most.
const FAR: Delay = Delay::from_days(30);

/// Enters one file.
pub(super) fn add(t: &Transaction<'_>, addition: &Addition, turn: &mut Turn<'_>) -> Result<Added, Fault> {
    let facts = || {
        let mirrors = addition.mirrors.iter().cloned().map(Fact::Mirror);
        mirrors.chain(addition.size.map(Fact::Size)).chain(addition.digest.clone().map(Fact::Digest))
    };
    if let Some(mut item) = rows::of_key(t, &addition.key)? {
        let news: Vec<Kind> = facts().filter_map(|fact| learned(&mut item.record, fact)).collect();
        if !news.is_empty() {
            rows::update(t, item.id, &item.record)?;
        }
        for kind in &news {
            observe_one(t, &mut item, Seen { kind: *kind, at: turn.now }, turn)?;
        }
        return Ok(if news.is_empty() { Added::Known } else { Added::Richer });
    }
    let mut record = Record::new(addition.key.clone(), addition.host.clone(), Vec::new(), turn.now);
    facts().for_each(|fact| _ = record.learn(fact));
    if let Some(failed) = &addition.failed {
        failed_elsewhere(&mut record, failed, turn);
    }
    rows::insert(t, &record)?;
    Ok(Added::New)
}

/// It comes with a failure: as if it had been claimed and had failed here.
fn failed_elsewhere(record: &mut Record, failed: &Failed, turn: &mut Turn<'_>) {
    let claimed = record.claim_early(Owner(0), turn.rules.terms, turn.now);
    if let Claimed::Yes { token, .. } = claimed {
        // The claim has just been made.
        let _ = record.fail(token, failed, turn.now, &turn.rules.table, turn.rng);
    }
}

/// What kind of news it was, if it was.
pub(super) fn learned(record: &mut Record, fact: Fact) -> Option<Kind> {
    let kind = match fact {
        Fact::Mirror(_) => Kind::Mirror,
        Fact::Size(_) => Kind::Listed,
        Fact::Digest(_) => Kind::Digest,
    };
    (record.learn(fact) == Learned::Something).then_some(kind)
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
    let source: String = sighting
        .source
        .chars()
        .scan(0, |bytes, c| {
            *bytes += c.len_utf8();
            (*bytes <= SOURCE).then_some(c)
        })
        .collect();
    t.prepare_cached("INSERT INTO observation (item, at, kind, source) VALUES (?1, ?2, ?3, ?4)")?.execute((
        item,
        at.as_micros(),
        sighting.seen.kind.word(),
        source,
    ))?;
    let old = "DELETE FROM observation WHERE item = ?1 AND id NOT IN
         (SELECT id FROM observation WHERE item = ?1 ORDER BY at DESC, id DESC LIMIT ?2)";
    t.prepare_cached(old)?.execute((item, KEPT))?;
    Ok(())
}

/// The condition under which a kind wakes records of all classes that it can wake.
pub(super) fn woken_by(kind: Kind, turn: &Turn<'_>) -> String {
    let classes: Vec<String> = Class::ALL
        .into_iter()
        .filter(|class| turn.rules.table.rule(*class).wakes.holds(kind))
        .map(|class| (class as i64).to_string())
        .collect();
    format!("(i.class IS NULL OR i.class IN ({}))", classes.join(","))
}

/// The machine can be used again: what everybody paused for is over.
pub(super) fn ends_a_pause(t: &Transaction<'_>, kind: Kind) -> Result<(), Fault> {
    if kind == Kind::Space { settle::resume(t) } else { Ok(()) }
}
