//! `state ...` through the built program: over every sample in `state/`, and over what real downloads left (design 5, 6).

#![allow(clippy::expect_used, reason = "a test says what it expects")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{Asked, End, Reply, Rig, Served, World, files_below, names_in, noise};

const MB: usize = 1 << 20;

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("state")
}

/// A world whose state file is that sample.
fn over(sample: &str) -> World {
    let w = World::new();
    fs::copy(samples().join(sample), &w.state).expect("copied");
    w
}

/// What every sample must show: name, status, retries, next try, size.
type Row = (&'static str, &'static str, u64, Option<f64>, Option<u64>);

const SOUND: [(&str, &[Row]); 5] = [
    (
        "boinc_client.xml",
        &[
            ("basis_1.02_x86_64-pc-linux-gnu", "done", 0, None, Some(1_835_008)),
            ("basis_0042.dat", "pending", 3, Some(1_767_226_211.75), Some(5_242_880)),
            ("run_0042_1", "pending", 0, Some(1_767_225_590.0), Some(196_608)),
            ("R&D_input", "pending", 8, None, Some(1500)),
            ("lost.dat", "failed", 0, None, Some(1000)),
        ],
    ),
    ("fresh.xml", &[]),
    ("future.xml", &[("image.iso", "pending", 3, Some(1_767_226_211.75), Some(2_147_483_648))]),
    (
        "given_up.xml",
        &[("survey.csv", "failed", 91, None, Some(5_242_880)), ("results.tar", "done", 0, None, Some(196_608))],
    ),
    (
        "waiting.xml",
        &[
            ("image.iso", "pending", 3, Some(1_767_226_211.75), Some(2_147_483_648)),
            ("notes.txt", "pending", 0, Some(1_767_229_200.0), None),
        ],
    ),
];

#[test]
fn every_sample_is_listed_with_its_retries_and_times() {
    let mut known: Vec<_> =
        SOUND.iter().map(|(sample, _)| (*sample).to_owned()).chain(["damaged.xml".into()]).collect();
    known.sort();
    assert_eq!(names_in(&samples()), known, "a sample that no test reads");
    for (sample, rows) in SOUND {
        let w = over(sample);
        let before = w.state_text();
        let listed = w.list(&["--all"]);
        let got: Vec<_> = listed
            .iter()
            .map(|t| {
                let word = |key: &str| t[key].as_str().unwrap_or_default().to_owned();
                let retries = t["num_retries"].as_u64().expect("a number");
                (word("name"), word("status"), retries, t["next_request_time"].as_f64(), t["nbytes"].as_u64())
            })
            .collect();
        let owned = |row: &Row| (row.0.to_owned(), row.1.to_owned(), row.2, row.3, row.4);
        assert_eq!(got, rows.iter().map(owned).collect::<Vec<_>>(), "{sample}");
        let table = w.px(["state", "list", "--all"]).run();
        table.exits(0);
        for (name, _, retries, ..) in rows {
            let line = table.stdout.lines().find(|line| line.starts_with(name)).expect(name);
            assert!(line.split_whitespace().any(|cell| cell == retries.to_string()), "{sample}: {line}");
        }
        for (name, ..) in rows {
            w.px(["state", "show", name]).run().exits(0);
        }
        assert_eq!(w.state_text(), before, "{sample}: looking changes nothing");
        assert_eq!(names_in(&w.path("state")), ["client_state.xml"], "{sample}: nor leaves anything beside it");
    }
}

#[test]
fn a_boinc_clients_transfers_show_retries_and_times_and_nothing_is_written_beside_them() {
    let w = over("boinc_client.xml");
    let before = w.state_text();
    let table = w.px(["state", "list"]).run();
    for line in [
        "basis_0042.dat  ready   2.0 MiB   5.0 MiB  3        due 2026-01-01 00:10  m1.alpha.example",
        "run_0042_1      ready   64.0 KiB  192 KiB  0        due 2025-12-31 23:59  to up.alpha.example",
        "R&D_input       ready   0 B       1.5 KiB  8        -                     beta.example",
    ] {
        assert!(table.stdout.contains(line), "{line} is not in\n{table}");
    }
    let entry = &w.list(&[])[0];
    assert_eq!(entry["first_request_time"].as_f64(), Some(1_767_218_400.25));
    assert_eq!((entry["time_so_far"].as_f64(), entry["is_upload"].as_bool()), (Some(41.5), Some(false)));
    assert_eq!((&w.list(&[])[1]["is_upload"], &entry["confirmed"]), (&true.into(), &2_097_152.into()));
    let shown = w.px(["state", "show", "basis_0042.dat"]).run();
    for words in ["3 failed passes", "begun      2025-12-31 22:00:00", "m2.alpha.example", "checksum   md5=0f343b09"] {
        assert!(shown.stdout.contains(words), "{words} is not in\n{shown}");
    }
    let rig = Rig::start(|_| Reply::status(500));
    let to_write = ["is the state file of a BOINC client", "--state-file"];
    w.download(&rig.url("/f")).run().complains_in_one_line(5, to_write[0]).says(&to_write[1..]);
    w.px(["download", "--dry-run", &rig.url("/f")]).run().complains_in_one_line(5, to_write[0]);
    w.px(["state", "forget", "lost.dat"]).run().complains_in_one_line(5, to_write[0]);
    assert_eq!((w.state_text(), rig.count()), (before, 0));
    assert_eq!(names_in(&w.path("state")), ["client_state.xml"], "no lock, no part: nothing beside it");
    assert!(w.leftovers().is_empty(), "no part file was begun");
}

