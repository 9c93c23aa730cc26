//! The planner by itself: each rule with a few events, then whole downloads in a simulated world.

mod bench;
mod chances;
mod failures;
mod figures;
mod rules;
mod sim;
mod storms;

use crate::core::file_xfer::dossier::Ranges;
use crate::core::machine::{Cx, Machine};
use crate::core::range::{ByteRange, Length, Offset, RangeSet};
use crate::core::segments::*;
use crate::core::time::{Delay, Epoch, Mono, Now};
use crate::core::url::Origin;

const MB: u64 = 1 << 20;
const KB: u64 = 1 << 10;

fn range(start: u64, end: u64) -> ByteRange {
    ByteRange::new(Offset(start), Offset(end))
}

fn at(mono: Mono) -> Now {
    Now { wall: Epoch::from_secs(1_700_000_000) + mono.since(Mono::ZERO), mono }
}

/// A seat of which nothing is known, at an origin with this number.
fn seat(mirror: usize, origin: usize) -> Seat {
    let origin = Origin::parse(&format!("http://m{origin}.example/")).expect("an origin");
    Seat { mirror, origin, rate: None, not_before: None, most: None, ranges: Ranges::Unknown, blames: 0 }
}

const fn rules(connections: usize, per_origin: usize, least: u64) -> Rules {
    Rules { connections, per_origin, least: Length(least), cuts: Cuts::Mended }
}
