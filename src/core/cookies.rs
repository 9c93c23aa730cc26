//! cookies
