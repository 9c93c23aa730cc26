//! What is fetched, from where, and what goes: indexes that lie, break or shrink (B9 of the facts; `docs/sync.md` has the
//! table).

#![allow(clippy::expect_used, reason = "a test says what it expects")]

mod support;

use std::fs;
use std::sync::Arc;

use serde_json::json;
use support::instance::{Instance, Syncing, exit_list, minutes_ago, module, node, push};
use support::{End, Reply, Served, ms, noise};

const EXITS: &str = "recent/exit-lists/2016-10-01-12-02-01";
const OUT: &str = "out/ExitLists";
const INDEX: &str = "/index/index.json";

/// Exit lists `recent/exit-lists/NNN`, as many as asked for.
fn lists(instance: &Instance, n: u8) {
    for k in 0..n {
        instance.put(&format!("recent/exit-lists/{k:03}"), exit_list(10, k));
    }
}

fn held(set: &Syncing) -> usize {
    set.names("sync").len()
}

#[test]
fn b06_newer_here_with_the_same_digest_is_not_fetched() {
    let (one, set) = (Instance::start(), Syncing::new());
    let list = exit_list(10, 1);
    one.put_at(EXITS, &list, "2016-10-01 12:05");
    set.exit_lists_from(&[&one], "");
    set.run().exits(0);
    let (path, place) = (format!("/{EXITS}"), set.names("sync")[0].clone());
    let file = fs::File::options().write(true).open(set.world.path("sync").join(place)).expect("there");
    file.set_modified(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(4_000_000_000)).expect("set");
    set.run().exits(0);
    one.put_at(EXITS, &list, "2016-10-01 11:05");
    set.run().exits(0);
    assert_eq!(one.asked_for(&path), 1);
}

#[test]
fn b07_the_same_minute_and_size_with_another_digest_is_fetched() {
    let (one, set) = (Instance::start(), Syncing::new());
    one.put(EXITS, exit_list(10, 1));
    set.exit_lists_from(&[&one], "");
    set.run().exits(0);
    let other = exit_list(10, 2);
    one.put(EXITS, &other);
    assert_eq!(set.sources(0)[0]["fetched"], 1);
    let place = set.names("sync")[0].clone();
    assert_eq!(set.tree("sync")[&place], other.as_bytes());
    assert_eq!(set.sources(0)[0]["needed"], 0, "and not again");
}

