//! From the first byte to the final name, with kills and reboots between.

use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;

use super::*;
use crate::core::failure::LocalFault;

#[test]
fn a_file_comes_whole_and_leaves_nothing_beside_it() {
    let folder = Folder::new(&[Algorithm::Sha256]);
    let bytes = noise(3 * MIB + 17, 1);
    let mut store = folder.open().store;
    store.reserve(Place::Part, held(bytes.len())).expect("room");
    write(&mut store, Place::Part, &bytes);
    assert_eq!(folder.names().len(), 2, "a part file and a journal: {:?}", folder.names());
    assert_eq!(std::fs::metadata(folder.part()).expect("part").permissions().mode() & 0o777, 0o600);
    let digests = store.digest(&mut |_| ()).expect("a digest");
    assert_eq!(digests, [(Algorithm::Sha256, digest_of(Algorithm::Sha256, &bytes))]);
    let mtime = Some(Epoch::from_micros(1_700_000_000_250_000));
    let done = store.publish(Publish { mtime, ..PLAIN }).expect("published");
    drop(store);
    tidy(&folder.target);
    assert_eq!(folder.names(), ["file.bin"]);
    assert_eq!(read(&folder.target), bytes);
    assert_eq!((done.size, done.mtime_ns), (held(bytes.len()), 1_700_000_000_250_000_000));
    // The mode is that of any file made here.
    let other = folder.dir.path().join("other");
    std::fs::write(&other, "").expect("written");
    let mode = |p: &Path| std::fs::metadata(p).expect("metadata").permissions().mode();
    assert_eq!(mode(&folder.target), mode(&other));
}

#[test]
fn a_small_file_that_is_here_at_once_has_no_journal() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, b"small");
    store.tick(at_ms(0)).expect("tick");
    store.settle(Place::Part).expect("settled");
    assert!(!folder.journal().exists());
    drop(store);
    // Killed: nothing says that the five bytes are those of this boot.
    let again = folder.open();
    assert_eq!(again.part_held, Length::ZERO);
    assert_eq!(again.remarks.len(), 1, "{:?}", again.remarks);
}

#[test]
fn after_a_quarter_of_a_second_a_kill_loses_nothing_old() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, b"slow");
    store.tick(at_ms(0)).expect("tick");
    store.tick(at_ms(249)).expect("tick");
    assert_eq!(std::fs::metadata(folder.part()).expect("part").len(), 0);
    store.tick(at_ms(250)).expect("tick");
    write(&mut store, Place::Part, b"ly");
    assert_eq!(store.held(Place::Part), Length(6));
    drop(store);
    let again = folder.open();
    assert_eq!(again.part_held, Length(4));
    assert_eq!(read(&folder.part()), b"slow");
}

#[test]
fn a_kill_costs_what_was_not_written_out() {
    let folder = Folder::new(&[]);
    let bytes = noise(3 * MIB + MIB / 2, 2);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &bytes);
    drop(store);
    let mut again = folder.open();
    assert_eq!(again.part_held, held(3 * MIB));
    write(&mut again.store, Place::Part, &bytes[3 * MIB..]);
    again.store.publish(PLAIN).expect("published");
    assert_eq!(read(&folder.target), bytes);
}

#[test]
fn after_a_reboot_only_flushed_bytes_count() {
    for boot in [SECOND_BOOT, Boot::Unknown] {
        let mut folder = Folder::new(&[]);
        let bytes = noise(3 * MIB, 3);
        let mut store = folder.open().store;
        write(&mut store, Place::Part, &bytes[..MIB + 5]);
        store.checkpoint().expect("checkpoint");
        write(&mut store, Place::Part, &bytes[MIB + 5..]);
        store.settle(Place::Part).expect("settled");
        drop(store);
        let again = folder.open_in(boot);
        assert_eq!(again.part_held, held(MIB + 5), "{boot:?}");
        assert_eq!(read(&folder.part()), bytes[..MIB + 5]);
        assert_eq!(again.remarks.len(), 1);
    }
}

#[test]
fn what_was_cut_off_after_a_reboot_does_not_come_back_after_a_kill() {
    let mut folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(2 * MIB, 4));
    store.checkpoint().expect("checkpoint");
    write(&mut store, Place::Part, &noise(2 * MIB, 5));
    drop(store);
    let mut second = folder.open_in(SECOND_BOOT).store;
    assert_eq!(second.held(Place::Part), held(2 * MIB));
    write(&mut second, Place::Part, b"new");
    second.settle(Place::Part).expect("settled");
    drop(second);
    assert_eq!(folder.open().part_held, held(2 * MIB + 3));
}

