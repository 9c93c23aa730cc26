//! The bank of faults: servers that refuse, send elsewhere, or answer something else (`docs/integrity.md`).

mod support;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use support::{End, Reply, Rig, Served, World, digest, ms, noise};

const MB: usize = 1 << 20;

#[test]
fn a_fresh_link_that_is_refused_like_the_old_one_ends_it() {
    let (w, data) = (World::new(), noise(540, MB));
    let served = Served::new(&data);
    let signed = Rig::start(move |a| match a.n {
        0 => served.reply(a).cut(400_000, End::Close),
        _ => Reply::page(410, "<p>expired</p>"),
    });
    let target = signed.url("/signed");
    let rig = Rig::start(move |a| Reply::redirect(307, &format!("{target}?token={}", a.n)));
    w.download(&rig.url("/f")).give_up("20s").run().exits(3).says(&["410"]);
    w.holds_nothing();
    assert!(rig.count() >= 2, "no fresh link was asked for");
    let tokens: Vec<_> = signed.asked().into_iter().map(|a| a.target).collect();
    assert!(tokens.windows(2).all(|two| two[0] != two[1]), "a used link was asked again: {tokens:?}");
}

#[test]
fn links_that_work_once_bodies_that_are_cut_and_a_busy_director() {
    let (w, data) = (World::new(), noise(541, 1_200_000));
    let served = Served::new(&data);
    let used = std::sync::Mutex::new(std::collections::BTreeSet::new());
    let signed = Rig::start(move |a| {
        if !support::rig::lock(&used).insert(a.target.clone()) {
            return Reply::page(403, "<p>used</p>");
        }
        served.reply(a).cut(450_000, End::Reset)
    });
    let target = signed.url("/s");
    let rig = Rig::start(move |a| match a.n {
        1 => Reply::status(429).header("Retry-After", "0"),
        n => Reply::redirect(302, &format!("{target}?t={n}")),
    });
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn a_metalink_is_neither_asked_for_nor_stored() {
    let (w, data) = (World::new(), noise(542, 350_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| match a.header("accept") {
        Some(accept) if accept.contains("metalink") => {
            Reply::page(200, "<metalink/>").instead("Content-Type", Some("application/metalink4+xml"))
        }
        _ if a.n == 0 => served.reply(a).cut(200_000, End::Close),
        _ => served.reply(a),
    });
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    assert!(rig.asked().iter().all(|a| a.header("accept").is_none_or(|v| !v.contains("metalink"))));
}

#[test]
fn a_page_after_a_kill_keeps_the_part_whether_it_is_html_or_calls_itself_something_else() {
    for kind in ["text/html", "application/xhtml+xml", "application/json"] {
        let (w, data) = (World::new(), noise(543, MB + 11));
        let (served, logged_in) = (Served::new(&data), Arc::new(AtomicBool::new(true)));
        let inside = Arc::clone(&logged_in);
        let rig = Rig::start(move |a| match (a.n, inside.load(Ordering::SeqCst)) {
            (0, _) => served.reply(a).cut(800_000, End::Hang),
            (_, false) => Reply::page(200, &"<p>who are you?</p>".repeat(30)).instead("Content-Type", Some(kind)),
            _ => served.reply(a),
        });
        w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(800_000));
        logged_in.store(false, Ordering::SeqCst);
        w.download(&rig.url("/f")).give_up("2s").run().exits(3);
        w.holds_nothing();
        assert!(fs::metadata(w.part()).is_ok_and(|m| m.len() > 700_000), "the part is gone");
        logged_in.store(true, Ordering::SeqCst);
        let before = rig.count();
        w.download(&rig.url("/f")).run().exits(0);
        w.holds(&data);
        assert!(rig.resumed(before, 600_000), "begun again from nothing");
    }
}

#[test]
fn three_kinds_of_busy_a_short_wait_and_a_cut_in_one_download() {
    let (w, data) = (World::new(), noise(544, 500_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| match a.n {
        0 => Reply::status(429).header("Retry-After", "1"),
        1 => served.reply(a).cut(210_000, End::Close),
        2 => Reply::page(408, "<p>slow</p>"),
        3 => Reply::page(522, "<p>gone</p>").header("Retry-After", "Mon, 02 Nov 1998 10:00:00 GMT"),
        _ => served.reply(a),
    });
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    let asked = rig.asked();
    assert!(asked[1].at - asked[0].at >= ms(990), "asked again before the second was over");
    assert!(asked.last().is_some_and(|a| a.from() > 100_000), "the bytes held were not used");
}

#[test]
fn once_an_hour_is_shown_and_once_a_century_is_capped() {
    for (value, most) in [("3600", 3_700.0), ("99999999999", 87_000.0), ("Fri, 01 Jan 2100 00:00:00 GMT", 87_000.0)] {
        let w = World::new();
        let rig = Rig::start(move |_| Reply::status(503).header("Retry-After", value));
        w.download(&rig.url("/f")).arg("--once").give_up("14d").run().exits(4);
        let next = w.list(&[])[0]["next_request_time"].as_f64().expect("a time");
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_secs_f64();
        assert!(next - now > 3_000.0 && next - now < most, "{value}: in {} s", next - now);
    }
}

#[test]
fn a_zeroed_state_file_is_named_or_its_predecessor_used_and_the_file_is_right() {
    for predecessor in [true, false] {
        let (w, data) = (World::new(), noise(545, 2 * MB));
        let served = Served::new(&data);
        let rig = Rig::start(move |a| if a.n < 2 { served.reply(a).cut(900_000, End::Close) } else { served.reply(a) });
        w.download(&rig.url("/f")).arg("--once").run().exits(4);
        let n = fs::metadata(&w.state).expect("there is one").len();
        fs::write(&w.state, vec![0; usize::try_from(n).expect("small")]).expect("it can be written");
        if !predecessor {
            let _ = fs::remove_file(w.state.with_file_name("client_state_prev.xml"));
        }
        let sum = digest("sha-256", &data);
        let ran = w.download(&rig.url("/f")).args(&["--checksum", &sum]).run();
        if ran.succeeded() {
            w.holds(&data);
        } else {
            ran.exits(5).says(&["client_state"]);
            w.holds_nothing();
        }
    }
}
