//! Servers that say no: what is refused for good, what is tried again and when, and when it is given up (design 4).

mod support;

use std::fs;
use std::time::Duration;

use support::{End, Reply, Rig, Served, World, digest, ms, noise};

#[test]
fn statuses_that_end_it_at_once() {
    for status in [400, 401, 403, 404, 405, 406, 407, 410, 411, 414, 415, 431, 451, 501, 505] {
        let w = World::new();
        let rig = Rig::start(move |_| Reply::page(status, "<p>No.</p>"));
        // A day of patience, and delays of hours: only a permanent refusal ends this.
        let ran = w.download(&rig.url("/f")).delays("1h", "2h").give_up("1d").run();
        ran.exits(3).says(&[&status.to_string()]);
        w.holds_nothing();
        assert_eq!(rig.count(), 1, "requests for a {status}");
    }
}

#[test]
fn misdirected_on_a_connection_of_its_own_is_a_refusal() {
    // On a connection that had been used before, the request is sent once more on a new one: see io::transport's tests.
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(421));
    w.download(&rig.url("/f")).delays("1h", "2h").give_up("1d").run().exits(3).says(&["421"]);
    assert_eq!((rig.count(), rig.connections()), (1, 1));
}

#[test]
fn statuses_that_pass() {
    let (w, data) = (World::new(), noise(70, 60_000));
    let passing = [500, 408, 502, 425, 503, 429, 504, 599, 507];
    let served = Served::new(&data);
    let rig = Rig::start(move |a| match passing.get(a.n) {
        Some(status) => Reply::page(*status, "<p>Busy.</p>"),
        None => served.reply(a),
    });
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    assert_eq!(rig.count(), passing.len() + 1);
}

#[test]
fn retry_on_makes_a_refusal_pass() {
    let (w, data) = (World::new(), noise(71, 60_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n < 2 { Reply::status(404) } else { served.reply(a) });
    w.download(&rig.url("/f")).args(&["--retry-on", "404"]).run().exits(0);
    w.holds(&data);
}

#[test]
fn a_server_that_breaks_off_before_it_answers_is_tried_again() {
    for end in [End::Close, End::Reset] {
        let (w, data) = (World::new(), noise(72, 60_000));
        let served = Served::new(&data);
        let rig = Rig::start(move |a| if a.n < 3 { Reply::raw("").then(end) } else { served.reply(a) });
        w.download(&rig.url("/f")).run().exits(0);
        w.holds(&data);
    }
}

#[test]
fn what_is_no_http_is_no_file() {
    for junk in [
        "SSH-2.0-Server\r\n",
        "\0\0\0\0\0\0\0\0\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\nbody",
    ] {
        let w = World::new();
        let rig = Rig::start(move |_| Reply::raw(junk));
        w.download(&rig.url("/f")).give_up("1s").run().exits(3);
        w.holds_nothing();
    }
}

/// What a portal shows until somebody logs in is no corrupt file: the mirror is asked again, and no byte of the page stays.
#[test]
fn a_portals_page_in_place_of_a_file_of_known_digest_passes() {
    let (w, data) = (World::new(), noise(404, 90_000));
    let served = Served::new(&data);
    let page = format!("<!doctype html><title>Log in</title>{}", "x".repeat(9_000));
    let rig = Rig::start(move |a| if a.n < 3 { Reply::page(200, &page) } else { served.reply(a) });
    let ran = w.download(&rig.url("/f.bin")).args(&["--checksum", &digest("sha-256", &data)]).run();
    ran.exits(0).says(&["HTML page"]);
    w.holds(&data);
}

/// A page that was asked for is a file like any other.
#[test]
fn a_page_of_the_wrong_digest_is_corrupt_where_a_page_was_asked_for() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::page(200, "<!doctype html><title>Not found</title>"));
    w.download(&rig.url("/index.html"))
        .args(&["--checksum", &digest("sha-256", b"another")])
        .run()
        .exits(3)
        .says(&["wrong checksum"]);
    assert_eq!(rig.count(), 2);
}

