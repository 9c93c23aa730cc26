//! The `state` commands over a fake state file.

mod uploads;

use std::cell::RefCell;
use std::path::PathBuf;

use super::*;
use crate::cli::foreign::{BookError, HeldParts, Inspection, JournalState, Left, PartState, SourceNow};
use crate::cli::samples::{self, at};
use crate::core::digest::{Algorithm, Pieces};
use crate::core::failure::LocalFault;
use crate::core::file_xfer::dossier::{OriginNotes, Ranges};
use crate::core::pers_xfer::record::Direction;
use crate::core::pers_xfer::record::XferId;
use crate::core::range::{ByteRange, Length, Offset, RangeSet};
use crate::io::state_file::StateError;

/// A state file in memory, with part files in a folder.
#[derive(Default)]
pub(super) struct Fake {
    pub(super) records: RefCell<Vec<Record>>,
    pub(super) warnings: Vec<Warning>,
    pub(super) damaged: bool,
    pub(super) foreign: bool,
    pub(super) held: Option<XferId>,
    pub(super) missing: bool,
    pub(super) parts: PathBuf,
    /// What is found in the part file of `waiting.bin`, and what is left of it after a repair.
    pub(super) found: RefCell<Option<Inspection>>,
    pub(super) left: RangeSet,
    /// A repair is refused.
    pub(super) refuses: bool,
    /// What the file of an upload is now.
    pub(super) source: Option<SourceNow>,
}

impl Book for Fake {
    fn path(&self) -> &Path {
        Path::new("/s/client_state.xml")
    }
    fn load(&self) -> Result<Contents, BookError> {
        if self.damaged {
            let told = "it is damaged".into();
            return Err(BookError::Damaged { path: self.path().into(), told, damage: self.warnings.clone() });
        }
        Ok(Contents { records: self.records.borrow().clone(), warnings: self.warnings.clone(), ..Contents::default() })
    }
    fn writable(&self) -> Result<(), BookError> {
        let foreign = StateError::Foreign { path: self.path().into() };
        if self.foreign { Err(BookError::Unusable(foreign)) } else { Ok(()) }
    }
    fn remove(&self, ids: &[XferId]) -> Result<(), BookError> {
        self.writable()?;
        self.records.borrow_mut().retain(|r| !ids.contains(&r.id));
        Ok(())
    }
    fn holder(&self, record: &Record) -> Option<String> {
        (self.held == Some(record.id)).then(|| "4711".into())
    }
    fn is_missing(&self, record: &Record) -> bool {
        self.missing && record.status == Status::Done
    }
    fn hold_parts(&self, record: &Record) -> Result<HeldParts, LocalFault> {
        let parts = self.parts(record);
        Ok(Box::new(move || {
            let removed = parts.into_iter().filter(|part| std::fs::remove_file(part).is_ok()).count();
            Ok(if removed > 0 { Left::Parts } else { Left::Nothing })
        }))
    }
    fn source(&self, record: &Record) -> Option<SourceNow> {
        self.source.clone().filter(|_| record.direction == Direction::Upload)
    }
    fn inspect(&self, record: &Record) -> Option<Result<Inspection, LocalFault>> {
        self.outline(record).map(Ok)
    }
    fn outline(&self, record: &Record) -> Option<Inspection> {
        self.found.borrow().clone().filter(|_| record.id == XferId(0x11))
    }
    fn repair(&self, _: &Record, _: &[ByteRange]) -> Result<RangeSet, LocalFault> {
        if self.refuses {
            return Err(LocalFault::InUse { path: "/data/x".into(), holder: "4711".into() });
        }
        let (held, damaged) = (self.left.clone(), vec![]);
        let found = self.found.take().map(|found| Inspection { held, damaged, journal: JournalState::Sound, ..found });
        self.found.replace(found);
        Ok(self.left.clone())
    }
    fn holds_only(&self, id: XferId, left: &RangeSet) -> Result<(), BookError> {
        self.records.borrow_mut().iter_mut().filter(|r| r.id == id).for_each(|r| r.holds_only(left));
        Ok(())
    }
    fn parts(&self, record: &Record) -> Vec<PathBuf> {
        let ends: &[&str] = if record.direction == Direction::Upload { &[] } else { &["part", "journal"] };
        ends.iter().map(|end| self.parts.join(format!("{}.persxfer-{end}", record.name))).collect()
    }
}

