//! Parts of a file: their size, where they stand, which are missing, and the tag that a store gives the whole.

use md5::{Digest as _, Md5};

use crate::core::digest::{Algorithm, Expected};
use crate::core::range::{ByteRange, Length, Offset};
use crate::core::upload::session::Part;

/// So many parts at most.
pub(super) const MAX_PARTS: u64 = 10_000;

/// The least size of a part that is not the last.
pub const LEAST_PART: Length = Length(5 << 20);

/// The size of parts where nothing else is said.
pub const USUAL_PART: Length = Length(8 << 20);

/// The most that one request may carry.
pub(super) const LARGEST_PART: Length = Length(5 << 30);

const MIB: u64 = 1 << 20;

/// The size of parts for a file: as wished, and larger where there would be too many. `None` for a file that no parts
/// are large enough for.
pub(super) fn choose(size: Length, wished: Length) -> Option<Length> {
    let least = size.0.div_ceil(MAX_PARTS).div_ceil(MIB).saturating_mul(MIB);
    let chosen = Length(wished.max(LEAST_PART).0.max(least));
    (chosen <= LARGEST_PART).then_some(chosen)
}

/// The largest file that parts suffice for.
pub(super) const fn most() -> Length {
    Length(LARGEST_PART.0 * MAX_PARTS)
}

/// How a file is cut: by one size, the last part smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cuts {
    pub(super) size: Length,
    /// Not zero.
    part: Length,
}

impl Cuts {
    /// `None` where a record names a size that cannot be.
    pub(super) fn new(size: Length, part: Length) -> Option<Self> {
        let fits = part.0 > 0 && size.0.div_ceil(part.0) <= MAX_PARTS;
        fits.then_some(Self { size, part })
    }

    /// How many parts; one for a file without bytes.
    pub(super) fn count(self) -> u32 {
        // At most ten thousand.
        u32::try_from(self.size.0.div_ceil(self.part.0)).unwrap_or(u32::MAX).max(1)
    }

    /// Where a part stands; numbers are from 1.
    pub(super) fn range(self, number: u32) -> ByteRange {
        let start = u64::from(number.saturating_sub(1)).saturating_mul(self.part.0);
        let end = start.saturating_add(self.part.0).min(self.size.0);
        ByteRange::new(Offset(start), Offset(end))
    }

    /// The part that begins at or holds this place.
    pub(super) fn at(self, place: Offset) -> u32 {
        u32::try_from(place.0 / self.part.0).unwrap_or(u32::MAX).saturating_add(1).min(self.count())
    }

    /// The start of the first part that is not among these, which are in order; the end where all are.
    pub(super) fn front(self, parts: &[Part]) -> Offset {
        let held = (1..).zip(parts).take_while(|(number, part)| part.number == *number).count();
        let held = u64::try_from(held).unwrap_or(u64::MAX);
        Offset(held.saturating_mul(self.part.0).min(self.size.0))
    }

    /// Could this be a part of the file?
    pub(super) fn fits(self, part: &Part) -> bool {
        (1..=self.count()).contains(&part.number) && part.size == self.range(part.number).length()
    }
}

/// Puts a part among the others, in place of an older one of its number.
pub(super) fn put(parts: &mut Vec<Part>, part: Part) {
    match parts.binary_search_by_key(&part.number, |one| one.number) {
        Ok(at) => parts[at] = part,
        Err(at) => parts.insert(at, part),
    }
}

/// A tag without the quotes around it.
pub(super) fn bare(tag: &str) -> &str {
    tag.trim_matches('"')
}

/// The MD5 that a tag is, by its form.
pub(super) fn md5_of(tag: &str) -> Option<Expected> {
    Expected::from_hex(Algorithm::Md5, bare(tag)).ok()
}

/// The tag that a store gives to a whole of these parts: the MD5 of their MD5s, and how many they are. `None` where a
/// tag is no MD5 by its form.
pub(super) fn composite(parts: &[Part]) -> Option<String> {
    let mut all = Md5::new();
    for part in parts {
        all.update(md5_of(&part.etag)?.bytes);
    }
    Some(format!("{}-{}", hex::encode(all.finalize()), parts.len()))
}

