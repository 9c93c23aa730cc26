//! Whatever ends or disturbs a download also does while several connections are under way: nothing is lost, and nothing
//! wrong stands under the final name.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test says what it expects")]

mod support;

use std::fs;
use std::sync::Arc;

use support::{Asked, End, Px, Reply, Rig, Served, World, eventually, ms, noise};

const MB: usize = 1 << 20;

/// Slow at first, so that all connections are under way for a while.
fn slow(data: &Arc<Vec<u8>>) -> Rig {
    let served = Served::new(data);
    Rig::start(move |a: &Asked| served.reply(a).pace(32 << 10, ms(40)))
}

fn four<'w>(w: &'w World, rig: &Rig) -> Px<'w> {
    w.download(&rig.url("/f")).args(&["--connections", "4"])
}

/// From now on as fast as it can. What was sent so far.
fn hurry(rig: &Rig, data: &Arc<Vec<u8>>) -> u64 {
    let served = Served::new(data);
    rig.now(move |a| served.reply(a));
    rig.sent()
}

/// The rest, and little more, comes in another run.
#[track_caller]
fn goes_on(w: &World, rig: &Rig, data: &Arc<Vec<u8>>) {
    w.holds_nothing();
    let before = hurry(rig, data);
    four(w, rig).run().exits(0);
    w.holds(data);
    let all = rig.sent();
    assert!(all < (data.len() + 5 * MB / 2) as u64, "{all} bytes for {}, {before} of them before", data.len());
}

