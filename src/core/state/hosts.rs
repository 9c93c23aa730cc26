//! Hosts that back off as a whole, in the file's own `<persxfer>` element: one `<host>` each.

use super::node::Node;
use super::scalar;
use super::shape::Shape;
use super::tree::Element;
use super::words;
use crate::core::pers_xfer::record::Direction;
use crate::core::time::Epoch;

/// A host that failed, in one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRecord {
    /// The origin as text, `https://example.org:8443`.
    pub origin: String,
    /// Which way.
    pub direction: Direction,
    /// Failures of the host in a row.
    pub failures: u32,
    /// It is not asked before this moment.
    pub until: Epoch,
}

/// The `<host>` element of a host.
pub(super) fn encode(host: &HostRecord) -> Node {
    Node::parent(
        "host",
        Shape::Host,
        vec![
            Node::text("origin", &host.origin),
            Node::plain("direction", words::direction(host.direction)),
            Node::plain("failures", host.failures),
            Node::plain("until", host.until),
        ],
    )
}

/// The host of a `<host>` element; `None` where it names none.
pub(super) fn decode(element: &Element<'_>) -> Option<HostRecord> {
    let text = |name: &str| element.child(name).map(|e| e.text());
    Some(HostRecord {
        origin: element.child("origin").map(scalar::text)?,
        direction: text("direction").and_then(|t| words::read_direction(&t)).unwrap_or(Direction::Download),
        failures: text("failures").and_then(|t| scalar::count(&t)).unwrap_or(0),
        until: text("until").and_then(|t| scalar::time(&t)).unwrap_or_default(),
    })
}
