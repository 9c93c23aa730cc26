//! Reading and writing of rows.

use rusqlite::{OptionalExtension, Params, Row as Sql, Transaction, named_params};

use crate::core::ledger::host::Host;
use crate::core::ledger::record::{Key, Record};
use crate::core::time::Epoch;
use crate::io::store::BadRow;
use crate::io::store::row::Row;

/// What goes wrong within a transaction.
#[derive(Debug)]
pub(super) enum Fault {
    /// The database.
    Sql(rusqlite::Error),
    /// What stands in it.
    Row(BadRow),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<BadRow> for Fault {
    fn from(bad: BadRow) -> Self {
        Self::Row(bad)
    }
}

/// A record, and which rows it and its host are.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) id: i64,
    pub(super) host: i64,
    pub(super) record: Record,
}

/// The columns of [`item`], of `item i JOIN host h`.
const COLUMNS: &str = "i.id, i.host, h.name, i.key, i.mirrors, i.digest, i.size, i.first_seen, i.state, i.due_at, i.owner, \
     i.due_before, i.before, i.wake_at, i.floor_at, i.class, i.rungs, i.step, i.luck, i.failures, i.lost, i.claims, \
     i.last_attempt, i.bytes_done, i.woken_at";

fn item(sql: &Sql<'_>) -> Result<Item, Fault> {
    let row = Row {
        key: sql.get(3)?,
        mirrors: sql.get(4)?,
        digest: sql.get(5)?,
        size: sql.get(6)?,
        first_seen: sql.get(7)?,
        state: sql.get(8)?,
        due_at: sql.get(9)?,
        owner: sql.get(10)?,
        due_before: sql.get(11)?,
        before: sql.get(12)?,
        wake_at: sql.get(13)?,
        floor_at: sql.get(14)?,
        class: sql.get(15)?,
        rungs: sql.get(16)?,
        step: sql.get(17)?,
        luck: sql.get(18)?,
        failures: sql.get(19)?,
        lost: sql.get(20)?,
        claims: sql.get(21)?,
        last_attempt: sql.get(22)?,
        bytes_done: sql.get(23)?,
        woken_at: sql.get(24)?,
    };
    Ok(Item { id: sql.get(0)?, host: sql.get(1)?, record: row.record(sql.get(2)?)? })
}

/// The items that a condition, with what follows it, picks.
pub(super) fn pick(t: &Transaction<'_>, rest: &str, params: impl Params) -> Result<Vec<Item>, Fault> {
    let sql = format!("SELECT {COLUMNS} FROM item i JOIN host h ON h.id = i.host {rest}");
    let mut statement = t.prepare_cached(&sql)?;
    let mut rows = statement.query(params)?;
    let mut items = Vec::new();
    while let Some(row) = rows.next()? {
        items.push(item(row)?);
    }
    Ok(items)
}

/// The item of that name.
pub(super) fn of_key(t: &Transaction<'_>, key: &Key) -> Result<Option<Item>, Fault> {
    Ok(pick(t, "WHERE i.key = ?1", [key.as_str()])?.pop())
}

/// Enters a record; the row it is.
pub(super) fn insert(t: &Transaction<'_>, record: &Record) -> Result<i64, Fault> {
    let (row, host) = (Row::of(record), host_row(t, &record.host, record.due_at)?);
    t.prepare_cached(
        "INSERT INTO item (key, host, state, due_at, owner, due_before, before, wake_at, floor_at, class, rungs, step, luck,
         failures, lost, claims, first_seen, last_attempt, bytes_done, woken_at, size, digest, mirrors) VALUES (:key, :host,
         :state, :due_at, :owner, :due_before, :before, :wake_at, :floor_at, :class, :rungs, :step, :luck, :failures, :lost,
         :claims, :first_seen, :last_attempt, :bytes_done, :woken_at, :size, :digest, :mirrors)",
    )?
    .execute(named_params! {
        ":key": row.key, ":host": host, ":state": row.state, ":due_at": row.due_at, ":owner": row.owner,
        ":due_before": row.due_before, ":before": row.before, ":wake_at": row.wake_at, ":floor_at": row.floor_at,
        ":class": row.class, ":rungs": row.rungs, ":step": row.step, ":luck": row.luck, ":failures": row.failures,
        ":lost": row.lost, ":claims": row.claims, ":first_seen": row.first_seen, ":last_attempt": row.last_attempt,
        ":bytes_done": row.bytes_done, ":woken_at": row.woken_at, ":size": row.size, ":digest": row.digest,
        ":mirrors": row.mirrors,
    })?;
    Ok(t.last_insert_rowid())
}

