//! A part with gaps used at random, compared with what must be true of it.

use proptest::prelude::*;

use super::segments::{byte, range};
use super::*;
use crate::core::range::{ByteRange, RangeSet};

/// What can happen to a store.
#[derive(Clone, Debug)]
enum Deed {
    /// In the gap of this number, from this part of it on, so many bytes.
    Write(usize, f64, usize),
    Drop(f64, f64),
    Cut(f64),
    Settle,
    Tick,
    Checkpoint,
    Kill,
    Reboot,
    Close,
}

const TOTAL: usize = 3 * MIB + 4321;

fn deed() -> impl Strategy<Value = Deed> {
    let part = || prop_oneof![2 => Just(0.0), 3 => 0.0..1.0_f64];
    prop_oneof![
        8 => (0..6_usize, part(), prop_oneof![1 => 1..6000_usize, 3 => 1..MIB + MIB / 2]).prop_map(|(gap, from, n)| Deed::Write(gap, from, n)),
        2 => (0.0..1.0, 0.0..0.2).prop_map(|(from, n)| Deed::Drop(from, n)),
        1 => (0.3..1.0).prop_map(Deed::Cut),
        1 => Just(Deed::Settle),
        2 => Just(Deed::Tick),
        1 => Just(Deed::Checkpoint),
        2 => Just(Deed::Kill),
        1 => Just(Deed::Reboot),
        1 => Just(Deed::Close),
    ]
}

/// A store, and what must be true of it.
struct World {
    folder: Folder,
    store: Option<PartStore>,
    wrote: RangeSet,
    /// What a kill must leave.
    told: RangeSet,
    /// What a reboot must leave.
    flushed: RangeSet,
    boots: u8,
    clock: u64,
    /// What stands in the file where bytes were dropped and written anew.
    versions: Vec<u32>,
}

impl World {
    fn store(&mut self) -> &mut PartStore {
        self.store.as_mut().expect("open between deeds")
    }

    fn act(&mut self, deed: &Deed, seed: u32) {
        match *deed {
            Deed::Write(gap, from, n) => self.write(gap, from, n, seed),
            Deed::Drop(from, n) => {
                let start = (from * TOTAL as f64) as usize;
                let gone = range(start, start + (n * TOTAL as f64) as usize);
                self.store().drop_range(gone).expect("dropped");
                let before = self.wrote.clone();
                self.wrote.remove(gone);
                self.flushed.remove(gone);
                if self.wrote != before {
                    self.told = self.wrote.clone();
                }
            }
            Deed::Cut(to) => {
                let to = (to * TOTAL as f64) as usize;
                self.store().cut(Place::Part, held(to)).expect("cut");
                let gone = range(to, usize::MAX);
                self.wrote.remove(gone);
                self.flushed.remove(gone);
                self.told.remove(gone);
            }
            Deed::Settle => {
                self.store().settle(Place::Part).expect("settled");
                if self.folder.journal().exists() {
                    self.told = self.wrote.clone();
                }
            }
            Deed::Tick => {
                for _ in 0..3 {
                    self.clock += 260;
                    let now = at_ms(self.clock);
                    self.store().tick(now).expect("tick");
                }
                self.told = self.wrote.clone();
            }
            Deed::Checkpoint => {
                self.store().checkpoint().expect("checkpoint");
                (self.told, self.flushed) = (self.wrote.clone(), self.wrote.clone());
            }
            Deed::Kill => self.reopen(self.told.clone()),
            Deed::Reboot => {
                self.boots += 1;
                self.reopen(self.flushed.clone());
            }
            Deed::Close => {
                assert_eq!(self.store.take().map(PartStore::close), Some(Ok(())));
                (self.told, self.flushed) = (self.wrote.clone(), self.wrote.clone());
                self.reopen(self.wrote.clone());
            }
        }
        let wrote = self.wrote.clone();
        assert_eq!(self.store().segments(), wrote);
        assert_eq!(self.store().held(Place::Part), wrote.head());
    }

