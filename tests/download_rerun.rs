//! The same command again after the file has arrived, and files at the target that are not ours (design 3.9, 3.10).
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use support::rig::served::{MODIFIED, MODIFIED_LATER};
use support::{End, Reply, Rig, Served, World, digest, noise};

/// Inode and modification time: what changes when a file is written again.
fn identity(w: &World) -> (u64, i64, i64) {
    let m = fs::metadata(&w.out).unwrap();
    (m.ino(), m.mtime(), m.mtime_nsec())
}

fn rig(served: Served) -> Rig {
    Rig::start(move |a| served.reply(a))
}

#[test]
fn unchanged_on_the_server_nothing_is_fetched_or_touched() {
    let data = noise(160, 900_000);
    for served in [Served::new(&data), Served::new(&data).no_etag().modified(MODIFIED)] {
        let w = World::new();
        let rig = rig(served);
        w.download(&rig.url("/f")).run().exits(0);
        let (before, sent) = (identity(&w), rig.sent());
        w.download(&rig.url("/f")).run().exits(0);
        assert_eq!(identity(&w), before);
        assert!(rig.sent() - sent < 10_000, "{} bytes were sent", rig.sent() - sent);
        let last = rig.asked().pop().unwrap();
        assert!(last.header("if-none-match").is_some() || last.header("if-modified-since").is_some());
    }
}

#[test]
fn with_a_weak_tag_the_file_is_right_again_whatever_that_costs() {
    // A weak tag says "as good as", not "the same": asking by it is allowed, and so is fetching anew.
    let (w, data) = (World::new(), noise(177, 300_000));
    let rig = rig(Served::new(&data).etag("W/\"w\""));
    w.download(&rig.url("/f")).run().exits(0);
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn a_416_or_a_whole_answer_of_the_same_tag_is_unchanged_too() {
    for stubborn in [200, 416] {
        let (w, data) = (World::new(), noise(161, 900_000));
        let served = Served::new(&data);
        let body = Arc::clone(&data);
        let rig = Rig::start(move |a| match (a.n, stubborn) {
            (0, _) => served.reply(a),
            (_, 416) if a.range().is_some() => Reply::page(416, "no").header("Content-Range", "bytes */900000"),
            _ => Reply::status(200).header("ETag", "\"one\"").body(&body, 0..900_000),
        });
        w.download(&rig.url("/f")).run().exits(0);
        let before = identity(&w);
        w.download(&rig.url("/f")).run().exits(0);
        w.holds(&data);
        assert_eq!(identity(&w), before, "written again after a {stubborn}");
    }
}

#[test]
fn changed_on_the_server_and_ours_here_it_is_replaced() {
    let (w, old, new) = (World::new(), noise(162, 500_000), noise(163, 700_001));
    let rig = rig(Served::new(&old).etag("\"old\"").modified(MODIFIED));
    w.download(&rig.url("/f")).run().exits(0);
    let served = Served::new(&new).etag("\"new\"").modified(MODIFIED_LATER);
    rig.now(move |a| served.reply(a));
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&new);
}

#[test]
fn changed_on_the_server_and_cut_the_old_file_stands_until_the_new_is_whole() {
    let (w, old, new) = (World::new(), noise(164, 500_000), noise(165, 900_000));
    let rig = rig(Served::new(&old).etag("\"old\""));
    w.download(&rig.url("/f")).run().exits(0);
    let served = Served::new(&new).etag("\"new\"");
    let cut = served.clone();
    rig.now(move |a| cut.reply(a).cut(400_000, End::Hang));
    let sent = rig.sent() as usize;
    w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(sent + 400_000));
    w.holds(&old);
    rig.now(move |a| served.reply(a));
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&new);
}

