//! A part with gaps: several places written in turn, kills and reboots, what is dropped, digests at the end.

use super::*;
use crate::core::failure::LocalFault;
use crate::core::range::{ByteRange, RangeSet};
use crate::io::part::Compare;

/// Each byte is told by its position and the version of it.
pub(super) const fn byte(at: usize, version: u32) -> u8 {
    ((at as u32).wrapping_mul(2_654_435_761).wrapping_add(version.wrapping_mul(40_503)) >> 15) as u8
}

fn bytes(start: usize, end: usize) -> Vec<u8> {
    (start..end).map(|at| byte(at, 0)).collect()
}

pub(super) fn range(start: usize, end: usize) -> ByteRange {
    ByteRange::new(offset(start), offset(end))
}

fn set(ranges: &[(usize, usize)]) -> RangeSet {
    ranges.iter().map(|(start, end)| range(*start, *end)).collect()
}

fn write_at(store: &mut PartStore, start: usize, end: usize) {
    for at in (start..end).step_by(30_000) {
        let to = end.min(at + 30_000);
        store.write(Place::Part, offset(at), Bytes::from(bytes(at, to))).expect("written");
    }
}

#[test]
fn a_gap_that_closes_makes_what_lay_beyond_it_count() {
    let folder = Folder::new(&[Algorithm::Sha256]);
    let mut store = folder.open().store;
    write_at(&mut store, 0, 100);
    write_at(&mut store, 3 * MIB, 5 * MIB + 7);
    write_at(&mut store, MIB, 3 * MIB);
    assert_eq!(store.held(Place::Part), held(100));
    assert_eq!(store.segments(), set(&[(0, 100), (MIB, 5 * MIB + 7)]));
    write_at(&mut store, 100, MIB);
    assert_eq!(store.held(Place::Part), held(5 * MIB + 7));
    write_at(&mut store, 5 * MIB + 7, 6 * MIB);
    let digests = store.digest(&mut |_| ()).expect("digest");
    assert_eq!(digests[0].1, digest_of(Algorithm::Sha256, &bytes(0, 6 * MIB)));
    store.publish(PLAIN).expect("published");
    drop(store);
    tidy(&folder.target);
    assert_eq!(folder.names(), ["file.bin"]);
    assert!(read(&folder.target) == bytes(0, 6 * MIB));
}

#[test]
fn what_is_held_is_not_written_again() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write_at(&mut store, 0, 100);
    write_at(&mut store, 200, 300);
    for (start, end) in [(0, 1), (99, 101), (100, 201), (150, 250), (200, 210), (299, 310), (150, 400)] {
        let fault = store.write(Place::Part, offset(start), Bytes::from(bytes(start, end)));
        assert!(matches!(fault, Err(LocalFault::Io { .. })), "{start}..{end}");
    }
    assert_eq!(store.segments(), set(&[(0, 100), (200, 300)]));
    write_at(&mut store, 100, 200);
    assert_eq!(store.segments(), set(&[(0, 300)]));
}

#[test]
fn a_kill_costs_what_was_not_told() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    store.tick(at_ms(0)).expect("tick");
    write_at(&mut store, 0, 10);
    write_at(&mut store, 2 * MIB, 2 * MIB + 10);
    store.tick(at_ms(1)).expect("tick");
    store.tick(at_ms(260)).expect("tick");
    store.tick(at_ms(520)).expect("tick");
    write_at(&mut store, 10, 20);
    drop(store);
    let opened = folder.open();
    assert_eq!(opened.part_segments, set(&[(0, 10), (2 * MIB, 2 * MIB + 10)]));
    assert_eq!((opened.part_held, opened.remarks), (held(10), vec![]));
}

#[test]
fn what_was_written_out_early_counts_after_the_next_ticks() {
    type Early = fn(&mut PartStore);
    let settle: Early = |store| assert_eq!(store.settle(Place::Part), Ok(held(96)));
    let drop_elsewhere: Early = |store| assert_eq!(store.drop_range(range(5000, 9000)), Ok(()));
    for early in [settle, drop_elsewhere] {
        let folder = Folder::new(&[]);
        let mut store = folder.open().store;
        write_at(&mut store, 0, 96);
        early(&mut store);
        assert!(!folder.journal().exists(), "a small file that comes at once needs none");
        for ms in [0, 260] {
            store.tick(at_ms(ms)).expect("tick");
        }
        drop(store);
        assert_eq!(folder.open().part_segments, set(&[(0, 96)]));
    }
}

