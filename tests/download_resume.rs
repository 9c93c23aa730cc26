//! Sessions that are cut, killed, stopped or stalled, and what the next one asks for (design 3.2, 3.3, 4).

mod support;

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::process::Signal;
use support::rig::served::MODIFIED;
use support::{Asked, End, Rig, Served, World, digest, ms, noise};

const MB: usize = 1 << 20;

/// The first session brings `n` bytes and then hangs.
fn hangs_at(served: Served, n: usize) -> impl Fn(&Asked) -> support::Reply {
    move |a| if a.n == 0 { served.reply(a).cut(n, End::Hang) } else { served.reply(a) }
}

#[test]
fn after_kill_9_only_the_rest_is_fetched_under_the_strong_tag() {
    let (w, data) = (World::new(), noise(30, 5 * MB + 17));
    let rig = Rig::start(hangs_at(Served::new(&data), 3_100_003));
    w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(3_100_003));
    w.holds_nothing();
    let before = rig.sent();
    w.download(&rig.url("/f")).run().exits(0).says(&["validator"]);
    w.holds(&data);
    let last = rig.asked().pop().unwrap();
    assert!(last.from() > 2 * MB && last.from() <= 3_100_003, "asked from {}", last.from());
    assert_eq!(last.header("if-range"), Some("\"one\""));
    let rest = (data.len() - 3_100_003 + 400_000) as u64;
    assert!(rig.sent() - before < rest, "{} bytes for a rest of {rest}", rig.sent() - before);
}

#[test]
fn what_was_held_is_compared_before_anything_is_appended() {
    let (w, data) = (World::new(), noise(31, 2 * MB));
    let rig = Rig::start(hangs_at(Served::new(&data).no_etag(), MB));
    w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(MB));
    w.download(&rig.url("/f")).run().exits(0).says(&["overlap"]);
    w.holds(&data);
    let last = rig.asked().pop().unwrap();
    assert!(last.from() <= MB - (64 << 10) && last.from() > 0, "asked from {}: no overlap of 64 KiB", last.from());
    assert_eq!(last.header("if-range"), None);
}

#[test]
fn a_strong_date_stands_in_if_range_where_there_is_no_tag() {
    let (w, data) = (World::new(), noise(32, 2 * MB));
    let rig = Rig::start(hangs_at(Served::new(&data).no_etag().modified(MODIFIED), 1_300_000));
    w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(1_300_000));
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    assert_eq!(rig.asked().pop().unwrap().header("if-range"), Some(MODIFIED));
}

#[test]
fn a_weak_tag_is_never_sent() {
    let (w, data) = (World::new(), noise(33, 2 * MB));
    let rig = Rig::start(hangs_at(Served::new(&data).etag("W/\"weak\""), 1_300_000));
    w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(1_300_000));
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    assert!(rig.asked().iter().all(|a| a.header("if-range").is_none_or(|v| !v.starts_with("W/"))));
}

