//! Segments: a part file with gaps, used at random, with what must be found after a crash noted at every step.

use bytes::Bytes;
use persxfer::core::digest::Algorithm;
use persxfer::core::file_xfer::Place;
use persxfer::core::file_xfer::dossier::{Dossier, Draft};
use persxfer::core::pers_xfer::record::Evidence;
use persxfer::core::range::{ByteRange, Length, Offset, RangeSet};
use persxfer::core::time::{Epoch, Mono};
use persxfer::io::effects::failpoints::{Effect, Recording};
use persxfer::io::part::{BlockSums, Boot, Clobber, PartStore, Publish, Slow, Spec, SyncMode, tidy};
use sha2::Digest as _;

use crate::disk::{Disk, LaidOut, memory};
use crate::disk_life::Crash;
use crate::disk_seed::Rng;

/// How the file is used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) sync: SyncMode,
    pub(crate) digest: bool,
    /// Another version is begun beside it, and takes its place.
    pub(crate) rivals: bool,
}

/// The part may hold bytes of this content, and these at least.
#[derive(Clone, Debug)]
struct Holds {
    content: Vec<u8>,
    /// After a loss of power.
    flushed: RangeSet,
    /// After the end of the process.
    told: RangeSet,
}

/// What must be found from an effect on.
#[derive(Clone, Debug)]
struct Fact {
    from: usize,
    /// One of these holds.
    part: Vec<Holds>,
    dossier: Dossier,
    /// The final name may be given already.
    ending: bool,
}

/// The file in use.
pub(crate) struct Life {
    dir: tempfile::TempDir,
    way: Way,
    rng: Rng,
    boot: u8,
    recording: Recording,
    store: Option<PartStore>,
    part: Holds,
    rival: Option<Vec<u8>>,
    clock: u64,
    facts: Vec<Fact>,
}

/// A life, lived.
pub(crate) struct Told {
    _dir: tempfile::TempDir,
    way: Way,
    boot: u8,
    facts: Vec<Fact>,
    pub(crate) effects: Vec<Effect>,
}

impl Life {
    /// A download that begins.
    pub(crate) fn begin(way: Way, mut rng: Rng) -> (Self, Disk) {
        let dir = tempfile::Builder::new().prefix("persxfer-crash-").tempdir_in(memory()).expect("a folder");
        let (disk, recording) = (Disk::empty(dir.path()), Recording::of(dir.path()));
        let length = 2000 + rng.below(40_000);
        let part = Holds { content: rng.bytes(length), flushed: RangeSet::new(), told: RangeSet::new() };
        let (store, facts, rival) = (None, Vec::new(), None);
        let mut life = Self { dir, way, rng, boot: 1, recording, store, part, rival, clock: 0, facts };
        life.note();
        life.open();
        (life, disk)
    }

    /// Uses the file at random, and gives the download its end.
    pub(crate) fn live(mut self) -> Told {
        for _ in 0..4 + self.rng.below(10) {
            self.act();
        }
        self.finish();
        let effects = self.recording.effects();
        Told { _dir: self.dir, way: self.way, boot: self.boot, facts: self.facts, effects }
    }

    fn act(&mut self) {
        match self.rng.below(if self.way.rivals { 14 } else { 12 }) {
            0..=4 => self.write(),
            5 => self.tick(),
            6 => self.settle(),
            7 | 8 => self.checkpoint(),
            9 => self.drop_range(),
            10 => self.cut(),
            11 => self.reopen(),
            12 => self.fork(),
            _ => {
                self.fork();
                self.promote();
            }
        }
    }

    /// Somewhere in a gap: at its start, at its end, or between.
    fn write(&mut self) {
        let gaps: Vec<ByteRange> = self.store().segments().gaps(self.total()).collect();
        if gaps.is_empty() {
            return;
        }
        let gap = *self.rng.choose(&gaps);
        let room = gap.length().0 as usize;
        let n = (1 + self.rng.below(9000)).min(room);
        let start = gap.start.0 as usize
            + match self.rng.below(3) {
                0 => 0,
                1 => room - n,
                _ => self.rng.below(room - n + 1),
            };
        self.write_at(start, start + n);
        if self.rng.below(3) == 0 {
            self.settle();
        }
        self.note();
    }

    fn write_at(&mut self, start: usize, end: usize) {
        let bytes = Bytes::copy_from_slice(&self.part.content[start..end]);
        self.store().write(Place::Part, Offset(start as u64), bytes).expect("written");
    }

    fn tick(&mut self) {
        for _ in 0..3 {
            let now = Mono::from_micros(self.clock);
            assert!(!self.store().tick(now).expect("tick"), "a checkpoint would make the story another one each time");
            self.clock += 260_000;
        }
        self.told();
    }

    fn settle(&mut self) {
        self.store().settle(Place::Part).expect("settled");
        self.told();
    }

    fn checkpoint(&mut self) {
        self.store().checkpoint().expect("checkpoint");
        self.flushed();
    }

    /// Everything that was written out counts after the end of the process, if the journal is there.
    fn told(&mut self) {
        if self.dir.path().join("file.persxfer-journal").exists() {
            self.part.told = self.store().segments();
        }
        self.note();
    }

