//! The table of cases in `docs/sync.md`: every test that it names is there, every case has its test, and no test of a case
//! is left out.

use std::fs;
use std::path::Path;

const CODE: [&str; 9] = [
    "src/core/sync/source.rs",
    "src/core/sync/diff.rs",
    "src/core/sync/config/tests.rs",
    "src/core/sync/index/tests.rs",
    "src/core/sync/kinds/tests.rs",
    "tests/sync_fetch.rs",
    "tests/sync_merge.rs",
    "tests/sync_run.rs",
    "tests/crash_sync.rs",
];

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_default()
}

fn is_case(name: &str) -> bool {
    name.starts_with('b') && name.get(1..3).is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
}

#[test]
fn every_case_has_tests_that_are_there() {
    let page = read("docs/sync.md");
    let code = CODE.map(read).concat();
    let named: Vec<&str> = page.split('`').filter(|word| is_case(word)).collect();
    let missing: Vec<_> = named.iter().filter(|name| !code.contains(&format!("fn {name}("))).collect();
    assert!(named.len() >= 28 && missing.is_empty(), "no such test: {missing:?}");
    for case in 1..=28 {
        let row = page.lines().find(|line| line.starts_with(&format!("| {case} "))).unwrap_or_default();
        assert!(row.contains(&format!("`b{case:02}_")), "case {case} has no test in its row");
    }
    let tests = code.split("fn ").filter_map(|rest| rest.split('(').next()).filter(|name| is_case(name));
    let untold: Vec<_> = tests.filter(|name| !named.contains(name)).collect();
    assert_eq!(untold, [""; 0], "tests of cases that the page does not name");
}
