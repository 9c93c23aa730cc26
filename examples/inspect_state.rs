//! Reads a client-state file, ours or a BOINC client's, and prints its transfers; nothing is written.
//!
//! `cargo run --example inspect_state -- state/boinc_client.xml`

use std::io::Write;

use anyhow::Context;
use persxfer::core::state::{Document, Kind};

fn main() -> anyhow::Result<()> {
    let path = std::env::args_os().nth(1).context("usage: CLIENT_STATE_FILE")?;
    let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let document = Document::parse(&bytes).with_context(|| format!("{} is damaged", path.display()))?;

    let mut out = std::io::stdout().lock();
    if document.kind() == Kind::Foreign {
        writeln!(out, "written by a BOINC client: persxfer lists it and never writes it")?;
    }
    for transfer in document.transfers() {
        let size = transfer.nbytes.map_or("unknown size".to_owned(), |n| format!("{n} bytes"));
        writeln!(out, "{} ({size}, {} held): {:?}", transfer.name, transfer.confirmed, transfer.status)?;
        if let Some(next) = transfer.next_request_time {
            writeln!(out, "  {} failed passes, next try at {next}", transfer.num_retries)?;
        }
        for mirror in &transfer.mirrors {
            writeln!(out, "  {}", mirror.url)?;
        }
    }
    Ok(())
}
