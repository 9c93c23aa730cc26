//! The state file on a real disk: what is read after every way of breaking off, and what several writers leave.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{StateError, StateFile};
use crate::core::failure::LocalFault;
use crate::core::pers_xfer::record::{Record, XferId};
use crate::core::state::{Document, Kind};
use crate::core::time::Delay;
use crate::io::durable::{self, ROTATION};
use crate::io::lock::Lock;

const WAITING: &str = include_str!("../../../state/waiting.xml");
const DAMAGED: &str = include_str!("../../../state/damaged.xml");
const BOINC: &str = include_str!("../../../state/boinc_client.xml");

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a folder") }
    }
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
    fn file(&self) -> StateFile {
        StateFile::at(self.path("client_state.xml"))
    }
    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("written");
    }
    /// Every file with its content; the lock left out.
    fn content(&self) -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(self.dir.path()).expect("listed").map(|e| e.expect("an entry"));
        let mut all: Vec<_> = entries
            .map(|e| (e.file_name().into_string().expect("UTF-8"), fs::read(e.path()).expect("read")))
            .filter(|(name, _)| name != "client_state.lock")
            .collect();
        all.sort();
        all
    }
    fn names(&self) -> Vec<String> {
        self.content().into_iter().map(|(name, _)| name).collect()
    }
}

fn record(id: u64) -> Record {
    let sample = Document::parse(WAITING.as_bytes()).expect("sound").transfers().next().expect("a transfer");
    Record { id: XferId(id), name: format!("file-{id}"), path: Some(format!("/srv/file-{id}").into()), ..sample }
}

fn ids(file: &StateFile) -> Vec<u64> {
    file.load().expect("sound").document.ids().map(|id| id.0).collect()
}

fn commit(file: &StateFile, id: u64) {
    file.commit(|document| document.put(&record(id))).expect("committed");
}

/// The waiting sample as another generation.
fn generation(n: u64) -> String {
    WAITING.replace("<generation>17<", &format!("<generation>{n}<"))
}

#[test]
fn no_file_is_an_empty_one_and_stays_absent() {
    let place = Place::new();
    let loaded = place.file().load().expect("fresh");
    assert!(loaded.document.is_empty() && loaded.warnings.is_empty());
    place.file().commit(|_| ()).expect("nothing to write");
    assert!(place.names().is_empty());
}

#[test]
fn a_commit_makes_folder_and_file_for_the_owner_alone() {
    let place = Place::new();
    let file = StateFile::at(place.path("deep/er/client_state.xml"));
    commit(&file, 1);
    let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(file.path()), mode(&place.path("deep/er"))), (0o600, 0o700));
    assert_eq!(mode(&place.path("deep/er/client_state.lock")), 0o600);
    let text = fs::read_to_string(file.path()).expect("there");
    assert!(text.starts_with("<client_state>\n"));
    assert_eq!(StateFile::at(file.path()).load().expect("sound").document.generation(), 1);
}

#[test]
fn each_commit_keeps_the_one_before() {
    let place = Place::new();
    let file = place.file();
    (1..=3).for_each(|id| commit(&file, id));
    assert_eq!(place.names(), ["client_state.xml", "client_state_prev.xml"]);
    assert_eq!(ids(&StateFile::at(place.path("client_state_prev.xml"))), [1, 2]);
    assert_eq!(ids(&file), [1, 2, 3]);
}

#[test]
fn what_others_wrote_meanwhile_is_kept() {
    let place = Place::new();
    let (a, b) = (place.file(), place.file());
    commit(&a, 1);
    commit(&b, 2);
    assert!(a.has_changed() && !b.has_changed());
    commit(&a, 3);
    assert!(a.has_changed(), "what b wrote is in it, and nobody has looked at it yet");
    b.commit(|document| document.remove(XferId(1))).expect("committed");
    assert_eq!((ids(&a), ids(&b)), (vec![2, 3], vec![2, 3]));
    assert!(!a.has_changed());
}

#[test]
fn threads_lose_nothing() {
    let place = Place::new();
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let file = place.file();
            scope.spawn(move || (0..8).for_each(|n| commit(&file, thread * 100 + n)));
        }
    });
    let all: BTreeSet<u64> = ids(&place.file()).into_iter().collect();
    assert_eq!(all.len(), 48);
    assert_eq!(place.file().load().expect("sound").document.generation(), 48);
}

/// Set for the processes of [`processes_lose_nothing`]: the state file, and the first id.
const CHILD: &str = "PERSXFER_TEST_COMMITS";