#[test]
fn b08_bad_names_are_refused_and_nothing_is_outside() {
    let (one, set) = (Instance::start(), Syncing::new());
    one.put(EXITS, exit_list(10, 1));
    let names = ["../../x", "/etc/x", "a/../b", "a\\b", ".hidden", "x.tmp", "nul\0"];
    one.tweak(move |index| {
        for name in names {
            push(&mut node(index, &["recent", "exit-lists"])["files"], json!({ "path": name, "size": 3 }));
            push(&mut node(index, &["recent"])["directories"], json!({ "path": name, "files": [{ "path": "f" }] }));
        }
    });
    set.exit_lists_from(&[&one], "");
    let before: Vec<_> = support::names_in(&set.world.path("."));
    let ran = set.px(&["--json"]).run();
    ran.exits(0).says_all(&["holds a separator", "begins with a dot", "temporary file", "control"]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("a report");
    assert_eq!(report["modules"][0]["sources"][0]["refused"], 14);
    assert_eq!(set.names(OUT), ["2016-10-01-12-02-01"], "the rest is processed");
    let mut after = support::names_in(&set.world.path("."));
    after.retain(|name| !["sync", "out", "recent", "index"].contains(&name.as_str()));
    assert_eq!(after, before);
    assert_eq!(one.rig.asked().len(), 2, "nothing else was asked for");
}

#[test]
fn b09_a_source_without_an_index_fails_and_the_others_go_on() {
    let deep = Arc::new(format!("{{\"x\":{}", "[".repeat(10_000)).into_bytes());
    let html = Arc::new(b"<html>not here</html>".to_vec());
    for bad in ["404", "500", "no JSON", "2 GB", "deep"] {
        let (one, other, set) = (Instance::start(), Instance::start(), Syncing::new());
        lists(&one, 3);
        other.put("recent/exit-lists/other", exit_list(10, 200));
        set.exit_lists_from(&[&one, &other], "");
        set.run().exits(0);
        let (held_before, kept) = (set.tree("sync"), set.tree(OUT));
        other.put("recent/exit-lists/more", exit_list(10, 201));
        let (deep, html) = (deep.clone(), html.clone());
        one.answer(INDEX, move |asked| match bad {
            "404" => Reply::status(404),
            "500" => Reply::status(500),
            "no JSON" => Served::new(&html).reply(asked),
            "2 GB" => Reply::status(200).header("Content-Length", "2147483648").body(&html, 0..10).then(End::Close),
            _ => Served::new(&deep).reply(asked),
        });
        let sources = set.sources(4);
        assert_eq!(
            (&sources[0]["state"], &sources[1]["state"]),
            (&"failed".into(), &"read".into()),
            "{bad}: {sources:?}"
        );
        assert_eq!((&sources[0]["deleted"], &sources[1]["copied"]), (&0.into(), &1.into()), "{bad}");
        let now = set.tree("sync");
        assert!(held_before.iter().all(|(path, bytes)| now.get(path) == Some(bytes)), "{bad}: nothing is deleted");
        assert_eq!(set.tree(OUT).len(), kept.len() + 1, "{bad}");
    }
}

#[test]
fn b10_of_a_folder_that_the_index_lacks_nothing_is_deleted() {
    let (one, set) = (Instance::start(), Syncing::new());
    lists(&one, 3);
    one.put("recent/exit-lists/sub/x", exit_list(10, 100));
    set.exit_lists_from(&[&one], "");
    set.run().exits(0);
    one.remove("recent/exit-lists/sub/x");
    one.remove("recent/exit-lists/001");
    let sources = set.sources(0);
    assert_eq!((&sources[0]["deleted"], held(&set)), (&1.into(), 3), "the index knows no folder sub");
    one.tweak(|index| index["directories"] = json!([]));
    set.run().exits(0);
    assert_eq!(held(&set), 3);
}

#[test]
fn b11_an_index_that_is_suddenly_empty_is_obeyed_when_it_says_so_twice() {
    let (one, set) = (Instance::start(), Syncing::new());
    lists(&one, 30);
    set.exit_lists_from(&[&one], "");
    set.run().exits(0);
    let kept = set.tree(OUT);
    (0..30).for_each(|k| one.remove(&format!("recent/exit-lists/{k:03}")));
    one.tweak(|index| node(index, &["recent", "exit-lists"])["files"] = json!([]));
    set.run().exits(0).says_all(&["30 of 30 files would go at once", "nothing is deleted"]);
    assert_eq!(held(&set), 30);
    set.run().exits(0);
    assert_eq!((held(&set), set.tree(OUT) == kept), (0, true), "what is kept for good stays");
}

#[test]
fn b16_another_origin_in_the_index_is_told_and_not_followed() {
    let (one, other, set) = (Instance::start(), Instance::start(), Syncing::new());
    one.put(EXITS, exit_list(10, 1));
    let claimed = other.rig.url("");
    one.tweak(move |index| index["path"] = json!(claimed));
    set.exit_lists_from(&[&one], "");
    set.run().exits(0).says_all(&["its index is that of", &other.rig.url(""), "all the same"]);
    assert_eq!((set.names(OUT).len(), other.rig.count()), (1, 0));
}

#[test]
fn b17_a_file_that_vanishes_is_skipped_and_tried_again() {
    let (one, set) = (Instance::start(), Syncing::new());
    lists(&one, 3);
    one.answer("/recent/exit-lists/001", |_| Reply::status(404));
    set.exit_lists_from(&[&one], "");
    let ran = set.px(&["--json"]).run();
    ran.exits(0).says_all(&["001 went away before it was fetched"]);
    assert!(ran.stderr.lines().count() <= 2, "no storm:\n{ran}");
    assert_eq!((set.names(OUT).len(), set.world.list(&[]).len()), (2, 0));
    one.answer_as_usual("/recent/exit-lists/001");
    assert_eq!(set.sources(0)[0]["fetched"], 1);
    assert_eq!(set.names(OUT).len(), 3);
}

#[test]
fn b18_a_file_that_changes_under_way_is_never_spliced() {
    let (one, set) = (Instance::start(), Syncing::new());
    let (old, new) = (noise(5, 600_000), noise(6, 600_000));
    let served = |data: &Arc<Vec<u8>>, etag: &str| Served::new(data).etag(etag);
    let (first, second) = (served(&old, "\"one\""), served(&new, "\"two\""));
    one.put("recent/any/f", new.as_slice());
    one.tell_little();
    let cut = std::sync::atomic::AtomicBool::new(false);
    one.answer("/recent/any/f", move |asked| match cut.swap(true, std::sync::atomic::Ordering::SeqCst) {
        false => first.reply(asked).cut(300_000, End::Close),
        true => second.reply(asked),
    });
    set.configure(&module("Any", &[&one], "AnyFolders = recent/any"));
    let ran = set.run();
    ran.exits_one_of(&[0, 4]);
    if !ran.succeeded() {
        // One session a run, and none before its time.
        std::thread::sleep(ms(300));
        set.run().exits(0);
    }
    assert!(set.tree("out/Any")["f"] == *new, "all of the new one");
}

#[test]
fn b24_what_only_begins_alike_and_other_modules_files_stay() {
    let (one, set) = (Instance::start(), Syncing::new());
    lists(&one, 2);
    one.put("recent/exit-lists-old/x", exit_list(10, 100));
    one.put("recent/torperf/y.tpf", support::instance::fixture("torperf"));
    let both = format!(
        "{}{}{}",
        module("ExitLists", &[&one], ""),
        module("TorperfFiles", &[&one], ""),
        module("Old", &[&one], "OldFolders = recent/exit-lists-old")
    );
    set.configure(&both);
    set.run().exits(0);
    assert_eq!(held(&set), 4);
    // Only exit lists are left in the index, and fewer of them.
    one.remove("recent/exit-lists/001");
    one.tweak(|index| {
        node(index, &["recent", "exit-lists-old"])["files"] = json!([]);
        node(index, &["recent", "torperf"])["files"] = json!([]);
    });
    set.px(&["--module", "exitlists"]).run().exits(0);
    let names = set.names("sync").join(" ");
    assert_eq!(held(&set), 3, "{names}");
    assert!(names.contains("exit-lists-old/x") && names.contains("torperf/y.tpf") && !names.contains("001"), "{names}");
}

#[test]
fn b25_a_sources_wrong_clock_is_warned_of_and_deletes_nothing() {
    for (created, told) in [(minutes_ago(-120), "made in the future"), (minutes_ago(8 * 24 * 60), "made long ago")] {
        let (one, set) = (Instance::start(), Syncing::new());
        lists(&one, 3);
        set.exit_lists_from(&[&one], "");
        set.run().exits(0);
        one.remove("recent/exit-lists/001");
        one.put("recent/exit-lists/new", exit_list(10, 100));
        one.created(&created);
        set.run().exits(0).says_all(&[told, "nothing is deleted"]);
        assert_eq!((held(&set), set.names(OUT).len()), (4, 4), "what is new is fetched");
    }
}

#[test]
fn a_warm_run_asks_a_source_once() {
    let (one, other, set) = (Instance::start(), Instance::start(), Syncing::new());
    lists(&one, 20);
    lists(&other, 20);
    one.created("2999-01-01 00:00");
    other.created("2999-01-01 00:00");
    set.exit_lists_from(&[&one, &other], "");
    set.run().exits(0);
    let before = (one.rig.count(), other.rig.count());
    set.run().exits(0);
    assert_eq!((one.rig.count() - before.0, other.rig.count() - before.1), (1, 1));
    assert!(one.rig.asked().last().is_some_and(|asked| asked.header("if-none-match").is_some()), "conditionally");
}

#[test]
fn a_dry_run_changes_nothing_but_tells() {
    let (one, set) = (Instance::start(), Syncing::new());
    lists(&one, 3);
    set.exit_lists_from(&[&one], "");
    let ran = set.px(&["--dry-run"]).run();
    ran.exits(0);
    assert!(ran.stdout.contains("TO FETCH"), "{ran}");
    assert_eq!((set.names("sync").len(), set.names("out").len(), one.rig.count()), (0, 0, 1));
    set.run().exits(0);
    one.remove("recent/exit-lists/001");
    let report = set.px(&["--dry-run", "--json"]).run();
    let report: serde_json::Value = serde_json::from_str(&report.stdout).expect("a report");
    let source = &report["modules"][0]["sources"][0];
    assert_eq!((&source["deleted"], &source["needed"], held(&set)), (&1.into(), &0.into(), 3));
}

#[test]
fn a_file_that_becomes_a_folder_costs_itself_and_nothing_else() {
    let (one, set) = (Instance::start(), Syncing::new());
    one.put("recent/exit-lists/a", exit_list(10, 1));
    set.exit_lists_from(&[&one], "");
    set.run().exits(0);
    one.remove("recent/exit-lists/a");
    one.put("recent/exit-lists/a/x", exit_list(10, 2));
    one.put("recent/exit-lists/b", exit_list(10, 3));
    set.run().exits(4).says_all(&["recent/exit-lists/a/x: its place is taken"]);
    assert_eq!(set.names(OUT), ["a", "b"]);
    // By now the file that is gone there is gone here as well; the tree that lasts keeps it.
    set.run().exits(0).says_all(&["recent/exit-lists/a/x: at byte 0: its place is taken"]);
    assert_eq!((set.names(OUT).len(), held(&set)), (2, 2));
    assert_eq!(set.names("recent"), ["exit-lists/a", "exit-lists/b"]);
}