    fn flushed(&mut self) {
        self.part.told = self.store().segments();
        if self.way.sync == SyncMode::Full {
            self.part.flushed = self.part.told.clone();
        }
        self.note();
    }

    fn drop_range(&mut self) {
        let total = self.total().0 as usize;
        let start = self.rng.below(total);
        let end = (start + 1 + self.rng.below(8000)).min(total);
        self.lose(ByteRange::new(Offset(start as u64), Offset(end as u64)), |store, range| {
            store.drop_range(range).expect("dropped");
        });
    }

    fn cut(&mut self) {
        let total = self.total();
        let to = Offset(total.0 / 2 + self.rng.below(total.0 as usize / 2) as u64);
        self.lose(ByteRange::new(to, total.as_end()), |store, range| {
            store.cut(Place::Part, range.start.as_length()).expect("cut");
        });
    }

    /// Bytes go, and others will come in their place.
    fn lose(&mut self, range: ByteRange, deed: impl FnOnce(&mut PartStore, ByteRange)) {
        self.part.flushed.remove(range);
        self.part.told.remove(range);
        self.note();
        deed(self.store(), range);
        let bytes = self.rng.bytes(range.length().0 as usize);
        self.part.content[range.start.0 as usize..range.end.0 as usize].copy_from_slice(&bytes);
        self.note();
    }

    fn reopen(&mut self) {
        let store = self.store.take().expect("open");
        self.part.told = store.segments();
        // Only once it is closed; until then, what was told before.
        let told = std::mem::replace(&mut self.part.told, self.part.flushed.clone());
        self.note();
        store.close().expect("closed");
        self.part.told = told;
        if self.way.sync == SyncMode::Full {
            self.part.flushed = self.part.told.clone();
        }
        self.rival = None;
        self.note();
        self.open();
    }

    fn fork(&mut self) {
        let held = self.store().held(Place::Part).0 as usize;
        let at = self.rng.below(held + 1);
        let mut content = self.part.content[..at].to_vec();
        let more = 1 + self.rng.below(20_000);
        content.extend(self.rng.bytes(more));
        self.rival = None;
        self.settle();
        self.store().fork(Length(at as u64)).expect("forked");
        let bytes = Bytes::copy_from_slice(&content[at..]);
        self.store().write(Place::Rival, Offset(at as u64), bytes).expect("written");
        self.rival = Some(content);
        self.note();
    }

    fn promote(&mut self) {
        let Some(content) = self.rival.take() else { return };
        let whole: RangeSet = [ByteRange::new(Offset::ZERO, Offset(content.len() as u64))].into_iter().collect();
        let none = RangeSet::new;
        let old = std::mem::replace(&mut self.part, Holds { content: content.clone(), flushed: none(), told: none() });
        self.rival = Some(content);
        let mut during = self.fact();
        during.part.push(old);
        self.rival = None;
        self.facts.push(during);
        self.store().promote().expect("promoted");
        self.part.told = whole.clone();
        if self.way.sync == SyncMode::Full {
            self.part.flushed = whole;
        }
        self.note();
    }

    /// The rest comes, is found right, and gets the final name.
    fn finish(&mut self) {
        loop {
            let gaps: Vec<ByteRange> = self.store().segments().gaps(self.total()).collect();
            let Some(gap) = gaps.last() else { break };
            self.write_at(gap.start.0 as usize, gap.end.0 as usize);
            self.note();
        }
        let digests = self.store().digest(&mut |_| ()).expect("digest");
        if self.way.digest {
            let right = sha2::Sha256::digest(&self.part.content).to_vec();
            assert_eq!(digests, [(Algorithm::Sha256, right)]);
        }
        let during = Fact { ending: true, ..self.fact() };
        self.facts.push(during);
        let (existing, evidence) = (Clobber::Refuse, Evidence::Length);
        self.store().publish(Publish { existing, mtime: None, at: Epoch::from_secs(9), evidence }).expect("published");
        self.store = None;
        let target = self.dir.path().join("file");
        tidy(&target);
        assert!(std::fs::read(&target).expect("there") == self.part.content, "another file");
        let names: Vec<_> =
            std::fs::read_dir(self.dir.path()).expect("listed").flatten().map(|e| e.file_name()).collect();
        assert_eq!(names, ["file"], "something is left behind");
    }

    fn open(&mut self) {
        let dossier = self.dossier();
        let opened = PartStore::open(&self.dir.path().join("file"), &dossier, spec(self.way, self.boot));
        self.store = Some(opened.expect("opened").store);
        self.note();
    }

    fn note(&mut self) {
        let fact = self.fact();
        self.facts.push(fact);
    }

    fn fact(&self) -> Fact {
        let (from, part) = (self.recording.count(), vec![self.part.clone()]);
        Fact { from, part, dossier: self.dossier(), ending: false }
    }

