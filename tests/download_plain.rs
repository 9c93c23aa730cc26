//! Downloads with nothing in their way, and answers of every honest form (design 3.1, 3.7, 3.9).

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use support::rig::served::{MODIFIED, MODIFIED_LATER};
use support::{End, Reply, Rig, Served, World, ms, names_in, noise, same_file};

#[test]
fn one_file_arrives_whole_with_its_evidence_and_leaves_nothing_beside_it() {
    let (w, data) = (World::new(), noise(10, 1_500_007));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    w.download(&rig.url("/f.bin")).run().exits(0).says(&["validator"]);
    w.holds(&data);
    assert!(w.leftovers().is_empty(), "{:?}", w.leftovers());
    assert_eq!(rig.count(), 1);
    assert_eq!(rig.asked()[0].header("accept-encoding"), Some("identity"));
}

#[test]
fn quiet_says_nothing_of_a_success() {
    let (w, data) = (World::new(), noise(11, 30_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    let ran = w.download(&rig.url("/f")).arg("-q").run();
    ran.exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
}

#[test]
fn an_empty_file_and_a_file_of_one_byte_are_files() {
    for n in [0, 1] {
        let (w, data) = (World::new(), noise(12, n));
        let served = Served::new(&data);
        let rig = Rig::start(move |a| served.reply(a));
        w.download(&rig.url("/f")).run().exits(0);
        w.holds(&data);
        assert!(rig.count() <= 2, "{} requests for {n} bytes", rig.count());
    }
}

#[test]
fn a_chunked_body_of_unknown_length_is_whole_at_its_last_chunk() {
    let (w, data) = (World::new(), noise(13, 333_333));
    let body = data.clone();
    let rig = Rig::start(move |_| Reply::status(200).body(&body, 0..body.len()).chunked().pace(7_001, ms(0)));
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn a_body_that_ends_with_its_connection_is_taken_and_called_unverified() {
    for http10 in [false, true] {
        let (w, data) = (World::new(), noise(14, 222_222));
        let body = data.clone();
        let rig = Rig::start(move |_| {
            let reply = Reply::status(200).body(&body, 0..body.len());
            if http10 { reply.http10() } else { reply.header("Connection", "close").until_close() }
        });
        w.download(&rig.url("/f")).run().exits(0).says(&["length unverified"]);
        w.holds(&data);
    }
}

#[test]
fn evidence_that_is_required_and_missing_is_a_failure() {
    let (w, data) = (World::new(), noise(15, 40_000));
    let body = data.clone();
    let rig = Rig::start(move |_| Reply::status(200).body(&body, 0..body.len()).http10());
    w.download(&rig.url("/f"))
        .args(&["--require-evidence", "validator"])
        .give_up("1s")
        .run()
        .exits(3)
        .says(&["evidence"]);
    w.holds_nothing();
}

#[test]
fn interim_answers_come_before_the_answer_and_are_not_it() {
    let (w, data) = (World::new(), noise(16, 70_000));
    let served = Served::new(&data);
    let interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n";
    let rig = Rig::start(move |a| served.reply(a).after_bytes(interim));
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn bytes_beyond_the_content_length_are_not_ours() {
    let (w, data) = (World::new(), noise(17, 60_000));
    let body = data.clone();
    let rig = Rig::start(move |_| {
        Reply::status(200)
            .header("Content-Length", "50000")
            .header("ETag", "\"e\"")
            .body(&body, 0..60_000)
            .then(End::Close)
    });
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data[..50_000]);
}

#[test]
fn a_slow_first_byte_is_waited_for_whatever_the_stall_time() {
    let (w, data) = (World::new(), noise(18, 90_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).late(ms(2300)));
    w.download(&rig.url("/f")).args(&["--stall-timeout", "1s"]).run().exits(0);
    w.holds(&data);
    assert_eq!(rig.count(), 1);
}

#[test]
fn several_files_each_get_their_name_from_their_url() {
    let w = World::new();
    let folder = w.folder("in");
    let rig = Rig::start(|a| Served::new(&noise(a.target.len() as u64, 20_000)).reply(a));
    let px = w.download(&rig.url("/a.bin")).url(&rig.url("/bb.bin?x=1")).url(&rig.url("/sub/c%20c.bin"));
    px.dir(&folder).run().exits(0);
    assert_eq!(names_in(&folder), ["a.bin", "bb.bin", "c c.bin"]);
    same_file(&folder.join("a.bin"), &noise(6, 20_000));
    same_file(&folder.join("bb.bin"), &noise(11, 20_000));
}

#[test]
fn one_missing_file_of_several_fails_the_run_and_costs_the_others_nothing() {
    let w = World::new();
    let folder = w.folder("in");
    let rig = Rig::start(|a| match a.target.as_str() {
        "/b" => Reply::status(404),
        _ => Served::new(&noise(19, 50_000)).reply(a),
    });
    let ran = w.download(&rig.url("/a")).url(&rig.url("/b")).url(&rig.url("/c")).dir(&folder).run();
    ran.exits(3).says(&["404"]);
    assert_eq!(names_in(&folder), ["a", "c"]);
}

#[test]
fn connections_are_kept_for_the_next_file() {
    let w = World::new();
    let folder = w.folder("in");
    let rig = Rig::start(|a| Served::new(&noise(20, 5_000)).reply(a));
    let mut px = w.download(&rig.url("/0")).args(&["-j", "1"]).dir(&folder);
    for n in 1..8 {
        px = px.url(&rig.url(&format!("/{n}")));
    }
    px.run().exits(0);
    assert_eq!(rig.count(), 8);
    assert!(rig.connections() <= 2, "{} connections for 8 files", rig.connections());
}

#[test]
fn a_kept_connection_that_the_server_closed_is_no_failure() {
    let w = World::new();
    let folder = w.folder("in");
    // Nothing announces the close: the client learns of it when it asks for the next file.
    let rig =
        Rig::start(|a| Served::new(&noise(21, 5_000)).reply(a).header("Connection", "keep-alive").then(End::Close));
    let mut px = w.download(&rig.url("/0")).args(&["-j", "1", "--once"]).dir(&folder);
    for n in 1..6 {
        px = px.url(&rig.url(&format!("/{n}")));
    }
    px.run().exits(0);
    assert_eq!(names_in(&folder).len(), 6);
}

#[test]
fn the_file_has_the_mode_that_the_umask_gives() {
    let (w, data) = (World::new(), noise(22, 1_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    w.download(&rig.url("/f")).umask("027").run().exits(0);
    assert_eq!(fs::metadata(&w.out).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn remote_time_gives_the_file_the_servers_date() {
    let (w, data) = (World::new(), noise(23, 1_000));
    for (modified, seconds) in [(MODIFIED, 1_793_613_600), (MODIFIED_LATER, 1_793_705_400)] {
        let served = Served::new(&data).no_etag().modified(modified);
        let rig = Rig::start(move |a| served.reply(a));
        let out = w.path(&seconds.to_string());
        w.download(&rig.url("/f")).arg("--remote-time").out(Some(out.clone())).run().exits(0);
        let mtime = fs::metadata(&out).unwrap().modified().unwrap();
        assert_eq!(mtime.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(), seconds);
    }
}

#[test]
fn a_file_too_large_for_the_user_is_refused_before_its_bytes_come() {
    let (w, data) = (World::new(), noise(24, 2_000_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    w.download(&rig.url("/f")).args(&["--max-filesize", "1m"]).give_up("1s").run().exits(3).says(&["2000000"]);
    w.holds_nothing();
    assert!(rig.sent() < 1_500_000, "{} bytes were taken", rig.sent());
}
