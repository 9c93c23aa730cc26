//! What a server says of its file: the digest of the whole (RFC 9530, RFC 3230), and where else it is (RFC 6249). Design
//! 3.8 and 3.12.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use support::{End, Ran, Reply, Rig, Served, World, digest, noise};

const MB: usize = 1 << 20;

/// The digest as Repr-Digest has it, `sha-256=:BASE64:`, of all of `data`.
fn repr(algorithm: &str, data: &[u8]) -> String {
    format!("{algorithm}=:{}:", base64_of(algorithm, data))
}

fn base64_of(algorithm: &str, data: &[u8]) -> String {
    let text = digest(algorithm, data);
    let digits = text.split_once('=').map_or("", |(_, digits)| digits);
    STANDARD.encode(hex::decode(digits).unwrap_or_default())
}

fn with_digest(data: &Arc<Vec<u8>>) -> Served {
    Served::new(data).header("Repr-Digest", &repr("sha-256", data))
}

/// The `ended` event of a run with `--progress json`.
fn ended(ran: &Ran) -> serde_json::Value {
    let mut events = ran.stdout.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    events.find(|event| event["event"] == "ended").unwrap_or_else(|| panic!("no ended event in\n{ran}"))
}

#[test]
fn a_right_digest_of_the_servers_is_the_evidence() {
    let data = noise(200, 3 * MB);
    for (name, value, algorithm) in [
        ("Repr-Digest", repr("sha-256", &data), "sha-256"),
        ("Repr-Digest", format!("{}, {}", repr("sha-256", &data), repr("sha-512", &data)), "sha-512"),
        ("Content-Digest", repr("sha-256", &data), "sha-256"),
        ("Digest", format!("SHA-256={}", base64_of("sha-256", &data)), "sha-256"),
    ] {
        let w = World::new();
        let served = Served::new(&data).no_etag().header(name, &value);
        let rig = Rig::start(move |a| served.reply(a));
        let required = ["--require-evidence", "digest"];
        let ran = w.download(&rig.url("/f")).args(&required).run();
        ran.exits(0).says(&[&format!("evidence: digest {algorithm} by the server")]);
        w.holds(&data);
        assert!(rig.asked()[0].header("want-repr-digest").is_some_and(|want| want.contains("sha-256")));
        let listed = &w.list(&["--all"])[0];
        assert_eq!((&listed["evidence"], &listed["digest_source"]), (&"digest".into(), &"server".into()));
    }
}

#[test]
fn the_events_say_who_named_the_digest() {
    let data = noise(201, 50_000);
    let served = with_digest(&data);
    let rig = Rig::start(move |a| served.reply(a));
    let w = World::new();
    let ran = w.download(&rig.url("/f")).args(&["--progress", "json"]).run();
    assert_eq!(ended(ran.exits(0))["digest_source"], "server");
    let w = World::new();
    let sum = digest("sha-256", &data);
    let ran = w.download(&rig.url("/f")).args(&["--progress", "json", "--checksum", &sum]).run();
    assert_eq!(ended(ran.exits(0))["digest_source"], "given");
    w.download(&rig.url("/f")).args(&["--checksum", &sum]).run().exits(0);
}

#[test]
fn what_is_law_decides_whatever_the_server_says() {
    let (w, data) = (World::new(), noise(202, 60_000));
    let served = Served::new(&data).header("Repr-Digest", &repr("sha-256", b"something else"));
    let rig = Rig::start(move |a| served.reply(a));
    w.download(&rig.url("/f")).args(&["--checksum", &digest("sha-256", &data)]).run().exits(0);
    w.holds(&data);
    assert_eq!(rig.count(), 1);
}

#[test]
fn weak_digests_find_damage_and_prove_nothing() {
    let data = noise(203, 300_000);
    for algorithm in ["md5", "crc32c"] {
        let w = World::new();
        let served = Served::new(&data).header("Repr-Digest", &repr(algorithm, &data));
        let mut bad = data.to_vec();
        bad[1000] ^= 1;
        let damaged = Served::new(&Arc::new(bad)).header("Repr-Digest", &repr(algorithm, &data));
        let rig = Rig::start(move |a| if a.n == 0 { damaged.reply(a) } else { served.reply(a) });
        w.download(&rig.url("/f")).run().exits(0).says(&["evidence: validator"]);
        w.holds(&data);
        let w = World::new();
        w.download(&rig.url("/f")).args(&["--require-evidence", "digest"]).run().exits(3).says(&["only validator"]);
    }
}

