//! Redirects, and what may cross from one origin to another (design 3.11).

mod support;

use support::{End, Reply, Rig, Served, World, noise};

#[test]
fn every_kind_is_followed_across_origins_and_by_relative_location() {
    let (w, data) = (World::new(), noise(110, 200_000));
    let served = Served::new(&data);
    let far = Rig::start(move |a| match a.target.as_str() {
        "/there/a" => Reply::redirect(307, "../b?c=d"),
        "/b?c=d" => Reply::redirect(308, &format!("//{}/end", a.header("host").unwrap())),
        _ => served.reply(a),
    });
    let to = far.url("/there/a");
    let near = Rig::start(move |a| match a.n {
        0 => Reply::redirect(301, "/second"),
        1 => Reply::redirect(303, "third"),
        _ => Reply::redirect(302, &to),
    });
    w.download(&near.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn twenty_are_followed_and_twenty_one_are_too_many() {
    for (hops, code) in [(20, 0), (21, 3)] {
        let (w, data) = (World::new(), noise(111, 9_000));
        let served = Served::new(&data);
        let rig = Rig::start(move |a| match a.target[2..].parse::<u32>() {
            Ok(n) if n < hops => Reply::redirect(302, &format!("/h{}", n + 1)),
            _ => served.reply(a),
        });
        let ran = w.download(&rig.url("/h0")).give_up("1s").run();
        ran.exits(code);
        if code != 0 {
            ran.says(&["redirect"]);
        }
    }
}

#[test]
fn those_that_lead_nowhere_end_it() {
    type Script = fn(&support::Asked) -> Reply;
    let scripts: [(&str, Script); 5] = [
        ("a loop", |a| Reply::redirect(302, if a.target == "/f" { "/g" } else { "/f" })),
        ("no Location", |_| Reply::status(302)),
        ("a file", |_| Reply::redirect(302, "file:///etc/hostname")),
        ("another scheme", |_| Reply::redirect(301, "ftp://127.0.0.1/f")),
        ("no URL", |_| Reply::redirect(308, "http://[::1")),
    ];
    for (what, script) in scripts {
        let w = World::new();
        let rig = Rig::start(script);
        let ran = w.download(&rig.url("/f")).delays("1h", "2h").give_up("1d").run();
        assert_eq!(ran.status.code(), Some(3), "{what}: {ran}");
        ran.says(&["redirect"]);
        w.holds_nothing();
    }
}

#[test]
fn each_session_starts_at_the_original_url() {
    let (w, data) = (World::new(), noise(112, 2_000_000));
    let served = Served::new(&data);
    // Each link works once: a second request for the same one is refused.
    let files = Rig::start(move |a| served.reply(a).cut(700_000, End::Close));
    let to = files.url("");
    let tickets = Rig::start(move |a| Reply::redirect(302, &format!("{to}/ticket/{}", a.n)));
    w.download(&tickets.url("/f")).run().exits(0);
    w.holds(&data);
    let mut targets: Vec<_> = files.asked().into_iter().map(|a| a.target).collect();
    let all = targets.len();
    targets.dedup();
    assert_eq!(targets.len(), all, "a ticket was used twice");
}

const SECRETS: [&str; 6] =
    ["-H", "Authorization: Bearer t0ps3cret", "-H", "Cookie: sid=t0ps3cret", "-H", "X-Plain: for typed URLs"];

#[test]
fn nothing_of_the_users_crosses_an_origin_by_redirect() {
    let (w, data) = (World::new(), noise(113, 100_000));
    let served = Served::new(&data);
    let far = Rig::start(move |a| served.reply(a));
    let to = far.url("/f");
    let near = Rig::start(move |_| Reply::redirect(302, &to));
    w.download(&near.url("/f")).args(&SECRETS).run().exits(0).hides("t0ps3cret");
    w.holds(&data);
    let first = &near.asked()[0];
    assert_eq!(first.header("authorization"), Some("Bearer t0ps3cret"));
    assert_eq!(first.header("cookie"), Some("sid=t0ps3cret"));
    assert_eq!(first.header("x-plain"), Some("for typed URLs"));
    for name in ["authorization", "cookie", "x-plain", "referer"] {
        assert_eq!(far.asked()[0].header(name), None, "{name} crossed");
    }
}

#[test]
fn location_trusted_lets_them_cross() {
    let (w, data) = (World::new(), noise(114, 100_000));
    let served = Served::new(&data);
    let far = Rig::start(move |a| served.reply(a));
    let to = far.url("/f");
    let near = Rig::start(move |_| Reply::redirect(302, &to));
    w.download(&near.url("/f")).args(&SECRETS).arg("--location-trusted").run().exits(0).hides("t0ps3cret");
    assert_eq!(far.asked()[0].header("authorization"), Some("Bearer t0ps3cret"));
}

#[test]
fn a_typed_mirror_gets_the_headers_but_not_the_credentials() {
    let (w, data) = (World::new(), noise(115, 100_000));
    let first = Rig::start(|_| Reply::status(404));
    let served = Served::new(&data);
    let mirror = Rig::start(move |a| served.reply(a));
    w.download(&first.url("/f"))
        .mirror(&mirror.url("/f"))
        .args(&SECRETS)
        .args(&["-u", "user:t0ps3cret"])
        .run()
        .exits(0);
    let asked = &mirror.asked()[0];
    assert_eq!(asked.header("x-plain"), Some("for typed URLs"));
    assert_eq!((asked.header("authorization"), asked.header("cookie")), (None, None));
}

#[test]
fn a_password_in_the_url_is_used_at_home_and_told_to_nobody() {
    let (w, data) = (World::new(), noise(116, 700_000));
    let served = Served::new(&data);
    let far = Rig::start(move |a| served.reply(a).cut(if a.n == 0 { 300_000 } else { usize::MAX }, End::Close));
    let to = far.url("/f");
    let near = Rig::start(move |a| match a.header("authorization") {
        // user:t0ps3cret
        Some("Basic dXNlcjp0MHBzM2NyZXQ=") => Reply::redirect(302, &to),
        _ => Reply::status(401).header("WWW-Authenticate", "Basic realm=\"x\""),
    });
    let url = near.url("/f?sig=s1gnature").replace("//", "//user:t0ps3cret@");
    let ran = w.download(&url).args(&["-v"]).run();
    ran.exits(0).hides("t0ps3cret").hides("s1gnature");
    w.holds(&data);
    assert!(far.asked().iter().all(|a| a.header("authorization").is_none()));
}

#[test]
fn secrets_of_an_unfinished_transfer_are_kept_from_other_eyes() {
    use std::os::unix::fs::PermissionsExt;
    let w = World::new();
    let rig = Rig::start(|_| Reply::status(503));
    let url = rig.url("/f?token=s1gnature").replace("//", "//user:t0ps3cret@");
    w.download(&url).args(&["-H", "Authorization: Bearer t0ken"]).arg("--once").run().exits(4);
    for command in [&["state", "list", "--all"][..], &["state", "show", "out.bin"], &["state", "report"]] {
        let ran = w.px(command.iter().copied()).run();
        ran.hides("t0ps3cret").hides("t0ken").hides("s1gnature");
    }
    for file in support::files_below(w.state.parent().unwrap()) {
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o077, 0, "{}", file.display());
    }
}
