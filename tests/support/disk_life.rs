//! Life: a download's files used at random, with what must be found after a crash noted at every step.

use std::path::Path;

use bytes::Bytes;
use persxfer::core::digest::Algorithm;
use persxfer::core::file_xfer::Place;
use persxfer::core::file_xfer::dossier::{Dossier, Draft};
use persxfer::core::pers_xfer::record::Evidence;
use persxfer::core::range::Length;
use persxfer::core::time::{Epoch, Mono};
use persxfer::io::effects::failpoints::{Effect, Recording};
use persxfer::io::part::{BlockSums, Boot, Clobber, PartStore, Publish, Slow, Spec, SyncMode, tidy};
use sha2::Digest as _;

use crate::disk::{Disk, LaidOut, memory};
use crate::disk_seed::Rng;

/// What a file of somebody else holds, under another name and, where it is to be replaced, under the final one.
const THEIRS: &[u8] = b"not ours";

/// How files are used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) sync: SyncMode,
    pub(crate) existing: Clobber,
    /// Other versions of the file turn up.
    pub(crate) rivals: bool,
    pub(crate) digest: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    Process,
    Machine,
}

/// A draft may hold the beginning of this version, and holds so much of it at least.
#[derive(Clone, Debug)]
struct Holds {
    version: usize,
    /// After a loss of power.
    flushed: usize,
    /// After the end of the process.
    written: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Published {
    No,
    /// This version, perhaps.
    Maybe(usize),
    Yes(usize),
}

/// What must be found from an effect on.
#[derive(Clone, Debug)]
struct Fact {
    from: usize,
    /// One of these holds.
    part: Vec<Holds>,
    /// One of these holds, where the record knows a rival and the list is not empty.
    rival: Vec<Holds>,
    dossier: Dossier,
    published: Published,
}

/// The files in use.
pub(crate) struct Life {
    dir: tempfile::TempDir,
    way: Way,
    rng: Rng,
    boot: u8,
    recording: Recording,
    store: Option<PartStore>,
    /// All versions of the file that there have been.
    versions: Vec<Vec<u8>>,
    part: Holds,
    rival: Option<Holds>,
    /// Versions whose file was taken away and may be back after a loss of power, as it was: nothing beside it is flushed yet.
    ghosts: Vec<usize>,
    clock: u64,
    facts: Vec<Fact>,
}

/// A life, lived.
pub(crate) struct Told {
    _dir: tempfile::TempDir,
    way: Way,
    boot: u8,
    versions: Vec<Vec<u8>>,
    facts: Vec<Fact>,
    pub(crate) effects: Vec<Effect>,
}

impl Life {
    /// A download that begins.
    pub(crate) fn begin(way: Way, mut rng: Rng) -> (Self, Disk) {
        let dir = tempfile::Builder::new().prefix("persxfer-crash-").tempdir_in(memory()).expect("a folder");
        std::fs::write(dir.path().join("theirs"), THEIRS).expect("written");
        let mut disk = Disk::empty(dir.path()).with_file("theirs");
        if way.existing == Clobber::Replace {
            std::fs::write(dir.path().join("file"), THEIRS).expect("written");
            disk = disk.with_file("file");
        }
        let recording = Recording::of(dir.path());
        let length = 1 + rng.below(30_000);
        let versions = vec![rng.bytes(length)];
        let part = Holds { version: 0, flushed: 0, written: 0 };
        let mut life = Self {
            dir,
            way,
            rng,
            boot: 1,
            recording,
            store: None,
            versions,
            part,
            rival: None,
            ghosts: Vec::new(),
            clock: 0,
            facts: Vec::new(),
        };
        life.note();
        life.open(&life.dossier());
        (life, disk)
    }

    /// Uses the files at random, and gives the download its end.
    pub(crate) fn live(mut self) -> Told {
        for _ in 0..2 + self.rng.below(8) {
            self.act();
        }
        self.finish();
        self.told()
    }

