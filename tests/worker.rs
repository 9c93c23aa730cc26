//! `persxfer worker`: what is due in a ledger is fetched, and the ledger knows what came of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod support;

use std::fs;

use rustix::process::Signal;
use serde_json::Value;
use support::{End, Px, Reply, Rig, Served, World, digest, eventually, ms, noise, same_file};

fn add(w: &World, line: &Value) {
    let list = w.path("line");
    fs::write(&list, format!("{line}\n")).unwrap();
    let added = w.px(["ledger", "add", "-"]).stdin_from(&list).run();
    added.exits(0);
}

/// The record of this key, as `ledger show` has it.
fn record(w: &World, key: &str) -> Value {
    let shown = w.px(["ledger", "show", key, "--json"]).run();
    serde_json::from_str(shown.exits(0).stdout.lines().next().unwrap()).unwrap()
}

fn state(w: &World, key: &str) -> String {
    record(w, key)["state"].as_str().unwrap().to_owned()
}

fn worker<'w>(w: &'w World, args: &[&str]) -> Px<'w> {
    w.px(["worker", "--first-byte-timeout", "2s", "-d"]).arg(w.folder("files")).args(args)
}

/// Where the file of a URL of a rig goes.
fn place(w: &World, rig: &Rig, name: &str) -> std::path::PathBuf {
    let host = rig.url("").trim_start_matches("http://").replace(':', "_");
    w.folder("files").join(host).join(name)
}

