//! The double of a server for resumable uploads of the IETF keeps to the draft, where it is not told to break it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use support::{digest, eventually, noise};
use upload::{Answer, Heard, Ietf, IetfFault, Interim, Limits, Manners, Raw};

const VERSION: &str = "Upload-Draft-Interop-Version";

fn ask(method: &str, url: &str) -> Raw {
    Raw::new(method, url).header(VERSION, 8)
}

/// Creates an upload by an empty body.
fn create(server: &Ietf, length: usize) -> Heard {
    ask("POST", &server.url()).header("Upload-Complete", "?0").header("Upload-Length", length).body(b"").send()
}

fn location(heard: &Heard) -> String {
    heard.header("location").unwrap_or_else(|| panic!("no Location: {heard:?}")).to_owned()
}

fn patch(url: &str, offset: usize, complete: &str, data: &[u8]) -> Raw {
    let raw = ask("PATCH", url).header("Upload-Offset", offset).header("Upload-Complete", complete);
    raw.header("Content-Type", "application/partial-upload").body(data)
}

/// The offset, and whether the upload is complete.
fn head(url: &str) -> (Option<u64>, Option<String>) {
    let heard = ask("HEAD", url).send();
    (heard.number("upload-offset"), heard.header("upload-complete").map(str::to_owned))
}

#[test]
fn an_upload_is_created_appended_to_and_closed() {
    let (server, data) = (Ietf::start(Manners { repr_digest: true, ..Manners::default() }), noise(1, 3_000_000));
    let created = create(&server, data.len());
    assert_eq!((created.status(), created.header("upload-complete")), (Some(201), Some("?0")));
    let url = location(&created);
    let first = patch(&url, 0, "?0", &data[..1_000_000]).send();
    assert_eq!((first.status(), first.number("upload-offset")), (Some(204), Some(1_000_000)));
    let second = patch(&url, 1_000_000, "?0", &data[1_000_000..]).send();
    let offsets: Vec<_> =
        second.interim.iter().map(|interim| (interim.status, interim.header("upload-offset"))).collect();
    assert_eq!(offsets.len(), 1, "one MiB more was stored once: {offsets:?}");
    assert!(second.interim.iter().all(|interim| interim.header("upload-draft-interop-version") == Some("8")));
    assert_eq!(head(&url), (Some(3_000_000), Some("?0".to_owned())), "all bytes are there, and it is open");
    let closed = patch(&url, 3_000_000, "?1", b"").send();
    assert_eq!((closed.status(), closed.header("upload-complete")), (Some(200), Some("?1")));
    assert_eq!(head(&url), (Some(3_000_000), Some("?1".to_owned())));
    assert_eq!(server.stored(), [data.to_vec()]);
    let told = closed.header("repr-digest").unwrap().to_owned();
    let hex = digest("sha-256", &data).split_once('=').unwrap().1.to_owned();
    use base64::Engine as _;
    let ours = base64::engine::general_purpose::STANDARD.encode(hex::decode(hex).unwrap());
    assert_eq!(told, format!("sha-256=:{ours}:"));
    assert_eq!(patch(&url, 3_000_000, "?1", b"").send().status(), Some(400), "it is complete");
    assert_eq!(server.complaints(), [""; 0]);
}

#[test]
fn a_creation_with_a_body_is_told_its_url_before_it_may_go_on() {
    let (server, data) = (Ietf::start(Manners::default()), noise(2, 100_000));
    let raw = ask("POST", &server.url()).header("Upload-Complete", "?1").header("Upload-Length", data.len());
    let heard = raw.body(&data).waits().send();
    let interim: Vec<_> = heard.interim.iter().map(|interim| interim.status).collect();
    assert_eq!((interim.as_slice(), heard.status()), ([104, 100].as_slice(), Some(200)));
    assert_eq!(heard.interim[0].header("location"), heard.header("location"));
    assert_eq!(server.stored(), [data.to_vec()]);
    server.faults().next(IetfFault::Cut { after: 70_000 });
    let cut = raw_creation(&server, &data).send();
    let url =
        cut.interim.first().and_then(|interim: &Answer| interim.header("location")).expect("104 came first").to_owned();
    assert_eq!((cut.status(), head(&url).0), (None, Some(70_000)));
}

