//! What a crash leaves, where the random crashes of `tests/crash_part.rs` seldom come.

use super::*;

#[test]
fn a_file_that_was_published_is_witnessed_until_that_is_known() {
    let folder = Folder::new(&[]);
    std::fs::write(&folder.target, "theirs").expect("written");
    assert!(!is_witnessed(&folder.target));
    for bytes in [noise(2 * MIB, 15), noise(99, 16)] {
        let mut store = folder.open().store;
        write(&mut store, Place::Part, &bytes);
        store.publish(Publish { existing: Clobber::Replace, ..PLAIN }).expect("published");
        drop(store);
        assert!(is_witnessed(&folder.target));
        // A download that begins meanwhile takes it for no rival, and leaves it.
        folder.open().store.close().expect("closed");
        assert!(is_witnessed(&folder.target));
    }
    tidy(&folder.target);
    assert_eq!(folder.names(), ["file.bin"]);
    assert!(!is_witnessed(&folder.target));
}

#[test]
fn a_witness_of_a_part_that_was_never_published_is_no_obstacle() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(MIB, 17));
    store.close().expect("closed");
    std::fs::hard_link(folder.part(), folder.dir.path().join("file.bin.persxfer-part2")).expect("linked");
    assert_eq!(folder.open().part_held, held(MIB));
    assert_eq!(folder.names().len(), 2);
}

#[test]
fn what_a_kill_left_of_a_finished_download_is_tidied_but_no_download_that_goes_on() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(MIB, 18));
    store.close().expect("closed");
    tidy(&folder.target);
    assert_eq!(folder.names().len(), 2);
    rustix::fs::rename(folder.part(), &folder.target).expect("renamed");
    tidy(&folder.target);
    assert_eq!(folder.names(), ["file.bin"]);
}

#[test]
fn what_is_written_in_place_of_flushed_bytes_beyond_a_total_is_not_called_flushed() {
    let mut folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(2 * MIB, 19));
    store.close().expect("closed");
    let mut dossier = claiming();
    dossier.part.total = Some(held(MIB));
    drop(PartStore::open(&folder.target, &dossier, folder.spec.clone()).expect("opened"));
    let mut store = folder.open().store;
    assert_eq!(store.held(Place::Part), held(MIB));
    write(&mut store, Place::Part, &noise(MIB, 20));
    store.settle(Place::Part).expect("settled");
    drop(store);
    assert_eq!(folder.open_in(SECOND_BOOT).part_held, held(MIB));
}
