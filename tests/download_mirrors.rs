//! Several mirrors, and digests that are law (design 3.6, 3.8, 4).

#![allow(clippy::unwrap_used, reason = "a test says what it expects")]

mod support;

use std::fs;
use std::sync::Arc;

use rustix::process::Signal;
use support::rig::served::MODIFIED;
use support::{End, Reply, Rig, Served, World, digest, ms, noise};

const MB: usize = 1 << 20;

fn right(data: &Arc<Vec<u8>>) -> Rig {
    let served = Served::new(data);
    Rig::start(move |a| served.reply(a))
}

#[test]
fn the_second_serves_where_the_first_refuses_connections() {
    let (w, data) = (World::new(), noise(90, 400_000));
    let (dead, live) = (right(&data), right(&data));
    dead.stop();
    w.download(&dead.url("/f")).mirror(&live.url("/f")).delays("1h", "2h").run().exits(0);
    w.holds(&data);
}

#[test]
fn every_mirror_is_tried_once_in_a_pass_and_a_pass_is_one_retry() {
    let w = World::new();
    let rigs = [Rig::start(|_| Reply::status(503)), Rig::start(|_| Reply::status(500)), Rig::start(|_| Reply::raw(""))];
    let px = w.download(&rigs[0].url("/f")).mirror(&rigs[1].url("/f")).mirror(&rigs[2].url("/f")).patient();
    px.arg("--once").run().exits(4);
    assert_eq!(rigs.each_ref().map(Rig::count), [1, 1, 1]);
    assert_eq!(w.list(&[])[0]["num_retries"], 1);
}

#[test]
fn all_missing_is_a_failure_at_once_that_asked_them_all() {
    let w = World::new();
    let rigs = [404, 410, 403].map(|status| Rig::start(move |_| Reply::status(status)));
    let px = w.download(&rigs[0].url("/f")).mirror(&rigs[1].url("/f")).mirror(&rigs[2].url("/f"));
    px.delays("1h", "2h").give_up("1d").run().exits(3).says(&["404", "410", "403"]);
    assert_eq!(rigs.each_ref().map(Rig::count), [1, 1, 1]);
    w.holds_nothing();
}

#[test]
fn a_refused_mirror_is_not_asked_again_while_another_is_busy() {
    let (w, data) = (World::new(), noise(91, 300_000));
    let served = Served::new(&data);
    let busy = Rig::start(move |a| if a.n < 4 { Reply::status(503) } else { served.reply(a) });
    let gone = Rig::start(|_| Reply::status(404));
    w.download(&gone.url("/f")).mirror(&busy.url("/f")).run().exits(0);
    w.holds(&data);
    assert_eq!(gone.count(), 1);
}

#[test]
fn the_rest_comes_from_another_mirror_after_its_bytes_were_compared() {
    let (w, data) = (World::new(), noise(92, 3 * MB));
    let first = Served::new(&data).etag("\"first\"").modified(MODIFIED);
    let a = Rig::start(move |q| if q.n == 0 { first.reply(q).cut(2 * MB, End::Close) } else { Reply::status(503) });
    let second = Served::new(&data).etag("\"second\"").modified(MODIFIED);
    let b = Rig::start(move |q| second.reply(q));
    w.download(&a.url("/f")).mirror(&b.url("/f")).run().exits(0).says(&["overlap"]);
    w.holds(&data);
    let asked = b.asked();
    assert!(asked.iter().all(|q| q.header("if-range") != Some("\"first\"")), "a validator went to another origin");
    assert!(b.sent() < 2 * MB as u64, "{} bytes from the second mirror", b.sent());
}

#[test]
fn an_odd_mirror_of_the_same_size_is_dropped_and_named() {
    let (w, data, other) = (World::new(), noise(93, 3 * MB), noise(94, 3 * MB));
    let served = Served::new(&data).etag("\"a\"");
    let a = Rig::start(move |q| match q.n {
        0 => served.reply(q).cut(MB, End::Close),
        1 => Reply::status(503),
        _ => served.reply(q),
    });
    let odd = Served::new(&other).etag("\"b\"");
    let b = Rig::start(move |q| odd.reply(q));
    let ran = w.download(&a.url("/f")).mirror(&b.url("/f")).run();
    ran.exits(0);
    let held = fs::read(&w.out).unwrap();
    assert!(held == *data || held == *other, "a mix of two mirrors' files");
}

#[test]
fn an_odd_mirror_of_another_size_is_never_mixed_in() {
    let (w, data, other) = (World::new(), noise(95, 3 * MB), noise(96, 2 * MB));
    let served = Served::new(&data).no_etag();
    let a =
        Rig::start(move |q| if q.n % 3 != 1 { served.reply(q).cut(600_000, End::Close) } else { Reply::status(500) });
    let odd = Served::new(&other).no_etag();
    let b = Rig::start(move |q| odd.reply(q).cut(600_000, End::Close));
    w.download(&a.url("/f")).mirror(&b.url("/f")).run().exits(0);
    let held = fs::read(&w.out).unwrap();
    assert!(held == *data || held == *other, "a mix of two mirrors' files");
}

