//! Metalinks from somebody who means harm, or from a broken tool.

use proptest::prelude::*;

use super::*;

#[test]
fn names_never_leave_the_folder() {
    for (raw, name) in [
        ("../../etc/passwd", "passwd"),
        ("/etc/cron.d/x", "x"),
        ("C:\\Windows\\System32\\x.dll", "x.dll"),
        ("dir/sub/file.iso", "file.iso"),
        (".bashrc", "_bashrc"),
        ("-rf", "_rf"),
        ("a&#10;b", "a_b"),
    ] {
        let file = only(&four(&format!("<file name=\"{raw}\"/>")));
        assert_eq!(file.name.as_str(), name, "{raw}");
    }
    for raw in ["", "..", "../..", "/", " ", "\u{200b}"] {
        assert!(matches!(fault(&four(&format!("<file name=\"{raw}\"/>"))), Fault::Name { .. }), "{raw:?}");
    }
}

#[test]
fn what_is_said_twice_is_said_once_or_refused() {
    let file = |inner: &str| four(&format!("<file name=\"f\">{inner}</file>"));
    let md5 = |digit: &str| format!("<hash type=\"md5\">{}</hash>", digit.repeat(32));
    assert_eq!(only(&file(&format!("{0}{0}<size>5</size><size>5</size>", md5("a")))).digests.len(), 1);
    assert!(matches!(fault(&file(&format!("{}{}", md5("a"), md5("b")))), Fault::TwoDigests { .. }));
    assert_eq!(fault(&file("<size>5</size><size>6</size>")), Fault::TwoSizes);
    let twins = four("<file name=\"a/x\"/><file name=\"b/x\"/>");
    assert!(matches!(fault(&twins), Fault::SameName { .. }));
}

#[test]
fn faults_name_their_place() {
    let text = four("\n<file name=\"f\">\n  <url>http://ünï/f</url> <hash type=\"sha-256\">xyz</hash></file>");
    let error = read(&text).expect_err("wrong hex");
    assert_eq!((error.line, error.column), (4, 27));
    assert_eq!(
        error.to_string(),
        "line 4, column 27: the sha-256 checksum \"xyz\" holds something else than hex digits"
    );
    let latin = Metalink::parse(b"<metalink>\n<a>\xe9</a>").expect_err("not UTF-8");
    assert_eq!((latin.line, latin.column, latin.fault), (2, 4, Fault::NotUtf8));
}

#[test]
fn what_cannot_be_read_is_refused() {
    let in_file = |inner: &str| four(&format!("<file name=\"f\">{inner}</file>"));
    assert!(matches!(fault(&in_file("<hash type=\"sha-1\">00</hash>")), Fault::Digest(_)));
    assert!(matches!(fault(&in_file("<hash type=\"sha-1\"/>")), Fault::Digest(_)));
    assert!(matches!(
        fault(&in_file("<pieces type=\"sha-1\" length=\"9\"><hash>xx</hash></pieces>")),
        Fault::Digest(_)
    ));
    assert!(matches!(fault(&in_file("<pieces type=\"sha-1\"><hash>xx</hash></pieces>")), Fault::PieceLength { .. }));
    for size in ["", "-1", "1.5", "0x10", "+3", "9223372036854775807", "99999999999999999999999999"] {
        assert!(matches!(fault(&in_file(&format!("<size>{size}</size>"))), Fault::Size { .. }), "{size}");
    }
    assert_eq!(fault(&four("<file/>")), Fault::NoName);
    assert_eq!(fault(&four("<generator>x</generator>")), Fault::NoFile);
    assert_eq!(fault(&four("")), Fault::NoFile);
    let whole = in_file("<size>5</size>");
    for end in 1..whole.trim_end().len() {
        let cut = &whole[..end];
        assert!(read(cut).is_err(), "cut short: {cut}");
    }
    assert!(matches!(fault(&format!("{whole}<more/>")), Fault::Xml { .. }));
    assert!(matches!(fault(&four("<file name=\"f\"></wrong>")), Fault::Xml { .. }));
    assert!(matches!(fault(&four("<file name=\"f\" name=\"g\"/>")), Fault::Xml { .. }));
}

