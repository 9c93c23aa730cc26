//! Where the ledger is kept: SQLite beside the client state, or PostgreSQL for a fleet, behind one contract.
//!
//! A store picks which records are due, in an order in which no host hides another, and writes what
//! [`crate::core::ledger`] decides, each change in one transaction on the record as it stands then. What it promises:
//!
//! - A record is taken out by [`LedgerStore::forget`] and by nothing else.
//! - A claim is given to one holder until its lease ends; whoever speaks for a record with an older token is refused
//!   ([`LeaseLost`]), and nothing changes.
//! - What was added, settled or forgotten is on disk when the call returns; of claims and beats the last may be lost
//!   with the machine's power, which costs a second attempt.
//! - Where a call fails ([`StoreError`]), nothing of it is written.
//!
//! | file | keeps |
//! |---|---|
//! | `common` | what both do alike |
//! | `row` | a record as columns, the same in both |
//! | `sqlite` | the file |
//! | `postgres` | the database |
//! | `open` | which of them a path or a URL is |

mod common;
pub mod open;
#[cfg(feature = "postgres")]
pub mod postgres;
mod row;
pub mod sqlite;

use crate::core::ledger::Rules;
use crate::core::ledger::class::Kind;
use crate::core::ledger::fail::Failed;
use crate::core::ledger::lease::{Company, LeaseLost};
use crate::core::ledger::record::{BadKey, Fact, Key, Owner, Record, Token};
use crate::core::ledger::wake::{Seen, Woken};
use crate::core::range::Length;
use crate::core::time::Epoch;

/// What a call is made with: the time, the rules, and chance.
pub struct Turn<'a> {
    /// The wall clock, read once.
    pub now: Epoch,
    /// The rules.
    pub rules: &'a Rules,
    /// Where draws come from.
    pub rng: &'a mut dyn rand::Rng,
}

impl std::fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turn").field("now", &self.now).field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// Why a store could not do it. Nothing of the call was written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be opened.
    #[error("the ledger {place} cannot be opened: {detail}")]
    Open {
        /// Its path, or its URL without a password.
        place: String,
        /// What the system said.
        detail: String,
    },
    /// It is a database, but none of ours.
    #[error("{place} is a database of something else, not a ledger of persxfer; it is left as it is")]
    Foreign {
        /// Its path, or its URL without a password.
        place: String,
    },
    /// A later version of the program made it.
    #[error(
        "the ledger {place} has format {found}, and this version of persxfer knows formats up to {known}: use the one that wrote it"
    )]
    Newer {
        /// Its path, or its URL without a password.
        place: String,
        /// Its format.
        found: i64,
        /// The newest that we know.
        known: i64,
    },
    /// It cannot be written.
    #[error("the ledger {place} cannot be written: {detail}")]
    ReadOnly {
        /// Its path, or its URL without a password.
        place: String,
        /// What the system said.
        detail: String,
    },
    /// Others kept it busy for too long.
    #[error("the ledger {place} is kept busy by another process; try again")]
    Busy {
        /// Its path, or its URL without a password.
        place: String,
    },
    /// What stands in it cannot be.
    #[error("the ledger {place} is damaged: {detail}")]
    Damaged {
        /// Its path, or its URL without a password.
        place: String,
        /// What is wrong.
        detail: String,
    },
    /// Anything else.
    #[error("the ledger {place}: {detail}")]
    Other {
        /// Its path, or its URL without a password.
        place: String,
        /// What was being done, and what went wrong.
        detail: String,
    },
}

/// A file that somebody heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// Its name.
    pub key: Key,
    /// The host whose limits it is under.
    pub host: String,
    /// Where it can be had.
    pub mirrors: Vec<String>,
    /// The size that it must have.
    pub size: Option<Length>,
    /// The digest that it must have, as `algorithm=hex`.
    pub digest: Option<String>,
    /// How it failed before it came here, if it did.
    pub failed: Option<Failed>,
}

/// What became of an addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It is new.
    New,
    /// It was known, and nothing about it is.
    Known,
    /// It was known, and more is known of it now.
    Richer,
}

/// What somebody saw of which records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Of which.
    pub of: Whom,
    /// What, and when.
    pub seen: Seen,
    /// Who says so: an index, a tracker, a person. At most 200 bytes are kept.
    pub source: String,
    /// What became known with it.
    pub facts: Vec<Fact>,
}

/// Which records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// The one of this name.
    Key(Key),
    /// All of a host that are not done.
    Host(String),
    /// All that are not done.
    All,
}

/// An observation as it was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// When it was made.
    pub at: Epoch,
    /// Of what kind.
    pub kind: Kind,
    /// Who said so.
    pub source: String,
}

/// What a claimant wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// Who it is.
    pub owner: Owner,
    /// How many at most.
    pub count: u32,
}

/// What was handed out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handed {
    /// The records, leased.
    pub records: Vec<(Record, Token, Company)>,
    /// Where fewer came than were wanted: not before then is there anything more, as far as is known.
    pub not_before: Option<Epoch>,
}

