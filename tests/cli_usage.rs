//! The built program from outside, as far as no network is needed: help, wrong use, pages, an empty state.

#![allow(clippy::expect_used, reason = "a test says what it expects")]

use std::path::{Path, PathBuf};
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

/// A mistake: its words, `@` for the folder of the test; the status; the thing that must be named; what to do about it.
type Mistake = (&'static [&'static str], i32, &'static str, &'static str);

const URL: &str = "http://127.0.0.1:9/f.bin";

/// The table of mistakes. Each is one line on standard error.
const MISTAKES: &[Mistake] = &[
    // URLs.
    (&["download"], 2, "nothing to download", "give a URL"),
    (&["download", "no url"], 2, "\"no url\"", "it has no scheme"),
    (&["download", "example.org/f"], 2, "example.org/f", "was https://example.org/f meant?"),
    (&["download", "ftp://example.org/f"], 2, "ftp", "http nor https"),
    (&["download", "http://[::1/f"], 2, "http://[::1/f", "IPv6"),
    (&["download", "http://h:99999/f"], 2, "http://h:99999/f", "port"),
    (&["download", "-o", "x", "-m", "nonsense", URL], 2, "nonsense", "scheme"),
    (&["download", URL, "http://127.0.0.1:9/other/f.bin"], 2, "f.bin", "different names"),
    (&["download", "-o", "x", URL, URL], 2, "--output", "--input-file"),
    // Checksums.
    (&["download", "--checksum", "sha-256=zz", URL], 2, "sha-256=zz", "hex"),
    (&["download", "--checksum", "sha-256=00", URL], 2, "sha-256=00", "64 hex digits"),
    (&["download", "--checksum", "rot13=00", URL], 2, "rot13", "sha-256"),
    (&["download", "--checksums", "@/missing.sums", URL], 2, "missing.sums", "name a file that can be read"),
    (&["download", "--checksums", "@/plain", URL], 2, "plain", ""),
    // Durations, sizes, policies, numbers.
    (&["download", "--give-up", "banana", URL], 2, "--give-up", "10s"),
    (&["download", "--give-up", "0s", URL], 2, "--give-up", "longer than nothing"),
    (&["download", "--min-delay", "5", URL], 2, "--min-delay", "10s"),
    (&["download", "--min-delay", "3h", "--max-delay", "1h", URL], 2, "--min-delay", "--max-delay"),
    (&["download", "--limit-rate", "fast", URL], 2, "--limit-rate", "64k"),
    (&["download", "--max-filesize", "1x", URL], 2, "--max-filesize", "64k"),
    (&["download", "--retry-policy", "never", URL], 2, "never", "boinc-7"),
    (&["download", "--retry-policy", "tor:base=x", URL], 2, "base \"x\"", "tor:base=6"),
    (&["download", "--retry-on", "200", URL], 2, "--retry-on '200'", "403,404"),
    (&["download", "-C", "100", URL], 2, "--continue-at", "leave it out"),
    // Files that are to be read.
    (&["download", "--cacert", "@/missing.pem", URL], 2, "missing.pem", "name a file that can be read"),
    (&["download", "--cacert", "@/plain", "-d", "@/empty", URL], 2, "plain", "name a PEM file"),
    (&["download", "--cacert", "@", URL], 2, "--cacert", "name a file"),
    (&["download", "--cookies", "@/missing", URL], 2, "missing", "name a file that can be read"),
    (&["download", "-i", "@/missing.txt"], 2, "missing.txt", "name a file that can be read"),
    (&["download", "-i", "@/bad.txt"], 2, "line 2", "scheme"),
    (&["download", "-M", "@/missing.meta4"], 2, "missing.meta4", "name a file that can be read"),
    (&["download", "-M", "@/plain"], 2, "plain", "no metalink of version 3 or 4"),
    (&["download", "-M", "@/damaged.xml"], 2, "damaged.xml", "line 1, column 1"),
    (&["download", "-M", "@/ftp.meta4"], 2, "f.bin has no http or https URL (1 other URL left out)", "add one"),
    (&["download", "-M", "@/none.meta4"], 2, "none.meta4", "lists no file"),
    (&["download", "-M", "-", "-M", "-"], 2, "standard input (-)", "by their names"),
    (&["download", "-M", "-", "-i", "-"], 2, "standard input (-)", "by their names"),
    (&["download", "-M", "-"], 2, "--metalink '-'", "no metalink"),
    (&["download", "-M", "@/good.meta4", "-m", URL, URL], 2, "--mirror", "exactly one URL"),
    (&["download", "-M", "@/good.meta4", "-o", "x", URL], 2, "--output", "exactly one file"),
    (&["download", "-M", "@/good.meta4", "-M", "@/good.meta4"], 2, "f.bin", "different names"),
    // Requests.
    (&["download", "-H", "nonsense", URL], 2, "--header", "Name: value"),
    (&["download", "-u", "me", URL], 2, "--user", "USER:PASSWORD"),
    (&["download", "--proxy", "gopher://h", URL], 2, "gopher", "socks5h://HOST:PORT"),
    (&["download", "--resolve", "h", URL], 2, "--resolve", "HOST:PORT:ADDRESS"),
    (&["download", "--on-complete", "'x", URL], 2, "--on-complete", "never closed"),
    // Outputs that no file can be.
    (&["download", "-o", "/dev/null", URL], 2, "/dev/null", "regular file"),
    (&["download", "-o", "@/empty", URL], 2, "empty", "give a file's name"),
    (&["download", "-o", "@/new/", URL], 2, "new/", "--dir"),
    (&["download", "-o", "@/pipe", URL], 2, "pipe", "regular file"),
    (&["download", "-o", "@/link", URL], 2, "link", "symbolic link"),
    (&["download", "-o", "-", URL], 2, "standard output", "give a file's name"),
    (&["download", "-o", "@/x.persxfer-part", URL], 2, "x.persxfer-part", "give another one"),
    (&["download", "-o", "@/s_prev.xml", "--state-file", "@/s.xml", URL], 2, "s_prev.xml", "another --state-file"),
    (&["download", "-o", "@/plain/out", URL], 5, "plain", "give another folder"),
    (&["download", "-d", "/proc/nowhere", URL], 5, "/proc/nowhere", "give another folder"),
    (&["download", "-o", "@/plain", URL], 5, "plain", "--overwrite replaces it, --no-clobber keeps it"),
    // Uploads.
    (&["upload", "-", URL], 2, "FILE: standard input", "give a file's name"),
    (&["upload", "@/plain", "no url"], 2, "\"no url\"", "it has no scheme"),
    (&["upload", "@/plain", "ftp://h/f"], 2, "ftp", "http nor https"),
    (&["upload", "@/plain", "rsync+http://h/f"], 2, "rsync", "put-range"),
    (&["upload", "@/plain", "tus+http://h/f", "ietf+http://h/f"], 2, "given twice", "leave one of them out"),
    (&["upload", "--name", "a/b", "@/plain", "http://h/"], 2, "--name", "into the URL"),
    (&["upload", "--name", "b", "@/plain", URL], 2, "--name", "write the name into the URL"),
    (&["upload", "--content-type", "zip", "@/plain", URL], 2, "--content-type", "application/zip"),
    (&["upload", "--surplus", "done", "@/plain", URL], 2, "--surplus", "boinc"),
    (&["upload", "--interop", "7", "@/plain", URL], 2, "--interop", "ietf"),
    (&["upload", "--keep-authority", "@/plain", URL], 2, "--keep-authority", "tus"),
    (&["upload", "--verify", "always", "@/plain", "ietf+http://h/"], 2, "--verify", "leave it out"),
    (&["upload", "--max-nbytes", "1", "@/plain", "boinc+http://h/"], 2, "--max-nbytes", "15 bytes"),
    (&["upload", "--boinc-signature", "@/plain", "@/plain", "boinc+http://h/"], 2, "plain", "no signature in hex"),
    (&["upload", "--boinc-signature", "@/no", "@/plain", "boinc+http://h/"], 2, "/no", "name a file that can be read"),
    // Object stores.
    (&["upload", "@/plain", "s3://"], 2, "no name of a bucket", "s3://BUCKET/KEY"),
    (&["upload", "@/plain", "s3://bad..bucket/k"], 2, "bad..bucket", "s3://BUCKET/KEY"),
    (&["upload", "@/plain", "s3://bucket/a/../k"], 2, "a/../k", "no key"),
    (&["upload", "--protocol", "s3", "@/plain", "https://h/b/k?x=s3cret"], 2, "no query", "signed URL"),
    (&["upload", "@/plain", "put+s3://bucket/k"], 2, "s3://bucket/k", "http nor https"),
    (&["upload", "--region", "x/y", "@/plain", "s3://bucket/k"], 2, "x/y", "no name of a region"),
    (&["upload", "--endpoint-url", "nonsense", "@/plain", "s3://bucket/k"], 2, "--endpoint-url", "scheme"),
    (&["upload", "--endpoint-url", "http://h/?k=s3cret", "@/plain", "s3://bucket/k"], 2, "no query", ""),
    (&["upload", "--profile", "lab", "@/plain", "s3://bucket/k"], 2, "--profile", "no profile \"lab\""),
    (&["upload", "@/plain", "s3://bucket/k"], 5, "keys of the object store", "AWS_SECRET_ACCESS_KEY"),
    (&["upload", "--profile", "lab", "@/plain", URL], 2, "--profile", "s3 with keys"),
    (
        &["upload", "--region", "r", "--protocol", "s3", "@/plain", "https://h/k?Signature=s3cret"],
        2,
        "--region",
        "keys",
    ),
    (&["upload", "--endpoint-url", "http://h", "@/plain", URL], 2, "--endpoint-url", "s3 with keys"),
    (&["upload", "-u", "me:s3cret", "@/plain", "s3://bucket/k"], 2, "--user", "any other protocol than s3"),
    (&["upload", "-H", "x-amz-acl: s3cret", "@/plain", "s3://bucket/k"], 2, "--header", "leave it out"),
    (
        &["upload", "--verify", "always", "--protocol", "s3", "@/plain", "https://h/k?Signature=s3cret"],
        2,
        "--verify",
        "leave it out",
    ),
    (&["upload", "--name", "x", "@/plain", "s3://bucket/k"], 2, "--name", "s3"),
    (&["upload", "--s3-manifest", "@/no", "@/plain"], 2, "/no", "name a file of signed URLs"),
    (&["upload", "--s3-manifest", "@/plain", "@/plain"], 2, "plain", "no JSON"),
    (&["upload", "--s3-manifest", "@/urls.json", "@/plain", "s3+http://127.0.0.1:9/b/x"], 2, "/b/k", "another object"),
    (&["upload", "-u", "me", "@/plain", URL], 2, "--user", "USER:PASSWORD"),
    (&["upload", "--state-file", "@/damaged.xml", "@/plain", URL], 5, "damaged.xml", "line 2, column"),
    (&["upload", "@/missing.zip", URL], 5, "missing.zip", ""),
    (&["upload", "@/empty", URL], 5, "empty", "pack the folder into one"),
    (&["upload", "@/pipe", URL], 5, "pipe", "give another one"),
    (&["add", "upload", "@/empty", URL], 5, "empty", "it is a folder"),
    (&["add", "upload", "-", URL], 2, "FILE: standard input", "give a file's name"),
    // State files.
    (&["download", "--state-file", "@", URL], 2, "--state-file", "name a file in it"),
    (&["download", "--state-file", "@/damaged.xml", URL], 5, "damaged.xml", "line 2, column"),
    (&["download", "--state-file", "@/pipe", URL], 5, "pipe", "--state-file"),
    (&["--config", "@/pipe", "download", URL], 2, "pipe", "regular file"),
    (&["download", "--state-file", "/proc/nowhere.xml", URL], 5, "/proc/nowhere", "--state-file names another"),
    (&["state", "list", "--state-file", "@/damaged.xml"], 5, "damaged.xml", "restore a backup"),
    (&["state", "show", "nothing"], 2, "\"nothing\"", "state list --all"),
    (&["state", "forget", "nothing"], 2, "\"nothing\"", "state list --all"),
    (&["man", "frobnicate"], 2, "frobnicate", "--help"),
];

