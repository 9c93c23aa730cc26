//! The ledger in an SQLite file: for one machine, any number of processes.
//!
//! Every change is one `BEGIN IMMEDIATE` transaction, so that one writes at a time. What must not be lost with the
//! machine's power (files that were entered, outcomes, what was forgotten) is synced before the call returns; claims and
//! beats need not be.
//!
//! | file | does |
//! |---|---|
//! | `schema` | the tables, and older formats |
//! | `rows` | records as rows |
//! | `claim` | which records are handed out; clocks that jump |
//! | `settle` | what holders say; what the dead held |
//! | `wake` | what is entered, and what is seen |

mod claim;
mod rows;
mod schema;
mod settle;
mod wake;

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::core::ledger::Class;
use crate::core::ledger::class::Kind;
use crate::core::ledger::lease::{Company, LeaseLost};
use crate::core::ledger::record::{Key, Owner, Record, Token};
use crate::core::ledger::wake::{Seen, Woken};
use crate::core::time::Epoch;
use crate::io::durable::PRIVATE;
use crate::io::store::common::{BATCH, PAUSED, count, woken_by};
use crate::io::store::{
    Added, Addition, Handed, LedgerStore, Observation, Page, Sighting, Stats, StoreError, Turn, Want, Whom, Word, row,
};
use rows::{Fault, Item};
use schema::What;

/// So long a process waits for another that writes.
const PATIENCE: Duration = Duration::from_secs(20);
/// So many pages are kept in memory at most: 32 MiB.
const CACHE_KIB: i64 = -32 * 1024;
/// So many statements stay prepared.
const STATEMENTS: usize = 64;

/// A ledger in a file.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    connection: Connection,
}

/// How far a change must have come when the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Safe {
    /// On the disk.
    Synced,
    /// In the file: the last of them may be lost with the machine's power.
    Written,
}

impl Sqlite {
    /// Opens a ledger, and makes it where there is none. Times that no rule can have set are cut.
    ///
    /// # Errors
    /// [`StoreError`]: a file that is something else, of a later format, or cannot be opened.
    pub fn open(path: &Path, turn: &Turn<'_>) -> Result<Self, StoreError> {
        let place = path.display().to_string();
        // Made by us first, so that nobody else can read it.
        let made = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path);
        let opened = || StoreError::Open {
            place: place.clone(),
            detail: match &made {
                Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => e.to_string(),
                _ => "it is no file that can be read".to_owned(),
            },
        };
        if !path.is_file() {
            return Err(opened());
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(|e| fault(&place, "open", e.into()))?;
        let mut ledger = Self { path: path.to_owned(), connection };
        ledger.prepare(turn)?;
        Ok(ledger)
    }

    fn prepare(&mut self, turn: &Turn<'_>) -> Result<(), StoreError> {
        let place = self.place();
        let said = |e: rusqlite::Error| fault(&place, "open", e.into());
        let c = &self.connection;
        c.busy_timeout(PATIENCE).map_err(said)?;
        c.set_prepared_statement_cache_capacity(STATEMENTS);
        let what = schema::look(c).map_err(said)?;
        match what {
            What::Foreign => return Err(StoreError::Foreign { place }),
            What::Ledger(found) if found > schema::FORMAT => {
                return Err(StoreError::Newer { place, found, known: schema::FORMAT });
            }
            What::Empty | What::Ledger(_) => {}
        }
        if c.is_readonly("main").map_err(said)? && what != What::Empty {
            return Ok(());
        }
        c.pragma_update(None, "journal_mode", "WAL").map_err(said)?;
        c.pragma_update(None, "cache_size", CACHE_KIB).map_err(said)?;
        c.pragma_update(None, "temp_store", "MEMORY").map_err(said)?;
        self.change(Safe::Synced, "prepare", |t| {
            match schema::look(t)? {
                What::Empty => schema::migrate(t, 0)?,
                What::Ledger(found) if found < schema::FORMAT => schema::migrate(t, found)?,
                _ => {}
            }
            claim::watch_clock(t, turn)?;
            claim::clamp(t, turn).map(drop)
        })
    }

    fn change<T>(
        &mut self,
        safe: Safe,
        doing: &str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let place = self.place();
        let run = || {
            let level = if safe == Safe::Synced { "FULL" } else { "NORMAL" };
            self.connection.pragma_update(None, "synchronous", level)?;
            let t = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = work(&t)?;
            t.commit()?;
            Ok(result)
        };
        run().map_err(|e| fault(&place, doing, e))
    }

    /// Looks, in a transaction that changes nothing.
    fn look<T>(
        &mut self,
        doing: &str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        let place = self.place();
        let run = || {
            let t = self.connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
            work(&t)
        };
        run().map_err(|e| fault(&place, doing, e))
    }