/// Has a tag the form of one that [`composite`] makes, of however many parts?
pub(super) fn is_composite(tag: &str) -> bool {
    let is_count = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    bare(tag).split_once('-').is_some_and(|(hex, n)| md5_of(hex).is_some() && is_count(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(number: u32, size: u64) -> Part {
        Part { number, size: Length(size), etag: format!("\"{}\"", hex::encode([7_u8; 16])) }
    }

    #[test]
    fn parts_grow_with_the_file() {
        let mib = |size: u64, wished| choose(Length(size), wished).map(|part| part.0 / MIB);
        assert_eq!(mib(0, USUAL_PART), Some(8));
        assert_eq!(mib(1, Length(1)), Some(5), "never below what stores take");
        assert_eq!(mib(80_000 * MIB, USUAL_PART), Some(8));
        assert_eq!(mib(80_000 * MIB + 1, USUAL_PART), Some(9));
        assert_eq!(mib(5 << 40, USUAL_PART), Some(525));
        assert_eq!(mib(LARGEST_PART.0 * MAX_PARTS, USUAL_PART), Some(5120));
        assert_eq!(mib(LARGEST_PART.0 * MAX_PARTS + 1, USUAL_PART), None);
        assert_eq!(mib(u64::MAX, USUAL_PART), None);
        for size in [1, 80_000 * MIB + 1, 5 << 40] {
            let cuts = Cuts::new(Length(size), choose(Length(size), USUAL_PART).expect("a size")).expect("fits");
            assert!(u64::from(cuts.count()) <= MAX_PARTS);
            assert_eq!(cuts.range(cuts.count()).end, Offset(size), "the last part ends the file");
        }
    }

    #[test]
    fn where_parts_stand() {
        let cuts = Cuts::new(Length(25), Length(10)).expect("fits");
        assert_eq!((cuts.count(), cuts.range(1).length(), cuts.range(3).length()), (3, Length(10), Length(5)));
        assert_eq!((cuts.at(Offset(0)), cuts.at(Offset(10)), cuts.at(Offset(19)), cuts.at(Offset(25))), (1, 2, 2, 3));
        assert_eq!(cuts.front(&[]), Offset(0));
        assert_eq!(cuts.front(&[part(1, 10), part(3, 5)]), Offset(10));
        assert_eq!(cuts.front(&[part(1, 10), part(2, 10), part(3, 5)]), Offset(25));
        assert!(cuts.fits(&part(3, 5)) && !cuts.fits(&part(3, 10)) && !cuts.fits(&part(4, 5)));
        assert!(!cuts.fits(&part(0, 10)));
        assert_eq!(Cuts::new(Length(5), Length(0)), None);
        assert_eq!(Cuts::new(Length(10_001), Length(1)), None);
    }

    #[test]
    fn parts_stay_in_order() {
        let mut all = Vec::new();
        for (number, size) in [(3, 1), (1, 2), (3, 4)] {
            put(&mut all, part(number, size));
        }
        assert_eq!(all, [part(1, 2), part(3, 4)]);
    }

    #[test]
    fn the_tag_of_a_whole() {
        // Of the MD5s of "a" and "b"; computed by Python's hashlib.
        let tagged = |number, tag: &str| Part { etag: format!("\"{tag}\""), ..part(number, 1) };
        let mut both =
            vec![tagged(1, "0cc175b9c0f1b6a831c399e269772661"), tagged(2, "92eb5ffee6ae2fec3ad71c777531578f")];
        let whole = composite(&both).expect("both are MD5s");
        assert_eq!(whole, "96e024ba2074fe77e8e965ba43a704be-2");
        assert!(is_composite(&format!("\"{whole}\"")));
        for other in ["0cc175b9c0f1b6a831c399e269772661", "x-2", "0cc175b9c0f1b6a831c399e269772661-"] {
            assert!(!is_composite(other), "{other}");
        }
        both[1].etag = "opaque".to_owned();
        assert_eq!(composite(&both), None);
    }
}