pub(super) fn fake() -> Fake {
    let failed = Status::Failed { code: -224, message: "the server answered 404 <Not Found>".into() };
    let records = vec![
        samples::record(0x11, "waiting.bin", Status::Pending),
        samples::record(0x12, "broken.bin", failed),
        samples::record(0x13, "whole.bin", Status::Done),
        samples::record(0x14, "resting.bin", Status::Suspended),
    ];
    Fake { records: RefCell::new(records), ..Fake::default() }
}

fn damage() -> Warning {
    Warning { file: "/s/client_state.xml".into(), at: Some((3, 14)), text: "a tag is not closed".into() }
}

/// Standard output, what was said, and the exit status or the trouble.
pub(super) fn ran(book: &Fake, words: &[&str]) -> (String, String, Result<u8, (u8, String)>) {
    use clap::Parser;
    let cli = crate::cli::args::Cli::try_parse_from([&["persxfer", "state"], words].concat()).expect("good words");
    let crate::cli::args::Command::State(asked) = cli.command else { unreachable!("state") };
    let (out, said) = (RefCell::new(String::new()), RefCell::new(String::new()));
    let print = |text: &str| {
        out.borrow_mut().push_str(text);
        Ok(())
    };
    let say = |text: &str| said.borrow_mut().push_str(&format!("{text}\n"));
    let desk = Desk {
        book,
        now: at(0),
        standing: std::cell::LazyCell::new(Box::new(Standing::default)),
        cwd: Path::new("/data"),
        out: &print,
        columns: None,
        say: &say,
    };
    let exit = dispatch(&asked.command, &desk).map(Exit::code).map_err(|t| (t.exit().code(), t.to_string()));
    // The desk, which drops what it may have looked up, has borrowed both.
    drop(desk);
    (out.into_inner(), said.into_inner(), exit)
}

