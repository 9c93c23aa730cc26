//! The bank of faults: downloads over several connections (`docs/integrity.md`).

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use support::rig::lock;
use support::{Asked, End, Px, Reply, Rig, Served, World, digest, eventually, ms, noise, skipped};

const MB: usize = 1 << 20;

/// A download over so many connections.
fn over<'w>(w: &'w World, rig: &Rig, connections: &str) -> Px<'w> {
    w.download(&rig.url("/f")).args(&["--connections", connections])
}

/// How many requests began behind the start.
fn segments(rig: &Rig) -> usize {
    rig.froms().iter().filter(|from| **from > 0).count()
}

#[test]
fn a_file_is_split_and_put_together() {
    let (w, data) = (World::new(), noise(600, 6 * MB + 13));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).pace(64 << 10, ms(10)));
    over(&w, &rig, "4").run().exits(0);
    w.holds(&data);
    assert!(segments(&rig) >= 2, "never split: {:?}", rig.froms());
    assert!(rig.sent() < (data.len() + data.len() / 5) as u64, "{} bytes", rig.sent());
}

#[test]
fn ranges_that_stop_working_leave_one_stream() {
    for honoured in [0, 1, 3] {
        let (w, data) = (World::new(), noise(601, 4 * MB + 5));
        let (served, n) = (Served::new(&data), AtomicUsize::new(0));
        let whole = served.clone().no_ranges();
        let rig = Rig::start(move |a| match a.range() {
            Some((from, _)) if from > 0 && n.fetch_add(1, Ordering::SeqCst) < honoured => served.reply(a),
            _ => whole.reply(a).pace(64 << 10, ms(5)),
        });
        over(&w, &rig, "4").run().exits(0);
        w.holds(&data);
        assert!(rig.count() <= 16, "{} requests", rig.count());
    }
}

#[test]
fn the_head_of_the_file_in_every_segment_is_found_out() {
    let (w, data) = (World::new(), noise(602, 5 * MB));
    let (served, body) = (Served::new(&data), Arc::clone(&data));
    let rig = Rig::start(move |a| match a.range() {
        Some((from, last)) if from > 0 => {
            let n = last.map_or(5 * MB, |last| last + 1) - from;
            // In turn: the whole file's status, a true label, no label.
            let label = format!("bytes {from}-{}/{}", from + n - 1, 5 * MB);
            match a.n % 3 {
                0 => Reply::status(200).header("ETag", "\"one\"").body(&body, 0..n),
                1 => Reply::status(206).header("ETag", "\"one\"").header("Content-Range", &label).body(&body, 0..n),
                _ => Reply::status(206).header("ETag", "\"one\"").body(&body, 0..n),
            }
        }
        _ => served.reply(a).pace(128 << 10, ms(5)),
    });
    let ran = over(&w, &rig, "4").give_up("5s").run();
    if ran.succeeded() {
        w.holds(&data);
    } else {
        ran.exits(3);
        w.holds_nothing();
    }
    // With the digest it must not be believed either; a plain request is always answered right.
    let w = World::new();
    let ran = over(&w, &rig, "3").args(&["--checksum", &digest("sha-256", &data)]).give_up("5s").run();
    if ran.succeeded() {
        w.holds(&data);
    } else {
        ran.exits(3);
    }
}

#[test]
fn each_segment_is_cut_twice_and_goes_on_where_it_wrote() {
    let (w, data) = (World::new(), noise(603, 4 * MB));
    let served = Served::new(&data);
    let cuts = Mutex::new(BTreeMap::<usize, u32>::new());
    let rig = Rig::start(move |a| {
        // By the megabyte in which it begins: twice each.
        let times = *lock(&cuts).entry(a.from() / MB).and_modify(|n| *n += 1).or_insert(1);
        let end = if times == 1 { End::Reset } else { End::Close };
        if times <= 2 { served.reply(a).cut(220_000, end) } else { served.reply(a) }
    });
    over(&w, &rig, "4").run().exits(0);
    w.holds(&data);
    assert!(rig.sent() < 2 * data.len() as u64, "{} bytes for a file of {}", rig.sent(), data.len());
}

