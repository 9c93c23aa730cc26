//! What holders say: that they live, and how it ended.

use rusqlite::Transaction;

use super::rows::{self, Fault, Item};
use crate::core::ledger::fail::Aftermath;
use crate::core::ledger::lease::LeaseLost;
use crate::core::ledger::record::{Key, Owner, Token};
use crate::core::time::Epoch;
use crate::io::store::common::{PAUSED, PAUSES, forgotten, pause_until, told};
use crate::io::store::{Turn, Word};

/// A holder lives.
pub(super) fn beat(
    t: &Transaction<'_>,
    key: &Key,
    token: Token,
    turn: &Turn<'_>,
) -> Result<Result<(), LeaseLost>, Fault> {
    let Some(Item { id, mut record, .. }) = rows::of_key(t, key)? else { return Ok(Err(forgotten(key, token))) };
    let told = record.beat(token, turn.rules.terms, turn.now);
    if told.is_ok() {
        rows::update(t, id, &record)?;
    }
    Ok(told)
}

/// A holder's last word.
pub(super) fn settle(
    t: &Transaction<'_>,
    (key, token, word): &(Key, Token, Word),
    turn: &mut Turn<'_>,
) -> Result<Result<(), LeaseLost>, Fault> {
    let Some(Item { id, host, mut record }) = rows::of_key(t, key)? else { return Ok(Err(forgotten(key, *token))) };
    let aftermath = match told(&mut record, *token, word, turn) {
        Ok(aftermath) => aftermath,
        Err(lost) => return Ok(Err(lost)),
    };
    rows::update(t, id, &record)?;
    let mut known = rows::host(t, host)?;
    match word {
        Word::Done { .. } => {
            known.answered();
            resume(t)?;
        }
        _ => known.heard(aftermath, turn.now, turn.rng),
    }
    // There is room for one more of its records now.
    rows::update_host(t, host, &known, turn.now)?;
    if aftermath == Aftermath::Pause {
        pause(t, turn)?;
    }
    Ok(Ok(()))
}

/// This machine is in trouble: nobody gets anything for a while, longer each time until something succeeds.
fn pause(t: &Transaction<'_>, turn: &mut Turn<'_>) -> Result<(), Fault> {
    let pauses = rows::number(t, PAUSES)?.unwrap_or(0);
    let Some(until) = pause_until(pauses, turn) else { return Ok(()) };
    // Several that fail for one reason are one pause.
    if rows::number(t, PAUSED)?.is_none_or(|known| Epoch::from_micros(known) <= turn.now) {
        rows::keep(t, PAUSED, until.as_micros())?;
        rows::keep(t, PAUSES, pauses.saturating_add(1))?;
    }
    Ok(())
}

/// What everybody paused for is over.
pub(super) fn resume(t: &Transaction<'_>) -> Result<(), Fault> {
    t.prepare_cached("DELETE FROM meta WHERE name IN (?1, ?2)")?.execute((PAUSED, PAUSES))?;
    Ok(())
}

/// The leases of the dead are as if they had never been.
pub(super) fn restore(t: &Transaction<'_>, is_dead: &mut dyn FnMut(Owner) -> bool) -> Result<u64, Fault> {
    let owners: Vec<i64> = {
        let mut statement = t.prepare_cached("SELECT DISTINCT owner FROM item WHERE state = 2")?;
        let owners = statement.query_map([], |row| row.get(0))?;
        owners.collect::<Result<_, _>>()?
    };
    let mut restored = 0;
    for owner in owners {
        let dead = Owner(owner.cast_unsigned());
        if !is_dead(dead) {
            continue;
        }
        for Item { id, host, mut record } in rows::pick(t, "WHERE i.state = 2 AND i.owner = ?1", [owner])? {
            if record.restore(dead) {
                rows::update(t, id, &record)?;
                rows::sooner(t, host, record.due_at)?;
                restored += 1;
            }
        }
    }
    Ok(restored)
}