#[test]
fn a_table() {
    let (out, said, exit) = ran(&fake(), &["list"]);
    assert_eq!((exit, said.as_str()), (Ok(0), ""));
    insta::assert_snapshot!(out, @r"
    NAME         STATE      DONE     SIZE     RETRIES  NEXT TRY       MIRROR
    waiting.bin  waiting    1.0 MiB  3.0 MiB  2        in 1 min 12 s  a.example
    broken.bin   failed     1.0 MiB  3.0 MiB  2        -              a.example
    resting.bin  suspended  1.0 MiB  3.0 MiB  2        -              a.example
    ");
    assert!(ran(&fake(), &["list", "--all"]).0.contains("whole.bin"));
    let running = Fake { held: Some(XferId(0x11)), ..fake() };
    assert!(ran(&running, &["list"]).0.contains("waiting"), "it is in use, and its time has not come");
    running.records.borrow_mut()[0].next_request_time = None;
    assert!(ran(&running, &["list"]).0.contains("running"));
    running.records.borrow_mut()[0].first_request_time = None;
    assert!(ran(&running, &["list"]).0.contains("queued"));
    let (out, said, exit) = ran(&Fake::default(), &["list"]);
    assert_eq!((out.as_str(), said.as_str(), exit), ("", "no transfers\n", Ok(0)));
}

#[test]
fn a_list_as_json_has_boincs_names() {
    let (out, _, _) = ran(&fake(), &["list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(list["schema"], 1);
    assert_eq!(list["transfers"].as_array().expect("a list").len(), 3);
    let first = &out["{\"schema\":1,\"transfers\":[".len()..];
    let first = &first[..=first.find('}').expect("an end")];
    insta::assert_snapshot!(first, @r#"{"id":"0000000000000011","name":"waiting.bin","path":"/data/waiting.bin","urls":["http://a.example/waiting.bin?token=***","http://b.example/waiting.bin"],"nbytes":3145728,"is_upload":false,"status":"pending","error_code":null,"error_msg":null,"num_retries":2,"sessions":5,"first_request_time":1767222000.0,"next_request_time":1767225672.0,"time_so_far":41.0,"confirmed":1048576,"confirmed_from":"record","evidence":null,"digest_source":null,"file":null,"in_use_by":null,"waits":null}"#);
    assert_eq!(ran(&Fake::default(), &["list", "--json"]).0, "{\"schema\":1,\"transfers\":[]}\n");
}

#[test]
fn the_whole_story() {
    let book = fake();
    book.records.borrow_mut()[0].dossier.part.held = Length(1 << 20);
    let (out, _, exit) = ran(&book, &["show", "waiting.bin"]);
    assert_eq!(exit, Ok(0));
    for words in [
        "waiting, next try in 1 min 12 s",
        "the server answered 503 Service Unavailable",
        "http://a.example/waiting.bin?token=***: usable, has served bytes",
        "http://b.example/waiting.bin: refused (missing): the server answered 404 Not Found",
        "1.0 MiB of 3.0 MiB",
        "5, 2 failed passes",
        "one strong validator",
    ] {
        assert!(out.contains(words), "{words:?} is not in:\n{out}");
    }
    assert!(
        ran(&book, &["show", "broken.bin"])
            .0
            .contains("failed for good: the server answered 404 <Not Found> (error -224)")
    );
    assert!(ran(&book, &["show", "whole.bin"]).0.contains("evidence   validator"));
    let (json, _, _) = ran(&book, &["show", "--json", "waiting.bin"]);
    let story: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&story["schema"], &story["name"], &story["part"]["held"]),
        (&1.into(), &"waiting.bin".into(), &(1 << 20).into())
    );
    assert_eq!(story["mirrors"][1]["class"], "missing");
}

#[test]
fn what_is_held_where_and_what_was_learned() {
    let book = fake();
    let mb = |start: u64, end: u64| ByteRange::new(Offset(start << 20), Offset(end << 20));
    let held: RangeSet = [mb(0, 1), mb(2, 3)].into_iter().collect();
    book.found.replace(Some(Inspection {
        part: PartState::Regular,
        length: Length(3 << 20),
        held,
        verified: RangeSet::new(),
        damaged: vec![],
        journal: JournalState::Sound,
        holder: None,
    }));
    if let Some(record) = book.records.borrow_mut().first_mut() {
        let origin = record.mirrors[0].url.origin();
        record.dossier.part.held = Length(1 << 20);
        record.expected = Some(Length(3 << 20));
        record.pieces = Pieces::new(Algorithm::Sha1, Length(1 << 20), vec![7; 60]).ok().map(Into::into);
        record.apart = true;
        let notes = OriginNotes { ranges: Ranges::Work, most: Some(4), ..OriginNotes::new(origin) };
        record.dossier.origins.push(notes);
    }
    let (out, _, _) = ran(&book, &["show", "waiting.bin"]);
    for words in [
        "held       2.0 MiB of 3.0 MiB",
        "segments   2: bytes 0-1048575, 2097152-3145727",
        "expected   3.0 MiB, by its metalink",
        "pieces     3 of 1.0 MiB with digests by sha-1",
        "answers ranges, bears 4 connections at a time",
        "apart      no two mirrors' bytes",
    ] {
        assert!(out.contains(words), "{words:?} is not in:\n{out}");
    }
    let (json, _, _) = ran(&book, &["show", "--json", "waiting.bin"]);
    let story: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(story["part"]["segments"], serde_json::json!([[0, 1 << 20], [2 << 20, 3 << 20]]));
    assert_eq!((&story["part"]["held"], &story["part"]["beyond"]), (&(1 << 20).into(), &(1 << 20).into()));
    assert_eq!((&story["origins"][0]["connections"], &story["origins"][0]["ranges"]), (&4.into(), &"work".into()));
    assert_eq!((&story["pieces"]["count"], &story["mirrors_apart"]), (&3.into(), &true.into()));
    let documented = include_str!("../../../docs/events.md");
    for keys in [&story, &story["part"], &story["origins"][0], &story["pieces"]] {
        for key in keys.as_object().expect("an object").keys() {
            assert!(documented.contains(&format!("`{key}`")), "docs/events.md lacks `{key}`");
        }
    }
}

#[test]
fn a_transfer_is_named_by_name_path_or_id() {
    let book = fake();
    for word in ["waiting.bin", "/data/waiting.bin", "./waiting.bin", "0000000000000011"] {
        assert!(ran(&book, &["show", word]).0.contains("0000000000000011"), "{word}");
    }
    let (_, _, exit) = ran(&book, &["show", "unknown"]);
    assert!(matches!(exit, Err((2, ref text)) if text.contains("unknown")), "{exit:?}");
    let mut twin = samples::record(0x15, "waiting.bin~2", Status::Pending);
    twin.path = Some("/elsewhere/waiting.bin".into());
    book.records.borrow_mut().push(twin);
    let mut named_so = samples::record(0x17, "note", Status::Pending);
    named_so.path = Some("/elsewhere/note".into());
    let mut there = samples::record(0x18, "note~2", Status::Pending);
    there.path = Some("/data/note".into());
    book.records.borrow_mut().extend([named_so, there]);
    let (_, _, exit) = ran(&book, &["show", "note"]);
    let both = |text: &str| text.contains("0000000000000017") && text.contains("0000000000000018");
    assert!(matches!(exit, Err((2, ref text)) if both(text)), "the name of one, the path of the other: {exit:?}");
    let (_, _, exit) = ran(&book, &["forget", "waiting.bin", "whole.bin"]);
    assert_eq!(exit, Ok(0), "the path in the current folder decides");
    let mut third = samples::record(0x16, "waiting.bin~3", Status::Pending);
    third.path = Some("/other/waiting.bin".into());
    book.records.borrow_mut().push(third);
    let (_, _, exit) = ran(&book, &["forget", "waiting.bin"]);
    assert!(
        matches!(exit, Err((2, ref text)) if text.contains("0000000000000015") && text.contains("0000000000000016")),
        "{exit:?}"
    );
}

#[test]
fn damage_of_the_state_file_is_told() {
    let (out, _, exit) = ran(&fake(), &["check"]);
    assert_eq!((out.as_str(), exit), ("/s/client_state.xml: 4 transfers, no damage\n", Ok(0)));
    let survived = Fake { warnings: vec![damage()], ..fake() };
    let (out, _, exit) = ran(&survived, &["check"]);
    assert_eq!(exit, Ok(3));
    assert!(out.contains("/s/client_state.xml:3:14: a tag is not closed"), "{out}");
    assert_eq!(ran(&survived, &["check", "--repair"]).2, Ok(3), "that is not for it to mend");
    let lost = Fake { damaged: true, ..survived };
    let (out, _, exit) = ran(&lost, &["check"]);
    assert_eq!(exit, Ok(3));
    assert!(out.contains(":3:14:") && out.contains("nothing was changed"), "{out}");
    assert_eq!(ran(&lost, &["check", "--json"]).2, Ok(3));
    assert_eq!(ran(&lost, &["list"]).2.expect_err("it cannot").0, 5);
}

#[test]
fn a_finished_file_that_is_gone_is_told_and_is_no_damage() {
    for (missing, word, file) in [(false, "complete", "present"), (true, "missing", "missing")] {
        let book = Fake { missing, ..fake() };
        let row = ran(&book, &["list", "--all"]).0.lines().find(|l| l.contains("whole.bin")).map(str::to_owned);
        assert!(row.as_deref().is_some_and(|row| row.contains(word)), "{row:?}");
        let list: serde_json::Value = serde_json::from_str(&ran(&book, &["list", "--all", "--json"]).0).expect("JSON");
        let files: Vec<_> = list["transfers"].as_array().expect("a list").iter().map(|t| &t["file"]).collect();
        assert_eq!(files, [&().into(), &().into(), &serde_json::Value::from(file), &().into()]);
        assert_eq!(ran(&book, &["show", "whole.bin"]).0.contains("its file is missing"), missing);
        let (out, _, exit) = ran(&book, &["check"]);
        assert_eq!(
            (exit, out.contains("/data/whole.bin: complete, and not there any more")),
            (Ok(0), missing),
            "{out}"
        );
        assert!(out.ends_with("4 transfers, no damage\n"), "{out}");
    }
}

#[test]
fn one_that_waits_elsewhere_says_who_runs_it_and_when_it_is_tried() {
    let book = Fake { held: Some(XferId(0x11)), ..fake() };
    let (out, _, _) = ran(&book, &["show", "waiting.bin"]);
    assert!(out.contains("waiting, run by process 4711, next try in 1 min 12 s ("), "{out}");
}

#[test]
fn survived_damage_is_a_warning_elsewhere() {
    let (_, said, exit) = ran(&Fake { warnings: vec![damage()], ..fake() }, &["list"]);
    assert_eq!((said.as_str(), exit), ("persxfer: warning: /s/client_state.xml:3:14: a tag is not closed\n", Ok(0)));
}

#[test]
fn a_report_in_boincs_form() {
    let (out, _, exit) = ran(&fake(), &["report"]);
    assert_eq!(exit, Ok(0));
    insta::assert_snapshot!(out, @r"
    <file_xfer_error>
      <file_name>broken.bin</file_name>
      <error_code>-224 (permanent HTTP error)</error_code>
      <error_message>the server answered 404 &lt;Not Found&gt;</error_message>
    </file_xfer_error>
    ");
    assert_eq!(ran(&Fake::default(), &["report"]).0, "");
}

#[test]
fn an_export_is_whole_and_without_secrets() {
    let (out, _, _) = ran(&fake(), &["export"]);
    assert_eq!(out.lines().count(), 4);
    assert!(!out.contains("s3cret"), "{out}");
    for line in out.lines() {
        let story: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(story["schema"], 1);
        assert_eq!(story["history"][0]["class"], "throttled");
    }
}

#[test]
fn forgetting() {
    let parts = tempfile::tempdir().expect("a folder");
    let book = Fake { parts: parts.path().into(), held: Some(XferId(0x11)), ..fake() };
    let part = parts.path().join("broken.bin.persxfer-part");
    let kept = parts.path().join("resting.bin.persxfer-part");
    std::fs::write(&part, "x").expect("written");
    std::fs::write(&kept, "x").expect("written");
    let (_, _, exit) = ran(&book, &["forget", "broken.bin", "waiting.bin"]);
    assert!(matches!(exit, Err((5, ref text)) if text.contains("in use by process 4711")), "{exit:?}");
    assert!(part.exists() && book.records.borrow().len() == 4, "one in use: none is forgotten");
    let (_, said, exit) = ran(&book, &["forget", "broken.bin", "whole.bin", "/data/broken.bin"]);
    assert_eq!(exit, Ok(0));
    assert_eq!(said, "/data/broken.bin: forgotten, with its part file\n/data/whole.bin: forgotten\n");
    assert!(!part.exists() && kept.exists());
    assert_eq!(book.records.borrow().len(), 2);
    let boincs = Fake { foreign: true, ..fake() };
    assert!(matches!(ran(&boincs, &["forget", "whole.bin"]).2, Err((5, ref text)) if text.contains("BOINC")));
}
