//! Uploads: one session with one server, as a machine, and the protocols that it speaks.
//!
//! [`UpXfer`] holds the rules that are the same for every server; an [`UploadProtocol`] knows the requests and answers
//! of one kind of server. Whoever drives the machine carries out one [`Step`] at a time and answers with an [`Event`].
//! Nothing here sends anything; `docs/uploads.md` tells the whole.

mod ask;
mod boinc;
mod failure;
mod found;
mod ietf;
mod machine;
mod options;
mod pace;
mod protocol;
mod put;
mod put_range;
pub mod s3;
mod session;
mod source;
#[cfg(test)]
mod tests;
mod tus;
mod verdict;
mod wire;

pub use ask::{Answer, Ask, Body, Gate, Interim, Keep, Method};
pub use boinc::{Boinc, Surplus};
pub use failure::{FoundAtServer, UpFailure};
pub use found::{Call, Found, Job, Proof, Said, Turn};
pub use ietf::{Ietf, Interop};
pub use machine::{Event, Next, Persist, Plan, Step, UpEnd, UpXfer};
pub use options::{ReadBack, UploadOptions};
pub use pace::Pace;
pub use protocol::{Backward, Carries, EmptyFile, Foreign, Protocol, Redirects, UploadProtocol, Ways};
pub use put::Put;
pub use put_range::PutRange;
pub use s3::{S3, SignedPut};
pub use session::{Before, Handle, Lost, Part, Phase, RangesHere, Target, UploadSession};
pub use source::{Change, Likeness, Mark, Named, Sight, Source, Stamp};
pub use tus::{Authority, Tus};
pub use verdict::{Row, UpScope, UpVerdict, judge, row, store_row};

use crate::core::range::Length;
use crate::core::time::Delay;

/// Confirmed growth below this is none (facts of uploads, the segment rule).
pub const LEAST_GROWTH: Length = Length(64 << 10);

/// A larger body waits for the server's word before it flows.
pub const GATE_ABOVE: Length = Length(1 << 20);

/// For so long.
pub const GATE_WAIT: Delay = Delay::from_secs(1);

/// How long an answer is waited for once the request is out. Servers that lock answer after 30 seconds.
pub const PATIENCE: Delay = Delay::from_secs(60);

/// How long the answer to a body is waited for: servers copy and check what came.
pub const BODY_PATIENCE: Delay = Delay::from_secs(300);

/// How long cleaning up at a server may take.
pub const ABANDON_PATIENCE: Delay = Delay::from_secs(10);

/// So many sessions lost within a day, and the server is left alone.
pub const MAX_LOST: u32 = 3;
