//! Files of others where ours should be.

use std::os::unix::fs::symlink;

use super::*;
use crate::core::failure::LocalFault;

#[test]
fn a_symlink_is_replaced_and_what_it_leads_to_is_untouched() {
    for dossier in [Dossier::default(), claiming()] {
        let folder = Folder::new(&[]);
        let victim = folder.dir.path().join("victim");
        std::fs::write(&victim, "precious").expect("written");
        symlink(&victim, folder.part()).expect("linked");
        symlink(&victim, folder.journal()).expect("linked");
        let mut opened = PartStore::open(&folder.target, &dossier, folder.spec.clone()).expect("opened");
        assert_eq!((opened.part_held, opened.remarks.len()), (Length::ZERO, 1), "{:?}", opened.remarks);
        write(&mut opened.store, Place::Part, &noise(2 * MIB, 1));
        opened.store.close().expect("closed");
        assert_eq!(read(&victim), b"precious");
        assert!(std::fs::symlink_metadata(folder.journal()).expect("journal").is_file());
    }
}

#[test]
fn an_orphan_is_replaced_and_never_adopted() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(2 * MIB, 2));
    store.close().expect("closed");
    let opened = PartStore::open(&folder.target, &Dossier::default(), folder.spec.clone()).expect("opened");
    assert_eq!((opened.part_held, opened.remarks.len()), (Length::ZERO, 1));
    assert_eq!(read(&folder.part()), b"");
    assert!(!folder.journal().exists());
}

#[test]
fn a_second_name_is_refused_where_bytes_are_ours_and_left_alone_where_not() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, b"held");
    store.close().expect("closed");
    let snapshot = folder.dir.path().join("snapshot");
    std::fs::hard_link(folder.part(), &snapshot).expect("linked");
    let fault = PartStore::open(&folder.target, &claiming(), folder.spec.clone()).expect_err("two names");
    assert!(matches!(fault, LocalFault::NotOurs { .. }), "{fault}");
    let mut opened = PartStore::open(&folder.target, &Dossier::default(), folder.spec.clone()).expect("opened");
    write(&mut opened.store, Place::Part, b"other");
    opened.store.settle(Place::Part).expect("settled");
    assert_eq!(read(&snapshot), b"held");
}

#[test]
fn a_folder_in_the_way_is_refused() {
    let folder = Folder::new(&[]);
    std::fs::create_dir(folder.part()).expect("a folder");
    let fault = PartStore::open(&folder.target, &Dossier::default(), folder.spec.clone()).expect_err("in the way");
    assert!(matches!(fault, LocalFault::NotOurs { .. }), "{fault}");
}

#[test]
fn a_pipe_in_the_way_is_replaced_without_waiting_for_it() {
    let folder = Folder::new(&[]);
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let made = rustix::fs::mknodat(rustix::fs::CWD, folder.part(), rustix::fs::FileType::Fifo, mode, 0);
    made.expect("a pipe");
    assert_eq!(folder.open().remarks.len(), 1);
}

#[test]
fn two_cannot_have_it_at_once() {
    let folder = Folder::new(&[]);
    let first = folder.open();
    for dossier in [claiming(), Dossier::default()] {
        let fault = PartStore::open(&folder.target, &dossier, folder.spec.clone()).expect_err("in use");
        let LocalFault::InUse { path, holder } = fault else { panic!("{fault}") };
        assert_eq!(path, folder.part().display().to_string());
        if cfg!(target_os = "linux") {
            assert!([std::process::id().to_string(), "another".into()].contains(&holder), "{holder}");
        }
    }
    assert!(matches!(PartStore::remove(&folder.target), Err(LocalFault::InUse { .. })));
    drop(first);
    folder.open();
}

#[test]
fn many_at_once_leave_exactly_one_holder() {
    let folder = Folder::new(&[]);
    for round in 0..60 {
        let dossier = if round % 2 == 0 { claiming() } else { Dossier::default() };
        std::fs::write(folder.part(), "left by somebody").expect("written");
        let opened: Vec<Option<PartStore>> = std::thread::scope(|scope| {
            let open = || PartStore::open(&folder.target, &dossier, folder.spec.clone()).ok().map(|o| o.store);
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).collect()
        });
        assert_eq!(opened.iter().flatten().count(), 1, "round {round}");
    }
}

#[test]
fn a_missing_folder_is_named() {
    let folder = Folder::new(&[]);
    let missing = folder.dir.path().join("missing");
    let fault = PartStore::open(&missing.join("a"), &claiming(), folder.spec.clone()).expect_err("no folder");
    let LocalFault::Io { path, detail, .. } = fault else { panic!("{fault}") };
    assert_eq!((path, detail.contains("create it")), (missing.display().to_string(), true));
    std::fs::write(&missing, "a file").expect("written");
    let fault = PartStore::open(&missing.join("a"), &claiming(), folder.spec.clone()).expect_err("no folder");
    assert!(fault.to_string().contains("it is no folder"), "{fault}");
}