#[test]
fn each_algorithm_accepts_the_right_digest_and_no_other() {
    let data = noise(97, 250_000);
    let rig = right(&data);
    for algorithm in ["sha-256", "sha-512", "sha-1", "md5", "blake3", "crc32c"] {
        let w = World::new();
        let good = digest(algorithm, &data);
        w.download(&rig.url("/f")).args(&["--checksum", &good]).run().exits(0).says(&["digest"]);
        w.holds(&data);
        let w = World::new();
        let wrong = digest(algorithm, &data[1..]);
        w.download(&rig.url("/f")).args(&["--checksum", &wrong]).run().exits(3).says(&[algorithm, "checksum"]);
        w.holds_nothing();
        assert!(w.leftovers().is_empty(), "known-wrong bytes were kept: {:?}", w.leftovers());
    }
}

#[test]
fn a_wrong_digest_costs_two_whole_fetches_the_second_past_the_caches() {
    let (w, data) = (World::new(), noise(98, 250_000));
    let rig = right(&data);
    let wrong = digest("sha-256", b"another file");
    w.download(&rig.url("/f")).args(&["--checksum", &wrong]).delays("50ms", "100ms").give_up("1d").run().exits(3);
    let asked = rig.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].header("cache-control"), None);
    assert_eq!(asked[1].header("cache-control"), Some("no-cache"));
}

#[test]
fn bytes_damaged_once_are_had_right_the_second_time() {
    let (w, data) = (World::new(), noise(99, 600_000));
    let mut bad = data.to_vec();
    bad[300_000] ^= 4;
    let (bad, served) = (Served::new(&Arc::new(bad)), Served::new(&data));
    let rig = Rig::start(move |a| if a.n == 0 { bad.reply(a) } else { served.reply(a) });
    w.download(&rig.url("/f")).args(&["--checksum", &digest("sha-256", &data)]).run().exits(0);
    w.holds(&data);
}

#[test]
fn a_corrupt_mirror_gives_way_to_the_right_one() {
    let (w, data) = (World::new(), noise(100, 600_000));
    let (corrupt, good) = (right(&noise(101, 600_000)), right(&data));
    let px = w.download(&corrupt.url("/f")).mirror(&good.url("/f"));
    px.args(&["--checksum", &digest("sha-512", &data)]).run().exits(0).says(&["digest"]);
    w.holds(&data);
    assert!(corrupt.count() <= 2);
}

#[test]
fn wrong_everywhere_is_a_failure_that_names_the_digest() {
    let w = World::new();
    let rigs = [right(&noise(102, 99_000)), right(&noise(103, 99_000))];
    let px = w.download(&rigs[0].url("/f")).mirror(&rigs[1].url("/f"));
    px.args(&["--checksum", &digest("sha-256", b"")]).run().exits(3).says(&["checksum", "sha-256"]);
    w.holds_nothing();
    assert_eq!(rigs.each_ref().map(Rig::count), [2, 2]);
}

#[test]
fn a_digest_holds_over_a_resume_after_kill_9() {
    let (w, data) = (World::new(), noise(104, 4 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(3 * MB, End::Hang) } else { served.reply(a) });
    let sum = digest("blake3", &data);
    w.download(&rig.url("/f")).args(&["--checksum", &sum]).start().kill_when(|| rig.has_sent(3 * MB));
    w.download(&rig.url("/f")).args(&["--checksum", &sum]).run().exits(0).says(&["digest"]);
    w.holds(&data);
    assert!(rig.resumed(1, 2 * MB));
}

#[test]
fn sums_files_are_read_by_name() {
    let w = World::new();
    let (one, two) = (noise(105, 40_000), noise(106, 50_000));
    let (a, b) = (Served::new(&one), Served::new(&two));
    let rig = Rig::start(move |q| if q.target == "/one.bin" { a.reply(q) } else { b.reply(q) });
    let hex = |data: &[u8]| digest("sha-256", data)["sha-256=".len()..].to_owned();
    let sums = w.path("SHA256SUMS");
    let folder = w.folder("in");
    let run = |text: String| {
        fs::write(&sums, text).unwrap();
        w.download(&rig.url("/one.bin")).url(&rig.url("/two.bin")).dir(&folder).arg("--checksums").arg(&sums).run()
    };
    run(format!("{}  one.bin\n{} *two.bin\n", hex(&one), hex(&two))).exits(0).says(&["digest"]);
    support::same_file(&folder.join("two.bin"), &two);
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    let w2 = World::new();
    let ran = w2.download(&rig.url("/one.bin")).url(&rig.url("/two.bin")).dir(&folder).arg("--checksums").arg(&sums);
    fs::write(&sums, format!("{}  one.bin\n{}  two.bin\n", hex(&one), hex(&one))).unwrap();
    ran.run().exits(3).says(&["two.bin"]);
    assert_eq!(support::names_in(&folder), ["one.bin"]);
}

