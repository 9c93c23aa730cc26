//! Reading and writing of rows, many at a time: a call crosses the network a few times, however many records it is about.

use std::collections::BTreeMap;

use tokio_postgres::Row as Sql;
use tokio_postgres::types::ToSql;

use super::link::{Fault, Link};
use crate::core::ledger::host::Host;
use crate::core::ledger::record::{Key, Record};
use crate::core::time::Epoch;
use crate::io::store::row::Row;

/// A record, and which rows it and its host are.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) id: i64,
    pub(super) host: i64,
    pub(super) record: Record,
}

/// The columns of [`item`], of `item i`.
pub(super) const COLUMNS: &str = "i.id, i.host, (SELECT h.name FROM host h WHERE h.id = i.host), i.key, i.mirrors, i.digest, \
     i.size, i.first_seen, i.state, i.due_at, i.owner, i.due_before, i.before, i.wake_at, i.floor_at, i.class, i.rungs, \
     i.step, i.luck, i.failures, i.lost, i.claims, i.last_attempt, i.bytes_done, i.woken_at";

/// A column of whole numbers.
type Number = (&'static str, fn(&Row) -> Option<i64>);
/// A column of texts.
type Text = (&'static str, fn(&Row) -> Option<&str>);

/// What [`insert`] and [`update`] write of a row, beside its key and host.
const NUMBERS: [Number; 18] = [
    ("size", |r| r.size),
    ("first_seen", |r| Some(r.first_seen)),
    ("state", |r| Some(r.state)),
    ("due_at", |r| Some(r.due_at)),
    ("owner", |r| r.owner),
    ("due_before", |r| r.due_before),
    ("before", |r| r.before),
    ("wake_at", |r| r.wake_at),
    ("floor_at", |r| r.floor_at),
    ("class", |r| r.class),
    ("step", |r| Some(r.step)),
    ("luck", |r| Some(r.luck)),
    ("failures", |r| Some(r.failures)),
    ("lost", |r| Some(r.lost)),
    ("claims", |r| Some(r.claims)),
    ("last_attempt", |r| r.last_attempt),
    ("bytes_done", |r| Some(r.bytes_done)),
    ("woken_at", |r| r.woken_at),
];
/// The texts among it.
const TEXTS: [Text; 3] =
    [("mirrors", |r| Some(&r.mirrors)), ("digest", |r| r.digest.as_deref()), ("rungs", |r| Some(&r.rungs))];

fn item(sql: &Sql) -> Result<Item, Fault> {
    let row = Row {
        key: sql.try_get(3)?,
        mirrors: sql.try_get(4)?,
        digest: sql.try_get(5)?,
        size: sql.try_get(6)?,
        first_seen: sql.try_get(7)?,
        state: sql.try_get(8)?,
        due_at: sql.try_get(9)?,
        owner: sql.try_get(10)?,
        due_before: sql.try_get(11)?,
        before: sql.try_get(12)?,
        wake_at: sql.try_get(13)?,
        floor_at: sql.try_get(14)?,
        class: sql.try_get(15)?,
        rungs: sql.try_get(16)?,
        step: sql.try_get(17)?,
        luck: sql.try_get(18)?,
        failures: sql.try_get(19)?,
        lost: sql.try_get(20)?,
        claims: sql.try_get(21)?,
        last_attempt: sql.try_get(22)?,
        bytes_done: sql.try_get(23)?,
        woken_at: sql.try_get(24)?,
    };
    Ok(Item { id: sql.try_get(0)?, host: sql.try_get(1)?, record: row.record(sql.try_get(2)?)? })
}

/// The items that a statement of [`COLUMNS`] answers.
pub(super) fn items(link: &mut Link, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Item>, Fault> {
    link.query(sql, params)?.iter().map(item).collect()
}

/// The items that a condition, with what follows it, picks.
pub(super) fn pick(link: &mut Link, rest: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Item>, Fault> {
    items(link, &format!("SELECT {COLUMNS} FROM item i {rest}"), params)
}

/// The items of those names that are there, locked; in the order of their keys, as everybody locks them.
pub(super) fn locked<'k>(
    link: &mut Link,
    keys: impl IntoIterator<Item = &'k Key>,
) -> Result<BTreeMap<Key, Item>, Fault> {
    let keys: Vec<&str> = keys.into_iter().map(Key::as_str).collect();
    let items = pick(link, "WHERE i.key = ANY($1) ORDER BY i.key FOR UPDATE OF i", &[&keys])?;
    Ok(items.into_iter().map(|item| (item.record.key.clone(), item)).collect())
}

/// Enters records that are new. [`Fault::Again`] where one was entered meanwhile.
pub(super) fn insert(link: &mut Link, records: &[Record]) -> Result<(), Fault> {
    if records.is_empty() {
        return Ok(());
    }
    let hosts = host_rows(link, records)?;
    let of = |record: &Record| hosts.get(&record.host).copied();
    let hosts: Vec<Option<i64>> = records.iter().map(of).collect();
    let rows: Vec<Row> = records.iter().map(Row::of).collect();
    let keys: Vec<&str> = rows.iter().map(|row| row.key.as_str()).collect();
    let (names, arrays) = written(3);
    let sql = format!(
        "INSERT INTO item (key, host, {names}) SELECT * FROM unnest($1::text[], $2::bigint[], {arrays}) ORDER BY 1
         ON CONFLICT (key) DO NOTHING"
    );
    let entered = with_columns(&rows, &[&keys, &hosts], |params| link.execute(&sql, params))?;
    if entered == records.len() as u64 { Ok(()) } else { Err(Fault::Again) }
}

/// Writes what records are by now. Their names and their hosts stay.
pub(super) fn update<'r>(link: &mut Link, items: impl IntoIterator<Item = (i64, &'r Record)>) -> Result<(), Fault> {
    let (ids, rows): (Vec<i64>, Vec<Row>) = items.into_iter().map(|(id, record)| (id, Row::of(record))).unzip();
    if ids.is_empty() {
        return Ok(());
    }
    let (names, arrays) = written(2);
    let all: Vec<&str> = NUMBERS.iter().map(|(name, _)| *name).chain(TEXTS.iter().map(|(name, _)| *name)).collect();
    let set = all.iter().map(|name| format!("{name} = n.{name}")).collect::<Vec<_>>().join(", ");
    let sql =
        format!("UPDATE item SET {set} FROM unnest($1::bigint[], {arrays}) AS n (id, {names}) WHERE item.id = n.id");
    with_columns(&rows, &[&ids], |params| link.execute(&sql, params)).map(drop)
}

/// The columns that are written, and the arrays that they come in, numbered from `first`.
fn written(first: usize) -> (String, String) {
    let names: Vec<&str> = NUMBERS.iter().map(|(name, _)| *name).chain(TEXTS.iter().map(|(name, _)| *name)).collect();
    let kind = |n: usize| if n < NUMBERS.len() { "bigint" } else { "text" };
    let arrays: Vec<String> = (0..names.len()).map(|n| format!("${}::{}[]", first + n, kind(n))).collect();
    (names.join(", "), arrays.join(", "))
}

/// Runs a statement whose parameters are `first`, then a column of all rows each.
fn with_columns<T>(
    rows: &[Row],
    first: &[&(dyn ToSql + Sync)],
    run: impl FnOnce(&[&(dyn ToSql + Sync)]) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let numbers: Vec<Vec<Option<i64>>> = NUMBERS.iter().map(|(_, column)| rows.iter().map(column).collect()).collect();
    let texts: Vec<Vec<Option<&str>>> = TEXTS.iter().map(|(_, column)| rows.iter().map(column).collect()).collect();
    let mut params = first.to_vec();
    params.extend(numbers.iter().map(|column| column as &(dyn ToSql + Sync)));
    params.extend(texts.iter().map(|column| column as &(dyn ToSql + Sync)));
    run(&params)
}

/// A host as a call finds and leaves it, locked.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) host: Host,
    /// Never later than when one of its records may be handed out.
    ready_at: i64,
}

