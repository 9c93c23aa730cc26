//! The manners of the command line: wrong use is one line that names the thing, standard output carries data only, and
//! what is asked for in JSON is JSON (design 6).

mod support;

use std::fs;

use support::{End, Reply, Rig, Served, World, noise};

#[test]
fn wrong_use_is_one_status_and_names_the_thing() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(200));
    let url = rig.url("/f");
    let table: [(&[&str], &str); 18] = [
        (&["download"], "URL"),
        (&["download", "not a url"], "not a url"),
        (&["download", "ftp://127.0.0.1/f"], "ftp"),
        (&["download", "http://"], "http://"),
        (&["download", &url, "--checksum", "sha-256=zz"], "zz"),
        (&["download", &url, "--checksum", "sha-256=00"], "sha-256"),
        (&["download", &url, "--checksum", "sha-3=00"], "sha-3"),
        (&["download", &url, "--checksum", "0123456789abcdef"], "0123456789abcdef"),
        (&["download", &url, "--give-up", "banana"], "banana"),
        (&["download", &url, "--give-up=-5s"], "-5s"),
        (&["download", &url, "--min-delay", "5 parsecs"], "5 parsecs"),
        (&["download", &url, "--min-delay", "2h", "--max-delay", "1h"], "delay"),
        (&["download", &url, "--limit-rate", "fast"], "fast"),
        (&["download", &url, "--retry-policy", "hope"], "hope"),
        (&["download", &url, "--retry-policy", "tor:base=x"], "tor"),
        (&["download", &url, "--no-such-flag"], "--no-such-flag"),
        (&["download", &url, &url, "-o", "one"], "-o"),
        (&["frobnicate"], "frobnicate"),
    ];
    for (arguments, thing) in table {
        let ran = w.px(arguments.iter().copied()).run();
        assert_eq!(ran.status.code(), Some(2), "{arguments:?}: {ran}");
        assert!(ran.stderr.contains(thing), "{arguments:?} does not name {thing}: {ran}");
        assert!(ran.stdout.is_empty(), "{arguments:?}: {ran}");
    }
    assert_eq!(rig.count(), 0, "a request was sent");
    assert!(!w.state.exists(), "a state file was made");
}

#[test]
fn files_that_a_flag_names_and_that_are_not_there_are_named() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(200));
    for flag in ["--cacert", "--checksums", "--cookies"] {
        let ran = w.download(&rig.url("/f")).args(&[flag, "/nowhere/at-all"]).run();
        ran.exits_one_of(&[2, 5]).says(&["/nowhere/at-all"]);
        assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
    }
    let junk = w.path("junk.pem");
    fs::write(&junk, "this is no certificate\n").unwrap();
    w.download(&rig.url("/f")).arg("--cacert").arg(&junk).run().exits_one_of(&[2, 5]).says(&["junk.pem"]);
    assert_eq!(rig.count(), 0, "a request was sent");
}

#[test]
fn quiet_never_silences_an_error() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(404));
    w.download(&rig.url("/f")).arg("-q").run().exits(3).says(&["404"]);
}

#[test]
fn a_failure_is_told_once_with_url_and_file() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(404));
    let ran = w.download(&rig.url("/some/file.bin")).arg("-q").run();
    ran.exits(3).says(&[&rig.url("/some/file.bin")]);
    assert_eq!(ran.stderr.matches("404").count(), 1, "{ran}");
    assert!(ran.stdout.is_empty());
}

