//! Seeds: every crash that the model makes has a name, is told when something is wrong after it, and can be made again.

#![allow(dead_code, reason = "each test binary uses its own part of it")]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use persxfer::io::effects::failpoints::Effect;

use crate::disk::Disk;

/// `PERSXFER_CRASH=STORY/POINT/SEED` makes only that crash; `PERSXFER_CRASH=STORY` all of one story.
const VARIABLE: &str = "PERSXFER_CRASH";

/// SplitMix64: the same numbers for the same seed, on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_F491_4F6C_DD1D).wrapping_add(0x1234_5678_9ABC_DEF1))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub(crate) fn choose<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = Vec::with_capacity(n + 8);
        while bytes.len() < n {
            bytes.extend(self.next().to_le_bytes());
        }
        bytes.truncate(n);
        bytes
    }
}

/// Which crashes are to be made, and how many were.
#[derive(Debug)]
pub(crate) struct Plan {
    name: &'static str,
    only: Option<String>,
    made: AtomicUsize,
}

impl Plan {
    pub(crate) fn of(name: &'static str) -> Self {
        Self { name, only: std::env::var(VARIABLE).ok(), made: AtomicUsize::new(0) }
    }

    /// Tells so many stories, a few at once.
    pub(crate) fn each_story(&self, stories: u64, tell: impl Fn(u64) + Sync) {
        let next = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| {
                    while let Some(story) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|story| *story < stories)
                    {
                        if self.tells(story) {
                            tell(story);
                        }
                    }
                });
            }
        });
    }

    /// Makes crashes with so many seeds after each effect of a story, and before the first.
    pub(crate) fn each_crash(
        &self,
        story: u64,
        seeds: u64,
        mut disk: Disk,
        effects: &[Effect],
        crash: impl Fn(&Disk, usize, u64, &mut Rng),
    ) {
        for point in 0..=effects.len() {
            if point > 0 {
                disk.take(&effects[point - 1]);
            }
            for seed in 0..seeds {
                self.crash((story, point, seed), |rng| crash(&disk, point, seed, rng));
            }
        }
    }

    /// Is this story to be told at all?
    fn tells(&self, story: u64) -> bool {
        let story = format!("{}-{story}", self.name);
        self.only.as_ref().is_none_or(|only| only.split('/').next() == Some(&story))
    }

    /// Makes one crash, unless another one is asked for. What `crash` panics with is told with the crash's name.
    fn crash(&self, (story, point, seed): (u64, usize, u64), crash: impl FnOnce(&mut Rng)) {
        let name = format!("{}-{story}/{point}/{seed}", self.name);
        let wanted = |only: &String| !only.contains('/') || *only == name;
        if !self.only.as_ref().is_none_or(wanted) {
            return;
        }
        self.made.fetch_add(1, Ordering::Relaxed);
        let mut rng = Rng::new(seed ^ ((point as u64) << 16) ^ (story << 40));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| crash(&mut rng)));
        if let Err(panic) = result {
            eprintln!("that was crash {name}; again: {VARIABLE}={name} cargo test --features failpoints crash_");
            std::panic::resume_unwind(panic);
        }
    }

    /// At least so many were made, if all were asked for.
    pub(crate) fn ends_with(&self, least: usize) {
        let made = self.made.load(Ordering::Relaxed);
        eprintln!("{}: {made} crashes", self.name);
        assert!(self.only.is_some() || made >= least, "only {made} crashes");
    }
}
