//! Crashes of the machine and of the process at every effect of writing the state file: it reads, nothing that a completed
//! change had stored is lost, and a change is there whole or not at all (`docs/crash-safety.md`).
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

#[path = "support/disk.rs"]
mod disk;
#[path = "support/disk_seed.rs"]
mod disk_seed;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bytes::Bytes;
use disk::{Disk, LaidOut, memory};
use disk_seed::{Plan, Rng};
use persxfer::core::file_xfer::Place;
use persxfer::core::file_xfer::dossier::Dossier;
use persxfer::core::pers_xfer::record::{Evidence, Record, Status, XferId};
use persxfer::core::time::Epoch;
use persxfer::io::effects::failpoints::Recording;
use persxfer::io::part::{Clobber, PartStore, Publish, Spec, SyncMode, tidy};
use persxfer::io::state_file::{Loaded, StateFile};

const STORIES: u64 = 16;
const SEEDS: u64 = 6;
/// Crashes in what follows a crash.
const DEPTH: u32 = 1;

/// The state as a test knows it: each transfer's id, and the number of its latest version.
type Truth = BTreeMap<u64, u32>;

/// Truths, and from how many effects on each may be found: the last one whose number is reached must be, and while a
/// change is under way the one after it may be.
#[derive(Clone, Debug)]
struct Ledger {
    done: Vec<(usize, Truth)>,
    /// What the change under way makes of it.
    next: Vec<(usize, Truth)>,
}

impl Ledger {
    fn at(&self, point: usize) -> Vec<&Truth> {
        let done = self.done.iter().rfind(|(from, _)| *from <= point).expect("a beginning");
        let next = self.next.iter().rfind(|(from, _)| *from <= point && *from >= done.0);
        [Some(done), next].into_iter().flatten().map(|(_, truth)| truth).collect()
    }
}

fn record(id: u64, version: u32) -> Record {
    let fresh = Record::download(XferId(id), format!("file-{id}"), &[]);
    Record { path: Some(format!("/srv/{id}").into()), sessions: version, ..fresh }
}

fn truth_of(loaded: &Loaded) -> Truth {
    loaded.document.transfers().map(|r| (r.id.0, r.sessions)).collect()
}

/// Changes a state file a few times at random, and tells what must be found from which effect on.
fn change(root: &Path, recording: &Recording, truth: &Truth, rng: &mut Rng) -> Ledger {
    // Two who take turns: each finds the other's changes.
    let files = [(); 2].map(|()| StateFile::at(root.join("deep/er/client_state.xml")));
    let mut truth = truth.clone();
    let mut ledger = Ledger { done: vec![(0, truth.clone())], next: Vec::new() };
    for _ in 0..1 + rng.below(4) {
        let (mut puts, mut gone) = (BTreeMap::new(), BTreeSet::new());
        for _ in 0..1 + rng.below(3) {
            let id = 1 + rng.below(12) as u64;
            if rng.below(4) == 0 {
                gone.insert(id);
            } else {
                puts.insert(id, truth.get(&id).copied().unwrap_or(0) + 1);
            }
        }
        let mut next = truth.clone();
        next.extend(&puts);
        next.retain(|id, _| !gone.contains(id));
        ledger.next.push((recording.count(), next.clone()));
        let changed = files[rng.below(2)].commit(|document| {
            puts.iter().for_each(|(id, version)| document.put(&record(*id, *version)));
            gone.iter().for_each(|id| _ = document.remove(XferId(*id)));
        });
        changed.expect("written");
        truth = next;
        ledger.done.push((recording.count(), truth.clone()));
    }
    ledger
}

