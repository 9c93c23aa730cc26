//! The bank of faults: other bytes than before under the same URL, and other URLs for the same bytes (`docs/integrity.md`).

mod support;

use std::fs;
use std::sync::Arc;

use support::{Asked, End, Reply, Rig, Served, World, digest, gzip, noise};

const MB: usize = 1 << 20;

#[test]
fn a_small_object_in_a_large_ones_place_that_is_cut_itself() {
    for tags in [("\"a\"", "\"b\""), ("\"same\"", "\"same\"")] {
        let (w, old, new) = (World::new(), noise(520, 2 * MB), noise(521, 210_000));
        let (a, b) = (Served::new(&old).etag(tags.0), Served::new(&new).etag(tags.1));
        let rig = Rig::start(move |q: &Asked| match q.n {
            0 => a.reply(q).cut(MB + 77, End::Close),
            // Whatever is asked for, the first time it breaks off.
            1 => b.reply(q).cut(90_000, End::Reset),
            _ => b.reply(q),
        });
        let ran = w.download(&rig.url("/f")).give_up("4s").run();
        // One tag for two sizes is a contradiction: refusing is right there, and so is the new file.
        if tags.0 == tags.1 && !ran.succeeded() {
            ran.exits(3).says(&["the same validator"]);
            w.holds_nothing();
            continue;
        }
        ran.exits(0);
        w.holds(&new);
        assert!(rig.count() <= 12, "{} requests", rig.count());
    }
}

#[test]
fn a_log_that_grows_while_it_is_fetched_is_one_of_its_states_or_a_clear_end() {
    let all = noise(522, 2 * MB);
    let size = |n: usize| (300_000 + 9_001 * n).min(2 * MB);
    for tagged in [true, false] {
        let (w, data) = (World::new(), Arc::clone(&all));
        let rig = Rig::start(move |a| {
            let now = Arc::new(data[..size(a.n)].to_vec());
            let served = Served::new(&now).etag(&format!("\"{}\"", a.n));
            let served = if tagged { served } else { served.no_etag() };
            served.reply(a).cut(130_000, End::Close)
        });
        let ran = w.download(&rig.url("/log")).give_up("4s").run();
        if ran.succeeded() {
            let held = fs::read(&w.out).expect("it is there");
            assert!((0..rig.count()).any(|n| held == all[..size(n)]), "{} bytes were no state of it", held.len());
        } else {
            ran.exits(3);
            w.holds_nothing();
        }
        assert!(rig.count() < 300, "{} requests", rig.count());
    }
}

#[test]
fn an_equals_sign_in_content_range_is_read_or_refused() {
    for unit in ["bytes=", "bytes:", "Bytes "] {
        let (w, data) = (World::new(), noise(523, 500_001));
        let (served, body) = (Served::new(&data), Arc::clone(&data));
        let rig = Rig::start(move |a| match (a.n, a.range()) {
            (0, _) => served.reply(a).cut(333_333, End::Close),
            (_, Some((from, _))) => {
                let label = format!("{unit}{from}-500000/500001");
                let reply = Reply::status(206).header("ETag", "\"one\"").header("Content-Range", &label);
                reply.body(&body, from..500_001)
            }
            _ => served.reply(a),
        });
        w.download(&rig.url("/f")).run().exits(0);
        w.holds(&data);
    }
}

#[test]
fn the_name_of_an_unfinished_file_used_for_another_url_is_no_splice() {
    for size in [2 * MB, MB / 2] {
        let (w, old, new) = (World::new(), noise(524, 2 * MB), noise(525, size));
        let (a, b) = (Served::new(&old), Served::new(&new));
        let first = Rig::start(move |q| a.reply(q).cut(MB, End::Hang));
        let second = Rig::start(move |q| b.reply(q));
        w.download(&first.url("/old")).start().kill_when(|| first.has_sent(MB));
        let ran = w.download(&second.url("/new")).give_up("4s").run();
        if ran.succeeded() {
            w.holds(&new);
        } else {
            ran.exits_one_of(&[2, 3, 5]);
            w.holds_nothing();
        }
        assert!(!ran.stderr.contains("-1"), "{ran}");
    }
}

