//! Looking into files at rest, and taking out what is damaged.

use std::os::unix::fs::MetadataExt as _;

use super::*;
use crate::core::failure::LocalFault;
use crate::core::range::{ByteRange, RangeSet};
use crate::io::part::inspect::{Look, look_into, repair_in};
use crate::io::part::{Inspection, JournalState, PartState};

const BLOCK: usize = 16 * MIB;

fn range(start: usize, end: usize) -> ByteRange {
    ByteRange::new(offset(start), offset(end))
}

fn look(folder: &Folder) -> Inspection {
    look_into(&folder.target, &claiming(), folder.spec.boot, Look::Bytes).expect("inspected")
}

#[test]
fn where_nothing_is_nothing_is_found() {
    let folder = Folder::new(&[]);
    let found = look(&folder);
    assert_eq!((found.part, found.journal, found.holder), (PartState::Missing, JournalState::Missing, None));
    assert_eq!((found.held, found.damaged), (RangeSet::new(), vec![]));
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn a_changed_block_is_found_and_fetched_again() {
    for algorithms in [&[][..], &[Algorithm::Sha256][..]] {
        let folder = Folder::new(algorithms);
        let mut bytes = noise(2 * BLOCK + MIB, 1);
        let mut store = folder.open().store;
        write(&mut store, Place::Part, &bytes);
        store.close().expect("closed");
        let found = look(&folder);
        assert_eq!((found.verified.length(), found.damaged), (held(bytes.len()), vec![]));
        bytes[BLOCK + 7] ^= 1;
        std::fs::write(folder.part(), &bytes).expect("changed");
        let (part, journal) = (read(&folder.part()), read(&folder.journal()));
        let found = look(&folder);
        assert_eq!((found.part, found.journal), (PartState::Regular, JournalState::Sound));
        assert_eq!(found.damaged, [range(BLOCK, 2 * BLOCK)]);
        assert!(part == read(&folder.part()) && journal == read(&folder.journal()));
        let left = repair_in(&folder.target, &claiming(), &found.damaged, folder.spec.boot).expect("repaired");
        let expected: RangeSet = [range(0, BLOCK), range(2 * BLOCK, bytes.len())].into_iter().collect();
        assert_eq!(left, expected);
        let again = look(&folder);
        assert_eq!((again.held, again.verified.length(), again.damaged), (expected.clone(), held(BLOCK + MIB), vec![]));
        assert_eq!(folder.open().part_segments, expected);
    }
}

#[test]
fn what_lies_beyond_the_end_of_the_file_is_damaged() {
    let mut folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(2 * MIB, 2));
    store.close().expect("closed");
    let short = &read(&folder.part())[..MIB];
    std::fs::write(folder.part(), short).expect("cut");
    for boot in [FIRST_BOOT, SECOND_BOOT] {
        folder.spec.boot = boot;
        let found = look(&folder);
        assert_eq!(found.damaged, [range(MIB, 2 * MIB)]);
        assert_eq!(found.held.head(), held(MIB));
    }
}

#[test]
fn a_torn_journal_and_a_foreign_one_are_told() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(MIB, 3));
    store.close().expect("closed");
    let journal = read(&folder.journal());
    std::fs::write(folder.journal(), &journal[..journal.len() - 1]).expect("torn");
    assert_eq!(look(&folder).journal, JournalState::Torn);
    std::fs::write(folder.journal(), "no journal").expect("written");
    let found = look(&folder);
    assert_eq!((found.journal, found.held), (JournalState::Unreadable, RangeSet::new()));
    std::fs::remove_file(folder.journal()).expect("removed");
    assert_eq!(look(&folder).journal, JournalState::Missing);
    assert_eq!(read(&folder.part()).len(), MIB);
}

#[test]
fn a_file_in_use_is_looked_at_and_not_repaired() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(2 * MIB, 4));
    store.checkpoint().expect("checkpoint");
    let found = look(&folder);
    assert_eq!(found.held.head(), held(2 * MIB));
    if cfg!(target_os = "linux") {
        assert_eq!(found.holder, Some(std::process::id().to_string()));
    }
    let fault = repair_in(&folder.target, &claiming(), &[range(0, 5)], folder.spec.boot).expect_err("in use");
    assert!(matches!(fault, LocalFault::InUse { .. }), "{fault}");
    drop(store);
    let fault = repair_in(&folder.target, &Dossier::default(), &[range(0, 5)], folder.spec.boot).expect_err("unknown");
    assert!(matches!(fault, LocalFault::NotOurs { .. }), "{fault}");
    assert_eq!(read(&folder.part()).len(), 2 * MIB);
}

#[test]
fn a_download_that_ends_within_seconds_pays_for_few_sums() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    store.tick(at_ms(0)).expect("tick");
    let bytes = noise(20 * MIB, 5);
    write(&mut store, Place::Part, &bytes);
    store.tick(at_ms(240)).expect("tick");
    assert_eq!(look(&folder).verified.length(), Length::ZERO);
    for (ms, verified) in [(250, 16 * MIB), (490, 16 * MIB), (500, 20 * MIB), (4000, 20 * MIB)] {
        store.tick(at_ms(ms)).expect("tick");
        assert_eq!(look(&folder).verified.length(), held(verified), "after {ms} ms");
    }
    write(&mut store, Place::Part, &bytes);
    store.tick(at_ms(4250)).expect("tick");
    assert_eq!(look(&folder).verified.length(), held(36 * MIB));
    assert!(store.tick(at_ms(5000)).expect("tick"), "a checkpoint by time");
    drop(store); // Waits for the checkpoint.
    assert_eq!(look(&folder).verified.length(), held(40 * MIB));
}

#[test]
fn sums_of_earlier_sessions_tell_what_was_written_then() {
    let folder = Folder::new(&[]);
    let bytes = noise(3 * MIB, 6);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &bytes[..2 * MIB]);
    store.close().expect("closed");
    let mut changed = bytes[..2 * MIB].to_vec();
    changed[MIB] ^= 1;
    std::fs::write(folder.part(), changed).expect("changed");
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &bytes[2 * MIB..]);
    store.close().expect("closed");
    assert_eq!(look(&folder).damaged, [range(0, 3 * MIB)]);
}

#[test]
fn a_file_that_has_its_final_name_is_not_gone() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(MIB, 19));
    store.publish(PLAIN).expect("published");
    let inode = folder.target.symlink_metadata().expect("there").ino();
    let known = |inode| Dossier { part: Draft { inode: Some(inode), ..claiming().part }, ..claiming() };
    let look =
        |dossier: &Dossier| look_into(&folder.target, dossier, folder.spec.boot, Look::Bytes).expect("inspected");
    assert_eq!(look(&known(inode)).part, PartState::Published);
    assert_eq!(look(&known(inode + 1)).part, PartState::Missing, "somebody else's file");
    tidy(&folder.target);
    assert_eq!(look(&known(inode)).part, PartState::Missing, "nothing says that it was whole");
}
