//! Trouble on this machine: no room, no permission, something else where the file should go (design 3.9, 3.13, 4).

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use support::{End, Reply, Rig, Served, World, digest, eventually, ms, noise, same_file, skipped};

const MB: usize = 1 << 20;
const NO_ROOM: [&str; 3] = ["space", "disk full", "no room"];

/// A small file system of its own, unmounted when this is dropped.
struct Small(PathBuf);

impl Small {
    /// `None`, noted as a skip, where mounting is not allowed.
    fn mount(test: &str, at: PathBuf, options: &str) -> Option<Self> {
        let mounted = mount(&["-t", "tmpfs", "-o", options, "tmpfs"], &at);
        if !mounted {
            skipped(test, "mounting a small tmpfs needs root");
        }
        mounted.then_some(Self(at))
    }
    fn remount(&self, options: &str) {
        assert!(mount(&["-o", &format!("remount,{options}")], &self.0));
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn mount(arguments: &[&str], at: &Path) -> bool {
    Command::new("mount").args(arguments).arg(at).output().is_ok_and(|o| o.status.success())
}

fn right(data: &Arc<Vec<u8>>) -> Rig {
    let served = Served::new(data);
    Rig::start(move |a| served.reply(a))
}

/// A server whose first answer tells no length, so that nothing can be checked beforehand.
fn lengthless(data: &Arc<Vec<u8>>) -> Rig {
    let (body, served) = (Arc::clone(data), Served::new(data));
    Rig::start(move |a| match a.range() {
        None => Reply::status(200).header("ETag", "\"one\"").body(&body, 0..body.len()).chunked(),
        Some(_) => served.reply(a),
    })
}

#[test]
fn a_file_larger_than_the_free_space_is_refused_before_its_bytes_come() {
    let (w, data) = (World::new(), noise(130, 5 * MB));
    let Some(small) = Small::mount("a_file_larger_than_the_free_space", w.folder("small"), "size=2m") else { return };
    let rig = right(&data);
    let out = small.0.join("f.bin");
    let px = || w.download(&rig.url("/f")).out(Some(out.clone()));
    px().run().exits(5).says(&NO_ROOM);
    assert!(!out.exists());
    assert!(rig.sent() < 3 * MB as u64, "{} bytes were taken", rig.sent());
    small.remount("size=12m");
    px().run().exits(0);
    same_file(&out, &data);
}

#[test]
fn a_disk_that_fills_on_the_way_is_no_retry_and_costs_no_byte() {
    let (w, data) = (World::new(), noise(131, 4 * MB));
    let Some(small) = Small::mount("a_disk_that_fills_on_the_way", w.folder("small"), "size=2m") else { return };
    let rig = lengthless(&data);
    let out = small.0.join("f.bin");
    let px = || w.download(&rig.url("/f")).out(Some(out.clone()));
    px().run().exits(5).says(&NO_ROOM);
    let listed = w.list(&[]);
    assert_eq!(listed[0]["num_retries"], 0, "{listed:?}");
    small.remount("size=16m");
    let before = rig.count();
    px().run().exits(0);
    same_file(&out, &data);
    assert!(rig.resumed(before, MB), "begun again: {:?}", rig.froms());
}

#[test]
fn a_disk_that_fills_within_the_first_stride_leaves_room_for_the_journal() {
    // What comes at once and ends before the first mebibyte needs no journal, unless there is no room for all of it.
    let (w, data) = (World::new(), noise(140, 900 << 10));
    let test = "a_disk_that_fills_within_the_first_stride";
    let Some(small) = Small::mount(test, w.folder("small"), "size=600k") else { return };
    let rig = lengthless(&data);
    let out = small.0.join("f.bin");
    let px = || w.download(&rig.url("/f")).out(Some(out.clone()));
    px().run().exits(5).says(&NO_ROOM);
    small.remount("size=16m");
    let before = rig.count();
    px().run().exits(0);
    same_file(&out, &data);
    assert!(rig.resumed(before, 400_000), "begun again: {:?}", rig.froms());
}

#[test]
fn a_disk_that_fills_under_the_state_file_as_well_costs_no_byte() {
    let (mut w, data) = (World::new(), noise(146, 4 * MB));
    let test = "a_disk_that_fills_under_the_state_file_as_well";
    let Some(small) = Small::mount(test, w.folder("small"), "size=2m") else { return };
    w.state = small.0.join("client_state.xml");
    let rig = lengthless(&data);
    let out = small.0.join("f.bin");
    let px = || w.download(&rig.url("/f")).out(Some(out.clone()));
    let ran = px().run();
    ran.exits(5).says(&NO_ROOM);
    small.remount("size=16m");
    let before = rig.count();
    px().run().exits(0);
    same_file(&out, &data);
    assert!(rig.resumed(before, MB), "begun again: {:?}\n{ran}", rig.froms());
}

#[test]
fn a_disk_that_fills_under_several_connections_costs_little() {
    let (w, data) = (World::new(), noise(141, 8 * MB));
    let Some(small) = Small::mount("a_disk_that_fills_under_several", w.folder("small"), "size=10m") else { return };
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).pace(64 << 10, ms(20)));
    let (out, filler) = (small.0.join("f.bin"), small.0.join("filler"));
    let px = || w.download(&rig.url("/f")).out(Some(out.clone())).args(&["--connections", "4"]);
    let run = px().start();
    while !rig.has_sent(2 * MB) {
        std::thread::sleep(ms(5));
    }
    // Somebody else takes what is left.
    let _ = fs::write(&filler, vec![1; 10 * MB]);
    run.end().exits(5).says(&NO_ROOM);
    fs::remove_file(filler).unwrap();
    let before = rig.sent();
    px().run().exits(0);
    same_file(&out, &data);
    let again = rig.sent() - before;
    assert!(again < (8 * MB - MB) as u64, "{again} bytes were sent after the disk had room again");
}

