//! Content codings where none was asked for (design 3.1): stored as sent where the name says so, otherwise decoded whole
//! or refused, and never half and half.

mod support;

use std::sync::Arc;

use support::{End, Reply, Rig, Served, World, cyclic_text, gzip, noise};

fn coded(data: &Arc<Vec<u8>>, coding: &str) -> Served {
    Served::new(data).header("Content-Encoding", coding)
}

/// The plain file, or a failure that leaves nothing.
#[track_caller]
fn plain_or_refused(w: &World, rig: &Rig, path: &str, plain: &[u8]) {
    let ran = w.download(&rig.url(path)).give_up("2s").run();
    if ran.succeeded() {
        w.holds(plain);
    } else {
        ran.exits(3).says(&["gzip", "coded", "encoding"]);
        w.holds_nothing();
    }
}

#[test]
fn a_gz_file_called_coded_is_stored_and_resumed_as_sent() {
    let w = World::new();
    let packed = gzip(&noise(180, 1_500_000));
    let served = coded(&packed, "gzip");
    let rig = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(800_000, End::Close) } else { served.reply(a) });
    w.download(&rig.url("/source.tar.gz")).out(Some(w.path("source.tar.gz"))).run().exits(0);
    support::same_file(&w.path("source.tar.gz"), &packed);
    assert!(rig.resumed(1, 500_000), "begun again");
}

#[test]
fn a_gz_file_whose_coding_goes_away_is_one_or_the_other() {
    let w = World::new();
    let plain = noise(181, 1_500_000);
    let packed = gzip(&plain);
    let (first, then) = (coded(&packed, "gzip"), Served::new(&plain));
    let rig = Rig::start(move |a| if a.n == 0 { first.reply(a).cut(800_000, End::Close) } else { then.reply(a) });
    let out = w.path("f.gz");
    let ran = w.download(&rig.url("/f.gz")).out(Some(out.clone())).give_up("2s").run();
    if ran.succeeded() {
        let held = std::fs::read(&out).unwrap();
        assert!(held == *plain || held == *packed, "half coded, half not");
    } else {
        ran.exits(3);
        assert!(!out.exists());
    }
}

#[test]
fn a_plain_name_coded_is_decoded_whole_or_refused() {
    let plain = cyclic_text(400_000);
    for (coding, body) in
        [("gzip", gzip(&plain)), ("x-gzip", gzip(&plain)), ("br", noise(182, 9_000)), ("zstd", noise(183, 9_000))]
    {
        let w = World::new();
        let served = coded(&body, coding);
        let rig = Rig::start(move |a| served.reply(a));
        plain_or_refused(&w, &rig, "/notes.txt", &plain);
    }
}

#[test]
fn a_plain_name_coded_and_cut_is_never_half_and_half() {
    let w = World::new();
    let plain = cyclic_text(900_000);
    let packed = gzip(&plain);
    let (first, then) = (coded(&packed, "gzip"), Served::new(&plain));
    let rig = Rig::start(move |a| if a.n == 0 { first.reply(a).cut(500_000, End::Close) } else { then.reply(a) });
    plain_or_refused(&w, &rig, "/notes.txt", &plain);
}

#[test]
fn a_coded_range_in_a_plain_download_is_refused() {
    let w = World::new();
    let plain = cyclic_text(1_500_000);
    let served = Served::new(&plain);
    let body = Arc::clone(&plain);
    let rig = Rig::start(move |a| match a.n {
        0 => served.reply(a).cut(700_000, End::Close),
        1 => {
            let from = a.from();
            let packed = gzip(&body[from..]);
            let n = packed.len();
            Reply::status(206)
                .header("ETag", "\"one\"")
                .header("Content-Encoding", "gzip")
                .header("Content-Range", &format!("bytes {from}-1499999/1500000"))
                .body(&packed, 0..n)
        }
        _ => served.reply(a),
    });
    w.download(&rig.url("/notes.txt")).run().exits(0);
    w.holds(&plain);
}

#[test]
fn a_mirror_that_codes_is_not_mixed_with_one_that_does_not() {
    let w = World::new();
    let plain = cyclic_text(1_500_000);
    let served = Served::new(&plain);
    let a = Rig::start(move |q| if q.n == 0 { served.reply(q).cut(700_000, End::Close) } else { Reply::status(503) });
    let packed = coded(&gzip(&plain), "gzip");
    let b = Rig::start(move |q| packed.reply(q));
    let ran = w.download(&a.url("/notes.txt")).mirror(&b.url("/notes.txt")).give_up("2s").run();
    if ran.succeeded() {
        w.holds(&plain);
    } else {
        ran.exits(3);
        w.holds_nothing();
    }
}

#[test]
fn identity_named_outright_is_no_coding() {
    let (w, data) = (World::new(), noise(184, 300_000));
    let served = coded(&data, "identity");
    let rig = Rig::start(move |a| served.reply(a));
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}