/// A holder's last word on a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// The file is here; of this size and digest, where these are known.
    Done {
        /// Its size.
        size: Option<Length>,
        /// Its digest, as `algorithm=hex`.
        digest: Option<String>,
    },
    /// It failed.
    Failed(Failed),
    /// It is given back.
    Released,
}

/// How many records stand where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// They wait.
    pub waiting: u64,
    /// Of those: they are due.
    pub due: u64,
    /// They are worked on.
    pub leased: u64,
    /// They are parked.
    pub parked: u64,
    /// They are done.
    pub done: u64,
    /// Hosts that are known.
    pub hosts: u64,
    /// Failures in all, by class.
    pub classes: Vec<(crate::core::ledger::Class, u64)>,
    /// When the next one is due that is not yet.
    pub next_due: Option<Epoch>,
    /// Nothing is handed out before then.
    pub paused_until: Option<Epoch>,
}

/// A page of records, in the order of their keys.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Those behind this key.
    pub after: Option<&'a Key>,
    /// So many at most.
    pub most: u32,
}

/// A ledger's store.
pub trait LedgerStore {
    /// Where it is: its path, or its URL without a password.
    fn place(&self) -> String;

    /// Enters files; an answer each. One that is known learns what is new.
    ///
    /// # Errors
    /// [`StoreError`].
    fn add(&mut self, additions: &[Addition], turn: &mut Turn<'_>) -> Result<Vec<Added>, StoreError>;

    /// Tells what somebody saw; how many records came to what.
    ///
    /// # Errors
    /// [`StoreError`].
    fn observe(&mut self, sightings: &[Sighting], turn: &mut Turn<'_>) -> Result<Vec<(Woken, u64)>, StoreError>;

    /// Hands out what is due.
    ///
    /// # Errors
    /// [`StoreError`].
    fn claim(&mut self, want: Want, turn: &mut Turn<'_>) -> Result<Handed, StoreError>;

    /// Hands out this one, due or not, unless somebody works on it or it is done; none where it is unknown.
    ///
    /// # Errors
    /// [`StoreError`].
    fn claim_early(
        &mut self,
        key: &Key,
        owner: Owner,
        turn: &mut Turn<'_>,
    ) -> Result<Option<(Record, Token, Company)>, StoreError>;

    /// Holders live.
    ///
    /// # Errors
    /// [`StoreError`].
    fn beat(&mut self, held: &[(Key, Token)], turn: &mut Turn<'_>) -> Result<Vec<Result<(), LeaseLost>>, StoreError>;

    /// Holders' last words.
    ///
    /// # Errors
    /// [`StoreError`].
    fn settle(
        &mut self,
        words: &[(Key, Token, Word)],
        turn: &mut Turn<'_>,
    ) -> Result<Vec<Result<(), LeaseLost>>, StoreError>;

    /// The leases of holders for whom `is_dead` is true are as if they had never been; how many there were.
    ///
    /// # Errors
    /// [`StoreError`].
    fn restore(&mut self, is_dead: &mut dyn FnMut(Owner) -> bool, turn: &mut Turn<'_>) -> Result<u64, StoreError>;

    /// What is known of one file.
    ///
    /// # Errors
    /// [`StoreError`].
    fn get(&mut self, key: &Key) -> Result<Option<Record>, StoreError>;

    /// What was seen of one file of late, the newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    fn observations(&mut self, key: &Key) -> Result<Vec<Observation>, StoreError>;

    /// A page of all records.
    ///
    /// # Errors
    /// [`StoreError`].
    fn page(&mut self, page: Page<'_>) -> Result<Vec<Record>, StoreError>;

    /// Enters whole records, as an export has them; one that is known is left alone. How many were entered.
    ///
    /// # Errors
    /// [`StoreError`].
    fn import(&mut self, records: &[Record], turn: &mut Turn<'_>) -> Result<u64, StoreError>;

    /// How many records stand where.
    ///
    /// # Errors
    /// [`StoreError`].
    fn stats(&mut self, now: Epoch) -> Result<Stats, StoreError>;

    /// Takes records out for good, with all that was seen of them; how many were there.
    ///
    /// # Errors
    /// [`StoreError`].
    fn forget(&mut self, keys: &[Key]) -> Result<u64, StoreError>;

    /// Nothing was wrong any more with this machine: what it paused for is over.
    ///
    /// # Errors
    /// [`StoreError`].
    fn resume(&mut self) -> Result<(), StoreError>;

    /// Copies all of it, as it stands at one moment, into a file that is made for it.
    ///
    /// # Errors
    /// [`StoreError`]; where the file exists.
    fn backup(&mut self, to: &std::path::Path) -> Result<(), StoreError>;
}

/// Why a ledger's line cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BadRow {
    /// Its key is none.
    #[error(transparent)]
    Key(#[from] BadKey),
    /// A value is out of its range.
    #[error("the {column} of \"{key}\" cannot be {value}")]
    Value {
        /// Of which record.
        key: String,
        /// Which.
        column: &'static str,
        /// What stands there.
        value: String,
    },
}
