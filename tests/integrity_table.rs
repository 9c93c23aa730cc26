//! The table of faults (`docs/integrity.md`): every kind has a row, every row a test, and every test is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The kinds are H1 to this.
const KINDS: u32 = 54;

#[test]
fn every_kind_has_a_test_that_exists() {
    let table = fs::read_to_string(root().join("docs/integrity.md")).unwrap_or_default();
    let wrong = faults(&table, &|file| fs::read_to_string(root().join("tests").join(file)).ok());
    assert!(wrong.is_empty(), "docs/integrity.md:\n{}", wrong.join("\n"));
}

#[test]
fn planted_mistakes_are_found() {
    let there = |file: &str| match file {
        "a.rs" => Some("#[test]\nfn one() {}\nfn helper() {}\n".to_owned()),
        "c.rs" => Some("#[test]\nfn two() {}\n".to_owned()),
        _ => None,
    };
    let row = |n: u32, tests: &str| format!("| H{n} | a | b | c | {tests} |\n");
    let all = |odd: &str| (1..=KINDS).map(|n| row(n, if n == 7 { odd } else { "`a::one`" })).collect::<String>();
    for good in ["`a::one`", "`c::two`", "`a::one`, `c::two`"] {
        assert!(faults(&all(good), &there).is_empty(), "{good}: {:?}", faults(&all(good), &there));
    }
    for bad in ["", "a::one", "`a::helper`", "`a::on`", "`b::one`", "`c::one`", "`a::one`, `c::one`"] {
        assert_eq!(faults(&all(bad), &there).len(), 1, "{bad}");
    }
    assert_eq!(
        faults(&all("`a::one`").replace("| H7 |", "| H8 |"), &there).len(),
        2,
        "one is missing, one is there twice"
    );
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// What is wrong with the table; `text_of` gives a file in `tests`.
fn faults(table: &str, text_of: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for line in table.lines() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let Some(kind) = cells.get(1).and_then(|cell| cell.strip_prefix('H')?.parse::<u32>().ok()) else { continue };
        if !seen.insert(kind) {
            wrong.push(format!("H{kind} has two rows"));
        }
        match cells.as_slice() {
            [_, _, what, done, evidence, tests, _] if ![what, done, evidence].iter().any(|c| c.is_empty()) => {
                wrong.extend(missing(tests, text_of).map(|why| format!("H{kind}: {why}")));
            }
            _ => wrong.push(format!("H{kind}: not five columns, or an empty one")),
        }
    }
    let absent = (1..=KINDS).filter(|kind| !seen.contains(kind)).map(|kind| format!("H{kind} has no row"));
    wrong.extend(absent);
    wrong
}

/// Why a cell of tests is not good enough.
fn missing(cell: &str, text_of: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let named: Vec<_> = cell.split(',').map(str::trim).filter(|name| name.contains('`')).collect();
    if named.is_empty() {
        return Some("no test".to_owned());
    }
    named.into_iter().find_map(|name| {
        let Some((file, test)) = name.trim_matches('`').split_once("::") else {
            return Some(format!("{name} is no test"));
        };
        let path = format!("{file}.rs");
        let there = text_of(&path).is_some_and(|text| has_test(&text, test));
        (!there).then(|| format!("{name} is not in tests/{path}"))
    })
}

fn has_test(text: &str, test: &str) -> bool {
    let head = format!("fn {test}()");
    let mut marked = false;
    text.lines().any(|line| {
        if line.starts_with("fn ") {
            let found = marked && line.starts_with(&head);
            marked = false;
            return found;
        }
        marked |= line.trim() == "#[test]";
        false
    })
}