#[test]
fn what_is_due_is_fetched_and_done() {
    let (w, data) = (World::new(), noise(700, 300_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    let (known, plain) = (rig.url("/data/known.bin"), rig.url("/data/plain.bin"));
    add(&w, &serde_json::json!({"urls": [known], "checksum": digest("sha-256", &data)}));
    w.px(["ledger", "add", &plain]).run().exits(0);
    worker(&w, &["--until-idle"]).run().exits(0).says(&["2 done, 0 failed"]);
    for name in ["data/known.bin", "data/plain.bin"] {
        same_file(&place(&w, &rig, name), &data);
    }
    assert_eq!((state(&w, &known), state(&w, &plain)), ("done".into(), "done".into()));
    assert_eq!(record(&w, &plain)["size"], 300_000);
    // Nothing is due, and nothing is asked.
    let asked = rig.count();
    worker(&w, &["--until-idle"]).run().exits(0).says(&["0 done, 0 failed"]);
    assert_eq!(rig.count(), asked);
}

#[test]
fn a_failure_waits_in_the_ledger_by_its_class() {
    let w = World::new();
    let rig = Rig::start(|a| match a.target.as_str() {
        "/missing" => Reply::status(404),
        "/gone" => Reply::status(410),
        "/denied" => Reply::status(403),
        _ => Reply::status(503).header("Retry-After", "900"),
    });
    for (name, class) in [("missing", "missing"), ("gone", "gone"), ("denied", "denied"), ("busy", "throttled")] {
        let url = rig.url(&format!("/{name}"));
        w.px(["ledger", "add", &url]).run().exits(0);
        worker(&w, &["--until-idle"]).run().exits(4).says(&["0 done, 1 failed"]);
        let record = record(&w, &url);
        assert_eq!(record["class"], class, "{record}");
        assert_eq!(record["state"], if class == "denied" { "parked" } else { "waiting" }, "{record}");
        assert_eq!(record["failures"], 1, "{record}");
    }
}

#[test]
fn a_mirror_with_wrong_bytes_is_left_out_and_the_other_one_asked() {
    let (w, data, wrong) = (World::new(), noise(701, 200_000), noise(702, 200_000));
    let (right, liar) = (Served::new(&data), Served::new(&wrong));
    let (honest, lying) = (Rig::start(move |a| right.reply(a)), Rig::start(move |a| liar.reply(a)));
    let line = serde_json::json!({
        "key": "urn:the-file",
        "urls": [lying.url("/f.bin"), honest.url("/f.bin")],
        "checksum": digest("sha-256", &data),
    });
    add(&w, &line);
    worker(&w, &["--until-idle"]).run();
    assert_eq!(state(&w, "urn:the-file"), "done");
    same_file(&place(&w, &lying, "f.bin"), &data);
}

#[test]
fn told_to_stop_it_keeps_what_it_holds_and_gives_its_claims_back() {
    let (w, data) = (World::new(), noise(703, 2_000_000));
    let served = Served::new(&data);
    let slow = served.clone();
    let rig = Rig::start(move |a| slow.reply(a).pace(100_000, ms(50)));
    let url = rig.url("/f.bin");
    w.px(["ledger", "add", &url]).run().exits(0);
    let running = worker(&w, &[]).start().signal_when(Signal::TERM, || rig.has_sent(600_000));
    running.end().exits(0);
    let left = record(&w, &url);
    assert_eq!((&left["state"], &left["failures"]), (&"waiting".into(), &0.into()), "{left}");
    let sent = rig.sent();
    rig.now(move |a| served.reply(a));
    worker(&w, &["--until-idle"]).run().exits(0);
    same_file(&place(&w, &rig, "f.bin"), &data);
    assert!(rig.sent() - sent < 1_900_000, "{} bytes were sent again", rig.sent() - sent);
}

#[test]
fn what_a_killed_worker_held_is_taken_over_at_once() {
    let (w, data) = (World::new(), noise(704, 2_000_000));
    let served = Served::new(&data);
    let slow = served.clone();
    let rig = Rig::start(move |a| slow.reply(a).pace(100_000, ms(50)));
    let url = rig.url("/f.bin");
    w.px(["ledger", "add", &url]).run().exits(0);
    worker(&w, &[]).start().kill_when(|| rig.has_sent(600_000));
    assert_eq!(state(&w, &url), "leased");
    let sent = rig.sent();
    rig.now(move |a| served.reply(a));
    worker(&w, &["--until-idle"]).run().exits(0).says(&["1 records of workers that died here are due again"]);
    same_file(&place(&w, &rig, "f.bin"), &data);
    assert!(rig.sent() - sent < 1_900_000, "{} bytes were sent again", rig.sent() - sent);
}

#[test]
fn c27_what_was_complete_before_the_ledger_knew_is_not_fetched_again() {
    for with_digest in [true, false] {
        let (w, data) = (World::new(), noise(705, 150_000));
        let served = Served::new(&data);
        let rig = Rig::start(move |a| served.reply(a));
        let url = rig.url("/f.bin");
        let sum = digest("sha-256", &data);
        let line = if with_digest {
            serde_json::json!({"urls": [url], "checksum": sum})
        } else {
            serde_json::json!({"urls": [url]})
        };
        add(&w, &line);
        // The transfer of a worker that was killed after the file had got its name, and before it could say so.
        let claimed = w.px(["ledger", "claim", "--as", "worker"]).run();
        let token = serde_json::from_str::<Value>(&claimed.exits(0).stdout).unwrap()["token"].clone();
        fs::create_dir_all(place(&w, &rig, "f.bin").parent().unwrap()).unwrap();
        w.px(["download", &url, "-o"]).arg(place(&w, &rig, "f.bin")).run().exits(0);
        w.px(["ledger", "release", &url, &token.to_string()]).run().exits(0);
        let sent = rig.sent();
        worker(&w, &["--until-idle"]).run().exits(0).says(&["1 done, 0 failed"]);
        assert!(rig.sent() - sent < 10_000, "{} bytes for a file that is here", rig.sent() - sent);
        assert_eq!(state(&w, &url), "done");
        same_file(&place(&w, &rig, "f.bin"), &data);
    }
}

#[test]
fn a_lease_that_is_lost_ends_its_transfer_and_is_no_failure() {
    let (w, data) = (World::new(), noise(706, 3_000_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).pace(50_000, ms(100)));
    let url = rig.url("/f.bin");
    w.px(["ledger", "add", &url]).run().exits(0);
    let running = worker(&w, &["--lease", "3s"]).start();
    eventually("it is on its way", || rig.has_sent(200_000));
    let token = record(&w, &url)["claims"].as_u64().unwrap();
    w.px(["ledger", "release", &url, &token.to_string()]).run().exits(0);
    // Another takes it, before the worker looks again.
    let claimed = w.px(["ledger", "claim", &url, "--as", "another"]).run();
    claimed.exits(0);
    eventually("the loss is told", || running.stderr_so_far().contains("is lost"));
    running.signal(Signal::TERM);
    running.end().exits(0);
    let left = record(&w, &url);
    assert_eq!((&left["state"], &left["failures"]), (&"leased".into(), &0.into()), "{left}");
    assert_eq!(left["claims"], token + 1, "{left}");
}

#[test]
fn two_workers_share_everything_and_nothing_is_fetched_twice() {
    let (w, data) = (World::new(), noise(707, 5_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).then(End::Keep));
    let lines: String =
        (0..60).map(|n| format!("{}\n", serde_json::json!({"urls": [rig.url(&format!("/{n}"))]}))).collect();
    fs::write(w.path("lines"), lines).unwrap();
    w.px(["ledger", "add", "-"]).stdin_from(&w.path("lines")).run().exits(0);
    let args = ["--until-idle", "--max-transfers-per-host", "8"];
    let both = [worker(&w, &args).start(), worker(&w, &args).start()];
    for one in both {
        one.end().exits(0);
    }
    let stats = w.px(["ledger", "stats", "--json"]).run();
    let stats: Value = serde_json::from_str(&stats.exits(0).stdout).unwrap();
    assert_eq!((&stats["done"], &stats["waiting"], &stats["leased"]), (&60.into(), &0.into(), &0.into()), "{stats}");
    for n in 0..60 {
        same_file(&place(&w, &rig, &n.to_string()), &data);
    }
    assert_eq!(rig.count(), 60);
}

#[test]
fn a_record_that_nobody_can_fetch_is_told_and_rests() {
    let w = World::new();
    w.px(["ledger", "add", "magnet:?xt=urn:btih:abc"]).run().exits(0);
    worker(&w, &["--until-idle"]).run().exits(4).says(&["no URL of it is one of http or https"]);
    assert_eq!(record(&w, "magnet:?xt=urn:btih:abc")["class"], "unsupported");
}

#[test]
fn a_download_that_fails_for_good_is_remembered_and_its_success_ends_that() {
    let (w, data) = (World::new(), noise(708, 50_000));
    let rig = Rig::start(|_| Reply::status(404));
    let (url, out) = (rig.url("/f.bin"), w.path("out.bin"));
    let get = |args: &[&str]| {
        w.px(["download", &url, "--ledger", "memory.db"]).args(args).arg("-o").arg(&out).cwd(&w.path("")).run()
    };
    get(&["--mirror", &rig.url("/g.bin")]).exits(3).says(&["remembered in the ledger, as missing"]);
    let shown = w.px(["ledger", "--ledger", "memory.db", "show", &url, "--json"]).cwd(&w.path("")).run();
    let record: Value = serde_json::from_str(shown.exits(0).stdout.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&record["state"], &record["class"], &record["failures"]),
        (&"waiting".into(), &"missing".into(), &1.into())
    );
    assert_eq!(record["mirrors"].as_array().unwrap().len(), 2, "{record}");
    get(&[]).exits(3).says(&["the ledger knows it already"]);
    let served = Served::new(&data);
    rig.now(move |a| served.reply(a));
    get(&[]).exits(0).says(&["done in the ledger as well"]);
    let stats = w.px(["ledger", "--ledger", "memory.db", "stats", "--json"]).cwd(&w.path("")).run();
    let stats: Value = serde_json::from_str(&stats.exits(0).stdout).unwrap();
    assert_eq!((&stats["done"], &stats["waiting"]), (&1.into(), &0.into()), "{stats}");
}

#[test]
fn a_run_remembers_what_fails_for_good_and_a_worker_gets_it_when_it_is_seen() {
    let (w, data) = (World::new(), noise(709, 50_000));
    let rig = Rig::start(|_| Reply::status(404));
    let (url, served) = (rig.url("/f.bin"), Served::new(&data));
    w.px(["add", "download", &url, "-o"]).arg(w.path("out.bin")).run().exits(0);
    let run = w.px(["run", "--ledger"]).arg(w.state.with_file_name("ledger.db")).run();
    run.exits(3).says(&["remembered in the ledger, as missing"]);
    rig.now(move |a| served.reply(a));
    // Not before its time.
    worker(&w, &["--until-idle"]).run().exits(0).says(&["0 done"]);
    let before = record(&w, &url)["due_at"].as_f64().unwrap();
    w.px(["ledger", "observe", &url, "--kind", "listed"]).run().exits(0);
    let mut woken = record(&w, &url);
    let after = woken["due_at"].as_f64().unwrap();
    assert!(after < before - 3_600.0, "due at {after}, {before} before it was seen");
    // The ten minutes that a file that was missing is left alone have passed.
    woken["due_at"] = (after - 3_600.0).into();
    fs::write(w.path("lines"), format!("{woken}\n")).unwrap();
    w.px(["ledger", "forget", &url]).run().exits(0);
    w.px(["ledger", "import"]).stdin_from(&w.path("lines")).run().exits(0);
    worker(&w, &["--until-idle"]).run().exits(0).says(&["1 done"]);
    assert_eq!(state(&w, &url), "done");
    same_file(&place(&w, &rig, "f.bin"), &data);
}

#[test]
fn what_a_gap_holds_back_is_waited_for() {
    let (w, data) = (World::new(), noise(711, 1_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    for n in 0..3 {
        w.px(["ledger", "add", &rig.url(&format!("/{n}"))]).run().exits(0);
    }
    worker(&w, &["--until-idle", "--gap", "1s"]).run().exits(0).says(&["3 done, 0 failed"]);
}
