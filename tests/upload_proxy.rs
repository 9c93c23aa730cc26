//! The proxy does to uploads what it is told, before doubles and before real servers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use std::io::ErrorKind;

use support::{eventually, ms, noise};
use upload::{Dav, DavServer, Heard, Ietf, Manners, Mischief, Proxy, Raw, TusNode, Way};

/// Apache, the proxy before it, and the URL of a file by way of the proxy.
fn apache() -> (DavServer, Proxy, String) {
    let server = Dav::Apache.start();
    let proxy = Proxy::before(server.daemon.port());
    let url = proxy.url(&server.url("f"));
    (server, proxy, url)
}

fn put(url: &str, data: &[u8]) -> Heard {
    Raw::new("PUT", url).body(data).send()
}

#[test]
fn without_mischief_everything_passes() {
    let data = noise(1, 1_000_000);
    let (server, proxy, url) = apache();
    assert_eq!(put(&url, &data).status(), Some(201));
    assert_eq!(server.stored("f").as_deref(), Some(&data[..]));
    let chunked = Raw::new("PUT", &url).body(&data[..500_000]).chunked().send();
    assert_eq!((chunked.status(), server.stored("f").map(|f| f.len())), (Some(204), Some(500_000)));
    let waits = Raw::new("PUT", &url).body(&data).waits().send();
    assert_eq!((waits.interim.len(), waits.status()), (1, Some(204)));
    let got = Raw::new("GET", &url).send();
    assert_eq!(got.answer.map(|answer| answer.body).as_deref(), Some(&data[..]));
    let moved = Raw::new("MOVE", &url).header("Destination", proxy.url(&server.url("g"))).send();
    assert_eq!((moved.status(), server.names()), (Some(201), vec!["g".to_owned()]));
    let log = proxy.door.log();
    assert_eq!(log.iter().map(|e| e.answer).collect::<Vec<_>>(), [201, 204, 204, 200, 201].map(Some));
    assert_eq!((log[0].received, log[0].whole, proxy.door.received()), (1_000_000, true, 2_500_000));
    assert_eq!((log[2].interim.as_slice(), log[4].header("destination").is_some()), ([100].as_slice(), true));
}

#[test]
fn a_url_of_an_upload_leads_through_the_proxy() {
    let server = TusNode::default().start();
    let proxy = Proxy::before(server.daemon.port());
    let raw = Raw::new("POST", &proxy.url(&server.url())).header("Tus-Resumable", "1.0.0").header("Upload-Length", 3);
    let created = raw.body(b"").send();
    assert!(created.header("location").unwrap().starts_with(&proxy.door.url("/files/")), "{created:?}");
}

#[test]
fn informational_answers_pass_and_fields_can_be_stripped() {
    let server = Ietf::start(Manners { interop: None, ..Manners::default() });
    let proxy = Proxy::before(server.door.port());
    let create = || Raw::new("POST", &proxy.url(&server.url())).header("Upload-Complete", "?1").body(b"data").send();
    let heard = create();
    assert_eq!((heard.interim.len(), heard.interim[0].status, heard.status()), (1, 104, Some(200)));
    proxy.now(Mischief::Strips("location"));
    let heard = create();
    assert_eq!((heard.interim[0].header("location"), heard.header("location")), (None, None));
    proxy.now(Mischief::Strips("upload-complete"));
    assert_eq!(create().text(), "taken\n", "the server knows nothing of the draft");
}

#[test]
fn a_buffering_proxy_passes_whole_bodies_only() {
    let data = noise(2, 1_000_000);
    let server = Ietf::start(Manners { interop: None, ..Manners::default() });
    let proxy = Proxy::before(server.door.port());
    proxy.now(Mischief::Buffers);
    let create = || Raw::new("POST", &proxy.url(&server.url())).header("Upload-Complete", "?1").body(&data);
    create().killed_after(600_000).send();
    eventually("the proxy has seen the end", || proxy.door.received() == 600_000);
    let whole = create().waits().send();
    assert_eq!((whole.status(), server.stored()), (Some(200), vec![data.to_vec()]));
    assert_eq!(server.door.log().len(), 1, "of the first it never heard");
}