    /// What somebody saw of many, some at a time, so that others get to write meanwhile.
    fn observe_many(
        &mut self,
        host: Option<&str>,
        seen: Seen,
        turn: &mut Turn<'_>,
    ) -> Result<Vec<(Woken, u64)>, StoreError> {
        let condition = format!(
            "WHERE i.id > ?1 AND i.state < 3 AND i.due_at > ?2 AND {} {} ORDER BY i.id LIMIT ?4",
            woken_by(seen.kind, turn),
            if host.is_some() { "AND h.name = ?3" } else { "AND ?3 IS NULL" },
        );
        let (mut after, mut told) = (0, Vec::new());
        loop {
            let woken = self.change(Safe::Written, "wake", |t| {
                let mut items = rows::pick(t, &condition, (after, turn.now.as_micros(), host, BATCH))?;
                let mut woken = Vec::with_capacity(items.len());
                for item in &mut items {
                    woken.push(wake::observe_one(t, item, seen, turn)?);
                }
                Ok(items.last().map(|last| (last.id, woken)))
            })?;
            let Some((last, woken)) = woken else { return Ok(told) };
            after = last;
            woken.into_iter().for_each(|woken| count(&mut told, woken));
        }
    }
}

impl LedgerStore for Sqlite {
    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn add(&mut self, additions: &[Addition], turn: &mut Turn<'_>) -> Result<Vec<Added>, StoreError> {
        self.change(Safe::Synced, "add", |t| additions.iter().map(|addition| wake::add(t, addition, turn)).collect())
    }

    fn observe(&mut self, sightings: &[Sighting], turn: &mut Turn<'_>) -> Result<Vec<(Woken, u64)>, StoreError> {
        let mut told = Vec::new();
        let named = |s: &&Sighting| matches!(s.of, Whom::Key(_));
        self.change(Safe::Synced, "observe", |t| {
            for sighting in sightings.iter().filter(named) {
                let Whom::Key(key) = &sighting.of else { continue };
                if let Some(mut item) = rows::of_key(t, key)? {
                    count(&mut told, wake::observe(t, &mut item, sighting, turn)?);
                }
            }
            sightings.iter().try_for_each(|s| wake::ends_a_pause(t, s.seen.kind))
        })?;
        for sighting in sightings.iter().filter(|s| !named(s)) {
            let host = match &sighting.of {
                Whom::Host(name) => Some(name.as_str()),
                _ => None,
            };
            for (woken, n) in self.observe_many(host, sighting.seen, turn)? {
                (0..n).for_each(|_| count(&mut told, woken));
            }
        }
        Ok(told)
    }

    fn claim(&mut self, want: Want, turn: &mut Turn<'_>) -> Result<Handed, StoreError> {
        self.change(Safe::Written, "claim", |t| claim::claim(t, want, turn))
    }

    fn claim_early(
        &mut self,
        key: &Key,
        owner: Owner,
        turn: &mut Turn<'_>,
    ) -> Result<Option<(Record, Token, Company)>, StoreError> {
        self.change(Safe::Written, "claim", |t| match rows::of_key(t, key)? {
            Some(item) => claim::claim_early(t, item, owner, turn),
            None => Ok(None),
        })
    }

    fn beat(&mut self, held: &[(Key, Token)], turn: &mut Turn<'_>) -> Result<Vec<Result<(), LeaseLost>>, StoreError> {
        self.change(Safe::Written, "renew", |t| {
            held.iter().map(|(key, token)| settle::beat(t, key, *token, turn)).collect()
        })
    }

    fn settle(
        &mut self,
        words: &[(Key, Token, Word)],
        turn: &mut Turn<'_>,
    ) -> Result<Vec<Result<(), LeaseLost>>, StoreError> {
        self.change(Safe::Synced, "settle", |t| words.iter().map(|word| settle::settle(t, word, turn)).collect())
    }

    fn restore(&mut self, is_dead: &mut dyn FnMut(Owner) -> bool, turn: &mut Turn<'_>) -> Result<u64, StoreError> {
        let _ = turn;
        self.change(Safe::Synced, "restore", |t| settle::restore(t, is_dead))
    }

    fn get(&mut self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.look("read", |t| Ok(rows::of_key(t, key)?.map(|item| item.record)))
    }

    fn observations(&mut self, key: &Key) -> Result<Vec<Observation>, StoreError> {
        self.look("read", |t| {
            let sql = "SELECT o.at, o.kind, o.source FROM observation o JOIN item i ON i.id = o.item WHERE i.key = ?1
                 ORDER BY o.at DESC, o.id DESC";
            let mut statement = t.prepare_cached(sql)?;
            let kept = statement.query_map([key.as_str()], |row| {
                let kind: String = row.get(1)?;
                let at = Epoch::from_micros(row.get(0)?);
                Ok(Kind::of_word(&kind).map(|kind| (at, kind)).zip(Some(row.get(2)?)))
            })?;
            let kept: Vec<_> = kept.collect::<Result<_, _>>()?;
            Ok(kept.into_iter().flatten().map(|((at, kind), source)| Observation { at, kind, source }).collect())
        })
    }