#[test]
fn a_file_changed_here_is_the_users_and_is_kept() {
    let (w, old, new) = (World::new(), noise(166, 500_000), noise(167, 500_000));
    let rig = rig(Served::new(&old).etag("\"old\""));
    w.download(&rig.url("/f")).run().exits(0);
    fs::write(&w.out, "my notes\n").unwrap();
    let served = Served::new(&new).etag("\"new\"");
    rig.now(move |a| served.reply(a));
    w.download(&rig.url("/f")).run().exits_one_of(&[2, 3, 5]).says(&["out.bin"]);
    w.holds(b"my notes\n");
}

#[test]
fn a_file_edited_in_place_is_not_called_complete() {
    let (w, data) = (World::new(), noise(176, 500_000));
    let rig = rig(Served::new(&data));
    w.download(&rig.url("/f")).run().exits(0);
    // The inode stays: only size and time tell that these are other bytes.
    fs::write(&w.out, "my notes\n").unwrap();
    w.download(&rig.url("/f")).run().exits_one_of(&[2, 3, 5]).says(&["out.bin"]);
    w.holds(b"my notes\n");
}

#[test]
fn a_file_removed_here_is_fetched_again() {
    let (w, data) = (World::new(), noise(168, 500_000));
    let rig = rig(Served::new(&data));
    w.download(&rig.url("/f")).run().exits(0);
    fs::remove_file(&w.out).unwrap();
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn a_foreign_file_at_the_target_is_an_error_that_says_so() {
    let (w, data) = (World::new(), noise(169, 90_000));
    fs::write(&w.out, "mine\n").unwrap();
    let rig = rig(Served::new(&data));
    w.download(&rig.url("/f")).run().exits_one_of(&[2, 3, 5]).says(&["out.bin"]).says(&["--overwrite"]);
    w.holds(b"mine\n");
    assert!(w.leftovers().is_empty());
}

#[test]
fn overwrite_replaces_it_once_the_download_is_whole() {
    let (w, data) = (World::new(), noise(170, 900_000));
    fs::write(&w.out, "mine\n").unwrap();
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(400_000, End::Hang) } else { served.reply(a) });
    w.download(&rig.url("/f")).arg("--overwrite").start().kill_when(|| rig.has_sent(400_000));
    w.holds(b"mine\n");
    w.download(&rig.url("/f")).arg("--overwrite").run().exits(0);
    w.holds(&data);
}

#[test]
fn no_clobber_keeps_it_and_asks_nobody() {
    let (w, data) = (World::new(), noise(171, 90_000));
    fs::write(&w.out, "mine\n").unwrap();
    let rig = rig(Served::new(&data));
    w.download(&rig.url("/f")).arg("--no-clobber").run().exits(0);
    w.holds(b"mine\n");
    assert_eq!(rig.count(), 0);
}

#[test]
fn a_foreign_file_that_appears_while_we_download_is_kept() {
    let (w, data) = (World::new(), noise(172, 900_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(500_000, End::Hang) } else { served.reply(a) });
    let run = w.download(&rig.url("/f")).args(&["--stall-timeout", "1s"]).start();
    support::eventually("some bytes", || rig.has_sent(500_000));
    fs::write(&w.out, "mine\n").unwrap();
    run.end().exits_one_of(&[2, 3, 5]).says(&["out.bin"]);
    w.holds(b"mine\n");
}

#[test]
fn a_checksum_given_later_is_held_against_the_finished_file() {
    let (w, data) = (World::new(), noise(173, 300_000));
    let rig = rig(Served::new(&data));
    w.download(&rig.url("/f")).run().exits(0);
    w.download(&rig.url("/f")).args(&["--checksum", &digest("sha-256", &data)]).run().exits(0);
    w.download(&rig.url("/f")).args(&["--checksum", &digest("sha-256", b"x")]).give_up("5s").run().exits(3);
}