    fn told(self) -> Told {
        let effects = self.recording.effects();
        let Self { dir, way, boot, versions, facts, .. } = self;
        Told { _dir: dir, way, boot, versions, facts, effects }
    }

    fn act(&mut self) {
        match self.rng.below(if self.way.rivals { 13 } else { 8 }) {
            0 | 1 => self.write(Place::Part),
            2 => self.tick(),
            3 | 4 => self.checkpoint(),
            5 => self.cut(),
            6 => self.reopen(),
            7 => self.begin_anew(),
            8 | 9 if self.rival.is_some() => self.write(Place::Rival),
            10 if self.rival.is_some() => self.promote(),
            11 => self.drop_rival(),
            _ => self.fork(),
        }
    }

    fn write(&mut self, place: Place) {
        let (version, at) = (self.holds(place).version, self.held(place));
        let n = (1 + self.rng.below(9_000)).min(self.versions[version].len() - at);
        if n == 0 {
            return;
        }
        let bytes = Bytes::copy_from_slice(&self.versions[version][at..at + n]);
        let end = self.store().held(place).as_end();
        self.store().write(place, end, bytes).expect("written");
        if self.rng.below(3) == 0 {
            // Written out, though perhaps without a word in the journal.
            self.store().settle(place).expect("settled");
        }
        self.settled();
    }

    /// A quarter of a second passes.
    fn tick(&mut self) {
        for _ in 0..2 {
            let now = Mono::from_micros(self.clock);
            let begun = self.store().tick(now).expect("tick");
            assert!(!begun, "a checkpoint of its own would make the story another one each time");
            self.clock += 250_000;
        }
        self.settled();
    }

    fn checkpoint(&mut self) {
        self.store().checkpoint().expect("checkpoint");
        self.settled();
        self.flushed();
    }

    fn cut(&mut self) {
        let held = self.held(Place::Part);
        let to = self.rng.below(held + 1);
        self.part.flushed = self.part.flushed.min(to);
        self.part.written = self.part.written.min(to);
        self.note();
        self.store().cut(Place::Part, Length(to as u64)).expect("cut");
        self.settled();
    }

    /// The session ends and another one begins.
    fn reopen(&mut self) {
        let store = self.store.take().expect("open");
        if self.rng.below(3) == 0 {
            // The record does not know the rival, which goes.
            self.rival = None;
        }
        self.note();
        store.close().expect("closed");
        self.open(&self.dossier());
        self.settled();
        self.flushed();
    }

    /// The bytes are wrong, or the record was forgotten: another version from the first byte on.
    fn begin_anew(&mut self) {
        let length = 1 + self.rng.below(30_000);
        let version = self.rng.bytes(length);
        self.versions.push(version);
        self.rival = None;
        let old = std::mem::replace(&mut self.part, Holds { version: self.versions.len() - 1, flushed: 0, written: 0 });
        self.ghosts.push(old.version);
        let mut during = self.fact();
        during.part.push(Holds { flushed: 0, written: 0, ..old });
        self.facts.push(during);
        let store = self.store.take().expect("open");
        match self.rng.below(3) {
            0 => store.discard().expect("discarded"),
            1 => {
                drop(store);
                PartStore::remove(&self.dir.path().join("file")).expect("removed");
            }
            _ => {
                drop(store);
                self.open(&Dossier::default());
                return;
            }
        }
        self.open(&self.dossier());
    }

    fn fork(&mut self) {
        let held = self.held(Place::Part);
        let at = self.rng.below(held + 1);
        // An older rival goes; whatever is there meanwhile, no record knows it.
        self.rival = None;
        self.note();
        let length = at + 1 + self.rng.below(20_000);
        let mut version = self.versions[self.part.version][..at].to_vec();
        version.extend(self.rng.bytes(length - at));
        self.versions.push(version);
        self.store().fork(Length(at as u64)).expect("forked");
        self.rival = Some(Holds { version: self.versions.len() - 1, flushed: 0, written: 0 });
        self.settled();
    }