#[test]
fn a_file_of_the_same_number_on_another_file_system_is_not_in_the_way() {
    let (w, data) = (World::new(), noise(145, MB));
    let test = "a_file_of_the_same_number";
    let Some(here) = Small::mount(test, w.folder("here"), "size=16m") else { return };
    let Some(there) = Small::mount(test, w.folder("there"), "size=16m") else { return };
    let slow = Served::new(&data);
    let slow = Rig::start(move |a| slow.reply(a).cut(MB / 2, End::Hang));
    let busy = w.download(&slow.url("/f")).out(Some(here.0.join("f"))).start();
    while !slow.has_sent(MB / 2) {
        std::thread::sleep(ms(5));
    }
    let rig = lengthless(&data);
    let out = there.0.join("f");
    let px = || w.download(&rig.url("/f")).out(Some(out.clone()));
    let ino = |small: &Small| fs::metadata(small.0.join("f.persxfer-part")).map(|meta| meta.ino()).ok();
    rig.now({
        let served = Served::new(&data);
        move |a| served.reply(a).cut(MB / 2, End::Close)
    });
    px().arg("--once").run().exits(4);
    assert!(ino(&here).is_some() && ino(&here) == ino(&there), "{:?}, {:?}", ino(&here), ino(&there));
    let served = Served::new(&data);
    rig.now(move |a| served.reply(a));
    px().delays("1ms", "1ms").run().exits(0);
    same_file(&out, &data);
    drop(busy);
}

#[test]
fn a_limit_on_the_size_of_files_is_local_trouble_and_costs_no_byte() {
    // A mebibyte, in blocks of 512 bytes.
    let limit = "-f 2048";
    let (w, data) = (World::new(), noise(142, 4 * MB));
    let rig = lengthless(&data);
    let px = || w.download(&rig.url("/f"));
    px().ulimit(limit).run().exits(5).says(&["ulimit -f"]);
    assert_eq!(fs::metadata(w.part()).expect("the part is kept").len(), MB as u64);
    assert_eq!(w.list(&[])[0]["num_retries"], 0);
    let before = rig.count();
    px().run().exits(0);
    w.holds(&data);
    assert!(rig.resumed(before, 900_000), "begun again: {:?}", rig.froms());
}

