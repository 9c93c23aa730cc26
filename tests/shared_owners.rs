//! Whose transfer it is: several processes on one state file, the same transfer twice, and processes that are killed
//! (design section 5).
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod support;

use std::sync::Arc;

use rustix::process::Signal;
use support::{End, Reply, Rig, Served, World, eventually, ms, noise, same_file};

const MB: usize = 1 << 20;

/// A rig whose first answer is cut and hangs; later ones are whole.
fn hangs_first(data: &Arc<Vec<u8>>) -> Rig {
    let served = Served::new(data);
    Rig::start(move |a| if a.n == 0 { served.reply(a).cut(MB, End::Hang) } else { served.reply(a) })
}

/// The process that works on the only transfer.
fn in_use_by(w: &World) -> Option<String> {
    w.list(&[]).first().and_then(|t| t["in_use_by"].as_str().map(str::to_owned))
}

#[test]
fn two_terminals_both_finish() {
    let (w, one, two) = (World::new(), noise(300, 2 * MB), noise(301, 2 * MB));
    let rig = |data| {
        let served = Served::new(data);
        Rig::start(move |a| served.reply(a).pace(100_000, ms(20)))
    };
    let (a, b) = (rig(&one), rig(&two));
    let first = w.download(&a.url("/a")).out(Some(w.path("a"))).start();
    let second = w.download(&b.url("/b")).out(Some(w.path("b"))).start();
    first.end().exits(0);
    second.end().exits(0);
    same_file(&w.path("a"), &one);
    same_file(&w.path("b"), &two);
    let all = w.list(&["--all"]);
    assert!(all.len() == 2 && all.iter().all(|t| t["status"] == "done" && t["in_use_by"].is_null()), "{all:?}");
}

#[test]
fn the_same_twice_is_refused_while_it_waits_after_a_failure() {
    let (w, data) = (World::new(), noise(302, 90_000));
    let served = Served::new(&data);
    let rig = Rig::start(|_| Reply::status(503));
    let first = w.download(&rig.url("/f")).delays("1h", "2h").give_up("9h").start();
    eventually("the first waits", || rig.count() > 0 && in_use_by(&w).is_some());
    assert_eq!(in_use_by(&w), Some(first.pid().to_string()));
    rig.now(move |a| served.reply(a));
    let second = w.download(&rig.url("/f")).run();
    second.exits(5).says(&["in use by process"]).says(&[&first.pid().to_string()]);
    assert_eq!(rig.count(), 1, "the second asked nobody");
    drop(first);
    // Its owner was killed: the transfer is free at once.
    w.download(&rig.url("/f")).delays("1h", "2h").arg("--once").run().exits(4).says(&["next try"]);
    w.px(["retry", "out.bin"]).run().exits(0);
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn the_same_twice_is_refused_before_its_first_session() {
    let (w, data) = (World::new(), noise(303, 90_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).late(ms(60_000)));
    let folder = w.folder("in");
    // One slot: the second file waits for it.
    let first = w.download(&rig.url("/a")).url(&rig.url("/b")).dir(&folder).args(&["-j", "1"]).start();
    eventually("both are entered", || w.list(&[]).len() == 2);
    let pid = first.pid().to_string();
    assert!(w.list(&[]).iter().all(|t| t["in_use_by"] == *pid), "{:?}", w.list(&[]));
    let second = w.download(&rig.url("/b")).out(Some(folder.join("b"))).run();
    second.exits(5).says(&["in use by process"]).says(&[&first.pid().to_string()]);
    let third = w.px(["add", "download", &rig.url("/b"), "-o"]).arg(folder.join("b")).run();
    third.exits(5).says(&["in use by process"]);
    w.px(["state", "forget", "b"]).run().exits(5).says(&["in use by process"]);
}

#[test]
fn the_same_twice_is_refused_while_the_server_is_to_name_it() {
    let w = World::new();
    let rig = Rig::start(|a| Served::new(&noise(304, 90_000)).reply(a).late(ms(60_000)));
    let folder = w.folder("in");
    let px = || w.download(&rig.url("/f")).dir(&folder).arg("--remote-header-name");
    let first = px().start();
    eventually("it is entered", || w.list(&[]).len() == 1);
    px().run().exits(5).says(&["in use by process"]).says(&[&first.pid().to_string()]);
    assert_eq!(w.list(&[]).len(), 1);
}

#[test]
fn many_who_begin_the_same_at_once_leave_one_record_and_one_file() {
    let (w, data) = (World::new(), noise(305, 2 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).pace(200_000, ms(20)));
    let runs: Vec<_> = (0..6).map(|_| w.download(&rig.url("/f")).start()).collect();
    let ran: Vec<_> = runs.into_iter().map(support::Running::end).collect();
    ran.iter().for_each(|r| _ = r.exits_one_of(&[0, 5]));
    assert!(ran.iter().any(support::Ran::succeeded));
    w.holds(&data);
    assert_eq!(w.list(&["--all"]).len(), 1, "{}", w.state_text());
}

#[test]
fn another_takes_over_at_once_what_a_killed_process_left() {
    let (w, data) = (World::new(), noise(306, 2 * MB));
    let rig = hangs_first(&data);
    w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(MB) && in_use_by(&w).is_some());
    assert_eq!(in_use_by(&w), None);
    w.px(["run"]).run().exits(0);
    w.holds(&data);
    assert!(rig.resumed(1, 500_000), "the bytes held were not used");
    let left = support::names_in(w.state.parent().unwrap());
    assert!(left.iter().all(|name| !name.contains(".run-")), "{left:?}");
}

