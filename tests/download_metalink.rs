//! Downloads by metalink (design 6): mirrors by priority, digests and sizes that are law, names that stay in the folder;
//! and metalinks that come where a file was asked for.

#![allow(clippy::expect_used, reason = "a test says what it expects")]

mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use support::{Px, Reply, Rig, Served, World, digest, names_in, noise, same_file};

fn right(data: &Arc<Vec<u8>>) -> Rig {
    let served = Served::new(data);
    Rig::start(move |a| served.reply(a))
}

/// One file of a metalink of version 4.
fn file(name: &str, inner: &str) -> String {
    format!("<file name=\"{name}\">{inner}</file>")
}

fn hash(algorithm: &str, data: &[u8]) -> String {
    let sum = digest(algorithm, data);
    let (_, hex) = sum.split_once('=').expect("ALGORITHM=HEX");
    format!("<hash type=\"{algorithm}\">{hex}</hash>")
}

fn url(url: &str, priority: u32) -> String {
    format!("<url priority=\"{priority}\">{url}</url>")
}

/// `download -M` of a metalink of version 4 with these files, with small delays.
fn by_metalink<'w>(w: &'w World, files: &str) -> Px<'w> {
    let text = format!("<?xml version=\"1.0\"?><metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">{files}</metalink>");
    by_text(w, &text)
}

fn by_text<'w>(w: &'w World, text: &str) -> Px<'w> {
    let path = w.path("list.meta4");
    fs::write(&path, text).expect("written");
    w.px(["download", "--min-delay", "50ms", "--max-delay", "200ms", "--give-up", "30s", "-M"]).arg(path)
}