#[test]
fn killed_three_times_at_different_places_it_still_ends_right() {
    let (w, data) = (World::new(), noise(34, 4 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(|_| support::Reply::status(503));
    for stop in [1, MB / 2 + 1, MB + 77] {
        let served = served.clone();
        rig.now(move |a| served.reply(a).pace(100_000, ms(2)).cut(stop, End::Hang));
        let before = rig.sent() as usize;
        w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(before + stop));
        w.holds_nothing();
    }
    rig.now(move |a| served.reply(a));
    w.download(&rig.url("/f")).args(&["--checksum", &digest("sha-256", &data)]).run().exits(0).says(&["digest"]);
    w.holds(&data);
    assert!(rig.sent() < (data.len() + data.len() / 5) as u64, "{} bytes for {}", rig.sent(), data.len());
}

#[test]
fn resets_and_closes_in_one_run_cost_at_most_a_tenth_more() {
    let (w, data) = (World::new(), noise(35, 8 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| match a.n {
        0 | 2 => served.reply(a).pace(200_000, ms(4)).cut(2_000_000, End::Reset),
        1 | 3 => served.reply(a).cut(1_100_000, End::Close),
        _ => served.reply(a),
    });
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    assert!(rig.sent() < (data.len() + data.len() / 10) as u64, "{} bytes for {}", rig.sent(), data.len());
}

#[test]
fn a_session_cut_after_progress_is_no_failed_pass() {
    // Were each cut a failed pass, the delays of an hour would show.
    let (w, data) = (World::new(), noise(36, 2 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n < 3 { served.reply(a).cut(500_000, End::Close) } else { served.reply(a) });
    w.download(&rig.url("/f")).delays("1h", "2h").run().exits(0);
    w.holds(&data);
    assert_eq!(rig.count(), 4);
}

#[test]
fn a_chunked_body_without_its_last_chunk_is_not_the_file() {
    let (w, data) = (World::new(), noise(37, 700_000));
    let body = Arc::clone(&data);
    let rig = Rig::start(move |a| {
        let whole = support::Reply::status(200).header("ETag", "\"c\"").body(&body, 0..body.len());
        if a.n == 0 { whole.chunked_without_end() } else { whole.chunked() }
    });
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    assert!(rig.count() > 1, "the first body was taken for whole");
}

#[test]
fn a_part_file_that_vanished_is_begun_again() {
    let (w, data) = (World::new(), noise(38, 2 * MB));
    let rig = Rig::start(hangs_at(Served::new(&data), MB));
    w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(MB));
    for file in w.leftovers() {
        fs::remove_file(file).unwrap();
    }
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn a_part_file_that_lost_or_changed_its_tail_never_becomes_a_wrong_file() {
    for damage in ["shorter", "zeros", "one byte"] {
        let (w, data) = (World::new(), noise(39, 3 * MB));
        let rig = Rig::start(hangs_at(Served::new(&data), 2 * MB));
        w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(2 * MB));
        let part = fs::File::options().write(true).open(w.part()).unwrap();
        match damage {
            "shorter" => part.set_len(MB as u64 + 5).unwrap(),
            "zeros" => part.write_all_at(&vec![0; 500_000], (2 * MB - 500_000) as u64).unwrap(),
            _ => part.write_all_at(&[!data[2 * MB - 30_000]], (2 * MB - 30_000) as u64).unwrap(),
        }
        drop(part);
        w.download(&rig.url("/f")).run().exits(0);
        w.holds(&data);
    }
}

#[test]
fn an_orphan_part_file_is_replaced_never_adopted() {
    let (w, data) = (World::new(), noise(40, 400_000));
    fs::write(w.part(), noise(41, 300_000).as_slice()).unwrap();
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    assert_eq!(rig.asked()[0].header("range"), None);
}

#[test]
fn a_stalled_body_is_left_and_gone_on_with() {
    let (w, data) = (World::new(), noise(42, 1_200_000));
    let rig = Rig::start(hangs_at(Served::new(&data), 700_000));
    w.download(&rig.url("/f")).args(&["--stall-timeout", "1s"]).run().exits(0);
    w.holds(&data);
    assert!(rig.resumed(1, 500_000), "begun again: {:?}", rig.froms());
}

#[test]
fn slow_is_not_stalled_and_outlives_the_give_up_window() {
    // Some 100 KiB a second: progress, which is 64 KiB, comes well within the window, and the whole does not.
    let (w, data) = (World::new(), noise(43, 500_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).pace(10_000, ms(100)));
    w.download(&rig.url("/f")).args(&["--stall-timeout", "1s"]).give_up("3s").run().exits(0);
    w.holds(&data);
    assert_eq!(rig.count(), 1);
}

#[test]
fn ctrl_c_saves_says_how_to_go_on_and_exits_130() {
    let (w, data) = (World::new(), noise(44, 3 * MB));
    let rig = Rig::start(hangs_at(Served::new(&data), 1_500_000));
    let run = w.download(&rig.url("/f")).start().signal_when(Signal::INT, || rig.has_sent(1_500_000));
    run.end().exits(130).says(&["persxfer download"]);
    w.holds_nothing();
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    assert!(rig.resumed(1, MB), "begun again: {:?}", rig.froms());
}

#[test]
fn sigterm_stops_with_work_left() {
    let (w, data) = (World::new(), noise(45, 3 * MB));
    let rig = Rig::start(hangs_at(Served::new(&data), 1_500_000));
    w.download(&rig.url("/f")).start().signal_when(Signal::TERM, || rig.has_sent(1_500_000)).end().exits(4);
    assert_eq!(w.list(&[]).len(), 1);
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn max_time_stops_with_work_left_and_the_bytes_kept() {
    let (w, data) = (World::new(), noise(46, 2 * MB));
    let rig = Rig::start(hangs_at(Served::new(&data), 900_000));
    w.download(&rig.url("/f")).args(&["--max-time", "2s"]).run().exits(4);
    w.holds_nothing();
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    assert!(rig.resumed(1, 500_000));
}

#[test]
fn a_client_that_slept_while_its_connection_died_goes_on() {
    let (w, data) = (World::new(), noise(47, 2 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| match a.n {
        0 => served.reply(a).pace(50_000, ms(10)).cut(1_000_000, End::Reset),
        _ => served.reply(a),
    });
    let run = w.download(&rig.url("/f")).args(&["--stall-timeout", "1s"]).start();
    let run = run.signal_when(Signal::STOP, || rig.sent() > 600_000);
    std::thread::sleep(ms(1500));
    run.signal(Signal::CONT);
    run.end().exits(0);
    w.holds(&data);
}
