//! The tables, and how older ones become them.
//!
//! `item` is a record a row; its hosts have rows of their own, so that a claim looks at hosts that are ready and never wades
//! through the records of one that is not. `ready_at` of a host is never later than the moment at which one of its records
//! may be handed out; it may be sooner, and is put right when a claim finds nothing.

use rusqlite::{Connection, Transaction};

/// What tells a file to be a ledger of persxfer: "pxlg".
pub(super) const APPLICATION: i64 = 0x7078_6c67;
/// The format that this program writes.
pub(super) const FORMAT: i64 = STEPS.len() as i64;

/// What makes each format from the one before it.
const STEPS: [&str; 1] = ["
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE host (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  ready_at INTEGER NOT NULL,
  not_before INTEGER,
  penalty INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX host_ready ON host (ready_at);
CREATE TABLE item (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  host INTEGER NOT NULL,
  state INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  owner INTEGER,
  due_before INTEGER,
  before INTEGER,
  wake_at INTEGER,
  floor_at INTEGER,
  class INTEGER,
  rungs TEXT NOT NULL,
  step INTEGER NOT NULL,
  luck INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  lost INTEGER NOT NULL,
  claims INTEGER NOT NULL,
  first_seen INTEGER NOT NULL,
  last_attempt INTEGER,
  bytes_done INTEGER NOT NULL,
  woken_at INTEGER,
  size INTEGER,
  digest TEXT,
  mirrors TEXT NOT NULL
);
CREATE INDEX item_due ON item (host, due_at) WHERE state < 3;
CREATE INDEX item_woken ON item (due_at) WHERE woken_at IS NOT NULL AND state < 2;
CREATE INDEX item_leased ON item (host, due_at) WHERE state = 2;
CREATE TABLE observation (
  id INTEGER PRIMARY KEY,
  item INTEGER NOT NULL,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  source TEXT NOT NULL
);
CREATE INDEX observation_item ON observation (item, at);
"];

/// What a database is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// An empty one.
    Empty,
    /// A ledger of this format.
    Ledger(i64),
    /// Something else.
    Foreign,
}

/// Looks what it is.
pub(super) fn look(connection: &Connection) -> rusqlite::Result<What> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let application = number("PRAGMA application_id")?;
    if application == APPLICATION {
        return Ok(What::Ledger(number("PRAGMA user_version")?));
    }
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    Ok(if application == 0 && tables == 0 { What::Empty } else { What::Foreign })
}

/// Brings a ledger of this format to the newest.
pub(super) fn migrate(transaction: &Transaction<'_>, from: i64) -> rusqlite::Result<()> {
    let done = usize::try_from(from).unwrap_or(0);
    for step in STEPS.iter().skip(done) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", FORMAT)
}
