//! The floors: a floor uses only the floors below it, and the lowest one touches nothing of the world
//! (`docs/architecture.md`).
//!
//! The source is read as tokens, with comments, text in quotes and test modules blanked, so that a word in a comment is
//! no violation and a path in a grouped `use` is one. The rules are tried on planted violations first: a guard that
//! cannot fail guards nothing.

#[path = "support/rust_text.rs"]
mod rust_text;

use std::fs;
use std::path::{Path, PathBuf};

use rust_text::{blanked, tokens, without_tests};

/// The floors, lowest first.
const FLOORS: [&str; 4] = ["core", "io", "engine", "cli"];

/// Longer files get lost in.
const MAX_LINES: usize = 450;

/// What the lowest floor may not name: whatever reads a clock, draws randomness or touches the world.
const NOT_IN_CORE: [&str; 20] = [
    "std::fs",
    "std::io",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::env",
    "std::sync::mpsc",
    "tokio",
    "tokio_util",
    "reqwest",
    "hyper",
    "rustix",
    "tempfile",
    "rand::rng",
    "rand::random",
    "rand::rngs::OsRng",
    "rand::rngs::SysRng",
    "jiff::Timestamp::now",
    "jiff::Zoned::now",
];

/// Names that mean the same wherever they come from. `async` and `await` are among them.
const NOT_IN_CORE_AT_ALL: [&str; 8] =
    ["SystemTime", "Instant", "async", "await", "thread_rng", "OsRng", "SysRng", "getrandom"];

/// Methods of `Path` that ask the file system.
const ASKS_THE_DISK: [&str; 7] =
    ["canonicalize", "try_exists", "symlink_metadata", "read_dir", "read_link", "is_file", "is_symlink"];

/// Exceptions to both, as they are data or move bytes in memory.
const HARMLESS: [&str; 15] = [
    "std::io::Read",
    "std::io::Write",
    "std::io::BufRead",
    "std::io::Seek",
    "std::io::SeekFrom",
    "std::io::Cursor",
    "std::io::Error",
    "std::io::ErrorKind",
    "std::io::Result",
    "std::net::IpAddr",
    "std::net::Ipv4Addr",
    "std::net::Ipv6Addr",
    "std::net::AddrParseError",
    "std::os::unix::ffi::OsStrExt",
    "std::os::unix::ffi::OsStringExt",
];

/// Libraries with one owner: no type of theirs shows anywhere else.
const OWNED: [(&str, &[&str]); 8] = [
    ("reqwest", &["io/transport"]),
    ("hyper", &["io/transport"]),
    ("hyper_util", &["io/transport"]),
    ("tokio_rustls", &["io/transport"]),
    ("quick_xml", &["core/state", "core/metalink/xml.rs", "core/upload/s3/xml.rs"]),
    ("clap", &["cli"]),
    ("indicatif", &["cli"]),
    ("tracing_subscriber", &["cli"]),
];

#[test]
fn no_floor_uses_one_above_it_and_core_touches_nothing() {
    let mut all = Vec::new();
    for (path, text) in sources() {
        all.extend(violations(&path, &text));
    }
    assert!(all.is_empty(), "{} violations:\n{}", all.len(), all.join("\n"));
}

#[test]
fn the_source_is_where_the_rules_look_for_it() {
    let sources = sources();
    assert!(sources.len() > 30, "only {} files", sources.len());
    for floor in FLOORS {
        assert!(
            sources.iter().any(|(path, _)| floor_of(path) == FLOORS.iter().position(|f| *f == floor)),
            "no {floor}"
        );
    }
}

