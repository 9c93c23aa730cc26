//! The tables of `docs/testing-uploads.md`: every test that they name is there, and every test of the built program has a row.

use std::fs;
use std::path::{Path, PathBuf};

/// What holds the built program to its promise, in `tests`.
const OF_THE_PROGRAM: [&str; 11] = [
    "upload_believed.rs",
    "upload_boinc_rows.rs",
    "upload_boinc_versions.rs",
    "upload_control.rs",
    "upload_dav.rs",
    "upload_ends.rs",
    "upload_ietf_rows.rs",
    "upload_kills_real.rs",
    "upload_s3.rs",
    "upload_tus.rs",
    "upload_verdicts.rs",
];

/// Fewer underscores: a word of the text and no test.
const LEAST: usize = 3;

#[test]
fn every_test_that_is_named_is_there() {
    let page = read(&root().join("docs/testing-uploads.md"));
    let mut there = Vec::new();
    for folder in ["tests", "src/core/upload/tests"] {
        for file in rust_files(&root().join(folder)) {
            there.extend(functions(&read(&file)).map(str::to_owned));
        }
    }
    let wrong: Vec<_> = named(&page).filter(|name| !there.iter().any(|test| is(name, test))).collect();
    assert!(wrong.is_empty(), "no such test: {wrong:#?}");
    assert!(named(&page).count() > 150, "the page was not read");
}

#[test]
fn every_test_of_the_program_has_a_row() {
    let page = read(&root().join("docs/testing-uploads.md"));
    for file in OF_THE_PROGRAM {
        let text = read(&root().join("tests").join(file));
        let without: Vec<_> = tests(&text).filter(|test| !named(&page).any(|name| is(name, test))).collect();
        assert!(without.is_empty(), "{file}: no row for {without:#?}");
        assert!(tests(&text).count() > 0, "{file} was not read");
    }
}

#[test]
fn planted_mistakes_are_found() {
    let page = "| `one_test_that_is_there` | `a_beginning_of_a_...`, `..._of_a_name` | `word_of_text` |";
    assert_eq!(named(page).collect::<Vec<_>>(), ["one_test_that_is_there", "a_beginning_of_a_...", "..._of_a_name"]);
    assert!(is("a_beginning_of_a_...", "a_beginning_of_a_name") && is("..._of_a_name", "the_end_of_a_name"));
    assert!(!is("a_beginning", "a_beginning_of_a_name") && !is("a_beginning_of_b...", "a_beginning_of_a_name"));
    let text = "#[test]\nfn one() {}\nfn helper() {}\n#[test]\n#[ignore]\nfn two() {}\n";
    assert_eq!(tests(text).collect::<Vec<_>>(), ["one", "two"]);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "rs")).collect()
}

/// Names between backticks that can only be those of tests; three dots stand for the rest of one.
fn named(page: &str) -> impl Iterator<Item = &str> {
    let fits = |name: &&str| {
        let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '.');
        let dots = name.strip_prefix("...").or_else(|| name.strip_suffix("...")).unwrap_or(name);
        let short = if dots.len() < name.len() { 1 } else { LEAST };
        plain && !dots.contains('.') && name.matches('_').count() >= short
    };
    page.split('`').skip(1).step_by(2).filter(fits)
}

fn is(name: &str, test: &str) -> bool {
    match (name.strip_prefix("..."), name.strip_suffix("...")) {
        (Some(end), _) => test.ends_with(end),
        (_, Some(beginning)) => test.starts_with(beginning),
        _ => name == test,
    }
}

fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.trim_start().strip_prefix("fn ")?.split(['(', '<']).next())
}

/// The functions behind the attribute.
fn tests(text: &str) -> impl Iterator<Item = &str> {
    text.split("#[test]\n").skip(1).filter_map(|rest| functions(rest).next())
}
