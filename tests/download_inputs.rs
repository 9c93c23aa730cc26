//! Downloads that come from files, and what is run around them: `-i`, `--dry-run`, `--on-complete` (design 6).

mod support;

use std::fs;

use support::{Reply, Rig, Served, World, digest, names_in, noise, same_file};

#[test]
fn an_input_file_holds_a_file_a_line_with_its_mirrors_and_options() {
    let w = World::new();
    let folder = w.folder("in");
    let (one, two) = (noise(250, 70_000), noise(251, 80_000));
    let (a, b) = (Served::new(&one), Served::new(&two));
    let rig = Rig::start(move |q| match q.target.as_str() {
        "/one.bin" => a.reply(q),
        "/two" => b.reply(q),
        _ => Reply::status(404),
    });
    let list = w.path("list.txt");
    let text = format!(
        "# two files\n{}\n\n{}\t{}\n  out=second.bin\n  checksum={}\n",
        rig.url("/one.bin"),
        rig.url("/gone"),
        rig.url("/two"),
        digest("sha-256", &two)
    );
    fs::write(&list, text).unwrap();
    let px = w.px(["download", "--min-delay", "50ms", "--max-delay", "200ms", "-d"]).arg(&folder);
    px.arg("-i").arg(&list).run().exits(0);
    assert_eq!(names_in(&folder), ["one.bin", "second.bin"]);
    same_file(&folder.join("second.bin"), &two);
}

#[test]
fn a_line_that_cannot_be_read_is_named_by_its_number() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(404));
    let list = w.path("list.txt");
    for (text, place) in
        [("\nftp://x/y\n", "2"), ("  out=x\n", "1"), ("http://127.0.0.1:1/f\n  colour=red\n", "colour")]
    {
        fs::write(&list, text).unwrap();
        let ran = w.px(["download", "-i"]).arg(&list).run();
        ran.exits(2).says(&[place]);
        assert!(ran.stderr.contains("list.txt"), "{ran}");
    }
    assert_eq!(rig.count(), 0);
}

#[test]
fn a_dry_run_asks_nobody_and_writes_nothing() {
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(404));
    let ran = w.download(&rig.url("/f")).arg("--dry-run").run();
    ran.exits(0);
    assert!(ran.stdout.contains("out.bin"), "{ran}");
    assert_eq!(rig.count(), 0);
    assert!(!w.state.exists() && w.leftovers().is_empty());
    w.holds_nothing();
}

#[test]
fn what_is_to_run_after_a_download_gets_words_and_no_shell() {
    let (w, data) = (World::new(), noise(252, 30_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.target == "/f" { served.reply(a) } else { Reply::status(404) });
    let marks = w.folder("marks");
    let done = format!("touch {}/done$(id).mark", marks.display());
    let failed = format!("touch {}/failed.mark", marks.display());
    w.download(&rig.url("/f")).args(&["--on-complete", &done, "--on-failure", &failed]).run().exits(0);
    let names = names_in(&marks);
    assert!(names.iter().any(|n| n.starts_with("done$(id)")), "{names:?}");
    assert!(!names.iter().any(|n| n.starts_with("failed")), "{names:?}");
    let other = w.path("other.bin");
    w.download(&rig.url("/g")).out(Some(other)).args(&["--on-complete", &done, "--on-failure", &failed]).run().exits(3);
    assert!(names_in(&marks).contains(&"failed.mark".to_owned()));
}

#[test]
fn an_http_proxy_is_asked_for_the_whole_url_and_no_proxy_is_honoured() {
    let (w, data) = (World::new(), noise(253, 30_000));
    let served = Served::new(&data);
    let proxy = Rig::start(move |a| served.reply(a));
    let url = "http://files.example/f.bin";
    w.download(url).env("http_proxy", &proxy.url("")).run().exits(0);
    w.holds(&data);
    assert_eq!(proxy.asked()[0].target, url);
    let served = Served::new(&data);
    let direct = Rig::start(move |a| served.reply(a));
    let out = w.path("second.bin");
    let px =
        w.download(&direct.url("/f")).out(Some(out)).env("http_proxy", &proxy.url("")).env("NO_PROXY", "127.0.0.1");
    px.run().exits(0);
    assert_eq!((proxy.count(), direct.count()), (1, 1));
    // A CGI program's environment could name a proxy in capitals: it must not be believed.
    let out = w.path("third.bin");
    w.download(&direct.url("/f")).out(Some(out)).env("HTTP_PROXY", "http://127.0.0.1:1").run().exits(0);
}

#[test]
fn the_home_folders_netrc_is_read_only_when_asked_for() {
    let (w, data) = (World::new(), noise(254, 30_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    fs::write(w.path("home/.netrc"), "machine 127.0.0.1 login me password t0ps3cret\n").unwrap();
    w.download(&rig.url("/f")).run().exits(0);
    w.download(&rig.url("/f")).out(Some(w.path("second"))).arg("--netrc").run().exits(0).hides("t0ps3cret");
    let asked = rig.asked();
    assert_eq!(asked[0].header("authorization"), None);
    assert_eq!(asked[1].header("authorization"), Some("Basic bWU6dDBwczNjcmV0"));
}
