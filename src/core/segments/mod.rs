//! Segments: which connection of one download fetches which bytes, and from which mirror.
//!
//! The planner [`Segments`] is a machine. A *seat* is a mirror that may be asked, a *link* one request to it and the
//! bytes that come. Each missing byte belongs to one link at a time, or to a gap that waits for one. A link that has
//! nothing left takes the first gap, else a part of what another would be longest busy with, so that all end together;
//! what a silent or much slower link was to fetch, it takes over whole.
//!
//! How many connections an origin bears is found out by asking: one that is refused beside others that flow lowers the
//! number, for good. Nothing is asked again without a pause that grows, unless bytes came.
//!
//! What the driver owes: it carries out actions in order, at once; [`Event::Arrived`] counts every byte by which a
//! link's position moves, and comes before that link's [`Event::Ended`]; every link that was opened ends exactly once,
//! also one that was stopped.

mod chance;
mod choice;
mod ending;
mod link;
mod machine;
mod meter;
mod roster;
#[cfg(test)]
mod tests;
mod turn;
mod work;

pub use machine::Segments;

use crate::core::file_xfer::dossier::Ranges;
use crate::core::range::{ByteRange, Length, Offset};
use crate::core::time::{Delay, Mono};
use crate::core::url::Origin;

/// One link, numbered in the order opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A mirror that may be asked, with what is known of its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Its position in the record; carried along for the caller.
    pub mirror: usize,
    /// Who answers for it. Seats may share one.
    pub origin: Origin,
    /// What one connection brought earlier, in bytes per second.
    pub rate: Option<u64>,
    /// Not to be asked before then.
    pub not_before: Option<Mono>,
    /// The most connections at a time that the origin has shown to bear.
    pub most: Option<usize>,
    /// Does the origin answer ranges?
    pub ranges: Ranges,
    /// So often has it sent wrong bytes before.
    pub blames: u32,
}

/// What the user allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Links open at a time, in all. Nought counts as one.
    pub connections: usize,
    /// Links open at a time to one origin. Nought counts as one.
    pub per_origin: usize,
    /// No range is split into parts smaller than this. A small gap is fetched all the same.
    pub least: Length,
    /// What follows on a link that broke off.
    pub cuts: Cuts,
}

/// What follows on a link that broke off before its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cuts {
    /// Another one to the same mirror, after a breath.
    #[default]
    Mended,
    /// None: with one session a mirror (`--once`), a cut is the end of what that mirror does.
    Final,
}

/// What an answer can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It carries the range that was asked for.
    Ranged,
    /// It carries the whole file and cannot jump: what is held already is compared while it is read through.
    Through,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The time has come that [`Machine::wake_at`](crate::core::machine::Machine::wake_at) named.
    Wake,
    /// The head of a link's answer was judged good; bytes follow.
    Opened(LinkId),
    /// A link's position moved by so many bytes; all that it passed is held now: written, or compared and equal.
    Arrived(LinkId, Length),
    /// A link is closed.
    Ended(LinkId, Ending),
    /// Bytes were found wrong and are no longer held; the seat that brought them, where known.
    Lost(ByteRange, Option<usize>),
}

/// How a link ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// In order: at the end of its range, or sooner where the server sent less.
    Served,
    /// It broke off, stalled, or never came about.
    Cut,
    /// The server will not, for now: 403, 429, 503; or the connection was refused, or reset before a head.
    Refused {
        /// The origin asked not to be asked for so long.
        retry_after: Option<Delay>,
    },
    /// The whole file was the answer to a range.
    RangesIgnored,
    /// It holds another file: its mirror is never asked again by this planner.
    Odd,
    /// On an action of ours.
    Stopped,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask for a range.
    Open {
        /// The number of the new link.
        link: LinkId,
        /// Whom, as the position among the seats.
        seat: usize,
        /// What. For [`Reach::Through`] the whole file, to be asked for plainly.
        range: ByteRange,
        /// How.
        reach: Reach,
    },
    /// A link stops sooner than asked: at `end`.
    Limit {
        /// Which.
        link: LinkId,
        /// One beyond its last byte.
        end: Offset,
    },
    /// A link that was limited may go on to `end` after all, which is never beyond what it asked for. Where it has
    /// stopped already there is nothing to do: its end is told as ever, and the rest is asked for anew.
    Extend {
        /// Which.
        link: LinkId,
        /// One beyond its last byte.
        end: Offset,
    },
    /// A link is to be closed. The bytes it still brings before it has ended are not expected, but count.
    Stop {
        /// Which.
        link: LinkId,
    },
    /// Every byte is held. Once, unless bytes are lost again.
    Whole,
    /// No link is open and none may be opened soon: the session ends. Once, and the last action.
    Over,
}

/// What the session showed of an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// Which.
    pub origin: Origin,
    /// The most connections at a time that it bears, where one more was refused, now or earlier.
    pub connections: Option<usize>,
    /// What one connection brought in this session, in bytes per second.
    pub rate: Option<u64>,
    /// Does it answer ranges?
    pub ranges: Ranges,
}
