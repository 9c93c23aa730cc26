//! The client-state file across runs: what is stored when, in BOINC's form, and what the next run makes of it
//! (design 4, 5).

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{SystemTime, UNIX_EPOCH};

use support::{End, Reply, Rig, Served, World, ms, noise};

const MB: usize = 1 << 20;

/// The text of the first `<element>`.
fn text_of<'a>(xml: &'a str, element: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{element}>"))?;
    Some(rest.split_once(&format!("</{element}>"))?.0)
}

#[expect(clippy::disallowed_methods, reason = "compared with a time that the program stored just now")]
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

/// A server that always brings a quarter of the file and breaks off, and a `--once` that ended with it.
fn once_cut(w: &World) -> Rig {
    let served = Served::new(&noise(140, 2 * MB));
    let rig = Rig::start(move |a| served.reply(a).cut(MB / 2, End::Close));
    w.download(&rig.url("/f")).patient().arg("--once").run().exits(4);
    rig
}

#[test]
fn once_leaves_the_record_that_boinc_would() {
    let w = World::new();
    let _rig = once_cut(&w);
    let xml = w.state_text();
    assert_eq!(xml.lines().next(), Some("<client_state>"), "a real client reads the first line");
    assert!(xml.trim_end().ends_with("</client_state>") && !xml.contains("<?xml"));
    let file = text_of(&xml, "file_info").expect("a <file_info>");
    assert_eq!(text_of(file, "nbytes"), Some("2097152.000000"));
    assert_eq!(text_of(file, "status"), Some("0"));
    let xfer = text_of(file, "persistent_file_xfer").expect("a <persistent_file_xfer> in it");
    assert_eq!((text_of(xfer, "num_retries"), text_of(xfer, "is_upload")), (Some("1"), Some("0")));
    let mut times = Vec::new();
    for element in ["first_request_time", "next_request_time", "time_so_far", "last_bytes_xferred"] {
        let text = text_of(xfer, element).expect("an element of BOINC's");
        assert_eq!(text.split_once('.').map(|(_, f)| f.len()), Some(6), "{element} has six decimals: {text}");
        times.push(text.parse::<f64>().unwrap());
    }
    assert!((times[0] - now()).abs() < 80.0, "the first session began just now: {}", times[0]);
    let delay = times[1] - times[0];
    assert!((59.0..=4.0 * 3600.0 + 80.0).contains(&delay), "the first delay is {delay} s");
    assert!(times[3] > 0.0, "bytes held: {}", times[3]);
}

#[test]
fn the_wait_holds_across_runs() {
    let w = World::new();
    let rig = once_cut(&w);
    w.download(&rig.url("/f")).patient().arg("--once").run().exits(4);
    assert_eq!(rig.count(), 1, "asked before its time");
    assert_eq!(w.list(&[])[0]["num_retries"], 1);
}

