//! A word to transfers: `retry`, `suspend`, `resume`, `abort`, of what another process runs and of what nobody runs.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod support;

use rustix::process::Signal;
use support::{End, Reply, Rig, Served, World, eventually, ms, noise};

const MB: usize = 1 << 20;

fn status(w: &World) -> String {
    w.list(&["--all"]).first().map(|t| t["status"].as_str().unwrap().to_owned()).unwrap_or_default()
}

/// Every wish was obeyed and taken out.
fn obeyed(w: &World) -> bool {
    !w.state_text().contains("<wish>")
}

/// Stops a process; not while it writes the state file, whose lock it would keep.
fn stop_between_writes(w: &World, run: &support::Running) {
    let lock = std::fs::File::open(w.path("state/client_state.lock")).unwrap();
    eventually("it does not write", || {
        run.signal(Signal::STOP);
        std::thread::sleep(ms(20));
        let free = lock.try_lock().is_ok();
        let _ = lock.unlock();
        if !free {
            run.signal(Signal::CONT);
            std::thread::sleep(ms(20));
        }
        free
    });
}

#[test]
fn a_running_transfer_is_suspended_and_resumed() {
    let (w, data) = (World::new(), noise(320, 3 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n == 0 { served.reply(a).pace(64 << 10, ms(60)) } else { served.reply(a) });
    let run = w.download(&rig.url("/f")).start();
    eventually("it runs", || rig.sent() > 300_000 && w.list(&[]).len() == 1);
    w.px(["suspend", "out.bin"]).run().exits(0).says(&["was told to suspend", &run.pid().to_string()]);
    eventually("it is suspended", || status(&w) == "suspended" && obeyed(&w));
    let how = format!("persxfer resume --state-file {} out.bin", w.state.display());
    eventually("it says how to go on", || run.stderr_so_far().contains(&how));
    let (asked, sent) = (rig.count(), rig.sent());
    std::thread::sleep(ms(300));
    assert_eq!((rig.count(), rig.sent() - sent < 200_000), (asked, true), "it still runs");
    w.download(&rig.url("/f")).run().exits(5).says(&["in use by process"]);
    w.px(["resume", "out.bin"]).run().exits(0);
    run.end().exits(0);
    w.holds(&data);
    assert!(obeyed(&w) && rig.resumed(1, 100_000), "{:?}", rig.froms());
}

#[test]
fn a_waiting_transfer_is_retried_once() {
    let (w, data) = (World::new(), noise(321, 90_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n < 2 { Reply::status(503) } else { served.reply(a) });
    let run = w.download(&rig.url("/f")).delays("1h", "2h").give_up("9h").start();
    eventually("it waits", || rig.count() == 1 && w.list(&[]).first().is_some_and(|t| t["num_retries"] == 1));
    w.px(["retry", "out.bin"]).run().exits(0);
    eventually("it was tried, and waits again", || w.list(&[])[0]["num_retries"] == 2 && obeyed(&w));
    std::thread::sleep(ms(1_300));
    assert_eq!(rig.count(), 2, "one wish is one try");
    w.px(["retry", "--all"]).run().exits(0);
    run.end().exits(0);
    w.holds(&data);
    assert_eq!(rig.count(), 3);
}

#[test]
fn a_running_transfer_is_aborted() {
    let (w, data) = (World::new(), noise(322, 3 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).pace(64 << 10, ms(60)));
    let run = w.download(&rig.url("/f")).start();
    eventually("it runs", || rig.sent() > 300_000 && w.list(&[]).len() == 1);
    w.px(["abort", w.out.to_str().unwrap()]).run().exits(0);
    run.end().exits(3).says(&["aborted"]);
    assert_eq!(w.list(&[])[0]["error_code"], -197);
    assert!(obeyed(&w) && w.part().exists(), "the part stays until it is forgotten");
    w.holds_nothing();
    w.px(["state", "forget", "out.bin"]).run().exits(0);
    assert!(w.leftovers().is_empty());
}

#[test]
fn one_that_waits_in_line_hears_too() {
    let w = World::new();
    let rig = Rig::start(|a| Served::new(&noise(323, 90_000)).reply(a).late(ms(60_000)));
    let folder = w.folder("in");
    let mut px = w.download(&rig.url("/0")).dir(&folder).args(&["-j", "1"]);
    for n in 1..9 {
        px = px.url(&rig.url(&format!("/{n}")));
    }
    let run = px.start();
    eventually("all are entered", || w.list(&[]).len() == 9);
    w.px(["abort", "7", "8"]).run().exits(0);
    let failed = || w.list(&[]).iter().filter(|t| t["error_code"] == -197).count();
    eventually("both are aborted", || failed() == 2 && obeyed(&w));
    run.signal(Signal::INT);
    run.end().exits(130);
    assert_eq!((failed(), w.list(&[]).len()), (2, 9));
}

#[test]
fn what_nobody_runs_changes_at_once() {
    let (w, data) = (World::new(), noise(324, 2 * MB));
    let served = Served::new(&data);
    let cut = served.clone();
    let rig = Rig::start(move |a| if a.n == 0 { cut.reply(a).cut(MB, End::Close) } else { Reply::status(503) });
    w.download(&rig.url("/f")).patient().arg("--once").run().exits(4);
    w.px(["suspend", "out.bin"]).run().exits(0).says(&["suspended"]);
    assert_eq!(status(&w), "suspended");
    w.px(["suspend", "out.bin"]).run().exits(0).says(&["suspended already"]);
    w.px(["run"]).run().exits(4).says(&["suspended"]);
    assert_eq!(rig.count(), 1, "what is suspended is not run");
    w.px(["resume", "--all"]).run().exits(0).says(&["resumed"]);
    assert_eq!(status(&w), "pending");
    w.px(["abort", "out.bin"]).run().exits(0).says(&["aborted"]);
    assert_eq!(w.list(&[])[0]["error_code"], -197);
    assert!(w.part().exists());
    w.px(["abort", "out.bin"]).run().exits(0).says(&["has failed already"]);
    w.px(["retry", "out.bin"]).run().exits(0);
    let t = &w.list(&[])[0];
    assert_eq!((&t["status"], &t["num_retries"]), (&"pending".into(), &0.into()));
    rig.now(move |a| served.reply(a));
    w.px(["run"]).run().exits(0);
    w.holds(&data);
    assert!(rig.resumed(1, 500_000), "the bytes held were not used");
    w.px(["retry", "out.bin"]).run().exits(0).says(&["complete already"]);
    assert_eq!(status(&w), "done");
    w.px(["suspend", "--all"]).run().exits(0).says(&["no transfer to suspend"]);
}

#[test]
fn names_that_are_not_one_transfer_are_wrong_use() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(503));
    for folder in ["a", "b"] {
        let folder = w.folder(folder);
        w.px(["add", "download", &rig.url("/same.bin"), "--dir"]).arg(folder).run().exits(0);
    }
    w.px(["abort", "nothing-of-that-name"]).run().exits(2).says(&["nothing-of-that-name"]);
    w.px(["abort"]).run().exits(2);
    w.px(["abort", "--all", "same.bin"]).run().exits(2);
    let ids: Vec<String> = w.list(&[]).iter().map(|t| t["id"].as_str().unwrap().to_owned()).collect();
    w.px(["abort", "same.bin~2", "nothing"]).run().exits(2);
    assert!(w.list(&[]).iter().all(|t| t["status"] == "pending"), "none was aborted");
    w.px(["suspend", "a/same.bin"]).run().exits(0);
    w.px(["abort", &ids[1]]).run().exits(0);
    let statuses: Vec<String> = w.list(&[]).iter().map(|t| t["status"].as_str().unwrap().to_owned()).collect();
    assert_eq!(statuses, ["suspended", "failed"]);
    assert_eq!(rig.count(), 0);
}

