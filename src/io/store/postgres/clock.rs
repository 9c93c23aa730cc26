//! Clocks that jump, and clocks of which one is wrong.

use super::link::{Fault, Link};
use super::rows;
use crate::core::ledger::clock::{self, Reading};
use crate::core::time::{Delay, Epoch};
use crate::io::store::Turn;
use crate::io::store::common::LATEST;

/// Two clocks this far apart are not both right.
const SLACK: Delay = Delay::from_mins(5);

/// Whether the time that calls bring is this machine's, to be held against the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// It is: a machine whose clock is wrong must not tell a fleet what is due.
    Compared,
    /// It is whatever the caller says; for simulations.
    Given,
}

/// This machine's clock and the server's agree.
pub(super) fn agree(link: &mut Link, clocks: Clocks, now: Epoch) -> Result<(), Fault> {
    if clocks == Clocks::Given {
        return Ok(());
    }
    let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    let server = Epoch::from_micros(link.number(sql, &[])?.unwrap_or(0));
    let (apart, how) = if server > now { (server.since(now), "behind") } else { (now.since(server), "ahead of") };
    if apart > SLACK {
        let seconds = apart.as_micros() / 1_000_000;
        return Err(Fault::Clock(format!(
            "this machine's clock is {seconds} s {how} the server's; set the one that is wrong: all who share a ledger go by one time"
        )));
    }
    Ok(())
}

/// Where the clock was set back: what is stored is measured from now on.
pub(super) fn was_set_back(link: &mut Link, turn: &Turn<'_>) -> Result<bool, Fault> {
    let latest = rows::numbers(link)?.get(LATEST).copied().map_or(Epoch::ZERO, Epoch::from_micros);
    Ok(clock::read(latest, turn.now) == Reading::SetBack)
}

/// Notes the time, be it earlier than the latest.
pub(super) fn note(link: &mut Link, now: Epoch) -> Result<(), Fault> {
    rows::keep(link, LATEST, now.as_micros())
}

/// Cuts what lies too far ahead; how many records there were. Looked for by the index, host after host.
pub(super) fn clamp(link: &mut Link, turn: &Turn<'_>) -> Result<u64, Fault> {
    let (now, rules) = (turn.now, turn.rules);
    let longest = now + rules.table.longest();
    let (beyond, leased) = (longest.as_micros(), (now + rules.terms.longest()).as_micros());
    let sql = "SELECT i.id FROM host h CROSS JOIN LATERAL
         (SELECT id FROM item WHERE host = h.id AND state < 3 AND due_at > $1
         UNION SELECT id FROM item WHERE host = h.id AND state = 2 AND due_at > $2) AS i";
    let ids: Vec<i64> =
        link.query(sql, &[&beyond, &leased])?.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let mut items = match ids.as_slice() {
        [] => Vec::new(),
        ids => rows::pick(link, "WHERE i.id = ANY($1) ORDER BY i.key FOR UPDATE OF i", &[&ids])?,
    };
    if !items.is_empty() {
        let mut hosts = rows::hosts(link, &items)?;
        for item in &mut items {
            item.record.clamp(now, &rules.table, rules.terms);
            if let Some(known) = hosts.get_mut(&item.host) {
                known.sooner(item.record.due_at);
            }
        }
        rows::update(link, items.iter().map(|item| (item.id, &item.record)))?;
        rows::update_hosts(link, &hosts)?;
    }
    let sql = "UPDATE host SET not_before = $1, ready_at = $2 WHERE not_before > $1";
    link.execute(sql, &[&beyond, &now.as_micros().max(beyond)])?;
    Ok(items.len() as u64)
}