#[test]
fn after_a_reboot_only_flushed_segments_count() {
    let mut folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write_at(&mut store, 2 * MIB, 3 * MIB);
    store.checkpoint().expect("checkpoint");
    write_at(&mut store, 0, MIB);
    write_at(&mut store, 3 * MIB, 4 * MIB);
    store.settle(Place::Part).expect("settled");
    drop(store);
    let opened = folder.open();
    assert_eq!(opened.part_segments, set(&[(0, MIB), (2 * MIB, 4 * MIB)]));
    drop(opened);
    let opened = folder.open_in(SECOND_BOOT);
    assert_eq!(opened.part_segments, set(&[(2 * MIB, 3 * MIB)]));
    assert_eq!((opened.part_held, opened.remarks.len()), (Length::ZERO, 1));
    drop(opened);
    // What did not survive does not come to count again in this boot.
    assert_eq!(folder.open().part_segments, set(&[(2 * MIB, 3 * MIB)]));
}

#[test]
fn a_length_with_gaps_is_never_what_is_held() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write_at(&mut store, 0, 2 * MIB);
    store.checkpoint().expect("checkpoint");
    write_at(&mut store, 4 * MIB, 5 * MIB);
    store.settle(Place::Part).expect("settled");
    drop(store);
    let (journal, part) = (read(&folder.journal()), read(&folder.part()));
    assert_eq!(part.len(), 5 * MIB);
    let mut sound = 0;
    for end in 0..journal.len() {
        std::fs::write(folder.part(), &part).expect("as it was");
        std::fs::write(folder.journal(), &journal[..end]).expect("torn");
        let opened = folder.open();
        let full = set(&[(0, 2 * MIB), (4 * MIB, 5 * MIB)]);
        let known = [RangeSet::new(), set(&[(0, 2 * MIB)]), full];
        let place = known.iter().position(|k| *k == opened.part_segments).expect("one of the words that were told");
        assert!(place >= sound, "a longer journal tells less");
        sound = place;
    }
    std::fs::write(folder.part(), &part).expect("as it was");
    std::fs::remove_file(folder.journal()).expect("removed");
    assert_eq!(folder.open().part_segments, RangeSet::new());
}

#[test]
fn when_all_gaps_are_closed_the_length_counts_again() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write_at(&mut store, MIB, 2 * MIB);
    store.settle(Place::Part).expect("settled");
    write_at(&mut store, 0, MIB);
    store.checkpoint().expect("checkpoint");
    write_at(&mut store, 2 * MIB, 4 * MIB);
    drop(store);
    assert_eq!(folder.open().part_held, held(4 * MIB));
}

#[test]
fn what_is_dropped_stays_dropped() {
    for (algorithms, boot) in [(&[][..], SECOND_BOOT), (&[Algorithm::Sha1][..], FIRST_BOOT)] {
        let mut folder = Folder::new(algorithms);
        let mut store = folder.open().store;
        write_at(&mut store, 0, 4 * MIB);
        store.checkpoint().expect("checkpoint");
        store.drop_range(range(MIB + 5, 2 * MIB)).expect("dropped");
        store.drop_range(range(9 * MIB, 10 * MIB)).expect("nothing to drop");
        let left = set(&[(0, MIB + 5), (2 * MIB, 4 * MIB)]);
        assert_eq!((store.segments(), store.held(Place::Part)), (left.clone(), held(MIB + 5)));
        drop(store);
        let mut store = folder.open_in(boot).store;
        assert_eq!(store.segments(), left);
        write_at(&mut store, MIB + 5, 2 * MIB);
        assert_eq!(store.held(Place::Part), held(4 * MIB));
        for (algorithm, digest) in store.digest(&mut |_| ()).expect("digest") {
            assert_eq!(digest, digest_of(algorithm, &bytes(0, 4 * MIB)));
        }
    }
}

#[test]
fn dropping_the_end_is_a_cut() {
    let mut folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write_at(&mut store, 0, 2 * MIB);
    store.checkpoint().expect("checkpoint");
    store.drop_range(range(MIB, 2 * MIB)).expect("dropped");
    assert_eq!(read(&folder.part()).len(), MIB);
    drop(store);
    assert_eq!(folder.open_in(SECOND_BOOT).part_segments, set(&[(0, MIB)]));
}

#[test]
fn a_cut_takes_islands_and_a_fork_leaves_them() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write_at(&mut store, 0, 1000);
    write_at(&mut store, 2000, 3000);
    write_at(&mut store, 4000, 5000);
    store.fork(held(9000)).expect("forked");
    assert_eq!(store.held(Place::Rival), held(1000));
    store.cut(Place::Part, held(2500)).expect("cut");
    assert_eq!(store.segments(), set(&[(0, 1000), (2000, 2500)]));
    store.cut(Place::Part, held(1500)).expect("cut");
    store.cut(Place::Part, held(500)).expect("cut");
    assert_eq!((store.segments(), read(&folder.part()).len()), (set(&[(0, 500)]), 500));
}

