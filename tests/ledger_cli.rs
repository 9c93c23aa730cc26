//! `persxfer ledger` through the program: by hand, and in JSON lines as a crawler drives it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test that cannot be set up has failed"
)]

mod support;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use support::{Reply, Rig, Served, noise};
use tempfile::TempDir;

struct Home(TempDir);

/// What came of a command.
struct Ran {
    status: i32,
    out: String,
    err: String,
}

impl Home {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn ledger(&self) -> PathBuf {
        self.0.path().join("ledger.db")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_persxfer"));
        command.args(["ledger", "--ledger"]).arg(self.ledger()).args(words).env("HOME", self.0.path());
        command.current_dir(self.0.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run_with(&self, words: &[&str], input: &str) -> Ran {
        let mut child = self.command(words).spawn().unwrap();
        // A command that refuses does not read to the end.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { status: status.code().unwrap(), out: text(stdout), err: text(stderr) }
    }

    fn run(&self, words: &[&str]) -> Ran {
        self.run_with(words, "")
    }

    fn ok(&self, words: &[&str]) -> Ran {
        let ran = self.run(words);
        assert_eq!(ran.status, 0, "{words:?}: {}", ran.err);
        ran
    }

    fn ok_with(&self, words: &[&str], input: &str) -> Ran {
        let ran = self.run_with(words, input);
        assert_eq!(ran.status, 0, "{words:?}: {}", ran.err);
        ran
    }

    fn show(&self, key: &str) -> Value {
        serde_json::from_str(&self.ok(&["show", key, "--json"]).out).unwrap()
    }

    fn stats(&self) -> Value {
        serde_json::from_str(&self.ok(&["stats", "--json"]).out).unwrap()
    }
}

impl Ran {
    fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// It ended so, and said that.
    fn fails(&self, status: i32, said: &[&str]) {
        assert_eq!(self.status, status, "{}", self.err);
        assert!(said.iter().all(|said| self.err.contains(said)), "{said:?} is not in {}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
    }
}

#[test]
fn by_hand_from_the_first_word_to_the_last() {
    let home = Home::new();
    let url = "http://example.org/f";
    home.ok(&["add", url, "an-info-hash"]);
    assert!(home.ok(&["add", url]).err.contains("0 entered, 0 known with something new, 1 known"));
    assert_eq!((&home.show(url)["host"], &home.show("an-info-hash")["host"]), (&json!("example.org"), &json!("")));
    let claimed = home.ok(&["claim", url]).lines();
    let token = claimed[0]["token"].to_string();
    assert_eq!((claimed.len(), &claimed[0]["state"]), (1, &json!("leased")));
    home.ok(&["heartbeat", url, &token]);
    home.ok(&["fail", url, &token, "--class", "missing", "--bytes", "12"]);
    let record = home.show(url);
    assert_eq!(
        (&record["class"], &record["failures"], &record["bytes_done"]),
        (&json!("missing"), &json!(1), &json!(12))
    );
    assert!(home.ok(&["show", url]).out.contains("missing"));
    assert!(home.ok(&["list", "--state", "due"]).out.starts_with("an-info-hash: due now"));

    // What is seen brings it on; what was said of an old claim does not.
    assert!(home.ok(&["observe", url, "--kind", "listed"]).err.contains("1 of 1 known files are tried sooner"));
    assert!(home.show(url)["due_at"].as_f64() < record["due_at"].as_f64());
    assert!(home.ok(&["show", url]).out.contains("seen: listed"));
    home.run(&["complete", url, &token]).fails(4, &["is lost", "given back since"]);

    let token = home.ok(&["claim", url, "--as", "me"]).lines()[0]["token"].to_string();
    home.ok(&["complete", url, &token, "--size", "99"]);
    assert_eq!((&home.show(url)["state"], &home.show(url)["size"]), (&json!("done"), &json!(99)));
    let stats = home.stats();
    assert_eq!((&stats["done"], &stats["waiting"], &stats["hosts"]), (&json!(1), &json!(1), &json!(1)));
    assert!(home.ok(&["stats"]).out.contains("1 waiting (1 due)"));

    home.ok(&["forget", url]);
    home.run(&["show", url]).fails(2, &["knows no file by the key"]);
    home.run(&["forget", url]).fails(2, &["0 forgotten"]);
    home.run(&["claim", url]).fails(4, &["unknown, done, or worked on"]);
}

#[test]
fn a_crawler_drives_it_in_json_lines() {
    let home = Home::new();
    let files: String = (0..2_500)
        .map(|n| {
            json!({"key": format!("k{n:04}"), "urls": [format!("http://h{}.example/{n}", n % 40)]}).to_string() + "\n"
        })
        .collect();
    assert!(home.ok_with(&["add", "-"], &files).err.contains("2500 entered"));
    let mut seen = std::collections::BTreeSet::new();
    let (mut fail_next, mut rounds) = (false, 0);
    loop {
        let claimed = home.ok(&["claim", "-n", "1000", "--as", "crawler", "--per-host", "50"]);
        let lines = claimed.lines();
        if lines.is_empty() {
            break;
        }
        rounds += 1;
        assert!(lines.iter().all(|line| seen.insert(line["key"].as_str().unwrap().to_owned())), "one came twice");
        home.ok_with(&["heartbeat", "--lines"], &claimed.out);
        if fail_next {
            let failed: String = lines
                .iter()
                .map(|line| {
                    json!({"key": line["key"], "token": line["token"], "class": "unreachable"}).to_string() + "\n"
                })
                .collect();
            home.ok_with(&["fail", "--lines"], &failed);
        } else {
            home.ok_with(&["complete", "--lines"], &claimed.out);
        }
        fail_next = !fail_next;
    }
    // Hosts that fail three times in a row are left alone: what they have stays for later.
    let stats = home.stats();
    let (done, waiting) = (stats["done"].as_u64().unwrap(), stats["waiting"].as_u64().unwrap());
    assert!(rounds >= 2 && done + waiting == 2_500 && done >= 1_000, "{stats}");
    assert_eq!(stats["leased"], 0);
}

#[test]
fn what_a_dead_crawler_held_is_given_back() {
    let home = Home::new();
    home.ok(&["add", "a", "b", "c"]);
    assert_eq!(home.ok(&["claim", "-n", "2", "--as", "one"]).lines().len(), 2);
    assert_eq!(home.ok(&["claim", "-n", "9", "--as", "two"]).lines().len(), 1);
    assert!(home.ok(&["release", "--of", "one"]).err.contains("2 given back"));
    let again = home.ok(&["claim", "-n", "9", "--as", "one"]).lines();
    assert_eq!(again.iter().map(|line| line["key"].as_str().unwrap()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(again.iter().all(|line| line["failures"] == 0 && line["lost"] == 0 && line["claims"] == 2));
}

#[test]
fn what_is_exported_is_imported_the_same() {
    let (home, other) = (Home::new(), Home::new());
    let lines = "{\"key\":\"a\",\"urls\":[\"http://u:pw@h.example/a?x=1\",\"http://i.example/a\"],\"size\":7}\n\n{\"key\":\"b\",\"class\":\"denied\"}\n";
    home.ok_with(&["add", "-"], lines);
    home.ok(&["claim", "a"]);
    let exported = home.ok(&["export"]).out;
    assert_eq!(exported.lines().count(), 2);
    assert!(other.ok_with(&["import"], &exported).err.contains("2 files entered"));
    assert_eq!(other.ok(&["export"]).out, exported);
    assert!(other.ok_with(&["import"], &exported).err.contains("0 files entered"));
    // A password is kept for the one who fetches, and not shown to people.
    assert!(exported.contains("u:pw@") && !home.ok(&["show", "a"]).out.contains("pw"));
    let copy = home.0.path().join("copy.db");
    home.ok(&["backup", copy.to_str().unwrap()]);
    home.run(&["backup", copy.to_str().unwrap()]).fails(5, &["copy.db"]);
}

#[test]
fn bad_input_is_named_and_nothing_is_lost() {
    let home = Home::new();
    home.ok(&["add", "a"]);
    let before = home.ok(&["export"]).out;
    let long = "k".repeat(10_000);
    let token = "1";
    for (words, status, said) in [
        (&["add", long.as_str()][..], 2, &["has 10000 bytes", "at most 1024"][..]),
        (&["add", "ftp://h/f"], 2, &["ftp"]),
        (&["observe", "a", "--kind", "rumour"], 2, &["rumour", "announce, listed"]),
        (&["fail", "a", token, "--class", "odd"], 2, &["--class", "interrupted, unreachable"]),
        (&["fail", "a", token, "--class", "crash"], 2, &["--class"]),
        (&["fail", "a", token, "--class", "gone", "--retry-after", "soon"], 2, &["--retry-after"]),
        (&["fail", "a", token, "--class", "gone"], 4, &["is lost"]),
        (&["complete", "unknown", token], 4, &["forgotten since"]),
        (&["complete", "a", token, "--checksum", "odd"], 2, &["--checksum"]),
        (&["complete"], 2, &["KEY and TOKEN"]),
        (&["heartbeat", "a"], 2, &["TOKEN"]),
        (&["claim", "--lease", "soon"], 2, &["--lease"]),
        (&["list", "--state", "lost"], 2, &["--state", "waiting, due"]),
        (&["show", ""], 2, &["empty"]),
    ] {
        home.run(words).fails(status, said);
    }
    for (command, input, said) in [
        (&["add", "-"][..], "{\"key\":\"b\"}\n{\"keys\":1}\n", "line 2: unknown field"),
        (&["add", "-"], "{\"urls\":[]}", "line 1: it has neither a key nor a URL"),
        (&["add", "-"], "{\"key\":\"c\",\"class\":\"odd\"}", "line 1: \\\"odd\\\" is no class"),
        (&["observe", "-"], "{\"key\":\"a\",\"kind\":\"listed\"}\nnonsense", "line 2: expected"),
        (&["complete", "--lines"], "{\"key\":\"a\"}", "line 1: missing field `token`"),
        (&["fail", "--lines"], "{\"key\":\"a\",\"token\":1}", "line 1: it does not say how it failed"),
        (&["import"], "{\"key\":\"z\",\"state\":\"lost\",\"due_at\":1,\"first_seen\":1}", "line 1: no record can be"),
        (&["add", "-"], "\u{fffd}{", "line 1"),
    ] {
        let ran = home.run_with(command, input);
        ran.fails(2, &["standard input", &said.replace("\\\"", "\"")]);
    }
    // The line before the bad one was entered, and what stood there stands.
    assert_eq!(home.show("b")["state"], "waiting");
    home.ok(&["forget", "b"]);
    let after: Vec<Value> = home.ok(&["export"]).lines();
    let before: Vec<Value> = before.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&after[0]["key"], &after[0]["first_seen"]), (&before[0]["key"], &before[0]["first_seen"]));
}

#[test]
fn a_file_that_is_none_of_ours_is_told_and_a_time_far_ahead_is_cut() {
    let home = Home::new();
    std::fs::write(home.ledger(), "no database, but a text that is long enough to be looked at as one").unwrap();
    home.run(&["stats"]).fails(5, &["not a ledger of persxfer", "left as it is"]);
    std::fs::remove_file(home.ledger()).unwrap();
    home.ok(&["add", "a"]);
    // A time far in the future, as a clock that was wrong leaves it: cut to the longest wait.
    let line = "{\"key\":\"future\",\"state\":\"waiting\",\"due_at\":99999999999,\"first_seen\":1}";
    home.ok_with(&["import"], line);
    let due = home.show("future")["due_at"].as_f64().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    assert!(due <= now + 38.0 * 86_400.0, "{due}");
}

#[test]
fn the_crawler_of_the_examples_fetches_what_is_there_and_remembers_the_rest() {
    let (home, data) = (Home::new(), noise(1, 90_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.target == "/there" { served.reply(a) } else { Reply::status(404) });
    let (there, gone) = (rig.url("/there"), rig.url("/gone"));
    home.ok(&["add", &there, &gone]);
    let folder = home.0.path().join("files");
    std::fs::create_dir(&folder).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/ledger_crawler.py");
    let mut crawler = Command::new("python3");
    crawler.arg(script).arg(&folder).arg("2").env("PERSXFER", env!("CARGO_BIN_EXE_persxfer"));
    let ran = crawler.env("PERSXFER_LEDGER", home.ledger()).env("HOME", home.0.path()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    assert_eq!(std::fs::read(&files[0]).unwrap(), *data);
    assert_eq!((&home.show(&there)["state"], &home.show(&there)["size"]), (&json!("done"), &json!(90_000)));
    assert_eq!((&home.show(&gone)["state"], &home.show(&gone)["class"]), (&json!("waiting"), &json!("missing")));
}
