//! The decisions: pure machines and the words they use.
//!
//! Nothing on this floor knows a clock, randomness of its own, a socket, a file or `async`; `tests/floors.rs` says so.

pub mod backoff;
pub mod civil;
pub mod cookies;
pub mod digest;
pub mod failure;
pub mod file_xfer;
pub mod giveup;
pub mod hosts;
pub mod ledger;
pub mod links;
pub mod machine;
pub mod metalink;
pub mod metrics;
pub mod mirrors;
pub mod name;
pub mod netrc;
pub mod pacer;
mod params;
pub mod pers_xfer;
pub mod prefs;
pub mod printable;
pub mod proxy;
pub mod range;
pub mod report;
pub mod retry_after;
pub mod rpc;
pub mod schedule;
pub mod segments;
pub mod shell;
pub mod state;
pub mod sync;
pub mod time;
pub mod units;
pub mod upload;
pub mod url;
pub mod validator;
pub mod verdict;
