//! Answers to range requests that are not what was asked for: 200, 206 of another range, 416, multipart (design 3.4, 3.5).

mod support;

use std::sync::Arc;

use support::{Asked, End, Reply, Rig, Served, World, noise};

const MB: usize = 1 << 20;

/// The first session breaks off at 1 MiB; the second gets `odd`; all others are right.
fn second_is<F>(data: &Arc<Vec<u8>>, odd: F) -> impl Fn(&Asked) -> Reply + use<F>
where
    F: Fn(&Asked, &Arc<Vec<u8>>) -> Reply,
{
    let (served, data) = (Served::new(data), Arc::clone(data));
    move |a| match a.n {
        0 => served.reply(a).cut(MB, End::Close),
        1 => odd(a, &data),
        _ => served.reply(a),
    }
}

/// A 206 of these bytes that claims to be the range `claims`.
fn claiming(data: &Arc<Vec<u8>>, part: std::ops::Range<usize>, claims: &str) -> Reply {
    Reply::status(206).header("ETag", "\"one\"").header("Content-Range", claims).body(data, part)
}

#[track_caller]
fn ends_right(odd: impl Fn(&Asked, &Arc<Vec<u8>>) -> Reply + Send + Sync + 'static) -> (Rig, World) {
    let (w, data) = (World::new(), noise(60, 2 * MB));
    let rig = Rig::start(second_is(&data, odd));
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    assert!(rig.count() <= 10, "{} requests", rig.count());
    (rig, w)
}

#[test]
fn the_whole_file_in_place_of_a_range_is_read_through() {
    ends_right(|_, d| Reply::status(200).header("ETag", "\"one\"").body(d, 0..2 * MB));
}

#[test]
fn ranges_never_answered_and_cut_at_other_places_each_time() {
    let (w, data) = (World::new(), noise(61, 2 * MB));
    let served = Served::new(&data).no_ranges();
    let rig =
        Rig::start(move |a| served.reply(a).cut([400_000, 1_900_000, 1_000_000, usize::MAX][a.n.min(3)], End::Close));
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn a_whole_file_that_brings_no_byte_does_not_cost_the_part() {
    let (rig, _w) =
        ends_right(|_, d| Reply::status(200).header("ETag", "\"one\"").body(d, 0..2 * MB).cut(0, End::Close));
    assert!(rig.asked()[2..].iter().any(|a| a.from() > MB / 2), "begun again from nothing");
}

#[test]
fn a_range_that_starts_earlier_is_compared_and_used() {
    let (rig, _w) = ends_right(|_, d| claiming(d, 1000..2 * MB, &format!("bytes 1000-{}/{}", 2 * MB - 1, 2 * MB)));
    assert_eq!(rig.count(), 2, "an earlier start is no failure");
}

#[test]
fn a_range_that_ends_sooner_is_used_and_the_rest_asked_at_once() {
    let (w, data) = (World::new(), noise(60, 2 * MB));
    let served = Served::new(&data);
    let body = Arc::clone(&data);
    let rig = Rig::start(move |a| match a.n {
        0 => served.reply(a).cut(MB, End::Close),
        1..4 => {
            let (from, to) = (a.from(), a.from() + 250_000);
            claiming(&body, from..to, &format!("bytes {from}-{}/{}", to - 1, 2 * MB))
        }
        _ => served.reply(a),
    });
    // A short range is no failure, so none of the hour-long delays is waited for.
    w.download(&rig.url("/f")).delays("1h", "2h").run().exits(0);
    w.holds(&data);
}

#[test]
fn a_range_without_its_total_is_good() {
    ends_right(|a, d| claiming(d, a.from()..2 * MB, &format!("bytes {}-{}/*", a.from(), 2 * MB - 1)));
}

#[test]
fn a_range_that_starts_behind_what_was_asked_leaves_no_hole() {
    ends_right(|_, d| claiming(d, 1_500_000..2 * MB, &format!("bytes 1500000-{}/{}", 2 * MB - 1, 2 * MB)));
}

#[test]
fn the_head_of_the_file_under_the_label_of_its_rest_is_found_out() {
    ends_right(|a, d| {
        let n = 2 * MB - a.from();
        claiming(d, 0..n, &format!("bytes {}-{}/{}", a.from(), 2 * MB - 1, 2 * MB))
    });
}

#[test]
fn a_206_without_a_readable_content_range_is_not_written() {
    for claims in ["", "bytes", "bytes 5-4/9", "items 0-9/10", "bytes 99999999999999999999-99999999999999999999/*"] {
        ends_right(move |_, d| claiming(d, 0..2 * MB, claims));
    }
    ends_right(|_, d| Reply::status(206).header("ETag", "\"one\"").body(d, 0..2 * MB));
}

#[test]
fn a_206_with_another_total_is_another_file() {
    ends_right(|a, d| claiming(d, a.from()..2 * MB - 5, &format!("bytes {}-{}/{}", a.from(), 2 * MB - 6, 2 * MB - 5)));
}

#[test]
fn a_multipart_answer_is_refused_and_several_ranges_are_never_asked_for() {
    let (rig, _w) = ends_right(|a, d| {
        let from = a.from();
        let mut body = format!("--X\r\nContent-Range: bytes {from}-{}/{}\r\n\r\n", 2 * MB - 1, 2 * MB).into_bytes();
        body.extend_from_slice(&d[from..]);
        body.extend_from_slice(b"\r\n--X--\r\n");
        let (n, body) = (body.len(), Arc::new(body));
        Reply::status(206).header("Content-Type", "multipart/byteranges; boundary=X").body(&body, 0..n)
    });
    assert!(rig.asked().iter().all(|a| a.header("range").is_none_or(|r| !r.contains(','))));
}

#[test]
fn a_206_that_nobody_asked_for_is_no_file() {
    let (w, data) = (World::new(), noise(62, MB));
    let (served, body) = (Served::new(&data), Arc::clone(&data));
    let rig = Rig::start(move |a| match a.n {
        0 => claiming(&body, 0..500_000, "bytes 0-499999/1048576"),
        _ => served.reply(a),
    });
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn other_success_statuses_bring_no_file() {
    for status in [204, 205] {
        let w = World::new();
        let rig = Rig::start(move |_| Reply::raw(format!("HTTP/1.1 {status} X\r\n\r\n")));
        w.download(&rig.url("/f")).give_up("1s").run().exits(3);
        w.holds_nothing();
    }
}

#[test]
fn a_416_whose_total_is_what_is_held_means_verify_and_finish() {
    let (w, data) = (World::new(), noise(63, MB));
    let (served, body) = (Served::new(&data), Arc::clone(&data));
    // Everything comes, and then the last chunk does not: whole, and not known to be.
    let rig = Rig::start(move |a| match a.n {
        0 => Reply::status(200).header("ETag", "\"one\"").body(&body, 0..MB).chunked_without_end().then(End::Hang),
        _ if a.from() > 0 && a.n < 4 => Reply::page(416, "<p>no</p>").header("Content-Range", "bytes */1048576"),
        _ => served.reply(a),
    });
    w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(MB));
    let before = rig.sent();
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    assert!(rig.count() <= 6, "{} requests", rig.count());
    assert!(rig.sent() - before < 2 * MB as u64, "{} bytes", rig.sent() - before);
}

#[test]
fn a_416_whose_total_is_less_than_held_means_begin_again() {
    let (w, old, new) = (World::new(), noise(64, 2 * MB), noise(65, 300_000));
    let (old, served) = (Served::new(&old).no_etag(), Served::new(&new).no_etag());
    let rig = Rig::start(move |a| if a.n == 0 { old.reply(a).cut(MB, End::Close) } else { served.reply(a) });
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&new);
    assert!(rig.count() <= 8, "{} requests", rig.count());
}