#[test]
fn processes_lose_nothing() {
    let place = Place::new();
    let me = std::env::current_exe().expect("a program");
    let start = |first: u64| {
        Command::new(&me)
            .args(["--exact", "io::state_file::tests::one_of_several_processes"])
            .env(CHILD, format!("{first} {}", place.path("client_state.xml").display()))
            .stdout(Stdio::null())
            .spawn()
            .expect("started")
    };
    let children: Vec<_> = [100, 200, 300].into_iter().map(start).collect();
    for mut child in children {
        assert!(child.wait().expect("waited for").success());
    }
    assert_eq!(ids(&place.file()).into_iter().collect::<BTreeSet<_>>().len(), 30);
}

#[test]
fn one_of_several_processes() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let (first, path) = task.split_once(' ').expect("an id and a path");
    let (first, file): (u64, _) = (first.parse().expect("an id"), StateFile::at(path));
    (first..first + 10).for_each(|id| commit(&file, id));
}

#[test]
fn a_writing_broken_off_between_any_two_effects_loses_nothing() {
    for effects in 0..=ROTATION.len() {
        let place = Place::new();
        let file = place.file();
        commit(&file, 1);
        commit(&file, 2);
        // What a commit of a third record does, up to the break.
        let mut third = file.load().expect("sound").document;
        third.put(&record(3));
        third.next_generation();
        durable::write_new(&file.files.next, third.chunks(), durable::PRIVATE).expect("written");
        ROTATION[..effects].iter().for_each(|step| file.files.take(*step).expect("done"));

        let later = place.file();
        let loaded = later.load().expect("sound");
        assert_eq!(loaded.document.ids().map(|id| id.0).collect::<Vec<_>>(), [1, 2, 3], "after {effects} effects");
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        commit(&later, 4);
        assert_eq!(ids(&later), [1, 2, 3, 4]);
        assert_eq!(place.names(), ["client_state.xml", "client_state_prev.xml"]);
    }
}

#[test]
fn a_writing_broken_off_at_any_byte_loses_nothing() {
    let place = Place::new();
    commit(&place.file(), 1);
    let whole = place.content();
    let next = generation(99);
    for cut in (0..next.trim_end().len()).step_by(211) {
        place.write("client_state_next.xml", &next[..cut]);
        let loaded = place.file().load().expect("sound");
        assert_eq!(loaded.document.ids().map(|id| id.0).collect::<Vec<_>>(), [1], "cut at {cut}");
        assert!(loaded.warnings.is_empty(), "the trace of a kill is no news: {:?}", loaded.warnings);
        assert_eq!(place.content(), whole, "nothing is left of it, cut at {cut}");
    }
}

#[test]
fn the_file_systems_without_links_have_a_moment_without_a_current_one() {
    let place = Place::new();
    place.write("client_state_prev.xml", generation(4));
    place.write("client_state_next.xml", generation(5));
    let loaded = place.file().load().expect("sound");
    assert_eq!((loaded.document.generation(), loaded.warnings), (5, Vec::new()));
    assert_eq!(place.names(), ["client_state.xml", "client_state_prev.xml"]);
}

#[test]
fn a_damaged_one_is_set_aside_where_another_is_sound() {
    let place = Place::new();
    for n in 1..=2 {
        place.write("client_state.xml", if n == 1 { DAMAGED.as_bytes() } else { &[0; 700] });
        place.write("client_state_prev.xml", generation(8));
        let loaded = place.file().load().expect("sound");
        assert_eq!(loaded.document.generation(), 8);
        let warning = &loaded.warnings[0];
        let line = if n == 1 { "damaged (line 15, column 51: " } else { "damaged (line 1, column 1: " };
        assert!(warning.contains(line) && warning.contains(&format!("client_state.xml.damaged-{n}")), "{warning}");
        assert!(warning.contains("client_state_prev.xml, is used"), "{warning}");
    }
    commit(&place.file(), 1);
    assert_eq!(place.file().load().expect("sound").document.generation(), 9);
    let set_aside = fs::read_to_string(place.path("client_state.xml.damaged-1")).expect("kept");
    assert_eq!(set_aside, DAMAGED);
}

#[test]
fn a_broken_writing_is_no_damage_even_where_only_the_one_before_is_sound() {
    let place = Place::new();
    place.write("client_state.xml", DAMAGED);
    place.write("client_state_next.xml", &DAMAGED[..300]);
    place.write("client_state_prev.xml", generation(8));
    let loaded = place.file().load().expect("sound");
    assert_eq!((loaded.document.generation(), loaded.warnings.len()), (8, 1), "{:?}", loaded.warnings);
    assert_eq!(place.names(), ["client_state.xml.damaged-1", "client_state_prev.xml"]);
}

#[test]
fn where_none_is_sound_nothing_is_touched() {
    let place = Place::new();
    place.write("client_state.xml", DAMAGED);
    place.write("client_state_prev.xml", "");
    let before = place.content();
    let error = place.file().load().expect_err("damaged");
    assert!(error.to_string().contains("client_state.xml is damaged: line 15, column 51: expected"), "{error}");
    let error = place.file().commit(|document| document.put(&record(1))).expect_err("damaged");
    assert!(matches!(error, StateError::Damaged { .. }));
    assert_eq!(place.content(), before);
}