#[test]
fn a_file_beyond_the_limit_is_refused_before_its_bytes_come() {
    let (w, data) = (World::new(), noise(143, 4 * MB));
    let rig = right(&data);
    w.download(&rig.url("/f")).ulimit("-f 2048").run().exits(5).says(&["ulimit -f"]);
    assert!(rig.sent() < 3 * MB as u64, "{} bytes were taken", rig.sent());
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn too_few_descriptors_are_local_trouble_that_is_told() {
    let (w, data) = (World::new(), noise(144, 2 * MB));
    let rig = right(&data);
    for limit in ["-n 12", "-n 16", "-n 20", "-n 31", "-f 2048 && ulimit -n 12"] {
        w.download(&rig.url("/f")).ulimit(limit).run().complains_in_one_line(5, "ulimit -n");
    }
    assert_eq!(rig.count(), 0);
    w.download(&rig.url("/f")).ulimit("-n 32").run().exits(0);
    w.holds(&data);
}

/// Connections that were asked for must not take what files need: it goes on with as many as fit.
#[test]
fn connections_beyond_the_descriptors_are_not_made() {
    for limit in ["-n 32", "-n 33", "-n 34", "-n 36", "-n 48"] {
        let (w, data) = (World::new(), noise(145, 12 * MB));
        let (rig, other) = (right(&data), right(&data));
        let many = w.download(&rig.url("/f")).mirror(&other.url("/f")).args(&["--connections", "16"]);
        many.ulimit(limit).run().exits(0);
        w.holds(&data);
    }
}

#[test]
fn an_endless_body_ends_with_the_disk() {
    let w = World::new();
    let Some(small) = Small::mount("an_endless_body_ends_with_the_disk", w.folder("small"), "size=3m") else { return };
    let data = noise(132, 64 * MB);
    let rig = Rig::start(move |_| Reply::status(200).body(&data, 0..data.len()).chunked_without_end().then(End::Hang));
    w.download(&rig.url("/f")).out(Some(small.0.join("f"))).run().exits(5).says(&NO_ROOM);
}

#[test]
fn a_full_disk_under_the_state_file_is_local_trouble_that_names_it() {
    let (mut w, data) = (World::new(), noise(133, 300_000));
    let Some(small) = Small::mount("a_full_disk_under_the_state_file", w.folder("small"), "size=64k") else { return };
    while fs::write(small.0.join(format!("filler-{}", fs::read_dir(&small.0).unwrap().count())), [1; 4096]).is_ok() {}
    w.state = small.0.join("client_state.xml");
    let served = Served::new(&data);
    let rig = Rig::start(move |a| if a.n == 0 { Reply::status(503) } else { served.reply(a) });
    w.download(&rig.url("/f")).arg("--once").run().exits(5).says(&["client_state"]);
    small.remount("size=1m");
    w.download(&rig.url("/f")).run().exits(0);
    w.holds(&data);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let (w, data) = (World::new(), noise(134, 9_000));
    let rig = right(&data);
    fs::write(w.path("plain"), "").unwrap();
    w.download(&rig.url("/f")).out(Some(w.path("plain/out"))).arg("-q").run().complains_in_one_line(5, "plain");
    let Some(small) = Small::mount("a_folder_that_cannot_be_written", w.folder("small"), "size=1m,ro") else { return };
    w.download(&rig.url("/f")).out(Some(small.0.join("out"))).arg("-q").run().complains_in_one_line(5, "small");
}

#[test]
fn a_target_that_is_no_regular_file_is_wrong_use() {
    let (w, data) = (World::new(), noise(135, 9_000));
    let rig = right(&data);
    let folder = w.folder("folder");
    w.download(&rig.url("/f")).out(Some(folder.clone())).run().complains_in_one_line(2, "folder");
    w.download(&rig.url("/f"))
        .out(Some("/dev/null".into()))
        .arg("--overwrite")
        .run()
        .complains_in_one_line(2, "/dev/null");
    let pipe = w.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    w.download(&rig.url("/f")).out(Some(pipe)).run().complains_in_one_line(2, "pipe");
    assert!(folder.is_dir() && fs::read_dir(folder).unwrap().count() == 0);
    assert_eq!(rig.count(), 0, "a request was sent");
}

/// Somebody puts a pipe in place of the part file while a session runs: nobody waits for a writer.
#[test]
fn a_pipe_put_in_place_of_the_part_file_holds_nobody_up() {
    let (w, data) = (World::new(), noise(138, 2 * MB));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).pace(64 << 10, ms(40)));
    let run = w.download(&rig.url("/f")).args(&["--checksum", &digest("sha-256", &data)]).start();
    eventually("it holds something", || fs::metadata(w.part()).is_ok_and(|m| m.len() > 256 << 10));
    fs::remove_file(w.part()).unwrap();
    assert!(Command::new("mkfifo").arg(w.part()).status().unwrap().success());
    let ran = run.end();
    if ran.succeeded() {
        w.holds(&data);
    } else {
        ran.exits_one_of(&[3, 5]).says(&["persxfer-part"]);
    }
}

/// A pipe instead of a file of ours between two runs: the next run makes the file anew, or goes on without.
#[test]
fn pipes_put_in_place_of_its_files_between_two_runs_are_replaced() {
    for suffix in ["persxfer-part", "persxfer-journal", "persxfer-journal-next", "persxfer-part2"] {
        let (w, data) = (World::new(), noise(140, 2 * MB));
        let served = Served::new(&data);
        let rig = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(MB, End::Hang) } else { served.reply(a) });
        w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(MB));
        let pipe = w.path(&format!("out.bin.{suffix}"));
        // There may be none of that name.
        let _ = fs::remove_file(&pipe);
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        w.download(&rig.url("/f")).run().exits(0);
        w.holds(&data);
        assert_eq!(w.leftovers(), Vec::<PathBuf>::new(), "{suffix}");
    }
}