#[test]
fn a_later_versions_file_is_listed_and_not_written() {
    let w = over("future.xml");
    w.edit_state("format", "99");
    let before = w.state_text();
    assert_eq!(w.list(&[])[0]["name"], "image.iso");
    w.px(["download", "http://127.0.0.1:9/f"]).run().complains_in_one_line(5, "later version");
    assert_eq!(w.state_text(), before);
}

#[test]
fn damage_is_shown_with_line_and_column_and_what_to_do() {
    let w = over("damaged.xml");
    let before = w.state_text();
    let check = w.px(["state", "check"]).run();
    check.exits(3);
    assert!(check.stdout.contains("client_state.xml:15:51: expected"), "{check}");
    assert!(check.stdout.contains("restore a backup"), "{check}");
    for words in [&["state", "list"][..], &["state", "show", "image.iso"], &["download", "http://127.0.0.1:9/f"]] {
        let ran = w.px(words.iter().copied()).run();
        ran.complains_in_one_line(5, "line 15, column 51").says(&["nothing was changed"]).says(&["move the file away"]);
        assert_eq!(ran.stderr.matches("client_state.xml").count(), 1, "the file is named once:\n{ran}");
    }
    assert_eq!(w.state_text(), before);
    assert_eq!(names_in(&w.path("state")), ["client_state.xml"], "nothing is left beside it");
    assert!(w.leftovers().is_empty(), "no part file was begun");
}

#[test]
fn damage_that_was_survived_is_a_warning_wherever_the_file_is_read() {
    let w = over("waiting.xml");
    fs::copy(&w.state, w.path("state/client_state_prev.xml")).unwrap();
    fs::write(&w.state, "<client_state>\n<persxfer>\n<form").unwrap();
    let listed = w.px(["state", "list"]).run();
    listed.exits(0).says(&["warning: "]).says(&["line 3, column"]).says(&["client_state.xml.damaged-1"]);
    assert!(listed.stdout.contains("image.iso"), "{listed}");
    assert_eq!(listed.stderr.lines().count(), 1, "{listed}");
}

/// A server that serves the first megabyte, then breaks off, then only says no.
fn half_then_busy(a: &Asked, served: &Served) -> Reply {
    if a.n == 0 { served.reply(a).cut(MB, End::Close) } else { Reply::status(503) }
}

#[test]
fn the_whole_story_of_a_transfer_that_waits() {
    let (w, data) = (World::new(), noise(300, 3 * MB));
    let served = Served::new(&data).etag("\"v1\"");
    let busy = Rig::start(move |a| half_then_busy(a, &served));
    let gone = Rig::start(|_| Reply::status(404));
    let px = w.download(&busy.url("/f?key=s3cret")).mirror(&gone.url("/g")).patient();
    // One connection: whether the mirror joins before the first one breaks off is a matter of microseconds.
    px.args(&["--max-time", "3s", "-x", "1"]).run().exits(4).hides("s3cret");
    let shown = w.px(["state", "show", "out.bin"]).run();
    shown.exits(0).hides("s3cret");
    for words in [
        "state      waiting, next try in ",
        "the server answered 503 Service Unavailable",
        "held       1.0 MiB of 3.0 MiB",
        "ETag \"v1\"",
        "1 failed pass,",
        "/f?key=***: usable, has served bytes",
        "/g: refused (missing): the server answered 404 Not Found",
        "one strong validator",
    ] {
        assert!(shown.stdout.contains(words), "{words} is not in\n{shown}");
    }
    let json = w.px(["state", "show", "--json", "out.bin"]).run();
    let story: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((&story["schema"], &story["part"]["held"]), (&1.into(), &MB.into()));
    assert_eq!(story["evidence"], serde_json::Value::Null, "it is not done");
    assert_eq!(story["history"].as_array().map(Vec::len), Some(3));
}

