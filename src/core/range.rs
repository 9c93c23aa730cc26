//! Positions in a file: offsets, lengths, byte ranges, sets of ranges, and the header texts that carry them.
//!
//! Ranges are half-open here (`start..end`), whatever the wire says: RFC 9110 14 counts the last byte in.

mod set;
mod wire;

use std::fmt;
use std::ops::{Add, Sub};

pub use set::RangeSet;
pub use wire::{
    BadContentLength, BadContentRange, ContentRange, ContentRangeFault, content_length, range_from, range_of,
};

/// A position in a file: bytes from its start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Offset(pub u64);

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Length(pub u64);

/// A run of bytes, `start..end`; empty where `end <= start`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ByteRange {
    /// The first byte.
    pub start: Offset,
    /// One beyond the last byte.
    pub end: Offset,
}

impl Offset {
    /// The start of a file.
    pub const ZERO: Self = Self(0);
    /// This position moved back by `n` bytes, at most to the start of the file.
    pub const fn back(self, n: Length) -> Self {
        Self(self.0.saturating_sub(n.0))
    }
    /// The length of what lies before this position.
    pub const fn as_length(self) -> Length {
        Length(self.0)
    }
}

impl Length {
    /// No bytes.
    pub const ZERO: Self = Self(0);
    /// The largest size that a server may state: 4 EiB. No file comes near it; what lies beyond is a server's way to
    /// say "unknown" (2^63 - 1, 2^64 - 1), or an attempt at an overflow.
    pub const LARGEST_FILE: Self = Self(1 << 62);
    /// The position where a file of this length ends.
    pub const fn as_end(self) -> Offset {
        Offset(self.0)
    }
    /// The difference, at least zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add<Length> for Offset {
    type Output = Self;
    fn add(self, n: Length) -> Self {
        Self(self.0.saturating_add(n.0))
    }
}

/// The bytes between two positions; none where `earlier` is in fact later.
impl Sub for Offset {
    type Output = Length;
    fn sub(self, earlier: Self) -> Length {
        Length(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Length {
    type Output = Self;
    fn add(self, n: Self) -> Self {
        Self(self.0.saturating_add(n.0))
    }
}

impl ByteRange {
    /// From two positions.
    pub const fn new(start: Offset, end: Offset) -> Self {
        Self { start, end }
    }
    /// How many bytes.
    pub fn length(self) -> Length {
        self.end - self.start
    }
    /// Holds no byte.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }
}

macro_rules! plain_text {
    ($($t:ty),*) => {$(
        impl fmt::Display for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
        impl fmt::Debug for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($t), self.0)
            }
        }
    )*};
}
plain_text!(Offset, Length);

impl fmt::Debug for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start.0, self.end.0)
    }
}
