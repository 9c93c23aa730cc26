//! What is known of hosts outlives a process, and a host that is back is open to all who wait for it (design section 4).
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod support;

use rustix::process::Signal;
use support::{Px, Reply, Rig, Served, World, eventually, ms, noise};

/// So many files of one host, so many at a time, with delays that nobody waits for.
fn files<'w>(w: &'w World, rig: &Rig, n: usize, at_once: &str) -> Px<'w> {
    let px = (0..n).fold(w.px(["download"]), |px, n| px.url(&rig.url(&format!("/{n}"))));
    px.args(&["-j", at_once, "--min-delay", "1h", "--max-delay", "2h", "--dir"]).arg(w.folder("in"))
}

#[test]
fn a_host_that_fails_is_left_alone_by_the_next_process_too() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(503));
    files(&w, &rig, 4, "1").arg("--once").run().exits(4);
    assert_eq!(rig.count(), 3, "three failures of the host, and it backs off as a whole");
    assert!(w.state_text().contains("<closed_until>"), "{}", w.state_text());
    let waits = w.list(&[]).into_iter().find(|t| t["name"] == "3").unwrap()["waits"].clone();
    assert_eq!(
        (&waits["reason"], &waits["failures"], &waits["last_failure"]),
        (&"host-backoff".into(), &3.into(), &"503".into())
    );
    assert!(waits["until"].is_number() && waits["host"] == rig.url("").trim_start_matches("http://"), "{waits}");
    let said = w.px(["state", "list"]).run().stdout;
    assert!(said.contains("backs off until ") && said.contains("(3 failures, last 503)"), "{said}");
    let said = w.px(["state", "show", "3"]).run().stdout;
    assert!(said.contains("waiting: ") && said.contains("(3 failures, last 503)"), "{said}");
    w.px(["download", &rig.url("/other"), "--once", "-o"]).arg(w.path("other")).run().exits(4);
    assert_eq!(rig.count(), 3, "it was asked although it backs off");
    // A person's word is a probe.
    w.px(["retry", "0"]).run().exits(0);
    let served = Served::new(&noise(360, 9_000));
    rig.now(move |a| served.reply(a));
    w.px(["run", "--once"]).run().exits(4);
    assert!(rig.count() >= 4 && !w.state_text().contains("<closed_until>"), "{}", w.state_text());
}

#[test]
fn the_first_good_answer_of_a_probe_opens_the_host_to_all() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(503));
    let run = files(&w, &rig, 5, "2").start();
    // Three failures close the host; a fourth session may have been under way by then.
    let failed = || w.list(&[]).iter().filter(|t| t["num_retries"] == 1).count();
    eventually("the host backs off", || {
        rig.count() >= 3 && failed() == rig.count() && w.state_text().contains("<closed_until>")
    });
    let tried = rig.count();
    let served = Served::new(&noise(361, 400_000));
    // The probe takes long; nobody waits for its end.
    rig.now(move |a| if a.target == "/0" { served.reply(a).pace(4_000, ms(50)) } else { served.reply(a) });
    w.px(["retry", "0"]).run().exits(0);
    let done = || {
        let all = w.list(&["--all"]);
        let names = all.iter().filter(|t| t["status"] == "done").map(|t| t["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    // Those that were not tried waited for the host alone; the others wait for their own time.
    eventually("those that waited for the host are done", || done().len() == 5 - tried);
    assert_eq!((done(), rig.count()), ((tried..5).map(|n| n.to_string()).collect(), 6));
    w.px(["retry", "1", "2", "3"]).run().exits(0);
    eventually("all are done", || done().len() == 5);
    run.signal(Signal::TERM);
    run.end().exits(0);
}
