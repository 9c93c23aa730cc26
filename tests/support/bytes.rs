//! Bytes to serve, and what is computed from them: the same for the same seed, on every machine.

use std::sync::Arc;

use sha2::Digest;

/// `n` bytes without a pattern (SplitMix64).
pub(crate) fn noise(seed: u64, n: usize) -> Arc<Vec<u8>> {
    let mut state = seed.wrapping_mul(0x2545_F491_4F6C_DD1D).wrapping_add(1);
    let mut bytes = Vec::with_capacity(n + 8);
    while bytes.len() < n {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bytes.extend_from_slice(&(z ^ (z >> 31)).to_le_bytes());
    }
    bytes.truncate(n);
    Arc::new(bytes)
}

/// `n` bytes of text that comes again and again: blocks of it are equal at many places.
pub(crate) fn cyclic_text(n: usize) -> Arc<Vec<u8>> {
    Arc::new(b"The quick brown fox jumps over the lazy dog.\n".iter().copied().cycle().take(n).collect())
}

/// A digest as `--checksum` wants it: `sha-256=hex`.
pub(crate) fn digest(algorithm: &str, data: &[u8]) -> String {
    let hex = match algorithm {
        "sha-256" => hex::encode(sha2::Sha256::digest(data)),
        "sha-512" => hex::encode(sha2::Sha512::digest(data)),
        "sha-1" => hex::encode(sha1::Sha1::digest(data)),
        "md5" => hex::encode(md5::Md5::digest(data)),
        "blake3" => blake3::hash(data).to_hex().to_string(),
        "crc32c" => format!("{:08x}", crc32c::crc32c(data)),
        other => panic!("no digest {other}"),
    };
    format!("{algorithm}={hex}")
}

/// A gzip member that holds `data` in stored blocks (RFC 1951 3.2.4, RFC 1952): longer than the data, and right.
pub(crate) fn gzip(data: &[u8]) -> Arc<Vec<u8>> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut blocks = data.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let n = u16::try_from(block.len()).expect("a chunk is at most 0xffff long");
        out.push(u8::from(blocks.peek().is_none()));
        out.extend_from_slice(&n.to_le_bytes());
        out.extend_from_slice(&(!n).to_le_bytes());
        out.extend_from_slice(block);
    }
    out.extend_from_slice(&crc32(data).to_le_bytes());
    out.extend_from_slice(&u32::try_from(data.len()).expect("test data is small").to_le_bytes());
    Arc::new(out)
}

fn crc32(data: &[u8]) -> u32 {
    let step = |crc: u32, _: u8| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
    !data.iter().fold(!0_u32, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}
