//! Downloads from mirrors, and over connections, that do not agree with each other: what was taken from an odd one goes,
//! nothing is mixed, and the right ones bring the file.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test says what it expects")]

mod support;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use support::rig::served::MODIFIED;
use support::{Asked, End, Px, Reply, Rig, Served, World, digest, eventually, ms, noise};

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

/// `data`, with other bytes in these places.
fn altered(data: &[u8], seed: u64, places: &[std::ops::Range<usize>]) -> Arc<Vec<u8>> {
    let (mut other, noise) = (data.to_vec(), noise(seed, data.len()));
    for place in places {
        other[place.clone()].copy_from_slice(&noise[place.clone()]);
    }
    Arc::new(other)
}

/// A range of at most `most` bytes, whatever was asked for; the label says so.
fn shortened(served: &Served, data: &Arc<Vec<u8>>, asked: &Asked, most: usize) -> Reply {
    let reply = served.reply(asked);
    match asked.range() {
        Some((from, _)) if reply.len() > most => {
            let label = format!("bytes {from}-{}/{}", from + most - 1, data.len());
            reply.body(data, from..from + most).instead("Content-Range", Some(&label))
        }
        _ => reply,
    }
}

fn over<'w>(w: &'w World, rig: &Rig, connections: &str) -> Px<'w> {
    w.download(&rig.url("/f")).args(&["-x", connections])
}

/// `address:port` of a rig.
fn address(rig: &Rig) -> String {
    rig.url("").replace("http://", "")
}

#[test]
fn what_a_mirror_brought_before_it_was_found_odd_is_fetched_again() {
    let (w, data) = (World::new(), noise(1700, 4 * MB));
    // Equal in the first 64 KiB, by which it is let in, and around the place where its first range begins and ends.
    let other = altered(&data, 1701, &[64 * KB..1200 * KB, 2600 * KB..3900 * KB]);
    let served = Served::new(&data).modified(MODIFIED);
    let good = Rig::start(move |a| served.reply(a).pace(64 * KB, ms(120)));
    // Nothing that it says speaks against it.
    let served = Served::new(&other).etag("\"other\"").modified(MODIFIED);
    let odd = Rig::start(move |a| served.reply(a));
    let ran = over(&w, &good, "2").mirror(&odd.url("/f")).run();
    ran.exits(0);
    w.holds(&data);
    assert!(odd.sent() > MB as u64, "it brought nothing that could be odd: {} bytes", odd.sent());
    ran.says(&[&address(&odd)]);
}

/// Whoever has the version that is held is gone for good: the odd one's is the file now. But that a few bytes which it sends in
/// its place are no file is known by what was known before.
#[test]
fn a_page_of_the_odd_mirror_is_no_file_when_its_turn_comes() {
    let (w, data, other) = (World::new(), noise(1703, 3 * MB), noise(1704, 3 * MB));
    let served = Served::new(&data).no_etag();
    let gone = Rig::start(move |a| match a.n {
        0 => served.reply(a).pace(64 * KB, ms(20)).cut(2 * MB, End::Reset),
        _ => Reply::status(401),
    });
    let served = Served::new(&other).no_etag();
    let pages = Arc::new(AtomicUsize::new(0));
    let shown = Arc::clone(&pages);
    let odd = Rig::start(move |a| match a.range() {
        None if shown.fetch_add(1, Ordering::SeqCst) < 2 => {
            Reply::page(200, "{\"wait\": \"please\"}").instead("Content-Type", Some("application/json"))
        }
        _ => served.reply(a),
    });
    let ran = over(&w, &gone, "2").mirror(&odd.url("/f")).run();
    ran.exits(0).says(&["nothing that vouches for them"]);
    w.holds(&other);
    assert!(pages.load(Ordering::SeqCst) > 2, "the page was not shown:\n{ran}");
}

#[test]
fn where_a_validator_is_demanded_no_two_mirrors_are_mixed() {
    let data = noise(1702, 4 * MB);
    for connections in ["2", "8"] {
        let w = World::new();
        let rigs = [1, 2, 3].map(|n| {
            let served = Served::new(&data).etag(&format!("\"{n}\""));
            Rig::start(move |a| served.reply(a).pace(64 * KB, ms(4)))
        });
        let px = over(&w, &rigs[0], connections).mirror(&rigs[1].url("/f")).mirror(&rigs[2].url("/f"));
        px.args(&["--require-evidence", "validator"]).run().exits(0).says(&["validator"]);
        w.holds(&data);
        let asked = rigs.each_ref().map(Rig::count);
        assert_eq!(asked.iter().filter(|n| **n > 0).count(), 1, "{asked:?}");
    }
}

