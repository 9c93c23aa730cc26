//! entropy
