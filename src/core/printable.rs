//! printable
