//! The built program from outside, as far as no network is needed: help, wrong use, pages, an empty state.

#![allow(clippy::expect_used, reason = "a test says what it expects")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn persxfer(home: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_persxfer"));
    command.args(words).current_dir(home).env_clear().env("HOME", home).stdin(Stdio::null());
    command.output().expect("the program runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn wrong_use_is_exit_2_with_a_word_on_it_and_leaves_nothing() {
    let home = home();
    let url = "http://127.0.0.1:9/f.bin";
    for (words, says) in [
        (vec!["frobnicate"], "frobnicate"),
        (vec!["download"], "nothing to download"),
        (vec!["download", "-o", "x", "no url"], "no url"),
        (vec!["download", "--no-such-flag", url], "--no-such-flag"),
        (vec!["download", "--give-up", "banana", url], "banana"),
        (vec!["download", "--checksum", "sha-256=zz", url], "sha-256=zz"),
        (vec!["download", "--connections", "-1", url], "--connections"),
        (vec!["download", "-o", "/dev/null", url], "/dev/null"),
        (vec!["download", "-o", "/", url], "folder"),
        (vec!["download", "--retry-policy", "never", url], "never"),
        (vec!["download", "--cacert", "missing.pem", url], "missing.pem"),
        (vec!["download", "-q", "-v", url], "--verbose"),
        (vec!["state", "show", "nothing"], "nothing"),
        (vec!["state", "--state-file", "/", "list"], "--state-file"),
        (vec!["completions", "dos"], "dos"),
        (vec!["man", "frobnicate"], "frobnicate"),
    ] {
        let out = persxfer(home.path(), &words);
        assert_eq!(out.status.code(), Some(2), "{words:?}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(says), "{words:?}: {}", text(&out.stderr));
        assert!(out.stdout.is_empty(), "{words:?}: only data goes to standard output");
    }
    assert_eq!(std::fs::read_dir(home.path()).expect("read").count(), 0, "nothing was written");
}

#[test]
fn a_folder_that_cannot_be_is_local_trouble() {
    let home = home();
    std::fs::write(home.path().join("plainfile"), "").expect("written");
    let out = persxfer(home.path(), &["download", "-o", "plainfile/out.bin", "http://127.0.0.1:9/f"]);
    assert_eq!(out.status.code(), Some(5), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("plainfile"), "{}", text(&out.stderr));
}

#[test]
fn help_for_the_program_and_every_command() {
    let home = home();
    for words in [
        &["--help"][..],
        &["-h"],
        &["download", "--help"],
        &["state", "--help"],
        &["state", "forget", "-h"],
        &["man", "-h"],
    ] {
        let out = persxfer(home.path(), words);
        assert_eq!(out.status.code(), Some(0), "{words:?}");
        assert!(text(&out.stdout).contains("Usage: persxfer"), "{words:?}");
    }
    let out = persxfer(home.path(), &["--version"]);
    assert_eq!(text(&out.stdout), format!("persxfer {}\n", env!("CARGO_PKG_VERSION")));
    for words in [&[][..], &["state"]] {
        assert_eq!(persxfer(home.path(), words).status.code(), Some(2), "a command is missing: {words:?}");
    }
}

#[test]
fn later_things_are_absent() {
    let home = home();
    let help = persxfer(home.path(), &["download", "--help"]);
    for option in ["--connections", "--metalink", "--ledger", "--report-url", "--config"] {
        assert!(!text(&help.stdout).contains(option), "{option}");
    }
}

#[test]
fn completions_and_manual_pages() {
    let home = home();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let out = persxfer(home.path(), &["completions", shell]);
        assert_eq!(out.status.code(), Some(0), "{shell}");
        assert!(text(&out.stdout).contains("max-transfers-per-host"), "{shell}");
    }
    for (words, has) in [
        (&["man"][..], "Exit status"),
        (&["man", "download"], "retry\\-policy"),
        (&["man", "state", "forget"], "part files"),
    ] {
        let out = persxfer(home.path(), words);
        assert_eq!(out.status.code(), Some(0), "{words:?}");
        assert!(
            text(&out.stdout).contains(".TH") && text(&out.stdout).contains(has),
            "{words:?}: {}",
            text(&out.stdout)
        );
    }
}

#[test]
fn an_empty_state_is_an_empty_list() {
    let home = home();
    for words in [
        &["state", "list", "--json"][..],
        &["--state-file", "none.xml", "state", "list", "--json"],
        &["state", "list", "--json", "--state-file", "none.xml"],
    ] {
        let out = persxfer(home.path(), words);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        assert_eq!(text(&out.stdout), "{\"schema\":1,\"transfers\":[]}\n");
    }
    let out = persxfer(home.path(), &["state", "check"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert_eq!(std::fs::read_dir(home.path()).expect("read").count(), 0, "looking creates nothing");
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let home = home();
    let words =
        ["download", "--dry-run", "-d", "sub", "-m", "http://b.example/f?k=s3cret", "http://me:s3cret@a.example/f.bin"];
    let out = persxfer(home.path(), &words);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    assert!(
        said.contains("sub/f.bin") && said.contains("from http://b.example/f") && said.contains("would be downloaded"),
        "{said}"
    );
    assert!(!said.contains("s3cret"), "{said}");
    assert_eq!(std::fs::read_dir(home.path()).expect("read").count(), 0, "nothing was written");
}

#[test]
fn a_closed_pipe_is_success() {
    let home = home();
    let mut command = Command::new(env!("CARGO_BIN_EXE_persxfer"));
    command.args(["completions", "bash"]).env("HOME", home.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    drop(child.stdout.take());
    let out = child.wait_with_output().expect("it ends");
    assert_eq!((out.status.code(), text(&out.stderr)), (Some(0), ""));
}
