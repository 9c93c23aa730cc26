//! The ledger in a PostgreSQL database: for a fleet, any number of machines.
//!
//! Every change is one transaction on rows that it has locked, decided by the core on what stands in them then. All lock in
//! one order: records by their keys, their hosts by their rows, numbers last; a claim locks only what is free
//! (`SKIP LOCKED`). Where two come into each other's way all the same, one of them begins anew. What must not be lost with
//! the server's power is on its disk before the call returns; claims and beats need not be.
//!
//! | file | does |
//! |---|---|
//! | `address` | URLs, and what is shown of them |
//! | `link` | the connection |
//! | `schema` | the tables, and older formats |
//! | `rows` | records as rows, many at a time |
//! | `claim` | which records are handed out |
//! | `clock` | clocks that jump, and that differ |
//! | `settle` | what holders say; what the dead held |
//! | `wake` | what is entered, and what is seen |

mod address;
mod claim;
mod clock;
mod link;
mod rows;
mod schema;
mod settle;
mod wake;

use std::path::Path;

use tokio_postgres::Config;
use tokio_postgres::error::SqlState;

use crate::core::ledger::class::Kind;
use crate::core::ledger::lease::{Company, LeaseLost};
use crate::core::ledger::record::{Key, Owner, Record, Token};
use crate::core::ledger::wake::{Seen, Woken};
use crate::core::time::Epoch;
use crate::io::store::common::{BATCH, PAUSED, count, woken_by};
use crate::io::store::{
    Added, Addition, Handed, LedgerStore, Observation, Page, Sighting, Stats, StoreError, Turn, Want, Whom, Word, row,
};
pub use clock::Clocks;
use link::{Fault, Link};
use schema::What;

/// A change that others come into the way of is begun so many times.
const TRIES: u32 = 8;

/// A ledger in a database.
pub struct Postgres {
    config: Config,
    clocks: Clocks,
    link: Option<Link>,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").field("place", &self.place()).field("clocks", &self.clocks).finish_non_exhaustive()
    }
}

/// How far a change must have come when the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Safe {
    /// On the server's disk.
    Synced,
    /// In its memory: the last of them may be lost with its power.
    Written,
}

impl Postgres {
    /// Opens a ledger, and makes it where there is none. Times that no rule can have set are cut.
    ///
    /// # Errors
    /// [`StoreError`]: a server that cannot be reached or refuses, a schema of our name that is something else or of a later
    /// format, a clock that is wrong.
    pub fn open(url: &str, clocks: Clocks, turn: &Turn<'_>) -> Result<Self, StoreError> {
        let mut ledger = Self { config: address::parse(url)?, clocks, link: None };
        ledger.prepare(turn)?;
        Ok(ledger)
    }

    fn prepare(&mut self, turn: &Turn<'_>) -> Result<(), StoreError> {
        let place = self.place();
        let clocks = self.clocks;
        let (what, standby, encoding) = self.look("open", |link| {
            clock::agree(link, clocks, turn.now)?;
            let standby = link.query("SELECT current_setting('transaction_read_only')", &[])?;
            let encoding = link.query("SELECT current_setting('server_encoding')", &[])?;
            let text = |rows: &[tokio_postgres::Row]| rows.first().map_or(Ok(String::new()), |row| row.try_get(0));
            Ok((schema::look(link)?, text(&standby)? == "on", text(&encoding)?))
        })?;
        if encoding != "UTF8" {
            let detail = format!("the database's encoding is {encoding}; a ledger wants UTF8");
            return Err(StoreError::Open { place, detail });
        }
        match what {
            What::Foreign => return Err(StoreError::Foreign { place: format!("the schema persxfer of {place}") }),
            What::Ledger(found) if found > schema::FORMAT => {
                return Err(StoreError::Newer { place, found, known: schema::FORMAT });
            }
            What::Absent | What::Empty | What::Ledger(_) => {}
        }
        if standby && matches!(what, What::Ledger(schema::FORMAT)) {
            return Ok(());
        }
        if what != What::Ledger(schema::FORMAT) {
            self.change(Safe::Synced, "make its tables", |link| {
                schema::alone(link)?;
                match schema::look(link)? {
                    What::Foreign => Ok(()),
                    What::Ledger(found) if found >= schema::FORMAT => Ok(()),
                    what => schema::migrate(link, what),
                }
            })?;
        }
        self.change(Safe::Synced, "prepare", |link| {
            if clock::was_set_back(link, turn)? {
                clock::note(link, turn.now)?;
            }
            clock::clamp(link, turn).map(drop)
        })
    }