#[test]
fn a_part_of_one_coding_is_never_gone_on_with_in_another() {
    let (w, plain) = (World::new(), support::cyclic_text(600_000));
    let coded = gzip(&plain);
    let (a, b) =
        (Served::new(&plain).etag("\"t\""), Served::new(&coded).etag("\"t\"").header("Content-Encoding", "gzip"));
    let rig = Rig::start(move |q| match q.n {
        0 => a.reply(q).cut(250_000, End::Close),
        1..4 => b.clone().blind().reply(q),
        _ => a.reply(q),
    });
    w.download(&rig.url("/notes.txt")).run().exits(0);
    w.holds(&plain);
}

#[test]
fn changed_busy_and_cut_at_once() {
    let (w, old, new) = (World::new(), noise(526, 800_000), noise(527, 800_000));
    let (a, b) = (Served::new(&old).etag("\"1\""), Served::new(&new).etag("\"2\"").blind());
    let rig = Rig::start(move |q| match q.n {
        0 => a.reply(q).cut(400_000, End::Reset),
        1 => Reply::page(503, "<p>busy</p>").header("Retry-After", "0"),
        2 => b.reply(q).cut(100_000, End::Close),
        3 => Reply::raw(""),
        4 => b.reply(q).cut(100_000, End::Reset),
        _ => b.reply(q),
    });
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&new);
}

#[test]
fn one_flipped_byte_and_a_cut_are_mended_by_the_other_mirror() {
    let (w, data) = (World::new(), noise(528, 900_000));
    let mut bad = data.to_vec();
    bad[123_456] ^= 0x10;
    let (bad, good) = (Served::new(&Arc::new(bad)), Served::new(&data));
    let corrupt = Rig::start(move |q| if q.n == 0 { bad.reply(q).cut(500_000, End::Close) } else { bad.reply(q) });
    let right = Rig::start(move |q| if q.n == 0 { Reply::status(502) } else { good.reply(q) });
    let px = w.download(&corrupt.url("/f")).mirror(&right.url("/f"));
    px.args(&["--checksum", &digest("sha-256", &data)]).run().exits(0).says(&["digest"]);
    w.holds(&data);
    assert!(corrupt.count() <= 6, "{} requests to the corrupt one", corrupt.count());
}

#[test]
fn a_size_without_bounds_told_once_does_not_outweigh_the_digest() {
    // The head of an exabyte, and then the file: with the tag that the lie had, with a weak one, with none.
    for tag in [Some("\"one\""), Some("W/\"w\""), None] {
        let (w, data) = (World::new(), noise(529, 300_000));
        let served = Served::new(&data);
        let served = tag.map_or_else(|| served.clone().no_etag(), |tag| served.clone().etag(tag));
        let rig = Rig::start(move |a| match a.n {
            0 => served.reply(a).chunked().cut(120_000, End::Close),
            1 => served.clone().no_ranges().reply(a).header("Content-Length", "1152921504606846976").then(End::Close),
            _ => served.reply(a),
        });
        let px = || w.download(&rig.url("/f")).args(&["--checksum", &digest("sha-256", &data)]);
        // No disk has room for that; which may be called local trouble once, and not for ever.
        px().run().exits_one_of(&[0, 5]);
        px().run().exits(0);
        w.holds(&data);
    }
}

#[test]
fn a_mirror_that_tells_of_an_exabyte_does_not_stop_the_others() {
    let (w, data) = (World::new(), noise(540, 300_000));
    let (lying, honest) = (Served::new(&data), Served::new(&data));
    let huge = move |a: &support::Asked| {
        lying.clone().no_ranges().reply(a).header("Content-Length", "1152921504606846976").then(End::Close)
    };
    let (a, b) = (Rig::start(huge), Rig::start(move |asked| honest.reply(asked)));
    w.download(&a.url("/f")).mirror(&b.url("/f")).delays("1h", "2h").run().exits(0);
    w.holds(&data);
}