#[test]
fn once_ends_with_the_session_and_what_every_connection_brought_is_kept() {
    let (w, data) = (World::new(), noise(1600, 6 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| match a.n {
        ..7 => served.reply(a).pace(64 << 10, ms(10)).cut(700_000, End::Reset),
        _ => Reply::status(503),
    });
    four(&w, &rig).arg("--once").run().exits(4);
    let asked = rig.count();
    assert!(asked < 40, "{asked} requests of one session");
    goes_on(&w, &rig, &data);
}

#[test]
fn max_time_stops_all_connections_and_keeps_their_bytes() {
    let (w, data) = (World::new(), noise(1601, 8 * MB));
    let rig = slow(&data);
    four(&w, &rig).args(&["--max-time", "1s"]).run().exits(4);
    goes_on(&w, &rig, &data);
}

#[test]
fn suspended_retried_and_aborted_from_outside() {
    let (w, data) = (World::new(), noise(1602, 8 * MB));
    let rig = slow(&data);
    let run = four(&w, &rig).start();
    eventually("it runs", || rig.sent() > 2 * MB as u64 && w.list(&[]).len() == 1);
    w.px(["suspend", "out.bin"]).run().exits(0);
    eventually("it is suspended", || w.list(&[])[0]["status"] == "suspended");
    eventually("nothing comes any more", || {
        let sent = rig.sent();
        std::thread::sleep(ms(300));
        rig.sent() == sent
    });
    w.px(["resume", "out.bin"]).run().exits(0);
    eventually("it runs again", || rig.sent() > 4 * MB as u64);
    w.px(["retry", "out.bin"]).run().exits_one_of(&[0]);
    hurry(&rig, &data);
    run.end().exits(0);
    w.holds(&data);
    assert!(rig.sent() < 11 * MB as u64, "{} bytes", rig.sent());

    let (w, rig) = (World::new(), slow(&data));
    let run = four(&w, &rig).start();
    eventually("it runs", || rig.sent() > MB as u64 && w.list(&[]).len() == 1);
    w.px(["abort", "out.bin"]).run().exits(0);
    run.end().exits(3);
    w.holds_nothing();
}

#[test]
fn a_part_file_that_is_taken_away_meanwhile_never_becomes_a_wrong_file() {
    let (w, data) = (World::new(), noise(1603, 8 * MB));
    let rig = slow(&data);
    let run = four(&w, &rig).start();
    eventually("it runs", || rig.sent() > 2 * MB as u64);
    fs::remove_file(w.part()).unwrap();
    let ran = run.end();
    ran.exits_one_of(&[0, 3, 5]);
    if !ran.succeeded() {
        w.holds_nothing();
        hurry(&rig, &data);
        four(&w, &rig).run().exits(0);
    }
    w.holds(&data);
}

#[test]
fn what_is_told_as_held_counts_every_segment_and_never_falls() {
    let (w, data) = (World::new(), noise(1604, 8 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| {
        let reply = served.reply(a).pace(64 << 10, ms(10));
        if a.n == 5 { reply.cut(300_000, End::Reset) } else { reply }
    });
    let ran = four(&w, &rig).args(&["--progress", "json"]).run();
    ran.exits(0);
    let events = ran.stdout.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap());
    let held: Vec<u64> = events.filter(|e| e["event"] == "progress").filter_map(|e| e["held"].as_u64()).collect();
    assert!(held.len() > 3, "{held:?}");
    assert!(held.is_sorted() && held.iter().all(|n| *n <= 8 * MB as u64), "{held:?}");
    // The first connection alone does not bring so much.
    assert!(held.iter().any(|n| *n > 3 * MB as u64 && *n < 8 * MB as u64), "{held:?}");
}

#[test]
fn a_server_that_is_right_where_it_is_tried_and_wrong_elsewhere_is_found_out() {
    // The block that is asked for as a proof is right. A range beyond the first megabyte is answered, under its right
    // label and tag, with other bytes: for the first requests, then rightly.
    let (w, data) = (World::new(), noise(1605, 6 * MB));
    let (served, other) = (Served::new(&data), Served::new(&noise(1606, 6 * MB)));
    let lies = std::sync::atomic::AtomicUsize::new(0);
    let rig = Rig::start(move |a| {
        let far = a.from() > MB;
        let lie = far && lies.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 1;
        if lie { other.reply(a).pace(64 << 10, ms(5)) } else { served.reply(a).pace(64 << 10, ms(5)) }
    });
    four(&w, &rig).run().exits(0);
    w.holds(&data);
    assert!(rig.sent() < 12 * MB as u64, "{} bytes", rig.sent());
}

#[test]
fn a_shorter_file_of_the_same_beginning_does_not_trip_over_segments_beyond_its_end() {
    for size in [MB, 3 * MB + 9] {
        let (w, data) = (World::new(), noise(1607, 6 * MB));
        let rig = slow(&data);
        four(&w, &rig).start().kill_when(|| rig.sent() > 4 * MB as u64);
        w.holds_nothing();
        let shorter = Arc::new(data[..size].to_vec());
        let served = Served::new(&shorter).etag("\"two\"").no_ranges();
        rig.now(move |a| served.reply(a));
        four(&w, &rig).run().exits(0);
        w.holds(&shorter);
    }
}

#[test]
fn a_shorter_file_from_another_mirror_does_not_trip_over_segments_beyond_its_end() {
    for (first, second) in [("\"one\"", "\"one\""), ("W/\"w\"", "W/\"w\"")] {
        let (w, data) = (World::new(), noise(1608, 6 * MB));
        let served = Served::new(&data).etag(first);
        let rig = Rig::start(move |a: &Asked| served.reply(a).pace(32 << 10, ms(40)));
        let shorter = Arc::new(data[..3 * MB + 77].to_vec());
        let served = Served::new(&shorter).etag(second);
        let other = Rig::start(move |a| served.reply(a).pace(64 << 10, ms(5)));
        four(&w, &rig).start().kill_when(|| rig.sent() > 4 * MB as u64);
        w.holds_nothing();
        let served = Served::new(&shorter).etag(first);
        rig.now(move |a| if a.n % 3 == 0 { Reply::status(503) } else { served.reply(a).pace(64 << 10, ms(5)) });
        let ran = four(&w, &rig).mirror(&other.url("/f")).give_up("3s").run();
        ran.exits_one_of(&[0, 3]);
        if ran.succeeded() {
            w.holds(&shorter);
        } else {
            w.holds_nothing();
        }
    }
}

/// Zeros tell nothing of a file: other connections wait for a block that does, and must not wait for ever where the
/// first one breaks off before.
#[test]
fn a_file_that_begins_with_zeros_is_fetched_although_every_connection_breaks_off() {
    for validators in [true, false] {
        let w = World::new();
        let mut bytes = vec![0; 3 * MB];
        bytes.extend_from_slice(&noise(1620, 2 * MB));
        let data = Arc::new(bytes);
        let served = if validators { Served::new(&data) } else { Served::new(&data).no_etag() };
        let rig = Rig::start(move |a: &Asked| served.reply(a).cut(MB, End::Close));
        four(&w, &rig).run().exits(0);
        w.holds(&data);
    }
}

#[test]
fn with_one_session_a_mirror_it_ends_there_and_nothing_hangs() {
    let (w, data) = (World::new(), Arc::new(vec![0; 24 * MB]));
    let served = Served::new(&data);
    let rig = Rig::start(move |a: &Asked| served.reply(a).cut(MB, End::Close));
    four(&w, &rig).arg("--once").run().exits(4);
    let asked = rig.count();
    // Each brings 1 MB of 24: mended cuts would need 24 at least.
    assert!(asked < 16, "{asked} requests, each cut, of one session over four connections");
}

/// Such an answer ends where the comparison does and brings nothing new: it must not cost what is held behind gaps.
#[test]
fn an_answer_of_just_the_compared_block_costs_no_segment() {
    let (w, data) = (World::new(), noise(1621, 8 * MB));
    let rig = slow(&data);
    four(&w, &rig).start().kill_when(|| rig.sent() > 4 * MB as u64);
    w.holds_nothing();
    let before = rig.sent();
    let (served, bytes) = (Served::new(&data), Arc::clone(&data));
    let first = std::sync::atomic::AtomicBool::new(true);
    rig.now(move |a: &Asked| {
        let reply = served.reply(a);
        let from = a.from();
        if from == 0 || !first.swap(false, std::sync::atomic::Ordering::Relaxed) {
            return reply;
        }
        let to = from + (64 << 10);
        reply.instead("content-range", Some(&format!("bytes {from}-{}/{}", to - 1, bytes.len()))).body(&bytes, from..to)
    });
    four(&w, &rig).run().exits(0);
    w.holds(&data);
    let all = rig.sent();
    assert!(all < (data.len() + 5 * MB / 2) as u64, "{all} bytes for {}, {before} of them before", data.len());
}

/// A rest too small to be split is taken all the same from a mirror that drips.
#[test]
fn a_small_rest_does_not_wait_for_a_mirror_that_drips() {
    let (w, data) = (World::new(), noise(1622, MB));
    let served = Served::new(&data);
    let first = Rig::start(move |a: &Asked| served.reply(a).pace(500, ms(250)));
    let served = Served::new(&data);
    let fast = Rig::start(move |a: &Asked| served.reply(a));
    let px = || w.download(&first.url("/f")).mirror(&fast.url("/f")).give_up("1m");
    px().start().kill_when(|| first.sent() > 1_000);
    w.holds_nothing();
    px().run().exits(0);
    w.holds(&data);
    assert!(first.sent() < (MB / 2) as u64, "{} bytes of the drip", first.sent());
}