#[test]
fn a_name_that_is_too_long_is_shortened_for_the_part_only() {
    let mut folder = Folder::new(&[]);
    folder.target = folder.dir.path().join("l".repeat(255));
    let bytes = noise(2 * MIB, 3);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &bytes);
    store.close().expect("closed");
    let mut again = folder.open();
    assert_eq!(again.part_held, held(2 * MIB));
    again.store.publish(PLAIN).expect("published");
    tidy(&folder.target);
    assert_eq!(folder.names(), ["l".repeat(255)]);
}

#[test]
fn a_file_of_the_final_name_is_replaced_only_when_told() {
    let folder = Folder::new(&[]);
    std::fs::write(&folder.target, "theirs").expect("written");
    let mut store = folder.open().store;
    write(&mut store, Place::Part, b"ours");
    let fault = store.publish(PLAIN).expect_err("taken");
    assert!(matches!(fault, LocalFault::NotOurs { .. }), "{fault}");
    assert_eq!(read(&folder.target), b"theirs");
    store.publish(Publish { existing: Clobber::Replace, ..PLAIN }).expect("published");
    assert_eq!(read(&folder.target), b"ours");
}

#[test]
fn a_part_file_that_was_replaced_under_us_is_not_published() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, b"ours");
    std::fs::remove_file(folder.part()).expect("removed");
    std::fs::write(folder.part(), "evil").expect("written");
    let fault = store.publish(PLAIN).expect_err("replaced");
    assert!(matches!(fault, LocalFault::NotOurs { .. }), "{fault}");
    assert!(!folder.target.exists());
}

#[test]
fn removing_leaves_nothing() {
    let folder = Folder::new(&[]);
    PartStore::remove(&folder.target).expect("nothing to do");
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(2 * MIB, 4));
    store.fork(held(10)).expect("forked");
    store.close().expect("closed");
    assert_eq!(folder.names().len(), 3);
    PartStore::remove(&folder.target).expect("removed");
    assert_eq!(folder.names(), [""; 0]);
}

/// A part file with a gap, with a journal in its place that knows of none.
fn with_a_journal_of_no_gaps(journal: impl FnOnce(&Folder)) -> Opened {
    let folder = Folder::new(&[]);
    journal(&folder);
    let mut store = folder.open().store;
    let kept = read(&folder.journal());
    for start in [store.held(Place::Part).0, 4 * MIB as u64] {
        store.write(Place::Part, Offset(start), Bytes::from(noise(MIB, 3))).expect("written");
    }
    store.close().expect("closed");
    std::fs::write(folder.journal(), kept).expect("put back");
    folder.open()
}

#[test]
fn an_older_journal_of_the_same_file_makes_no_hole_count() {
    let opened = with_a_journal_of_no_gaps(|folder| {
        let mut store = folder.open().store;
        write(&mut store, Place::Part, &noise(2 * MIB, 2));
        store.close().expect("closed");
    });
    assert_eq!(opened.part_held, Length(3 * MIB as u64), "up to the hole, and no further");
    assert_eq!(opened.part_segments.length(), opened.part_held);
}

#[test]
fn the_journal_of_another_file_makes_no_hole_count() {
    let opened = with_a_journal_of_no_gaps(|folder| {
        let other = Folder::new(&[]);
        let mut store = other.open().store;
        write(&mut store, Place::Part, &noise(5 * MIB, 2));
        store.close().expect("closed");
        std::fs::write(folder.part(), noise(MIB, 1)).expect("written");
        std::fs::copy(other.journal(), folder.journal()).expect("copied");
    });
    assert_eq!(opened.part_held, Length(2 * MIB as u64), "up to the hole, and no further");
}

#[test]
fn a_record_that_knows_of_a_gap_is_believed_where_the_file_system_shows_none() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(2 * MIB, 2));
    store.close().expect("closed");
    let kept = read(&folder.journal());
    // All of it written, so that there is no hole to be seen.
    std::fs::write(folder.part(), noise(4 * MIB, 2)).expect("written");
    std::fs::write(folder.journal(), kept).expect("put back");
    let part = Draft { held: Length(2 * MIB as u64), beyond: Length(MIB as u64), ..claiming().part };
    let dossier = Dossier { part, ..Dossier::default() };
    let opened = PartStore::open(&folder.target, &dossier, folder.spec.clone()).expect("opened");
    assert_eq!(opened.part_held, Length(2 * MIB as u64));
}
