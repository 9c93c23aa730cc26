//! `state check`: damage of part files is found, told with its place, and repaired by fetching what is damaged, no more.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]

mod support;

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::sync::Arc;

use rustix::process::Signal;
use serde_json::Value;
use support::{End, Px, Ran, Rig, Served, World, eventually, ms, noise};

const MB: usize = 1 << 20;
const BLOCK: usize = 16 * MB;
/// Two whole blocks and a piece, of which all but the last megabytes come in before the server falls silent.
const SIZE: usize = 44 * MB + 5;
const FIRST: usize = 40 * MB;

/// A server of one file that says nothing beyond [`FIRST`].
fn silent(data: &Arc<Vec<u8>>) -> Rig {
    let served = Served::new(data);
    Rig::start(move |a| {
        let left = FIRST.saturating_sub(a.from());
        served.reply(a).cut(left, End::Hang)
    })
}

/// The same server, which has found its voice.
fn well(rig: &Rig, data: &Arc<Vec<u8>>) {
    let served = Served::new(data);
    rig.now(move |a| served.reply(a));
}

/// So much of the file is held, as far as `state show` knows.
fn held(w: &World) -> usize {
    shown(w, "held") + shown(w, "beyond")
}

/// A number that `state show --json` tells of the part.
fn shown(w: &World, key: &str) -> usize {
    let ran = w.px(["state", "show", "--json", "out.bin"]).run();
    if !ran.succeeded() {
        return 0;
    }
    let story: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    usize::try_from(story["part"][key].as_u64().unwrap_or_default()).expect("bytes")
}

fn download<'w>(w: &'w World, rig: &Rig, connections: &str) -> Px<'w> {
    w.download(&rig.url("/f")).args(&["--connections", connections])
}

/// A download that was stopped in good order after [`FIRST`] bytes, more or less.
fn stopped(w: &World, data: &Arc<Vec<u8>>) -> Rig {
    let rig = silent(data);
    let run = download(w, &rig, "1").start().signal_when(Signal::TERM, || held(w) >= FIRST - MB);
    run.end().exits(4);
    assert!(held(w) >= FIRST - MB);
    rig
}

fn check(w: &World, more: &[&str]) -> Ran {
    w.px(["state", "check"]).args(more).run()
}

#[track_caller]
fn found(w: &World, more: &[&str], exit: i32, words: &str) -> Ran {
    let ran = check(w, more);
    ran.exits(exit);
    assert!(ran.stdout.contains(words), "{words:?} is not in\n{ran}");
    ran
}

/// Changes a byte of a file, in place.
fn flip(path: &Path, at: usize) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at as u64).unwrap();
    file.write_all_at(&[!byte[0]], at as u64).unwrap();
}

/// What a run to the end fetches.
#[track_caller]
fn fetched(w: &World, rig: &Rig, data: &Arc<Vec<u8>>) -> usize {
    let before = rig.sent();
    well(rig, data);
    let ran = download(w, rig, "1").run();
    ran.exits(0);
    w.holds(data);
    found(w, &[], 0, "no damage");
    usize::try_from(rig.sent() - before).expect("bytes")
}

#[test]
fn a_changed_block_is_found_and_it_alone_is_fetched_again() {
    let (w, data) = (World::new(), noise(700, SIZE));
    let rig = stopped(&w, &data);
    found(&w, &[], 0, "read and compared with their block sums");
    flip(&w.part(), BLOCK + 77);
    let ran = found(&w, &[], 3, "bytes 16777216-33554431 (16.0 MiB) are not what was written");
    assert!(ran.stdout.contains("state check --repair"), "{ran}");
    found(&w, &[], 3, "1 fault found");
    let json: Value = serde_json::from_str(&check(&w, &["--json"]).stdout).expect("JSON");
    assert_eq!(json["findings"][0]["ranges"], serde_json::json!([[BLOCK, 2 * BLOCK]]));
    found(&w, &["--repair"], 0, "1 fault repaired");
    found(&w, &[], 0, "no damage");
    let story = w.px(["state", "show", "out.bin"]).run();
    assert!(story.stdout.contains("segments   2: bytes 0-16777215, 33554432-"), "{story}");
    let n = fetched(&w, &rig, &data);
    // The block, what had not come yet, and what is compared where sessions join.
    let least = BLOCK + SIZE - FIRST;
    assert!((least..least + 4 * MB).contains(&n), "{n} bytes");
}

#[test]
fn a_killed_download_over_several_connections_is_sound() {
    let (w, data) = (World::new(), noise(701, 12 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).pace(64 << 10, ms(15)));
    download(&w, &rig, "4")
        .start()
        .kill_when(|| rig.froms().len() >= 4 && shown(&w, "beyond") > 0 && held(&w) >= 3 * MB);
    let ran = found(&w, &[], 0, "no damage");
    assert!(ran.stdout.contains("holds") && ran.stdout.contains("segments"), "{ran}");
    let (before, kept) = (rig.sent(), held(&w));
    well(&rig, &data);
    download(&w, &rig, "4").run().exits(0);
    w.holds(&data);
    let n = usize::try_from(rig.sent() - before).expect("bytes");
    assert!(n < 12 * MB - kept + 3 * MB, "{n} bytes, with {kept} held");
}