#[test]
fn a_byte_flipped_on_the_way_is_found_and_the_file_fetched_again_past_the_caches() {
    let (w, data) = (World::new(), noise(204, 2 * MB));
    let mut bad = data.to_vec();
    bad[MB] ^= 0x10;
    let (flipped, served) =
        (Served::new(&Arc::new(bad)).header("Repr-Digest", &repr("sha-256", &data)), with_digest(&data));
    let rig = Rig::start(move |a| match a.header("cache-control") {
        Some("no-cache") => served.reply(a),
        _ => flipped.reply(a),
    });
    w.download(&rig.url("/f")).run().exits(0).says(&["digest sha-256 by the server"]);
    w.holds(&data);
    assert_eq!(rig.count(), 2);
}

#[test]
fn a_broken_digest_fails_with_a_plain_message_after_two_whole_fetches() {
    let (w, data) = (World::new(), noise(205, 400_000));
    let served = Served::new(&data).header("Repr-Digest", &repr("sha-256", b"of another file"));
    let rig = Rig::start(move |a| served.reply(a));
    let px = w.download(&rig.url("/f")).delays("1h", "2h").args(&["--require-evidence", "digest"]);
    px.run().exits(3).says(&["do not have the digest that the server itself names (Repr-Digest or Digest)"]);
    w.holds_nothing();
    assert!(w.leftovers().is_empty(), "known-wrong bytes were kept: {:?}", w.leftovers());
    assert_eq!(rig.count(), 2);
    assert_eq!(rig.asked()[1].header("cache-control"), Some("no-cache"));
}

#[test]
fn an_unreadable_digest_says_nothing() {
    let data = noise(206, 40_000);
    for value in ["sha-256=abc", "sha-256=:AAAA:", "unixsum=:AAAA:", "", "\"x\"=(1 2"] {
        let w = World::new();
        let served = Served::new(&data).header("Repr-Digest", value);
        let rig = Rig::start(move |a| served.reply(a));
        w.download(&rig.url("/f")).run().exits(0).says(&["evidence: validator"]);
    }
}

#[test]
fn a_resumed_download_still_knows_the_digest() {
    let (w, data) = (World::new(), noise(207, 4 * MB));
    let (first, later) = (with_digest(&data).no_etag(), Served::new(&data).no_etag());
    let rig = Rig::start(move |a| if a.n == 0 { first.reply(a).cut(3 * MB, End::Hang) } else { later.reply(a) });
    w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(3 * MB));
    w.download(&rig.url("/f")).run().exits(0).says(&["digest sha-256 by the server"]);
    w.holds(&data);
    assert!(rig.resumed(1, 2 * MB));
}

#[test]
fn damage_between_two_sessions_shows_by_the_digest_of_the_first() {
    let (w, data) = (World::new(), noise(208, 4 * MB));
    let (first, later) = (with_digest(&data), with_digest(&data));
    let rig = Rig::start(move |a| if a.n == 0 { first.reply(a).cut(3 * MB, End::Hang) } else { later.reply(a) });
    w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(3 * MB));
    let mut part = std::fs::read(w.part()).unwrap();
    part[MB] ^= 1;
    std::fs::write(w.part(), part).unwrap();
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn another_digest_under_the_same_tag_is_another_version() {
    let (w, old, new) = (World::new(), noise(209, 4 * MB), noise(210, 4 * MB));
    let mut new = new.to_vec();
    // Equal where a session that only looks at the joint would compare.
    new[..3 * MB + 100_000].copy_from_slice(&old[..3 * MB + 100_000]);
    new[MB] ^= 1;
    let new = Arc::new(new);
    let (first, later) = (with_digest(&old), with_digest(&new));
    let rig = Rig::start(move |a| if a.n == 0 { first.reply(a).cut(3 * MB, End::Close) } else { later.reply(a) });
    w.download(&rig.url("/f")).arg("--once").run().exits(4);
    w.download(&rig.url("/f")).run().exits(0).says(&["digest sha-256 by the server"]);
    w.holds(&new);
    assert_eq!(rig.asked().iter().filter(|a| a.header("cache-control").is_some()).count(), 0, "found out too late");
}

