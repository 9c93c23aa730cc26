//! `add` and `run`: entered now, run later, by whom it may be.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod support;

use std::fs;

use rustix::process::Signal;
use support::{End, Reply, Rig, Served, World, digest, eventually, ms, noise, same_file};

const MB: usize = 1 << 20;

fn generation(w: &World) -> u64 {
    let text = w.state_text();
    text.split_once("<generation>").unwrap().1.split_once('<').unwrap().0.parse().unwrap()
}

#[test]
fn what_was_added_is_run_later() {
    let (w, data) = (World::new(), noise(340, 500_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    let out = w.out.to_str().unwrap().to_owned();
    w.px(["add", "download", &rig.url("/f"), "-o", &out]).run().exits(0).says(&["added"]);
    let t = &w.list(&[])[0];
    assert_eq!((&t["status"], &t["sessions"], t["in_use_by"].is_null()), (&"pending".into(), &0.into(), true));
    assert_eq!(rig.count(), 0, "no network");
    w.px(["add", "download", &rig.url("/f"), "-o", &out]).run().exits(0).says(&["there already"]);
    assert_eq!(w.list(&[]).len(), 1);
    w.px(["run"]).run().exits(0).says(&["complete"]);
    w.holds(&data);
    w.px(["add", "download", &rig.url("/f"), "-o", &out]).run().exits(0).says(&["here already"]);
    w.px(["run"]).run().exits(0);
    assert_eq!(rig.count(), 1);
    assert!(w.leftovers().is_empty());
}

#[test]
fn many_are_added_in_one_write_and_all_run() {
    let w = World::new();
    let rig = Rig::start(|a| Served::new(&noise(a.target.len() as u64, 20_000)).reply(a));
    let folder = w.folder("in");
    let list: String =
        (0..200).map(|n| format!("{}\n out=f{n}\n", rig.url(&format!("/{}", "x".repeat(n % 7))))).collect();
    fs::write(w.path("list"), list).unwrap();
    let add = || w.px(["add", "download", "-i"]).arg(w.path("list")).arg("--dir").arg(&folder);
    add().run().exits(0).says(&["200 downloads added"]);
    assert_eq!((generation(&w), w.list(&[]).len(), rig.count()), (1, 200, 0));
    add().run().exits(0).says(&["0 downloads added, 200 known"]);
    assert_eq!(w.list(&[]).len(), 200);
    w.px(["run", "-j", "4", "--max-transfers-per-host", "4"]).run().exits(0);
    for n in 0..200 {
        same_file(&folder.join(format!("f{n}")), &noise((n % 7 + 1) as u64, 20_000));
    }
    let all = w.list(&["--all"]);
    assert!(all.len() == 200 && all.iter().all(|t| t["status"] == "done"));
}

#[test]
fn a_run_obeys_what_was_said_when_it_was_added() {
    let (w, data) = (World::new(), noise(341, 900_000));
    let served = Served::new(&data).modified(support::rig::served::MODIFIED);
    let rig = Rig::start(move |a| match a.n {
        0 => Reply::status(418),
        _ if a.header("x-token") != Some("s3cret") => Reply::status(401),
        _ if a.header("authorization") != Some("Basic bWU6czNjcmV0") => Reply::status(401),
        _ if a.header("user-agent") != Some("mine/1") => Reply::status(403),
        _ if a.header("cookie") != Some("k=v") => Reply::status(403),
        _ => served.reply(a),
    });
    fs::write(&w.out, "mine\n").unwrap();
    fs::write(w.path("jar"), "127.0.0.1\tFALSE\t/\tFALSE\t0\tk\tv\n").unwrap();
    let out = w.out.to_str().unwrap();
    let words =
        ["-H", "X-Token: s3cret", "-u", "me:s3cret", "-A", "mine/1", "-b", "jar", "--overwrite", "--remote-time"];
    let patience = ["--retry-on", "418", "--min-delay", "50ms", "--max-delay", "90ms", "--retry-policy", "ranged"];
    let sum = digest("sha-256", &data);
    let proof = ["--checksum", &sum, "--require-evidence", "digest", "--max-filesize", "1m", "-o", out];
    let ran = w.px(["add", "download", &rig.url("/f")]).args(&words).args(&patience).args(&proof).run();
    ran.exits(0).hides("s3cret");
    for shown in [w.px(["state", "show", "out.bin"]).run(), w.px(["state", "export"]).run(), w.px(["run", "-v"]).run()]
    {
        shown.exits(0).hides("s3cret");
    }
    w.holds(&data);
    let mtime = fs::metadata(&w.out).unwrap().modified().unwrap();
    assert_eq!(mtime.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(), 1_793_613_600, "the server's time");
}

#[test]
fn a_run_finishes_what_a_killed_download_began() {
    let (w, data) = (World::new(), noise(342, 3 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| match a.n {
        _ if a.header("x-token") != Some("t") => Reply::status(401),
        0 => served.reply(a).cut(MB, End::Hang),
        _ => served.reply(a),
    });
    let px = w.download(&rig.url("/f")).args(&["-H", "X-Token: t", "--checksum", &digest("sha-256", &data)]);
    px.start().kill_when(|| rig.has_sent(MB) && w.state.exists());
    w.px(["run"]).run().exits(0).says(&["evidence: digest"]);
    w.holds(&data);
}

#[test]
fn a_run_ends_as_its_transfers_do() {
    let w = World::new();
    let rig = Rig::start(|a| match a.target.as_str() {
        "/gone" => Reply::status(410),
        "/later" => Reply::status(503),
        _ => Served::new(&noise(343, 9_000)).reply(a),
    });
    let add = |name: &str| {
        let url = rig.url(&format!("/{name}"));
        w.px(["add", "download", &url, "--max-delay", "1h", "-o"]).arg(w.path(name)).run().exits(0);
    };
    w.px(["run"]).run().exits(0);
    add("later");
    w.px(["run", "--once"]).run().exits(4).says(&["503"]).says(&["to continue: persxfer run --once --state-file /"]);
    w.px(["run", "--once", "-j", "3", "--limit-rate", "2m", "--sync", "none", "--on-failure", "echo {name}"])
        .run()
        .exits(4)
        .says(&["persxfer run --max-transfers 3 --limit-rate 2m --sync none --once --on-failure 'echo {name}' --state-file /"]);
    w.px(["run", "--max-time", "300ms"]).run().exits(4);
    add("gone");
    add("good");
    w.px(["run", "--once"]).run().exits(3).says(&["410"]);
    let statuses: Vec<_> = w.list(&["--all"]).iter().map(|t| t["status"].as_str().unwrap().to_owned()).collect();
    assert_eq!(statuses, ["pending", "failed", "done"]);
}

#[test]
fn a_service_notices_what_is_added_and_ends_on_sigterm() {
    let (w, data) = (World::new(), noise(344, 400_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    let service = w.px(["run", "--forever"]).start();
    std::thread::sleep(ms(300));
    w.px(["add", "download", &rig.url("/f"), "-o"]).arg(&w.out).run().exits(0);
    eventually("it is done", || w.list(&["--all"])[0]["status"] == "done");
    w.holds(&data);
    // One that failed is tried again when a person says so.
    let rig = Rig::start(|_| Reply::status(410));
    w.px(["add", "download", &rig.url("/g"), "-o"]).arg(w.path("g")).run().exits(0);
    eventually("it has failed", || w.list(&[]).iter().any(|t| t["status"] == "failed"));
    let served = Served::new(&data);
    rig.now(move |a| served.reply(a));
    w.px(["retry", "g"]).run().exits(0);
    eventually("it is done too", || w.list(&[]).is_empty());
    service.signal(Signal::TERM);
    service.end().exits(0);
    same_file(&w.path("g"), &data);
}

#[test]
fn a_service_lets_go_of_what_is_suspended_and_of_what_it_leaves() {
    let (w, data) = (World::new(), noise(345, 4 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).pace(64 << 10, ms(40)));
    w.px(["add", "download", &rig.url("/f"), "-o"]).arg(&w.out).run().exits(0);
    let service = w.px(["run", "--forever"]).start();
    eventually("it runs", || rig.sent() > 300_000);
    w.px(["suspend", "out.bin"]).run().exits(0);
    eventually("it is nobody's", || {
        let t = &w.list(&[])[0];
        t["status"] == "suspended" && t["in_use_by"].is_null()
    });
    w.px(["resume", "out.bin"]).run().exits(0).says(&["resumed"]);
    eventually("it goes on", || !w.list(&[])[0]["in_use_by"].is_null());
    service.signal(Signal::TERM);
    service.end().exits(0);
    let t = &w.list(&[])[0];
    assert!(t["status"] == "pending" && t["in_use_by"].is_null() && t["confirmed"].as_u64().unwrap() > 0, "{t}");
}

#[test]
fn what_is_only_queued_is_taken_over_by_a_download() {
    let (w, data) = (World::new(), noise(346, 400_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    w.px(["add", "download", &rig.url("/f"), "-o"]).arg(&w.out).run().exits(0);
    let id = w.list(&[])[0]["id"].clone();
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    let all = w.list(&["--all"]);
    assert_eq!((all.len(), &all[0]["id"]), (1, &id));
}

#[test]
fn a_file_that_stands_in_the_way_is_told_when_it_is_added() {
    let w = World::new();
    fs::write(&w.out, "mine\n").unwrap();
    let ran = w.px(["add", "download", "http://127.0.0.1:9/f", "-o"]).arg(&w.out).run();
    ran.exits(5).says(&["out.bin"]).says(&["--overwrite"]);
    assert!(!w.state.exists() || w.list(&[]).is_empty());
    w.holds(b"mine\n");
}

#[test]
fn a_watched_list_ends_with_its_reader_although_nothing_changes() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let w = World::new();
    let mut watch = Command::new(env!("CARGO_BIN_EXE_persxfer"))
        .args(["state", "list", "--watch", "--state-file"])
        .arg(&w.state)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(watch.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "no transfers\n");
    drop(reader);
    let watch = std::cell::RefCell::new(watch);
    let status = || watch.borrow_mut().try_wait().unwrap();
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| eventually("it ends", || status().is_some())));
    let _ = watch.borrow_mut().kill();
    assert!(ended.is_ok(), "it lingers");
    assert_eq!(status().and_then(|s| s.code()), Some(0));
}

#[test]
fn a_watched_list_is_printed_again_when_it_has_changed() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(503));
    let watch = w.px(["state", "list", "--watch"]).start();
    eventually("the first table", || watch.stdout_so_far().contains("no transfers"));
    w.px(["add", "download", &rig.url("/f"), "-o"]).arg(&w.out).run().exits(0);
    eventually("the second", || watch.stdout_so_far().contains("out.bin"));
    watch.signal(Signal::INT);
    assert!(!watch.end().succeeded());
}
