//! Files that change on the server between two sessions, and pages that come in their place (design 3.2 to 3.4).
//!
//! Whatever the server says and whatever it lets us prove it by: the old bytes and the new ones never stand in one file.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use support::rig::served::{MODIFIED, MODIFIED_LATER};
use support::{Asked, End, Reply, Rig, Served, World, digest, noise};

const MB: usize = 1 << 20;

/// `old` breaks off at `n` bytes in the first session; from then on `new` is served.
fn replaced(old: Served, n: usize, new: Served) -> impl Fn(&Asked) -> Reply {
    move |a| if a.n == 0 { old.reply(a).cut(n, End::Close) } else { new.reply(a) }
}

/// In one run, and with a kill between: the new file arrives, or it fails and says so; nothing else.
#[track_caller]
fn new_content_arrives(old: Served, new: Served, content: &[u8]) {
    let w = World::new();
    let rig = Rig::start(replaced(old.clone(), MB, new.clone()));
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(content);
    assert!(rig.count() <= 8, "{} requests", rig.count());

    let w = World::new();
    let rig = Rig::start(move |a| old.reply(a).cut(MB, End::Hang));
    w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(MB));
    rig.now(move |a| new.reply(a));
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(content);
}

fn versions() -> (Arc<Vec<u8>>, Arc<Vec<u8>>) {
    (noise(50, 2 * MB), noise(51, 2 * MB))
}

#[test]
fn another_strong_tag_and_if_range_honoured() {
    let (a, b) = versions();
    new_content_arrives(Served::new(&a).etag("\"a\""), Served::new(&b).etag("\"b\""), &b);
}

#[test]
fn another_strong_tag_and_if_range_ignored() {
    let (a, b) = versions();
    new_content_arrives(Served::new(&a).etag("\"a\""), Served::new(&b).etag("\"b\"").blind(), &b);
}

#[test]
fn the_same_strong_tag_for_other_bytes() {
    let (a, b) = versions();
    new_content_arrives(Served::new(&a), Served::new(&b), &b);
}

#[test]
fn the_same_weak_tag_for_other_bytes() {
    let (a, b) = versions();
    new_content_arrives(Served::new(&a).etag("W/\"w\""), Served::new(&b).etag("W/\"w\"").blind(), &b);
}

#[test]
fn no_validator_at_all() {
    let (a, b) = versions();
    new_content_arrives(Served::new(&a).no_etag(), Served::new(&b).no_etag(), &b);
}

#[test]
fn another_date_and_if_range_ignored() {
    let (a, b) = versions();
    let old = Served::new(&a).no_etag().modified(MODIFIED);
    new_content_arrives(old, Served::new(&b).no_etag().modified(MODIFIED_LATER).blind(), &b);
}

#[test]
fn the_same_date_for_other_bytes() {
    let (a, b) = versions();
    let old = Served::new(&a).no_etag().modified(MODIFIED);
    new_content_arrives(old, Served::new(&b).no_etag().modified(MODIFIED), &b);
}

#[test]
fn a_longer_and_a_shorter_version() {
    let (a, _) = versions();
    for size in [3 * MB + 1, MB + 9, MB / 3] {
        let b = noise(52, size);
        new_content_arrives(Served::new(&a).etag("\"a\""), Served::new(&b).etag("\"b\"").blind(), &b);
        new_content_arrives(Served::new(&a).no_etag(), Served::new(&b).no_etag(), &b);
    }
}

#[test]
fn a_version_that_only_grew_is_whole_and_exact() {
    let all = noise(53, 3 * MB);
    let short = Arc::new(all[..2 * MB].to_vec());
    new_content_arrives(Served::new(&short).etag("\"1\""), Served::new(&all).etag("\"2\""), &all);
}

#[test]
fn a_change_deep_in_what_is_held_is_found_by_the_digest() {
    // The tail that a resume compares is the same in both versions: only the checksum can tell.
    let (w, old) = (World::new(), noise(54, 2 * MB));
    let mut new = old.to_vec();
    new[1000] ^= 0x55;
    let new = Arc::new(new);
    let rig = Rig::start(replaced(Served::new(&old).no_etag(), MB, Served::new(&new).no_etag()));
    w.download(&rig.url("/f")).args(&["--checksum", &digest("sha-256", &new)]).run().exits(0);
    w.holds(&new);
}