/// Reads what a crash left, and changes it; then crashes again.
fn recover(left: LaidOut, allowed: &[&Truth], rng: &mut Rng, depth: u32) {
    let recording = Recording::of(left.dir.path());
    let file = StateFile::at(left.dir.path().join("deep/er/client_state.xml"));
    let loaded = file.load().expect("the state reads");
    let found = truth_of(&loaded);
    assert!(allowed.contains(&&found), "found {found:?}\nallowed {allowed:?}\nwarnings {:?}", loaded.warnings);
    let read = recording.count();
    let mut ledger = change(left.dir.path(), &recording, &found, rng);
    // As long as nothing was changed, what was allowed still is.
    let point = rng.below(recording.count() + 1);
    let again = truth_of(&StateFile::at(file.path()).load().expect("the state reads"));
    assert_eq!(Some(&again), ledger.done.last().map(|(_, truth)| truth));
    if depth == 0 {
        return;
    }
    ledger.done[0].0 = 0;
    let mut disk = left.disk;
    recording.effects()[..point].iter().for_each(|effect| disk.take(effect));
    let mut later = ledger.at(point);
    if point <= read || later.contains(&&found) {
        later.extend(allowed);
    }
    let left = if rng.below(2) == 0 { disk.killed(rng) } else { disk.crashed(rng) };
    recover(left, &later, rng, depth - 1);
}

#[test]
fn the_state_reads_and_has_all_that_was_stored() {
    let plan = Plan::of("state");
    plan.each_story(STORIES, |story| {
        let dir = tempfile::Builder::new().prefix("persxfer-crash-").tempdir_in(memory()).expect("a folder");
        let recording = Recording::of(dir.path());
        let ledger = change(dir.path(), &recording, &Truth::new(), &mut Rng::new(story));
        let effects = recording.effects();
        plan.each_crash(story, SEEDS, Disk::empty(dir.path()), &effects, |disk, point, seed, rng| {
            let left = if seed == 0 { disk.killed(rng) } else { disk.crashed(rng) };
            recover(left, &ledger.at(point), rng, DEPTH);
        });
    });
    plan.ends_with(2500);
}

#[test]
fn what_the_state_calls_done_is_there_and_whole() {
    let plan = Plan::of("done");
    plan.each_story(12, |story| {
        let dir = tempfile::Builder::new().prefix("persxfer-crash-").tempdir_in(memory()).expect("a folder");
        let recording = Recording::of(dir.path());
        let content = Rng::new(story).bytes(500 + 900 * story as usize);
        download(dir.path(), &content, story);
        let effects = recording.effects();
        plan.each_crash(story, SEEDS, Disk::empty(dir.path()), &effects, |disk, point, seed, rng| {
            let left = if seed == 0 { disk.killed(rng) } else { disk.crashed(rng) };
            let done = is_done(left.dir.path());
            let file = std::fs::read(left.dir.path().join("file")).ok();
            assert!(file.is_some() || !done, "the state says done, and there is no file");
            assert!(file.is_none_or(|found| found == content), "the file is wrong");
            assert!(done || point < effects.len() || seed > 0, "it was done");
        });
    });
    plan.ends_with(1800);
}

/// A download as the engine makes it: accepted, fetched, given its final name, noted as done.
fn download(root: &Path, content: &[u8], story: u64) {
    let state = StateFile::at(root.join("client_state.xml"));
    let put = |record: Record| state.commit(|document| document.put(&record)).expect("written");
    put(record(1, 1));
    let spec = Spec::new(Vec::new(), SyncMode::Full);
    let mut store = PartStore::open(&root.join("file"), &Dossier::default(), spec).expect("opened").store;
    for piece in content.chunks(3000) {
        let at = store.held(Place::Part).as_end();
        store.write(Place::Part, at, Bytes::copy_from_slice(piece)).expect("written");
        if story.is_multiple_of(2) {
            store.checkpoint().expect("checkpoint");
        }
    }
    put(record(1, 2));
    let at = Epoch::from_secs(9);
    let how = Publish { existing: Clobber::Refuse, mtime: None, at, evidence: Evidence::Length };
    let finished = Some(store.publish(how).expect("published"));
    drop(store);
    put(Record { status: Status::Done, finished, ..record(1, 3) });
    tidy(&root.join("file"));
}

fn is_done(root: &Path) -> bool {
    let loaded = StateFile::at(root.join("client_state.xml")).load().expect("the state reads");
    loaded.document.transfers().any(|record| record.status == Status::Done)
}