#[test]
fn without_flushing_a_reboot_costs_everything() {
    let mut folder = Folder::new(&[]);
    folder.spec.sync = SyncMode::None;
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(2 * MIB, 6));
    store.close().expect("closed");
    assert_eq!(folder.open().part_held, held(2 * MIB));
    assert_eq!(folder.open_in(SECOND_BOOT).part_held, Length::ZERO);
}

#[test]
fn closing_loses_nothing_and_leaves_nothing_empty() {
    let mut folder = Folder::new(&[]);
    folder.open().store.close().expect("closed");
    assert_eq!(folder.names(), [""; 0]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, b"tiny");
    store.close().expect("closed");
    assert_eq!(folder.open_in(SECOND_BOOT).part_held, Length(4));
}

#[test]
fn a_file_longer_than_the_whole_counts_up_to_the_whole() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(MIB + 100, 7));
    store.close().expect("closed");
    let mut dossier = claiming();
    dossier.part.total = Some(held(MIB));
    dossier.part.held = held(10);
    let opened = PartStore::open(&folder.target, &dossier, folder.spec.clone()).expect("opened");
    assert_eq!((opened.part_held, opened.remarks), (held(MIB), vec![]));
    assert_eq!(read(&folder.part()).len(), MIB);
}

#[test]
fn a_torn_journal_costs_its_last_record_only() {
    let mut folder = Folder::new(&[]);
    folder.spec.sums = BlockSums::WithDigests;
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(2 * MIB, 8));
    store.checkpoint().expect("checkpoint");
    write(&mut store, Place::Part, &noise(MIB, 9));
    store.close().expect("closed");
    let (journal, part) = (read(&folder.journal()), read(&folder.part()));
    let mut held_after = |torn: usize| {
        std::fs::write(folder.journal(), &journal[..journal.len() - torn]).expect("torn");
        std::fs::write(folder.part(), &part).expect("as it was");
        folder.open_in(SECOND_BOOT).part_held
    };
    // First goes what the file looked like when it was left, which no byte depends on, then the last claim.
    assert_eq!(held_after(1), held(3 * MIB));
    let claims: Vec<_> = (1..70).map(&mut held_after).collect();
    assert!(claims.is_sorted_by(|a, b| a >= b), "{claims:?}");
    assert!(claims.iter().all(|claim| [held(3 * MIB), held(2 * MIB)].contains(claim)), "{claims:?}");
    assert_eq!(claims.last(), Some(&held(2 * MIB)));
}

#[test]
fn ticks_make_checkpoints_when_due() {
    let mut folder = Folder::new(&[Algorithm::Md5]);
    let mut store = folder.open().store;
    assert!(!store.tick(at_ms(0)).expect("tick"));
    assert!(!store.tick(at_ms(60_000)).expect("tick"), "nothing new");
    write(&mut store, Place::Part, &noise(2 * MIB, 10));
    assert!(store.tick(at_ms(60_001)).expect("tick"));
    assert!(!store.tick(at_ms(60_002)).expect("tick"));
    drop(store); // Waits for the checkpoint.
    assert_eq!(folder.open_in(SECOND_BOOT).part_held, held(2 * MIB));
}

#[test]
fn a_checkpoint_is_due_after_64_mib() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    store.tick(at_ms(0)).expect("tick");
    let piece = Bytes::from(noise(MIB, 11));
    for i in 0..64 {
        assert!(!store.tick(at_ms(1)).expect("tick"), "after {i} MiB");
        store.write(Place::Part, offset(i * MIB), piece.clone()).expect("written");
    }
    assert!(store.tick(at_ms(2)).expect("tick"));
}

#[test]
fn digests_go_on_across_sessions() {
    let all =
        [Algorithm::Blake3, Algorithm::Crc32c, Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512];
    for algorithms in [&all[..], &all[1..]] {
        let folder = Folder::new(algorithms);
        let bytes = noise(21 * MIB + 12_345, 12);
        for end in [700_000, 6 * MIB + 1, 6 * MIB + 1, 21 * MIB + 12_345] {
            let mut store = folder.open().store;
            let from = store.held(Place::Part).0 as usize;
            write(&mut store, Place::Part, &bytes[from..end]);
            store.close().expect("closed");
        }
        let digests = folder.open().store.digest(&mut |_| ()).expect("digests");
        for (algorithm, digest) in digests {
            assert_eq!(digest, digest_of(algorithm, &bytes), "{algorithm:?}");
        }
    }
}