#[test]
fn changed_while_segments_are_under_way() {
    for (old, new) in [("\"1\"", "\"2\""), ("\"same\"", "\"same\"")] {
        let (w, a, b) = (World::new(), noise(604, 4 * MB), noise(605, 4 * MB));
        let (before, after) = (Served::new(&a).etag(old), Served::new(&b).etag(new).blind());
        let rig = Rig::start(move |q: &Asked| match q.n {
            0..3 => before.reply(q).cut(400_000, End::Close),
            _ => after.reply(q),
        });
        let ran = over(&w, &rig, "3").give_up("6s").run();
        if ran.succeeded() {
            w.holds(&b);
        } else {
            ran.exits(3);
            w.holds_nothing();
        }
    }
}

/// A server of so many connections at a time, which answers any more with this status.
fn limited(status: u16, most: usize) -> (World, Arc<Vec<u8>>, Rig) {
    let data = noise(606, 5 * MB);
    let served = Served::new(&data);
    // A reply takes its time, by which it is known when its connection is free again.
    let busy: Arc<Mutex<Vec<std::time::Instant>>> = Arc::default();
    let rig = Rig::start(move |a| {
        let mut busy = lock(&busy);
        busy.retain(|until| *until > a.at);
        if busy.len() >= most {
            return Reply::page(status, "<p>too many connections</p>").then(End::Close);
        }
        let reply = served.reply(a).pace(128 << 10, ms(20));
        let pieces = reply.len().div_ceil(128 << 10);
        busy.push(a.at + ms(20 * pieces as u64));
        reply
    });
    (World::new(), data, rig)
}

#[test]
fn a_server_of_two_connections_is_served_by_two() {
    for (status, most) in [(403, 1), (503, 2), (429, 2)] {
        let (w, data, rig) = limited(status, most);
        over(&w, &rig, "6").run().exits(0);
        w.holds(&data);
        assert!(rig.sent() < 2 * data.len() as u64, "{status}: {} bytes for a file of {}", rig.sent(), data.len());
    }
}