#[test]
fn servers_that_end_each_range_early_are_asked_on() {
    for (connections, most) in [("1", 64 * KB), ("1", 64 * KB + 1), ("4", 64 * KB), ("4", 64 * KB + 1)] {
        let (w, data) = (World::new(), noise(1703, 3 * MB + 11));
        let (served, all) = (Served::new(&data), Arc::clone(&data));
        let rig = Rig::start(move |a| match a.n {
            0 => served.reply(a).cut(400_000, End::Close),
            _ => shortened(&served, &all, a, most),
        });
        over(&w, &rig, connections).run().exits(0);
        w.holds(&data);
        let sent = rig.sent();
        assert!(sent < (data.len() * 7 / 4) as u64, "{connections} {most}: {sent} bytes for {}", data.len());
    }
}

/// Sends what is stale, until it is asked past all caches.
fn cache(stale: &Arc<Vec<u8>>, data: &Arc<Vec<u8>>) -> Rig {
    let (stale, fresh) = (Served::new(stale), Served::new(data));
    Rig::start(move |a| {
        let served = if a.header("cache-control") == Some("no-cache") { &fresh } else { &stale };
        served.reply(a).pace(64 * KB, ms(4))
    })
}

fn hex(data: &[u8]) -> String {
    digest("sha-256", data).split_once('=').map(|(_, hex)| hex.to_owned()).expect("ALGORITHM=HEX")
}

#[test]
fn a_wrong_piece_is_asked_for_again_past_the_caches() {
    const PIECE: usize = 256 * KB;
    let (w, data) = (World::new(), noise(1704, 3 * MB));
    let stale = altered(&data, 1705, &[3 * PIECE + 7..3 * PIECE + 99, 7 * PIECE + 7..7 * PIECE + 99]);
    let rig = cache(&stale, &data);
    let pieces: String = data.chunks(PIECE).map(|p| format!("<hash>{}</hash>", hex(p))).collect();
    let text = format!(
        "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"f\"><size>{}</size>\
         <pieces type=\"sha-256\" length=\"{PIECE}\">{pieces}</pieces><url>{}</url></file></metalink>",
        data.len(),
        rig.url("/f")
    );
    fs::write(w.path("list.meta4"), text).expect("written");
    let px = w.px(["download", "--min-delay", "20ms", "--max-delay", "100ms", "--give-up", "10s", "-M"]);
    px.arg(w.path("list.meta4")).arg("-o").arg(&w.out).args(&["-x", "2"]).run().exits(0).says(&["digest"]);
    w.holds(&data);
}

#[test]
fn a_wrong_digest_is_asked_for_again_past_the_caches() {
    for mirrors in [1, 3] {
        let (w, data) = (World::new(), noise(1706, 3 * MB));
        let stale = altered(&data, 1707, &[MB..MB + 10, 2 * MB..2 * MB + 10]);
        let rigs: Vec<Rig> = (0..mirrors).map(|_| cache(&stale, &data)).collect();
        let px = rigs[1..].iter().fold(over(&w, &rigs[0], "4"), |px, rig| px.mirror(&rig.url("/f")));
        px.args(&["--checksum", &digest("sha-256", &data)]).run().exits(0).says(&["digest"]);
        w.holds(&data);
        let sent: u64 = rigs.iter().map(Rig::sent).sum();
        assert!(sent < (data.len() * 5 / 2) as u64, "{mirrors}: {sent} bytes for {}", data.len());
    }
}

#[test]
fn a_server_that_leaves_every_further_connection_silent_is_asked_over_one() {
    let (w, data) = (World::new(), noise(1712, 24 * MB));
    let (served, silent) = (Served::new(&data), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&silent);
    let rig = Rig::start(move |a| {
        if a.beside > 0 {
            count.fetch_add(1, Ordering::SeqCst);
            return Reply::status(503).late(ms(600_000));
        }
        served.reply(a).pace(64 * KB, ms(25))
    });
    let run = over(&w, &rig, "4").start();
    eventually("it was asked over several connections", || silent.load(Ordering::SeqCst) >= 2);
    run.end().exits(0);
    w.holds(&data);
    let silent = silent.load(Ordering::SeqCst);
    assert!(silent <= 5, "{silent} requests were left without an answer: {:?}", rig.asked().len());
}

/// Two backends behind one name, in an order that is another one in each turn and looks like chance.
fn two_backends(one: &Arc<Vec<u8>>, two: &Arc<Vec<u8>>, tags: (&str, &str), turn: usize) -> Rig {
    let (a, b) = (Served::new(one).etag(tags.0), Served::new(two).etag(tags.1));
    Rig::start(move |q| {
        let draw = (q.n + turn * 31).wrapping_mul(0x9E37_79B9) >> 13 & 1;
        if draw == 0 { a.reply(q).pace(64 * KB, ms(5)) } else { b.reply(q).pace(64 * KB, ms(5)) }
    })
}

