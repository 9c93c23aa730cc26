//! Preferences at work: hours, rates, quotas and the network mode, through the built program.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "a test measures how long a download takes")]

mod support;

use std::fs;
use std::time::Instant;

use rustix::process::Signal;
use support::{Rig, Served, World, eventually, ms, noise};

const MB: usize = 1 << 20;

/// Preferences in the world's folder, and their path.
fn config(w: &World, text: &str) -> String {
    let path = w.path("config.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn what_makes_no_sense_is_named_before_anything_is_touched() {
    let w = World::new();
    let path = config(&w, "[network]\n\nmax_bytes_sec = 5\n");
    let ran = w.download("http://127.0.0.1:9/f").args(&["--config", &path]).run();
    ran.complains_in_one_line(2, "config.toml, line 3: \"max_bytes_sec\" is no key");
    assert!(!w.state.exists());
    w.download("http://127.0.0.1:9/f")
        .args(&["--config", "missing.toml"])
        .run()
        .complains_in_one_line(2, "missing.toml");
    w.download("http://127.0.0.1:9/f").env("PERSXFER_CONFIG", &path).run().complains_in_one_line(2, "line 3");
}

#[test]
fn the_file_is_found_where_configuration_belongs() {
    let w = World::new();
    let folder = w.folder("home/.config/persxfer");
    fs::write(folder.join("config.toml"), "network = 1\n").unwrap();
    w.download("http://127.0.0.1:9/f").run().complains_in_one_line(2, "line 1: network: it should be a table");
}

#[test]
fn a_run_that_may_not_transfer_waits_and_goes_on_when_it_may() {
    let (w, data) = (World::new(), noise(610, 300_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    let out = w.out.to_str().unwrap().to_owned();
    w.px(["add", "download", &rig.url("/f"), "-o", &out]).run().exits(0);
    let path = config(&w, "[network]\nmode = 'never'\n");
    let run = w.px(["run", "--config", &path]).start();
    eventually("it is taken up", || !w.list(&[])[0]["in_use_by"].is_null());
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(rig.count(), 0, "nothing is asked");
    // A mistake changes nothing.
    config(&w, "[network]\nmode = 'sometimes'\n");
    run.signal(Signal::HUP);
    eventually("the mistake is told", || run.stderr_so_far().contains("the preferences stay as they were"));
    assert_eq!(rig.count(), 0);
    config(&w, "[network]\nmode = 'auto'\n");
    run.signal(Signal::HUP);
    run.end().exits(0).says(&["the preferences were read again"]);
    w.holds(&data);
    assert_eq!(w.list(&["--all"])[0]["num_retries"], 0);
}

#[test]
fn what_runs_is_stopped_when_the_network_is_shut_and_nothing_counts() {
    let (w, data) = (World::new(), noise(611, 2 * MB));
    let served = Served::new(&data).etag("\"v\"");
    let rig = Rig::start(move |a| served.reply(a));
    let out = w.out.to_str().unwrap().to_owned();
    w.px(["add", "download", &rig.url("/f"), "-o", &out]).run().exits(0);
    let path = config(&w, "[network]\nmax_bytes_sec_down = '200k'\n");
    let run = w.px(["run", "--config", &path, "--progress", "json"]).start();
    eventually("bytes come", || w.part().metadata().is_ok_and(|m| m.len() > 0) && rig.count() == 1);
    config(&w, "[network]\nmode = 'never'\n");
    run.signal(Signal::HUP);
    eventually("it says why it waits", || run.stdout_so_far().contains("suspended by user"));
    let asked = rig.count();
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    assert_eq!(rig.count(), asked, "it rests");
    config(&w, "");
    run.signal(Signal::HUP);
    run.end().exits(0);
    w.holds(&data);
    let t = &w.list(&["--all"])[0];
    assert_eq!((&t["num_retries"], &t["status"]), (&0.into(), &"done".into()));
}

#[test]
fn a_rate_holds() {
    let (w, data) = (World::new(), noise(612, 300_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    for text in ["[network]\nmax_bytes_sec_down = 150000\n", "[network]\nwindows = '00:00,off:150000'\n"] {
        let path = config(&w, text);
        let start = Instant::now();
        w.download(&rig.url("/f")).args(&["--config", &path]).run().exits(0);
        // Two seconds, less the burst.
        assert!(start.elapsed().as_millis() >= 1_600, "{text}: {:?}", start.elapsed());
        w.holds(&data);
        fs::remove_file(&w.out).unwrap();
        w.px(["state", "forget", "out.bin"]).run().exits(0);
    }
}

#[test]
fn a_quota_ends_what_runs_and_is_remembered() {
    let (w, data) = (World::new(), noise(613, 3 * MB));
    let served = Served::new(&data).etag("\"v\"");
    let rig = Rig::start(move |a| served.reply(a));
    let quota = "max_bytes_sec_down = '4m'\ndaily_xfer_limit_mb_down = 1\ndaily_xfer_period_days = 2\n";
    let path = config(&w, &format!("[network]\n{quota}"));
    let run = w.download(&rig.url("/f")).args(&["--config", &path, "--progress", "json"]).start();
    eventually("it is used up", || run.stdout_so_far().contains("quota: all 1.0 MiB used, more"));
    run.signal(Signal::TERM);
    run.end().exits(4);
    let state = w.state_text();
    let down: usize = state.split_once("<down>").unwrap().1.split_once('<').unwrap().0.parse().unwrap();
    assert!((MB..5 * MB / 2).contains(&down), "{down} bytes were counted");
    let asked = rig.count();
    // Another process remembers, and one that does not wait says so.
    let ran = w.download(&rig.url("/f")).args(&["--config", &path, "--once"]).run();
    ran.exits(4).says(&["quota: all 1.0 MiB used"]);
    assert_eq!(rig.count(), asked);
    // A person's word goes before a quota.
    let path = config(&w, &format!("[network]\nmode = 'always'\n{quota}"));
    w.download(&rig.url("/f")).args(&["--config", &path]).run().exits(0);
    w.holds(&data);
}

#[test]
fn hours_that_never_open_are_told() {
    let w = World::new();
    let rig = Rig::start(|_| support::Reply::status(200));
    let path = config(&w, "[network]\nnet_start_hour = 24\nnet_end_hour = 0\n");
    let ran = w.download(&rig.url("/f")).args(&["--config", &path, "--once"]).run();
    ran.exits(4).says(&["outside network hours"]);
    assert_eq!(rig.count(), 0);
}

#[test]
fn what_is_preferred_of_a_host_goes_to_it() {
    let (w, data) = (World::new(), noise(614, 50_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| match (a.header("x-site"), a.header("authorization")) {
        (Some("here"), Some("Basic bWU6czNjcmV0")) => served.reply(a),
        _ => support::Reply::status(401),
    });
    let marker = w.path("marker");
    let hosts = "[host.\"127.0.0.1\"]\nheaders = ['X-Site: here']\ncredentials = { env = 'LOGIN' }\n\
                 [host.\"*.example\"]\nheaders = ['X-Site: there']\n";
    let path = config(&w, &format!("[hooks]\non_complete = ['touch', '{}']\n{hosts}", marker.display()));
    let fetch = || w.download(&rig.url("/f")).args(&["--config", &path]);
    fetch().run().exits(5).says(&["LOGIN is not set"]);
    assert_eq!(rig.count(), 0);
    fetch().env("LOGIN", "me:s3cret").run().exits(0).hides("s3cret");
    w.holds(&data);
    assert!(marker.exists(), "the hook was run");
    assert!(!w.state_text().contains("s3cret"), "it stands where it stood");
}

#[test]
fn the_list_says_why_nothing_moves() {
    let w = World::new();
    w.px(["add", "download", "http://127.0.0.1:9/f", "-o", "f"]).run().exits(0);
    let path = config(&w, "[network]\nmode = 'never'\n");
    for command in [&["state", "list"][..], &["state", "show", "f"]] {
        let ran = w.px(command.iter().copied()).args(&["--config", &path]).run();
        ran.exits(0);
        assert!(ran.stdout.contains("suspended by user"), "{ran}");
    }
    let path = config(&w, "[network]\nmode = 'no'\n");
    w.px(["state", "list", "--config", &path]).run().exits(0).says(&["line 2"]);
}

#[test]
fn hooks_are_those_of_the_file_as_it_is_now() {
    let (w, data) = (World::new(), noise(619, 9_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    let hook = |name: &str| format!("[hooks]\non_complete = ['cp', '{{path}}', '{}']\n", w.path(name).display());
    let path = config(&w, &hook("first"));
    let run = w.px(["run", "--forever", "--config", &path]).start();
    w.px(["add", "download", &rig.url("/a"), "-o"]).arg(w.path("a")).run().exits(0);
    eventually("the first hook ran", || w.path("first").exists());
    config(&w, "[hooks]\non_complete = 'not words'\n");
    run.signal(Signal::HUP);
    eventually("the mistake is told", || run.stderr_so_far().contains("the preferences stay as they were"));
    config(&w, &hook("second"));
    run.signal(Signal::HUP);
    eventually("they are read", || run.stderr_so_far().contains("the preferences were read again"));
    fs::remove_file(w.path("first")).unwrap();
    w.px(["add", "download", &rig.url("/b"), "-o"]).arg(w.path("b")).run().exits(0);
    eventually("the second hook ran", || w.path("second").exists());
    assert!(!w.path("first").exists(), "and not the first");
    run.signal(Signal::TERM);
    run.end().exits(0);
}

#[test]
fn how_much_of_a_quota_is_left_is_told_and_when_there_is_more() {
    let (w, data) = (World::new(), noise(620, 3 * MB / 2));
    let served = Served::new(&data);
    // The second one comes slowly, so that it is stopped before it is whole.
    let rig = Rig::start(move |a| match a.target.as_str() {
        "/b" => served.reply(a).pace(32 << 10, ms(100)),
        _ => served.reply(a),
    });
    let path = config(&w, "[network]\ndaily_xfer_limit_mb_down = 2\ndaily_xfer_period_days = 1\n");
    let network = || {
        let ran = w.px(["state", "list", "--json", "--config", &path]).run();
        let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        (json["network"].clone(), json["transfers"].clone())
    };
    w.px(["add", "download", &rig.url("/a"), "-o"]).arg(w.path("a")).run().exits(0);
    w.px(["run", "--config", &path]).run().exits(0);
    let (before, _) = network();
    let left = before["download"]["quota"]["left"].as_u64().unwrap();
    assert!(before["download"]["open"] == true && left == (MB / 2) as u64, "{before}");
    assert!(before["upload"]["quota"].is_null(), "{before}");
    w.px(["add", "download", &rig.url("/b"), "-o"]).arg(w.path("b")).run().exits(0);
    let shown = w.px(["state", "show", "b", "--config", &path]).run().stdout;
    assert!(shown.contains("quota: 512 KiB left until midnight"), "{shown}");
    w.px(["run", "--once", "--config", &path]).run().exits(4);
    let (after, transfers) = network();
    assert!(after["download"]["open"] == false && after["download"]["reason"] == "quota", "{after}");
    assert_eq!((&after["download"]["quota"]["left"], &after["download"]["quota"]["of"]), (&0.into(), &(2 * MB).into()));
    assert!(after["download"]["until"].as_f64() == after["download"]["quota"]["more_at"].as_f64(), "{after}");
    let waits = &transfers[0]["waits"];
    assert!(waits["reason"] == "quota" && waits["until"].is_number(), "{transfers}");
}