#[test]
fn ranges_of_slow_connections_move_to_a_good_one() {
    let (w, data) = (World::new(), noise(607, 5 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| match a.n {
        // A few bytes a second: for ever, in the eyes of whoever waits for them.
        1 | 2 => served.reply(a).pace(40, ms(400)),
        _ => served.reply(a).pace(64 << 10, ms(20)),
    });
    over(&w, &rig, "3").run().exits(0);
    w.holds(&data);
}

#[test]
fn a_silent_last_segment_is_asked_for_again() {
    let (w, data) = (World::new(), noise(608, 4 * MB));
    let (served, held, n) = (Served::new(&data), AtomicUsize::new(0), data.len());
    let rig = Rig::start(move |a| {
        let reply = served.reply(a);
        let reaches = a.range().is_none_or(|(_, last)| last.is_none_or(|last| last + 1 >= n));
        if reaches && held.fetch_add(1, Ordering::SeqCst) == 0 {
            let short = reply.len().saturating_sub(7_000);
            return reply.cut(short, End::Hang);
        }
        reply
    });
    over(&w, &rig, "4").args(&["--stall-timeout", "1s"]).run().exits(0);
    w.holds(&data);
}

#[test]
fn segments_of_two_mirrors_go_on_after_a_kill() {
    for proven in [true, false] {
        let (w, data) = (World::new(), noise(609, 6 * MB));
        let slow = |served: Served| move |a: &Asked| served.reply(a).pace(32 << 10, ms(25));
        let (one, two) = (Served::new(&data).etag("\"here\""), Served::new(&data).etag("\"there\""));
        let (a, b) = (Rig::start(slow(one.clone())), Rig::start(slow(two.clone())));
        let sum = digest("sha-256", &data);
        let px = || {
            let px = over(&w, &a, "4").mirror(&b.url("/f"));
            if proven { px.args(&["--checksum", &sum]) } else { px }
        };
        px().start().kill_when(|| a.sent() + b.sent() > 3 * MB as u64);
        w.holds_nothing();
        a.now(move |q| one.reply(q));
        b.now(move |q| two.reply(q));
        let before = a.sent() + b.sent();
        px().run().exits(0);
        w.holds(&data);
        let more = a.sent() + b.sent() - before;
        assert!(more < 5 * MB as u64, "{more} bytes after {before} had come");
    }
}

#[test]
fn mirrors_out_of_step_are_not_mixed() {
    for (size, tags) in [(4 * MB, ("\"a\"", "\"b\"")), (4 * MB, ("\"s\"", "\"s\"")), (4 * MB - 9, ("\"a\"", "\"b\""))] {
        let (w, one, two) = (World::new(), noise(610, 4 * MB), noise(611, size));
        let slow = |served: Served| move |a: &Asked| served.reply(a).pace(64 << 10, ms(10));
        let (a, b) =
            (Rig::start(slow(Served::new(&one).etag(tags.0))), Rig::start(slow(Served::new(&two).etag(tags.1))));
        let ran = over(&w, &a, "4").mirror(&b.url("/f")).run();
        ran.exits_one_of(&[0, 3]);
        if ran.succeeded() {
            let held = fs::read(&w.out).expect("it is there");
            assert!(held == *one || held == *two, "a mix of two mirrors' files");
        } else {
            w.holds_nothing();
        }
    }
}

#[test]
fn killed_early_leaves_no_file_with_holes() {
    for (sent, lost) in [(50_000, false), (500_000, false), (500_000, true), (3_000_000, true)] {
        let (w, data) = (World::new(), noise(612, 5 * MB));
        let served = Served::new(&data);
        let slow = served.clone();
        let rig = Rig::start(move |a| slow.reply(a).pace(32 << 10, ms(30)));
        over(&w, &rig, "4").start().kill_when(|| rig.sent() > sent);
        w.holds_nothing();
        if lost {
            fs::remove_dir_all(w.path("state")).expect("it can be removed");
        }
        rig.now(move |a| served.reply(a));
        over(&w, &rig, "4").run().exits(0);
        w.holds(&data);
        eventually("nothing is left beside it", || w.leftovers().is_empty());
    }
}

#[test]
fn offsets_beyond_four_gib() {
    const HUGE: u64 = (4 << 30) + 77;
    let w = World::new();
    let free = rustix::fs::statvfs(w.path("home")).map_or(0, |at| at.f_bavail * at.f_frsize);
    if free < 2 * HUGE {
        return skipped("bank_segments::offsets_beyond_four_gib", "less than 9 GiB free");
    }
    let piece = noise(613, MB);
    let rig = Rig::start(move |a| {
        let (first, last) = a.range().map_or((0, None), |(first, last)| (first as u64, last));
        let end = last.map_or(HUGE, |last| last as u64 + 1);
        let (length, range) = ((end - first).to_string(), format!("bytes {first}-{}/{HUGE}", end - 1));
        let reply = match a.range() {
            Some(_) => Reply::status(206).header("Content-Range", &range),
            None => Reply::status(200),
        };
        // The first megabyte is true, so that connections can prove what they have; what lies far out is cut.
        let near = (first as usize) < MB;
        let part = if near { first as usize..MB.min(end as usize) } else { 0..MB };
        reply.header("ETag", "\"huge\"").header("Content-Length", &length).body(&piece, part).then(End::Close)
    });
    for connections in ["1", "4"] {
        let w = World::new();
        let ran = over(&w, &rig, connections).arg("--once").run();
        ran.exits(4);
        assert_eq!(w.list(&[])[0]["nbytes"].as_f64(), Some(HUGE as f64));
        let negative = ran.stderr.split(" -").skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        assert!(!negative, "a negative number: {ran}");
    }
    let asked = rig.asked();
    assert!(asked.iter().all(|a| (a.from() as u64) < HUGE), "asked beyond the end");
    assert!(asked.iter().any(|a| a.from() > 1 << 31), "never asked far out: {:?}", rig.froms());
}
