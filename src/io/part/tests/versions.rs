//! Comparing, cutting, and the rival.

use super::*;
use crate::core::file_xfer::dossier::Draft;
use crate::core::range::ByteRange;
use crate::io::part::Compare;

/// A record that knows of both drafts.
fn rivalled() -> Dossier {
    Dossier { rival: Some(Draft::default()), ..claiming() }
}

#[test]
fn bytes_are_compared_where_they_wait_and_where_they_lie() {
    let folder = Folder::new(&[]);
    let bytes = noise(MIB + 200_000, 1);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &bytes);
    let mut theirs = bytes[1000..].to_vec();
    assert_eq!(store.compare(Place::Part, Offset(1000), &theirs).expect("compared"), Compare::Equal);
    theirs[MIB] ^= 4;
    let differs = Compare::Differs { at: offset(MIB + 1000) };
    assert_eq!(store.compare(Place::Part, Offset(1000), &theirs).expect("compared"), differs);
    let beyond = Compare::Differs { at: offset(bytes.len()) };
    let more = [&bytes[bytes.len() - 3..], b"x"].concat();
    assert_eq!(store.compare(Place::Part, offset(bytes.len() - 3), &more).expect("compared"), beyond);
    assert!(store.compare(Place::Rival, Offset::ZERO, b"x").is_err());
}

#[test]
fn constant_blocks_prove_nothing() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    let mut bytes = vec![0; 10 * 65_536];
    bytes[3 * 65_536 + 7] = 1;
    write(&mut store, Place::Part, &bytes);
    let block = |from: usize, to: usize| ByteRange::new(offset(from * 65_536), offset(to * 65_536));
    assert!(!store.informative(Place::Part, block(4, 10)).expect("read"));
    assert!(store.informative(Place::Part, block(3, 4)).expect("read"));
    assert!(!store.informative(Place::Part, block(3, 3)).expect("read"));
    let nearest = store.nearest_informative(Place::Part, offset(bytes.len()), Length(65_536)).expect("read");
    assert_eq!(nearest, Some(block(3, 4)));
    let none = store.nearest_informative(Place::Part, offset(3 * 65_536), Length(65_536)).expect("read");
    assert_eq!(none, None);
}

#[test]
fn bytes_must_follow_what_is_held() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    assert!(store.write(Place::Rival, Offset(0), Bytes::from_static(b"x")).is_err());
    write(&mut store, Place::Part, b"abcdef");
    store.fork(Length(3)).expect("forked");
    assert!(store.write(Place::Rival, Offset(2), Bytes::from_static(b"x")).is_err());
    assert!(store.write(Place::Rival, Offset(4), Bytes::from_static(b"x")).is_err());
    assert_eq!((store.held(Place::Part), store.held(Place::Rival)), (Length(6), Length(3)));
}

#[test]
fn a_cut_is_remembered_across_a_reboot_and_by_the_digests() {
    let mut folder = Folder::new(&[Algorithm::Sha512]);
    let mut bytes = noise(5 * MIB, 2);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &bytes);
    store.checkpoint().expect("checkpoint");
    store.cut(Place::Part, held(2 * MIB + 1)).expect("cut");
    assert_eq!(store.held(Place::Part), held(2 * MIB + 1));
    bytes.truncate(2 * MIB + 1);
    let more = noise(4 * MIB, 3);
    write(&mut store, Place::Part, &more);
    bytes.extend(&more);
    let digests = store.digest(&mut |_| ()).expect("digest");
    assert_eq!(digests[0].1, digest_of(Algorithm::Sha512, &bytes));
    drop(store);
    let mut again = folder.open_in(SECOND_BOOT);
    assert_eq!(again.part_held, held(2 * MIB + 1));
    let digests = again.store.digest(&mut |_| ()).expect("digest");
    assert_eq!(digests[0].1, digest_of(Algorithm::Sha512, &bytes[..2 * MIB + 1]));
}

#[test]
fn a_rival_is_begun_with_the_parts_bytes_and_takes_its_place() {
    for sync in [SyncMode::Full, SyncMode::None] {
        let mut folder = Folder::new(&[Algorithm::Sha256]);
        folder.spec.sync = sync;
        let (old, new) = (noise(3 * MIB, 4), noise(3 * MIB, 5));
        let mut store = folder.open().store;
        write(&mut store, Place::Part, &old);
        store.fork(held(MIB + 7)).expect("forked");
        assert_eq!(store.held(Place::Rival), held(MIB + 7));
        write(&mut store, Place::Rival, &new);
        store.close().expect("closed");
        let opened = PartStore::open(&folder.target, &rivalled(), folder.spec.clone()).expect("opened");
        assert_eq!((opened.part_held, opened.rival_held), (held(3 * MIB), Some(held(4 * MIB + 7))));
        let mut store = opened.store;
        store.promote().expect("promoted");
        assert_eq!(store.held(Place::Part), held(4 * MIB + 7));
        assert_eq!(store.held(Place::Rival), Length::ZERO);
        drop(store);
        let mut again = folder.open();
        assert_eq!((again.part_held, again.rival_held), (held(4 * MIB + 7), None));
        let whole = [&old[..MIB + 7], &new[..]].concat();
        assert_eq!(again.store.digest(&mut |_| ()).expect("digest")[0].1, digest_of(Algorithm::Sha256, &whole));
        again.store.publish(PLAIN).expect("published");
        assert_eq!(read(&folder.target), whole);
        tidy(&folder.target);
        assert_eq!(folder.names(), ["file.bin"]);
    }
}

#[test]
fn what_was_flushed_of_an_old_rival_says_nothing_of_a_new_one() {
    let mut folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(MIB, 6));
    store.fork(Length::ZERO).expect("forked");
    write(&mut store, Place::Rival, &noise(3 * MIB, 7));
    store.close().expect("closed");
    // The record knows no rival, so that the file goes; the journal still speaks of it.
    let mut store = folder.open().store;
    store.fork(Length(100)).expect("forked");
    write(&mut store, Place::Rival, &noise(2 * MIB, 8));
    store.settle(Place::Rival).expect("settled");
    drop(store);
    folder.spec.boot = SECOND_BOOT;
    let opened = PartStore::open(&folder.target, &rivalled(), folder.spec.clone()).expect("opened");
    assert_eq!((opened.part_held, opened.rival_held), (held(MIB), Some(Length::ZERO)));
}

#[test]
fn the_promoted_file_is_locked_too() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, b"old");
    store.fork(Length::ZERO).expect("forked");
    write(&mut store, Place::Rival, b"newer");
    store.promote().expect("promoted");
    assert!(PartStore::open(&folder.target, &claiming(), folder.spec.clone()).is_err());
    drop(store);
    assert_eq!(folder.open().part_held, Length(5));
}

#[test]
fn a_rival_that_no_record_knows_goes() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, b"part");
    store.fork(Length(2)).expect("forked");
    store.close().expect("closed");
    assert_eq!(folder.open().rival_held, None);
    assert_eq!(folder.names().len(), 2);
}

#[test]
fn dropping_the_rival_or_everything() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, b"part");
    store.fork(Length(2)).expect("forked");
    store.drop_rival().expect("dropped");
    assert_eq!(store.held(Place::Part), Length(4));
    assert_eq!(folder.names().len(), 2);
    store.discard().expect("discarded");
    assert_eq!(folder.names(), [""; 0]);
}
