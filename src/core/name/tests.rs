//! Tests of safe names and of the names beside a target.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};

use proptest::prelude::*;

use super::*;

fn server(raw: &str) -> Option<String> {
    SafeName::new(raw, Giver::Server).map(|name| name.0)
}

fn of_url(url: &str) -> String {
    SafeName::from_url(&MirrorUrl::parse(url).expect(url)).0
}

#[test]
fn ordinary_names_stay() {
    for name in
        ["x", "file.tar.gz", "my file (1).txt", "Größe 文件.pdf", "a..b", "x~1", "100%.txt", "a:b", "COM10", "Contact"]
    {
        assert_eq!(server(name).as_deref(), Some(name));
    }
}

#[test]
fn one_component_is_left_of_a_path() {
    for (raw, want) in
        [("/etc/passwd", "passwd"), ("..\\..\\x.dll", "x.dll"), ("a/b\\c", "c"), ("dir/", "dir"), ("dir/ /", "dir")]
    {
        assert_eq!(server(raw).as_deref(), Some(want), "{raw:?}");
    }
    for raw in ["", ".", "..", "...", "a/..", "/", "\\", " ", ". .", "\0", "\u{202e}", "\u{feff}\u{200b}."] {
        assert_eq!(server(raw), None, "{raw:?}");
    }
}

#[test]
fn dangerous_characters_and_beginnings() {
    for (raw, want) in [
        ("a\0b\nc\x7f\u{85}d", "a_b_c__d"),
        ("photo\u{202e}gpj.exe", "photo_gpj.exe"),
        (" x. . ", "x"),
        ("-rf", "_rf"),
        (".bashrc", "_bashrc"),
        ("\u{a0}x\u{3000}", "x"),
    ] {
        assert_eq!(server(raw).as_deref(), Some(want), "{raw:?}");
    }
    assert_eq!(SafeName::new(".gitignore", Giver::Url).expect("a name").as_str(), ".gitignore");
    assert_eq!(SafeName::new("-rf", Giver::Url).expect("a name").as_str(), "_rf");
}

#[test]
fn devices_of_windows() {
    for raw in ["CON", "con", "Nul.txt", "aux.tar.gz", "COM1", "lpt9.log", "COM²", "con .txt", "CONIN$"] {
        assert_eq!(server(raw), Some(format!("_{raw}")));
    }
}

#[test]
fn names_of_our_own_files_are_disarmed() {
    assert_eq!(server("x.iso.persxfer-part").as_deref(), Some("x.iso_persxfer-part"));
    assert_eq!(server("x.iso.PersXfer-Part2").as_deref(), Some("x.iso_PersXfer-Part2"));
    assert_eq!(server("x.persxfer-journal").as_deref(), Some("x_persxfer-journal"));
    assert_eq!(server("x.persxfer-part.gz").as_deref(), Some("x.persxfer-part.gz"));
}

#[test]
fn long_names_are_cut_before_their_extension_and_stay_apart() {
    let long = |fill: &str, end: &str| server(&format!("{}{end}", fill.repeat(300))).expect("a name");
    let name = long("x", ".tar.gz");
    assert!(name.len() == SAFE_MAX && name.ends_with(".tar.gz"), "{name}");
    assert!(name.starts_with("xxxx") && name.contains('~'));
    assert_ne!(long("x", "1.tar.gz"), long("x", "2.tar.gz"));
    assert_eq!(long("x", ".tar.gz"), name);

    let name = long("ü", ".ISO");
    assert!(name.len() <= SAFE_MAX && name.len() >= SAFE_MAX - 3 && name.ends_with(".ISO"));
    assert!(long("x", &format!(".{}", "y".repeat(40))).len() == SAFE_MAX);
    assert!(long("文", "").len() <= SAFE_MAX);
}

#[test]
fn extensions() {
    for (name, want) in [
        ("a.gz", ".gz"),
        ("a.tar.gz", ".tar.gz"),
        ("a.TAR.zst", ".TAR.zst"),
        ("a", ""),
        (".bashrc", ""),
        ("a.b c", ".b c"),
        ("ü.tar.é", ".tar.é"),
        ("a.abcdefghijklmnopqrst", ""),
    ] {
        assert_eq!(extension(name), want, "{name}");
    }
}