    /// The connection; a new one where the last is gone.
    fn link(&mut self) -> Result<&mut Link, Fault> {
        let link = match self.link.take().filter(|link| !link.is_closed()) {
            Some(link) => link,
            None => Link::new(&self.config)?,
        };
        Ok(self.link.insert(link))
    }

    /// A connection with a transaction begun. One that went away since the last call is made anew.
    fn begun(&mut self, begin: &str) -> Result<&mut Link, Fault> {
        let known = self.link.as_ref().is_some_and(|link| !link.is_closed());
        match self.link()?.batch(begin) {
            Err(fault) if known && fault.is_lost() => {
                self.link = None;
                self.link()?.batch(begin)?;
            }
            other => other?,
        }
        self.link()
    }

    /// Changes something, in one transaction; where others come into its way, once more from its beginning.
    fn change<T>(
        &mut self,
        safe: Safe,
        doing: &str,
        mut work: impl FnMut(&mut Link) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let begin = match safe {
            Safe::Synced => "BEGIN; SET LOCAL synchronous_commit = on",
            Safe::Written => "BEGIN; SET LOCAL synchronous_commit = off",
        };
        let mut tries = 0;
        loop {
            match self.once(begin, &mut work) {
                Err(fault) if fault.is_passing() && tries < TRIES => tries += 1,
                other => return other.map_err(|fault| self.error(doing, fault)),
            }
        }
    }

    fn once<T>(&mut self, begin: &str, work: &mut impl FnMut(&mut Link) -> Result<T, Fault>) -> Result<T, Fault> {
        let link = self.begun(begin)?;
        let result = match work(link) {
            Ok(result) => match link.batch("COMMIT") {
                Err(fault) if fault.is_lost() => Err(Fault::Unknown),
                other => other.map(|()| result),
            },
            Err(fault) => Err(fault),
        };
        if let Err(fault) = &result
            && (fault.is_lost() || matches!(fault, Fault::Unknown) || link.batch("ROLLBACK").is_err())
        {
            self.link = None;
        }
        result
    }

    /// Looks, at one moment, in a transaction that changes nothing.
    fn look<T>(&mut self, doing: &str, mut work: impl FnMut(&mut Link) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.once("BEGIN ISOLATION LEVEL REPEATABLE READ", &mut work).map_err(|fault| self.error(doing, fault))
    }

    /// Where the clock was set back, what is stored is measured from now on.
    fn watch_clock(&mut self, turn: &Turn<'_>) -> Result<(), StoreError> {
        let clocks = self.clocks;
        if self.look("read", |link| clock::was_set_back(link, turn))? {
            self.change(Safe::Written, "claim", |link| {
                clock::agree(link, clocks, turn.now)?;
                clock::clamp(link, turn)?;
                clock::note(link, turn.now)
            })?;
        }
        Ok(())
    }

    /// What somebody saw of many, some at a time, so that others get to write meanwhile.
    fn observe_many(
        &mut self,
        host: Option<&str>,
        seen: Seen,
        turn: &Turn<'_>,
        told: &mut Vec<(Woken, u64)>,
    ) -> Result<(), StoreError> {
        let condition = format!(
            "WHERE i.id > $1 AND i.state < 3 AND i.due_at > $2 AND {}
             AND ($3::text IS NULL OR i.host = (SELECT h.id FROM host h WHERE h.name = $3)) ORDER BY i.id LIMIT $4
             FOR UPDATE OF i",
            woken_by(seen.kind, turn),
        );
        let mut after = 0;
        loop {
            let from = (after, host, BATCH);
            let some =
                self.change(Safe::Written, "wake", |link| wake::observe_some(link, &condition, from, seen, turn))?;
            let Some((last, woken)) = some else { return Ok(()) };
            after = last;
            woken.into_iter().for_each(|woken| count(told, woken));
        }
    }

