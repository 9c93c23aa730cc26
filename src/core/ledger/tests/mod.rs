//! The cases of the long-term ledger that need no store, each by its number in the list that `docs/ledger.md` shows.

mod failures;
mod leases;
mod paces;
mod wakes;

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::class::{Class, Kind};
use super::fail::{Aftermath, Failed};
use super::lease::{Claimed, Terms};
use super::pace::Bucket;
use super::record::{Key, Owner, Record, State, Token};
use super::table::Table;
use super::wake::{Manners, Seen, Woken};
use crate::core::range::Length;
use crate::core::time::{Delay, Epoch};

/// A record with the world around it.
struct Scene {
    record: Record,
    table: Table,
    budget: Bucket,
    now: Epoch,
    rng: StdRng,
}

/// The start of all scenes.
const START: Epoch = Epoch::from_secs(1_800_000_000);
const ME: Owner = Owner(1);

impl Scene {
    fn new() -> Self {
        Self::seeded(1)
    }

    fn seeded(seed: u64) -> Self {
        let key = Key::parse("http://h.example/f").expect("a key");
        let mirrors = vec!["http://h.example/f".to_owned(), "http://i.example/f".to_owned()];
        let record = Record::new(key, "h.example".to_owned(), mirrors, START);
        let (table, budget) = (Table::default(), Bucket::new(0.0, 1));
        Self { record, table, budget, now: START, rng: StdRng::seed_from_u64(seed) }
    }

    fn pass(&mut self, delay: Delay) {
        self.now = self.now + delay;
    }

    /// As long as it takes until it is due.
    fn wait(&mut self) {
        self.now = self.now.max(self.record.due_at);
    }

    fn claim(&mut self) -> Token {
        match self.try_claim() {
            Claimed::Yes { token, .. } => token,
            other => panic!("{other:?}: {:?}", self.record),
        }
    }

    fn try_claim(&mut self) -> Claimed {
        self.record.claim(ME, Terms::default(), self.now, &self.table, &mut self.rng)
    }

    fn fail_with(&mut self, token: Token, failed: &Failed) -> Aftermath {
        self.record.fail(token, failed, self.now, &self.table, &mut self.rng).expect("the holder")
    }

    /// Waits, claims and fails; how long it is to wait now.
    fn fails(&mut self, class: Class) -> Delay {
        self.fails_with(&failed(class))
    }

    fn fails_with(&mut self, failed: &Failed) -> Delay {
        self.wait();
        let token = self.claim();
        self.fail_with(token, failed);
        self.record.due_at.since(self.now)
    }

    fn see(&mut self, kind: Kind) -> Woken {
        self.see_at(kind, self.now)
    }

    fn see_at(&mut self, kind: Kind, at: Epoch) -> Woken {
        let seen = Seen { kind, at };
        self.record.observe(seen, self.now, None, &self.table, Manners::default(), &mut self.budget)
    }
}

fn failed(class: Class) -> Failed {
    Failed { class, asked: None, mirror: None, bytes_done: Length::ZERO }
}

/// Is it this long, with a fifth more at most?
fn about(delay: Delay, wanted: Delay) {
    assert!(delay >= wanted && delay <= wanted.mul_f64(1.2), "{delay} is not {wanted} and a little");
}

const SPREAD: Delay = Delay::from_secs(30);

fn any_kind() -> impl Strategy<Value = Kind> {
    proptest::sample::select(Kind::ALL.to_vec())
}

fn any_class() -> impl Strategy<Value = Class> {
    proptest::sample::select(Class::ALL.to_vec())
}