#[test]
fn a_digest_of_the_part_in_place_of_the_whole_costs_one_request_and_no_bytes() {
    let (w, data) = (World::new(), noise(211, 6 * MB));
    let rig = Rig::start({
        let data = Arc::clone(&data);
        move |a| {
            let plain = Served::new(&data);
            let reply = plain.header("Repr-Digest", &repr("sha-256", &data[a.from()..])).reply(a);
            if a.n == 0 { reply.cut(5 * MB, End::Close) } else { reply }
        }
    });
    w.download(&rig.url("/f")).run().exits(0).says(&["digest sha-256 by the server"]);
    w.holds(&data);
    assert_eq!(rig.count(), 4, "{:?}", rig.froms());
    assert!(rig.froms()[3] > 4 * MB, "the bytes held were fetched again");
}

fn duplicate(url: &str, pri: u32) -> String {
    format!("<{url}>; rel=duplicate; pri={pri}")
}

#[test]
fn mirrors_named_by_a_server_take_over_when_it_dies() {
    for law in [true, false] {
        let (w, data) = (World::new(), noise(212, 3 * MB));
        let (plain, far) = (Served::new(&data), Rig::start(|_| Reply::status(404)));
        let near = Rig::start(move |a| plain.reply(a));
        let links = format!("{}, {}", duplicate(&far.url("/x"), 2), duplicate(&near.url("/y"), 1));
        let served = if law { Served::new(&data) } else { with_digest(&data) };
        let served = served.header("Link", &links);
        let first =
            Rig::start(move |a| if a.n == 0 { served.reply(a).cut(2 * MB, End::Close) } else { Reply::status(503) });
        let (sum, cookies) = (digest("sha-256", &data), w.path("cookies"));
        std::fs::write(&cookies, "127.0.0.1\tFALSE\t/\tFALSE\t0\tc\td\n").unwrap();
        let mut px = w.download(&first.url("/f")).args(&["-H", "X-Mine: 1", "-u", "me:secret", "--location-trusted"]);
        px = px.arg("--cookies").arg(&cookies).delays("1h", "2h");
        let px = if law { px.args(&["--checksum", &sum]) } else { px };
        px.run().exits(0).says(&["2 more mirrors named by"]);
        w.holds(&data);
        assert!(near.sent() < 2 * MB as u64, "the bytes held were not used");
        let asked = near.asked();
        assert!(!asked.is_empty());
        for name in ["authorization", "x-mine", "cookie"] {
            assert!(first.asked()[0].header(name).is_some(), "{name} did not go to the server it is for");
            assert!(asked.iter().all(|a| a.header(name).is_none()), "{name} went to a mirror that a server named");
        }
        assert_eq!(far.count(), 0, "the order of priorities was not kept");
    }
}

#[test]
fn a_public_server_names_no_mirror_whose_name_leads_into_a_private_network() {
    // The same from a server that is private itself, which may.
    for (server, asked) in [("files.example.org", false), ("127.0.0.1", true)] {
        let (w, data) = (World::new(), noise(218, 2 * MB));
        let plain = Served::new(&data);
        let near = Rig::start(move |a| plain.reply(a));
        let port = |rig: &Rig| rig.url("").trim_end_matches('/').rsplit_once(':').unwrap().1.to_owned();
        let link = duplicate(&format!("http://near.example.net:{}/n", port(&near)), 1);
        let served = with_digest(&data).header("Link", &link);
        let first = Rig::start(move |a| match a.n {
            0 => served.reply(a).cut(MB, End::Close),
            _ => Reply::status(503),
        });
        let url = format!("http://{server}:{}/f", port(&first));
        let pins = [("files.example.org", &first), ("near.example.net", &near)];
        let mut px = w.download(&url).arg("--once");
        for (name, rig) in pins {
            px = px.args(&["--resolve", &format!("{name}:{}:127.0.0.1", port(rig))]);
        }
        let ran = px.run();
        assert_eq!(near.count() > 0, asked, "of {server}: {ran}");
        if asked {
            ran.exits(0);
            w.holds(&data);
        } else {
            ran.exits(4).says(&["private network"]);
            assert_eq!(near.connections(), 0);
        }
    }
}

