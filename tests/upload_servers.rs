//! The real servers that uploads are tested against do what was recorded of them: if one of these fails, a newer version
//! behaves in another way, and the tests that stand on it need a look.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]
#![allow(clippy::disallowed_methods, reason = "clocks are read here to end what hangs, never to decide")]

mod support;
#[path = "support/upload/mod.rs"]
mod upload;

use std::time::Duration;

use support::{eventually, noise};
use upload::{Dav, Heard, Moto, Raw, Tus, TusNode, nginx_before};

/// The first 300,000 bytes of a file, sent as everything or in two slices.
const HALF: usize = 150_000;

fn put(url: &str, data: &[u8]) -> Heard {
    Raw::new("PUT", url).body(data).send()
}

fn put_range(url: &str, data: &[u8], range: &str) -> Option<u16> {
    Raw::new("PUT", url).header("Content-Range", range).body(data).send().status()
}

#[test]
fn every_dav_server_takes_a_whole_file_moves_it_and_replaces_it() {
    let data = noise(1, 300_000);
    for kind in Dav::ALL {
        let server = kind.start();
        let heard = put(&server.url("part"), &data);
        assert_eq!(heard.status(), Some(201), "{kind:?}: {heard:?} {}", server.daemon.said());
        assert_eq!(server.stored("part").as_deref(), Some(&data[..]), "{kind:?}");
        let moved = Raw::new("MOVE", &server.url("part")).header("Destination", server.url("whole")).send();
        assert!(matches!(moved.status(), Some(201 | 204)), "{kind:?}: {moved:?} {}", server.daemon.said());
        assert_eq!(server.names(), ["whole"], "{kind:?}");
        let got = Raw::new("GET", &server.url("whole")).send();
        assert_eq!(got.answer.map(|answer| answer.body).as_deref(), Some(&data[..]), "{kind:?}");
        let again = put(&server.url("whole"), b"another").status();
        assert!(matches!(again, Some(201 | 204)), "{kind:?}: {again:?}");
        assert_eq!(server.stored("whole").as_deref(), Some(&b"another"[..]), "{kind:?}");
    }
}

#[test]
fn a_content_range_is_honoured_refused_or_ignored() {
    let data = noise(2, 300_000);
    // The answers to a slice where no file is, and to one that is appended; what the file is then.
    let table = [
        (Dav::Apache, 201, 204, Some(&data[..])),
        (Dav::Lighttpd, 400, 400, None),
        (Dav::LighttpdRanged, 404, 204, Some(&data[..])),
        (Dav::Nginx, 501, 501, None),
        (Dav::Wsgidav, 400, 400, None),
        (Dav::Rclone, 201, 201, Some(&data[HALF..])),
    ];
    for (kind, absent, append, whole) in table {
        let server = kind.start();
        assert_eq!(put_range(&server.url("a"), &data[..HALF], "bytes 0-149999/300000"), Some(absent), "{kind:?}");
        server.place("f", &data[..HALF]);
        let appended = put_range(&server.url("f"), &data[HALF..], "bytes 150000-299999/300000");
        assert_eq!(appended, Some(append), "{kind:?}: {}", server.daemon.said());
        assert_eq!(server.stored("f").as_deref(), Some(whole.unwrap_or(&data[..HALF])), "{kind:?}");
    }
}

#[test]
fn apache_keeps_what_came_of_a_slice_and_leaves_a_hole_where_one_is_skipped() {
    let (server, data) = (Dav::Apache.start(), noise(3, 3_000_000));
    server.place("f", &data[..10]);
    let slice = Raw::new("PUT", &server.url("f")).header("Content-Range", "bytes 10-2999999/3000000").body(&data[10..]);
    slice.pace(100_000, Duration::from_millis(5)).killed_after(1_000_000).send();
    eventually("a part of the slice is there", || server.stored("f").is_some_and(|f| f.len() > 10));
    let held = server.stored("f").unwrap();
    assert!(held.len() < data.len() && data.starts_with(&held), "{} bytes", held.len());
    assert_eq!(put_range(&server.url("gap"), b"end", "bytes 100-102/103"), Some(201));
    assert_eq!(server.stored("gap").unwrap(), [&[0; 100][..], b"end"].concat());
}

