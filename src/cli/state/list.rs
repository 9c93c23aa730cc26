//! `state list`: a table of transfers, or JSON.

use crate::cli::board::host_of;
use crate::cli::exit::Exit;
use crate::cli::foreign::{human_delay, human_size, printable};
use crate::cli::state::Desk;
use crate::cli::state::json::{self, Entry, Form, List};
use crate::cli::trouble::Trouble;
use crate::core::pers_xfer::record::{Record, Standing, Status};

/// Which transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// Those that are not complete.
    Open,
    /// Complete ones too.
    All,
}

impl Which {
    /// `--all` stands there, or not.
    pub(super) const fn of(all: bool) -> Self {
        if all { Self::All } else { Self::Open }
    }
}

/// Prints them.
pub(super) fn run(desk: &Desk<'_>, which: Which, form: Form) -> Result<Exit, Trouble> {
    let contents = desk.load()?;
    let shown: Vec<_> = contents.records.iter().filter(|r| which == Which::All || r.status != Status::Done).collect();
    match form {
        Form::Json => {
            let transfers = shown.iter().map(|r| Entry::new(r, desk.book.holder(r))).collect();
            (desk.out)(&format!("{}\n", json::text(&List { schema: json::SCHEMA, transfers })))?;
        }
        Form::Text if shown.is_empty() => (desk.say)("no transfers"),
        Form::Text => (desk.out)(&table(shown.iter().map(|r| row(desk, r))))?,
    }
    Ok(Exit::Complete)
}

const HEAD: [&str; 7] = ["NAME", "STATE", "DONE", "SIZE", "RETRIES", "NEXT TRY", "MIRROR"];

fn row(desk: &Desk<'_>, record: &Record) -> [String; 7] {
    let word = desk.word(record);
    let next = record.next_request_time.filter(|_| word == "waiting");
    let mirror = record.mirrors.iter().find(|m| m.standing == Standing::Usable).or(record.mirrors.first());
    [
        printable(&record.name),
        word.to_owned(),
        human_size(record.confirmed.0),
        record.nbytes.map_or_else(|| "?".into(), |n| human_size(n.0)),
        record.num_retries.to_string(),
        next.map_or_else(|| "-".into(), |next| format!("in {}", human_delay(next.since(desk.now.wall)))),
        mirror.map_or_else(|| "-".into(), |m| host_of(&m.url)),
    ]
}

/// Columns as wide as their widest cell; the last one runs free.
fn table(rows: impl Iterator<Item = [String; 7]>) -> String {
    let rows: Vec<_> = std::iter::once(HEAD.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|r| r[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..HEAD.len()).map(width).collect();
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}