#[test]
fn off_a_terminal_there_are_plain_lines_without_escapes() {
    let (w, data) = (World::new(), noise(190, 2_000_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n < 2 { served.reply(a).cut(600_000, End::Close) } else { served.reply(a) });
    let ran = w.download(&rig.url("/f")).run();
    ran.exits(0);
    assert!(!ran.stderr.contains(['\u{1b}', '\r']), "{ran}");
    assert!(ran.stdout.is_empty(), "{ran}");
}

#[test]
fn progress_in_json_is_a_line_an_event_on_standard_output() {
    let (w, data) = (World::new(), noise(191, 2_000_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| match a.n {
        0 => served.reply(a).cut(600_000, End::Close),
        1 => Reply::status(503),
        _ => served.reply(a),
    });
    let ran = w.download(&rig.url("/f")).args(&["--progress", "json"]).run();
    ran.exits(0);
    let events: Vec<serde_json::Value> =
        ran.stdout.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{l}: {e}"))).collect();
    assert!(events.len() > 3, "{ran}");
    assert!(events.iter().all(|e| e["v"] == 1 && e["event"].is_string()), "{ran}");
    let kinds: Vec<_> = events.iter().map(|e| e["event"].as_str().unwrap_or_default()).collect();
    assert!(kinds.contains(&"failed") && kinds.contains(&"waiting"), "{kinds:?}");
    let ended = events.iter().find(|e| e["event"] == "ended").expect("how it ended");
    assert_eq!((&ended["held"], &ended["evidence"]), (&2_000_000.into(), &"validator".into()));
}

#[test]
fn help_version_completions_and_man_go_to_standard_output() {
    let w = World::new();
    for (arguments, text) in [
        (&["--version"][..], "persxfer"),
        (&["--help"], "download"),
        (&["download", "--help"], "--give-up"),
        (&["completions", "bash"], "persxfer"),
        (&["completions", "zsh"], "persxfer"),
        (&["completions", "fish"], "persxfer"),
        (&["man"], ".TH"),
    ] {
        let ran =
            std::process::Command::new(env!("CARGO_BIN_EXE_persxfer")).args(arguments).env_clear().output().unwrap();
        let out = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && out.contains(text), "{arguments:?}: {out}");
        assert!(ran.stderr.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    w.px(["completions", "tcsh"]).run().exits(2);
}

#[test]
fn a_reader_that_goes_away_is_no_error_of_ours() {
    let w = World::new();
    let script = format!(
        "\"$0\" man --state-file {state} | head -c 1 >/dev/null; exit ${{PIPESTATUS[0]}}",
        state = w.state.display()
    );
    let ran =
        std::process::Command::new("bash").args(["-c", &script, env!("CARGO_BIN_EXE_persxfer")]).output().unwrap();
    assert!(ran.status.success(), "{:?}", ran.status);
    assert!(!String::from_utf8_lossy(&ran.stderr).contains("panicked"));
}

#[test]
fn global_options_may_stand_behind_the_command() {
    let (w, data) = (World::new(), noise(192, 30_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    w.px(["-q", "download"]).arg("--progress").arg("none").arg("-o").arg(&w.out).arg(rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn what_other_clients_need_is_accepted_and_does_nothing() {
    let (w, data) = (World::new(), noise(193, 30_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    w.download(&rig.url("/f")).args(&["-c", "-L"]).run().exits(0);
    w.holds(&data);
}

#[test]
fn headers_and_user_agent_are_sent_as_given() {
    let (w, data) = (World::new(), noise(194, 30_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    let px = w.download(&rig.url("/f")).args(&["-H", "X-One: 1", "-H", "Accept: text/odd", "-A", "agent/7"]);
    px.args(&["-u", "user:pass"]).run().exits(0);
    let asked = &rig.asked()[0];
    assert_eq!(asked.header("x-one"), Some("1"));
    assert_eq!(asked.header("accept"), Some("text/odd"));
    assert_eq!(asked.header("user-agent"), Some("agent/7"));
    assert_eq!(asked.header("authorization"), Some("Basic dXNlcjpwYXNz"));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a limit on the rate is a least time")]
fn a_rate_limit_is_kept() {
    let (w, data) = (World::new(), noise(195, 1 << 20));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    let from = std::time::Instant::now();
    w.download(&rig.url("/f")).args(&["--limit-rate", "512k"]).run().exits(0);
    w.holds(&data);
    // Two seconds' worth of bytes, less what a small burst at the start may hold.
    assert!(from.elapsed() > support::ms(1000), "a mebibyte at 512 KiB/s took {:?}", from.elapsed());
}