/// Writes what a record is by now. Its name, its host and when it was first seen stay.
pub(super) fn update(t: &Transaction<'_>, id: i64, record: &Record) -> Result<(), Fault> {
    let row = Row::of(record);
    t.prepare_cached(
        "UPDATE item SET state = :state, due_at = :due_at, owner = :owner, due_before = :due_before, before = :before,
         wake_at = :wake_at, floor_at = :floor_at, class = :class, rungs = :rungs, step = :step, luck = :luck,
         failures = :failures, lost = :lost, claims = :claims, last_attempt = :last_attempt, bytes_done = :bytes_done,
         woken_at = :woken_at, size = :size, digest = :digest, mirrors = :mirrors WHERE id = :id",
    )?
    .execute(named_params! {
        ":state": row.state, ":due_at": row.due_at, ":owner": row.owner, ":due_before": row.due_before,
        ":before": row.before, ":wake_at": row.wake_at, ":floor_at": row.floor_at, ":class": row.class,
        ":rungs": row.rungs, ":step": row.step, ":luck": row.luck, ":failures": row.failures, ":lost": row.lost,
        ":claims": row.claims, ":last_attempt": row.last_attempt, ":bytes_done": row.bytes_done,
        ":woken_at": row.woken_at, ":size": row.size, ":digest": row.digest, ":mirrors": row.mirrors, ":id": id,
    })?;
    Ok(())
}

/// The row of a host, made where it is missing. One of its records may be handed out at `due_at`.
pub(super) fn host_row(t: &Transaction<'_>, name: &str, due_at: Epoch) -> Result<i64, Fault> {
    let sql = "INSERT INTO host (name, ready_at) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET ready_at =
         max(min(ready_at, excluded.ready_at), coalesce(not_before, excluded.ready_at)) RETURNING id";
    Ok(t.prepare_cached(sql)?.query_row((name, due_at.as_micros()), |row| row.get(0))?)
}

/// What is known of a host.
pub(super) fn host(t: &Transaction<'_>, id: i64) -> Result<Host, Fault> {
    let sql = "SELECT penalty, not_before FROM host WHERE id = ?1";
    let host = |row: &Sql<'_>| {
        let not_before = row.get::<_, Option<i64>>(1)?.map(Epoch::from_micros);
        Ok(Host { penalty: row.get(0)?, not_before })
    };
    Ok(t.prepare_cached(sql)?.query_row([id], host).optional()?.unwrap_or_default())
}

/// Writes what is known of a host, and that one of its records may be handed out at `ready_at`.
pub(super) fn update_host(t: &Transaction<'_>, id: i64, host: &Host, ready_at: Epoch) -> Result<(), Fault> {
    let not_before = host.not_before.map(Epoch::as_micros);
    let ready = ready_at.as_micros().max(not_before.unwrap_or(i64::MIN));
    let sql = "UPDATE host SET penalty = ?2, not_before = ?3, ready_at = ?4 WHERE id = ?1";
    t.prepare_cached(sql)?.execute((id, host.penalty, not_before, ready))?;
    Ok(())
}

/// One of a host's records may be handed out at `due_at`: perhaps sooner than was known.
pub(super) fn sooner(t: &Transaction<'_>, id: i64, due_at: Epoch) -> Result<(), Fault> {
    let sql = "UPDATE host SET ready_at = max(?2, coalesce(not_before, ?2)) WHERE id = ?1 AND ready_at > ?2";
    t.prepare_cached(sql)?.execute((id, due_at.as_micros()))?;
    Ok(())
}

/// A number that is kept by name.
pub(super) fn number(t: &Transaction<'_>, name: &str) -> Result<Option<i64>, Fault> {
    let sql = "SELECT value FROM meta WHERE name = ?1";
    Ok(t.prepare_cached(sql)?.query_row([name], |row| row.get(0)).optional()?)
}

/// Keeps a number by name.
pub(super) fn keep(t: &Transaction<'_>, name: &str, value: i64) -> Result<(), Fault> {
    let sql = "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    t.prepare_cached(sql)?.execute((name, value))?;
    Ok(())
}
