//! The state of a retry policy, in the `<backoff>` element of a transfer or a host. This file alone knows its fields.

use super::node::Node;
use super::shape::Shape;
use super::tree::Element;
use crate::core::backoff::Backoff;

/// The elements inside `<backoff>`, in order.
pub(super) const ORDER: &[&str] = &[];

/// The `<backoff>` element; none where everything has its default.
pub(super) fn element(backoff: &Backoff) -> Option<Node> {
    let nodes = encode(backoff);
    (!nodes.is_empty()).then(|| Node::parent("backoff", Shape::Backoff, nodes))
}

/// The elements inside it: what has not its default.
fn encode(_backoff: &Backoff) -> Vec<Node> {
    Vec::new()
}

/// The backoff of a `<backoff>` element; what is absent or malformed has its default.
pub(super) fn decode(_element: &Element<'_>) -> Backoff {
    Backoff::default()
}
