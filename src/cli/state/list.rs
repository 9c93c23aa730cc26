//! `state list`: a table of transfers, or JSON.

use crate::cli::board::host_of;
use crate::cli::exit::Exit;
use crate::cli::foreign::{human_delay, human_size, printable};
use crate::cli::state::Desk;
use crate::cli::state::json::{self, Entry, Form};
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

    fn shows(self, record: &Record) -> bool {
        self == Self::All || record.status != Status::Done
    }
}

/// Prints them.
pub(super) fn run(desk: &Desk<'_>, which: Which, form: Form) -> Result<Exit, Trouble> {
    match form {
        Form::Json => print_json(desk, which)?,
        Form::Text => match text(desk, which)? {
            nothing if nothing.is_empty() => (desk.say)("no transfers"),
            table => (desk.out)(&table)?,
        },
    }
    Ok(Exit::Complete)
}

/// The table; empty where there is no transfer.
pub(super) fn text(desk: &Desk<'_>, which: Which) -> Result<String, Trouble> {
    let mut rows = Vec::new();
    desk.visit(&mut |record| {
        if which.shows(&record) {
            rows.push(row(desk, &record));
        }
    })?;
    Ok(if rows.is_empty() { String::new() } else { table(rows.into_iter()) })
}

/// As JSON, record by record, so that a hundred thousand take little room.
fn print_json(desk: &Desk<'_>, which: Which) -> Result<(), Trouble> {
    let mut piece = format!("{{\"schema\":{},\"transfers\":[", json::SCHEMA);
    let (mut separator, mut written) = ("", Ok(()));
    desk.visit(&mut |record| {
        if !which.shows(&record) || written.is_err() {
            return;
        }
        piece += separator;
        piece += &json::text(&Entry::new(&record, desk.book.holder(&record)));
        separator = ",";
        if piece.len() >= PIECE {
            written = (desk.out)(&std::mem::take(&mut piece));
        }
    })?;
    written?;
    (desk.out)(&format!("{piece}]}}\n"))
}

/// So much is printed at once.
const PIECE: usize = 256 << 10;

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
