//! A whole world in a simulation: the real engine, its drivers and part files on a model of a disk, hosts that follow a
//! script, clocks that jump, kills and losses of power. Weeks pass in milliseconds, and one seed says everything.
//!
//! | file | about |
//! |---|---|
//! | `host` | hosts and their files: how they are at which time |
//! | `net` | requests and answers |
//! | `store` | uploads, and what hosts store of them |
//! | `lives` | one process after the other, and how each ends |
//! | `watch` | what must never happen while they run |
//! | `verdict` | what must be true in between, and in the end |

mod host;
mod lives;
mod net;
mod store;
mod verdict;
mod watch;

pub(crate) use lives::{Story, live};
