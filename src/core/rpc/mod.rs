//! BOINC's GUI RPC, as data: requests from bytes, replies as bytes (boinc.md 4).
//!
//! So that `boinccmd` lists, retries and aborts our transfers. Nothing here knows a socket: `io::listen` reads and writes,
//! the engine answers.
//!
//! | file | about |
//! |---|---|
//! | `frame` | where one request ends and the next begins |
//! | `request` | what is asked, read as leniently as BOINC does |
//! | `guard` | who may ask what: the password, proven by a hash |
//! | `reply` | the answers |
//! | `transfers` | the answer that lists transfers |
//! | `project` | the one project that all transfers belong to |

mod frame;
mod guard;
mod project;
mod reply;
mod request;
#[cfg(test)]
mod tests;
mod transfers;

pub use frame::{Framer, MAX_REQUEST, Unframed};
pub use guard::{Guard, Verdict, password_of};
pub use project::{PROJECT_NAME, is_our_project};
pub use reply::{CcStatus, Reply, Suspension};
pub use request::{ModeWord, Request, Which};
pub use transfers::{FileTransfer, Session, file_transfers};

/// The version of BOINC whose requests are understood, told to tools that ask: major, minor, release.
pub const SPOKEN_VERSION: (u32, u32, u32) = (7, 20, 5);
