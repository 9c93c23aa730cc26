//! Hosts that back off as a whole, in the file's own `<persxfer>` element: one `<host>` each.

use super::decode::{count, text, time};
use super::node::Node;
use super::shape::Shape;
use super::tree::Element;
use super::{backoff, words};
use crate::core::backoff::Backoff;
use crate::core::pers_xfer::record::Direction;
use crate::core::time::Epoch;

/// A host that failed, in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRecord {
    /// The origin as text, `https://example.org:8443`.
    pub origin: String,
    /// Which way.
    pub direction: Direction,
    /// Failures of the host in a row.
    pub failures: u32,
    /// How far its backoff has gone.
    pub backoff: Backoff,
    /// It backs off until then; `None` where it does not.
    pub closed_until: Option<Epoch>,
    /// It asked us to wait until then.
    pub not_before: Option<Epoch>,
}

/// The `<host>` element of a host.
pub(super) fn encode(host: &HostRecord) -> Node {
    let mut nodes = vec![
        Node::text("origin", &host.origin),
        Node::plain("direction", words::direction(host.direction)),
        Node::plain("failures", host.failures),
    ];
    nodes.extend(backoff::element(&host.backoff));
    nodes.extend(host.closed_until.map(|t| Node::plain("closed_until", t)));
    nodes.extend(host.not_before.map(|t| Node::plain("not_before", t)));
    Node::parent("host", Shape::Host, nodes)
}

/// The host of a `<host>` element; `None` where it names none.
pub(super) fn decode(element: &Element<'_>) -> Option<HostRecord> {
    Some(HostRecord {
        origin: text(element, "origin")?,
        direction: text(element, "direction")
            .and_then(|word| words::read_direction(&word))
            .unwrap_or(Direction::Download),
        failures: count(Some(element), "failures"),
        backoff: element.child("backoff").map_or_else(Backoff::default, backoff::decode),
        closed_until: time(Some(element), "closed_until"),
        not_before: time(Some(element), "not_before"),
    })
}
