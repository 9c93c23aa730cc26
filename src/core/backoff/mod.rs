//! Retry policies.

/// A retry policy with its bounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {}

/// The state of a retry policy, as the record keeps it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Backoff {}