    /// What the database said, as ours.
    fn error(&self, doing: &str, fault: Fault) -> StoreError {
        let place = self.place();
        let error = match fault {
            Fault::Connect(detail) | Fault::Clock(detail) => return StoreError::Open { place, detail },
            Fault::Row(bad) => return StoreError::Damaged { place, detail: bad.to_string() },
            Fault::Again => return StoreError::Busy { place },
            Fault::Unknown => {
                let detail = format!(
                    "cannot {doing}: the connection was lost as it was being written; it is there whole or not at all: \
                     say it again, which does no harm"
                );
                return StoreError::Other { place, detail };
            }
            Fault::Sql(error) => error,
        };
        let detail = format!("cannot {doing}: {}", link::said(&error));
        let Some(code) = error.code() else {
            return StoreError::Other { place, detail: format!("{detail}; nothing of it was written, try again") };
        };
        let busy = [SqlState::LOCK_NOT_AVAILABLE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
        let closed = [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::INSUFFICIENT_PRIVILEGE];
        let broken = [
            SqlState::UNDEFINED_TABLE,
            SqlState::UNDEFINED_COLUMN,
            SqlState::DATA_CORRUPTED,
            SqlState::INDEX_CORRUPTED,
        ];
        match code {
            code if busy.contains(code) => StoreError::Busy { place },
            code if closed.contains(code) => StoreError::ReadOnly { place, detail },
            code if broken.contains(code) => StoreError::Damaged { place, detail },
            _ => StoreError::Other { place, detail },
        }
    }
}

impl LedgerStore for Postgres {
    fn place(&self) -> String {
        address::shown(&self.config)
    }

    fn add(&mut self, additions: &[Addition], turn: &mut Turn<'_>) -> Result<Vec<Added>, StoreError> {
        self.change(Safe::Synced, "add", |link| wake::add(link, additions, turn))
    }

    fn observe(&mut self, sightings: &[Sighting], turn: &mut Turn<'_>) -> Result<Vec<(Woken, u64)>, StoreError> {
        let mut told = self.change(Safe::Synced, "observe", |link| {
            let told = wake::observe(link, sightings, turn)?;
            // The machine can be used again: what everybody paused for is over.
            if sightings.iter().any(|s| s.seen.kind == Kind::Space) {
                settle::resume(link)?;
            }
            Ok(told)
        })?;
        for sighting in sightings {
            let host = match &sighting.of {
                Whom::Key(_) => continue,
                Whom::Host(name) => Some(name.as_str()),
                Whom::All => None,
            };
            self.observe_many(host, sighting.seen, turn, &mut told)?;
        }
        Ok(told)
    }

    fn claim(&mut self, want: Want, turn: &mut Turn<'_>) -> Result<Handed, StoreError> {
        self.watch_clock(turn)?;
        self.change(Safe::Written, "claim", |link| claim::claim(link, want, turn))
    }

    fn claim_early(
        &mut self,
        key: &Key,
        owner: Owner,
        turn: &mut Turn<'_>,
    ) -> Result<Option<(Record, Token, Company)>, StoreError> {
        self.change(Safe::Written, "claim", |link| match rows::locked(link, [key])?.remove(key) {
            Some(item) => claim::claim_early(link, item, owner, turn),
            None => Ok(None),
        })
    }

    fn beat(&mut self, held: &[(Key, Token)], turn: &mut Turn<'_>) -> Result<Vec<Result<(), LeaseLost>>, StoreError> {
        self.change(Safe::Written, "renew", |link| settle::beat(link, held, turn))
    }

    fn settle(
        &mut self,
        words: &[(Key, Token, Word)],
        turn: &mut Turn<'_>,
    ) -> Result<Vec<Result<(), LeaseLost>>, StoreError> {
        self.change(Safe::Synced, "settle", |link| settle::settle(link, words, turn))
    }

    fn restore(&mut self, is_dead: &mut dyn FnMut(Owner) -> bool, turn: &mut Turn<'_>) -> Result<u64, StoreError> {
        let _ = turn;
        self.change(Safe::Synced, "restore", |link| settle::restore(link, is_dead))
    }

