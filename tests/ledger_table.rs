//! The table of cases in `docs/ledger.md`: every test that it names is there, and every case has its test.

use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_default()
}

#[test]
fn every_case_has_tests_that_are_there() {
    let page = read("docs/ledger.md");
    let sources =
        ["failures", "leases", "paces", "wakes"].map(|file| read(&format!("src/core/ledger/tests/{file}.rs")));
    let stores = ["claims", "outcomes", "wakes", "many"].map(|file| read(&format!("tests/support/ledger/{file}.rs")));
    let code = [
        sources.concat(),
        stores.concat(),
        read("tests/ledger_sqlite.rs"),
        read("tests/ledger_postgres.rs"),
        read("tests/worker.rs"),
    ]
    .concat();
    let named: Vec<&str> = page.split('`').filter(|word| word.starts_with('c') && word.contains("_")).collect();
    let missing: Vec<_> = named.iter().filter(|name| !code.contains(&format!("fn {name}("))).collect();
    assert!(named.len() > 40 && missing.is_empty(), "no such test: {missing:?}");
    for case in 1..=30 {
        let begins = [format!("c{case:02}_"), format!("c05_and_{case:02}_")];
        assert!(named.iter().any(|name| begins.iter().any(|b| name.starts_with(b))), "case {case} has no test");
    }
    let untold = code.split("fn ").filter_map(|rest| rest.split('(').next()).filter(|name| {
        name.starts_with('c') && name[1..].starts_with(|c: char| c.is_ascii_digit()) && !named.contains(name)
    });
    assert_eq!(untold.collect::<Vec<_>>(), [""; 0], "tests of cases that the page does not name");
}
