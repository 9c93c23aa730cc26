//! The journal's records as bytes: length, CRC-32C, body; little-endian.
//!
//! Whatever cannot be read ends the reading: a record that was being written when the machine stopped is the last one.

use crate::core::digest::Algorithm;
use crate::core::file_xfer::Place;
use crate::core::range::{ByteRange, Offset, RangeSet};
use crate::io::part::boot::Boot;
use crate::io::part::digests::ByAlgorithm;
use crate::io::part::seen::Seen;
use crate::io::part::spans::Span;
use crate::io::part::sums::Sums;

/// First in a header; the last two characters are the version of the format, digest states included.
const MAGIC: &[u8; 10] = b"persxfer01";
/// First in the header of a journal whose part file has gaps: who knows the first version only must not go by lengths.
const MAGIC_GAPS: &[u8; 10] = b"persxfer02";
/// The longest body: 4097 segments. 4096 sums and a few digest states are far below it.
const MOST_BODY: usize = 128 << 10;
/// Length and sum.
const FRAME: usize = 8;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A process took up the files, in this boot; and what the part file's length is worth until a claim says otherwise.
    Header(Boot, PartLength),
    /// So many bytes are held, from the first one on, and the file has no gaps.
    Claim(Place, Claim),
    /// These ranges are held, and nothing else, however long the file is.
    Segments(Place, Segments),
    /// What the bytes held are, and how far their digests have come.
    Proof(Place, Proof),
    /// What bytes beyond the first gap of the part are.
    Spans(u64, Vec<Span>),
    /// What the file looked like when it was left in order.
    Seen(Place, Seen),
}

/// What the length of the part file tells of the bytes held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartLength {
    /// After a kill, it is what is held.
    Counts,
    /// Nothing: the file has gaps.
    HasGaps,
}

/// Which ranges of a draft are held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segments {
    /// The ranges.
    pub(super) held: RangeSet,
    /// They were flushed before this was written.
    pub(super) flushed: bool,
    /// Inode of the file.
    pub(super) inode: u64,
}

/// How many bytes of a draft are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    /// Bytes, from the start.
    pub(super) held: u64,
    /// They were flushed before this was written.
    pub(super) flushed: bool,
    /// Inode of the file.
    pub(super) inode: u64,
}

/// A position in a draft, the sums of all before it from block `first` on, and the digest states there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Proof {
    /// Inode of the file.
    pub(super) inode: u64,
    /// Whole blocks that the proof before this one has already told.
    pub(super) first: u32,
    /// The sums; where `first` is not 0, only the whole blocks from there on.
    pub(super) sums: Sums,
    /// The states at `sums.length`.
    pub(super) states: ByAlgorithm,
}

impl Entry {
    /// The record as it stands in the file.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; FRAME];
        match self {
            Self::Header(boot, length) => encode_header(&mut out, *boot, *length),
            Self::Claim(place, claim) => {
                out.extend([b'C', place_code(*place), u8::from(claim.flushed)]);
                out.extend(claim.held.to_le_bytes());
                out.extend(claim.inode.to_le_bytes());
            }
            Self::Segments(place, segments) => {
                out.extend([b'S', place_code(*place), u8::from(segments.flushed)]);
                segments.encode(&mut out);
            }
            Self::Proof(place, proof) => {
                out.extend([b'P', place_code(*place)]);
                proof.encode(&mut out);
            }
            Self::Spans(inode, spans) => {
                out.extend([b'X', place_code(Place::Part)]);
                out.extend(inode.to_le_bytes());
                // At most 4096.
                out.extend((spans.len() as u32).to_le_bytes());
                spans.iter().for_each(|span| span.encode(&mut out));
            }
            Self::Seen(place, seen) => {
                out.extend([b'W', place_code(*place)]);
                seen.encode(&mut out);
            }
        }
        // The bodies built here are far below 4 GiB.
        let length = (out.len() - FRAME) as u32;
        out[..4].copy_from_slice(&length.to_le_bytes());
        let sum = frame_sum(length, &out[FRAME..]);
        out[4..FRAME].copy_from_slice(&sum.to_le_bytes());
        out
    }

    fn decode(body: &[u8]) -> Option<Self> {
        let mut r = Reader(body);
        match r.byte()? {
            b'H' => r.header(),
            b'C' => Some(Self::Claim(r.place()?, r.claim()?)),
            b'S' => Some(Self::Segments(r.place()?, r.segments()?)),
            b'P' => Some(Self::Proof(r.place()?, r.proof()?)),
            b'X' => r.spans(),
            b'W' => Some(Self::Seen(r.place()?, Seen::decode(&mut r)?)),
            _ => None,
        }
    }
}

/// The records at the start of `bytes`, and how many bytes they take; what follows is torn or damaged.
pub(super) fn read_all(bytes: &[u8]) -> (Vec<Entry>, u64) {
    let mut r = Reader(bytes);
    let (mut entries, mut good) = (Vec::new(), 0);
    while let Some(entry) = r.entry() {
        // The file must begin with a header, or it is not ours to read.
        if entries.is_empty() && !matches!(entry, Entry::Header(..)) {
            break;
        }
        entries.push(entry);
        good = (bytes.len() - r.0.len()) as u64;
    }
    (entries, good)
}

