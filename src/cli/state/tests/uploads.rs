//! The same of uploads: what servers have is told in their own words, their names for it never, and nothing beside the file
//! is ours.

use super::*;
use crate::core::upload::{Part, Phase, Source, Stamp};

fn book() -> Fake {
    let records = vec![
        samples::upload_record(0x21, "out.zip", Status::Pending),
        samples::upload_record(0x22, "sent.zip", Status::Done),
    ];
    Fake { records: RefCell::new(records), ..Fake::default() }
}

fn with(change: impl FnOnce(&mut Record)) -> Fake {
    let book = book();
    change(&mut book.records.borrow_mut()[0]);
    book
}

const BEGUN: Stamp = Stamp { size: Length(3 << 20), mtime_ns: 7 };

fn here(stamp: Stamp) -> SourceNow {
    SourceNow::Here(Source { stamp, mark: None, digest: None })
}

#[test]
fn a_row_says_the_way_and_the_servers_word() {
    let (out, _, exit) = ran(&book(), &["list", "--all"]);
    assert_eq!(exit, Ok(0));
    insta::assert_snapshot!(out, @r"
    NAME      STATE     DONE     SIZE     RETRIES  NEXT TRY       MIRROR
    out.zip   waiting   1.0 MiB  3.0 MiB  2        in 1 min 12 s  to a.example
    sent.zip  complete  3.0 MiB  3.0 MiB  2        -              to a.example
    ");
    let list: serde_json::Value = serde_json::from_str(&ran(&book(), &["list", "--all", "--json"]).0).expect("JSON");
    let told =
        |key: &str| list["transfers"].as_array().expect("a list").iter().map(|t| t[key].clone()).collect::<Vec<_>>();
    assert_eq!(told("is_upload"), [true, true]);
    assert_eq!(told("confirmed"), [1 << 20, 3 << 20]);
    assert_eq!(told("file"), [serde_json::Value::Null, serde_json::Value::Null]);
}

#[test]
fn the_story_of_each_server() {
    let book = with(|record| {
        let session = &mut record.uploads[0];
        session.phase = Phase::Finishing;
        session.part_size = Some(Length(1 << 19));
        session.parts = (1..=2).map(|number| Part { number, size: Length(1 << 19), etag: "x".into() }).collect();
        let gone = samples::url("http://old.example/f?k=s3cret");
        let mut former = record.uploads[0].clone();
        (former.server, former.expires) = (gone, Some(at(-1).wall));
        record.uploads.push(former);
    });
    let (out, _, exit) = ran(&book, &["show", "out.zip"]);
    assert_eq!(exit, Ok(0));
    for words in [
        "upload     /data/out.zip",
        "confirmed  1.0 MiB of 3.0 MiB",
        "\nservers\n  http://a.example/out.zip?token=***, by tus: usable\n    1.0 MiB confirmed, begun ",
        "kept until ",
        "takes at most 8.0 MiB at once, 2 parts of 512 KiB, asked to finish, its answer not known",
        "http://b.example/out.zip, by put: refused (missing)",
        "http://old.example/f?k=***, by tus: not asked any more; 1.0 MiB confirmed",
        "said to be forgotten since ",
    ] {
        assert!(out.contains(words), "{words:?} is not in:\n{out}");
    }
    assert!(!out.contains("s3cret") && !out.contains("mirrors") && !out.contains("held "), "{out}");
    assert!(ran(&book, &["show", "sent.zip"]).0.contains("confirmed  3.0 MiB of 3.0 MiB"));
}

#[test]
fn the_same_as_json() {
    let (out, _, _) = ran(&book(), &["show", "--json", "out.zip"]);
    assert!(!out.contains("s3cret"), "{out}");
    let story: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&story["is_upload"], &story["confirmed"]), (&true.into(), &(1 << 20).into()));
    let server = serde_json::json!({
        "url": "http://a.example/out.zip?token=***",
        "protocol": "tus",
        "confirmed": 1 << 20,
        "begun": 1_767_222_000.0,
        "expires": 1_767_229_200.0,
        "segment": 8 << 20,
        "part_size": null,
        "parts": 0,
        "finishing": false,
    });
    assert_eq!(story["servers"], serde_json::json!([server]));
    let documented = include_str!("../../../../docs/events.md");
    for key in server.as_object().expect("an object").keys().map(String::as_str).chain(["servers"]) {
        assert!(documented.contains(&format!("`{key}`")), "docs/events.md lacks `{key}`");
    }
    let (exported, _, _) = ran(&book(), &["export"]);
    assert!(!exported.contains("s3cret") && exported.lines().count() == 2, "{exported}");
}

#[test]
fn a_file_that_is_gone_or_another_one_is_told() {
    let check = |source: SourceNow| {
        let (out, _, exit) = ran(&Fake { source: Some(source), ..book() }, &["check"]);
        (exit.expect("ran"), out)
    };
    let same = check(here(BEGUN));
    assert_eq!(
        same,
        (0, "/s/client_state.xml: 2 transfers, no damage\n".into()),
        "the one that was sent has done its duty"
    );
    let (exit, out) = check(SourceNow::Gone);
    assert_eq!(exit, 3);
    assert!(
        out.starts_with("/data/out.zip: the file to upload is gone, and was not sent whole; the upload waits"),
        "{out}"
    );
    let (exit, out) = check(SourceNow::Unusable("it is no regular file".into()));
    assert!(exit == 3 && out.contains("cannot be sent: it is no regular file"), "{out}");
    for (stamp, says) in [
        (Stamp { size: Length(4 << 20), ..BEGUN }, "its size is another; what a server has of the old one is given up"),
        (Stamp { mtime_ns: 8, ..BEGUN }, "its time of modification or of change is another; what a server has"),
    ] {
        let (exit, out) = check(here(stamp));
        assert!(exit == 0 && out.contains(says), "{says:?} is not in:\n{out}");
    }
    let nothing_sent = with(|record| record.uploads[0].confirmed = Offset(0));
    let source = Some(here(Stamp { mtime_ns: 8, ..BEGUN }));
    let (out, _, _) = ran(&Fake { source, ..nothing_sent }, &["check"]);
    assert!(out.ends_with("no damage\n") && !out.contains("out.zip"), "{out}");
    let json = ran(&Fake { source: Some(SourceNow::Gone), ..book() }, &["check", "--json"]).0;
    let found: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&found["findings"][0]["kind"], &found["findings"][0]["path"]),
        (&"source".into(), &"/data/out.zip".into())
    );
}

#[test]
fn forgetting_says_no_more_than_that_where_no_server_was_late() {
    let book = book();
    let (_, said, exit) = ran(&book, &["forget", "out.zip", "sent.zip"]);
    assert_eq!(exit, Ok(0));
    assert_eq!(said, "/data/out.zip: forgotten\n/data/sent.zip: forgotten\n");
    assert!(book.records.borrow().is_empty());
}