#[test]
fn a_rival_takes_the_place_of_a_part_with_gaps() {
    for sync in [SyncMode::Full, SyncMode::None] {
        let mut folder = Folder::new(&[]);
        folder.spec.sync = sync;
        let mut store = folder.open().store;
        write_at(&mut store, 0, 1000);
        write_at(&mut store, 4000, 9000);
        store.fork(held(1000)).expect("forked");
        write(&mut store, Place::Rival, &bytes(1000, 6000));
        store.promote().expect("promoted");
        assert_eq!(store.segments(), set(&[(0, 6000)]));
        drop(store);
        assert_eq!(folder.open().part_segments, set(&[(0, 6000)]), "{sync:?}");
        assert!(read(&folder.part()) == bytes(0, 6000));
    }
}

#[test]
fn a_file_with_gaps_gets_no_name() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write_at(&mut store, 0, 10);
    write_at(&mut store, 20, 30);
    let fault = store.publish(PLAIN).expect_err("gaps");
    assert!(matches!(fault, LocalFault::Io { .. }), "{fault}");
    assert!(!folder.target.exists());
    assert_eq!(store.segments(), set(&[(0, 10), (20, 30)]));
}

#[test]
fn islands_are_compared_like_the_start() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write_at(&mut store, 0, 1000);
    write_at(&mut store, 200_000, 400_000);
    let compare = |store: &mut PartStore, at: usize, theirs: &[u8]| {
        store.compare(Place::Part, offset(at), theirs).expect("compared")
    };
    assert_eq!(compare(&mut store, 250_000, &bytes(250_000, 400_000)), Compare::Equal);
    let beyond = Compare::Differs { at: offset(400_000) };
    assert_eq!(compare(&mut store, 300_000, &bytes(300_000, 400_001)), beyond);
    assert_eq!(compare(&mut store, 1000, b"x"), Compare::Differs { at: offset(1000) });
    assert_eq!(compare(&mut store, 199_999, &bytes(199_999, 200_010)), Compare::Differs { at: offset(199_999) });
    assert!(store.informative(Place::Part, range(200_000, 200_100)).expect("read"));
    assert!(!store.informative(Place::Part, range(1000, 200_100)).expect("read"));
    let nearest = |store: &mut PartStore, before: usize| {
        store.nearest_informative(Place::Part, offset(before), Length(65_536)).expect("read")
    };
    assert_eq!(nearest(&mut store, 210_000), Some(range(200_000, 210_000)));
    assert_eq!(nearest(&mut store, 500_000), Some(range(400_000 - 65_536, 400_000)));
    assert_eq!(nearest(&mut store, 200_000), Some(range(0, 1000)));
}

#[test]
fn more_ranges_than_can_be_kept_cost_the_shortest() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    let most = super::super::islands::MOST;
    for i in 0..most {
        let n = if i == 7 { 1 } else { 2 };
        store.write(Place::Part, offset(10 + i * 4), Bytes::from(bytes(10 + i * 4, 10 + i * 4 + n))).expect("written");
    }
    let last = 10 + most * 4;
    store.write(Place::Part, offset(last), Bytes::from(bytes(last, last + 3))).expect("written");
    let segments = store.segments();
    assert_eq!(segments.iter().len(), most);
    assert!(!segments.contains(offset(10 + 7 * 4)));
    store.close().expect("closed");
    assert_eq!(folder.open().part_segments, segments);
}

#[test]
fn weeks_of_ticks_leave_a_short_journal() {
    let mut folder = Folder::new(&[]);
    folder.spec.sync = SyncMode::None;
    let mut store = folder.open().store;
    let n = 16;
    let mut longest = 0;
    for round in 0..6000_usize {
        let at = round % n * MIB + round / n + 1;
        store.write(Place::Part, offset(at), Bytes::from(bytes(at, at + 1))).expect("written");
        store.tick(at_ms(round as u64 * 251)).expect("tick");
        longest = longest.max(std::fs::metadata(folder.journal()).map_or(0, |m| m.len()));
    }
    assert!(longest > 1 << 19 && longest < (1 << 20) + (1 << 16), "{longest}");
    let segments = store.segments();
    store.settle(Place::Part).expect("settled");
    drop(store);
    assert_eq!(folder.open().part_segments, segments);
}