fn encode_header(out: &mut Vec<u8>, boot: Boot, length: PartLength) {
    out.push(b'H');
    out.extend(match length {
        PartLength::Counts => MAGIC,
        PartLength::HasGaps => MAGIC_GAPS,
    });
    match boot {
        Boot::Id(id) => {
            out.push(1);
            out.extend(id);
        }
        Boot::Unknown => out.push(0),
    }
}

impl Segments {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.inode.to_le_bytes());
        // At most 4097.
        out.extend((self.held.iter().len() as u32).to_le_bytes());
        out.extend(self.held.iter().flat_map(|r| [r.start.0.to_le_bytes(), r.end.0.to_le_bytes()]).flatten());
    }
}

impl Proof {
    /// What is left of it when everything from `to` on is gone: whole blocks, and no digest state.
    pub(super) fn cut(mut self, to: u64) -> Option<Self> {
        if self.sums.length > to {
            self.sums.cut(to);
            self.states.clear();
        }
        (self.sums.length > 0).then_some(self)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.inode.to_le_bytes());
        out.extend(self.sums.length.to_le_bytes());
        out.extend(self.sums.block.to_le_bytes());
        out.extend(self.first.to_le_bytes());
        // At most 4096 blocks, and states of some hundred bytes.
        out.extend((self.sums.whole.len() as u32).to_le_bytes());
        out.extend(self.sums.whole.iter().flat_map(|s| s.to_le_bytes()));
        out.extend(self.sums.tail.to_le_bytes());
        out.push(self.states.len() as u8);
        for (algorithm, state) in &self.states {
            out.push(algorithm_code(*algorithm));
            out.extend((state.len() as u16).to_le_bytes());
            out.extend(state);
        }
    }
}

/// The checksum of a record.
pub(super) fn frame_sum(length: u32, body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&length.to_le_bytes()), body)
}

const fn place_code(place: Place) -> u8 {
    match place {
        Place::Part => 0,
        Place::Rival => 1,
    }
}

/// Stored, so never changed.
const CODES: [(u8, Algorithm); 6] = [
    (1, Algorithm::Blake3),
    (2, Algorithm::Crc32c),
    (3, Algorithm::Md5),
    (4, Algorithm::Sha1),
    (5, Algorithm::Sha256),
    (6, Algorithm::Sha512),
];

fn algorithm_code(algorithm: Algorithm) -> u8 {
    CODES.iter().find(|(_, a)| *a == algorithm).map_or(0, |(code, _)| *code)
}