#[test]
fn a_killed_put_leaves_nothing_or_half_a_file() {
    let data = noise(4, 3_000_000);
    for kind in Dav::ALL {
        let server = kind.start();
        let halves = matches!(kind, Dav::Rclone | Dav::Wsgidav);
        // Another request shows that the first one has ended for the server, too.
        Raw::new("PUT", &server.url("f")).body(&data).killed_after(1_000_000).send();
        if halves {
            eventually("half a file", || server.stored("f").is_some_and(|f| !f.is_empty()));
            assert!(server.stored("f").unwrap().len() < data.len(), "{kind:?}");
        } else {
            assert_eq!(put(&server.url("other"), b"x").status(), Some(201), "{kind:?}");
            assert_eq!(Raw::new("HEAD", &server.url("f")).send().status(), Some(404), "{kind:?}");
        }
    }
}

#[test]
fn conditions_limits_and_missing_folders() {
    for (kind, exists, parent) in [
        (Dav::Apache, 412, 409),
        (Dav::Lighttpd, 412, 409),
        (Dav::Nginx, 204, 201),
        (Dav::Rclone, 201, 404),
        (Dav::Wsgidav, 412, 409),
    ] {
        let server = kind.start();
        server.place("f", b"old");
        let heard = Raw::new("PUT", &server.url("f")).header("If-None-Match", "*").body(b"new").send();
        assert_eq!(heard.status(), Some(exists), "{kind:?}");
        assert_eq!(put(&server.url("a/b"), b"x").status(), Some(parent), "{kind:?}");
    }
    let nginx = Dav::Nginx.start();
    let heard = Raw::new("PUT", &nginx.url("big")).body(&noise(5, 6 << 20)).waits().send();
    assert_eq!((heard.status(), heard.sent), (Some(413), 0));
}

/// An upload at a tus server: its URL.
fn tus_create(url: &str, length: usize) -> Heard {
    // tuspyserver answers no HEAD where one of the two is missing.
    let metadata = "filename Zi5iaW4=,filetype YXBwbGljYXRpb24vb2N0ZXQtc3RyZWFt";
    tus("POST", url).header("Upload-Length", length).header("Upload-Metadata", metadata).body(b"").send()
}

fn tus(method: &str, url: &str) -> Raw {
    Raw::new(method, url).header("Tus-Resumable", "1.0.0")
}

fn tus_patch(url: &str, offset: u64, data: &[u8]) -> Raw {
    tus("PATCH", url)
        .header("Upload-Offset", offset)
        .header("Content-Type", "application/offset+octet-stream")
        .body(data)
}

fn tus_offset(url: &str) -> u64 {
    let heard = tus("HEAD", url).send();
    heard.number("upload-offset").unwrap_or_else(|| panic!("no offset: {heard:?}"))
}

/// Creates an upload, kills it half-way, and goes on from the offset that the server tells.
fn tus_resumes(server: &Tus, kept: impl Fn(u64) -> bool) {
    let data = noise(6, 3_000_000);
    let created = tus_create(&server.url(), data.len());
    let location = created.header("location").unwrap_or_else(|| panic!("{created:?} {}", server.daemon.said()));
    tus_patch(location, 0, &data).pace(100_000, Duration::from_millis(5)).killed_after(2_000_000).send();
    eventually("the offset moves", || kept(tus_offset(location)));
    let offset = tus_offset(location);
    let heard = tus_patch(location, offset, &data[usize::try_from(offset).unwrap()..]).send();
    assert_eq!((heard.status(), heard.number("upload-offset")), (Some(204), Some(3_000_000)), "{heard:?}");
    assert_eq!(server.stored(), [data.to_vec()]);
}

#[test]
fn the_tus_server_of_node_resumes() {
    tus_resumes(&TusNode::default().start(), |offset| offset > 0);
}

#[test]
fn the_tus_server_of_python_resumes() {
    tus_resumes(&Tus::python(10_000_000), |offset| offset > 0);
}

