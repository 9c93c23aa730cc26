//! The bank of faults: bodies and files that end where they should not, or seem to (`docs/integrity.md`).

mod support;

use std::fs;
use std::sync::Arc;

use support::{End, Reply, Rig, Served, World, eventually, ms, noise};

const MB: usize = 1 << 20;

#[test]
fn junk_behind_the_whole_file_is_cut_off_and_no_416_loops() {
    let (w, data) = (World::new(), noise(500, 700_123));
    let all = Arc::new([data.as_slice(), &noise(501, 5_000)].concat());
    let (served, n) = (Served::new(&data), all.len());
    // More than the file comes, in chunks whose end does not.
    let rig = Rig::start(move |a| match a.n {
        0 => Reply::status(200).header("ETag", "\"one\"").body(&all, 0..n).chunked_without_end().then(End::Hang),
        _ => served.reply(a),
    });
    w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(n));
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    assert!(rig.count() <= 7, "{} requests", rig.count());
}

#[test]
fn whole_without_its_end_and_then_416_with_and_without_a_total() {
    for total in ["bytes */300007", "bytes */*"] {
        let (w, data) = (World::new(), noise(502, 300_007));
        let (served, body) = (Served::new(&data), Arc::clone(&data));
        let rig = Rig::start(move |a| match a.n {
            0 => Reply::status(200).header("ETag", "\"one\"").body(&body, 0..300_007).chunked_without_end(),
            _ if a.range().is_some() => Reply::page(416, "<p>nothing more</p>").header("Content-Range", total),
            _ => served.reply(a),
        });
        w.download(&rig.url("/f")).run().exits(0);
        w.holds(&data);
        assert!(rig.count() <= 8, "{} requests", rig.count());
    }
}

#[test]
fn nothing_stands_under_the_final_name_before_it_is_whole() {
    let (w, data) = (World::new(), noise(503, 900_000));
    let served = Served::new(&data);
    // Closed, reset and closed again, each time a little further.
    let rig = Rig::start(move |a| {
        let reply = served.reply(a).pace(30_000, ms(10));
        match a.n {
            0 | 2 => reply.cut(250_000, End::Close),
            1 => reply.cut(300_000, End::Reset),
            _ => reply,
        }
    });
    let (seen, watched) = (std::sync::Mutex::new(Vec::new()), w.out.clone());
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::SeqCst) {
                let size = fs::metadata(&watched).map(|m| m.len());
                seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(size);
                std::thread::sleep(ms(1));
            }
        });
        let ran = w.download(&rig.url("/f")).run();
        over.store(true, std::sync::atomic::Ordering::SeqCst);
        ran.exits(0);
    });
    w.holds(&data);
    let seen = seen.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    assert!(seen.iter().all(|n| *n == 900_000), "{:?} bytes stood there", seen.iter().min());
}

#[test]
fn chunks_that_break_off_in_a_size_in_an_end_or_in_the_trailer_are_a_cut() {
    let data = noise(504, 200_000);
    let framed = |end: &str| {
        let mut raw =
            b"HTTP/1.1 200 OK\r\nETag: \"one\"\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        raw.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
        raw.extend_from_slice(&data);
        raw.extend_from_slice(end.as_bytes());
        raw
    };
    for end in ["", "\r", "\r\n", "\r\n3e", "\r\n0", "\r\n0\r\n", "\r\n0\r\nX-Sum: 9"] {
        let (w, raw, served) = (World::new(), framed(end), Served::new(&data));
        let rig = Rig::start(move |a| if a.n == 0 { Reply::raw(raw.clone()) } else { served.reply(a) });
        w.download(&rig.url("/f")).run().exits(0);
        w.holds(&data);
        assert!(rig.count() > 1, "taken for whole at {end:?}");
    }
    let (w, raw) = (World::new(), framed("\r\n0\r\nX-Sum: 9\r\n\r\n"));
    let rig = Rig::start(move |_| Reply::raw(raw.clone()));
    w.download(&rig.url("/f")).run().exits(0);
    assert_eq!(rig.count(), 1, "a trailer that is whole is an end");
}

#[test]
fn what_is_cut_at_the_same_place_for_ever_fails_and_says_by_how_much() {
    let (w, data) = (World::new(), noise(505, 400_000));
    let served = Served::new(&data).no_ranges();
    let rig = Rig::start(move |a| served.reply(a).cut(150_000, End::Reset));
    w.download(&rig.url("/f")).give_up("2s").run().exits(3).says(&["150000 of 400000", "of 400000", "400000"]);
    w.holds_nothing();
}

#[test]
fn an_empty_file_is_one_where_every_range_of_it_is_refused_and_where_its_end_is_a_chunk() {
    let empty = noise(0, 0);
    for chunked in [false, true] {
        let (w, body) = (World::new(), Arc::clone(&empty));
        let rig = Rig::start(move |a| {
            if a.range().is_some() {
                return Reply::status(416).header("Content-Range", "bytes */0");
            }
            let reply = Reply::status(200).header("ETag", "\"none\"").body(&body, 0..0);
            if chunked { reply.chunked() } else { reply }
        });
        for _ in 0..2 {
            w.download(&rig.url("/f")).run().exits(0);
            w.holds(b"");
        }
        assert!(rig.count() <= 4, "{} requests for no bytes", rig.count());
    }
}

#[test]
fn head_is_never_asked_for() {
    let (w, data) = (World::new(), noise(506, 2 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(MB, End::Close) } else { served.reply(a) });
    w.download(&rig.url("/f")).run().exits(0);
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    assert_eq!(rig.heads(), 0);
}

#[test]
fn killed_before_anything_was_stored_with_and_without_its_state() {
    for lost in [false, true] {
        let (w, data) = (World::new(), noise(507, 3 * MB));
        let served = Served::new(&data);
        let slow = served.clone();
        let rig = Rig::start(move |a| slow.reply(a).pace(16 << 10, ms(30)));
        w.download(&rig.url("/f")).start().kill_when(|| rig.sent() > 100_000);
        w.holds_nothing();
        if lost {
            fs::remove_dir_all(w.path("state")).expect("it can be removed");
        }
        rig.now(move |a| served.reply(a));
        w.download(&rig.url("/f")).run().exits(0);
        w.holds(&data);
        eventually("nothing is left beside it", || w.leftovers().is_empty());
    }
}
