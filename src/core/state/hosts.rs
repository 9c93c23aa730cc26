//! Hosts that back off as a whole, in the file's own `<persxfer>` element: one `<host>` each.

use super::decode::{count, text, time};
use super::node::Node;
use super::shape::Shape;
use super::tree::Element;
use super::{backoff, words};
use crate::core::backoff::Backoff;
use crate::core::hosts::{HostKey, HostRecord};
use crate::core::pers_xfer::record::Direction;
use crate::core::url::Origin;

/// The `<host>` element of a host.
pub(super) fn encode(host: &HostRecord) -> Node {
    let mut nodes = vec![
        Node::text("origin", host.key.origin.as_str()),
        Node::plain("direction", words::direction(host.key.direction)),
        Node::plain("failures", host.failures),
    ];
    nodes.extend(host.last.as_deref().map(|last| Node::text("last_failure", last)));
    nodes.extend(backoff::element(&host.backoff));
    nodes.extend(host.closed_until.map(|t| Node::plain("closed_until", t)));
    nodes.extend(host.not_before.map(|t| Node::plain("not_before", t)));
    nodes.extend(host.rate.map(|rate| Node::plain("rate", rate)));
    Node::parent("host", Shape::Host, nodes)
}

/// The host of a `<host>` element; `None` where it names none.
pub(super) fn decode(element: &Element<'_>) -> Option<HostRecord> {
    let direction = text(element, "direction").and_then(|word| words::read_direction(&word));
    let key = HostKey {
        origin: Origin::parse(&text(element, "origin")?)?,
        direction: direction.unwrap_or(Direction::Download),
    };
    Some(HostRecord {
        key,
        failures: count(Some(element), "failures"),
        last: text(element, "last_failure"),
        backoff: element.child("backoff").map_or_else(Backoff::default, backoff::decode),
        closed_until: time(Some(element), "closed_until"),
        not_before: time(Some(element), "not_before"),
        rate: text(element, "rate").and_then(|t| t.parse().ok()),
    })
}
