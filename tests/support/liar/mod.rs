//! Liar: a server that draws how it answers each request from the whole bank of faults (`docs/integrity.md`).
//!
//! What it does is a function of a seed, of the mirror and of the request's number there, so a bad download can be had
//! again. Several mirrors share one liar. A [`Plan`] says which lies may be told in one download:
//!
//! - **No digest is known.** Then only such lies are told as leave traces that somebody can find. Left out are those that
//!   nobody could: bytes changed on the way in a body that is not compared with anything; a Content-Length that is too
//!   small from the first answer on, or a false total where none was told before; a page as the very first answer; coded
//!   bytes that are not called coded; two versions of one size that differ in a few bytes, where tags are not true. A body
//!   that ends with its connection may be cut, but then the program has to say that its length is unverified.
//! - **A digest is known.** Then every lie is told, and one answer in ten is honest.

mod lies;
mod links;
mod ranges;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::support::rig::lock;
use crate::support::{Asked, Reply, noise};
use lies::Turn;
use links::{Busy, Manner, Pace};

/// What vouches for the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Nothing but what the servers say.
    Nothing,
    /// The digest of the first version.
    Digest,
}

/// What the validators of a download are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tags {
    /// A strong tag for each version.
    True,
    /// The same, and the versions differ in a few bytes and in size only.
    TrueOfNear,
    /// One strong tag for all versions.
    Same,
    Weak,
    None,
    /// Another one with each answer.
    Flipping,
    Dates,
    SameDate,
}

/// Are sizes always told, so that a false one contradicts something?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    Told,
    /// Chunked bodies, bodies that end with the connection, and ranges of `*`.
    Hidden,
}

/// One download.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) proof: Proof,
    pub(crate) tags: Tags,
    pub(crate) sizes: Sizes,
    pub(crate) versions: Vec<Arc<Vec<u8>>>,
    /// How often, in percent, an answer is cut, hangs or drips besides.
    pub(crate) rough: u32,
    /// The version that each mirror serves most of the time.
    pub(crate) homes: Vec<usize>,
    /// How each mirror treats several connections; where there is a pace.
    pub(crate) manners: Vec<Manner>,
    /// The pace of large files, which are split.
    pub(crate) pace: Option<Pace>,
}

/// The servers of one download, whatever they are asked.
pub(crate) struct Liar {
    pub(crate) plan: Plan,
    urls: OnceLock<Vec<String>>,
    /// A range was asked for: the client knows something of the file.
    known: AtomicBool,
    /// A body without a length was cut.
    cut_unseen: AtomicBool,
    /// Answers so far, as lines for people.
    log: Mutex<Vec<String>>,
    honest: AtomicBool,
    busy: Vec<Busy>,
}

impl Plan {
    pub(crate) fn draw(seed: u64, proof: Proof) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let tags = [
            Tags::True,
            Tags::TrueOfNear,
            Tags::TrueOfNear,
            Tags::Same,
            Tags::Weak,
            Tags::None,
            Tags::Flipping,
            Tags::Dates,
            Tags::SameDate,
        ];
        let tags = tags[rng.random_range(0..tags.len())];
        let sizes = if rng.random_bool(0.5) { Sizes::Told } else { Sizes::Hidden };
        let alone = tags != Tags::TrueOfNear && rng.random_bool(0.3);
        let count = if alone { 1 } else { rng.random_range(2..=3) };
        let pace = rng.random_bool(0.5).then(|| links::draw_pace(&mut rng));
        let n = if pace.is_some() { large(&mut rng) } else { size(&mut rng) };
        let versions = versions(&mut rng, seed, tags, (count, n));
        // Where versions are nearly alike, only the tags of one origin tell them apart.
        let mirrors = if tags == Tags::TrueOfNear { 1 } else { rng.random_range(1..=3) };
        let home = |rng: &mut StdRng| if proof == Proof::Digest { 0 } else { rng.random_range(0..count) };
        let homes: Vec<_> = (0..mirrors).map(|_| home(&mut rng)).collect();
        let manners = homes.iter().map(|_| links::draw_manner(&mut rng, proof)).collect();
        let rough = [10, 50, 80][rng.random_range(0..3)];
        Self { seed, proof, tags, sizes, versions, rough, homes, manners, pace }
    }

    /// The one file that may come out where a digest is known, and that comes out in the end anyway.
    pub(crate) fn truth(&self) -> &Arc<Vec<u8>> {
        &self.versions[0]
    }
}

fn size(rng: &mut StdRng) -> usize {
    match rng.random_range(0..10) {
        0 => rng.random_range(1_000..64_000),
        1..7 => rng.random_range(64_000..300_000),
        7..9 => rng.random_range(300_000..900_000),
        _ => rng.random_range(900_000..2_000_000),
    }
}