#[test]
fn retry_after_is_a_floor() {
    let (w, data) = (World::new(), noise(73, 60_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| match a.n {
        0 => Reply::status(503).header("Retry-After", "2"),
        _ => served.reply(a),
    });
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    let asked = rig.asked();
    assert!(asked[1].at - asked[0].at >= Duration::from_millis(1950), "asked again too soon");
}

#[test]
fn a_retry_after_date_is_read_by_the_servers_own_clock() {
    // The server's clock is years behind ours and years ahead: both say "in one second".
    for (day, year) in [("Fri", 2019), ("Tue", 2044)] {
        let (w, data) = (World::new(), noise(74, 60_000));
        let served = Served::new(&data);
        let rig = Rig::start(move |a| match a.n {
            0 => Reply::status(429)
                .header("Date", &format!("{day}, 01 Mar {year} 10:00:00 GMT"))
                .header("Retry-After", &format!("{day}, 01 Mar {year} 10:00:01 GMT")),
            _ => served.reply(a),
        });
        w.download(&rig.url("/f")).give_up("60s").run().exits(0);
        w.holds(&data);
        let asked = rig.asked();
        assert!(asked[1].at - asked[0].at >= Duration::from_millis(950), "asked again too soon ({year})");
    }
}

#[test]
fn other_mirrors_go_on_while_one_asks_to_wait() {
    for wait in ["3600", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"] {
        let (w, data) = (World::new(), noise(75, 60_000));
        let busy = Rig::start(move |_| Reply::status(429).header("Retry-After", wait));
        let served = Served::new(&data);
        let rig = Rig::start(move |a| served.reply(a));
        w.download(&busy.url("/f")).mirror(&rig.url("/f")).run().exits(0);
        w.holds(&data);
        assert_eq!(busy.count(), 1);
    }
}

#[test]
fn a_retry_after_that_says_nothing_is_as_if_it_were_not_there() {
    for wait in ["-1", "tomorrow", "", "Sun, 06 Nov 1994 08:49:37 GMT", "3 s"] {
        let (w, data) = (World::new(), noise(76, 60_000));
        let served = Served::new(&data);
        let rig = Rig::start(move |a| match a.n {
            0 => Reply::status(503).header("Retry-After", wait),
            _ => served.reply(a),
        });
        w.download(&rig.url("/f")).run().exits(0);
        w.holds(&data);
    }
}

#[test]
fn a_server_that_never_recovers_is_given_up_in_the_end() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(503));
    let ran = w.download(&rig.url("/f")).give_up("2s").run();
    ran.exits(3).says(&["503", "gave up", "give up", "given up"]);
    w.holds_nothing();
    assert!(rig.count() > 3, "only {} requests in two seconds of delays under 200 ms", rig.count());
    let reported = w.px(["state", "report"]).run();
    reported.exits(0);
    assert!(reported.stdout.contains("<file_xfer_error>"), "{reported}");
    assert!(reported.stdout.contains("<error_code>-") && reported.stdout.contains("<file_name>"), "{reported}");
}

#[test]
fn a_timer_ends_it_while_a_far_retry_after_runs() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(503).header("Retry-After", "80000"));
    w.download(&rig.url("/f")).give_up("2s").run().exits(3);
    assert_eq!(rig.count(), 1);
}

