//! Digests that a file must have, as users and servers write them, and which of several is the strongest.
//!
//! An algorithm is always named, by the user, by a line, or by the name of a list of checksums; it is never guessed
//! from the number of digits.

mod fields;
mod pieces;
mod sums;

use std::fmt;

use crate::core::printable::printable;

pub use fields::{WANT_REPR_DIGEST, content_digests, repr_digests};
pub use pieces::{BadPieces, Pieces};
pub use sums::{BadSums, NoSum, Sums};

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

/// Why a text is no checksum.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDigest {
    /// It is not `ALGORITHM=HEX`.
    #[error("the checksum \"{text}\" does not name its algorithm: write it as sha-256=HEX (known are {})", known())]
    NoAlgorithm {
        /// The text, made printable.
        text: String,
    },
    /// An algorithm that we do not know.
    #[error("the checksum algorithm \"{name}\" is not known; known are {}", known())]
    UnknownAlgorithm {
        /// Its name, made printable.
        name: String,
    },
    /// A character that is no hex digit.
    #[error("the {algorithm} checksum \"{text}\" holds something else than hex digits")]
    NotHex {
        /// The algorithm.
        algorithm: Algorithm,
        /// The digits, made printable.
        text: String,
    },
    /// Too few or too many digits.
    #[error("a {algorithm} checksum has {} hex digits, this one has {digits}", algorithm.output_len() * 2)]
    WrongLength {
        /// The algorithm.
        algorithm: Algorithm,
        /// How many digits there were.
        digits: usize,
    },
}

impl Algorithm {
    /// Every algorithm, the strongest first.
    pub const ALL: [Self; 6] = [Self::Sha512, Self::Blake3, Self::Sha256, Self::Sha1, Self::Md5, Self::Crc32c];

    /// Its name, as users write it and everything of ours shows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blake3 => "blake3",
            Self::Crc32c => "crc32c",
            Self::Md5 => "md5",
            Self::Sha1 => "sha-1",
            Self::Sha256 => "sha-256",
            Self::Sha512 => "sha-512",
        }
    }

    /// How many bytes it gives.
    pub const fn output_len(self) -> usize {
        match self {
            Self::Crc32c => 4,
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Blake3 | Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    /// The higher, the harder to find another file with the same digest. BLAKE3 and SHA-256 are equally hard; BLAKE3
    /// costs less and therefore stands above.
    pub const fn strength(self) -> u8 {
        match self {
            Self::Crc32c => 0,
            Self::Md5 => 1,
            Self::Sha1 => 2,
            Self::Sha256 => 3,
            Self::Blake3 => 4,
            Self::Sha512 => 5,
        }
    }

    /// Is it beyond anybody's means to make another file with the same digest? The weaker ones find damage, no more.
    pub const fn proves(self) -> bool {
        self.strength() >= Self::Sha256.strength()
    }

    /// The algorithm of that name: ours, or as checksum tools and headers write it, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "sha-512" | "sha512" | "sha2-512" => Self::Sha512,
            "blake3" | "b3" => Self::Blake3,
            "sha-256" | "sha256" | "sha2-256" => Self::Sha256,
            "sha-1" | "sha1" | "sha" => Self::Sha1,
            "md5" | "md-5" => Self::Md5,
            "crc32c" | "crc-32c" => Self::Crc32c,
            _ => return None,
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The names of all algorithms, for messages.
fn known() -> String {
    Algorithm::ALL.map(Algorithm::name).join(", ")
}

impl Expected {
    /// Reads `ALGORITHM=HEX` or `ALGORITHM:HEX`.
    pub fn parse(text: &str) -> Result<Self, BadDigest> {
        let no_algorithm = || BadDigest::NoAlgorithm { text: printable(text).into_owned() };
        let (name, digits) = text.split_once(['=', ':']).ok_or_else(no_algorithm)?;
        let name = name.trim();
        let unknown = || BadDigest::UnknownAlgorithm { name: printable(name).into_owned() };
        Self::from_hex(Algorithm::from_name(name).ok_or_else(unknown)?, digits.trim())
    }

    /// From hex digits of either case.
    pub fn from_hex(algorithm: Algorithm, digits: &str) -> Result<Self, BadDigest> {
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(BadDigest::NotHex { algorithm, text: printable(digits).into_owned() });
        }
        match hex::decode(digits) {
            Ok(bytes) if bytes.len() == algorithm.output_len() => Ok(Self { algorithm, bytes }),
            // Of hex digits only, what does not decode is an odd number of them.
            _ => Err(BadDigest::WrongLength { algorithm, digits: digits.len() }),
        }
    }

    /// From bytes; `None` where the algorithm gives another number of them.
    pub fn from_bytes(algorithm: Algorithm, bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() == algorithm.output_len()).then_some(Self { algorithm, bytes })
    }

    /// Its bytes in lower-case hex.
    pub fn hex(&self) -> String {
        hex::encode(&self.bytes)
    }

    /// The one by the strongest algorithm; of several by the same, the first.
    pub fn strongest(all: &[Self]) -> Option<&Self> {
        // `max_by_key` would give the last of equals.
        all.iter().rev().max_by_key(|one| one.algorithm.strength())
    }
}

