//! A persistent file-transfer client: see `docs/architecture.md`.

pub mod cli;
pub mod core;
pub mod engine;
pub mod io;

/// The fuzzer, for the parsers that are private.
#[cfg(test)]
#[path = "../tests/support/fuzz/mod.rs"]
mod fuzz;