impl Known {
    pub(super) fn read(sql: &Sql, from: usize) -> Result<Self, Fault> {
        let penalty: i64 = sql.try_get(from)?;
        let not_before: Option<i64> = sql.try_get(from + 1)?;
        let penalty = u32::try_from(penalty).unwrap_or(u32::MAX);
        let host = Host { penalty, not_before: not_before.map(Epoch::from_micros) };
        Ok(Self { host, ready_at: sql.try_get(from + 2)? })
    }

    /// When it is ready, as far as is known.
    pub(super) fn ready_at(&self) -> i64 {
        self.ready_at
    }

    /// One of its records may be handed out at that time, and none before.
    pub(super) fn ready(&mut self, at: Epoch) {
        self.ready_at = at.as_micros().max(self.host.not_before.map_or(i64::MIN, Epoch::as_micros));
    }

    /// One of its records may be handed out at that time: perhaps sooner than was known.
    pub(super) fn sooner(&mut self, due_at: Epoch) {
        if self.ready_at > due_at.as_micros() {
            self.ready(due_at);
        }
    }
}

/// Hosts by their rows, locked, in the order in which everybody locks them.
pub(super) type Hosts = BTreeMap<i64, Known>;

/// The hosts of these items, locked.
pub(super) fn hosts<'i>(link: &mut Link, items: impl IntoIterator<Item = &'i Item>) -> Result<Hosts, Fault> {
    let mut ids: Vec<i64> = items.into_iter().map(|item| item.host).collect();
    ids.sort_unstable();
    ids.dedup();
    let sql = "SELECT penalty, not_before, ready_at, id FROM host WHERE id = ANY($1) ORDER BY id FOR UPDATE";
    link.query(sql, &[&ids])?.iter().map(|row| Ok((row.try_get(3)?, Known::read(row, 0)?))).collect()
}