    fn write(&mut self, gap: usize, from: f64, n: usize, seed: u32) {
        let gaps: Vec<ByteRange> = self.wrote.gaps(held(TOTAL)).collect();
        let Some(gap) = gaps.get(gap % gaps.len().max(1)) else { return };
        let (start, end) = (gap.start.0 as usize, gap.end.0 as usize);
        let at = start + (from * (end - start) as f64) as usize;
        let end = end.min(at + n);
        self.versions[at..end].fill(seed);
        for piece in (at..end).step_by(70_000) {
            let to = end.min(piece + 70_000);
            let bytes = (piece..to).map(|i| byte(i, seed)).collect::<Vec<u8>>();
            self.store().write(Place::Part, offset(piece), Bytes::from(bytes)).expect("written");
        }
        self.wrote.insert(range(at, end));
    }

    fn content(&self, range: ByteRange) -> Vec<u8> {
        (range.start.0 as usize..range.end.0 as usize).map(|at| byte(at, self.versions[at])).collect()
    }

    /// Opens it again: what it holds was written, and is at least this.
    fn reopen(&mut self, least: RangeSet) {
        self.store = None;
        let opened = self.folder.open_in(Boot::Id([self.boots; 16]));
        let now = opened.part_segments;
        assert!(least.iter().all(|r| now.covers(r)), "{now:?} is held, {least:?} must be");
        assert!(now.iter().all(|r| self.wrote.covers(r)), "{now:?} is held, {:?} was written", self.wrote);
        let file = read(&self.folder.part());
        for run in now.iter() {
            let there = &file[run.start.0 as usize..run.end.0 as usize];
            assert!(there == self.content(run), "other bytes than were written in {run:?}");
        }
        self.wrote = now;
        self.store = Some(opened.store);
        // It has been opened in this boot: a kill loses nothing of it.
        self.told = self.wrote.clone();
        self.flushed = least.iter().filter(|r| self.wrote.covers(*r)).collect::<RangeSet>();
    }
}

fn live(deeds: &[Deed], spec: impl FnOnce(&mut Folder)) {
    let mut folder = Folder::new(&[Algorithm::Sha1]);
    spec(&mut folder);
    let store = Some(folder.open().store);
    let none = RangeSet::new;
    let versions = vec![0; TOTAL];
    let mut world = World { folder, store, wrote: none(), told: none(), flushed: none(), boots: 1, clock: 0, versions };
    for (seed, deed) in (1..).zip(deeds) {
        let flushed = world.flushed.clone();
        world.act(deed, seed);
        if matches!(deed, Deed::Kill) {
            world.flushed = flushed;
        }
    }
    // The rest comes, in the order of the gaps from the last one on.
    let gaps: Vec<ByteRange> = world.wrote.gaps(held(TOTAL)).collect();
    for gap in gaps.into_iter().rev() {
        let content = world.content(gap);
        world.store().write(Place::Part, gap.start, Bytes::from(content)).expect("written");
    }
    assert_eq!(world.store().held(Place::Part), held(TOTAL));
    let whole = world.content(range(0, TOTAL));
    for (algorithm, digest) in world.store().digest(&mut |_| ()).expect("digest") {
        assert_eq!(digest, digest_of(algorithm, &whole), "{algorithm:?}");
    }
    world.store().publish(PLAIN).expect("published");
    assert!(read(&world.folder.target) == whole);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn whatever_happens_what_is_held_is_right(deeds in proptest::collection::vec(deed(), 1..24)) {
        live(&deeds, |_| ());
    }

    /// Small files, so that a journal is begun at any moment.
    #[test]
    fn also_of_what_is_begun(deeds in proptest::collection::vec(deed(), 1..6)) {
        live(&deeds, |_| ());
    }

    #[test]
    fn and_without_digests_too(deeds in proptest::collection::vec(deed(), 1..24)) {
        live(&deeds, |folder| folder.spec.algorithms.clear());
    }
}
