//! What becomes of fetched files: validated, merged in the configured order, kept for good and for a while (B9 of the
//! facts; `docs/sync.md` has the table).

#![allow(clippy::expect_used, reason = "a test says what it expects")]

mod support;

use std::fs;

use support::instance::{Instance, Syncing, exit_list, fixture, minutes_ago, module, seconds_of_minutes_ago};

const EXITS: &str = "recent/exit-lists/2016-10-01-12-02-01";
const OUT: &str = "out/ExitLists";

fn relays(set: &Syncing, instances: &[&Instance]) {
    set.configure(&module("RelayDescriptors", instances, ""));
}

/// Three server descriptors, published an hour ago.
fn descriptors() -> String {
    fixture("server-descriptors").replace("2016-10-01 11:22:33", &seconds_of_minutes_ago(60))
}

/// Each with its annotation.
fn one_by_one(text: &str) -> Vec<String> {
    text.split("@type").skip(1).map(|rest| format!("@type{rest}")).collect()
}

/// How many files the next run cannot have, or not yet.
fn not_had(set: &Syncing) -> u64 {
    let source = &set.sources(4)[0];
    ["failed", "left"].iter().filter_map(|key| source[key].as_u64()).sum()
}

#[test]
fn b01_of_two_valid_files_the_first_source_wins() {
    let (one, other, set) = (Instance::start(), Instance::start(), Syncing::new());
    let (first, second) = (exit_list(10, 1), exit_list(10, 2));
    one.put(EXITS, &first);
    other.put(EXITS, &second);
    set.exit_lists_from(&[&one, &other], "");
    let ran = set.px(&["-vv"]).run();
    ran.exits(0).says_all(&["conflict", "the local copy is kept"]);
    let trees = (set.tree(OUT), set.tree("recent"));
    assert_eq!(trees.0["2016-10-01-12-02-01"], first.as_bytes());
    assert_eq!(trees.1["exit-lists/2016-10-01-12-02-01"], first.as_bytes());
    assert_eq!(set.tree("sync").len(), 2, "each source's own folder");
    set.run().exits(0);
    assert_eq!((set.tree(OUT), set.tree("recent")), trees, "the same result");
    // The other way round.
    let set = Syncing::new();
    set.exit_lists_from(&[&other, &one], "");
    assert_eq!(set.sources(0)[1]["conflicts"], 1);
    assert_eq!(set.tree(OUT)["2016-10-01-12-02-01"], second.as_bytes());
}

#[test]
fn b02_the_same_bytes_from_both_are_one_copy() {
    let (one, other, set) = (Instance::start(), Instance::start(), Syncing::new());
    let list = exit_list(10, 1);
    one.put(EXITS, &list);
    other.put(EXITS, &list);
    set.exit_lists_from(&[&one, &other], "");
    let sources = set.sources(0);
    assert_eq!((&sources[0]["copied"], &sources[1]["identical"]), (&1.into(), &1.into()));
    let path = format!("/{EXITS}");
    assert_eq!(one.asked_for(&path) + other.asked_for(&path), 1, "one transfer for both");
    assert_eq!((set.names(OUT).len(), set.names("sync").len()), (1, 2));
}

#[test]
fn b03_the_wrong_kind_is_warned_of_and_not_copied() {
    let (one, set) = (Instance::start(), Syncing::new());
    one.put(EXITS, fixture("torperf"));
    one.put("recent/exit-lists/good", exit_list(10, 1));
    set.exit_lists_from(&[&one], "");
    let ran = set.run();
    let url = one.rig.url("/");
    ran.exits(0).says_all(&["exitlists: a (", &url, EXITS, "torperf 1.1", "it is not kept"]);
    assert_eq!((set.names(OUT), set.names("recent")), (vec!["good".to_owned()], vec!["exit-lists/good".to_owned()]));
    assert!(!set.run().stderr.contains("not kept"), "once for one content");
}

#[test]
fn b04_a_truncated_file_keeps_what_came_before() {
    let (one, set) = (Instance::start(), Syncing::new());
    let text = descriptors();
    let cut = &text[..text.len() - 60];
    one.put("recent/relay-descriptors/server-descriptors/x", cut);
    relays(&set, &[&one]);
    let third = text.len() - one_by_one(&text)[2].len();
    let ran = set.run();
    ran.exits(0).says_all(&[&format!("at byte {third}"), "its end is missing"]);
    let kept = set.tree("out/RelayDescriptors");
    assert_eq!(kept.len(), 2, "{:?}", kept.keys());
    let mut all: Vec<_> = kept.into_values().map(|bytes| String::from_utf8(bytes).expect("text")).collect();
    let mut wanted = one_by_one(&text)[..2].to_vec();
    all.sort();
    wanted.sort();
    assert_eq!(all, wanted);
    assert_eq!(set.tree("recent")["relay-descriptors/server-descriptors/x"], &text.as_bytes()[..third]);
}

