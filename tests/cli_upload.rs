//! Uploads through the built program, as far as no server is needed: asked for, added, inspected, controlled, forgotten.
//! Whatever happens, the file that is sent and all that stands beside it is left as it was.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot be set up has failed")]

mod support;

use std::fs;
use std::sync::Arc;

use persxfer::core::pers_xfer::options::Options;
use persxfer::core::pers_xfer::record::{Record, XferId};
use persxfer::core::range::{Length, Offset};
use persxfer::core::state::Document;
use persxfer::core::time::Epoch;
use persxfer::core::upload::{Handle, Protocol, Source, Stamp, UploadOptions, UploadSession};
use persxfer::core::url::MirrorUrl;
use serde_json::Value;
use support::{Ran, World, files_below, noise};

const SERVER: &str = "http://127.0.0.1:9/in/";
/// What stands beside the file and looks like ours.
const NEIGHBOURS: [&str; 3] = ["f.zip.persxfer-part", "f.zip.persxfer-part2", "f.zip.persxfer-journal"];

/// A world with a file to send, and neighbours.
fn world() -> World {
    let w = World::new();
    fs::write(w.path("f.zip"), &noise(1, 3000)[..]).unwrap();
    for name in NEIGHBOURS {
        fs::write(w.path(name), name).unwrap();
    }
    w
}

/// All that is not the state's.
#[track_caller]
fn untouched(w: &World) {
    assert_eq!(fs::read(w.path("f.zip")).unwrap(), noise(1, 3000)[..]);
    for name in NEIGHBOURS {
        assert_eq!(fs::read_to_string(w.path(name)).unwrap_or_default(), name);
    }
    let mut names: Vec<_> =
        files_below(&w.path("")).iter().filter_map(|p| p.file_name()).map(|n| n.to_owned()).collect();
    names.retain(|name| name.to_string_lossy().starts_with("f.zip"));
    assert_eq!(names.len(), 1 + NEIGHBOURS.len(), "{names:?}");
}

fn px(w: &World, words: &[&str]) -> Ran {
    w.px(words.iter().copied()).run()
}

fn url(text: &str) -> MirrorUrl {
    MirrorUrl::parse(text).unwrap()
}

/// A state file with an upload of `f.zip`, of which a server has 1000 bytes by tus. The file is the one that was begun with, unless
/// `older` says otherwise.
fn begun(w: &World, older: bool) {
    let server = url("https://me:s3cret@h.example/files/?k=s3cret");
    let meta = fs::metadata(w.path("f.zip")).unwrap();
    let mtime = std::os::unix::fs::MetadataExt::mtime(&meta);
    let nanos = std::os::unix::fs::MetadataExt::mtime_nsec(&meta);
    let mtime_ns = i128::from(mtime - i64::from(older)) * 1_000_000_000 + i128::from(nanos);
    let source = Source { stamp: Stamp { size: Length(3000), mtime_ns }, mark: None, digest: None };
    let mut session = UploadSession::new(Protocol::Tus, server.clone(), source, Epoch::from_secs(1_767_225_600));
    session.handle = Some(Handle::Url(url("https://h.example/files/s3cret-session")));
    (session.confirmed, session.reached) = (Offset(1000), Offset(3000));
    let mut record = Record::upload(XferId(7), "f.zip".into(), w.path("f.zip"), std::slice::from_ref(&server));
    let upload = UploadOptions { protocols: vec![(server, Protocol::Tus)], ..UploadOptions::default() };
    record.options = Arc::new(Options { upload, ..Options::default() });
    record.nbytes = Some(Length(3000));
    record.uploads = vec![session];
    let mut document = Document::fresh();
    document.put(&record);
    document.next_generation();
    fs::write(&w.state, document.to_bytes()).unwrap();
}

#[test]
fn a_dry_run_tells_where_to_and_how_and_does_nothing() {
    let w = world();
    let words = ["upload", "--dry-run", "--name", "g.zip", "f.zip", SERVER, "tus+http://me:s3cret@h/files?k=s3cret"];
    let ran = px(&w, &words);
    ran.exits(0);
    for says in [
        "/f.zip\n",
        "  to http://127.0.0.1:9/in/g.zip by put\n",
        "  to http://h/files?k=*** by tus\n",
        "  as g.zip\n",
        "would be uploaded, 2.9 KiB",
    ] {
        assert!(ran.stdout.contains(says), "{says:?} is not in\n{ran}");
    }
    assert!(!ran.stdout.contains("s3cret"), "{ran}");
    assert!(!w.state.exists(), "nothing was written");
    untouched(&w);
}

