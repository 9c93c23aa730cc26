//! The state of a retry policy, in the `<backoff>` element of a transfer or a host. This file alone knows its fields.

use super::decode::{count, span};
use super::encode::positive;
use super::node::Node;
use super::shape::Shape;
use super::tree::Element;
use crate::core::backoff::Backoff;
use crate::core::time::Delay;

/// The elements inside `<backoff>`, in order; all of them numbers.
pub(super) const ORDER: &[&str] = &["n", "previous", "position"];

/// The `<backoff>` element; none where everything has its default.
pub(super) fn element(backoff: &Backoff) -> Option<Node> {
    let nodes = encode(backoff);
    (!nodes.is_empty()).then(|| Node::parent("backoff", Shape::Backoff, nodes))
}

/// The elements inside it: what has not its default.
fn encode(backoff: &Backoff) -> Vec<Node> {
    let mut nodes = Vec::new();
    nodes.extend(positive("n", backoff.n));
    nodes.extend((backoff.previous > Delay::ZERO).then(|| Node::plain("previous", backoff.previous)));
    nodes.extend(positive("position", backoff.position));
    nodes
}

/// The backoff of a `<backoff>` element; what is absent has its default.
pub(super) fn decode(element: &Element<'_>) -> Backoff {
    Backoff {
        n: count(Some(element), "n"),
        previous: span(Some(element), "previous"),
        position: count(Some(element), "position"),
    }
}