#[test]
fn a_timer_ends_a_session_that_trickles_without_progress() {
    let (w, data) = (World::new(), noise(81, 2 << 20));
    let served = Served::new(&data);
    // From the second answer on, a hundred times the rate of a stall, and half an hour to the end of the file.
    let slow = served.clone();
    let rig = Rig::start(move |a| match a.n {
        0 => slow.reply(a).cut(1 << 20, End::Close),
        _ => slow.reply(a).pace(100, ms(100)),
    });
    let px = || w.download(&rig.url("/f")).args(&["--stall-timeout", "1h"]).give_up("3s");
    px().run().exits(3).says(&["gave up"]);
    w.holds_nothing();
    assert!(fs::metadata(w.part()).expect("the part is kept").len() >= 1 << 20, "what came is lost");
    assert_eq!((rig.count(), &w.list(&["--all"])[0]["num_retries"]), (2, &0.into()), "it was a session that ended it");
    rig.now(move |a| served.reply(a));
    px().run().exits(0);
    w.holds(&data);
    assert!(rig.resumed(2, 900_000), "begun again: {:?}", rig.froms());
}

#[test]
fn a_timer_ends_a_session_whose_body_falls_silent() {
    let (w, data) = (World::new(), noise(82, 2 << 20));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).cut(1 << 20, End::Hang));
    let px = w.download(&rig.url("/f")).args(&["--stall-timeout", "1h"]).give_up("2s");
    px.run().exits(3).says(&["gave up"]);
    assert_eq!(fs::metadata(w.part()).expect("the part is kept").len(), 1 << 20);
    assert_eq!(rig.count(), 1);
}

#[test]
fn nobody_listening_is_given_up_in_the_end() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(200));
    rig.stop();
    w.download(&rig.url("/f")).give_up("1s").run().exits(3).says(&["connect"]);
}

#[test]
fn a_failed_part_stays_for_a_new_life() {
    let (w, data) = (World::new(), noise(77, 2 << 20));
    let served = Served::new(&data);
    let rig = Rig::start({
        let served = served.clone();
        move |a| if a.n == 0 { served.reply(a).cut(1 << 20, End::Close) } else { Reply::status(410) }
    });
    w.download(&rig.url("/f")).run().exits(3).says(&["410"]);
    w.holds_nothing();
    assert!(!w.leftovers().is_empty());
    let before = rig.count();
    rig.now(move |a| served.reply(a));
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
    assert!(rig.resumed(before, 500_000), "the bytes of the first life were not kept");
}

#[test]
fn delete_partial_deletes_at_once() {
    let (w, data) = (World::new(), noise(78, 2 << 20));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(1 << 20, End::Close) } else { Reply::status(410) });
    w.download(&rig.url("/f")).arg("--delete-partial").run().exits(3);
    assert!(w.leftovers().is_empty(), "{:?}", w.leftovers());
}

#[test]
fn a_mirror_that_served_and_then_misses_the_file_has_three_passes() {
    let (w, data) = (World::new(), noise(79, 2 << 20));
    let served = Served::new(&data);
    let rig = Rig::start({
        let served = served.clone();
        move |a| match a.n {
            0 => served.reply(a).cut(1 << 20, End::Close),
            1 | 2 => Reply::status(404),
            _ => served.reply(a),
        }
    });
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);

    let w = World::new();
    let rig = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(1 << 20, End::Close) } else { Reply::status(404) });
    w.download(&rig.url("/f")).run().exits(3).says(&["404"]);
    assert_eq!(rig.count(), 4);
}

#[test]
fn one_outage_of_a_host_is_one_backoff_for_all_its_files() {
    let w = World::new();
    let folder = w.folder("in");
    let up = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = std::sync::Arc::clone(&up);
    let rig = Rig::start(move |a| match seen.load(std::sync::atomic::Ordering::SeqCst) {
        false => Reply::status(503),
        true => Served::new(&noise(80, 9_000)).reply(a),
    });
    let mut px = w.download(&rig.url("/0")).dir(&folder).delays("300ms", "60s").give_up("80s");
    for n in 1..6 {
        px = px.url(&rig.url(&format!("/{n}")));
    }
    let run = px.start();
    std::thread::sleep(ms(2000));
    let during = rig.count();
    up.store(true, std::sync::atomic::Ordering::SeqCst);
    run.end().exits(0);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 6);
    assert!(during < 40, "{during} requests in two seconds of an outage");
}