#[test]
fn what_is_held_is_told_while_a_session_runs_and_after_it_was_killed() {
    let (w, data) = (World::new(), noise(302, 3 * MB));
    let served = Served::new(&data).etag("\"v1\"");
    let rig = Rig::start(move |a| served.reply(a).cut(MB, End::Hang));
    let run = w.download(&rig.url("/f")).patient().start();
    let shown = || w.px(["state", "show", "out.bin"]).run();
    let told = |w: &World| {
        let json = w.px(["state", "show", "--json", "out.bin"]).run();
        let story: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
        (story["confirmed"].clone(), story["confirmed_from"].clone(), story["part"]["held"].clone())
    };
    let right = (MB.into(), "part".into(), MB.into());
    run.kill_when(|| {
        let now = shown();
        let there = now.stdout.contains("held       1.0 MiB of 3.0 MiB, by its part file");
        if there {
            assert!(now.stdout.contains("state      running"), "{now}");
            assert_eq!(told(&w), right);
            assert_eq!(w.list(&[])[0]["confirmed"], MB);
        }
        there
    });
    assert_eq!(told(&w), right);
    assert!(shown().stdout.contains("so far one strong validator"), "{}", shown());
    assert!(w.px(["state", "list"]).run().stdout.contains("  1.0 MiB  3.0 MiB"));
}

#[test]
fn a_failed_transfer_is_reported_in_boincs_words_until_it_is_forgotten() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(404));
    let ran = w.download(&rig.url("/f")).run();
    ran.complains_in_one_line(3, "out.bin: failed for good: ").says(&["(missing): the server answered 404 Not Found"]);
    let report = w.px(["state", "report"]).run();
    report.exits(0);
    for line in [
        "<file_xfer_error>\n",
        "  <file_name>out.bin</file_name>\n",
        "  <error_code>-224 (permanent HTTP error)</error_code>\n",
        "the server answered 404 Not Found</error_message>\n</file_xfer_error>\n",
    ] {
        assert!(report.stdout.contains(line), "{line} is not in\n{report}");
    }
    w.px(["state", "forget", "out.bin"]).run().exits(0);
    let report = w.px(["state", "report"]).run();
    assert_eq!((report.stdout.as_str(), report.status.code()), ("", Some(0)), "{report}");
}

#[test]
fn a_check_finds_short_missing_and_ownerless_part_files() {
    let (w, data) = (World::new(), noise(301, 3 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| half_then_busy(a, &served));
    w.download(&rig.url("/f")).patient().arg("--once").run().exits(4);
    let found = |code: i32, words: &[&str]| {
        let check = w.px(["state", "check"]).run();
        check.exits(code);
        words.iter().for_each(|word| assert!(check.stdout.contains(word), "{word} is not in\n{check}"));
    };
    found(0, &["1 transfer, no damage"]);
    fs::File::options().write(true).open(w.part()).unwrap().set_len(1000).unwrap();
    found(3, &["out.bin.persxfer-part: the part file of", "holds 1000 B of the 1.0 MiB", "1 fault found"]);
    fs::remove_file(w.part()).unwrap();
    found(3, &["is gone, with the 1.0 MiB", "nothing is to be done"]);
    fs::write(w.path("other.iso.persxfer-part"), "left").unwrap();
    found(3, &["other.iso.persxfer-part: no transfer here owns it; delete it", "2 faults found"]);
    w.px(["state", "forget", "out.bin"]).run().exits(0);
    assert!(files_below(&w.path(".")).iter().any(|f| f.ends_with("other.iso.persxfer-part")), "not ours to delete");
}

#[test]
fn a_file_that_is_done_leaves_the_plain_list_and_is_in_the_whole_one() {
    let (w, data) = (World::new(), noise(302, 100_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    w.download(&rig.url("/f")).run().exits(0);
    assert_eq!(w.list(&[]).len(), 0);
    w.px(["state", "list"]).run().complains_in_one_line(0, "--all shows the 1 that");
    let done = &w.list(&["--all"])[0];
    assert_eq!((&done["status"], &done["confirmed"]), (&"done".into(), &100_000.into()));
    assert_eq!(done["evidence"], "validator");
}