    fn dossier(&self) -> Dossier {
        let inode = |place| self.store.as_ref().and_then(|store| store.inode(place));
        let known = |content: &Vec<u8>, place| Draft {
            total: Some(Length(content.len() as u64)),
            inode: inode(place),
            content_type: Some("application/octet-stream".into()),
            ..Draft::default()
        };
        let rival = self.rival.as_ref().map(|content| known(content, Place::Rival));
        // In a promotion the rival's content is the part's already.
        let mut part = known(&self.part.content, Place::Part);
        if rival.is_some() {
            part.total = None;
        }
        Dossier { part, rival, ..Dossier::default() }
    }

    fn total(&self) -> Length {
        Length(self.part.content.len() as u64)
    }

    fn store(&mut self) -> &mut PartStore {
        self.store.as_mut().expect("open")
    }
}

impl Told {
    /// Crashes at a point, looks at what is left, and goes on from there.
    pub(crate) fn crash(&self, disk: &Disk, point: usize, crash: Crash, rng: &mut Rng, depth: u32) {
        let fact = self.facts.iter().rfind(|fact| fact.from <= point).expect("a beginning");
        let Some((life, mut disk)) = self.survive(disk, fact, crash, rng) else { return };
        let told = life.live();
        if depth > 0 {
            let point = rng.below(told.effects.len() + 1);
            told.effects[..point].iter().for_each(|effect| disk.take(effect));
            let none = self.way.sync == SyncMode::None;
            let crash = if none || rng.below(2) == 0 { Crash::Process } else { Crash::Machine };
            told.crash(&disk, point, crash, rng, depth - 1);
        }
    }

    /// What comes after a crash; nothing where the file has its final name.
    fn survive(&self, disk: &Disk, fact: &Fact, crash: Crash, rng: &mut Rng) -> Option<(Life, Disk)> {
        let LaidOut { dir, disk, inodes } = match crash {
            Crash::Process => disk.killed(rng),
            Crash::Machine => disk.crashed(rng),
        };
        let target = dir.path().join("file");
        if let Ok(found) = std::fs::read(&target) {
            assert!(fact.ending, "something stands under the final name");
            assert!(found == fact.part[0].content, "another file than was downloaded");
            return None;
        }
        let boot = self.boot + u8::from(crash == Crash::Machine);
        let recording = Recording::of(dir.path());
        let mut dossier = fact.dossier.clone();
        for draft in [Some(&mut dossier.part), dossier.rival.as_mut()].into_iter().flatten() {
            draft.inode = draft.inode.and_then(|was| inodes.get(&was).copied());
        }
        let opened = PartStore::open(&target, &dossier, spec(self.way, boot)).expect("it opens");
        let file = std::fs::read(dir.path().join("file.persxfer-part")).expect("a part file");
        let held = opened.part_segments;
        let part = found(fact, &held, &file, crash);
        let (flushed, told) = match crash {
            Crash::Machine => (held.clone(), held),
            Crash::Process => (part.flushed.clone(), held),
        };
        let mut part = Holds { flushed, told, ..part };
        // What is not held may come otherwise than before: nothing of it may be believed any more.
        for gap in part.told.gaps(Length(part.content.len() as u64)).collect::<Vec<_>>() {
            let bytes = rng.bytes(gap.length().0 as usize);
            part.content[gap.start.0 as usize..gap.end.0 as usize].copy_from_slice(&bytes);
        }
        // As it was opened: nothing less counts from its first effect on.
        let first = Fact { from: 0, dossier, part: fact.part.clone(), ending: false };
        let (rng, store) = (rng.clone(), Some(opened.store));
        let mut life =
            Life { dir, way: self.way, rng, boot, recording, store, part, rival: None, clock: 0, facts: vec![first] };
        if crash == Crash::Machine {
            life.facts[0].part.iter_mut().for_each(|holds| holds.told = holds.flushed.clone());
        }
        life.note();
        Some((life, disk))
    }
}

/// Which of the possible contents the part has.
fn found(fact: &Fact, held: &RangeSet, file: &[u8], crash: Crash) -> Holds {
    let bytes = |of: &[u8], range: ByteRange| of.get(range.start.0 as usize..range.end.0 as usize).map(<[u8]>::to_vec);
    let right =
        |holds: &&Holds| held.iter().all(|r| bytes(file, r).is_some() && bytes(file, r) == bytes(&holds.content, r));
    let least = |holds: &Holds| match crash {
        Crash::Machine => holds.flushed.clone(),
        Crash::Process => holds.told.clone(),
    };
    let enough = |holds: &&Holds| least(holds).iter().all(|range| held.covers(range));
    let found = fact.part.iter().filter(right).find(enough);
    found.cloned().unwrap_or_else(|| {
        let wrong = fact.part.iter().filter(right).count() == 0;
        let least: Vec<RangeSet> = fact.part.iter().map(least).collect();
        panic!("{held:?} is held after a crash of the {crash:?}; wrong bytes: {wrong}; at least one of {least:?}")
    })
}

fn spec(way: Way, boot: u8) -> Spec {
    let algorithms = if way.digest { vec![Algorithm::Sha256] } else { Vec::new() };
    Spec { algorithms, sync: way.sync, sums: BlockSums::default(), boot: Boot::Id([boot; 16]), slow: Slow::Beside }
}