#[test]
fn cuts_come_at_an_exact_byte() {
    let data = noise(3, 1_000_000);
    for (way, sees) in [(Way::Close, None), (Way::Reset, Some(ErrorKind::ConnectionReset))] {
        let server = Ietf::start(Manners { interop: None, ..Manners::default() });
        let proxy = Proxy::before(server.door.port());
        proxy.next(Mischief::Cuts { after: 123_456, way });
        let raw = Raw::new("POST", &proxy.url(&server.url())).header("Upload-Complete", "?1").body(&data);
        let heard = raw.clone().pace(10_000, ms(1)).send();
        assert!(heard.status().is_none() && (sees.is_none() || heard.failed.is_some()), "{heard:?}");
        eventually("the server has what was passed on", || {
            server.uploads().first().is_some_and(|u| u.offset == 123_456)
        });
        assert!(data.starts_with(&server.stored()[0]));
        assert_eq!(proxy.door.log()[0].answer, None);
        assert_eq!(raw.send().status(), Some(200), "once");
    }
}

#[test]
fn answers_are_lost_when_all_has_arrived() {
    let (server, proxy, url) = apache();
    proxy.next(Mischief::LosesAnswer);
    assert_eq!(put(&url, b"data").status(), None);
    assert_eq!(server.stored("f").as_deref(), Some(&b"data"[..]));
    assert_eq!(proxy.door.log()[0].answer, Some(201), "it was said, and lost");
    assert_eq!(put(&url, b"again").status(), Some(204));
}

#[test]
fn too_large_is_said_early_or_late_or_lost() {
    let (server, proxy, url) = apache();
    let data = noise(4, 6_000_000);
    proxy.next(Mischief::TooLarge { limit: 1000, way: Way::Linger });
    let heard = Raw::new("PUT", &url).body(&data).waits().send();
    assert_eq!((heard.status(), heard.sent), (Some(413), 0));
    proxy.next(Mischief::TooLargeAtTheEnd { limit: 1000 });
    let heard = put(&url, &data);
    assert_eq!((heard.status(), heard.sent), (Some(413), data.len()));
    proxy.next(Mischief::TooLarge { limit: 1000, way: Way::Reset });
    let heard = put(&url, &data);
    assert!(heard.failed.is_some() && heard.sent < data.len(), "{heard:?}");
    proxy.next(Mischief::TooLarge { limit: 1000, way: Way::Linger });
    assert_eq!(put(&url, &data[..1000]).status(), Some(201), "that much is allowed");
    assert_eq!(server.names(), ["f"]);
}

#[test]
fn it_waits_paces_stalls_and_answers_itself() {
    let (server, proxy, url) = apache();
    proxy.next(Mischief::Answers { status: 503, retry_after: Some(7) });
    let heard = put(&url, b"data");
    assert_eq!((heard.status(), heard.header("retry-after")), (Some(503), Some("7")));
    for mischief in [Mischief::Delays(ms(300)), Mischief::Paces { bytes: 10, rest: ms(30) }] {
        proxy.next(mischief);
        let from = std::time::Instant::now();
        // Between eleven pieces are ten rests.
        put(&url, &[1; 110]);
        assert!(from.elapsed() >= ms(300), "{mischief:?}");
    }
    proxy.next(Mischief::Stalls { after: 50 });
    std::thread::scope(|scope| {
        let stalled = scope.spawn(|| put(&url, &[2; 100]));
        eventually("so much has passed", || proxy.door.log().last().unwrap().received == 50);
        std::thread::sleep(ms(100));
        assert!(!stalled.is_finished());
        proxy.door.kill();
        assert_eq!(stalled.join().unwrap().status(), None);
    });
    proxy.door.revive();
    proxy.now(Mischief::Answers { status: 500, retry_after: None });
    assert_eq!(Raw::new("GET", &url).send().status(), Some(500), "from now on, also what has no body");
    assert_eq!(server.stored("f").as_deref(), Some(&[1; 110][..]));
}

#[test]
fn one_request_of_many_is_chosen_and_answers_are_replaced() {
    let (server, proxy, url) = apache();
    proxy.next_of("HEAD /dav/f", Mischief::Says { status: 503, body: "" });
    proxy.next_of("PUT", Mischief::Replaces { status: 200, body: "<Error/>" });
    assert_eq!(Raw::new("GET", &url).send().status(), Some(404), "nobody chose this one");
    let heard = put(&url, b"data");
    assert_eq!((heard.status(), heard.text().as_str()), (Some(200), "<Error/>"));
    assert_eq!(server.stored("f").as_deref(), Some(&b"data"[..]));
    let head = || Raw::new("HEAD", &url).send().status();
    assert_eq!((head(), head()), (Some(503), Some(200)));
}

#[test]
fn a_server_that_is_gone_is_a_bad_gateway() {
    let (mut server, _proxy, url) = apache();
    server.daemon.kill();
    assert_eq!(put(&url, b"data").status(), Some(502));
    server.daemon.revive();
    assert_eq!(put(&url, b"data").status(), Some(201));
}