#[test]
fn a_416_to_a_range_that_exists_means_ask_plainly() {
    for total in ["bytes */2097152", "bytes */*", ""] {
        let (w, data) = (World::new(), noise(66, 2 * MB));
        let served = Served::new(&data);
        let rig = Rig::start(move |a| match a.n {
            0 => served.reply(a).cut(MB, End::Close),
            _ if a.range().is_some() => Reply::page(416, "<p>no</p>").header("Content-Range", total),
            _ => served.reply(a),
        });
        w.download(&rig.url("/f")).run().exits(0);
        w.holds(&data);
        assert!(rig.asked().last().unwrap().range().is_none());
        assert!(rig.count() <= 10, "{} requests", rig.count());
    }
}

#[test]
fn a_416_to_a_plain_request_for_ever_is_no_success() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::page(416, "<p>no</p>").header("Content-Range", "bytes */0"));
    w.download(&rig.url("/f")).give_up("1s").run().exits(3);
    w.holds_nothing();
}

#[test]
fn a_length_that_contradicts_the_chunks_never_makes_a_wrong_file() {
    for n in ["1000", "900000"] {
        let (w, data) = (World::new(), noise(67, 500_000));
        let body = Arc::clone(&data);
        let rig = Rig::start(move |_| {
            Reply::status(200).header("Content-Length", n).body(&body, 0..500_000).chunked().then(End::Close)
        });
        let ran = w.download(&rig.url("/f")).give_up("2s").run();
        if ran.succeeded() {
            w.holds(&data)
        } else {
            ran.exits(3);
        }
    }
}

#[test]
fn the_size_once_told_unmasks_a_short_body_without_a_length() {
    let (w, data) = (World::new(), noise(68, 1_800_000));
    let (served, body) = (Served::new(&data), Arc::clone(&data));
    let rig = Rig::start(move |a| match a.n {
        0 => served.reply(a).cut(500_000, End::Close),
        1 => Reply::status(200).header("ETag", "\"one\"").body(&body, 0..1_300_000).http10(),
        _ => Reply::status(200).header("ETag", "\"one\"").body(&body, 0..1_800_000).http10(),
    });
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}
