//! Unpacking: gz, bz2 and xz, told by their first bytes and not by a name that may lie. Bounded in memory; how much may
//! come out is for whoever reads to say.

use std::io::{self, BufRead, Read};

/// What an xz stream may ask for, in KiB: its writers use 64 MiB at the highest preset.
const XZ_MEMORY: u32 = 96 << 10;

const GZ: &[u8] = b"\x1f\x8b";
const BZ2: &[u8] = b"BZh";
const XZ: &[u8] = b"\xfd7zXZ\0";

/// The content of something that may be packed; what is not packed comes as it is.
///
/// # Errors
/// What the reader said of its first bytes.
pub fn unpacked<'r>(mut packed: impl BufRead + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let head = packed.fill_buf()?;
    Ok(if head.starts_with(GZ) {
        Box::new(flate2::bufread::MultiGzDecoder::new(packed))
    } else if head.starts_with(BZ2) {
        Box::new(bzip2::bufread::MultiBzDecoder::new(packed))
    } else if head.starts_with(XZ) {
        Box::new(lzma_rust2::XzReader::new_mem_limit(packed, true, XZ_MEMORY))
    } else {
        Box::new(packed)
    })
}
