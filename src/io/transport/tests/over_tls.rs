//! TLS, with certificates made by `openssl` where it is there.
