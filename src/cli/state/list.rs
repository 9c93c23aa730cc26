//! `state list`: a table of transfers, or JSON.

use crate::cli::bars::column as cell;
use crate::cli::board::host_of;
use crate::cli::exit::Exit;
use crate::cli::foreign::{human_delay, human_size, printable};
use crate::cli::report::clock;
use crate::cli::state::Desk;
use crate::cli::state::json::{self, Entry, Form, List};
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
        Form::Text if shown.is_empty() && !contents.records.is_empty() => {
            (desk.say)(&format!(
                "no open transfers; --all shows the {} that {} complete",
                contents.records.len(),
                if contents.records.len() == 1 { "is" } else { "are" }
            ));
        }
        Form::Text if shown.is_empty() => (desk.say)("no transfers"),
        Form::Text => (desk.out)(&table(shown.iter().map(|r| row(desk, r)), desk.columns))?,
    }
    Ok(Exit::Complete)
}

const HEAD: [&str; 7] = ["NAME", "STATE", "DONE", "SIZE", "RETRIES", "NEXT TRY", "MIRROR"];

fn row(desk: &Desk<'_>, record: &Record) -> [String; 7] {
    let mirror = record.mirrors.iter().find(|m| m.standing == Standing::Usable).or(record.mirrors.first());
    let host = mirror.map_or_else(|| "-".into(), |m| host_of(&m.url));
    let done = if record.status == Status::Done { record.nbytes.unwrap_or(record.confirmed) } else { record.confirmed };
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