#[test]
fn options_of_the_tus_server_of_node() {
    let server = TusNode { relative_location: true, max_size: Some(1000), ..TusNode::default() }.start();
    assert_eq!(tus_create(&server.url(), 1001).status(), Some(413));
    let created = tus_create(&server.url(), 1000);
    let location = created.header("location").unwrap();
    assert!(location.starts_with("/files/"), "{location}");
    assert_eq!(tus_offset(&server.daemon.url(location)), 0);
    assert_eq!(tus_patch(&server.daemon.url(location), 5, b"x").send().status(), Some(409));
    assert_eq!(tus("HEAD", &server.daemon.url("/files/unknown")).send().status(), Some(404));
}

#[test]
fn uploads_of_the_tus_server_of_node_expire() {
    let server = TusNode { expiration: Some(Duration::from_millis(700)), ..TusNode::default() }.start();
    let created = tus_create(&server.url(), 1000);
    let location = created.header("location").unwrap();
    eventually("it has expired", || matches!(tus("HEAD", location).send().status(), Some(404 | 410)));
}

#[test]
fn a_server_that_was_killed_comes_back_with_what_it_had() {
    let mut server = TusNode::default().start();
    let created = tus_create(&server.url(), 6);
    let location = created.header("location").unwrap();
    assert_eq!(tus_patch(location, 0, b"abc").send().status(), Some(204));
    server.daemon.kill();
    assert!(std::net::TcpStream::connect(("127.0.0.1", server.daemon.port())).is_err());
    server.daemon.revive();
    assert_eq!(tus_offset(location), 3);
}

#[test]
fn a_front_end_that_buffers_erases_what_a_killed_body_brought() {
    let (server, data) = (TusNode::default().start(), noise(7, 3_000_000));
    let front = nginx_before(server.daemon.port(), "0");
    let created = tus_create(&front.url("/files"), data.len());
    let location = created.header("location").unwrap();
    assert!(location.starts_with(&front.url("/files/")), "{location}");
    tus_patch(location, 0, &data).pace(100_000, Duration::from_millis(5)).killed_after(2_000_000).send();
    assert_eq!(tus_offset(location), 0);
    for (n, segment) in data.chunks(1_000_000).enumerate() {
        assert_eq!(tus_patch(location, n as u64 * 1_000_000, segment).send().status(), Some(204));
    }
    assert_eq!(server.stored(), [data.to_vec()]);
}

#[test]
fn a_front_end_with_a_limit_answers_413_before_the_body() {
    let server = TusNode::default().start();
    let front = nginx_before(server.daemon.port(), "1m");
    let created = tus_create(&front.url("/files"), 3_000_000);
    let location = created.header("location").unwrap();
    let heard = tus_patch(location, 0, &noise(8, 3_000_000)).waits().send();
    assert_eq!((heard.status(), heard.sent), (Some(413), 0));
    assert_eq!(tus_patch(location, 0, &noise(8, 1_000_000)).send().status(), Some(204));
}

#[test]
fn moto_joins_parts_and_lists_them() {
    let (server, data) = (Moto::start(), noise(9, 6 << 20));
    let object = format!("{}/folder/f", server.bucket("bucket"));
    let created = Raw::new("POST", &format!("{object}?uploads")).body(b"").send();
    let text = created.text();
    let id = text.split("<UploadId>").nth(1).and_then(|rest| rest.split('<').next()).expect("an upload id");
    let tags: Vec<_> = data
        .chunks(5 << 20)
        .enumerate()
        .map(|(n, part)| {
            let heard = put(&format!("{object}?partNumber={}&uploadId={id}", n + 1), part);
            heard.header("etag").unwrap_or_else(|| panic!("{heard:?}")).to_owned()
        })
        .collect();
    let listed = Raw::new("GET", &format!("{object}?uploadId={id}")).send().text();
    assert!(tags.iter().all(|tag| listed.contains(tag.trim_matches('"'))), "{listed}");
    let parts = tags
        .iter()
        .enumerate()
        .map(|(n, tag)| format!("<Part><PartNumber>{}</PartNumber><ETag>{tag}</ETag></Part>", n + 1));
    let body = format!("<CompleteMultipartUpload>{}</CompleteMultipartUpload>", parts.collect::<String>());
    let done = Raw::new("POST", &format!("{object}?uploadId={id}")).body(body.as_bytes()).send();
    assert_eq!(done.status(), Some(200), "{done:?}");
    assert_eq!(server.stored("bucket", "folder/f").as_deref(), Some(&data[..]));
}