/// Of which version the file is, 64 KiB a letter.
fn map(held: &[u8], one: &[u8], two: &[u8]) -> String {
    let block = |(n, block): (usize, &[u8])| match n * 64 * KB..n * 64 * KB + block.len() {
        place if *block == one[place.clone()] => 'a',
        place if *block == two[place.clone()] => 'b',
        _ => '?',
    };
    held.chunks(64 * KB).enumerate().map(block).collect()
}

#[test]
fn one_name_with_two_versions_behind_it_never_becomes_a_mixed_file() {
    for tags in [("\"a\"", "\"b\""), ("\"s\"", "\"s\""), ("W/\"a\"", "W/\"b\"")] {
        for turn in 0..4 {
            let (w, one, two) = (World::new(), noise(1708, 3 * MB), noise(1709, 3 * MB));
            let rig = two_backends(&one, &two, tags, turn);
            let ran = over(&w, &rig, "4").give_up("10s").run();
            ran.exits(0);
            let held = fs::read(&w.out).unwrap();
            assert!(held == *one || held == *two, "{tags:?} {turn}: {}\n{ran}", map(&held, &one, &two));
            assert!(rig.sent() < 5 * 3 * MB as u64, "{tags:?} {turn}: {} bytes", rig.sent());
        }
    }
}

#[test]
fn what_was_not_yet_compared_when_it_was_stopped_is_compared_later() {
    // The same tag over both versions: only the bytes tell.
    for turn in 1..3 {
        let (w, one, two) = (World::new(), noise(1710, 3 * MB), noise(1711, 3 * MB));
        let rig = two_backends(&one, &two, ("\"s\"", "\"s\""), turn);
        let mut ran = over(&w, &rig, "4").args(&["--max-time", "150ms"]).run();
        for _ in 0..12 {
            if ran.exits_one_of(&[0, 4]).succeeded() {
                break;
            }
            ran = over(&w, &rig, "4").args(&["--max-time", "150ms"]).run();
        }
        ran = over(&w, &rig, "1").run();
        ran.exits(0);
        let held = fs::read(&w.out).unwrap();
        assert!(held == *one || held == *two, "{turn}: {}\n{ran}", map(&held, &one, &two));
    }
}

#[test]
fn mirrors_that_differ_from_what_is_held_take_over_once_its_origin_is_gone() {
    for digest_known in [false, true] {
        let (w, stale, data) = (World::new(), noise(1713, 3 * MB), noise(1714, 3 * MB));
        let served = Served::new(&stale);
        let first = Rig::start(move |a| match a.n {
            0 => served.reply(a).pace(64 * KB, ms(5)).cut(400_000, End::Reset),
            _ => Reply::status(404),
        });
        let others = ["\"b\"", "\"c\""].map(|tag| {
            let served = Served::new(&data).etag(tag);
            Rig::start(move |a| served.reply(a).pace(64 * KB, ms(5)))
        });
        let px = others.iter().fold(over(&w, &first, "3"), |px, rig| px.mirror(&rig.url("/f")));
        let sum = digest("sha-256", &data);
        let ran = if digest_known { px.args(&["--checksum", &sum]).run() } else { px.run() };
        ran.exits(0);
        w.holds(&data);
        if !digest_known {
            ran.says(&["the file changed"]);
        }
    }
}

#[test]
fn a_slow_first_mirror_does_not_hold_up_the_others() {
    for digest_known in [false, true] {
        let (w, data) = (World::new(), noise(1715, 2 * MB));
        let served = Served::new(&data).modified(MODIFIED);
        // 64 KiB would take it 16 seconds.
        let first = Rig::start(move |a| served.reply(a).pace(KB, ms(250)));
        let served = Served::new(&data).etag("\"b\"").modified(MODIFIED);
        let fast = Rig::start(move |a| served.reply(a));
        let px = over(&w, &first, "2").mirror(&fast.url("/f"));
        let sum = digest("sha-256", &data);
        let run = if digest_known { px.args(&["--checksum", &sum]).start() } else { px.start() };
        eventually("the other one is asked", || fast.sent() > 100_000);
        assert!(first.sent() < 50_000, "only after {} bytes of the first", first.sent());
        if digest_known {
            assert!(first.sent() < 8_000, "only after {} bytes of the first", first.sent());
        }
        run.end().exits(0);
        w.holds(&data);
    }
}