/// As [`Expected::parse`] reads it: `sha-256=HEX`.
impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.algorithm, self.hex())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EMPTY_MD5: &str = "d41d8cd98f00b204e9800998ecf8427e";

    #[test]
    fn both_separators_and_every_name() {
        for text in ["md5=", "MD5:", " md5 = ", "md-5:"] {
            let read = Expected::parse(&format!("{text}{}", EMPTY_MD5.to_uppercase())).expect(text);
            assert_eq!(read.to_string(), format!("md5={EMPTY_MD5}"));
        }
        for (name, want) in [
            ("sha-256", Algorithm::Sha256),
            ("SHA256", Algorithm::Sha256),
            ("sha2-256", Algorithm::Sha256),
            ("sha-1", Algorithm::Sha1),
            ("SHA", Algorithm::Sha1),
            ("Sha512", Algorithm::Sha512),
            ("b3", Algorithm::Blake3),
            ("crc32c", Algorithm::Crc32c),
        ] {
            assert_eq!(Algorithm::from_name(name), Some(want), "{name}");
        }
        assert_eq!(Algorithm::from_name("sha-384"), None);
    }

    #[test]
    fn errors_say_what_to_do() {
        let text = |t: &str| Expected::parse(t).expect_err(t).to_string();
        assert_eq!(
            text("abcd"),
            "the checksum \"abcd\" does not name its algorithm: write it as sha-256=HEX \
             (known are sha-512, blake3, sha-256, sha-1, md5, crc32c)"
        );
        assert_eq!(
            text("sha-384=ab"),
            "the checksum algorithm \"sha-384\" is not known; known are sha-512, blake3, sha-256, sha-1, md5, crc32c"
        );
        assert_eq!(text("sha-256=abc"), "a sha-256 checksum has 64 hex digits, this one has 3");
        assert_eq!(text("md5="), "a md5 checksum has 32 hex digits, this one has 0");
        assert_eq!(text("md5:xyz\x1b"), "the md5 checksum \"xyz\\u{1b}\" holds something else than hex digits");
    }

    #[test]
    fn an_algorithm_is_never_guessed_from_the_length() {
        assert!(Expected::parse(EMPTY_MD5).is_err());
        assert!(Expected::parse(&format!("sha-1={EMPTY_MD5}")).is_err());
    }

    #[test]
    fn the_strongest_of_several() {
        let of = |a: Algorithm, fill: u8| Expected { algorithm: a, bytes: vec![fill; a.output_len()] };
        let all = [of(Algorithm::Md5, 1), of(Algorithm::Sha256, 2), of(Algorithm::Sha256, 3), of(Algorithm::Crc32c, 4)];
        assert_eq!(Expected::strongest(&all), Some(&all[1]));
        assert_eq!(Expected::strongest(&[]), None);
        assert!(Algorithm::ALL.windows(2).all(|two| two[0].strength() > two[1].strength()));
    }

    proptest! {
        #[test]
        fn anything_may_come(text in "(?s)(sha-?1|md5|b3)?[=:]?.{0,60}") {
            if let Ok(read) = Expected::parse(&text) {
                prop_assert_eq!(read.bytes.len(), read.algorithm.output_len());
                prop_assert_eq!(Expected::parse(&read.to_string()), Ok(read));
            }
        }

        #[test]
        fn what_is_shown_is_read_back(which in 0..Algorithm::ALL.len(), seed: [u8; 64]) {
            let algorithm = Algorithm::ALL[which];
            let bytes = seed[..algorithm.output_len()].to_vec();
            let one = Expected::from_bytes(algorithm, bytes).expect("the right length");
            prop_assert_eq!(Expected::parse(&one.to_string()), Ok(one));
        }
    }
}
