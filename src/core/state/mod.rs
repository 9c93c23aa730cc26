//! The client state as bytes.