/// The fields of a record, in their order.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn entry(&mut self) -> Option<Entry> {
        let length = self.u32()?;
        let sum = self.u32()?;
        let body = self.take((length as usize).min(MOST_BODY))?;
        if body.len() != length as usize || sum != frame_sum(length, body) {
            return None;
        }
        Entry::decode(body)
    }

    fn header(&mut self) -> Option<Entry> {
        let length = match self.take(MAGIC.len())? {
            magic if magic == MAGIC => PartLength::Counts,
            magic if magic == MAGIC_GAPS => PartLength::HasGaps,
            _ => return None,
        };
        let boot = match self.byte()? {
            0 => Boot::Unknown,
            _ => Boot::Id(self.array()?),
        };
        Some(Entry::Header(boot, length))
    }

    fn claim(&mut self) -> Option<Claim> {
        Some(Claim { flushed: self.byte()? == 1, held: self.u64()?, inode: self.u64()? })
    }

    fn segments(&mut self) -> Option<Segments> {
        let (flushed, inode, count) = (self.byte()? == 1, self.u64()?, self.u32()?);
        let range = |r: &mut Self| Some(ByteRange::new(Offset(r.u64()?), Offset(r.u64()?)));
        let held = (0..count).map(|_| range(self)).collect::<Option<_>>()?;
        Some(Segments { held, flushed, inode })
    }

    fn proof(&mut self) -> Option<Proof> {
        let (inode, length, block, first, count) = (self.u64()?, self.u64()?, self.u64()?, self.u32()?, self.u32()?);
        let whole = (0..count).map(|_| self.u32()).collect::<Option<_>>()?;
        let sums = Sums { length, block, whole, tail: self.u32()? };
        if !sums.follow(first) {
            return None;
        }
        let states = (0..self.byte()?).map(|_| self.state()).collect::<Option<_>>()?;
        Some(Proof { inode, first, sums, states })
    }

    fn spans(&mut self) -> Option<Entry> {
        // Of the rival, which has no gaps, there are none.
        let (Place::Part, inode, count) = (self.place()?, self.u64()?, self.u32()?) else { return None };
        let spans = (0..count).map(|_| Span::decode(self)).collect::<Option<_>>()?;
        Some(Entry::Spans(inode, spans))
    }

    fn state(&mut self) -> Option<(Algorithm, Vec<u8>)> {
        let code = self.byte()?;
        let (_, algorithm) = CODES.iter().find(|(c, _)| *c == code)?;
        let length = u16::from_le_bytes(self.array()?);
        Some((*algorithm, self.take(usize::from(length))?.to_vec()))
    }

    fn place(&mut self) -> Option<Place> {
        match self.byte()? {
            0 => Some(Place::Part),
            1 => Some(Place::Rival),
            _ => None,
        }
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[b]| b)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entries() -> Vec<Entry> {
        let sums = Sums { block: 16 << 20, whole: vec![1, 2, 3], tail: 4, length: (80 << 20) + 5 };
        let range = |start, end| ByteRange::new(Offset(start), Offset(end));
        let held = [range(0, 5), range(9, u64::MAX)].into_iter().collect();
        let states = vec![(Algorithm::Sha256, vec![7; 41]), (Algorithm::Crc32c, vec![1, 2, 3, 4])];
        vec![
            Entry::Header(Boot::Id([9; 16]), PartLength::Counts),
            Entry::Claim(Place::Part, Claim { held: 77, flushed: true, inode: 5 }),
            Entry::Proof(Place::Rival, Proof { inode: 6, first: 2, sums, states }),
            Entry::Header(Boot::Unknown, PartLength::HasGaps),
            Entry::Segments(Place::Part, Segments { held, flushed: true, inode: 7 }),
            Entry::Segments(Place::Part, Segments { held: RangeSet::new(), flushed: false, inode: 7 }),
            Entry::Spans(
                7,
                vec![Span { range: range(9, 10), sum: 5 }, Span { range: range(1 << 24, 2 << 24), sum: 6 }],
            ),
            Entry::Seen(Place::Rival, seen()),
        ]
    }

    fn seen() -> Seen {
        let file = tempfile::tempfile().expect("a file");
        Seen::decode(&mut Reader(&[0x81; 40])).filter(|seen| Some(*seen) != Seen::now(&file)).expect("one of 40 bytes")
    }

    fn file() -> Vec<u8> {
        entries().iter().flat_map(Entry::encode).collect()
    }

    #[test]
    fn records_survive_a_round_trip() {
        let bytes = file();
        assert_eq!(read_all(&bytes), (entries(), bytes.len() as u64));
    }

    #[test]
    fn what_does_not_begin_with_a_header_is_not_read() {
        let bytes = entries()[1].encode();
        assert_eq!(read_all(&bytes), (vec![], 0));
    }

    #[test]
    fn sums_that_no_file_has_are_not_read() {
        const BLOCK: u64 = 16 << 20;
        let proof = |block, whole: usize, length, first| {
            let sums = Sums { block, whole: vec![7; whole], tail: 4, length };
            let proof = Proof { inode: 6, first, sums, states: vec![] };
            let bytes = [entries()[0].encode(), Entry::Proof(Place::Part, proof).encode()].concat();
            read_all(&bytes).0.len() == 2
        };
        assert!(proof(BLOCK, 2, 2 * BLOCK + 9, 0) && proof(BLOCK, 1, 2 * BLOCK + 9, 1) && proof(BLOCK, 0, 0, 0));
        assert!(proof(BLOCK, 4096, 4096 * BLOCK, 0));
        for (block, whole, length, first) in [
            (0, 0, 0, 0),
            (0, 0, 9, 0),
            (3, 0, 1, 0),
            (BLOCK - 1, 0, 9, 0),
            (1, 9, 9, 0),
            (BLOCK, 3, 2 * BLOCK + 9, 0),
            (BLOCK, 1, 2 * BLOCK + 9, 0),
            (BLOCK, 2, 2 * BLOCK + 9, u32::MAX),
            (BLOCK, 4097, 4097 * BLOCK, 0),
            (1 << 63, 1, u64::MAX, 0),
        ] {
            assert!(!proof(block, whole, length, first), "{block} {whole} {length} {first}");
        }
    }

    proptest! {
        #[test]
        fn a_torn_end_costs_only_the_torn_record(cut in any::<prop::sample::Index>()) {
            let bytes = file();
            let at = cut.index(bytes.len());
            let (read, good) = read_all(&bytes[..at]);
            prop_assert!(good <= at as u64);
            prop_assert_eq!(&read[..], &entries()[..read.len()]);
            let whole: usize = entries().iter().scan(0, |sum, e| { *sum += e.encode().len(); Some(*sum) }).filter(|end| *end <= at).count();
            prop_assert_eq!(read.len(), whole);
        }

        #[test]
        fn a_flipped_bit_is_never_believed(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
            let mut bytes = file();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let (read, good) = read_all(&bytes);
            prop_assert!(good <= at as u64);
            prop_assert_eq!(&read[..], &entries()[..read.len()]);
        }

        #[test]
        fn no_bytes_at_all_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_all(&bytes);
        }
    }
}
