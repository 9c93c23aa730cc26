//! Metalinks as mirror directors write them.

use super::*;
use crate::core::digest::Algorithm;

const FOUR: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!-- from a mirror director -->
<metalink xmlns="urn:ietf:params:xml:ns:metalink">
  <generator>Mirrors/2.19</generator>
  <origin dynamic="true">https://get.example.org/os/13/os-13.iso.meta4</origin>
  <published>2026-03-01T10:00:00Z</published>
  <file name="os-13.iso">
    <size>2500000</size>
    <description>An operating system &amp; more</description>
    <hash type="md5">0CC175B9C0F1B6A831C399E269772661</hash>
    <hash type="sha-1">86f7e437faa5a7fce15d1ddcb9eaeaea377667b8</hash>
    <hash type="sha-256">
      ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb
    </hash>
    <hash type="sha-384">00</hash>
    <pieces length="1048576" type="sha-1">
      <hash>86f7e437faa5a7fce15d1ddcb9eaeaea377667b8</hash>
      <hash>e9d71f5ee7c92d6dc9e92ffdad17b8bd49418f98</hash>
      <hash>84a516841ba77a5b4648de2cd0dfcb30ea46dbb4</hash>
    </pieces>
    <signature mediatype="application/pgp-signature">-----BEGIN PGP SIGNATURE-----
    ...
    </signature>
    <metaurl mediatype="torrent" priority="1">https://get.example.org/os-13.iso.torrent</metaurl>
    <url location="DE" priority="2">https://de.example.net/pub/os-13.iso</url>
    <url priority="1" location="at"> http://at.example.net/os-13.iso?a=1&amp;b=2 </url>
    <url>http://last.example.net/os-13.iso</url>
    <url location="us" priority="2">https://us.example.net/pub/os-13.iso</url>
    <url priority="3">ftp://ftp.example.net/pub/os-13.iso</url>
    <url priority="3">rsync://rsync.example.net/os-13.iso</url>
    <url priority="4">https://de.example.net/pub/os-13.iso</url>
  </file>
</metalink>
"#;

const THREE: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<metalink version="3.0" xmlns="http://www.metalinker.org/" type="dynamic" xmlns:mm0="http://mirrors.example.org/">
  <publisher><name>Example</name><url>http://www.example.org/</url></publisher>
  <files>
    <file name="tool-1.2.tar.gz">
      <mm0:timestamp>1772359200</mm0:timestamp>
      <size>600</size>
      <mm0:alternates><mm0:alternate><size>1</size></mm0:alternate></mm0:alternates>
      <verification>
        <hash type="md5">0cc175b9c0f1b6a831c399e269772661</hash>
        <hash type="sha1">86f7e437faa5a7fce15d1ddcb9eaeaea377667b8</hash>
        <pieces length="256" type="sha1">
          <hash piece="0">86f7e437faa5a7fce15d1ddcb9eaeaea377667b8</hash>
          <hash piece="1">e9d71f5ee7c92d6dc9e92ffdad17b8bd49418f98</hash>
          <hash piece="2">84a516841ba77a5b4648de2cd0dfcb30ea46dbb4</hash>
        </pieces>
      </verification>
      <resources maxconnections="1">
        <url protocol="http" type="http" location="US" preference="90">http://us.example.net/tool-1.2.tar.gz</url>
        <url type="ftp" preference="100">ftp://ftp.example.net/tool-1.2.tar.gz</url>
        <url type="bittorrent" preference="100">http://example.org/tool-1.2.tar.gz.torrent</url>
        <url type="https" location="GB" preference="100">https://gb.example.net/tool-1.2.tar.gz</url>
        <url>http://any.example.net/tool-1.2.tar.gz</url>
      </resources>
    </file>
    <file name="tool-1.2.tar.gz.sig"><resources><url type="http">http://us.example.net/sig</url></resources></file>
  </files>
</metalink>"#;

#[test]
fn version_4() {
    let file = only(FOUR);
    assert_eq!((file.name.as_str(), file.size), ("os-13.iso", Some(Length(2_500_000))));
    let algorithms: Vec<_> = file.digests.iter().map(|d| d.algorithm).collect();
    assert_eq!(algorithms, [Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256], "those that we know");
    assert!(file.law().is_some_and(|d| d.to_string().starts_with("sha-256=ca978112")));
    let pieces = file.pieces.as_ref().expect("pieces");
    assert_eq!((pieces.count(), pieces.length(), pieces.algorithm()), (3, Length(1 << 20), Algorithm::Sha1));
    assert_eq!(pieces.digest(1).map(hex::encode).as_deref(), Some("e9d71f5ee7c92d6dc9e92ffdad17b8bd49418f98"));
    assert_eq!(
        urls(&file),
        [
            ("http://at.example.net/os-13.iso?a=1&b=2", 1),
            ("https://de.example.net/pub/os-13.iso", 2),
            ("https://us.example.net/pub/os-13.iso", 2),
            ("http://last.example.net/os-13.iso", LAST_PRIORITY),
        ]
    );
    let countries: Vec<_> = file.urls.iter().map(|u| u.location.as_deref()).collect();
    assert_eq!(countries, [Some("at"), Some("de"), Some("us"), None]);
    assert_eq!((file.urls_left_out, file.pieces_left_out), (2, None));
}

