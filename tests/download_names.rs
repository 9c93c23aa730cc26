//! Names that servers and URLs choose: always one safe component in the folder that was given (design 3.9, 5, 6).

mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use support::{End, Rig, Served, World, files_below, names_in, noise, same_file};

/// A server that sends `data` under this Content-Disposition.
fn named(data: &Arc<Vec<u8>>, disposition: &str) -> Rig {
    let served = Served::new(data).header("Content-Disposition", disposition);
    Rig::start(move |a| served.reply(a))
}

/// Downloads with `--remote-header-name` into `folder`, from a working folder deep enough for `../..` to show.
fn fetch(w: &World, rig: &Rig, folder: &Path) -> support::Ran {
    w.download(&rig.url("/dl")).arg("--remote-header-name").dir(folder).cwd(&w.folder("x/y/z")).run()
}

#[test]
fn the_name_that_the_server_gives_is_taken() {
    let data = noise(120, 20_000);
    for (disposition, name) in [
        ("attachment; filename=\"report 2026.pdf\"", "report 2026.pdf"),
        ("attachment; filename=plain.bin", "plain.bin"),
        ("inline; filename=\"a\\\"b.bin\"", "a\"b.bin"),
        ("attachment; filename=\"x.bin\"; filename*=UTF-8''na%C3%AFve.bin", "na\u{ef}ve.bin"),
        ("attachment; filename*=iso-8859-1''caf%E9.bin", "caf\u{e9}.bin"),
    ] {
        let w = World::new();
        let folder = w.folder("in");
        fetch(&w, &named(&data, disposition), &folder).exits(0);
        assert_eq!(names_in(&folder), [name], "{disposition}");
        same_file(&folder.join(name), &data);
    }
}

#[test]
fn hostile_names_stay_one_safe_component_in_the_folder() {
    let data = noise(121, 20_000);
    let plain = ["../../evil", "..", ".", "", "/etc/evil", "a/../../evil", "..\\..\\evil", "~/evil", "-rf", ".hidden"];
    let coded = [
        "%2e%2e%2fevil",
        "a%00b",
        "%0d%0aX-Evil%3a1",
        "%1b%5b31mred",
        "%E2%80%AEgnp.exe",
        "%FF%FE",
        "%2Fetc%2Fpasswd",
        "%20%20",
    ];
    let all = plain.map(|n| format!("attachment; filename=\"{n}\"")).into_iter();
    for disposition in all.chain(coded.map(|n| format!("attachment; filename*=UTF-8''{n}"))) {
        let w = World::new();
        let folder = w.folder("a/b/in");
        let ran = fetch(&w, &named(&data, &disposition), &folder);
        assert!(ran.succeeded(), "{disposition:?}: {ran}");
        let names = names_in(&folder);
        assert_eq!(names.len(), 1, "{disposition:?}: {names:?}");
        let odd =
            |c: char| c.is_control() || c == '/' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        assert!(!names[0].contains(odd) && names[0] != "." && names[0] != "..", "{disposition:?}: {names:?}");
        same_file(&folder.join(&names[0]), &data);
        let strays: Vec<_> =
            files_below(&w.path(".")).into_iter().filter(|p| fs::read(p).is_ok_and(|b| b == *data)).collect();
        assert_eq!(strays.len(), 1, "{disposition:?}: {strays:?}");
    }
}

#[test]
fn without_a_name_from_the_server_the_urls_is_taken() {
    let (w, data) = (World::new(), noise(122, 20_000));
    let folder = w.folder("in");
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    w.download(&rig.url("/some/where/file.iso?v=2")).arg("--remote-header-name").dir(&folder).run().exits(0);
    assert_eq!(names_in(&folder), ["file.iso"]);
}