fn nothing_in(folder: &Path) {
    let names = if folder.exists() { names_in(folder) } else { Vec::new() };
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn the_best_mirror_is_asked_first_and_the_next_when_it_is_dead() {
    let (w, data) = (World::new(), noise(1300, 400_000));
    let (dead, live, last) = (right(&data), right(&data), right(&data));
    dead.stop();
    let urls = [url(&last.url("/f"), 9), url(&live.url("/f"), 2), url(&dead.url("/f"), 1)].concat();
    let inner = format!("<size>{}</size>{}{urls}", data.len(), hash("sha-256", &data));
    let folder = w.path("in");
    by_metalink(&w, &file("os.iso", &inner)).dir(&folder).run().exits(0).says(&["digest"]);
    assert_eq!(names_in(&folder), ["os.iso"]);
    same_file(&folder.join("os.iso"), &data);
    assert_eq!((live.count(), last.count()), (1, 0), "by priority, not by place");
}

#[test]
fn a_wrong_hash_leaves_no_file() {
    let (w, data) = (World::new(), noise(1301, 200_000));
    let rigs = [right(&data), right(&data)];
    let urls = [url(&rigs[0].url("/f"), 1), url(&rigs[1].url("/f"), 2)].concat();
    // The weaker one is right; the strongest is law.
    let inner = [hash("md5", &data), hash("sha-256", &data[1..]), urls].concat();
    by_metalink(&w, &file("f.bin", &inner)).dir(&w.path("in")).run().exits(3).says(&["sha-256"]);
    nothing_in(&w.path("in"));
    assert!(w.leftovers().is_empty(), "known-wrong bytes were kept: {:?}", w.leftovers());
}

#[test]
fn each_file_of_a_metalink_is_a_download_whatever_its_name_tries() {
    let (w, one, two) = (World::new(), noise(1302, 70_000), noise(1303, 80_000));
    let (a, b) = (Served::new(&one), Served::new(&two));
    let rig = Rig::start(move |q| if q.target == "/one" { a.reply(q) } else { b.reply(q) });
    let resources =
        |path: &str| format!("<resources><url type=\"http\" preference=\"90\">{}</url></resources>", rig.url(path));
    let sha1 = hash("sha-1", &two).replace("sha-1", "sha1");
    let text = format!(
        "<metalink version=\"3.0\" xmlns=\"http://www.metalinker.org/\"><files>{}{}</files></metalink>",
        file("one.bin", &resources("/one")),
        file("../../deep/two.bin", &format!("<verification>{sha1}</verification>{}", resources("/two"))),
    );
    let folder = w.folder("a/b/in");
    by_text(&w, &text).dir(&folder).run().exits(0);
    assert_eq!(names_in(&folder), ["one.bin", "two.bin"]);
    same_file(&folder.join("one.bin"), &one);
    same_file(&folder.join("two.bin"), &two);
    by_text(&w, &text).args(&["-o", "x"]).run().exits(2).says(&["--output"]);
}

#[test]
fn one_file_goes_where_it_is_told_and_the_same_command_again_fetches_nothing() {
    let (w, data) = (World::new(), noise(1304, 100_000));
    let rig = right(&data);
    let files = file("f.bin", &[hash("sha-256", &data), url(&rig.url("/f"), 1)].concat());
    by_metalink(&w, &files).arg("-o").arg(&w.out).run().exits(0);
    w.holds(&data);
    let sent = rig.sent();
    by_metalink(&w, &files).arg("-o").arg(&w.out).run().exits(0);
    assert_eq!(rig.sent(), sent);
}

#[test]
fn a_mirror_with_a_file_of_another_size_is_refused() {
    let (w, data, longer) = (World::new(), noise(1305, 300_000), noise(1306, 400_000));
    let shorter = noise(1307, 200_000);
    let (told, good) = (right(&longer), right(&data));
    let untold = |data: &Arc<Vec<u8>>| {
        let served = Served::new(data);
        Rig::start(move |q| served.reply(q).chunked())
    };
    let (long, short) = (untold(&longer), untold(&shorter));
    let wrong = [&told, &long, &short].map(|rig| url(&rig.url("/f"), 1)).concat();
    let size = "<size>300000</size>";
    let all = [size, &*wrong, &*url(&good.url("/f"), 2)].concat();
    by_metalink(&w, &file("f.bin", &all)).arg("-o").arg(&w.out).run().exits(0);
    w.holds(&data);
    let w = World::new();
    let ran = by_metalink(&w, &file("f.bin", &[size, &*wrong].concat())).arg("-o").arg(&w.out).run();
    ran.exits(3).says(&["it must have 300000"]);
    w.holds_nothing();
}

#[test]
fn a_finished_file_of_another_size_is_fetched_again() {
    let (w, old, new) = (World::new(), noise(1308, 100_000), noise(1309, 120_000));
    let rig = right(&old);
    by_metalink(&w, &file("f.bin", &url(&rig.url("/f"), 1))).arg("-o").arg(&w.out).run().exits(0);
    w.holds(&old);
    let served = Served::new(&new).etag("\"two\"");
    // It says that nothing has changed, and the metalink knows better.
    rig.now(move |q| if q.header("if-none-match").is_some() { Reply::status(304) } else { served.reply(q) });
    let files = file("f.bin", &format!("<size>120000</size>{}", url(&rig.url("/f"), 1)));
    by_metalink(&w, &files).arg("-o").arg(&w.out).run().exits(0);
    w.holds(&new);
}

#[test]
fn what_a_metalink_tells_lives_on_in_the_state_file() {
    let (w, data) = (World::new(), noise(1310, 300_000));
    let rig = Rig::start(|_| Reply::status(503));
    let sums =
        data.chunks(1 << 17).map(|piece| hash("sha-1", piece).replace(" type=\"sha-1\"", "")).collect::<String>();
    let pieces = format!("<pieces type=\"sha-1\" length=\"131072\">{sums}</pieces>");
    let inner = ["<size>300000</size>", &*hash("sha-256", &data), &*pieces, &*url(&rig.url("/f"), 1)].concat();
    by_metalink(&w, &file("f.bin", &inner)).arg("-o").arg(&w.out).arg("--once").run().exits(4);
    let state = w.state_text();
    for element in ["<expected_nbytes>300000</expected_nbytes>", "<pieces>", "<length>131072</length>"] {
        assert!(state.contains(element), "{element}: {state}");
    }
    let hex = sums.replace("<hash>", "").replace("</hash>", "");
    assert!(state.contains(&format!("<digests>{hex}</digests>")), "{state}");
    let served = Served::new(&data);
    rig.now(move |q| served.reply(q));
    w.px(["run"]).run().exits(0);
    w.holds(&data);
}

#[test]
fn a_checksum_that_is_typed_must_agree() {
    let (w, data) = (World::new(), noise(1312, 50_000));
    let rig = right(&data);
    let files = file("f.bin", &[hash("md5", &data), hash("sha-256", &data), url(&rig.url("/f"), 1)].concat());
    let with = |sum: &str| by_metalink(&w, &files).arg("-o").arg(&w.out).args(&["--checksum", sum]).run();
    for algorithm in ["md5", "sha-256"] {
        with(&digest(algorithm, &data[1..])).exits(2).says(&["the metalink says"]);
    }
    assert_eq!(rig.count(), 0);
    with(&digest("sha-512", &data[1..])).exits(3).says(&["sha-512"]);
    w.holds_nothing();
    with(&digest("sha-512", &data)).exits(0);
    w.holds(&data);
}

#[test]
fn what_is_left_out_is_told() {
    let (w, data) = (World::new(), noise(1313, 50_000));
    let rig = right(&data);
    let urls = ["<url>ftp://h/f</url><url>rsync://h/f</url>", &*url(&rig.url("/f"), 1)].concat();
    let pieces = "<size>50000</size><pieces type=\"crc32c\" length=\"10\"><hash>00000000</hash></pieces>";
    let ran = by_metalink(&w, &file("f.bin", &format!("{pieces}{urls}"))).arg("-o").arg(&w.out).run();
    ran.exits(0).says(&["left out 2 URLs"]).says(&["left out the digests of its pieces"]);
    w.holds(&data);
}

#[test]
fn a_metalink_in_place_of_the_file_is_never_stored() {
    let list = Arc::new(b"<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"></metalink>".to_vec());
    let served = Served::new(&list).header("Content-Type", "application/metalink4+xml; charset=utf-8");
    let rig = Rig::start(move |q| served.reply(q));
    let w = World::new();
    w.download(&rig.url("/f.iso")).run().exits(3).says(&["a metalink"]);
    w.holds_nothing();
    assert!(w.leftovers().iter().all(|p| fs::metadata(p).is_ok_and(|m| m.len() == 0)), "{:?}", w.leftovers());
    assert!(rig.asked().iter().all(|q| !q.header("accept").unwrap_or_default().contains("metalink")), "not asked for");
    let folder = w.path("in");
    w.download(&rig.url("/f.iso.meta4")).dir(&folder).run().exits(0);
    same_file(&folder.join("f.iso.meta4"), &list);
}