#[test]
fn another_version_with_each_session_ends_and_says_so() {
    let w = World::new();
    let rig = Rig::start(|a| {
        let data = noise(1000 + a.n as u64, 900_000 + 501 * a.n);
        Served::new(&data).etag(&format!("\"{}\"", a.n)).reply(a).cut(500_000, End::Close)
    });
    w.download(&rig.url("/f")).give_up("5s").run().exits(3).says(&["chang"]);
    w.holds_nothing();
    assert!(rig.count() < 200, "{} requests", rig.count());
}

#[test]
fn two_versions_that_alternate_end_as_one_of_them() {
    let (w, (a, b)) = (World::new(), versions());
    let (one, two) = (Served::new(&a).etag("\"a\""), Served::new(&b).etag("\"b\""));
    let rig = Rig::start(move |asked| {
        let served = if asked.n % 2 == 0 { &one } else { &two };
        if asked.n < 2 { served.reply(asked).cut(MB, End::Close) } else { served.reply(asked) }
    });
    w.download(&rig.url("/f")).run().exits(0);
    let held = std::fs::read(&w.out).unwrap();
    assert!(held == *a || held == *b, "a mix of two versions under the final name");
}

#[test]
fn tags_that_differ_for_the_same_bytes_do_not_loop() {
    let (w, (a, _)) = (World::new(), versions());
    let rig = Rig::start({
        let a = Arc::clone(&a);
        move |asked| {
            let reply = Served::new(&a).etag(&format!("\"edge-{}\"", asked.n)).reply(asked);
            if asked.n < 2 { reply.cut(1_300_000, End::Close) } else { reply }
        }
    });
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&a);
    assert!(rig.count() <= 12, "{} requests", rig.count());
}

const LOGIN: &str = "<!DOCTYPE html><html><title>Sign in</title><form>Name: <input></form></html>";

#[test]
fn a_login_page_in_place_of_the_rest_is_no_success_and_costs_nothing() {
    for redirected in [false, true] {
        let (w, (a, _)) = (World::new(), versions());
        let logged_out = Arc::new(AtomicBool::new(true));
        let (served, out) = (Served::new(&a), Arc::clone(&logged_out));
        let rig = Rig::start(move |asked| match (out.load(Ordering::SeqCst), asked.n, redirected) {
            (_, 0, _) => served.reply(asked).cut(1_200_000, End::Close),
            (true, _, true) if asked.target != "/login" => Reply::redirect(302, "/login"),
            (true, ..) => Reply::page(200, LOGIN),
            _ => served.reply(asked),
        });
        w.download(&rig.url("/f")).give_up("2s").run().exits_one_of(&[3, 4]).says(&["html", "login", "page"]);
        w.holds_nothing();
        logged_out.store(false, Ordering::SeqCst);
        let before = rig.count();
        w.download(&rig.url("/f")).run().exits(0);
        w.holds(&a);
        assert!(rig.asked()[before..].iter().any(|q| q.from() > MB), "the part was not kept");
    }
}

#[test]
fn an_html_file_is_a_file() {
    let (w, page) = (World::new(), Arc::new(LOGIN.as_bytes().repeat(4000)));
    let served = Served::new(&page).header("Content-Type", "text/html");
    let rig = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(100_000, End::Close) } else { served.reply(a) });
    w.download(&rig.url("/index.html")).run().exits(0);
    w.holds(&page);
}

#[test]
fn no_body_of_an_error_reaches_the_file() {
    let (w, (a, _)) = (World::new(), versions());
    let served = Served::new(&a);
    let rig = Rig::start(move |asked| match asked.n {
        0 => served.reply(asked).cut(700_001, End::Close),
        1 => Reply::page(500, &LOGIN.repeat(500)),
        2 => Reply::page(416, LOGIN).header("Content-Range", "bytes */2097152"),
        3 => Reply::page(429, LOGIN),
        _ => served.reply(asked),
    });
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&a);
}
