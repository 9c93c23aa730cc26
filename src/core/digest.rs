//! Digests that a file must have, as users and servers write them, and which of several is the strongest.

/// The algorithms, in the order of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// BLAKE3, 32 bytes.
    Blake3,
    /// CRC-32C (Castagnoli), 4 bytes, big-endian in hex.
    Crc32c,
    /// MD5, 16 bytes.
    Md5,
    /// SHA-1, 20 bytes.
    Sha1,
    /// SHA-256, 32 bytes.
    Sha256,
    /// SHA-512, 64 bytes.
    Sha512,
}

/// A digest that the whole file must have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expected {
    /// By which algorithm.
    pub algorithm: Algorithm,
    /// Its bytes; as many as the algorithm gives.
    pub bytes: Vec<u8>,
}