#[test]
fn a_service_takes_over_what_a_killed_process_ran() {
    let (w, data) = (World::new(), noise(307, 2 * MB));
    let rig = hangs_first(&data);
    let first = w.download(&rig.url("/f")).start();
    eventually("bytes for the first", || rig.has_sent(MB) && in_use_by(&w).is_some());
    let service = w.px(["run", "--forever"]).start();
    std::thread::sleep(ms(1_200));
    assert_eq!(rig.count(), 1, "what a living process runs is left alone");
    drop(first);
    eventually("the service finishes it", || w.list(&["--all"])[0]["status"] == "done");
    w.holds(&data);
    service.signal(Signal::TERM);
    service.end().exits(0);
}

#[test]
fn other_urls_reach_the_process_that_runs_it() {
    let (w, data) = (World::new(), noise(308, 90_000));
    let served = Served::new(&data);
    let (old, new) = (Rig::start(|_| Reply::status(503)), Rig::start(move |a| served.reply(a)));
    let first = w.download(&old.url("/f")).delays("1h", "2h").give_up("9h").start();
    eventually("the first waits", || old.count() > 0 && in_use_by(&w).is_some());
    w.download(&new.url("/f")).run().exits(5).says(&["in use by process"]);
    first.end().exits(0);
    w.holds(&data);
    assert!(!w.state_text().contains("<wish>"), "{}", w.state_text());
}

#[test]
fn a_record_that_is_taken_out_by_hand_is_run_no_more() {
    let (w, data) = (World::new(), noise(309, 4 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).pace(64 << 10, ms(50)));
    let run = w.download(&rig.url("/f")).start();
    eventually("it runs", || rig.sent() > 300_000 && in_use_by(&w).is_some());
    let text = w.state_text();
    let (before, rest) = text.split_once("<file_info>").unwrap();
    let (_, after) = rest.split_once("</file_info>").unwrap();
    std::fs::write(&w.state, format!("{before}{after}")).unwrap();
    run.end().exits(4).says(&["taken out"]);
    assert!(w.list(&["--all"]).is_empty(), "{}", w.state_text());
    w.holds_nothing();
}

#[test]
fn nothing_is_forgotten_while_a_process_of_another_state_file_has_the_part() {
    let (mut w, data) = (World::new(), noise(255, 3 * MB));
    let served = Served::new(&data);
    let gone = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(MB, End::Close) } else { Reply::status(410) });
    w.download(&gone.url("/f")).run().exits(3);
    let ours = w.state.clone();
    w.state = w.path("state/other.xml");
    let rig = hangs_first(&data);
    let busy = w.download(&rig.url("/f")).start();
    eventually("the other one has the part", || rig.has_sent(MB));
    w.state = ours;
    let before = w.state_text();
    w.px(["state", "forget", "out.bin"]).run().exits(5).says(&["in use by process"]);
    assert_eq!(w.state_text(), before, "the record is gone, and its part file is not");
    assert!(w.part().exists());
    drop(busy);
    w.px(["state", "forget", "out.bin"]).run().exits(0);
    assert_eq!((w.list(&["--all"]).len(), w.leftovers().len()), (0, 0));
}