/// What the mistakes stumble over.
fn stumbling_blocks(home: &Path) {
    std::fs::create_dir(home.join("empty")).expect("made");
    std::fs::write(home.join("plain"), "nothing of use\n").expect("written");
    std::fs::write(home.join("bad.txt"), "http://127.0.0.1:9/a\nnonsense\n").expect("written");
    for (name, inner) in [
        ("ftp.meta4", "<file name=\"f.bin\"><url>ftp://127.0.0.1/f</url></file>"),
        ("good.meta4", "<file name=\"f.bin\"><url>http://127.0.0.1:9/f</url></file>"),
        ("none.meta4", ""),
    ] {
        let text = format!("<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">{inner}</metalink>");
        std::fs::write(home.join(name), text).expect("written");
    }
    let url = "http://127.0.0.1:9/b/k?partNumber=1&uploadId=s3cret&X-Amz-Signature=s3cret";
    let urls = format!("{{\"persxfer_upload\": 1, \"part_size\": 8, \"parts\": [\"{url}\"], \"complete\": \"{url}\"}}");
    std::fs::write(home.join("urls.json"), urls).expect("written");
    std::fs::write(home.join("damaged.xml"), "<client_state>\n<persxfer\n").expect("written");
    std::os::unix::fs::symlink("plain", home.join("link")).expect("made");
    let pipe = Command::new("mkfifo").arg(home.join("pipe")).status().expect("mkfifo runs");
    assert!(pipe.success());
}

/// Everything below a folder with its bytes, but for what is no regular file.
fn all_bytes(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).expect("read").map(|entry| entry.expect("an entry").path());
    let mut found: Vec<_> = entries
        .flat_map(|path| match std::fs::symlink_metadata(&path) {
            Ok(m) if m.is_dir() => all_bytes(&path),
            Ok(m) if m.is_file() => vec![(path.clone(), std::fs::read(path).expect("read"))],
            _ => Vec::new(),
        })
        .collect();
    found.sort();
    found
}

