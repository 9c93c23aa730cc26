//! A line: what the loop knows of one link.

use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::core::file_xfer::Freshness;
use crate::core::file_xfer::link::Link;
use crate::core::range::{ByteRange, Offset, RangeSet};
use crate::io::driver::content::Content;
use crate::io::driver::fan::wire::Order;

/// One link under way.
pub(super) struct Line {
    /// Its machine; none for the session's own answer, which the session's machine has judged.
    pub(super) machine: Option<Link>,
    pub(super) seat: usize,
    /// What it is to fetch.
    pub(super) range: ByteRange,
    /// Where the next byte of its open body stands in the file.
    pub(super) at: Offset,
    pub(super) doing: Doing,
    pub(super) start: Start,
    /// Could a cache answer it?
    pub(super) asked: Freshness,
    /// What came from beyond its range, while it reads on.
    pub(super) tail: Vec<u8>,
    /// What is to be compared with the digest that the answer names for its body.
    pub(super) content: Option<Content>,
    /// What of the open answer was written.
    pub(super) wrote: RangeSet,
    pub(super) orders: mpsc::UnboundedSender<Order>,
    /// Requests ordered so far.
    pub(super) request: u32,
    pub(super) task: AbortHandle,
}

/// What a link does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// It waits for an answer.
    Asking,
    /// Its body is compared up to here.
    Comparing { until: Offset },
    /// Its body brings bytes of the file.
    Taking {
        /// One beyond the last byte that this answer brings.
        end: Offset,
    },
    /// Its range is done; what follows is for comparing what stands there, up to here.
    ReadingOn { until: Offset },
}

/// How the first byte of a link's range is joined to what lies right before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// That was held, and compared.
    Compared,
    /// Nobody knows yet.
    Open,
}

impl Line {
    /// Orders; a wire that is gone has told so.
    pub(super) fn order(&mut self, order: Order) {
        if matches!(order, Order::Ask(_)) {
            self.request += 1;
        }
        let _ = self.orders.send(order);
    }
}