#[test]
fn nothing_is_declared_and_nothing_expands() {
    let bomb = "<!DOCTYPE metalink [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\">]>\
                <metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"&b;\"/></metalink>";
    assert_eq!(fault(bomb), Fault::Doctype);
    let external = "<!DOCTYPE m SYSTEM \"file:///etc/passwd\"><metalink/>";
    assert_eq!(fault(external), Fault::Doctype);
    for text in [
        four("<file name=\"&b;\"/>"),
        four("<file name=\"f\"><url>http://h/&b;</url></file>"),
        four("<file name=\"f\"><description>&b;</description></file>"),
    ] {
        assert_eq!(fault(&text), Fault::Reference { name: "b".to_owned() }, "{text}");
    }
    let known = four("<file name=\"a&amp;b&#x2d;c\"><url><![CDATA[http://h/?a&b]]></url></file>");
    let file = only(&known);
    assert_eq!((file.name.as_str(), urls(&file)[0].0), ("a&b-c", "http://h/?a&b"));
}

#[test]
fn everything_that_grows_has_a_limit() {
    let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
    assert_eq!(fault(&four(&deep)), Fault::Depth);
    assert_eq!(fault(&four(&format!("<file name=\"f\">{deep}</file>"))), Fault::Depth);
    let attributes: String = (0..MAX_ATTRIBUTES + 1).map(|n| format!(" a{n}=\"\"")).collect();
    assert_eq!(fault(&four(&format!("<file{attributes}/>"))), Fault::Attributes);
    assert_eq!(fault(&four(&format!("<file name=\"{}\"/>", "x".repeat(MAX_TAG)))), Fault::LongTag);
    let long = "0".repeat(MAX_TEXT + 1);
    let text = four(&format!("<file name=\"f\"><size>{long}</size></file>"));
    assert_eq!(fault(&text), Fault::LongText { name: "size".to_owned() });
    let passed_over = four(&format!("<file name=\"f\"><signature>{long}</signature></file>"));
    assert_eq!(only(&passed_over).name.as_str(), "f");
    let files: String = (0..=MAX_FILES).map(|n| format!("<file name=\"{n}\"/>")).collect();
    assert_eq!(fault(&four(&files)), Fault::Files);
    let urls = "<url>http://h/f</url>".repeat(MAX_URLS + 1);
    assert_eq!(fault(&four(&format!("<file name=\"f\">{urls}</file>"))), Fault::Urls);
    assert_eq!(Metalink::parse(&vec![b' '; MAX_BYTES + 1]).expect_err("too large").fault, Fault::TooLarge);
}

#[test]
fn millions_of_pieces_are_left_out() {
    let hashes = "<hash>00000000</hash>".repeat(MAX_BYTES / 22);
    let file = only(&four(&format!("<file name=\"f\"><pieces type=\"crc32c\" length=\"1\">{hashes}</pieces></file>")));
    assert_eq!((file.pieces, file.pieces_left_out), (None, Some(BadPieces::TooMany)));
}

/// Bits of metalinks, in any order.
fn bits() -> impl Strategy<Value = String> {
    let bit = prop::sample::select(vec![
        "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">",
        "<metalink version=\"3.0\">",
        "</metalink>",
        "<files>",
        "</files>",
        "<file name=\"a\">",
        "<file name='../b'>",
        "</file>",
        "<size>",
        "</size>",
        "12",
        "<hash type=\"md5\">",
        "</hash>",
        "0cc175b9c0f1b6a831c399e269772661",
        "<pieces length=\"5\" type=\"md5\">",
        "</pieces>",
        "<url priority=\"1\">",
        "</url>",
        "http://h/f",
        "&amp;",
        "&#0;",
        "&x",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "<!DOCTYPE",
        "<",
        ">",
        "\"",
        "xmlns:x=\"",
        "<x:",
        "\u{feff}",
    ]);
    prop::collection::vec(bit, 0..40).prop_map(|bits| bits.concat())
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Metalink::parse(&bytes);
    }

    #[test]
    fn any_bits_are_read_or_refused(bits in bits()) {
        for text in [four(&bits), three(&bits), bits] {
            if let Ok(read) = Metalink::parse(text.as_bytes()) {
                prop_assert!(!read.files.is_empty());
                for file in read.files {
                    prop_assert!(!file.name.as_str().contains('/'));
                    prop_assert!(file.urls.is_sorted_by_key(|u| u.priority));
                }
            }
        }
    }
}
