//! The ledger: files that could not be had yet, remembered for as long as it takes.
//!
//! After BT9G's long-term retry scheduler (seed 004). A failure is an observation in time, not a tombstone: what is known
//! of a file stays, and only the times of costly attempts move apart. Nothing here gives up, and nothing but a user's
//! `forget` takes a record out. The store (SQLite, PostgreSQL) keeps [`Record`]s and picks which are due; every change of
//! one is decided here, from the record, what happened, the time and a draw:
//!
//! | file | decides |
//! |---|---|
//! | `record` | what is known of a file, and which values it may have |
//! | `class` | the classes of failures, and the kinds of fresh activity |
//! | `table` | what a class means: first delays, limit, who wakes it (configuration) |
//! | `lease` | claims, heartbeats, what a holder may still say, holders that vanish |
//! | `attempt` | what the sessions of one attempt come to |
//! | `fail` | what a reported failure leads to |
//! | `wake` | fresh activity: sooner, never later |
//! | `host` | what all records of a host share |
//! | `pace` | how many may be handed out, and for whom a share is kept |
//! | `clock` | a wall clock that jumped, times that no rule can have set |
//! | `place` | where a worker puts the file of a record |
//! | `rules` | all of these, as they are configured |

pub mod attempt;
pub mod class;
pub mod clock;
pub mod fail;
pub mod host;
pub mod lease;
pub mod pace;
pub mod place;
pub mod record;
pub mod rules;
pub mod table;
#[cfg(test)]
mod tests;
pub mod wake;

pub use class::{Class, Kind};
pub use record::{Key, Record, State, Token};
pub use rules::Rules;
pub use table::Table;
