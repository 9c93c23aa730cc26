//! Links: what servers do to downloads over several connections. A mirror keeps its manner over all its answers.

#![allow(clippy::disallowed_methods, reason = "clocks are read here to play a server, never to decide")]

use std::sync::Mutex;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;

use super::lies::Turn;
use super::{Liar, Proof};
use crate::support::rig::lock;
use crate::support::{End, Reply, ms};

/// How a mirror treats connections beside the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Like any other.
    Plain,
    /// So many bodies at a time; any more is turned away so.
    Few(usize, Away),
    /// So many ranges are answered as ranges, and from then on none.
    RangesRunOut(usize),
    /// Each range is answered, under its right label, with the first bytes of the file.
    HeadForAll,
    /// Each second answer to a range comes in drops that take for ever.
    Drips,
    /// Each range ends sooner than asked, and says so; not so soon that it brings nothing beyond what is compared.
    Short,
}

/// How a connection too many is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Away {
    Status(u16),
    Reset,
    Silence,
}

/// When the bodies under way at one mirror end.
#[derive(Debug, Default)]
pub(crate) struct Busy(Mutex<Vec<Instant>>);

/// The pace of a mirror: so many bytes, then a pause.
pub(crate) type Pace = (usize, Duration);

pub(super) fn draw_manner(rng: &mut StdRng, proof: Proof) -> Manner {
    let away = [Away::Status(403), Away::Status(429), Away::Status(503), Away::Status(503), Away::Reset, Away::Silence];
    match rng.random_range(0..12) {
        0..5 => Manner::Plain,
        5..8 => Manner::Few(rng.random_range(1..=3), away[rng.random_range(0..away.len())]),
        8 => Manner::RangesRunOut(rng.random_range(0..5)),
        9 if proof == Proof::Digest => Manner::HeadForAll,
        10 => Manner::Drips,
        _ => Manner::Short,
    }
}

pub(super) fn draw_pace(rng: &mut StdRng) -> Pace {
    (rng.random_range(24..160) << 10, ms(rng.random_range(1..8)))
}

impl Liar {
    /// What the manner of a mirror, and its pace, make of an answer.
    pub(super) fn mannered(&self, turn: &mut Turn<'_>, what: String, reply: Reply) -> (String, Reply) {
        let Some(pace) = self.plan.pace else { return (what, reply) };
        let reply = if reply.has_pace() { reply } else { reply.pace(pace.0, pace.1) };
        let manner = self.plan.manners[turn.mirror];
        let (what, reply) = match manner {
            Manner::Few(most, away) if self.is_busy(turn.mirror, most) => return turned_away(away),
            Manner::RangesRunOut(n) if turn.asked.n > n + 1 && turn.asked.range().is_some() => {
                (format!("{what}, no range any more"), turn.whole().pace(pace.0, pace.1))
            }
            Manner::HeadForAll if turn.asked.from() > 0 => turn.head_for(what, reply),
            Manner::Drips if turn.asked.from() > 0 && turn.asked.n % 2 == 1 => {
                (format!("{what}, dripping"), reply.pace(200, ms(20)))
            }
            Manner::Short if turn.asked.from() > 0 => turn.short(what, reply),
            _ => (what, reply),
        };
        let takes = pace.1 * u32::try_from(reply.len() / pace.0).unwrap_or(0);
        lock(&self.busy[turn.mirror].0).push(turn.asked.at + takes);
        (what, reply)
    }

    fn is_busy(&self, mirror: usize, most: usize) -> bool {
        let mut busy = lock(&self.busy[mirror].0);
        busy.retain(|until| *until > Instant::now());
        busy.len() >= most
    }
}

fn turned_away(away: Away) -> (String, Reply) {
    let reply = match away {
        Away::Status(status) => Reply::page(status, "<p>too many connections</p>").then(End::Close),
        Away::Reset => Reply::raw(Vec::new()).then(End::Reset),
        Away::Silence => Reply::raw(Vec::new()).then(End::Hang),
    };
    (format!("too many: {away:?}"), reply)
}

impl Turn<'_> {
    fn head_for(&mut self, what: String, reply: Reply) -> (String, Reply) {
        match self.range() {
            Some(range) if range.len() < self.data().len() => {
                let n = range.len();
                let label = format!("bytes {}-{}/{}", range.start, range.end - 1, self.data().len());
                (format!("{what}, but the head"), self.partial(0..n, &label))
            }
            _ => (what, reply),
        }
    }

    fn short(&mut self, what: String, reply: Reply) -> (String, Reply) {
        match self.range() {
            Some(range) if range.len() > 80_000 => {
                let end = range.start + self.rng.random_range(70_000..range.len());
                let label = format!("bytes {}-{}/{}", range.start, end - 1, self.data().len());
                (format!("{what}, but shorter"), self.partial(range.start..end, &label))
            }
            _ => (what, reply),
        }
    }
}