#[test]
fn version_3() {
    let files = read(THREE).expect("good").files;
    assert_eq!(files.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["tool-1.2.tar.gz", "tool-1.2.tar.gz.sig"]);
    let file = &files[0];
    assert_eq!(file.size, Some(Length(600)), "not that of another vocabulary");
    assert_eq!(file.law().map(|d| d.algorithm), Some(Algorithm::Sha1));
    assert_eq!(file.pieces.as_ref().map(|p| p.count()), Some(3));
    assert_eq!(
        urls(file),
        [
            ("https://gb.example.net/tool-1.2.tar.gz", 1),
            ("http://us.example.net/tool-1.2.tar.gz", 11),
            ("http://any.example.net/tool-1.2.tar.gz", LAST_PRIORITY),
        ]
    );
    assert_eq!(file.urls_left_out, 2, "the torrent and ftp");
    assert_eq!((files[1].size, files[1].law(), &files[1].pieces), (None, None, &None));
}

#[test]
fn versions_are_told_by_their_namespace() {
    let inner = "<file name=\"f\"><url>http://h/f</url></file>";
    let prefixed = "<m:metalink xmlns:m=\"urn:ietf:params:xml:ns:metalink\" xmlns=\"x\"><m:file name=\"f\">\
                    <m:url>http://h/f</m:url><url>http://h/not</url></m:file></m:metalink>";
    assert_eq!(urls(&only(prefixed)), [("http://h/f", LAST_PRIORITY)]);
    let bare_three = format!("<metalink version=\"3.0\"><files>{inner}</files></metalink>");
    assert_eq!(only(&bare_three).name.as_str(), "f");
    let bom = format!("\u{feff}{}", four(inner));
    assert_eq!(only(&bom).urls.len(), 1);
    let foreign = four("<file name=\"f\"><url xmlns=\"urn:x\">http://h/not</url><url>http://h/f</url></file>");
    assert_eq!(urls(&only(&foreign)), [("http://h/f", LAST_PRIORITY)]);
    for other in [
        format!("<metalink xmlns=\"urn:other\">{inner}</metalink>"),
        format!("<metalink>{inner}</metalink>"),
        format!("<metalink version=\"4.0\">{inner}</metalink>"),
        "<html><body>Not found</body></html>".to_owned(),
        "<!-- nothing -->".to_owned(),
        "SHA256 (x) = 00".to_owned(),
        String::new(),
    ] {
        assert!(matches!(fault(&other), Fault::NotMetalink { .. }), "{other}");
    }
}

#[test]
fn priorities_that_are_none_are_the_last() {
    for (text, priority) in
        [("1", 1), (" 7 ", 7), ("999999", LAST_PRIORITY), ("0", LAST_PRIORITY), ("-1", LAST_PRIORITY)]
    {
        let file = only(&four(&format!("<file name=\"f\"><url priority=\"{text}\">http://h/f</url></file>")));
        assert_eq!(file.urls[0].priority, priority, "{text}");
    }
    for (text, priority) in [("100", 1), ("500", 1), ("0", 101), ("x", LAST_PRIORITY)] {
        let file = only(&three(&format!("<file name=\"f\"><url preference=\"{text}\">http://h/f</url></file>")));
        assert_eq!(file.urls[0].priority, priority, "{text}");
    }
}

#[test]
fn the_strongest_pieces_are_taken_and_useless_ones_left_out() {
    let md5 = |n: usize| {
        format!(
            "<pieces type=\"md5\" length=\"10\">{}</pieces>",
            "<hash>0cc175b9c0f1b6a831c399e269772661</hash>".repeat(n)
        )
    };
    let crc = "<pieces type=\"crc32c\" length=\"5\"><hash>00000000</hash></pieces>";
    let with = |inner: &str| only(&four(&format!("<file name=\"f\"><size>25</size>{inner}</file>")));
    for inner in [format!("{}{crc}", md5(3)), format!("{crc}{}", md5(3))] {
        assert_eq!(with(&inner).pieces.map(|p| p.algorithm()), Some(Algorithm::Md5));
    }
    let short = with(&md5(2));
    assert_eq!((short.pieces, short.pieces_left_out), (None, Some(BadPieces::OtherCount { pieces: 2, wanted: 3 })));
    let unknown = with("<pieces type=\"tiger\" length=\"x\"><hash>zz</hash></pieces>");
    assert_eq!((unknown.pieces, unknown.pieces_left_out), (None, None));
    let numbered = "<pieces type=\"crc32c\" length=\"20\"><hash piece=\"1\">00000000</hash><hash piece=\"0\">00000000</hash></pieces>";
    assert_eq!(with(numbered).pieces_left_out, Some(BadPieces::Disorder));
    assert_eq!(with("<pieces type=\"md5\" length=\"0\"/>").pieces_left_out, Some(BadPieces::NoLength));
    assert_eq!(with("<pieces type=\"md5\" length=\"9\"/>").pieces_left_out, Some(BadPieces::None));
}
