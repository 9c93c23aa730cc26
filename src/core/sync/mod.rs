//! Sync: a tree of files from several sources, validated and merged into our own.
//!
//! After CollecTor's outline of descriptor distribution (seed 003), and the design B8 of the facts. Everything that is
//! decided is decided here, from what was read; files, requests and commands belong to the floors above.
//!
//! | file | about |
//! |---|---|
//! | `config/` | what was configured: modules, their sources, folders, criteria |
//! | `source` | sources, where their index is, the folder that each has here |
//! | `path`, `listing`, `stamp` | the words: paths that are safe, what is said of many files, times |
//! | `index/` | what a source says that it has, read within limits |
//! | `kinds/` | what a file should be, and a reader that says whether it is |
//! | `manifest`, `diff` | what is held of a source; what is to be fetched, what goes, and when nothing may |
//! | `criteria`, `merge` | what is kept, what is replaced, what is recent |

pub mod config;
pub mod criteria;
pub mod diff;
pub mod index;
pub mod kinds;
pub mod listing;
pub mod manifest;
pub mod merge;
pub mod path;
pub mod source;
pub mod stamp;