/// Large enough to be split.
fn large(rng: &mut StdRng) -> usize {
    match rng.random_range(0..10) {
        0..7 => rng.random_range(600_000..2_000_000),
        7..9 => rng.random_range(2_000_000..3_500_000),
        _ => rng.random_range(3_500_000..6_000_000),
    }
}

fn versions(rng: &mut StdRng, seed: u64, tags: Tags, (count, n): (usize, usize)) -> Vec<Arc<Vec<u8>>> {
    let first = noise(seed, n);
    let dull = rng.random_bool(0.2);
    let grown = rng.random_bool(0.2);
    let mut all = vec![first];
    for i in 1..count {
        let seed = seed.wrapping_add(0x9E37_79B9 * i as u64);
        let data = match tags {
            Tags::TrueOfNear => near(rng, &all[i - 1], seed),
            _ if grown => grown_from(&all[i - 1], seed),
            _ if rng.random_bool(0.5) => noise(seed, n),
            _ => noise(seed, if n > 500_000 { large(rng) } else { size(rng) }),
        };
        all.push(data);
    }
    if dull && tags != Tags::TrueOfNear { all.iter().map(dulled).collect() } else { all }
}

/// A few bytes changed, a few more at the end.
fn near(rng: &mut StdRng, data: &[u8], seed: u64) -> Arc<Vec<u8>> {
    let mut near = data.to_vec();
    for _ in 0..3 {
        // Near the beginning, where no overlap comes.
        let at = rng.random_range(0..near.len() / 2);
        near[at] ^= 0x20;
    }
    near.extend_from_slice(&noise(seed, rng.random_range(1..3_000)));
    Arc::new(near)
}

fn grown_from(data: &[u8], seed: u64) -> Arc<Vec<u8>> {
    Arc::new([data, &noise(seed, 1 + data.len() / 3)].concat())
}

/// With zeros in its middle, which tell nothing when they are compared.
fn dulled(data: &Arc<Vec<u8>>) -> Arc<Vec<u8>> {
    let (mut dull, n) = (data.to_vec(), data.len());
    dull[n / 3..2 * n / 3].fill(0);
    Arc::new(dull)
}

impl Liar {
    pub(crate) fn new(plan: Plan) -> Arc<Self> {
        let busy = plan.homes.iter().map(|_| Busy::default()).collect();
        Arc::new(Self {
            plan,
            busy,
            urls: OnceLock::new(),
            known: AtomicBool::new(false),
            cut_unseen: AtomicBool::new(false),
            log: Mutex::default(),
            honest: AtomicBool::new(false),
        })
    }

    /// Where the mirrors are; told once, before they are asked.
    pub(crate) fn lives_at(&self, urls: Vec<String>) {
        let _ = self.urls.set(urls);
    }

    /// From now on, nothing but the first version, under a strong tag of its own.
    pub(crate) fn repent(&self) {
        self.honest.store(true, Ordering::SeqCst);
        self.note("--- honest from here on".to_owned());
    }

    /// The client knows something of the file now, whatever it asks.
    pub(crate) fn is_known(&self) {
        self.known.store(true, Ordering::SeqCst);
    }

    /// A body that may have been cut without anybody noticing was sent.
    pub(crate) fn has_cut_unseen(&self) -> bool {
        self.cut_unseen.load(Ordering::SeqCst)
    }

    /// A line among the answers.
    pub(crate) fn note(&self, line: String) {
        lock(&self.log).push(line);
    }

    /// The first answers and the last.
    pub(crate) fn story(&self) -> String {
        let log = lock(&self.log);
        let (first, rest) = log.split_at(log.len().min(40));
        [first, &["...".to_owned()], &rest[rest.len().saturating_sub(40)..]].concat().join("\n")
    }

    /// The answer of one mirror.
    pub(crate) fn answer(&self, mirror: usize, asked: &Asked) -> Reply {
        if asked.range().is_some() {
            self.known.store(true, Ordering::SeqCst);
        }
        let which = self.plan.seed.wrapping_mul(31).wrapping_add(mirror as u64).wrapping_mul(1_000_003);
        let rng = StdRng::seed_from_u64(which.wrapping_add(asked.n as u64));
        let mut turn = Turn { liar: self, mirror, asked, rng, version: 0 };
        let honest = self.honest.load(Ordering::SeqCst);
        let (what, reply) = if honest {
            turn.repentant()
        } else {
            let (what, reply) = turn.answer();
            self.mannered(&mut turn, what, reply)
        };
        let (range, condition) = (asked.header("range").unwrap_or("-"), asked.header("if-range").unwrap_or("-"));
        self.note(format!(
            "mirror {mirror} #{} {} {range} {condition}: v{} {what}",
            asked.n, asked.target, turn.version
        ));
        reply
    }
}