#[test]
fn planted_violations_are_found() {
    for (path, text, found) in [
        ("core/a.rs", "use crate::io::clock::Clock;", "uses io"),
        ("core/a.rs", "use crate::{core::time::Now, engine::{self, Job}};", "uses engine"),
        ("core/a/b.rs", "fn f() { super::super::super::cli::main(); }", "uses cli"),
        ("core/a/mod.rs", "type T = persxfer::engine::Job;", "uses engine"),
        ("core/a.rs", "use crate::*;", "uses everything"),
        ("io/a.rs", "fn f(x: &crate::engine::Settings) {}", "uses engine"),
        ("io/part/mod.rs", "use crate::cli;", "uses cli"),
        ("engine/mod.rs", "use crate\n    ::cli::bars;", "uses cli"),
        ("core/a.rs", "use std::{fmt, fs::File};", "names std::fs"),
        ("core/a.rs", "use std::net::{IpAddr, TcpStream};", "names std::net::TcpStream"),
        ("core/a.rs", "use std::os::unix::fs::MetadataExt;", "names std::os"),
        ("core/a.rs", "use std::io::{self, Write as _}; fn f() { io::stdout(); }", "names std::io"),
        ("core/a.rs", "fn f() -> std::io::Stdin { std::io::stdin() }", "names std::io::Stdin"),
        ("core/a.rs", "fn f() { let t = time::SystemTime::now(); }", "names SystemTime"),
        ("core/a.rs", "use std::time::{Duration, Instant};", "names Instant"),
        ("core/a.rs", "pub async fn f() {}", "names async"),
        ("core/a.rs", "fn f() { let r = rand::rng(); }", "names rand::rng"),
        ("core/a.rs", "use rand::{Rng, rng};", "names rand::rng"),
        ("core/a.rs", "use tokio::sync::Notify;", "names tokio"),
        ("core/a.rs", "fn f(p: &Path) -> bool { p.is_file() }", "asks the disk"),
        ("io/lane.rs", "use reqwest::Client;", "reqwest belongs to io/transport"),
        ("engine/mod.rs", "fn f(e: quick_xml::Error) {}", "quick_xml belongs to core/state"),
        ("core/metalink/read.rs", "use quick_xml::Reader;", "quick_xml belongs to core/state"),
    ] {
        let all = violations(Path::new(path), &format!("//! A page.\n{text}\n"));
        assert!(all.iter().any(|v| v.contains(found)), "{text:?} in {path} gives {all:?}, not {found:?}");
    }
    let long = "//! A page.\n".to_owned() + &"fn f() {}\n".repeat(MAX_LINES);
    assert!(violations(Path::new("io/a.rs"), &long)[0].contains("lines"));
    assert!(violations(Path::new("io/a.rs"), "/// Not a page.\nfn f() {}\n")[0].contains("//!"));
}

#[test]
fn what_is_allowed_is_left_alone() {
    for (path, text) in [
        ("core/a.rs", "use crate::core::time::Now; use super::url::Origin;"),
        (
            "core/a.rs",
            "// crate::io, std::fs and SystemTime in a comment /* tokio */\n/* use std::net; /* nested */ */",
        ),
        (
            "core/a.rs",
            "const S: &str = \"use crate::cli; \\\" async\"; const R: &str = r#\"std::fs \"tokio\" \"#; const C: char = '\"';",
        ),
        ("core/a.rs", "fn f<'a>(x: &'a str) -> &'a str { x }\nstruct Io { io: u8, engine: u8 }"),
        (
            "core/a.rs",
            "fn f() {}\n#[cfg(test)]\nmod tests {\n    use std::fs;\n    fn g() { std::time::Instant::now(); }\n}\n",
        ),
        ("core/a/tests.rs", "use std::fs; fn f() { let x = std::env::var(\"X\"); }"),
        ("core/a.rs", "use std::io::Write as _; fn f(e: std::io::Error) {}"),
        ("core/a.rs", "use std::net::{IpAddr, Ipv6Addr}; use std::os::unix::ffi::OsStrExt;"),
        ("core/a.rs", "use rand::Rng; fn f(r: &mut dyn rand::Rng) {}"),
        ("io/a.rs", "use crate::core::url::Origin; use std::fs; use tokio::time;"),
        ("io/transport/mod.rs", "use reqwest::Client;"),
        ("engine/mod.rs", "use crate::io::lane; use crate::core::time;"),
        ("cli/mod.rs", "use crate::engine::Job; use crate::io; use crate::core;"),
        ("main.rs", "fn main() { persxfer::cli::main(); }"),
    ] {
        let all = violations(Path::new(path), &format!("//! A page.\n{text}\n"));
        assert!(all.is_empty(), "{text:?} in {path} gives {all:?}");
    }
}

/// Every source file with its path below `src`.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut found) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).unwrap_or_default();
                found.push((path.strip_prefix(&root).map(Path::to_owned).unwrap_or(path), text));
            }
        }
    }
    found.sort();
    found
}

/// Everything wrong with one file; `path` is relative to `src`.
fn violations(path: &Path, text: &str) -> Vec<String> {
    let mut found = form(text);
    if !is_test(path) {
        let words = without_tests(tokens(&blanked(text)));
        let named = paths(&words, &modules(path));
        found.extend(upwards(path, &named));
        found.extend(strangers(path, &named));
        if floor_of(path) == Some(0) {
            found.extend(worldly(&words, &named));
        }
    }
    found.dedup();
    found.into_iter().map(|what| format!("src/{}: {what}", path.display())).collect()
}

fn form(text: &str) -> Vec<String> {
    let lines = text.lines().count();
    let mut found = Vec::new();
    if !text.starts_with("//!") {
        found.push("does not open with a page (//!) that says what it is for".to_owned());
    }
    if lines > MAX_LINES {
        found.push(format!("has {lines} lines, more than {MAX_LINES}: split it by concept"));
    }
    found
}

