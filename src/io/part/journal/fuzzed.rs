//! The journal under bytes that nobody wrote: what it may never claim.
//!
//! Random bytes do not pass the checksum of a record, so that most inputs are bodies of records, framed here.

use super::*;
use crate::core::digest::Algorithm;
use crate::core::file_xfer::dossier::Draft as DraftRecord;
use crate::core::range::{ByteRange, Length, Offset, RangeSet};
use crate::fuzz::{self, Target, grows_evenly, kind};
use crate::io::part::digests::Digests;
use crate::io::part::known::Lasting;
use crate::io::part::open::trusted;
use crate::io::part::record::frame_sum;

/// What stands between two bodies.
const NEXT_BODY: &[u8] = b"|\n|";
/// The first byte of an input that is a file as it is.
const RAW: u8 = b'R';
const BOOT: Boot = Boot::Id([1; 16]);

const JOURNAL: Target = Target {
    name: "journal",
    run: journal,
    words: &[
        "|\n|",
        "R",
        "Hpersxfer01\0",
        "Hpersxfer02\0",
        "Hpersxfer01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01",
        "C\0\x01",
        "C\0\0",
        "C\x01\x01",
        "S\0\x01",
        "S\0\0",
        "S\x01\x01",
        "P\0",
        "P\x01",
        "X\0",
        "W\0",
        "\0\0\0\0\0\0\0\0",
        "\x05\0\0\0\0\0\0\0",
        "\0\0\0\x01\0\0\0\0",
        "\x01\0\0\0",
        "\0\0\0\0",
        "\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f",
        "\x02\x04\0\0\0\0\0",
    ],
    runs: 60_000,
    grows_from: 4 << 10,
    frames: &[("Hpersxfer01\0|\n|", ""), ("R", "")],
};

#[test]
fn journals_that_nobody_wrote() {
    fuzz::fuzz(&JOURNAL);
    grows_evenly(&JOURNAL);
}

fn journal(data: &[u8]) -> u32 {
    let bytes = file_of(data);
    let (entries, good) = read_all(&bytes);
    assert!(good <= bytes.len() as u64);
    assert_eq!(read_all(&bytes[..good as usize]), (entries.clone(), good));
    let written: Vec<u8> = entries.iter().flat_map(Entry::encode).collect();
    assert_eq!(read_all(&written), (entries.clone(), written.len() as u64));
    let mut journal = Journal::unread(Path::new("j"), BOOT, SyncMode::None);
    for entry in &entries {
        journal.learn(entry.clone());
        for place in [Place::Part, Place::Rival] {
            sound(journal.known(place));
        }
    }
    said_again(&journal);
    let held = claims_no_more_than_there_is(&journal);
    let states = entries.iter().filter(|entry| goes_on(entry)).count();
    kind(&[entries.len(), held, states, usize::from(journal.same_boot()), usize::from(good == bytes.len() as u64)])
}

fn file_of(data: &[u8]) -> Vec<u8> {
    if let [RAW, raw @ ..] = data {
        return raw.to_vec();
    }
    let (mut bytes, mut rest) = (Vec::new(), data);
    loop {
        let end = rest.windows(NEXT_BODY.len()).position(|w| w == NEXT_BODY);
        let body = &rest[..end.unwrap_or(rest.len())];
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend(frame_sum(body.len() as u32, body).to_le_bytes());
        bytes.extend(body);
        match end {
            Some(end) => rest = &rest[end + NEXT_BODY.len()..],
            None => return bytes,
        }
    }
}

/// What survives a loss of power was written before; and sums tell of as many bytes as they say.
fn sound(known: &Known) {
    let (now, always) = (known.claimed(Lasting::ThisBoot), known.claimed(Lasting::AnyBoot));
    assert!(always.iter().all(|range| now.covers(range)), "{known:?}");
    if let Some(proof) = &known.proof {
        assert_eq!(proof.first, 0);
        assert_eq!(proof.sums.whole.len() as u64, proof.sums.length / proof.sums.block, "{proof:?}");
        for to in [0, 1, proof.sums.block, proof.sums.length, u64::MAX] {
            let left = proof.clone().cut(to);
            assert!(left.is_none_or(|p| p.sums.length <= to && p.sums.whole.len() <= proof.sums.whole.len()));
        }
        let mut sums = proof.sums.clone();
        sums.update(b"more");
        assert_eq!(sums.length, proof.sums.length + 4);
    }
}

/// A journal written anew says the same.
fn said_again(journal: &Journal) {
    let mut again = Journal::unread(Path::new("j"), BOOT, SyncMode::None);
    let bytes: Vec<u8> = journal.summary().iter().flat_map(Entry::encode).collect();
    let (entries, good) = read_all(&bytes);
    assert_eq!(good, bytes.len() as u64);
    entries.into_iter().for_each(|entry| again.learn(entry));
    for place in [Place::Part, Place::Rival] {
        let (old, new) = (journal.known(place), again.known(place));
        assert_eq!((old.claimed(Lasting::AnyBoot), &old.proof), (new.claimed(Lasting::AnyBoot), &new.proof));
        assert_eq!(old.claimed(Lasting::ThisBoot), new.claimed(Lasting::ThisBoot));
    }
    assert_eq!((journal.last_boot, journal.part_length()), (again.last_boot, again.part_length()));
}

/// Whatever it says, what is trusted lies within the file and within its known length.
fn claims_no_more_than_there_is(journal: &Journal) -> usize {
    let mut held = 0;
    for length in [0, 1, 5, 1 << 24, u64::MAX] {
        for total in [None, Some(Length(3)), Some(Length(1 << 30))] {
            let record = DraftRecord { total, ..DraftRecord::default() };
            for place in [Place::Part, Place::Rival] {
                let trusted = trusted(length, &record, journal, place);
                let end = total.map_or(length, |total| total.0.min(length));
                let within: RangeSet = [ByteRange::new(Offset::ZERO, Offset(end))].into_iter().collect();
                assert!(trusted.iter().all(|range| within.covers(range)), "{trusted:?} of {length}, {total:?}");
                held += usize::from(!trusted.is_empty());
            }
        }
    }
    held
}

/// The digests of a proof can go on from their states, or refuse to.
fn goes_on(entry: &Entry) -> bool {
    let Entry::Proof(_, proof) = entry else { return false };
    let named: Vec<Algorithm> = proof.states.iter().map(|(algorithm, _)| *algorithm).collect();
    let Some(mut digests) = Digests::from_states(&named, &proof.states) else { return false };
    digests.update(&[7; 200]);
    digests.finish().iter().all(|(algorithm, digest)| digest.len() == algorithm.output_len())
}