#[test]
fn the_name_in_a_url() {
    for (url, want) in [
        ("https://example.org/a/b.tar.gz?x=1/2#f", "b.tar.gz"),
        ("https://example.org/dir/", "dir"),
        ("https://example.org", "index.html"),
        ("https://example.org//", "index.html"),
        ("https://example.org/?file=x", "index.html"),
        ("https://example.org/my%20file%C3%BC", "my fileü"),
        ("https://example.org/%E9", "%E9"),
        ("https://example.org/a%2F..%2F..%2Fetc%2Fpasswd", "passwd"),
        ("https://example.org/x/%2e%2e%2f", "x"),
        ("https://example.org/%00", "index.html"),
        ("https://example.org/a/.gitignore", ".gitignore"),
    ] {
        assert_eq!(of_url(url), want, "{url}");
    }
}

#[test]
fn names_beside_a_target() {
    assert_eq!(part_file_name("x.iso"), OsString::from("x.iso.persxfer-part"));
    assert_eq!(rival_file_name("x.iso"), OsString::from("x.iso.persxfer-part2"));
    assert_eq!(journal_file_name("x.iso"), OsString::from("x.iso.persxfer-journal"));
    let long = "ü".repeat(127);
    for name in [part_file_name(&long), rival_file_name(&long), journal_file_name(&long)] {
        assert!(name.len() <= NAME_MAX, "{name:?}");
        assert!(name.to_string_lossy().contains(".persxfer-"));
    }
}

#[test]
fn no_name_is_met_by_a_shortened_one() {
    let long = "x".repeat(250);
    let part = part_file_name(&long).into_string().expect("ASCII");
    let twin = part.strip_suffix(".persxfer-part").expect("its ending");
    assert_ne!(part_file_name(twin), OsString::from(part.clone()));
    assert_ne!(part_file_name(&long), part_file_name("x".repeat(251)));
}

#[cfg(unix)]
#[test]
fn a_target_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let odd = OsStr::from_bytes(b"caf\xe9");
    assert_eq!(part_file_name(odd).as_bytes(), b"caf\xe9.persxfer-part");
    let (one, two) = ([0xe9; 255], [0xea; 255]);
    let (one, two) = (part_file_name(OsStr::from_bytes(&one)), part_file_name(OsStr::from_bytes(&two)));
    assert!(one != two && one.len() <= NAME_MAX);
}

/// What every safe name must be.
fn check(name: &str) -> Result<(), TestCaseError> {
    prop_assert!(!name.is_empty() && name.len() <= SAFE_MAX);
    prop_assert!(!name.contains(['/', '\\']) && !name.contains(is_hidden));
    prop_assert!(name != "." && name != ".." && !is_device(name));
    prop_assert!(!name.ends_with('.') && name.trim() == name && !name.starts_with('-'));
    prop_assert!(!name.to_ascii_lowercase().ends_with(".persxfer-part"));
    Ok(())
}

proptest! {
    #[test]
    fn whatever_comes_is_safe(
        raw in "(?s)(CON|\\.\\.|[./\\\\ -]|.){0,8}(.{0,300})(\\.persxfer-part|\\.tar\\.gz|[. ])?",
    ) {
        for giver in [Giver::Url, Giver::Server] {
            if let Some(name) = SafeName::new(&raw, giver) {
                check(name.as_str())?;
                prop_assert_eq!(SafeName::new(name.as_str(), giver), Some(name));
            }
        }
    }

    #[test]
    fn every_url_has_a_safe_name(path in "(?s)(/|%2[ef]|%[0-9a-f]{2}|.){0,40}") {
        if let Ok(url) = MirrorUrl::parse(&format!("https://example.org/{path}")) {
            check(SafeName::from_url(&url).as_str())?;
        }
    }

    #[test]
    fn siblings_fit_and_differ(names in prop::collection::hash_set("[xü]{115,130}|[a-z]{230,255}", 1..20)) {
        let beside: HashSet<_> = names.iter()
            .flat_map(|name| [part_file_name(name), rival_file_name(name), journal_file_name(name)])
            .collect();
        prop_assert_eq!(beside.len(), names.len() * 3);
        prop_assert!(beside.iter().all(|name| name.len() <= NAME_MAX));
    }
}