#[test]
fn b05_a_truncated_exit_list() {
    let list = exit_list(10, 1);
    let cut = &list[..list.len() - list.lines().last().map_or(0, |line| line.len() + 1)];
    // The index tells the whole file's length.
    let (one, set) = (Instance::start(), Syncing::new());
    let (path, short) = (format!("/{EXITS}"), std::sync::Arc::new(cut.as_bytes().to_vec()));
    one.put(EXITS, &list);
    one.answer(&path, {
        let short = short.clone();
        move |asked| support::Served::new(&short).reply(asked)
    });
    set.exit_lists_from(&[&one], "");
    assert_eq!(not_had(&set), 1);
    assert_eq!((set.names(OUT).len(), set.names("recent").len()), (0, 0), "refused for its length");
    // It tells the wrong length, and the right digest.
    let (one, set) = (Instance::start(), Syncing::new());
    one.put(EXITS, &list);
    one.answer(&path, move |asked| support::Served::new(&short).reply(asked));
    let length = cut.len();
    one.tweak(move |index| {
        let folder = support::instance::node(index, &["recent", "exit-lists"]);
        folder["files"][0]["size"] = length.into();
    });
    set.exit_lists_from(&[&one], "");
    assert_eq!(not_had(&set), 1);
    assert_eq!(set.names(OUT).len(), 0, "refused for its digest");
    // It tells neither.
    let (one, set) = (Instance::start(), Syncing::new());
    one.put(EXITS, cut);
    one.tell_little();
    set.exit_lists_from(&[&one], "");
    let ran = set.px(&["--json"]).run();
    ran.exits(0).says_all(&["nothing vouches for it"]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("a report");
    let source = &report["modules"][0]["sources"][0];
    assert_eq!((&source["copied"], &source["unverified"]), (&1.into(), &1.into()));
}

#[test]
fn b20_a_stub_protects_nothing() {
    let (one, set) = (Instance::start(), Syncing::new());
    let list = exit_list(10, 1);
    one.put(EXITS, &list);
    let place = set.world.folder(OUT).join("2016-10-01-12-02-01");
    fs::write(&place, "@type tordnsel 1.0\n").expect("written");
    set.exit_lists_from(&[&one], "");
    let ran = set.run();
    ran.exits(0).says_all(&["no valid copy", "there is nothing behind its annotations"]);
    assert_eq!(fs::read_to_string(place).expect("there"), list);
}

#[test]
fn b21_what_is_old_by_its_content_is_kept_for_good_and_not_recent() {
    let (one, set) = (Instance::start(), Syncing::new());
    one.put_at(EXITS, exit_list(73 * 60, 1), &minutes_ago(0));
    one.put("recent/exit-lists/new", exit_list(71 * 60, 2));
    set.exit_lists_from(&[&one], "");
    for _ in 0..2 {
        set.run().exits(0);
        assert_eq!(set.names(OUT), ["2016-10-01-12-02-01", "new"]);
        assert_eq!(set.names("recent"), ["exit-lists/new"], "nothing is resurrected");
    }
    // It grows too old.
    set.exit_lists_from(&[&one], "ExitListsWindow = 70h");
    set.run().exits(0);
    assert_eq!((set.names(OUT).len(), set.names("recent").len()), (2, 0));
    let index = fs::read_to_string(set.world.path("index/index.json")).expect("an index");
    assert!(!index.contains("exit-lists"), "{index}");
}

#[test]
fn b23_a_missing_annotation_is_added_and_one_that_is_there_is_kept() {
    let (one, set) = (Instance::start(), Syncing::new());
    let list = exit_list(10, 1);
    let bare = list.strip_prefix("@type tordnsel 1.0\n").expect("it has one");
    one.put("recent/exit-lists/bare", bare);
    one.put("recent/exit-lists/other", list.replace("tordnsel 1.0", "tordnsel 1.7"));
    set.exit_lists_from(&[&one], "");
    set.run().exits(0);
    let kept = set.tree(OUT);
    assert_eq!(kept["bare"], list.as_bytes());
    assert!(kept["other"].starts_with(b"@type tordnsel 1.7\n"));
    assert_eq!(set.tree("recent")["exit-lists/bare"], list.as_bytes());
    let (one, set) = (Instance::start(), Syncing::new());
    let text = descriptors();
    one.put("recent/relay-descriptors/server-descriptors/x", text.replace("@type server-descriptor 1.0\n", ""));
    relays(&set, &[&one]);
    set.run().exits(0);
    assert_eq!(set.tree("recent")["relay-descriptors/server-descriptors/x"], text.as_bytes());
    assert!(set.tree("out/RelayDescriptors").values().all(|bytes| bytes.starts_with(b"@type server-descriptor 1.0\n")));
}

#[test]
fn b26_a_replace_criterion_of_the_users_takes_effect() {
    let (one, other) = (Instance::start(), Instance::start());
    let (older, newer) = (exit_list(20, 1), exit_list(10, 2));
    one.put(EXITS, &older);
    other.put(EXITS, &newer);
    for (criteria, wins) in [
        ("", &older),
        ("ExitListsReplace = never", &older),
        ("ExitListsReplace = newer-content-date", &newer),
        ("ExitListsReplace = never, Mine\nCriterionMine = grep -q 192.0.2.2 c.env", &older),
        ("ExitListsReplace = Mine\nCriterionMine = sh -c 'grep -q 192.0.2.2 \"$PERSXFER_CANDIDATE\"'", &newer),
        ("ExitListsReplace = Mine\nCriterionMine = sh -c 'grep -q 192.0.2.3 \"$PERSXFER_CANDIDATE\"'", &older),
        ("ExitListsKeep = valid, Mine\nCriterionMine = sh -c '! grep -q 192.0.2.1$ \"$PERSXFER_CANDIDATE\"'", &older),
    ] {
        let set = Syncing::new();
        set.exit_lists_from(&[&one, &other], criteria);
        set.run().exits(0);
        assert_eq!(set.tree(OUT)["2016-10-01-12-02-01"], wins.as_bytes(), "{criteria}");
        assert_eq!(set.tree("recent")["exit-lists/2016-10-01-12-02-01"], wins.as_bytes(), "{criteria}");
    }
    let set = Syncing::new();
    let refuse = "ExitListsKeep = Mine\nCriterionMine = sh -c '! grep -q \"192.0.2.1 \" \"$PERSXFER_CANDIDATE\"'";
    set.exit_lists_from(&[&one, &other], refuse);
    let ran = set.run();
    ran.exits(0).says_all(&["Mine says no (exit status 1)"]);
    assert_eq!(set.tree(OUT)["2016-10-01-12-02-01"], newer.as_bytes());
}

#[test]
fn b28_of_a_file_with_one_known_descriptor_the_new_one_is_added() {
    let (one, other, set) = (Instance::start(), Instance::start(), Syncing::new());
    let each = one_by_one(&descriptors());
    let folder = "relay-descriptors/server-descriptors";
    one.put(&format!("recent/{folder}/x"), each[..2].concat());
    other.put(&format!("recent/{folder}/y"), each[1..].concat());
    // The same name, other descriptors.
    other.put(&format!("recent/{folder}/x"), [&each[0], &each[2]].map(String::as_str).concat());
    relays(&set, &[&one, &other]);
    let sources = set.sources(0);
    assert_eq!(
        (&sources[0]["copied"], &sources[1]["copied"], &sources[1]["identical"]),
        (&2.into(), &1.into(), &3.into())
    );
    assert_eq!(set.names("out/RelayDescriptors").len(), 3);
    let recent = set.tree("recent");
    assert_eq!(recent[&format!("{folder}/x")], each[..2].concat().as_bytes());
    let others: Vec<_> = recent.iter().filter(|(path, _)| !path.ends_with("/x")).collect();
    assert_eq!(others.len(), 1, "{:?}", recent.keys());
    assert!(others[0].0.starts_with(&format!("{folder}/x-")) && *others[0].1 == each[2].as_bytes());
    set.run().exits(0);
    assert_eq!(set.tree("recent"), recent);
}

#[test]
fn a_file_where_no_kind_belongs_is_warned_of_once() {
    let (one, set) = (Instance::start(), Syncing::new());
    one.put("recent/relay-descriptors/novelties/x", "anything\n");
    relays(&set, &[&one]);
    set.run().exits(0).says_all(&["novelties/x", "nobody knows what belongs in its folder"]);
    assert!(!set.run().stderr.contains("nobody knows") && set.names("out").is_empty());
}

#[test]
fn our_own_index_is_one_that_we_can_read() {
    let (one, set) = (Instance::start(), Syncing::new());
    one.put("recent/exit-lists/x", exit_list(10, 1));
    one.put("recent/exit-lists/sub/y", exit_list(10, 2));
    set.exit_lists_from(&[&one], "InstanceBaseUrl = https://me.example/");
    set.run().exits(0);
    let again = Instance::start();
    for variant in ["", ".gz", ".bz2", ".xz"] {
        let bytes =
            std::sync::Arc::new(fs::read(set.world.path(&format!("index/index.json{variant}"))).expect("there"));
        let path = format!("/index/index.json{variant}");
        again.answer(&path, move |asked| support::Served::new(&bytes).reply(asked));
        let next = Syncing::new();
        for (path, bytes) in set.tree("recent") {
            again.put(&format!("recent/{path}"), bytes);
        }
        next.configure(&module("ExitLists", &[&again], "").replace("/\n", &format!("{path}\n")));
        next.run().exits(0).says_all(&["its index is that of https://me.example"]);
        assert_eq!(next.tree("recent"), set.tree("recent"), "{variant}");
    }
}
