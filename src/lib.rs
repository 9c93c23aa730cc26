//! A persistent file-transfer client: see `docs/architecture.md`.

pub mod cli;
pub mod core;
pub mod engine;
pub mod io;
