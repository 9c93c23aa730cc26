//! The state of the retry policy, in a record's `<backoff>` element. This file alone knows its fields.

use super::node::Node;
use super::tree::Element;
use crate::core::backoff::Backoff;

/// The elements inside `<backoff>`, in order.
pub(super) const ORDER: &[&str] = &[];

/// The elements of a backoff.
pub(super) fn encode(_backoff: &Backoff) -> Vec<Node> {
    Vec::new()
}

/// The backoff of a `<backoff>` element; what is absent or malformed has its default.
pub(super) fn decode(_element: &Element<'_>) -> Backoff {
    Backoff::default()
}
