//! What holders say: that they live, and how it ended.

use std::collections::BTreeSet;

use super::link::{Fault, Link};
use super::rows;
use crate::core::ledger::fail::Aftermath;
use crate::core::ledger::lease::LeaseLost;
use crate::core::ledger::record::{Key, Owner, Token};
use crate::core::time::Epoch;
use crate::io::store::common::{PAUSED, PAUSES, forgotten, pause_until, told};
use crate::io::store::{Turn, Word};

/// Holders live.
pub(super) fn beat(
    link: &mut Link,
    held: &[(Key, Token)],
    turn: &Turn<'_>,
) -> Result<Vec<Result<(), LeaseLost>>, Fault> {
    let mut items = rows::locked(link, held.iter().map(|(key, _)| key))?;
    let mut answers = Vec::with_capacity(held.len());
    let mut beaten = BTreeSet::new();
    for (key, token) in held {
        let answer = match items.get_mut(key) {
            Some(item) => item.record.beat(*token, turn.rules.terms, turn.now),
            None => Err(forgotten(key, *token)),
        };
        if answer.is_ok() {
            beaten.insert(key);
        }
        answers.push(answer);
    }
    items.retain(|key, _| beaten.contains(key));
    rows::update(link, items.values().map(|item| (item.id, &item.record)))?;
    Ok(answers)
}

/// Holders' last words.
pub(super) fn settle(
    link: &mut Link,
    words: &[(Key, Token, Word)],
    turn: &mut Turn<'_>,
) -> Result<Vec<Result<(), LeaseLost>>, Fault> {
    let mut items = rows::locked(link, words.iter().map(|(key, ..)| key))?;
    let mut hosts = rows::hosts(link, items.values())?;
    let mut answers = Vec::with_capacity(words.len());
    let mut settled = BTreeSet::new();
    let mut ends = Vec::new();
    for (key, token, word) in words {
        let Some(item) = items.get_mut(key) else {
            answers.push(Err(forgotten(key, *token)));
            continue;
        };
        let aftermath = match told(&mut item.record, *token, word, turn) {
            Ok(aftermath) => aftermath,
            Err(lost) => {
                answers.push(Err(lost));
                continue;
            }
        };
        if let Some(known) = hosts.get_mut(&item.host) {
            match word {
                Word::Done { .. } => known.host.answered(),
                _ => known.host.heard(aftermath, turn.now, turn.rng),
            }
            // There is room for one more of its records now.
            known.ready(turn.now);
        }
        settled.insert(key);
        ends.extend(match word {
            Word::Done { .. } => Some(End::Success),
            _ => (aftermath == Aftermath::Pause).then_some(End::Trouble),
        });
        answers.push(Ok(()));
    }
    items.retain(|key, _| settled.contains(key));
    let touched: BTreeSet<i64> = items.values().map(|item| item.host).collect();
    hosts.retain(|id, _| touched.contains(id));
    rows::update(link, items.values().map(|item| (item.id, &item.record)))?;
    rows::update_hosts(link, &hosts)?;
    pause(link, &ends, turn)?;
    Ok(answers)
}

/// What an attempt says of the machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// They work.
    Success,
    /// One is in trouble.
    Trouble,
}

/// A machine in trouble: nobody gets anything for a while, longer each time until something succeeds.
fn pause(link: &mut Link, ends: &[End], turn: &Turn<'_>) -> Result<(), Fault> {
    if !ends.contains(&End::Trouble) {
        return if ends.is_empty() { Ok(()) } else { resume(link) };
    }
    let (mut until, mut pauses) = (rows::number(link, PAUSED)?, rows::number(link, PAUSES)?);
    for end in ends {
        match end {
            End::Success => (until, pauses) = (0, 0),
            // Several that fail for one reason are one pause.
            End::Trouble if Epoch::from_micros(until) <= turn.now => {
                if let Some(next) = pause_until(pauses, turn) {
                    (until, pauses) = (next.as_micros(), pauses.saturating_add(1));
                }
            }
            End::Trouble => {}
        }
    }
    rows::keep(link, PAUSED, until)?;
    rows::keep(link, PAUSES, pauses)
}

/// What everybody paused for is over.
pub(super) fn resume(link: &mut Link) -> Result<(), Fault> {
    let sql = "UPDATE meta SET value = 0 WHERE name IN ($1, $2) AND value <> 0";
    link.execute(sql, &[&PAUSED, &PAUSES]).map(drop)
}

/// The leases of the dead are as if they had never been.
pub(super) fn restore(link: &mut Link, is_dead: &mut dyn FnMut(Owner) -> bool) -> Result<u64, Fault> {
    let owners = link.query("SELECT DISTINCT owner FROM item WHERE state = 2 AND owner IS NOT NULL", &[])?;
    let owners: Vec<i64> = owners.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let dead: Vec<i64> = owners.into_iter().filter(|owner| is_dead(Owner(owner.cast_unsigned()))).collect();
    if dead.is_empty() {
        return Ok(0);
    }
    let rest = "WHERE i.state = 2 AND i.owner = ANY($1) ORDER BY i.key FOR UPDATE OF i";
    let mut items = rows::pick(link, rest, &[&dead])?;
    let mut hosts = rows::hosts(link, &items)?;
    items.retain_mut(|item| {
        let held = item.record.lease().map(|lease| lease.owner);
        held.is_some_and(|owner| item.record.restore(owner))
    });
    for item in &items {
        if let Some(known) = hosts.get_mut(&item.host) {
            known.sooner(item.record.due_at);
        }
    }
    rows::update(link, items.iter().map(|item| (item.id, &item.record)))?;
    rows::update_hosts(link, &hosts)?;
    Ok(items.len() as u64)
}