#[test]
fn from_a_folder_that_was_deleted_absolute_paths_lead_where_they_always_did() {
    let (w, data) = (World::new(), noise(141, 90_000));
    let rig = right(&data);
    for px in [w.download(&rig.url("/f")).out(Some("f".into())), w.download(&rig.url("/f")).dir(Path::new("d"))] {
        px.nowhere().run().complains_in_one_line(5, "current folder");
    }
    w.download(&rig.url("/f")).out(None).nowhere().run().complains_in_one_line(5, "current folder");
    assert_eq!(rig.count(), 0, "a request was sent");
    w.download(&rig.url("/f")).nowhere().run().exits(0);
    w.holds(&data);
    w.download(&rig.url("/g")).dir(&w.folder("in")).nowhere().run().exits(0);
    same_file(&w.path("in/g"), &data);
    w.px(["state", "show"]).arg(&w.out).nowhere().run().exits(0);
    w.px(["state", "forget"]).arg(&w.out).nowhere().run().exits(0);
}

/// Nobody can be told of what happens; the file arrives all the same.
#[test]
fn events_into_a_full_device_are_missed_at_the_end() {
    let (w, data) = (World::new(), noise(139, 90_000));
    let ran = w.download(&right(&data).url("/f")).args(&["--progress", "json"]).stdout_to("/dev/full").run();
    ran.exits(5).says(&["events were lost", "No space left on device"]);
    w.holds(&data);
}

/// A reader that has seen enough is no error: the transfer goes on, and its status is its own.
#[test]
fn events_whose_reader_goes_away_are_not_missed() {
    let (w, data) = (World::new(), noise(146, 90_000));
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a).pace(8 << 10, ms(60)));
    let pipe = w.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // In the folder of this world.
    let run = w.download(&rig.url("/f")).args(&["--progress", "json"]).stdout_to("pipe").start();
    drop(fs::File::open(&pipe).unwrap());
    let ran = run.end();
    ran.exits(0).says(&["complete"]);
    assert!(!ran.stderr.contains("lost"), "{ran}");
    w.holds(&data);
}

#[test]
fn a_link_at_the_target_is_not_written_through() {
    for overwrite in [false, true] {
        let (w, data) = (World::new(), noise(136, 90_000));
        let victim = w.path("victim");
        fs::write(&victim, "keep me\n").unwrap();
        symlink(&victim, &w.out).unwrap();
        let px = w.download(&right(&data).url("/f")).give_up("2s");
        let ran = if overwrite { px.arg("--overwrite") } else { px }.run();
        same_file(&victim, b"keep me\n");
        if ran.succeeded() {
            assert!(!fs::symlink_metadata(&w.out).unwrap().is_symlink());
            w.holds(&data);
        } else {
            ran.exits_one_of(&[2, 3, 5]).says(&["out.bin"]);
        }
    }
}

#[test]
fn a_link_planted_as_the_part_file_is_not_written_through() {
    for hard in [false, true] {
        let (w, data) = (World::new(), noise(137, 2 * MB));
        let served = Served::new(&data);
        let rig = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(MB, End::Hang) } else { served.reply(a) });
        w.download(&rig.url("/f")).start().kill_when(|| rig.has_sent(MB));
        let victim = w.path("victim");
        fs::write(&victim, noise(138, MB).as_slice()).unwrap();
        fs::remove_file(w.part()).unwrap();
        if hard {
            fs::hard_link(&victim, w.part()).unwrap()
        } else {
            symlink(&victim, w.part()).unwrap()
        }
        let ran = w.download(&rig.url("/f")).run();
        same_file(&victim, &noise(138, MB));
        if ran.succeeded() {
            assert_ne!(fs::symlink_metadata(&w.out).unwrap().ino(), fs::metadata(&victim).unwrap().ino());
            w.holds(&data);
        } else {
            ran.exits_one_of(&[3, 5]).says(&["persxfer-part"]);
        }
    }
}

#[test]
fn a_state_file_that_cannot_be_written_is_named_before_anything_is_fetched() {
    let (mut w, data) = (World::new(), noise(139, 9_000));
    let rig = right(&data);
    fs::write(w.path("plain"), "").unwrap();
    w.state = w.path("plain/client_state.xml");
    w.download(&rig.url("/f")).run().exits(5).says(&["plain"]);
}
