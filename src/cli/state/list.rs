//! `state list`: a table of transfers, or JSON.

use crate::cli::bars::column as cell;
use crate::cli::board::host_of;
use crate::cli::exit::Exit;
use crate::cli::foreign::{human_delay, human_size, printable};
use crate::cli::report::clock;
use crate::cli::state::Desk;
use crate::cli::state::json::{self, Around, Entry, Form, Held};
use crate::cli::state::waits::Network;
use crate::cli::trouble::Trouble;
use crate::core::pers_xfer::record::{Direction, Record, Standing, Status};
use crate::core::time::Epoch;

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
        Form::Text => match table_of(desk, which)? {
            Table::Rows(text) => (desk.out)(&text)?,
            Table::Empty { complete } => (desk.say)(&nothing(complete)),
        },
    }
    Ok(Exit::Complete)
}

/// What there is to show.
pub(super) enum Table {
    /// These rows, below their heads.
    Rows(String),
    /// None; so many are complete.
    Empty {
        /// How many.
        complete: usize,
    },
}

/// The table.
pub(super) fn table_of(desk: &Desk<'_>, which: Which) -> Result<Table, Trouble> {
    let (mut rows, mut complete) = (Vec::new(), 0);
    desk.visit(&mut |record| {
        if which.shows(&record) {
            rows.push(row(desk, &record));
        } else {
            complete += 1;
        }
    })?;
    Ok(if rows.is_empty() { Table::Empty { complete } } else { Table::Rows(table(rows.into_iter(), desk.columns)) })
}

/// What is said where there is nothing to show.
pub(super) fn nothing(complete: usize) -> String {
    match complete {
        0 => "no transfers".to_owned(),
        1 => "no open transfers; --all shows the 1 that is complete".to_owned(),
        n => format!("no open transfers; --all shows the {n} that are complete"),
    }
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
        piece += &json::text(&Entry::new(&record, Around::of(desk, &record)));
        separator = ",";
        if piece.len() >= PIECE {
            written = (desk.out)(&std::mem::take(&mut piece));
        }
    })?;
    written?;
    let network = Network::of(&desk.standing).map(|network| format!(",\"network\":{}", json::text(&network)));
    (desk.out)(&format!("{piece}]{}}}\n", network.unwrap_or_default()))
}

/// So much is printed at once.
const PIECE: usize = 256 << 10;

const HEAD: [&str; 7] = ["NAME", "STATE", "DONE", "SIZE", "RETRIES", "NEXT TRY", "MIRROR"];

fn row(desk: &Desk<'_>, record: &Record) -> [String; 7] {
    let mirror = record.mirrors.iter().find(|m| m.standing == Standing::Usable).or(record.mirrors.first());
    let host = mirror.map_or_else(|| "-".into(), |m| host_of(&m.url));
    let done = Held::of(record, json::segments(desk.book, record).as_ref()).bytes();
    [
        printable(&record.name),
        desk.word(record).to_owned(),
        human_size(done.0),
        record.nbytes.map_or_else(|| "?".into(), |n| human_size(n.0)),
        record.num_retries.to_string(),
        next_try(desk, record),
        if record.direction == Direction::Upload { format!("to {host}") } else { host },
    ]
}

/// When it may be tried again; where that time has come, since when.
fn next_try(desk: &Desk<'_>, record: &Record) -> String {
    if let Some(why) = desk.waits_for(record) {
        return why.message;
    }
    match (desk.word(record), record.next_request_time) {
        ("waiting", Some(next)) => format!("in {}", human_delay(next.since(desk.now.wall))),
        ("ready", Some(next)) => format!("due {}", minute(next)),
        _ => "-".into(),
    }
}

/// A moment without its seconds.
fn minute(at: Epoch) -> String {
    let text = clock(at);
    text.rsplit_once(':').map_or(text.clone(), |(minute, _)| minute.to_owned())
}

/// Columns as wide as their widest cell; the last one runs free. On a terminal of so many columns, names are cut so that
/// a row fits; where that would leave too little of them, the row's end is cut off.
fn table(rows: impl Iterator<Item = [String; 7]>, columns: Option<usize>) -> String {
    let mut rows: Vec<_> = std::iter::once(HEAD.map(str::to_owned)).chain(rows).collect();
    let width = |rows: &[[String; 7]], column: usize| rows.iter().map(|r| r[column].chars().count()).max().unwrap_or(0);
    if let Some(columns) = columns {
        let others: usize = (1..HEAD.len()).map(|column| width(&rows, column) + GAP.len()).sum();
        let names = width(&rows, 0).min(columns.saturating_sub(others).max(LEAST_NAME));
        rows.iter_mut().for_each(|row| row[0] = cell(&row[0], names));
    }
    let widths: Vec<_> = (0..HEAD.len()).map(|column| width(&rows, column)).collect();
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        let whole = cells.collect::<Vec<_>>().join(GAP);
        let seen: String = whole.chars().take(columns.unwrap_or(usize::MAX)).collect();
        format!("{}\n", seen.trim_end())
    };
    rows.iter().map(line).collect()
}

/// Between two columns.
const GAP: &str = "  ";
/// Less of a name than that says nothing.
const LEAST_NAME: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_cuts_names_only() {
        let row =
            || ["debian-13.2.0-amd64-netinst.iso", "ready", "0 B", "?", "0", "-", "deb.example"].map(str::to_owned);
        let wide = table([row()].into_iter(), None);
        assert!(wide.contains("debian-13.2.0-amd64-netinst.iso  ready"), "{wide}");
        let narrow = table([row()].into_iter(), Some(72));
        assert!(narrow.contains("ready") && narrow.contains('\u{2026}') && narrow.contains("deb.example"), "{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 72), "{narrow}");
        let tiny = table([row()].into_iter(), Some(20));
        assert!(tiny.contains("debia\u{2026}st.iso  ready"), "{tiny}");
        assert!(tiny.lines().all(|line| line.chars().count() <= 20), "{tiny}");
    }
}
