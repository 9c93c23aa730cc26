//! Digests that run while bytes flow, and their state as bytes: the journal keeps it across sessions.

use sha2::digest::common::hazmat::{SerializableState, SerializedState};
use sha2::digest::{Digest, FixedOutput};

use crate::core::digest::Algorithm;

/// Algorithms with the bytes that each gives: states in the journal, or digests.
pub(in crate::io) type ByAlgorithm = Vec<(Algorithm, Vec<u8>)>;

/// The digests of one file, as far as it has been read.
#[derive(Clone, Debug)]
pub(in crate::io) struct Digests(Vec<Running>);

#[derive(Clone, Debug)]
enum Running {
    // Large, and a file has one: no reason to make the others as large.
    Blake3(Box<blake3::Hasher>),
    Crc32c(u32),
    Md5(md5::Md5),
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
    Sha512(sha2::Sha512),
}

impl Digests {
    /// At the start of a file.
    pub(in crate::io) fn new(algorithms: &[Algorithm]) -> Self {
        Self(algorithms.iter().map(|a| Running::new(*a)).collect())
    }

    /// Where `states` left off; `None` where one of the algorithms has no usable state among them.
    pub(super) fn from_states(algorithms: &[Algorithm], states: &ByAlgorithm) -> Option<Self> {
        let state_of =
            |a: &Algorithm| states.iter().find(|(of, _)| of == a).and_then(|(_, s)| Running::from_state(*a, s));
        algorithms.iter().map(state_of).collect::<Option<_>>().map(Self)
    }

    /// Takes the bytes that follow.
    pub(in crate::io) fn update(&mut self, bytes: &[u8]) {
        for running in &mut self.0 {
            running.update(bytes);
        }
    }

    /// The states of those that can give one.
    pub(super) fn states(&self) -> ByAlgorithm {
        self.0.iter().filter_map(|r| Some((r.algorithm(), r.state()?))).collect()
    }

    /// The digests of what was read so far.
    pub(in crate::io) fn finish(&self) -> ByAlgorithm {
        self.0.iter().map(|r| (r.algorithm(), r.finish())).collect()
    }
}

impl Running {
    fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Blake3 => Self::Blake3(Box::default()),
            Algorithm::Crc32c => Self::Crc32c(0),
            Algorithm::Md5 => Self::Md5(md5::Md5::new()),
            Algorithm::Sha1 => Self::Sha1(sha1::Sha1::new()),
            Algorithm::Sha256 => Self::Sha256(sha2::Sha256::new()),
            Algorithm::Sha512 => Self::Sha512(sha2::Sha512::new()),
        }
    }

    fn from_state(algorithm: Algorithm, state: &[u8]) -> Option<Self> {
        match algorithm {
            Algorithm::Blake3 => None,
            Algorithm::Crc32c => state.try_into().ok().map(|b| Self::Crc32c(u32::from_be_bytes(b))),
            Algorithm::Md5 => revive(state).map(Self::Md5),
            Algorithm::Sha1 => revive(state).map(Self::Sha1),
            Algorithm::Sha256 => revive(state).map(Self::Sha256),
            Algorithm::Sha512 => revive(state).map(Self::Sha512),
        }
    }

    const fn algorithm(&self) -> Algorithm {
        match self {
            Self::Blake3(_) => Algorithm::Blake3,
            Self::Crc32c(_) => Algorithm::Crc32c,
            Self::Md5(_) => Algorithm::Md5,
            Self::Sha1(_) => Algorithm::Sha1,
            Self::Sha256(_) => Algorithm::Sha256,
            Self::Sha512(_) => Algorithm::Sha512,
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Blake3(h) => _ = h.update(bytes),
            Self::Crc32c(crc) => *crc = crc32c::crc32c_append(*crc, bytes),
            Self::Md5(h) => h.update(bytes),
            Self::Sha1(h) => h.update(bytes),
            Self::Sha256(h) => h.update(bytes),
            Self::Sha512(h) => h.update(bytes),
        }
    }

    /// `None` for BLAKE3, whose state cannot be taken out: such a file is read again.
    fn state(&self) -> Option<Vec<u8>> {
        match self {
            Self::Blake3(_) => None,
            Self::Crc32c(crc) => Some(crc.to_be_bytes().to_vec()),
            Self::Md5(h) => Some(h.serialize().to_vec()),
            Self::Sha1(h) => Some(h.serialize().to_vec()),
            Self::Sha256(h) => Some(h.serialize().to_vec()),
            Self::Sha512(h) => Some(h.serialize().to_vec()),
        }
    }

    fn finish(&self) -> Vec<u8> {
        match self {
            Self::Blake3(h) => h.finalize().as_bytes().to_vec(),
            Self::Crc32c(crc) => crc.to_be_bytes().to_vec(),
            Self::Md5(h) => output(h),
            Self::Sha1(h) => output(h),
            Self::Sha256(h) => output(h),
            Self::Sha512(h) => output(h),
        }
    }
}

fn revive<H: SerializableState>(state: &[u8]) -> Option<H> {
    let state = SerializedState::<H>::try_from(state).ok()?;
    H::deserialize(&state).ok()
}

fn output<H: FixedOutput + Clone>(hasher: &H) -> Vec<u8> {
    hasher.clone().finalize_fixed().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Algorithm; 6] =
        [Algorithm::Blake3, Algorithm::Crc32c, Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512];

    #[test]
    fn known_answers() {
        let mut digests = Digests::new(&ALL);
        digests.update(b"abc");
        let hex: Vec<String> = digests.finish().into_iter().map(|(_, d)| hex::encode(d)).collect();
        assert_eq!(hex[0], "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
        assert_eq!(hex[1], "364b3fb7");
        assert_eq!(hex[2], "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(hex[3], "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(hex[4], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(hex[5].starts_with("ddaf35a193617abacc417349ae204131"));
    }

    #[test]
    fn a_state_of_the_wrong_size_is_refused() {
        let states = vec![(Algorithm::Sha256, vec![0; 3])];
        assert!(Digests::from_states(&[Algorithm::Sha256], &states).is_none());
        assert!(Digests::from_states(&[Algorithm::Blake3], &states).is_none());
    }

    proptest! {
        #[test]
        fn a_state_goes_on_as_if_nothing_had_happened(bytes in proptest::collection::vec(any::<u8>(), 0..500), cut in any::<prop::sample::Index>()) {
            let algorithms = &ALL[1..];
            let at = cut.index(bytes.len() + 1);
            let mut first = Digests::new(algorithms);
            first.update(&bytes[..at]);
            let mut second = Digests::from_states(algorithms, &first.states()).expect("states of all");
            second.update(&bytes[at..]);
            let mut whole = Digests::new(algorithms);
            whole.update(&bytes);
            prop_assert_eq!(second.finish(), whole.finish());
        }
    }
}