fn raw_creation(server: &Ietf, data: &[u8]) -> Raw {
    ask("POST", &server.url()).header("Upload-Complete", "?1").header("Upload-Length", data.len()).body(data)
}

#[test]
fn offsets_that_are_wrong_are_answered_with_the_right_one() {
    let server = Ietf::start(Manners { relative_location: true, ..Manners::default() });
    let url = location(&create(&server, 6));
    assert!(url.starts_with("/uploads/"), "{url}");
    let url = server.door.url(&url);
    patch(&url, 0, "?0", b"abc").send();
    let heard = patch(&url, 1, "?0", b"bcd").send();
    assert_eq!((heard.status(), heard.number("upload-offset")), (Some(409), Some(3)));
    assert!(heard.text().contains("\"expected-offset\":3,\"provided-offset\":1"), "{}", heard.text());
    server.faults().next(IetfFault::Conflict);
    assert_eq!(patch(&url, 3, "?0", b"def").send().status(), Some(409));
    assert_eq!(patch(&url, 3, "?1", b"de").send().status(), Some(400), "the length is another");
    assert_eq!(patch(&url, 5, "?1", b"f").send().status(), Some(200));
    assert_eq!(server.stored(), [b"abcdef"]);
}

#[test]
fn limits_are_told_and_held() {
    let limits =
        Limits { max_size: Some(100), max_append: Some(10), min_append: Some(5), age: Some(60), min_size: Some(2) };
    let told = |interop: u8| {
        let server = Ietf::start(Manners { interop: Some(interop), limits, ..Manners::default() });
        let heard = Raw::new("OPTIONS", &server.url()).header(VERSION, interop).send();
        heard.header("upload-limit").unwrap().to_owned()
    };
    let sizes = "max-size=100, min-size=2, max-append-size=10, min-append-size=5";
    assert_eq!([told(6), told(7)], [format!("{sizes}, expires=60"), format!("{sizes}, max-age=60")]);
    let server = Ietf::start(Manners { limits, ..Manners::default() });
    assert_eq!((create(&server, 101).status(), create(&server, 1).status()), (Some(413), Some(400)));
    let url = location(&create(&server, 20));
    assert_eq!(patch(&url, 0, "?0", &[0; 11]).send().status(), Some(413));
    assert_eq!(patch(&url, 0, "?0", &[0; 4]).send().status(), Some(400));
    assert_eq!(server.complaints().len(), 2);
    assert_eq!(patch(&url, 0, "?0", &[0; 10]).send().status(), Some(204));
    let free = Ietf::start(Manners::default());
    let announced = ask("OPTIONS", &free.url()).send();
    assert_eq!(announced.header("upload-limit"), Some("min-size=0"), "no limits are announced, too");
}

#[test]
fn bodies_break_off_and_answers_are_lost() {
    let (server, data) = (Ietf::start(Manners { tells_offset: false, ..Manners::default() }), noise(3, 200_000));
    let url = location(&create(&server, data.len()));
    server.faults().next(IetfFault::Cut { after: 50_000 });
    assert_eq!(patch(&url, 0, "?1", &data).send().status(), None);
    assert_eq!(head(&url).0, Some(50_000));
    server.faults().next(IetfFault::Loses { after: 30_000 });
    assert_eq!(patch(&url, 50_000, "?1", &data[50_000..]).send().status(), None);
    assert_eq!(head(&url).0, Some(50_000));
    server.faults().next(IetfFault::TakesPart { bytes: 30_000 });
    let part = patch(&url, 50_000, "?1", &data[50_000..]).send();
    assert_eq!(
        (part.status(), part.number("upload-offset"), part.header("upload-complete")),
        (Some(204), Some(80_000), Some("?0"))
    );
    let silent = patch(&url, 80_000, "?0", &data[80_000..90_000]).send();
    assert_eq!((silent.status(), silent.header("upload-offset")), (Some(204), None));
    server.faults().next(IetfFault::Answers(503));
    assert_eq!(patch(&url, 90_000, "?1", &data[90_000..]).send().status(), Some(503));
    server.faults().next(IetfFault::AnswerLost);
    assert_eq!(patch(&url, 90_000, "?1", &data[90_000..]).send().status(), None);
    assert_eq!(head(&url), (Some(200_000), Some("?1".to_owned())));
    assert_eq!(server.stored(), [data.to_vec()]);
}