/// What comes in the last moment before a kill has no sums: that a byte was changed cannot be found, and nobody is told that
/// all is well.
#[test]
fn what_a_kill_left_without_sums_is_told_as_not_checked() {
    let (w, data) = (World::new(), noise(708, 8 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).cut(6 * MB, End::Hang));
    download(&w, &rig, "1").start().kill_when(|| rig.has_sent(6 * MB) && held(&w) >= MB);
    // Nothing but its header.
    let journal = w.path("out.bin.persxfer-journal");
    fs::OpenOptions::new().write(true).open(journal).unwrap().set_len(36).unwrap();
    flip(&w.part(), MB / 2);
    for more in [&[][..], &["--repair"][..]] {
        let ran = found(&w, more, 0, "not checked; `--repair` keeps them");
        assert!(
            ran.stdout.contains("has no block sums yet for bytes ") && ran.stdout.contains("no damage found, "),
            "{ran}"
        );
    }
    let json: Value = serde_json::from_str(&check(&w, &["--json"]).stdout).expect("JSON");
    assert_eq!(json["files"][0]["unchecked"], json["files"][0]["held"]);
    assert_eq!((&json["faults"], &json["findings"][0]["kind"]), (&0.into(), &"unchecked".into()));
}

#[test]
fn a_part_file_that_was_cut_is_told_and_continued() {
    for repair in [false, true] {
        let (w, data) = (World::new(), noise(702, SIZE));
        let rig = stopped(&w, &data);
        fs::OpenOptions::new().write(true).open(w.part()).unwrap().set_len(20 * MB as u64).unwrap();
        found(&w, &[], 3, "holds 20.0 MiB of the");
        if repair {
            found(&w, &["--repair"], 0, "repaired: 20.0 MiB are still held");
            found(&w, &[], 0, "no damage");
        }
        let n = fetched(&w, &rig, &data);
        assert!((24 * MB..28 * MB).contains(&n), "{n} bytes");
    }
}

#[test]
fn without_its_journal_nothing_counts() {
    let (w, data) = (World::new(), noise(703, SIZE));
    let rig = stopped(&w, &data);
    let journal = w.path("out.bin.persxfer-journal");
    let whole = fs::read(&journal).unwrap();
    fs::write(&journal, &whole[..whole.len() - 3]).unwrap();
    found(&w, &[], 0, "whose last words are torn, as after a kill");
    fs::write(&journal, "no journal at all").unwrap();
    found(&w, &[], 3, "has a journal that cannot be read");
    fs::remove_file(&journal).unwrap();
    found(&w, &[], 3, "has lost its journal");
    found(&w, &["--repair"], 0, "repaired: 0 B are still held");
    found(&w, &[], 0, "no damage");
    assert!(fetched(&w, &rig, &data) >= SIZE);
}

#[test]
fn what_stands_in_the_place_of_a_part_file_is_never_opened() {
    for kind in ["link", "pipe", "folder", "nothing"] {
        let (w, data) = (World::new(), noise(704, SIZE));
        let rig = stopped(&w, &data);
        let elsewhere = w.path("elsewhere");
        fs::write(&elsewhere, "somebody's").unwrap();
        fs::remove_file(w.part()).unwrap();
        let words = match kind {
            "link" => symlink(&elsewhere, w.part()).map(|()| "is no regular file").unwrap(),
            "pipe" => {
                let fifo = std::process::Command::new("mkfifo").arg(w.part()).status().unwrap();
                assert!(fifo.success());
                "is no regular file"
            }
            "folder" => fs::create_dir(w.part()).map(|()| "move it away").unwrap(),
            _ => "is gone",
        };
        found(&w, &[], 3, words);
        w.px(["state", "show", "out.bin"]).run().exits(0);
        if kind == "folder" {
            found(&w, &["--repair"], 3, words);
            continue;
        }
        found(&w, &["--repair"], 0, "repaired: 0 B are still held");
        found(&w, &[], 0, "no damage");
        assert!(fetched(&w, &rig, &data) >= SIZE);
        assert_eq!(fs::read(&elsewhere).unwrap(), b"somebody's");
    }
}

#[test]
fn an_orphan_beside_a_known_target_is_told_and_left_alone() {
    let (w, data) = (World::new(), noise(705, SIZE));
    let _rig = stopped(&w, &data);
    let orphan = w.path("other.bin.persxfer-part");
    fs::write(&orphan, vec![7; 3 * MB]).unwrap();
    for more in [&[][..], &["--repair"][..]] {
        found(&w, more, 3, "other.bin.persxfer-part: no transfer here owns it; delete it (3.0 MiB), unless");
    }
    assert_eq!(fs::read(&orphan).unwrap().len(), 3 * MB);
}

#[test]
fn a_file_that_a_process_works_on_is_left_alone() {
    let (w, data) = (World::new(), noise(706, SIZE));
    let rig = stopped(&w, &data);
    let run = download(&w, &rig, "1").start();
    let pid = run.pid().to_string();
    eventually("the file is in use", || w.list(&[]).iter().any(|t| t["in_use_by"] == *pid));
    // It was looked at when the process began.
    eventually("it is asked for", || rig.froms().len() > 1);
    flip(&w.part(), 5);
    let ran = found(&w, &[], 0, "works on it; that may be changing them");
    assert!(ran.stdout.contains("bytes 0-16777215"), "{ran}");
    found(&w, &["--repair"], 5, "not repaired: stop that process first");
    run.signal(Signal::TERM);
    run.end().exits(4);
    found(&w, &[], 3, "bytes 0-16777215");
}