#[test]
fn a_wish_to_one_that_died_is_obeyed_by_the_next() {
    let (w, data) = (World::new(), noise(325, 90_000));
    let served = Served::new(&data);
    let rig = Rig::start(|_| Reply::status(503));
    let run = w.download(&rig.url("/f")).delays("1h", "2h").give_up("9h").start();
    eventually("it waits", || rig.count() == 1 && w.list(&[]).first().is_some_and(|t| t["num_retries"] == 1));
    // It cannot hear: a stopped process lives.
    stop_between_writes(&w, &run);
    w.px(["retry", "out.bin"]).run().exits(0).says(&["was told to retry"]);
    assert!(!obeyed(&w));
    drop(run);
    rig.now(move |a| served.reply(a));
    w.px(["run"]).run().exits(0);
    w.holds(&data);
    assert!(obeyed(&w));
}

#[test]
fn a_wish_to_one_that_writes_all_the_time_is_heard() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(503));
    let run = w.download(&rig.url("/f")).delays("20ms", "40ms").give_up("9h").start();
    eventually("it fails over and over", || w.list(&[]).first().is_some_and(|t| t["num_retries"].as_u64() > Some(3)));
    w.px(["suspend", "out.bin"]).run().exits(0);
    eventually("it is suspended", || status(&w) == "suspended" && obeyed(&w));
    w.px(["abort", "out.bin"]).run().exits(0);
    run.end().exits(3).says(&["aborted"]);
}