#[test]
fn without_once_the_run_waits_with_its_reason_and_ends() {
    let (w, data) = (World::new(), noise(141, MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n == 0 { Reply::status(503) } else { served.reply(a) });
    w.download(&rig.url("/f")).delays("2s", "2s").arg("--once").run().exits(4);
    w.download(&rig.url("/f")).delays("2s", "2s").run().exits(0).says(&["503"]);
    w.holds(&data);
    let asked = rig.asked();
    assert!(asked[1].at - asked[0].at >= ms(1000), "the stored time was not waited for");
}

#[test]
fn a_stored_time_in_the_far_future_is_clamped() {
    let (w, data) = (World::new(), noise(142, MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n == 0 { Reply::status(503) } else { served.reply(a) });
    w.download(&rig.url("/f")).arg("--once").run().exits(4);
    w.edit_state("next_request_time", "4102444800.000000");
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn time_in_which_the_program_did_not_run_is_not_held_against_a_transfer() {
    let (w, data) = (World::new(), noise(143, MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n < 3 { Reply::status(503) } else { served.reply(a) });
    w.download(&rig.url("/f")).arg("--once").run().exits(4);
    w.edit_state("first_request_time", "1767218400.000000");
    w.edit_state("next_request_time", "1767218500.000000");
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn list_has_boincs_names_and_only_what_is_unfinished() {
    let (w, data) = (World::new(), noise(140, 2 * MB));
    assert!(w.list(&[]).is_empty(), "not empty without a state file");
    let rig = once_cut(&w);
    let listed = w.list(&[]);
    assert_eq!(listed.len(), 1);
    let t = &listed[0];
    assert_eq!(t["name"], "out.bin");
    assert_eq!((&t["nbytes"], &t["num_retries"]), (&(2 * MB).into(), &1.into()));
    assert_eq!((&t["is_upload"], &t["urls"][0]), (&false.into(), &rig.url("/f").into()));
    assert!(t["first_request_time"].as_f64() < t["next_request_time"].as_f64());
    let served = Served::new(&data);
    rig.now(move |a| served.reply(a));
    w.download(&rig.url("/f")).run().exits(0);
    assert!(w.list(&[]).is_empty());
    let all = w.list(&["--all"]);
    assert_eq!((all.len(), &all[0]["nbytes"]), (1, &(2 * MB).into()));
}

#[test]
fn show_tells_why_it_waits_and_what_the_mirrors_said() {
    let w = World::new();
    let rigs = [Rig::start(|_| Reply::status(404)), Rig::start(|_| Reply::status(503))];
    w.download(&rigs[0].url("/f")).mirror(&rigs[1].url("/f")).patient().arg("--once").run().exits(4);
    let shown = w.px(["state", "show", "out.bin"]).run();
    shown.exits(0);
    for text in ["404", "503", &rigs[0].url("/f"), &rigs[1].url("/f"), "out.bin"] {
        assert!(shown.stdout.contains(text), "{text} is missing in {shown}");
    }
    let path = w.out.to_str().unwrap().to_owned();
    w.px(["state", "show", &path]).run().exits(0);
    w.px(["state", "show", "nothing-of-that-name"]).run().exits(2).says(&["nothing-of-that-name"]);
}

#[test]
fn two_transfers_of_one_name_are_told_apart() {
    let w = World::new();
    let (a, b) = (w.folder("a"), w.folder("b"));
    let rig = Rig::start(|_| Reply::status(503));
    w.download(&rig.url("/same.bin")).dir(&a).patient().arg("--once").run().exits(4);
    w.download(&rig.url("/same.bin")).dir(&b).patient().arg("--once").run().exits(4);
    let mut names: Vec<_> = w.list(&[]).iter().map(|t| t["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["same.bin", "same.bin~2"]);
}

#[test]
fn forget_acknowledges_a_failure_and_deletes_its_part() {
    let (w, data) = (World::new(), noise(144, 2 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(MB, End::Close) } else { Reply::status(410) });
    w.download(&rig.url("/f")).run().exits(3);
    assert!(!w.leftovers().is_empty());
    let status = text_of(&w.state_text(), "status").unwrap().to_owned();
    assert!(status.starts_with('-'), "BOINC's error number, not {status}");
    assert!(text_of(&w.state_text(), "error_msg").unwrap().contains("410"));
    w.px(["state", "forget", "out.bin"]).run().exits(0);
    assert!(w.leftovers().is_empty(), "{:?}", w.leftovers());
    assert!(w.list(&["--all"]).is_empty());
}

#[test]
fn what_we_do_not_know_is_kept_where_it_stands() {
    let w = World::new();
    let rig = once_cut(&w);
    let odd = "<from_the_future kind=\"x\">\n  <deep>1 &amp; 2</deep><empty/>\n</from_the_future>";
    let xml = w.state_text().replacen("<nbytes>", &format!("{odd}\n    <nbytes>"), 1);
    let xml = xml.replacen("</client_state>", &format!("{odd}\n</client_state>"), 1);
    fs::write(&w.state, xml).unwrap();
    let served = Served::new(&noise(140, 2 * MB));
    rig.now(move |a| served.reply(a));
    w.download(&rig.url("/f")).run().exits(0);
    assert_eq!(w.state_text().matches(odd).count(), 2, "{}", w.state_text());
}

#[test]
fn it_is_for_the_users_eyes_only_and_leaves_its_predecessor() {
    let w = World::new();
    let rig = once_cut(&w);
    assert_eq!(fs::metadata(&w.state).unwrap().permissions().mode() & 0o777, 0o600);
    let served = Served::new(&noise(140, 2 * MB));
    rig.now(move |a| served.reply(a));
    w.download(&rig.url("/f")).run().exits(0);
    assert!(w.state.with_file_name("client_state_prev.xml").exists());
}

#[test]
fn the_same_transfer_twice_at_once_is_refused_with_the_holder() {
    let (w, data) = (World::new(), noise(145, 2 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(MB, End::Hang) } else { served.reply(a) });
    let first = w.download(&rig.url("/f")).start();
    support::eventually("bytes for the first", || rig.has_sent(MB));
    let second = w.download(&rig.url("/f")).run();
    second.exits(5).says(&["in use"]).says(&[&first.pid().to_string()]);
    drop(first);
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn two_state_files_do_not_weave_one_file() {
    let (w, data) = (World::new(), noise(146, 2 * MB));
    let mut other = World::new();
    other.out.clone_from(&w.out);
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(MB, End::Hang) } else { served.reply(a) });
    let first = w.download(&rig.url("/f")).start();
    support::eventually("bytes for the first", || rig.has_sent(MB));
    other.download(&rig.url("/f")).run().exits(5).says(&["in use"]);
    drop(first);
}

#[test]
fn many_at_once_share_one_state_file() {
    let w = World::new();
    let rig = Rig::start(|a| {
        let served = Served::new(&noise(a.target.len() as u64, 400_000));
        served.reply(a).pace(40_000, ms(10)).cut(if a.n % 3 == 0 { 150_000 } else { usize::MAX }, End::Close)
    });
    let names: Vec<String> = (1..=8).map(|n| "n".repeat(n)).collect();
    let runs: Vec<_> =
        names.iter().map(|n| w.download(&rig.url(&format!("/{n}"))).out(Some(w.path(n))).start()).collect();
    for run in runs {
        run.end().exits(0);
    }
    for name in &names {
        support::same_file(&w.path(name), &noise(name.len() as u64 + 1, 400_000));
    }
    assert_eq!(w.list(&["--all"]).len(), 8);
}
