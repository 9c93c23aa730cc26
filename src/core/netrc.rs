//! netrc