/// Writes what is known of hosts.
pub(super) fn update_hosts(link: &mut Link, hosts: &Hosts) -> Result<(), Fault> {
    if hosts.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = hosts.keys().copied().collect();
    let penalties: Vec<i64> = hosts.values().map(|known| known.host.penalty.into()).collect();
    let not_before: Vec<Option<i64>> =
        hosts.values().map(|known| known.host.not_before.map(Epoch::as_micros)).collect();
    let ready: Vec<i64> = hosts.values().map(|known| known.ready_at).collect();
    let sql = "UPDATE host SET penalty = n.penalty, not_before = n.not_before, ready_at = n.ready_at
         FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS n (id, penalty, not_before, ready_at)
         WHERE host.id = n.id";
    link.execute(sql, &[&ids, &penalties, &not_before, &ready]).map(drop)
}

/// The rows of the records' hosts, made where they are missing. Each is ready when the first of these records is due.
fn host_rows(link: &mut Link, records: &[Record]) -> Result<BTreeMap<String, i64>, Fault> {
    let mut first = BTreeMap::<&str, i64>::new();
    for record in records {
        let due = first.entry(&record.host).or_insert(i64::MAX);
        *due = record.due_at.as_micros().min(*due);
    }
    let (names, due): (Vec<&str>, Vec<i64>) = first.into_iter().unzip();
    let sql = "INSERT INTO host (name, ready_at) SELECT * FROM unnest($1::text[], $2::bigint[]) ORDER BY 1
         ON CONFLICT (name) DO UPDATE SET ready_at =
         greatest(least(host.ready_at, excluded.ready_at), coalesce(host.not_before, excluded.ready_at)) RETURNING name, id";
    link.query(sql, &[&names, &due])?.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

/// The numbers that are kept by name.
pub(super) fn numbers(link: &mut Link) -> Result<BTreeMap<String, i64>, Fault> {
    let rows = link.query("SELECT name, value FROM meta", &[])?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

/// One of them, locked.
pub(super) fn number(link: &mut Link, name: &str) -> Result<i64, Fault> {
    Ok(link.number("SELECT value FROM meta WHERE name = $1 FOR UPDATE", &[&name])?.unwrap_or(0))
}

/// Keeps one.
pub(super) fn keep(link: &mut Link, name: &str, value: i64) -> Result<(), Fault> {
    link.execute("UPDATE meta SET value = $2 WHERE name = $1", &[&name, &value]).map(drop)
}