#[test]
fn an_upload_that_is_added_is_listed_shown_and_forgotten() {
    let w = world();
    px(&w, &["add", "upload", "f.zip", SERVER, "ietf+http://127.0.0.1:9/up"])
        .exits(0)
        .says(&["`persxfer run` uploads it"]);
    px(&w, &["add", "upload", "f.zip", SERVER]).exits(0).says(&["is there already"]);
    px(&w, &["add", "upload", "f.zip", SERVER, "ietf+http://127.0.0.1:9/up"]).exits(0);
    let listed = w.list(&[]);
    assert_eq!(listed.len(), 1, "its file and first server are who it is");
    let told = &listed[0];
    assert_eq!((&told["is_upload"], &told["name"], &told["nbytes"]), (&true.into(), &"f.zip".into(), &3000.into()));
    assert_eq!(told["urls"], serde_json::json!(["http://127.0.0.1:9/in/f.zip", "http://127.0.0.1:9/up"]));
    assert!(px(&w, &["state", "list"]).stdout.contains("to 127.0.0.1:9"));
    let shown = px(&w, &["state", "show", "f.zip"]).stdout;
    assert!(
        shown.contains("http://127.0.0.1:9/up, by ietf: usable") && shown.contains("f.zip, by put: usable"),
        "{shown}"
    );
    let dry = px(&w, &["upload", "--dry-run", "f.zip", SERVER]).stdout;
    assert!(dry.contains("would continue with 0 B confirmed"), "{dry}");
    px(&w, &["state", "check"]).exits(0);
    px(&w, &["state", "export"]).exits(0);
    px(&w, &["suspend", "f.zip"]).exits(0).says(&["f.zip: suspended"]);
    px(&w, &["resume", "f.zip"]).exits(0).says(&["or the same command again"]);
    px(&w, &["abort", "f.zip"]).exits(0).says(&["leaves its file alone"]);
    let report = px(&w, &["state", "report"]).stdout;
    assert!(report.contains("<file_name>f.zip</file_name>") && report.contains("-197"), "{report}");
    px(&w, &["retry", "f.zip"]).exits(0);
    untouched(&w);
    px(&w, &["state", "forget", "f.zip"]).exits(0).says(&["f.zip: forgotten\n"]);
    assert_eq!(w.list(&["--all"]).len(), 0);
    untouched(&w);
}

#[test]
fn what_is_said_now_holds_and_a_signature_is_passed_through() {
    let w = world();
    let add = |signature: &str, limit: &str| {
        fs::write(w.path("run.sig"), signature).unwrap();
        let words =
            ["add", "upload", "--name", "run_1_0", "--boinc-signature", "run.sig", "--max-nbytes", limit, "f.zip"];
        px(&w, &[&words[..], &["boinc+http://127.0.0.1:9/up"]].concat()).exits(0);
    };
    add("00aa\n.\n", "4k");
    assert!(w.state_text().contains("00aa") && w.state_text().contains("<max_nbytes>4096"), "{}", w.state_text());
    add("11bb\n.\n", "8k");
    let text = w.state_text();
    assert!(text.contains("11bb") && !text.contains("00aa") && text.contains("<max_nbytes>8192"), "{text}");
    let shown = px(&w, &["state", "show", "f.zip"]).stdout;
    assert!(shown.contains(", by boinc: usable"), "{shown}");
}

#[test]
fn what_a_server_has_is_shown_and_what_it_calls_it_is_not() {
    let w = world();
    begun(&w, false);
    let shown = px(&w, &["state", "show", "f.zip"]);
    shown.exits(0);
    for says in ["confirmed  1000 B of 2.9 KiB", "https://h.example/files/?k=***, by tus", "1000 B confirmed, begun "] {
        assert!(shown.stdout.contains(says), "{says:?} is not in\n{shown}");
    }
    let json = px(&w, &["state", "show", "--json", "f.zip"]);
    let story: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((&story["servers"][0]["protocol"], &story["servers"][0]["confirmed"]), (&"tus".into(), &1000.into()));
    for words in
        [&["show", "f.zip"][..], &["show", "--json", "f.zip"], &["export"], &["list"], &["list", "--json"], &["check"]]
    {
        let ran = px(&w, &[&["state"], words].concat());
        assert!(!ran.stdout.contains("s3cret") && !ran.stderr.contains("s3cret"), "{words:?}: {ran}");
    }
    px(&w, &["state", "check"]).exits(0);
    untouched(&w);
}

#[test]
fn a_file_that_changed_or_went_is_told_by_check_and_never_touched() {
    let w = world();
    begun(&w, true);
    let changed = px(&w, &["state", "check", "--repair"]);
    changed.exits(0);
    assert!(changed.stdout.contains("its time of modification or of change is another"), "{changed}");
    untouched(&w);
    fs::copy(w.path("f.zip"), w.path("g.zip")).unwrap();
    fs::remove_file(w.path("f.zip")).unwrap();
    let gone = px(&w, &["state", "check"]);
    gone.exits(3);
    assert!(gone.stdout.contains("f.zip: the file to upload is gone, and was not sent whole"), "{gone}");
    assert!(!gone.stdout.contains("persxfer-part"), "what stands beside it is no part file of ours: {gone}");
    px(&w, &["upload", "f.zip", SERVER]).exits(5).says(&["f.zip"]);
}

#[test]
fn forgetting_an_upload_that_was_begun_leaves_its_file_and_the_neighbours_alone() {
    let w = world();
    begun(&w, false);
    px(&w, &["state", "forget", "f.zip"]).exits(0).says(&["f.zip: forgotten"]);
    assert_eq!(w.list(&["--all"]).len(), 0);
    untouched(&w);
}