#[test]
fn a_changed_block_is_hashed_as_it_is_on_the_disk() {
    let folder = Folder::new(&[Algorithm::Sha256]);
    let mut bytes = noise(3 * MIB, 13);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &bytes);
    store.close().expect("closed");
    bytes[MIB] ^= 1;
    std::fs::write(folder.part(), &bytes).expect("changed");
    let mut store = folder.open().store;
    let expected = [(Algorithm::Sha256, digest_of(Algorithm::Sha256, &bytes))];
    assert_eq!(store.digest(&mut |_| ()).expect("digest"), expected);
    assert_eq!(store.digest_again(&mut |_| ()).expect("digest"), expected);
}

#[test]
fn progress_of_a_digest_is_told_up_to_the_end() {
    let folder = Folder::new(&[Algorithm::Blake3]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(3 * MIB, 14));
    store.close().expect("closed");
    let mut told = Vec::new();
    folder.open().store.digest(&mut |at| told.push(at)).expect("digest");
    assert_eq!(told, [held(MIB), held(2 * MIB), held(3 * MIB)]);
}

#[test]
fn room_that_was_taken_and_not_needed_is_given_back() {
    use std::os::unix::fs::MetadataExt;
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    store.reserve(Place::Part, held(64 * MIB)).expect("room");
    write(&mut store, Place::Part, &noise(2 * MIB, 17));
    store.close().expect("closed");
    let mut store = folder.open().store;
    store.publish(PLAIN).expect("published");
    let meta = std::fs::metadata(&folder.target).expect("metadata");
    assert_eq!(meta.len(), 2 * MIB as u64);
    assert!(meta.blocks() * 512 < 4 * MIB as u64, "{} blocks", meta.blocks());
}

#[test]
fn a_full_disk_is_said_and_costs_nothing() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("skipped: a file system of a limited size can be mounted by root only");
        return;
    };
    let target = disk.0.path().join("file.bin");
    let spec = Spec { boot: FIRST_BOOT, ..Spec::new(vec![Algorithm::Sha256], SyncMode::Full) };
    let mut store = PartStore::open(&target, &claiming(), spec.clone()).expect("opened").store;
    let fault = store.reserve(Place::Part, held(8 * MIB)).expect_err("no room");
    assert!(matches!(fault, LocalFault::DiskFull { .. }), "{fault}");
    let bytes = noise(6 * MIB, 16);
    let piece = |at: usize| Bytes::copy_from_slice(&bytes[at..at + MIB]);
    let full = (0..6).find_map(|i| store.write(Place::Part, offset(i * MIB), piece(i * MIB)).err());
    let Some(LocalFault::DiskFull { path, detail }) = full else { panic!("{full:?}") };
    assert!(path.ends_with("file.bin.persxfer-part") && detail.contains("more are needed"), "{path}: {detail}");
    let kept = store.held(Place::Part);
    assert!(kept >= held(3 * MIB));
    let _ = store.close();
    let mut again = PartStore::open(&target, &claiming(), spec).expect("opened");
    assert_eq!(again.part_held, kept);
    let digests = again.store.digest(&mut |_| ()).expect("digest");
    assert_eq!(digests[0].1, digest_of(Algorithm::Sha256, &bytes[..kept.0 as usize]));
}

#[test]
fn digests_are_right_after_a_write_that_was_cut_short_by_a_full_disk() {
    let Some(disk) = SmallDisk::mount() else {
        eprintln!("skipped: a file system of a limited size can be mounted by root only");
        return;
    };
    let filler = disk.0.path().join("filler");
    std::fs::write(&filler, vec![1; MIB + MIB / 2]).expect("written");
    let spec = Spec { boot: FIRST_BOOT, ..Spec::new(vec![Algorithm::Sha256], SyncMode::None) };
    let mut store = PartStore::open(&disk.0.path().join("file.bin"), &claiming(), spec).expect("opened").store;
    let bytes = noise(3 * MIB, 18);
    let piece = |at: usize, to: usize| Bytes::copy_from_slice(&bytes[at..to]);
    let full = (0..3).find_map(|i| store.write(Place::Part, offset(i * MIB), piece(i * MIB, (i + 1) * MIB)).err());
    assert!(matches!(full, Some(LocalFault::DiskFull { .. })), "{full:?}");
    std::fs::remove_file(filler).expect("removed");
    let from = store.held(Place::Part).0 as usize;
    assert!(from > 2 * MIB && from < 3 * MIB, "{from}");
    store.write(Place::Part, offset(from), piece(from, 3 * MIB)).expect("written");
    let digests = store.digest(&mut |_| ()).expect("digest");
    assert_eq!(digests[0].1, digest_of(Algorithm::Sha256, &bytes));
}