    fn promote(&mut self) {
        let rival = self.rival.clone().expect("there is one");
        let held = self.held(Place::Rival);
        let mut during = self.fact();
        during.part.push(rival.clone());
        // It is in its place or has left it.
        during.rival.iter_mut().for_each(|holds| (holds.flushed, holds.written) = (0, 0));
        self.facts.push(during);
        self.store().promote().expect("promoted");
        let flushed = if self.way.sync == SyncMode::Full { held } else { 0 };
        self.part = Holds { flushed, written: held, ..rival };
        self.rival = None;
        self.note();
    }

    fn drop_rival(&mut self) {
        self.rival = None;
        self.note();
        self.store().drop_rival().expect("dropped");
    }

    /// The rest comes, is found right, and gets the final name.
    fn finish(&mut self) {
        while self.held(Place::Part) < self.versions[self.part.version].len() {
            self.write(Place::Part);
        }
        if self.way.digest {
            let digests = self.store().digest(&mut |_| ()).expect("digest");
            let right = sha2::Sha256::digest(&self.versions[self.part.version]).to_vec();
            assert_eq!(digests, [(Algorithm::Sha256, right)]);
        }
        let mut during = Fact { published: Published::Maybe(self.part.version), ..self.fact() };
        // Where the part is whole and right, it goes.
        during.rival.iter_mut().for_each(|holds| (holds.flushed, holds.written) = (0, 0));
        self.facts.push(during);
        let existing = self.way.existing;
        let how = Publish { existing, mtime: None, at: Epoch::from_secs(9), evidence: Evidence::Length };
        self.store().publish(how).expect("published");
        self.store = None;
        tidy(&self.dir.path().join("file"));
        let mut names: Vec<_> = std::fs::read_dir(self.dir.path()).expect("listed").flatten().collect();
        names.retain(|entry| entry.file_name() != "file" && entry.file_name() != "theirs");
        assert!(names.is_empty(), "left behind: {names:?}");
        let after = Fact { published: Published::Yes(self.part.version), ..self.fact() };
        self.facts.push(after);
    }

    fn open(&mut self, dossier: &Dossier) {
        let spec = spec(self.way, self.boot);
        let opened = PartStore::open(&self.dir.path().join("file"), dossier, spec).expect("opened");
        self.store = Some(opened.store);
        if opened.rival_held.is_none() {
            self.rival = None;
        }
        self.note();
    }

    /// Everything that was written out counts after the end of the process, if the journal is there.
    fn settled(&mut self) {
        let marked = self.dir.path().join("file.persxfer-journal").exists();
        let on_disk = |name: &str| std::fs::metadata(self.dir.path().join(name)).map_or(0, |m| m.len() as usize);
        let (part, rival) = (on_disk("file.persxfer-part"), on_disk("file.persxfer-part2"));
        if marked {
            self.part.written = part;
            if let Some(holds) = &mut self.rival {
                holds.written = rival;
            }
        }
        self.note();
    }

    fn flushed(&mut self) {
        if self.way.sync == SyncMode::Full {
            self.ghosts.clear();
            self.part.flushed = self.part.written;
            if let Some(rival) = &mut self.rival {
                rival.flushed = rival.written;
            }
            self.note();
        }
    }

    fn note(&mut self) {
        let fact = self.fact();
        self.facts.push(fact);
    }

    fn fact(&self) -> Fact {
        Fact {
            from: self.recording.count(),
            part: self.possible(),
            rival: self.rival.iter().cloned().collect(),
            dossier: self.dossier(),
            published: Published::No,
        }
    }

    /// What the part may hold: after the end of a process, no ghost.
    fn possible(&self) -> Vec<Holds> {
        let ghosts = self.ghosts.iter().map(|version| Holds { version: *version, flushed: 0, written: usize::MAX });
        std::iter::once(self.part.clone()).chain(ghosts).collect()
    }

