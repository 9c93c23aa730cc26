//! Hosts of a simulation: what they are like at which time, and the files that they have.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

/// Time since the world began.
pub(crate) type T = Duration;

pub(crate) const HOUR: u64 = 3_600;
pub(crate) const DAY: u64 = 24 * HOUR;

/// How a host is for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Serves.
    Well,
    /// Serves, and breaks off or falls silent at times.
    Flaky,
    /// Takes no connection.
    Refuses,
    /// Lets connections hang.
    Hangs,
    /// Takes requests and never answers.
    Mute,
    /// 503, with a Retry-After of so many seconds.
    Busy(Option<u32>),
    /// 500.
    Broken,
    /// 404.
    Missing,
    /// A page of a login in place of the file.
    Portal,
}

impl Mood {
    pub(crate) fn serves(self) -> bool {
        matches!(self, Self::Well | Self::Flaky)
    }

    /// May a client take its word, and never ask again?
    fn refuses_for_good(self) -> bool {
        self == Self::Missing
    }

    fn draw(rng: &mut StdRng, digests: Digests) -> Self {
        let asked = rng.random_bool(0.5).then(|| rng.random_range(1..40_000));
        let all = [
            Self::Well,
            Self::Flaky,
            Self::Flaky,
            Self::Refuses,
            Self::Hangs,
            Self::Mute,
            Self::Busy(asked),
            Self::Broken,
            Self::Missing,
            Self::Portal,
        ];
        match all[rng.random_range(0..all.len())] {
            // To whom nothing is known of the file, a page is as good a file as any.
            Self::Portal if digests == Digests::NotOfAll => Self::Broken,
            mood => mood,
        }
    }
}

/// Are the digests of files known to those who ask for them?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digests {
    OfAll,
    NotOfAll,
}

/// What a host says of the version it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Strong,
    Weak,
    Date,
    Nothing,
}

/// One host.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    moods: Vec<(T, Mood)>,
    pub(crate) names: Names,
    /// Does it answer ranges with ranges?
    pub(crate) ranges: bool,
    /// Bytes a second.
    pub(crate) rate: u64,
    /// It has other bytes of the same length.
    pub(crate) lies: bool,
    pub(crate) round_trip: Duration,
}

impl Host {
    pub(crate) fn draw(rng: &mut StdRng, digests: Digests) -> Self {
        let mut moods = vec![(T::ZERO, Mood::draw(rng, digests))];
        let mut at = 0;
        for _ in 0..rng.random_range(0..5) {
            at += if rng.random_bool(0.5) { rng.random_range(1..300) } else { rng.random_range(300..DAY) };
            moods.push((T::from_secs(at), Mood::draw(rng, digests)));
        }
        if rng.random_bool(0.8) {
            at += rng.random_range(1..2 * DAY);
            moods.push((T::from_secs(at), Mood::Well));
        }
        let names = [Names::Strong, Names::Strong, Names::Weak, Names::Date, Names::Nothing];
        Self {
            moods,
            names: names[rng.random_range(0..names.len())],
            ranges: rng.random_bool(0.85),
            rate: 1 << rng.random_range(14..23),
            lies: digests == Digests::OfAll && rng.random_bool(0.2),
            round_trip: Duration::from_millis(rng.random_range(1..200)),
        }
    }

    pub(crate) fn mood(&self, t: T) -> Mood {
        self.moods.iter().rev().find(|(from, _)| *from <= t).map_or(Mood::Well, |(_, mood)| *mood)
    }

    /// From then on it serves the right file for ever, and never before has it said anything that ends all asking.
    pub(crate) fn reliable_from(&self) -> Option<T> {
        let (from, last) = *self.moods.last()?;
        let bad = self.moods.iter().any(|(_, mood)| mood.refuses_for_good());
        (last == Mood::Well && !bad && !self.lies).then_some(from)
    }
}

/// One file, the same on all honest hosts.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    /// Its versions, and from when each is served.
    pub(crate) versions: Vec<(T, Vec<u8>)>,
    /// What liars have.
    pub(crate) lie: Vec<u8>,
}

impl Truth {
    pub(crate) fn draw(rng: &mut StdRng, may_change: bool) -> Self {
        let length = match rng.random_range(0..10) {
            0 => rng.random_range(0..2_000),
            1..8 => rng.random_range(2_000..400_000),
            _ => rng.random_range(400_000..1_500_000),
        };
        let mut versions = vec![(T::ZERO, noise(rng, length))];
        if may_change && rng.random_bool(0.3) {
            let at = T::from_secs(rng.random_range(1..DAY));
            let length = if rng.random_bool(0.5) { length } else { rng.random_range(1..400_000) };
            versions.push((at, noise(rng, length)));
        }
        let lie = noise(rng, length);
        Self { versions, lie }
    }

    /// The number of the version that is served at a time.
    pub(crate) fn version(&self, t: T) -> usize {
        self.versions.iter().rposition(|(from, _)| *from <= t).unwrap_or(0)
    }

    pub(crate) fn is(&self, bytes: &[u8]) -> bool {
        self.versions.iter().any(|(_, version)| version == bytes)
    }
}

fn noise(rng: &mut StdRng, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    rand::Rng::fill_bytes(rng, &mut bytes);
    bytes
}