#[test]
fn other_urls_for_the_same_target_become_its_mirrors() {
    let (w, data) = (World::new(), noise(107, 2 * MB));
    let served = Served::new(&data);
    let old = Rig::start({
        let served = served.clone();
        move |a| if a.n == 0 { served.reply(a).cut(MB, End::Close) } else { Reply::status(503) }
    });
    w.download(&old.url("/f")).arg("--once").run().exits(4);
    let new = Rig::start(move |a| served.reply(a));
    w.download(&new.url("/moved/f")).run().exits(0);
    w.holds(&data);
    // The first request may be for an earlier block, to compare that too.
    assert!(new.sent() < (MB + MB / 2) as u64, "the bytes held were not used: {} came", new.sent());
}

/// Answers with a few bytes a second.
fn drip(data: &Arc<Vec<u8>>, pieces: usize) -> Rig {
    let served = Served::new(data);
    Rig::start(move |a| served.reply(a).pace(pieces, ms(200)))
}

/// Fewer bytes than another mirror could be compared with: nobody waits until they are more.
#[test]
fn a_first_answer_that_drips_is_left_for_another_mirror() {
    for connections in ["1", "4"] {
        let (w, data) = (World::new(), noise(96, 2 * MB));
        let (slow, fast) = (drip(&data, 4), right(&data));
        let px = w.download(&slow.url("/f")).mirror(&fast.url("/f")).args(&["--connections", connections]);
        px.args(&["--stall-timeout", "6s"]).delays("1h", "2h").run().exits(0);
        w.holds(&data);
        assert!(slow.sent() < 64 << 10, "{} bytes of the drip", slow.sent());
    }
}

/// What is compared brings nothing, so that a resumed session that drips is left too.
#[test]
fn a_comparison_that_drips_is_left_for_another_mirror() {
    for connections in ["1", "4"] {
        // Which of two mirrors goes first is drawn.
        let drips = (0..30).any(|_| a_comparison_drips(connections));
        assert!(drips, "the slow one never went first");
    }
}

/// `false` where the other mirror went first.
fn a_comparison_drips(connections: &str) -> bool {
    let (w, data) = (World::new(), noise(97, 2 * MB));
    let served = Served::new(&data);
    let slow = Rig::start(move |a| match a.n {
        0 => served.reply(a).cut(MB, End::Hang),
        // Faster than the stall rule asks for, and than what a first answer must bring.
        _ => served.reply(a).pace(600, ms(200)),
    });
    let fast = right(&data);
    let px = || w.download(&slow.url("/f")).args(&["--connections", connections, "--stall-timeout", "6s"]);
    px().start().signal_when(Signal::TERM, || slow.has_sent(384 << 10)).end().exits(4);
    let story = w.px(["state", "show", "--json", "out.bin"]).run().stdout;
    let story: serde_json::Value = serde_json::from_str(&story).unwrap();
    let held = story["part"]["held"].as_u64().unwrap();
    assert!(held > 128 << 10, "{held} bytes are held");
    let before = slow.count();
    let ran = px().mirror(&fast.url("/f")).delays("1h", "2h").run();
    ran.exits(0);
    w.holds(&data);
    if !ran.stderr.contains(&format!("session 2 with {}", slow.url("").replace("http://", ""))) {
        return false;
    }
    assert!(slow.count() > before);
    ran.says(&["stalled: below"]);
    // Of connections that are stopped when others are faster, more comes than is used.
    let most = data.len() as u64 - held + (256 << 10);
    assert!(connections != "1" || fast.sent() <= most, "{} bytes with {held} held", fast.sent());
    true
}

/// Where every mirror drips, the last one that was asked is waited for: leaving it would bring nothing.
#[test]
fn where_all_mirrors_drip_the_file_comes_all_the_same() {
    let (w, data) = (World::new(), noise(98, 4_000));
    let rigs = [drip(&data, 100), drip(&data, 100)];
    let px = w.download(&rigs[0].url("/f")).mirror(&rigs[1].url("/f")).args(&["--stall-timeout", "6s"]);
    px.delays("1h", "2h").run().exits(0);
    w.holds(&data);
}

/// A mirror that failed before is nothing to leave a slow one for.
#[test]
fn a_drip_is_waited_for_where_the_others_have_failed() {
    let (w, data) = (World::new(), noise(99, 3_000));
    let (busy, slow) = (Rig::start(|_| Reply::status(503)), drip(&data, 100));
    let px = w.download(&busy.url("/f")).mirror(&slow.url("/f")).args(&["--stall-timeout", "6s"]);
    px.delays("1h", "2h").run().exits(0);
    w.holds(&data);
    assert_eq!((busy.count(), slow.count()), (1, 1));
}
