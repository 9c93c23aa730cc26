//! Segments: stand-in.
#![allow(missing_docs, clippy::todo)]
use crate::core::file_xfer::dossier::Ranges;
use crate::core::machine::{Cx, Machine};
use crate::core::range::{ByteRange, Length, Offset, RangeSet};
use crate::core::time::{Delay, Mono};
use crate::core::url::Origin;
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);
#[derive(Clone, Debug)]
pub struct Seat {
    pub mirror: usize,
    pub origin: Origin,
    pub rate: Option<u64>,
    pub not_before: Option<Mono>,
    pub most: Option<usize>,
    pub ranges: Ranges,
}
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub connections: usize,
    pub per_origin: usize,
    pub least: Length,
}
#[derive(Clone, Copy, Debug)]
pub enum Reach {
    Ranged,
    Through,
}
#[derive(Debug)]
pub struct Segments;
#[derive(Clone, Debug)]
pub struct Learned {
    pub origin: Origin,
    pub most: Option<usize>,
    pub rate: Option<u64>,
    pub ranges: Ranges,
}
impl Segments {
    pub fn new(_total: Length, _held: RangeSet, _seats: Vec<Seat>, _rules: Rules) -> Self {
        todo!()
    }
    pub fn adopt(&mut self, _seat: usize, _at: Offset, _end: Offset, _reach: Reach, _now: Mono) -> LinkId {
        todo!()
    }
    pub fn held(&self) -> &RangeSet {
        todo!()
    }
    pub fn learned(&self) -> impl Iterator<Item = Learned> {
        std::iter::empty()
    }
}
#[derive(Clone, Debug)]
pub enum Event {
    Wake,
    Opened(LinkId),
    Arrived(LinkId, Length),
    Ended(LinkId, Ending),
    Lost(ByteRange, Option<usize>),
}
#[derive(Clone, Debug)]
pub enum Ending {
    Served,
    Cut,
    Refused { retry_after: Option<Delay> },
    RangesIgnored,
    Odd,
    Stopped,
}
#[derive(Clone, Debug)]
pub enum Action {
    Open { link: LinkId, seat: usize, range: ByteRange },
    Limit { link: LinkId, end: Offset },
    Stop { link: LinkId },
    Whole,
    Over,
}
impl Machine for Segments {
    type Event = Event;
    type Action = Action;
    fn handle(&mut self, _event: Event, _cx: &mut Cx<'_, Action>) {
        todo!()
    }
    fn wake_at(&self) -> Option<Mono> {
        None
    }
}