#[test]
fn names_from_urls_are_as_safe() {
    let data = noise(123, 20_000);
    for path in ["/", "/..%2f..%2fevil", "/%2e%2e", "/a%00b", "/x%2fy", "/%1b[31m", "/caf%C3%A9.bin", "/?q=1"] {
        let w = World::new();
        let folder = w.folder("a/b/in");
        let served = Served::new(&data);
        let rig = Rig::start(move |a| served.reply(a));
        let ran = w.download(&rig.url(path)).dir(&folder).run();
        if ran.succeeded() {
            assert_eq!(names_in(&folder).len(), 1, "{path}");
            assert!(!names_in(&folder)[0].contains(|c: char| c.is_control()), "{path}");
        } else {
            // A URL without a name may ask for -o, but must say so.
            ran.exits(2).says(&["-o"]);
        }
        let strays = files_below(&w.path(".")).into_iter().filter(|p| fs::read(p).is_ok_and(|b| b == *data));
        assert!(
            strays.clone().all(|p| p.parent() == Some(&w.path("./a/b/in"))),
            "{path}: {:?}",
            strays.collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_name_too_long_is_shortened_keeps_its_ending_and_is_found_again() {
    for header in [false, true] {
        let (w, data) = (World::new(), noise(124, 1_500_000));
        let folder = w.folder("in");
        let long = format!("{}.tar.gz", "long-".repeat(70));
        let served = Served::new(&data).header("Content-Disposition", &format!("attachment; filename=\"{long}\""));
        let rig = Rig::start(move |a| if a.n == 0 { served.reply(a).cut(900_000, End::Hang) } else { served.reply(a) });
        let px = || {
            let px = w.download(&rig.url(&if header { "/dl".to_owned() } else { format!("/{long}") })).dir(&folder);
            if header { px.arg("--remote-header-name") } else { px }
        };
        px().start().kill_when(|| rig.has_sent(900_000) && holds_part(&folder, 500_000));
        px().run().exits(0);
        let names = names_in(&folder);
        assert!(names.len() == 1 && names[0].ends_with(".tar.gz") && names[0].starts_with("long-"), "{names:?}");
        same_file(&folder.join(&names[0]), &data);
        assert!(rig.resumed(1, 500_000), "begun again");
    }
}

#[test]
fn a_long_name_that_fits_is_not_shortened() {
    let (w, data) = (World::new(), noise(125, 20_000));
    let folder = w.folder("in");
    let name = "m".repeat(216) + ".bin";
    fetch(&w, &named(&data, &format!("attachment; filename=\"{name}\"")), &folder).exits(0);
    assert_eq!(names_in(&folder), [name]);
}

#[test]
fn a_name_that_no_system_takes_is_wrong_use_and_the_longest_one_works() {
    let (w, data) = (World::new(), noise(128, 20_000));
    let folder = w.folder("in");
    let served = Served::new(&data);
    let rig = Rig::start(move |a| served.reply(a));
    for path in ["n".repeat(256), "n".repeat(300), format!("{}/f", "d".repeat(256))] {
        let ran = w.download(&rig.url("/f")).out(Some(folder.join(&path))).run();
        ran.complains_in_one_line(2, "a name in it has");
        w.download(&rig.url("/f")).dir(&folder.join(&path)).run().complains_in_one_line(2, "a name in it has");
    }
    assert_eq!(rig.count(), 0, "a request was sent");
    for bytes in [240, 241, 248, 255] {
        let name = "n".repeat(bytes);
        w.download(&rig.url("/f")).out(Some(folder.join(&name))).run().exits(0);
        same_file(&folder.join(&name), &data);
    }
    assert_eq!(names_in(&folder).len(), 4, "{:?}", names_in(&folder));
}

#[test]
fn a_transfer_remembers_the_name_it_got_first() {
    let (w, data) = (World::new(), noise(126, 2_000_000));
    let folder = w.folder("in");
    let body = Arc::clone(&data);
    let rig = Rig::start(move |a| {
        let name = format!("attachment; filename=\"take-{}.bin\"", a.n);
        let reply = Served::new(&body).header("Content-Disposition", &name).reply(a);
        if a.n < 2 { reply.cut(800_000, End::Close) } else { reply }
    });
    fetch(&w, &rig, &folder).exits(0);
    assert_eq!(names_in(&folder), ["take-0.bin"]);
    same_file(&folder.join("take-0.bin"), &data);
}

#[test]
fn a_file_of_that_name_that_is_not_ours_is_kept() {
    let (w, data) = (World::new(), noise(127, 20_000));
    let folder = w.folder("in");
    fs::write(folder.join("mine.txt"), "my own words\n").unwrap();
    fetch(&w, &named(&data, "attachment; filename=\"mine.txt\""), &folder).exits_one_of(&[2, 3, 5]).says(&["mine.txt"]);
    same_file(&folder.join("mine.txt"), b"my own words\n");
    assert!(names_in(&folder).iter().all(|n| n == "mine.txt" || n.ends_with(".persxfer-part")));
}

#[test]
fn text_from_a_server_never_reaches_the_terminal_raw() {
    let w = World::new();
    let escape = "\u{1b}]0;owned\u{7}\u{1b}[31mred";
    let raw = move |head: &str| support::Reply::raw(format!("{head}\r\nX-Odd: {escape}\r\nContent-Length: 0\r\n\r\n"));
    let heads = [
        format!("HTTP/1.1 404 {escape}"),
        format!("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/{escape}"),
        format!("HTTP/1.1 302 Found\r\nLocation: gopher{escape}://x/"),
        format!("HTTP/1.1 200 OK\r\nContent-Encoding: {escape}"),
        format!("HTTP/1.1 200 OK\r\nContent-Disposition: attachment; filename=\"{escape}\""),
    ];
    for (n, head) in heads.into_iter().enumerate() {
        let rig = Rig::start(move |_| raw(&head));
        let folder = w.folder(&format!("in{n}"));
        let ran = w.download(&rig.url("/dl")).args(&["-v", "--remote-header-name"]).give_up("1s").dir(&folder).run();
        let clean = |text: &str| text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t' || c == '\r');
        assert!(clean(&ran.stdout) && clean(&ran.stderr), "{:?}", ran.stderr);
    }
}

/// A part file in this folder is on disk with so many bytes.
fn holds_part(folder: &std::path::Path, least: u64) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let parts = entries.filter(|e| e.file_name().to_string_lossy().contains(".persxfer-part"));
    parts.filter_map(|e| e.metadata().ok()).any(|m| m.len() >= least)
}
