//! The tables, in a schema of their own, and how older ones become them.
//!
//! They are those of the file (`sqlite/schema.rs` says what `ready_at` promises), but that the numbers kept by name are there
//! from the start, so that they can be locked.

use super::link::{Fault, Link};

/// What tells a schema to be a ledger of persxfer: "pxlg".
const APPLICATION: i64 = 0x7078_6c67;
/// The format that this program writes.
pub(super) const FORMAT: i64 = STEPS.len() as i64;

/// What makes each format from the one before it.
const STEPS: [&str; 1] = ["
CREATE TABLE persxfer.ledger (application BIGINT NOT NULL, format BIGINT NOT NULL);
CREATE TABLE persxfer.meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL);
INSERT INTO persxfer.meta (name, value)
  VALUES ('latest', 0), ('dispatch', 0), ('paused_until', 0), ('pauses', 0), ('wakes', 0);
CREATE TABLE persxfer.host (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT COLLATE \"C\" NOT NULL UNIQUE,
  ready_at BIGINT NOT NULL,
  not_before BIGINT,
  penalty BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX host_ready ON persxfer.host (ready_at);
CREATE TABLE persxfer.item (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key TEXT COLLATE \"C\" NOT NULL UNIQUE,
  host BIGINT NOT NULL REFERENCES persxfer.host,
  state BIGINT NOT NULL,
  due_at BIGINT NOT NULL,
  owner BIGINT,
  due_before BIGINT,
  before BIGINT,
  wake_at BIGINT,
  floor_at BIGINT,
  class BIGINT,
  rungs TEXT NOT NULL,
  step BIGINT NOT NULL,
  luck BIGINT NOT NULL,
  failures BIGINT NOT NULL,
  lost BIGINT NOT NULL,
  claims BIGINT NOT NULL,
  first_seen BIGINT NOT NULL,
  last_attempt BIGINT,
  bytes_done BIGINT NOT NULL,
  woken_at BIGINT,
  size BIGINT,
  digest TEXT,
  mirrors TEXT NOT NULL
);
CREATE INDEX item_due ON persxfer.item (host, due_at) WHERE state < 3;
CREATE INDEX item_woken ON persxfer.item (due_at) WHERE woken_at IS NOT NULL AND state < 2;
CREATE INDEX item_leased ON persxfer.item (host, due_at) WHERE state = 2;
CREATE TABLE persxfer.observation (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  item BIGINT NOT NULL REFERENCES persxfer.item ON DELETE CASCADE,
  at BIGINT NOT NULL,
  kind TEXT NOT NULL,
  source TEXT NOT NULL
);
CREATE INDEX observation_item ON persxfer.observation (item, at);
"];

/// What a database has under our schema's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// No such schema.
    Absent,
    /// One with nothing in it, made for us beforehand.
    Empty,
    /// A ledger of this format.
    Ledger(i64),
    /// Something else.
    Foreign,
}

/// Looks what it is.
pub(super) fn look(link: &mut Link) -> Result<What, Fault> {
    let schema = "SELECT oid::bigint FROM pg_namespace WHERE nspname = 'persxfer'";
    let Some(schema) = link.number(schema, &[])? else { return Ok(What::Absent) };
    let ours =
        "SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE c.relnamespace::bigint = $1
         AND c.relname = 'ledger' AND a.attname IN ('application', 'format') AND a.atttypid = 'bigint'::regtype";
    if link.number(ours, &[&schema])? == Some(2) {
        let rows = link.query("SELECT application, format FROM persxfer.ledger", &[])?;
        return Ok(match rows.as_slice() {
            [row] if row.try_get::<_, i64>(0)? == APPLICATION => What::Ledger(row.try_get(1)?),
            _ => What::Foreign,
        });
    }
    let things = "SELECT (SELECT count(*) FROM pg_class WHERE relnamespace::bigint = $1)
         + (SELECT count(*) FROM pg_proc WHERE pronamespace::bigint = $1)";
    Ok(if link.number(things, &[&schema])? == Some(0) { What::Empty } else { What::Foreign })
}

/// Only one process at a time looks and migrates.
pub(super) fn alone(link: &mut Link) -> Result<(), Fault> {
    link.query("SELECT pg_advisory_xact_lock($1)", &[&APPLICATION]).map(drop)
}

/// Brings it to the newest format.
pub(super) fn migrate(link: &mut Link, what: What) -> Result<(), Fault> {
    let done = match what {
        What::Absent => {
            link.batch("CREATE SCHEMA persxfer")?;
            0
        }
        What::Ledger(format) => usize::try_from(format).unwrap_or(0),
        What::Empty | What::Foreign => 0,
    };
    for step in STEPS.iter().skip(done) {
        link.batch(step)?;
    }
    if done < STEPS.len() {
        link.batch("DELETE FROM persxfer.ledger")?;
        let sql = "INSERT INTO persxfer.ledger (application, format) VALUES ($1, $2)";
        link.execute(sql, &[&APPLICATION, &FORMAT])?;
    }
    Ok(())
}