#[test]
fn a_look_at_the_offset_ends_a_stalled_body() {
    let (server, data) = (Ietf::start(Manners::default()), noise(4, 1_000_000));
    let url = location(&create(&server, data.len()));
    server.faults().next(IetfFault::Stall { after: 70_000 });
    std::thread::scope(|scope| {
        let stalled = scope.spawn(|| patch(&url, 0, "?1", &data).send());
        eventually("it is under way", || server.uploads()[0].offset == 70_000);
        assert_eq!(head(&url).0, Some(70_000));
        assert_eq!(stalled.join().unwrap().status(), None);
    });
}

#[test]
fn offsets_go_back_uploads_are_forgotten_and_applications_say_no() {
    let server = Ietf::start(Manners::default());
    let url = location(&create(&server, 6));
    patch(&url, 0, "?0", b"abcd").send();
    server.set_back(3);
    assert_eq!(head(&url).0, Some(1));
    server.application(422, "{\"no\": true}");
    let refused = patch(&url, 1, "?1", b"bcdef").send();
    assert_eq!((refused.status(), refused.header("upload-complete")), (Some(422), Some("?1")));
    for status in [404, 410] {
        server.forget(status);
        assert_eq!(ask("HEAD", &url).send().status(), Some(status));
    }
    let url = location(&create(&server, 6));
    assert_eq!(ask("DELETE", &url).send().status(), Some(204));
    server.forget(404);
    assert_eq!(patch(&url, 0, "?0", b"abcd").send().status(), Some(404));
}

#[test]
fn other_versions_and_servers_that_know_none() {
    let server = Ietf::start(Manners { interim: Interim::Location, ..Manners::default() });
    server.faults().next(IetfFault::OtherInterop(6));
    let heard = raw_creation(&server, b"data").send();
    assert_eq!(heard.interim[0].header("upload-draft-interop-version"), Some("6"));
    // A client of another version, or of none, is one that uploads a file.
    let plain = Raw::new("POST", &server.url()).header(VERSION, 7).header("Upload-Complete", "?0").body(b"").send();
    assert_eq!((plain.status(), plain.header("location")), (Some(201), None));
    let last = Ietf::start(Manners { interop: None, ..Manners::default() });
    let created = Raw::new("POST", &last.url()).header("Upload-Complete", "?0").body(b"").send();
    assert_eq!((created.status(), created.header("upload-draft-interop-version")), (Some(201), None));
    assert!(created.header("location").is_some());
}

#[test]
fn what_the_draft_forbids_is_noted() {
    let server = Ietf::start(Manners { repr_digest: true, ..Manners::default() });
    let url = location(&create(&server, 3));
    assert_eq!(ask("HEAD", &url).header("Upload-Offset", 0).send().status(), Some(400));
    assert_eq!(ask("PATCH", &url).body(b"abc").send().status(), Some(400));
    let untyped = ask("PATCH", &url).header("Upload-Offset", 0).header("Upload-Complete", "?1").body(b"abc").send();
    assert_eq!(untyped.status(), Some(415));
    assert_eq!(Raw::new("HEAD", &url).send().status(), Some(204));
    assert_eq!(server.complaints().len(), 4, "{:?}", server.complaints());
    patch(&url, 0, "?1", b"abc").send();
    let right = ask("HEAD", &url).send().header("repr-digest").unwrap().to_owned();
    server.tells_wrong_digests();
    assert_ne!(ask("HEAD", &url).send().header("repr-digest"), Some(right.as_str()));
}