#[test]
fn the_very_first_writing_broken_off_is_no_obstacle() {
    let place = Place::new();
    place.write("client_state_next.xml", DAMAGED);
    let loaded = place.file().load().expect("fresh");
    assert!(loaded.document.is_empty() && loaded.warnings.len() == 1);
    assert_eq!(place.names(), ["client_state_next.xml.damaged-1"]);
}

#[test]
fn the_newest_generation_counts_wherever_it_is() {
    for (current, next, prev, newest) in [(3, 5, 2, 5), (5, 3, 4, 5), (3, 2, 7, 7), (4, 4, 4, 4)] {
        let place = Place::new();
        for (name, n) in [("client_state", current), ("client_state_next", next), ("client_state_prev", prev)] {
            place.write(&format!("{name}.xml"), generation(n));
        }
        assert_eq!(place.file().load().expect("sound").document.generation(), newest);
        commit(&place.file(), 1);
        assert_eq!(place.file().load().expect("sound").document.generation(), newest + 1);
        assert!(!place.path("client_state_next.xml").exists());
    }
}

#[test]
fn a_boinc_clients_file_is_listed_and_never_written() {
    let place = Place::new();
    place.write("client_state.xml", BOINC);
    place.write("client_state_next.xml", DAMAGED);
    let before = place.content();
    let loaded = place.file().load().expect("read");
    assert_eq!((loaded.document.kind(), loaded.document.len()), (Kind::Foreign, 5));
    let error = place.file().commit(|document| document.put(&record(1))).expect_err("refused");
    assert!(matches!(error, StateError::Foreign { .. }), "{error}");
    assert_eq!(place.content(), before);
    assert!(!place.path("client_state.lock").exists());
}

#[test]
fn a_later_programs_file_is_listed_and_not_written() {
    let place = Place::new();
    place.write("client_state.xml", WAITING.replace("<format>1<", "<format>2<"));
    assert_eq!(place.file().load().expect("read").document.len(), 2);
    let error = place.file().commit(|document| document.put(&record(1))).expect_err("refused");
    assert!(matches!(error, StateError::Newer { format: 2, .. }), "{error}");
}

#[test]
fn what_is_no_regular_file_is_refused() {
    let place = Place::new();
    place.write("elsewhere.xml", WAITING);
    std::os::unix::fs::symlink(place.path("elsewhere.xml"), place.path("client_state.xml")).expect("linked");
    for what in ["a symbolic link", "a folder"] {
        let refused = |error: StateError| assert!(error.to_string().contains(what), "{error}");
        refused(place.file().load().expect_err("refused"));
        refused(place.file().commit(|document| document.put(&record(1))).expect_err("refused"));
        if fs::remove_file(place.path("client_state.xml")).is_ok() {
            fs::create_dir(place.path("client_state.xml")).expect("made");
        }
    }
    assert_eq!(fs::read_to_string(place.path("elsewhere.xml")).expect("there"), WAITING);
}

#[test]
fn a_lock_held_for_too_long_is_in_use() {
    let place = Place::new();
    let file = StateFile { patience: Delay::from_millis(2), ..place.file() };
    let _held = Lock::acquire(&place.path("client_state.lock"), Delay::ZERO).expect("free");
    let error = file.commit(|document| document.put(&record(1))).expect_err("in use");
    assert!(matches!(error, StateError::Local(LocalFault::InUse { .. })), "{error}");
    assert!(ids(&file).is_empty(), "reading needs no lock");
}

#[test]
fn a_refused_rotation_leaves_the_file_as_it_was() {
    let place = Place::new();
    let file = place.file();
    commit(&file, 1);
    let before = fs::read(file.path()).expect("there");
    // A folder cannot be replaced by a file.
    fs::create_dir(place.path("client_state_prev.xml")).expect("made");
    let error = file.commit(|document| document.put(&record(2))).expect_err("refused");
    assert!(error.to_string().contains("cannot remove"), "{error}");
    fs::remove_dir(place.path("client_state_prev.xml")).expect("removed");
    assert_eq!(place.content(), [("client_state.xml".to_owned(), before)]);
    commit(&file, 3);
    assert_eq!(ids(&file), [1, 3]);
}

#[test]
fn a_change_that_does_not_fit_is_not_written() {
    let place = Place::new();
    let file = place.file();
    commit(&file, 1);
    let before = place.content();
    let long = Record { name: "n".repeat(crate::core::state::MAX_TEXT + 1), ..record(2) };
    let error = file.commit(|document| document.put(&long)).expect_err("too long");
    assert!(matches!(error, StateError::Unfit { .. }), "{error}");
    assert_eq!(place.content(), before);
    commit(&file, 3);
    assert_eq!(ids(&file), [1, 3]);
}