/// Test code may do what it likes, in files of its own too.
fn is_test(path: &Path) -> bool {
    path.components().any(|c| matches!(c.as_os_str().to_str(), Some("tests" | "tests.rs" | "samples.rs")))
}

fn floor_of(path: &Path) -> Option<usize> {
    let first = path.components().next()?.as_os_str();
    FLOORS.iter().position(|f| first == *f)
}

/// The module path of a file: `core/a/mod.rs` is `core`, `a`.
fn modules(path: &Path) -> Vec<String> {
    let names =
        path.with_extension("").components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect::<Vec<_>>();
    names.into_iter().filter(|n| !matches!(n.as_str(), "mod" | "lib" | "main")).collect()
}

fn upwards(path: &Path, named: &[Vec<String>]) -> Vec<String> {
    let Some(own) = floor_of(path) else { return Vec::new() };
    let above = |name: &[String]| match name.get(1).map(String::as_str) {
        _ if !matches!(name[0].as_str(), "crate" | "persxfer") => None,
        Some("*") => Some("uses everything (crate::*)".to_owned()),
        Some(next) => {
            let floor = FLOORS.iter().position(|f| *f == next)?;
            (floor > own).then(|| format!("{} uses {next}: {}", FLOORS[own], name.join("::")))
        }
        None => None,
    };
    named.iter().filter_map(|name| above(name)).collect()
}

fn strangers(path: &Path, named: &[Vec<String>]) -> Vec<String> {
    let mut found = Vec::new();
    for (library, owners) in OWNED {
        let at_home = owners.iter().any(|o| path.starts_with(o));
        if !at_home && named.iter().any(|n| n[0] == library) {
            found.push(format!("{library} belongs to {}", owners.join(", ")));
        }
    }
    found
}

fn worldly(words: &[String], named: &[Vec<String>]) -> Vec<String> {
    let mut found = Vec::new();
    let within = |text: &str, no: &str| text == no || text.starts_with(&format!("{no}::"));
    for text in named.iter().map(|name| name.join("::")) {
        if NOT_IN_CORE.iter().any(|no| within(&text, no)) && !HARMLESS.iter().any(|yes| within(&text, yes)) {
            found.push(format!("core names {text}"));
        }
    }
    for word in words.iter().filter(|w| NOT_IN_CORE_AT_ALL.contains(&w.as_str())) {
        found.push(format!("core names {word}"));
    }
    for pair in words.windows(2).filter(|p| p[0] == "." && ASKS_THE_DISK.contains(&p[1].as_str())) {
        found.push(format!("core asks the disk: .{}()", pair[1]));
    }
    found
}

/// Every path that is named, `use` trees spread out and `self` and `super` resolved; single names are left out.
fn paths(words: &[String], own: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let starts = is_name(&words[at]) && at.checked_sub(1).is_none_or(|p| words[p] != "::" && words[p] != ".");
        if starts && (words[at] == "use" || words.get(at + 1).is_some_and(|w| w == "::")) {
            at += usize::from(words[at] == "use");
            at = spread(words, at, &[], own, &mut found).max(at + 1);
        } else {
            at += 1;
        }
    }
    found
}

/// Reads one path or `use` tree from `at` on, and gives where it ends.
fn spread(words: &[String], mut at: usize, before: &[String], own: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut path = before.to_vec();
    while let Some(word) = words.get(at) {
        match word.as_str() {
            "::" => {}
            "{" if !path.is_empty() && words[at - 1] == "::" || before.is_empty() && path.is_empty() && word == "{" => {
                at += 1;
                while words.get(at).is_some_and(|w| w != "}") {
                    at = spread(words, at, &path, own, found).max(at + 1);
                    at += usize::from(words.get(at).is_some_and(|w| w == ","));
                }
                return at + 1;
            }
            "*" if words[at - 1] == "::" => path.push("*".to_owned()),
            "self" if !path.is_empty() => {}
            name if is_name(name) && (path.len() == before.len() || words[at - 1] == "::") => {
                path.push(name.to_owned())
            }
            _ => break,
        }
        at += 1;
    }
    if path.len() > 1 {
        found.push(resolved(&path, own));
    }
    // `use a as b`: the new name is no path.
    if words.get(at).is_some_and(|w| w == "as") { at + 2 } else { at }
}

fn resolved(path: &[String], own: &[String]) -> Vec<String> {
    let ups = path.iter().take_while(|w| *w == "super").count();
    if ups == 0 {
        return path.to_vec();
    }
    let kept = &own[..own.len().saturating_sub(ups)];
    ["crate".to_owned()].iter().chain(kept).chain(&path[ups..]).cloned().collect()
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}
