//! Damage of files at rest: when it is looked for, and what becomes of it.

use super::*;
use crate::core::range::{ByteRange, RangeSet};
use crate::io::part::{Checked, Damage};
use std::os::unix::fs::FileExt;

const BLOCK: usize = 16 * MIB;

fn range(start: usize, end: usize) -> ByteRange {
    ByteRange::new(offset(start), offset(end))
}

/// Changes a byte; the time of the last change moves in ticks of the kernel.
fn change(path: &Path, at: usize) {
    std::thread::sleep(std::time::Duration::from_millis(30));
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).expect("opened");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at as u64).expect("read");
    file.write_all_at(&[!byte[0]], at as u64).expect("written");
}

fn check(store: &mut PartStore) -> Vec<Damage> {
    match store.check(&mut |_| true).expect("checked") {
        Checked::Through(found) => found,
        Checked::Stopped => panic!("nobody stopped it"),
    }
}

fn found(folder: &Folder, differs: usize) -> Vec<Damage> {
    vec![Damage { path: folder.part().display().to_string(), differs: held(differs), unvouched: held(0) }]
}

#[test]
fn a_file_left_in_order_is_not_read() {
    let folder = Folder::new(&[]);
    for n in 1..4 {
        let mut store = folder.open().store;
        assert_eq!(store.doubted(), Length::ZERO);
        write(&mut store, Place::Part, &noise(2 * MIB, n));
        store.leave();
        assert_eq!(store.doubted(), Length::ZERO);
        store.close().expect("closed");
    }
}

#[test]
fn after_a_kill_what_has_sums_is_read() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    store.tick(at_ms(0)).expect("tick");
    write(&mut store, Place::Part, &noise(3 * MIB, 1));
    store.tick(at_ms(250)).expect("tick");
    drop(store);
    let mut store = folder.open().store;
    assert_eq!(store.doubted(), held(3 * MIB));
    let mut read = Length::ZERO;
    let checked = store.check(&mut |n| {
        read = read + n;
        true
    });
    assert_eq!((checked.expect("checked"), read), (Checked::Through(vec![]), held(3 * MIB)));
    assert_eq!(store.doubted(), Length::ZERO);
    store.close().expect("closed");
    assert_eq!(folder.open().store.doubted(), Length::ZERO);
}

#[test]
fn what_differs_is_a_gap_and_the_blocks_beyond_keep_their_sums() {
    for algorithms in [&[][..], &[Algorithm::Sha256][..]] {
        let folder = Folder::new(algorithms);
        let bytes = noise(3 * BLOCK + MIB, 1);
        let mut store = folder.open().store;
        write(&mut store, Place::Part, &bytes);
        store.close().expect("closed");
        change(&folder.part(), BLOCK + 7);
        let mut store = folder.open().store;
        assert_eq!(store.doubted(), held(bytes.len()));
        assert_eq!(check(&mut store), found(&folder, BLOCK));
        let left: RangeSet = [range(0, BLOCK), range(2 * BLOCK, bytes.len())].into_iter().collect();
        assert_eq!(store.segments(), left);
        store.close().expect("closed");
        // Beyond the gap as well.
        change(&folder.part(), 3 * BLOCK + 5);
        let mut store = folder.open().store;
        assert_eq!(check(&mut store), found(&folder, MIB));
        let left: RangeSet = [range(0, BLOCK), range(2 * BLOCK, 3 * BLOCK)].into_iter().collect();
        assert_eq!(store.segments(), left);
        store.write(Place::Part, offset(BLOCK), Bytes::copy_from_slice(&bytes[BLOCK..2 * BLOCK])).expect("written");
        write(&mut store, Place::Part, &bytes[3 * BLOCK..]);
        if let [algorithm] = *algorithms {
            assert_eq!(store.digest(&mut |_| {}).expect("hashed"), [(algorithm, digest_of(algorithm, &bytes))]);
        }
        store.publish(PLAIN).expect("published");
        assert!(read(&folder.target) == bytes);
    }
}

#[test]
fn a_look_that_was_stopped_is_taken_again() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(2 * BLOCK, 1));
    store.close().expect("closed");
    change(&folder.part(), BLOCK + 7);
    let mut store = folder.open().store;
    assert_eq!(store.check(&mut |_| false).expect("checked"), Checked::Stopped);
    store.close().expect("closed");
    let mut store = folder.open().store;
    assert_eq!(check(&mut store), found(&folder, BLOCK));
}

#[test]
fn where_something_is_damaged_what_has_no_sum_goes_with_it() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    store.tick(at_ms(0)).expect("tick");
    write(&mut store, Place::Part, &noise(BLOCK, 1));
    store.tick(at_ms(250)).expect("tick");
    write(&mut store, Place::Part, &noise(2 * MIB, 2));
    drop(store);
    for damaged in [false, true] {
        if damaged {
            change(&folder.part(), 7);
        }
        let mut store = folder.open().store;
        let found = check(&mut store);
        let unvouched: Vec<_> = found.iter().map(|damage| damage.unvouched).collect();
        assert_eq!(unvouched, if damaged { vec![held(2 * MIB)] } else { vec![] });
        assert_eq!(store.segments().length(), if damaged { Length::ZERO } else { held(BLOCK + 2 * MIB) });
    }
}

#[test]
fn a_newer_version_that_was_begun_is_cut_before_the_damage() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(MIB, 1));
    store.fork(Length::ZERO).expect("begun");
    write(&mut store, Place::Rival, &noise(2 * BLOCK + MIB, 2));
    store.close().expect("closed");
    change(&folder.dir.path().join("file.bin.persxfer-part2"), BLOCK + 1);
    let dossier = Dossier { rival: Some(claiming().part), ..claiming() };
    let mut store = PartStore::open(&folder.target, &dossier, folder.spec.clone()).expect("opened").store;
    let found = check(&mut store);
    assert_eq!(found.iter().map(|d| d.differs).collect::<Vec<_>>(), [held(BLOCK)]);
    assert_eq!((store.held(Place::Part), store.held(Place::Rival)), (held(MIB), held(BLOCK)));
}
