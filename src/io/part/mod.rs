//! part/mod