#[test]
fn a_run_that_leaves_something_to_others_or_to_a_person_says_so() {
    let (w, data) = (World::new(), noise(901, 3_000_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).pace(20_000, ms(100)));
    w.px(["add", "download", "-o"]).arg(w.path("slow")).arg(rig.url("/slow")).run().exits(0);
    let owner = w.px(["run"]).start().signal_when(Signal::CONT, || rig.has_sent(100_000));
    w.px(["run"]).run().exits(5).says(&["in use by process"]);
    w.px(["suspend", "slow"]).run().exits(0);
    owner.end().exits(4);
    w.px(["run"]).run().exits(4).says(&["suspended"]);
}

#[test]
fn a_finished_file_that_is_gone_is_fetched_again_on_request() {
    let (w, data) = (World::new(), noise(902, 200_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    w.download(&rig.url("/f")).run().exits(0);
    w.px(["retry", "out.bin"]).run().exits(0).says(&["complete already"]);
    std::fs::remove_file(&w.out).unwrap();
    w.px(["retry", "out.bin"]).run().exits(0);
    w.px(["run"]).run().exits(0);
    w.holds(&data);
}

/// A process that cannot hear for now, and was told these.
fn told_while_stopped(w: &World, run: &support::Running, words: &[&str]) {
    stop_between_writes(w, run);
    for word in words {
        w.px([word, "out.bin"]).run().exits(0).says(&["was told to"]);
    }
}

#[test]
fn abort_then_retry_heard_at_once_ends_as_a_new_life_whatever_the_transfer_does() {
    for waits in [true, false] {
        let (w, data) = (World::new(), noise(326, 2 * MB));
        let served = Served::new(&data);
        let rig = Rig::start(move |a| match (a.n, waits) {
            (0, true) => Reply::status(503),
            (0, false) => served.reply(a).pace(64 << 10, ms(60)),
            _ => served.reply(a),
        });
        let run = w.download(&rig.url("/f")).delays("1h", "2h").give_up("9h").start();
        eventually("it waits, or runs", || match waits {
            true => w.list(&[]).first().is_some_and(|t| t["num_retries"] == 1),
            false => rig.sent() > 300_000 && w.list(&[]).len() == 1,
        });
        told_while_stopped(&w, &run, &["abort", "retry"]);
        run.signal(Signal::CONT);
        run.end().exits(0);
        w.holds(&data);
        assert!(obeyed(&w));
        let t = &w.list(&["--all"])[0];
        assert_eq!((&t["num_retries"], &t["sessions"]), (&0.into(), &1.into()), "not a new life, waits: {waits}");
    }
}

#[test]
fn abort_then_retry_left_to_one_that_died_begins_a_new_life_with_the_next() {
    let (w, data) = (World::new(), noise(327, 90_000));
    let served = Served::new(&data);
    let rig = Rig::start(|_| Reply::status(503));
    let run = w.download(&rig.url("/f")).delays("1h", "2h").give_up("9h").start();
    eventually("it waits", || w.list(&[]).first().is_some_and(|t| t["num_retries"] == 1));
    told_while_stopped(&w, &run, &["suspend", "abort", "retry"]);
    drop(run);
    rig.now(move |a| served.reply(a));
    w.px(["run"]).run().exits(0);
    w.holds(&data);
    assert_eq!(w.list(&["--all"])[0]["num_retries"], 0);
}

#[test]
fn a_retry_after_the_abort_of_a_service_is_obeyed() {
    let (w, data) = (World::new(), noise(329, 90_000));
    let served = Served::new(&data);
    let rig = Rig::start(|_| Reply::status(503));
    w.px(["add", "download", "--min-delay", "1h", "--max-delay", "2h", "-o"])
        .arg(&w.out)
        .arg(rig.url("/f"))
        .run()
        .exits(0);
    let run = w.px(["run"]).start();
    eventually("it waits", || w.list(&[]).first().is_some_and(|t| t["num_retries"] == 1));
    rig.now(move |a| served.reply(a));
    told_while_stopped(&w, &run, &["suspend", "resume", "abort", "retry"]);
    run.signal(Signal::CONT);
    run.end().exits(0);
    w.holds(&data);
}

#[test]
fn two_of_one_name_are_told_apart_in_every_line() {
    let w = World::new();
    let rig = Rig::start(|a| match a.target.as_str() {
        "/x/same.bin" => Reply::status(410),
        _ => Served::new(&noise(330, 9_000)).reply(a),
    });
    for folder in ["a", "b"] {
        let target = w.folder(folder).join("same.bin");
        let url = rig.url(if folder == "a" { "/same.bin" } else { "/x/same.bin" });
        w.px(["add", "download", &url, "-o"]).arg(target).run().exits(0);
    }
    w.px(["run"]).run().exits(3).says(&["same.bin: complete"]).says(&["same.bin~2: failed for good"]);
}

#[test]
fn forgetting_leaves_alone_what_a_process_with_another_state_file_is_writing() {
    let (w, data) = (World::new(), noise(331, 3 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| match a.n {
        0 => served.reply(a).cut(MB, End::Close),
        1 => served.reply(a).pace(64 << 10, ms(40)),
        _ => served.reply(a),
    });
    w.download(&rig.url("/f")).patient().arg("--once").run().exits(4);
    w.px(["suspend", "out.bin"]).run().exits(0);
    let mut other = World::new();
    other.out = w.out.clone();
    let run = other.download(&rig.url("/f")).start();
    eventually("the other writes", || rig.has_sent(MB + 300_000));
    w.px(["state", "forget", "out.bin"]).run().exits(5).says(&["in use by process"]);
    run.end().exits(0);
    w.holds(&data);
}

#[test]
fn a_new_folder_is_as_open_as_the_umask_has_it() {
    use std::os::unix::fs::PermissionsExt;
    let w = World::new();
    let rig = Rig::start(|a| Served::new(&noise(332, 9_000)).reply(a));
    let folder = w.path("new/deep");
    w.download(&rig.url("/f")).dir(&folder).umask("027").run().exits(0);
    for made in [folder.parent().unwrap(), &folder] {
        assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o750);
    }
}