    fn page(&mut self, page: Page<'_>) -> Result<Vec<Record>, StoreError> {
        self.look("read", |t| {
            let after = page.after.map_or("", Key::as_str);
            let items = rows::pick(t, "WHERE i.key > ?1 ORDER BY i.key LIMIT ?2", (after, page.most))?;
            Ok(items.into_iter().map(|item| item.record).collect())
        })
    }

    fn import(&mut self, records: &[Record], turn: &mut Turn<'_>) -> Result<u64, StoreError> {
        self.change(Safe::Synced, "import", |t| {
            let mut entered = 0;
            for record in records {
                if rows::of_key(t, &record.key)?.is_none() {
                    let mut record = record.clone();
                    record.clamp(turn.now, &turn.rules.table, turn.rules.terms);
                    rows::insert(t, &record)?;
                    entered += 1;
                }
            }
            Ok(entered)
        })
    }

    fn stats(&mut self, now: Epoch) -> Result<Stats, StoreError> {
        self.look("count", |t| {
            let mut stats = Stats::default();
            let number =
                |sql: &str| t.prepare_cached(sql)?.query_row([now.as_micros()], |row| row.get::<_, Option<i64>>(0));
            let counted = |sql: &str| number(sql).map(|n| n.and_then(|n| u64::try_from(n).ok()).unwrap_or(0));
            let mut statement = t.prepare_cached("SELECT state, count(*) FROM item GROUP BY state")?;
            let states = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            for entry in states {
                let (state, n): (i64, i64) = entry?;
                match state {
                    row::WAITING => stats.waiting = n.unsigned_abs(),
                    row::PARKED => stats.parked = n.unsigned_abs(),
                    row::LEASED => stats.leased = n.unsigned_abs(),
                    row::DONE => stats.done = n.unsigned_abs(),
                    _ => {}
                }
            }
            let mut statement = t.prepare_cached(
                "SELECT class, count(*) FROM item WHERE class IS NOT NULL AND state < 3 GROUP BY class",
            )?;
            let classes = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            for entry in classes {
                let (class, n): (i64, i64) = entry?;
                let class: Option<Class> = row::class_of(class);
                stats.classes.extend(class.map(|class| (class, n.unsigned_abs())));
            }
            stats.due = counted("SELECT count(*) FROM item WHERE state < 2 AND due_at <= ?1")?;
            stats.hosts = counted("SELECT count(*) FROM host WHERE name <> '' AND ?1 IS NOT NULL")?;
            let next = number("SELECT min(due_at) FROM item WHERE state < 2 AND due_at > ?1")?;
            stats.next_due = next.map(Epoch::from_micros);
            let paused = rows::number(t, PAUSED)?.map(Epoch::from_micros);
            stats.paused_until = paused.filter(|until| *until > now);
            Ok(stats)
        })
    }

    fn forget(&mut self, keys: &[Key]) -> Result<u64, StoreError> {
        self.change(Safe::Synced, "forget", |t| {
            let mut gone = 0;
            for key in keys {
                if let Some(Item { id, .. }) = rows::of_key(t, key)? {
                    t.prepare_cached("DELETE FROM observation WHERE item = ?1")?.execute([id])?;
                    t.prepare_cached("DELETE FROM item WHERE id = ?1")?.execute([id])?;
                    gone += 1;
                }
            }
            Ok(gone)
        })
    }

    fn resume(&mut self) -> Result<(), StoreError> {
        self.change(Safe::Synced, "resume", settle::resume)
    }

    fn backup(&mut self, to: &Path) -> Result<(), StoreError> {
        let place = to.display().to_string();
        let made = OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(to);
        made.map_err(|e| StoreError::Open { place: place.clone(), detail: e.to_string() })?;
        let copy = || {
            let mut copy = Connection::open(to)?;
            let backup = rusqlite::backup::Backup::new(&self.connection, &mut copy)?;
            backup.run_to_completion(1_024, Duration::from_millis(1), None)
        };
        copy().map_err(|e: rusqlite::Error| fault(&place, "back up to", e.into()))
    }
}

/// What the database said, as ours.
fn fault(place: &str, doing: &str, fault: Fault) -> StoreError {
    let place = place.to_owned();
    let error = match fault {
        Fault::Row(bad) => return StoreError::Damaged { place, detail: bad.to_string() },
        Fault::Sql(error) => error,
    };
    let detail = format!("cannot {doing}: {error}");
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => StoreError::Foreign { place },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged { place, detail },
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { place, detail },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { place },
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => StoreError::Open { place, detail },
        _ => StoreError::Other { place, detail },
    }
}
