//! Which boot of the machine this is: what was written since then survived every kill, because the page cache did.

use std::sync::OnceLock;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The identity of one boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boot {
    /// The kernel's random identity of this boot.
    Id([u8; 16]),
    /// It cannot be told, so nothing but flushed bytes counts.
    Unknown,
}

impl Boot {
    /// The boot that this process runs in.
    pub fn current() -> Self {
        static CURRENT: OnceLock<Boot> = OnceLock::new();
        *CURRENT.get_or_init(|| std::fs::read_to_string(BOOT_ID).map_or(Self::Unknown, |text| Self::parse(&text)))
    }

    /// Both are known, and the same.
    pub(super) fn is(self, other: Self) -> bool {
        self == other && self != Self::Unknown
    }

    /// From the kernel's text, a UUID.
    fn parse(text: &str) -> Self {
        let digits = text.trim().replace('-', "");
        let mut id = [0; 16];
        hex::decode_to_slice(digits, &mut id).map_or(Self::Unknown, |()| Self::Id(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_text() {
        let boot = Boot::parse("f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n");
        assert_eq!(boot, Boot::Id(*b"\xf8\x1d\x4f\xae\x7d\xec\x11\xd0\xa7\x65\x00\xa0\xc9\x1e\x6b\xf6"));
        assert_eq!(Boot::parse("no uuid"), Boot::Unknown);
        assert!(!Boot::Unknown.is(Boot::Unknown));
    }
}