/// A file system of 4 MiB.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let dir = tempfile::tempdir().expect("a folder");
        let mut mount = std::process::Command::new("mount");
        let done = mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(dir.path()).output().ok()?;
        done.status.success().then(|| Self(dir))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

/// What can happen to a store.
#[derive(Clone, Debug)]
enum Deed {
    Write(usize),
    Settle,
    Checkpoint,
    Cut(prop::sample::Index),
    Kill,
    Reboot,
    Close,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => (1..3 * MIB).prop_map(Deed::Write),
        1 => Just(Deed::Settle),
        1 => Just(Deed::Checkpoint),
        1 => any::<prop::sample::Index>().prop_map(Deed::Cut),
        2 => Just(Deed::Kill),
        1 => Just(Deed::Reboot),
        1 => Just(Deed::Close),
    ]
}

/// A store, and what must be true of it.
struct World {
    folder: Folder,
    store: Option<PartStore>,
    /// What was written and not cut.
    wrote: Vec<u8>,
    /// How much of it a reboot must leave.
    flushed: usize,
    boots: u8,
}

impl World {
    fn store(&mut self) -> &mut PartStore {
        self.store.as_mut().expect("open between deeds")
    }

    fn act(&mut self, deed: &Deed, seed: u32) {
        match deed {
            Deed::Write(n) => {
                let bytes = noise(*n, seed);
                write(self.store(), Place::Part, &bytes);
                self.wrote.extend(bytes);
            }
            Deed::Settle => _ = self.store().settle(Place::Part).expect("settled"),
            Deed::Checkpoint => {
                self.store().checkpoint().expect("checkpoint");
                self.flushed = self.wrote.len();
            }
            Deed::Cut(index) => {
                let to = index.index(self.wrote.len() + 1);
                self.store().cut(Place::Part, held(to)).expect("cut");
                self.wrote.truncate(to);
                self.flushed = self.flushed.min(to);
            }
            Deed::Kill => self.reopen(self.flushed),
            Deed::Reboot => {
                self.boots += 1;
                self.reopen(self.flushed);
            }
            Deed::Close => {
                let closed = self.store.take().map(PartStore::close);
                assert_eq!(closed, Some(Ok(())));
                self.flushed = self.wrote.len();
                self.reopen(self.flushed);
            }
        }
    }

    /// Opens it again; it must hold a beginning of what was written, and `least` of it.
    fn reopen(&mut self, least: usize) {
        self.store = None;
        let opened = self.folder.open_in(Boot::Id([self.boots; 16]));
        let now = opened.part_held.0 as usize;
        assert!(now >= least && now <= self.wrote.len(), "{now} of {}, at least {least}", self.wrote.len());
        self.wrote.truncate(now);
        assert!(read(&self.folder.part()) == self.wrote, "other bytes than were written");
        self.store = Some(opened.store);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn whatever_happens_what_is_held_is_right(deeds in proptest::collection::vec(deed(), 1..16)) {
        let folder = Folder::new(&[Algorithm::Sha1]);
        let store = Some(folder.open().store);
        let mut world = World { folder, store, wrote: vec![], flushed: 0, boots: 1 };
        for (seed, deed) in (0..).zip(&deeds) {
            world.act(deed, seed);
        }
        let digests = world.store().digest(&mut |_| ()).expect("digest");
        prop_assert_eq!(&digests[0].1, &digest_of(Algorithm::Sha1, &world.wrote));
    }
}

#[test]
fn marks_of_many_finished_files_go_and_nothing_else() {
    let folder = Folder::new(&[]);
    let mut store = folder.open().store;
    write(&mut store, Place::Part, &noise(MIB, 2));
    store.publish(PLAIN).expect("published");
    drop(store);
    let other = folder.dir.path().join("other.persxfer-journal");
    std::fs::write(&other, "somebody's").expect("written");
    assert_eq!(folder.names(), ["file.bin", "file.bin.persxfer-part2", "other.persxfer-journal"]);
    let elsewhere = folder.dir.path().join("gone/away");
    crate::io::part::tidy_all([elsewhere, folder.target.clone()].into_iter());
    assert_eq!(folder.names(), ["file.bin", "other.persxfer-journal"]);
}