#[test]
fn named_mirrors_are_remembered_with_their_mark() {
    let (w, data) = (World::new(), noise(213, 3 * MB));
    let plain = Served::new(&data);
    let near = Rig::start(move |a| plain.reply(a));
    let served = with_digest(&data).header("Link", &duplicate(&near.url("/y"), 1));
    let first = Rig::start(move |a| served.reply(a).cut(2 * MB, End::Hang));
    let mine = ["-H", "Authorization: Bearer t0k3n"];
    w.download(&first.url("/f")).args(&mine).start().kill_when(|| first.has_sent(2 * MB));
    first.stop();
    w.download(&first.url("/f")).args(&mine).delays("1h", "2h").run().exits(0).says(&["by the server"]);
    w.holds(&data);
    assert!(near.count() > 0 && near.asked().iter().all(|a| a.header("authorization").is_none()));
    assert_eq!(w.list(&["--all"])[0]["urls"].as_array().unwrap().len(), 2);
}

#[test]
fn the_users_mirrors_go_first() {
    let (w, data) = (World::new(), noise(214, 2 * MB));
    let plain = Served::new(&data);
    let (named, typed) = (Rig::start(|_| Reply::status(404)), Rig::start(move |a| plain.reply(a)));
    let served = with_digest(&data).header("Link", &duplicate(&named.url("/n"), 1));
    let first = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(MB, End::Close) } else { Reply::status(503) });
    w.download(&first.url("/f")).mirror(&typed.url("/t")).delays("1h", "2h").run().exits(0);
    w.holds(&data);
    assert_eq!(named.count(), 0);
}

#[test]
fn without_a_digest_that_proves_the_file_no_named_mirror_is_asked() {
    let data = noise(215, MB);
    let named = Rig::start(|_| Reply::status(404));
    let link = duplicate(&named.url("/n"), 1);
    for served in [Served::new(&data), Served::new(&data).header("Repr-Digest", &repr("md5", &data))] {
        let w = World::new();
        let served = served.header("Link", &link);
        let first =
            Rig::start(move |a| if a.n == 0 { served.reply(a).cut(MB / 2, End::Close) } else { Reply::status(503) });
        let ran = w.download(&first.url("/f")).arg("--once").run();
        ran.exits(4);
        assert!(!ran.stderr.contains("named by"), "{ran}");
        let ran = w.download(&first.url("/f")).arg("--once").run();
        ran.exits(4);
    }
    assert_eq!(named.count(), 0);
}

#[test]
fn a_named_mirror_with_another_file_is_not_believed() {
    let (w, data, other) = (World::new(), noise(216, MB), noise(217, MB));
    // It says that its bytes are right, which is no news to anybody.
    let liar = with_digest(&other);
    let named = Rig::start(move |a| liar.reply(a));
    let served = with_digest(&data).header("Link", &duplicate(&named.url("/n"), 1));
    let back = Arc::new(AtomicBool::new(false));
    let up = Arc::clone(&back);
    // Not a byte of the body comes: nothing is held that the named mirror's bytes could be compared with.
    let first = Rig::start(move |a| match (a.n, up.load(Ordering::SeqCst)) {
        (0, _) => served.reply(a).cut(0, End::Close),
        (_, true) => served.reply(a),
        _ => Reply::status(503),
    });
    w.download(&first.url("/f")).arg("--once").run().exits_one_of(&[3, 4]);
    w.holds_nothing();
    assert!(named.count() > 0);
    back.store(true, Ordering::SeqCst);
    w.download(&first.url("/f")).run().exits(0).says(&["digest sha-256 by the server"]);
    w.holds(&data);
}

#[test]
fn a_redirector_names_mirrors_where_a_digest_is_law() {
    let (w, data) = (World::new(), noise(218, 300_000));
    let plain = Served::new(&data);
    let near = Rig::start(move |a| plain.reply(a));
    let dead = Rig::start(|_| Reply::status(404));
    let (link, to) = (duplicate(&near.url("/n"), 1), dead.url("/gone"));
    let first = Rig::start(move |_| Reply::redirect(302, &to).header("Link", &link));
    w.download(&first.url("/f")).args(&["--checksum", &digest("sha-256", &data)]).run().exits(0);
    w.holds(&data);
}