#[test]
fn every_mistake_is_one_line_that_names_the_thing_and_what_to_do() {
    let home = home();
    stumbling_blocks(home.path());
    let before = all_bytes(home.path());
    for (words, status, names, advises) in MISTAKES {
        let folder = home.path().to_str().expect("UTF-8");
        let words: Vec<_> = words.iter().map(|word| word.replace('@', folder)).collect();
        let out = persxfer(home.path(), &words.iter().map(String::as_str).collect::<Vec<_>>());
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(*status), "{words:?}: {said}");
        assert!(
            said.contains(names) && said.contains(advises),
            "{words:?}: {names:?} or {advises:?} is not in: {said}"
        );
        assert_eq!(said.lines().count(), 1, "{words:?}: {said}");
        assert!(!said.contains("os error") && !said.contains("s3cret"), "{words:?}: {said}");
        assert!(out.stdout.is_empty(), "{words:?}: only data goes to standard output");
    }
    let mut after = all_bytes(home.path());
    // The lock of a state file of ours may stay.
    after.retain(|(path, bytes)| !(bytes.len() <= 16 && path.extension().is_some_and(|e| e == "lock")));
    assert_eq!(after, before, "nothing was lost, nothing was left");
}

#[test]
fn what_the_parser_refuses_is_exit_2_with_a_word_on_it() {
    let home = home();
    for (words, says) in [
        (vec!["frobnicate"], "frobnicate"),
        (vec!["download", "--no-such-flag", URL], "--no-such-flag"),
        (vec!["download", "--connections", "-1", URL], "--connections"),
        (vec!["download", "-j", "0", URL], "--max-transfers"),
        (vec!["upload", "x"], "<URL>..."),
        (vec!["upload", "-o", "y", "x", URL], "-o"),
        (vec!["upload", "--delete-partial", "x", URL], "--delete-partial"),
        (vec!["upload", "--max-filesize", "1g", "x", URL], "--max-filesize"),
        (vec!["upload", "--protocol", "gopher", "x", URL], "gopher"),
        (vec!["add", "upload", "--connections", "2", "x", URL], "--connections"),
        (vec!["download", "-q", "-v", URL], "--verbose"),
        (vec!["download", "--progress", "loud", URL], "loud"),
        (vec!["completions", "dos"], "dos"),
    ] {
        let out = persxfer(home.path(), &words);
        assert_eq!(out.status.code(), Some(2), "{words:?}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(says), "{words:?}: {}", text(&out.stderr));
        assert!(out.stdout.is_empty(), "{words:?}: only data goes to standard output");
    }
    assert_eq!(std::fs::read_dir(home.path()).expect("read").count(), 0, "nothing was written");
}

#[test]
fn help_for_the_program_and_every_command() {
    let home = home();
    for words in [
        &["--help"][..],
        &["-h"],
        &["download", "--help"],
        &["upload", "--help"],
        &["add", "upload", "-h"],
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
        (&["man", "upload"], "put\\-range"),
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

/// Data that cannot be written is trouble of this machine, whatever the command.
#[test]
fn a_full_device_under_standard_output_is_told() {
    let home = home();
    for words in [&["state", "list", "--json"][..], &["state", "check"], &["completions", "bash"], &["man"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a device");
        let mut command = Command::new(env!("CARGO_BIN_EXE_persxfer"));
        command.args(words).current_dir(home.path()).env_clear().env("HOME", home.path());
        let child = command.stdin(Stdio::null()).stdout(full).stderr(Stdio::piped()).spawn().expect("the program runs");
        let out = child.wait_with_output().expect("it ends");
        let said = text(&out.stderr);
        assert_eq!((out.status.code(), said.lines().count()), (Some(5), 1), "{words:?}: {said}");
        assert!(said.contains("standard output: No space left on device"), "{words:?}: {said}");
    }
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