    fn get(&mut self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.look("read", |link| {
            let items = rows::pick(link, "WHERE i.key = $1", &[&key.as_str()])?;
            Ok(items.into_iter().next().map(|item| item.record))
        })
    }

    fn observations(&mut self, key: &Key) -> Result<Vec<Observation>, StoreError> {
        self.look("read", |link| {
            let sql = "SELECT o.at, o.kind, o.source FROM observation o JOIN item i ON i.id = o.item WHERE i.key = $1
                 ORDER BY o.at DESC, o.id DESC";
            let mut kept = Vec::new();
            for row in &link.query(sql, &[&key.as_str()])? {
                let (at, source) = (Epoch::from_micros(row.try_get(0)?), row.try_get(2)?);
                kept.extend(Kind::of_word(row.try_get(1)?).map(|kind| Observation { at, kind, source }));
            }
            Ok(kept)
        })
    }

    fn page(&mut self, page: Page<'_>) -> Result<Vec<Record>, StoreError> {
        self.look("read", |link| {
            let after = page.after.map_or("", Key::as_str);
            let rest = "WHERE i.key > $1 ORDER BY i.key LIMIT $2";
            let items = rows::pick(link, rest, &[&after, &i64::from(page.most)])?;
            Ok(items.into_iter().map(|item| item.record).collect())
        })
    }

    fn import(&mut self, records: &[Record], turn: &mut Turn<'_>) -> Result<u64, StoreError> {
        self.change(Safe::Synced, "import", |link| wake::import(link, records, turn))
    }

    fn stats(&mut self, now: Epoch) -> Result<Stats, StoreError> {
        self.look("count", |link| {
            let mut stats = Stats::default();
            for row in &link.query("SELECT state, count(*) FROM item GROUP BY state", &[])? {
                let (state, n): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
                match state {
                    row::WAITING => stats.waiting = n.unsigned_abs(),
                    row::PARKED => stats.parked = n.unsigned_abs(),
                    row::LEASED => stats.leased = n.unsigned_abs(),
                    row::DONE => stats.done = n.unsigned_abs(),
                    _ => {}
                }
            }
            let sql =
                "SELECT class, count(*) FROM item WHERE class IS NOT NULL AND state < 3 GROUP BY class ORDER BY class";
            for row in &link.query(sql, &[])? {
                let (class, n): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
                stats.classes.extend(row::class_of(class).map(|class| (class, n.unsigned_abs())));
            }
            let at = now.as_micros();
            let due = link.number("SELECT count(*) FROM item WHERE state < 2 AND due_at <= $1", &[&at])?;
            stats.due = due.unwrap_or(0).unsigned_abs();
            let hosts = link.number("SELECT count(*) FROM host WHERE name <> ''", &[])?;
            stats.hosts = hosts.unwrap_or(0).unsigned_abs();
            let next = link.number("SELECT min(due_at) FROM item WHERE state < 2 AND due_at > $1", &[&at])?;
            stats.next_due = next.map(Epoch::from_micros);
            let paused = rows::numbers(link)?.get(PAUSED).copied().map(Epoch::from_micros);
            stats.paused_until = paused.filter(|until| *until > now);
            Ok(stats)
        })
    }

    fn forget(&mut self, keys: &[Key]) -> Result<u64, StoreError> {
        self.change(Safe::Synced, "forget", |link| {
            let ids: Vec<i64> = rows::locked(link, keys)?.values().map(|item| item.id).collect();
            // What was seen of them goes with them.
            link.execute("DELETE FROM item WHERE id = ANY($1)", &[&ids])
        })
    }

    fn resume(&mut self) -> Result<(), StoreError> {
        self.change(Safe::Synced, "resume", settle::resume)
    }

    fn backup(&mut self, to: &Path) -> Result<(), StoreError> {
        let _ = to;
        let detail =
            "a ledger in PostgreSQL is backed up by pg_dump --schema=persxfer, or line by line by `ledger export`";
        Err(StoreError::Other { place: self.place(), detail: detail.to_owned() })
    }
}