#[test]
fn another_url_for_a_finished_target_never_leaves_a_mix() {
    let (w, one, two) = (World::new(), noise(174, 300_000), noise(175, 400_000));
    let (a, b) = (rig(Served::new(&one).etag("\"a\"")), rig(Served::new(&two).etag("\"b\"")));
    w.download(&a.url("/f")).run().exits(0);
    let ran = w.download(&b.url("/f")).run();
    if ran.succeeded() {
        w.holds(&two);
    } else {
        ran.exits_one_of(&[2, 3, 5]);
        w.holds(&one);
    }
}

#[test]
fn what_was_known_of_a_file_that_is_gone_still_tells_a_page_from_it() {
    let data = noise(178, 400_000);
    let pages: [fn() -> Reply; 3] = [
        || Reply::page(200, "<p>please log in</p>"),
        || Reply::status(200).body(&Arc::new(Vec::new()), 0..0),
        || Reply::status(200).header("Content-Type", "text/plain").body(&Arc::new(b"back soon".to_vec()), 0..9),
    ];
    for (n, page) in pages.into_iter().enumerate() {
        for cut in [false, true] {
            let w = World::new();
            let served = Served::new(&data);
            let rig = Rig::start(move |a| match a.n {
                0 if cut => served.reply(a).cut(200_000, End::Close),
                0 => served.reply(a),
                _ => page(),
            });
            let first = w.download(&rig.url("/f")).arg("--once").run();
            first.exits(if cut { 4 } else { 0 });
            fs::remove_file(if cut { w.part() } else { w.out.clone() }).unwrap();
            w.download(&rig.url("/f")).give_up("1s").run().exits_one_of(&[3, 4]);
            assert!(!w.out.exists(), "page {n} was taken for the file");
        }
    }
}

#[test]
fn a_file_that_stands_there_is_kept_where_that_is_asked_for_ours_or_not() {
    let (w, data, new) = (World::new(), noise(179, 30_000), noise(180, 30_000));
    let (old, new) = (Served::new(&data), Served::new(&new).etag("\"two\""));
    let rig = Rig::start(move |a| if a.n == 0 { old.reply(a) } else { new.reply(a) });
    w.download(&rig.url("/f")).run().exits(0);
    w.download(&rig.url("/f")).arg("--no-clobber").run().exits(0);
    w.holds(&data);
    assert_eq!(rig.count(), 1);
}

/// The server gives a date and nothing else, not even its own clock's; the file it has now is smaller, and later.
#[test]
fn a_finished_file_that_became_smaller_is_replaced_where_its_date_says_so() {
    for (date, code) in [(MODIFIED_LATER, 0), (MODIFIED, 4)] {
        let (w, old, new) = (World::new(), noise(178, 900_000), noise(179, 600_000));
        let first = Arc::clone(&old);
        let rig = Rig::start(move |_| Reply::status(200).header("Last-Modified", MODIFIED).body(&first, 0..900_000));
        w.download(&rig.url("/f")).run().exits(0);
        let second = Arc::clone(&new);
        rig.now(move |_| Reply::status(200).header("Last-Modified", date).body(&second, 0..600_000));
        w.download(&rig.url("/f")).args(&["--max-time", "3s"]).run().exits(code);
        w.holds(if code == 0 { &new } else { &old });
    }
}

/// The mirror that brought bytes is no more in the command; the one that is left was refused before, and is well now.
#[test]
fn a_mirror_refused_before_is_asked_afresh_where_no_other_is_left() {
    let (w, data) = (World::new(), noise(180, 900_000));
    let (served, well) = (Served::new(&data), Served::new(&data));
    let refusing = Rig::start(|_| Reply::status(403));
    let serving = Rig::start(move |a| served.reply(a).cut(500_000, End::Hang));
    let run = w.download(&refusing.url("/f")).mirror(&serving.url("/f")).start();
    let refused = || refusing.count() > 0 && serving.has_sent(500_000);
    run.signal_when(rustix::process::Signal::TERM, refused).end().exits(4);
    refusing.now(move |a| well.reply(a));
    w.download(&refusing.url("/f")).run().exits(0);
    w.holds(&data);
}
