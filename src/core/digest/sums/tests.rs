//! Tests of lists of checksums.

use proptest::prelude::*;

use super::*;

const A: &str = "d41d8cd98f00b204e9800998ecf8427e";
const B: &str = "0cc175b9c0f1b6a831c399e269772661";
const SHA1: &str = "da39a3ee5e6b4b0d3255bfef95601890afd80709";

fn md5_list(text: &str) -> Sums {
    Sums::parse(text.as_bytes(), Some(Algorithm::Md5)).expect("a list")
}

fn found(sums: &Sums, name: &str) -> Vec<String> {
    sums.find(name).expect(name).iter().map(Expected::to_string).collect()
}

#[test]
fn the_forms_of_gnu() {
    let sums = md5_list(&format!("{A}  plain.txt\n{B} *binary.bin\r\n{A} single\n{B}\ttab\n{A}   blank first\n"));
    assert_eq!(found(&sums, "plain.txt"), [format!("md5={A}")]);
    assert_eq!(found(&sums, "binary.bin"), [format!("md5={B}")]);
    assert_eq!(found(&sums, "single"), [format!("md5={A}")]);
    assert_eq!(found(&sums, "tab"), [format!("md5={B}")]);
    assert_eq!(found(&sums, " blank first"), [format!("md5={A}")]);
}

#[test]
fn escaped_names_of_gnu() {
    let sums = md5_list(&format!("\\{A}  two\\nlines\\\\and\\rmore\n{B}  no\\nescape\n"));
    assert_eq!(found(&sums, "two\nlines\\and\rmore"), [format!("md5={A}")]);
    assert_eq!(found(&sums, "no\\nescape"), [format!("md5={B}")]);
}

#[test]
fn the_form_of_bsd_names_its_algorithm_itself() {
    let text = format!(
        "# comment\n-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n\
         MD5 (a (1) = x.iso) = {A}\nSHA1(a (1) = x.iso)= {SHA1}\nSHA384 (a (1) = x.iso) = 00\n"
    );
    let sums = Sums::parse(text.as_bytes(), None).expect("a list");
    assert_eq!(found(&sums, "a (1) = x.iso"), [format!("md5={A}"), format!("sha-1={SHA1}")]);
}

#[test]
fn exact_names_go_before_final_components() {
    let sums = md5_list(&format!("{A}  ./new/file\n{B}  old/file\n{A}  other/one\n"));
    assert_eq!(found(&sums, "new/file"), [format!("md5={A}")]);
    assert_eq!(found(&sums, "./old/file"), [format!("md5={B}")]);
    assert_eq!(found(&sums, "one"), [format!("md5={A}")]);
    assert_eq!(found(&sums, "elsewhere/one"), [format!("md5={A}")]);
    let ambiguous = NoSum::Ambiguous { name: "file".into(), algorithm: Algorithm::Md5 };
    assert_eq!(sums.find("file"), Err(ambiguous));
}

#[test]
fn the_same_entry_twice_is_no_contradiction() {
    let sums = md5_list(&format!("{A}  x\n{}  x\n", A.to_uppercase()));
    assert_eq!(found(&sums, "x"), [format!("md5={A}")]);
    assert!(md5_list(&format!("{A}  x\n{B}  x\n")).find("x").is_err());
}

#[test]
fn nothing_but_a_digest_is_that_of_any_file() {
    assert_eq!(found(&md5_list(&format!("{A}\n")), "whatever.iso"), [format!("md5={A}")]);
    assert!(md5_list(&format!("{A}\n{B}\n")).find("whatever.iso").is_err());
    assert!(md5_list(&format!("{A}\n{B}  other\n")).find("whatever.iso").is_err());
}

#[test]
fn an_algorithm_is_never_guessed() {
    let text = format!("# list\n{A}  x\n");
    let bad = Sums::parse(text.as_bytes(), None).expect_err("no algorithm");
    assert_eq!(bad, BadSums::NoAlgorithm { line: 2 });
    let bad = Sums::parse(text.as_bytes(), Some(Algorithm::Sha256)).expect_err("wrong length");
    let why = "it holds no checksum (line 2 cannot be read: a sha-256 checksum has 64 hex digits, this one has 32)";
    assert_eq!(bad.to_string(), why);
    assert!(Sums::parse(b"<html>login</html>", Some(Algorithm::Sha256)).is_err());
}

#[test]
fn a_missing_name_tells_of_unreadable_lines() {
    let sums = md5_list(&format!("{A}  x\n{SHA1}  y\n"));
    let missing = sums.find("y").expect_err("unreadable").to_string();
    let why =
        "the list has no checksum for \"y\" (line 2 cannot be read: a md5 checksum has 32 hex digits, this one has 40)";
    assert_eq!(missing, why);
}

#[test]
fn the_name_of_a_list_tells_its_algorithm() {
    for (name, want) in [
        ("SHA256SUMS", Some(Algorithm::Sha256)),
        ("/dist/sha512sum.txt", Some(Algorithm::Sha512)),
        ("md5-tool.iso.sha256", Some(Algorithm::Sha256)),
        ("x.iso.sha1", Some(Algorithm::Sha1)),
        ("MD5SUMS", Some(Algorithm::Md5)),
        ("B3SUMS", Some(Algorithm::Blake3)),
        ("CHECKSUMS", None),
        ("sha256-and-md5.txt", None),
    ] {
        assert_eq!(Algorithm::of_list_name(name), want, "{name}");
    }
}

proptest! {
    #[test]
    fn anything_may_come(bytes: Vec<u8>) {
        let _ = Sums::parse(&bytes, Some(Algorithm::Crc32c)).map(|sums| sums.find("x"));
    }

    #[test]
    fn nearly_right_lists(
        text in "(\\\\?(MD5 ?\\()?[0-9a-f]{8}[ *\\\\n()=]{0,3}[x./\\\\]{0,4}(\\) ?= ?[0-9a-f]{0,32})?\n){1,6}",
    ) {
        if let Ok(sums) = Sums::parse(text.as_bytes(), Some(Algorithm::Crc32c)) {
            let _ = sums.find("x");
        }
    }

    #[test]
    fn every_name_is_found_again_by_its_escaped_line(name in "[^/]{1,20}") {
        prop_assume!(!name.starts_with(['\u{feff}']));
        let escaped = name.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r");
        let line = format!("\\{A}  {escaped}\n");
        prop_assert_eq!(found(&md5_list(&line), &name), [format!("md5={A}")]);
    }
}
