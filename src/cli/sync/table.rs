//! What came of a sync, as a table for people and as JSON for programs.

use serde_json::{Value, json};

use crate::cli::foreign::{Counts, Depth, ModuleReport, Outcome, SourceReport, SourceState, human_size, printable};
use crate::core::sync::config::Mode;

/// The version of the JSON.
const SCHEMA: u32 = 1;

/// A line a source.
pub(super) fn text(reports: &[ModuleReport], depth: Depth) -> String {
    let mut rows = vec![heads(depth)];
    for module in reports {
        match module.sources.as_slice() {
            [] => rows.push(row(module, None, depth)),
            sources => rows.extend(sources.iter().map(|source| row(module, Some(source), depth))),
        }
    }
    let columns = rows[0].len();
    let widths: Vec<usize> =
        (0..columns).map(|n| rows.iter().map(|row| row[n].chars().count()).max().unwrap_or(0)).collect();
    rows.iter().map(|row| line(row, &widths)).collect()
}

fn heads(depth: Depth) -> Vec<String> {
    let plan = ["MODULE", "SOURCE", "INDEXED", "TO FETCH", "TO DELETE", "REFUSED", "STATE"].as_slice();
    let full = [
        "MODULE",
        "SOURCE",
        "INDEXED",
        "FETCHED",
        "BYTES",
        "LEFT",
        "NEW",
        "IDENTICAL",
        "CONFLICTS",
        "REJECTED",
        "DELETED",
        "STATE",
    ];
    let heads = if depth == Depth::Plan { plan } else { full.as_slice() };
    heads.iter().map(|&head| head.to_owned()).collect()
}

fn row(module: &ModuleReport, source: Option<&SourceReport>, depth: Depth) -> Vec<String> {
    let name = source.map_or("-", |source| source.name.as_str());
    let c = source.map(|source| source.counts).unwrap_or_default();
    let numbers = match depth {
        Depth::Plan => vec![c.indexed.to_string(), c.needed.to_string(), c.deleted.to_string(), c.refused.to_string()],
        Depth::Full => vec![
            c.indexed.to_string(),
            c.fetched.to_string(),
            human_size(c.bytes),
            (c.left + c.failed).to_string(),
            (c.copied + c.healed + c.replaced).to_string(),
            c.identical.to_string(),
            c.conflicts.to_string(),
            (c.rejected + c.refused).to_string(),
            c.deleted.to_string(),
        ],
    };
    let texts = [printable(&module.name), printable(name)];
    texts.into_iter().chain(numbers).chain([state(module, source).to_owned()]).collect()
}

fn state(module: &ModuleReport, source: Option<&SourceReport>) -> &'static str {
    match (&module.outcome, source.map(|source| &source.state)) {
        (Outcome::Off, _) => "off",
        (Outcome::Busy(_), _) => "busy",
        (_, Some(SourceState::Failed(_))) => "failed",
        (Outcome::Stopped, _) => "stopped",
        (Outcome::Local(_), _) => "local trouble",
        (Outcome::Done, _) if source.is_some_and(|s| s.counts.left + s.counts.failed > 0) => "partial",
        (Outcome::Done, _) => "ok",
    }
}

/// Texts to the left, numbers to the right.
fn line(row: &[String], widths: &[usize]) -> String {
    let last = row.len() - 1;
    let cells = row.iter().zip(widths).enumerate().map(|(n, (cell, &width))| match n {
        0 | 1 => format!("{cell:<width$}"),
        _ if n == last => cell.clone(),
        _ => format!("{cell:>width$}"),
    });
    let line = cells.collect::<Vec<_>>().join("  ");
    format!("{}\n", line.trim_end())
}

/// One object, with a schema version.
pub(super) fn json(reports: &[ModuleReport], depth: Depth) -> String {
    let modules: Vec<Value> = reports.iter().map(module).collect();
    let dry_run = depth == Depth::Plan;
    format!("{}\n", json!({ "schema": SCHEMA, "dry_run": dry_run, "modules": modules }))
}

fn module(report: &ModuleReport) -> Value {
    let (outcome, why) = match &report.outcome {
        Outcome::Done => ("done", None),
        Outcome::Off => ("off", None),
        Outcome::Busy(fault) => ("busy", Some(fault.to_string())),
        Outcome::Stopped => ("stopped", None),
        Outcome::Local(fault) => ("local", Some(fault.to_string())),
    };
    let mode = match report.mode {
        Mode::Sync => "Sync",
        Mode::NoSync => "NoSync",
        Mode::SyncOnly => "SyncOnly",
    };
    let sources: Vec<Value> = report.sources.iter().map(source).collect();
    json!({
        "name": report.name,
        "mode": mode,
        "outcome": outcome,
        "why": why,
        "complete": report.is_complete(),
        "hook_failure": report.hook,
        "pruned": report.pruned,
        "sources": sources,
    })
}

fn source(report: &SourceReport) -> Value {
    let (state, why) = match &report.state {
        SourceState::Unasked => ("unasked", None),
        SourceState::Read => ("read", None),
        SourceState::Failed(why) => ("failed", Some(why)),
    };
    let mut told = json!({
        "name": report.name,
        "url": report.url,
        "state": state,
        "why": why,
        "nothing_deleted_because": report.doubt,
    });
    for (name, number) in numbers(&report.counts) {
        told[name] = json!(number);
    }
    told
}

fn numbers(c: &Counts) -> [(&'static str, u64); 16] {
    let n = |count: usize| count as u64;
    [
        ("indexed", n(c.indexed)),
        ("refused", n(c.refused)),
        ("needed", n(c.needed)),
        ("fetched", n(c.fetched)),
        ("bytes", c.bytes),
        ("vanished", n(c.vanished)),
        ("failed", n(c.failed)),
        ("left", n(c.left)),
        ("deleted", n(c.deleted)),
        ("rejected", n(c.rejected)),
        ("unverified", n(c.unverified)),
        ("copied", n(c.copied)),
        ("healed", n(c.healed)),
        ("replaced", n(c.replaced)),
        ("identical", n(c.identical)),
        ("conflicts", n(c.conflicts)),
    ]
}