    /// What the record knows.
    fn dossier(&self) -> Dossier {
        let known = |holds: &Holds, place| Draft {
            total: Some(Length(self.versions[holds.version].len() as u64)),
            inode: self.store.as_ref().and_then(|store| store.inode(place)),
            ..Draft::default()
        };
        let rival = self.rival.as_ref().map(|holds| known(holds, Place::Rival));
        Dossier { part: known(&self.part, Place::Part), rival, ..Dossier::default() }
    }

    fn holds(&self, place: Place) -> &Holds {
        match place {
            Place::Part => &self.part,
            Place::Rival => self.rival.as_ref().expect("there is one"),
        }
    }

    fn held(&mut self, place: Place) -> usize {
        self.store().held(place).0 as usize
    }

    fn store(&mut self) -> &mut PartStore {
        self.store.as_mut().expect("open")
    }
}

impl Told {
    /// Crashes at a point, looks at what is left, and goes on from there.
    pub(crate) fn crash(&self, disk: &Disk, point: usize, crash: Crash, rng: &mut Rng, depth: u32) {
        let fact = self.facts.iter().rfind(|fact| fact.from <= point).expect("a beginning");
        let before = self.effects[..point].iter().rev().take(12).rev().map(short).collect::<Vec<_>>();
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.survive(disk, fact, crash, rng)));
        let (life, disk) = match told {
            Ok(None) => return,
            Ok(Some(next)) => next,
            Err(panic) => {
                eprintln!("a crash of the {crash:?} in boot {} after\n  {}", self.boot, before.join("\n  "));
                std::panic::resume_unwind(panic);
            }
        };
        let told = life.live();
        if depth > 0 {
            let point = rng.below(told.effects.len() + 1);
            let mut disk = disk;
            told.effects[..point].iter().for_each(|effect| disk.take(effect));
            let none = self.way.sync == SyncMode::None;
            let crash = if none || rng.below(2) == 0 { Crash::Process } else { Crash::Machine };
            told.crash(&disk, point, crash, rng, depth - 1);
        }
    }

    /// What comes after a crash; nothing where the file has its final name.
    fn survive(&self, disk: &Disk, fact: &Fact, crash: Crash, rng: &mut Rng) -> Option<(Life, Disk)> {
        let left = match crash {
            Crash::Process => disk.killed(rng),
            Crash::Machine => disk.crashed(rng),
        };
        let target = left.dir.path().join("file");
        assert_eq!(std::fs::read(left.dir.path().join("theirs")).expect("there"), THEIRS);
        if self.is_published(fact, &target) {
            return None;
        }
        // The record may be behind. Then less may be believed, but nothing wrong.
        let stale = rng.below(8) == 0;
        let older = self.facts[..self.facts.iter().filter(|f| f.from <= fact.from).count()].iter().rev();
        let older = older.clone().nth(rng.below(4)).unwrap_or(fact);
        let any: Vec<Holds> =
            (0..self.versions.len()).map(|version| Holds { version, flushed: 0, written: 0 }).collect();
        let lax = Fact { part: any.clone(), rival: any, dossier: older.dossier.clone(), ..fact.clone() };
        let fact = if stale { &lax } else { fact };
        Some(self.next_life(left, fact, crash, rng))
    }

    fn is_published(&self, fact: &Fact, target: &Path) -> bool {
        let found = std::fs::read(target).ok();
        let old = (self.way.existing == Clobber::Replace).then(|| THEIRS.to_vec());
        match fact.published {
            Published::No => assert!(found == old, "something stands under the final name"),
            Published::Maybe(version) => {
                let whole = found.as_ref() == Some(&self.versions[version]);
                assert!(whole || found == old, "something else stands under the final name");
                return whole;
            }
            Published::Yes(version) => {
                assert!(found.as_ref() == Some(&self.versions[version]), "the file is lost or wrong");
                return true;
            }
        }
        false
    }

    /// Opens what is left, and compares it with what must be there.
    fn next_life(&self, left: LaidOut, fact: &Fact, crash: Crash, rng: &mut Rng) -> (Life, Disk) {
        let LaidOut { dir, disk, inodes } = left;
        let boot = self.boot + u8::from(crash == Crash::Machine);
        let recording = Recording::of(dir.path());
        let mut dossier = fact.dossier.clone();
        for draft in [Some(&mut dossier.part), dossier.rival.as_mut()].into_iter().flatten() {
            draft.inode = draft.inode.and_then(|was| inodes.get(&was).copied());
        }
        let opened = PartStore::open(&dir.path().join("file"), &dossier, spec(self.way, boot)).expect("it opens");
        let (part_held, rival_held) = (opened.part_held.0 as usize, opened.rival_held.map_or(0, |h| h.0 as usize));
        let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap_or_default();
        let part = self.found("part", &fact.part, &read("file.persxfer-part"), part_held, crash);
        let rival = opened
            .rival_held
            .map(|_| self.found("rival", &fact.rival, &read("file.persxfer-part2"), rival_held, crash));
        assert!(rival.is_some() || fact.rival.iter().all(|h| h.least(crash) == 0), "the rival is lost: {fact:?}");
        let others = fact.part.iter().map(|holds| holds.version).filter(|version| *version != part.version);
        let ghosts = if crash == Crash::Process { others.collect() } else { Vec::new() };
        let mut first = Fact { from: 0, dossier, ..fact.clone() };
        if crash == Crash::Machine {
            first.part.iter_mut().chain(&mut first.rival).for_each(|holds| holds.written = holds.flushed);
        }
        let life = Life {
            way: self.way,
            rng: rng.clone(),
            boot,
            recording,
            store: Some(opened.store),
            versions: self.versions.clone(),
            part,
            rival,
            ghosts,
            clock: 0,
            facts: vec![first],
            dir,
        };
        let mut life = life;
        life.note();
        (life, disk)
    }

    /// Which of the possible contents a draft has.
    fn found(&self, what: &str, possible: &[Holds], bytes: &[u8], held: usize, crash: Crash) -> Holds {
        assert!(bytes.len() == held, "the {what} is {} bytes long and {held} are called held", bytes.len());
        let fits = |h: &&Holds| held >= h.least(crash) && self.versions[h.version].get(..held) == Some(bytes);
        let found = possible.iter().find(fits).cloned();
        let found = found.unwrap_or_else(|| {
            let equal = |h: &Holds| self.versions[h.version].iter().zip(bytes).take_while(|(a, b)| a == b).count();
            let told: Vec<_> = possible.iter().map(|h| (h, equal(h))).collect();
            panic!("the {what} holds {held} bytes after a crash of the {crash:?}; possible, and equal: {told:?}")
        });
        match crash {
            Crash::Machine => Holds { flushed: held, written: held, ..found },
            Crash::Process => Holds { written: held.max(found.written), ..found },
        }
    }
}

impl Holds {
    fn least(&self, crash: Crash) -> usize {
        match crash {
            Crash::Machine => self.flushed,
            Crash::Process => self.written,
        }
    }
}

fn spec(way: Way, boot: u8) -> Spec {
    let algorithms = if way.digest { vec![Algorithm::Sha256] } else { Vec::new() };
    Spec { algorithms, sync: way.sync, sums: BlockSums::default(), boot: Boot::Id([boot; 16]), slow: Slow::Beside }
}

/// An effect in a few words.
fn short(effect: &Effect) -> String {
    let mut text = format!("{effect:?}");
    if let Effect::Write { inode, at, bytes } = effect {
        text = format!("Write {{ inode: {inode}, at: {at}, {} bytes }}", bytes.len());
    }
    text
}
