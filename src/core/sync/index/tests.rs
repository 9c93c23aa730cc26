//! Indexes of every form, whole and in pieces, and what may come in their place.

use proptest::prelude::*;

use super::*;
use crate::core::range::Length;
use crate::core::sync::path::TreePath;
use crate::core::sync::stamp;

/// As CollecTor writes it, with a field that nobody knows yet.
const COLLECTOR: &str = r#"{"index_created":"2016-10-01 12:05","build_revision":"abc","path":"https://collector.torproject.org",
"directories":[{"path":"recent","directories":[
 {"path":"exit-lists","files":[
  {"path":"2016-10-01-12-02-01","size":1234,"last_modified":"2016-10-01 12:03","types":["tordnsel 1.0"],
   "first_published":"2016-10-01 12:02","sha256":"ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="},
  {"path":"2016-10-01-11-02-01","size":99,"last_modified":"soon","future":{"a":[1,{"b":null}],"c":true}}]},
 {"path":"exit-lists-old","files":[{"path":"x","size":1,"last_modified":"2016-10-01 12:03"}]},
 {"path":"torperf"}]},
 {"path":"archive","directories":[{"path":"exit-lists","files":[{"path":"big.tar.xz","size":5}]}]}],
"files":[{"path":"index.html","size":7}]}"#;

fn part(text: &str) -> Part {
    Part::Below(TreePath::parse(text).expect(text))
}

fn read_in(form: Form, parts: &[Part], name: &str, bytes: &[u8], piece: usize) -> Result<Index, BadIndex> {
    let mut reader = Reader::new(form, parts, name);
    bytes.chunks(piece.max(1)).try_for_each(|chunk| reader.feed(chunk))?;
    reader.finish()
}

fn json(text: &str) -> Result<Index, BadIndex> {
    read_in(Form::Json, &[Part::All], "index.json", text.as_bytes(), text.len())
}

fn paths(index: &Index) -> Vec<&str> {
    index.listing.iter().map(|entry| entry.path).collect()
}

/// A list of files in one folder.
fn with_files(files: &str) -> String {
    format!(r#"{{"path":"http://x","directories":[{{"path":"d","files":[{files}]}}]}}"#)
}

#[test]
fn collectors_own_index_of_one_module() {
    for piece in [1, 3, 100, COLLECTOR.len()] {
        let parts = [part("recent/exit-lists")];
        let index = read_in(Form::Json, &parts, "index.json", COLLECTOR.as_bytes(), piece).expect("an index");
        assert_eq!(paths(&index), ["recent/exit-lists/2016-10-01-11-02-01", "recent/exit-lists/2016-10-01-12-02-01"]);
        let entry = index.listing.find("recent/exit-lists/2016-10-01-12-02-01").expect("there");
        assert_eq!((entry.size, entry.modified), (Some(Length(1234)), stamp::parse("2016-10-01 12:03")));
        let digest = entry.digest.expect("a digest").expected().hex();
        assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let odd = index.listing.get(0).expect("there");
        assert_eq!((odd.size, odd.modified, odd.digest), (Some(Length(99)), None, None), "kept for its size");
        assert_eq!(index.folders.iter().map(String::as_str).collect::<Vec<_>>(), ["", "recent", "recent/exit-lists"]);
        assert_eq!(index.created, stamp::parse("2016-10-01 12:05"));
        assert_eq!(index.claimed_base.as_deref(), Some("https://collector.torproject.org"));
        assert_eq!(index.refused, Refused::default());
    }
}

#[test]
fn b10_a_folder_that_is_missing_is_not_empty() {
    let index = read_in(Form::Json, &[part("recent/torperf"), part("recent/webstats")], "x", COLLECTOR.as_bytes(), 64);
    let index = index.expect("an index");
    assert!(index.listing.is_empty() && index.folders.contains("recent/torperf"));
    assert!(!index.folders.contains("recent/webstats"));
}

#[test]
fn b08_names_are_refused_one_by_one() {
    let names =
        ["../../x", "/etc/x", "a/../b", "a\\\\b", ".hidden", "x.tmp", "nul\\u0000", "", "..", "f.persxfer-part"];
    let bad: Vec<_> = names.iter().map(|name| format!(r#"{{"path":"{name}","size":1}}"#)).collect();
    let index = json(&with_files(&format!(r#"{},{{"path":"good","size":1}}"#, bad.join(",")))).expect("an index");
    assert_eq!(paths(&index), ["d/good"]);
    assert_eq!((index.refused.count, index.refused.told.len()), (names.len(), names.len()));
    assert!(index.refused.told[0].contains("leads out") || index.refused.told[0].contains("separator"));
    for folders in [
        r#"{"directories":[{"path":"..","files":[{"path":"x"}]},{"path":"/etc","files":[{"path":"x"}]},
            {"files":[]},{"path":"ok","files":[{"path":"y"}]}]}"#,
        r#"{"directories":[{"files":[{"path":"x"}],"path":".."},{"files":[{"path":"x"}],"path":"/etc"},
            {"files":[{"path":"z"}]},{"files":[{"path":"y"}],"path":"ok"}]}"#,
    ] {
        let index = json(folders).expect("an index");
        assert_eq!((paths(&index), index.refused.count), (vec!["ok/y"], 3));
    }
}

#[test]
fn keys_may_come_in_any_order() {
    let value: serde_json::Value = serde_json::from_str(COLLECTOR).expect("JSON");
    // Its keys are sorted now: what is in a folder stands before the folder's path.
    let sorted = value.to_string();
    assert!(sorted.find("\"directories\"") < sorted.find("\"path\""));
    for parts in [vec![Part::All], vec![part("recent/exit-lists")], vec![part("recent/torperf")]] {
        let read = |text: &str| {
            let index = read_in(Form::Json, &parts, "x", text.as_bytes(), 50).expect("an index");
            let files: Vec<_> = index.listing.iter().map(|e| (e.path.to_owned(), e.size, e.modified)).collect();
            (files, index.folders, index.claimed_base)
        };
        assert_eq!(read(&sorted), read(COLLECTOR));
    }
}

#[test]
fn entries_that_make_no_sense_are_refused_alone() {
    for bad in [
        r#"{"path":"x","size":-1}"#,
        r#"{"path":"x","size":1.5}"#,
        r#"{"path":"x","size":99999999999999999999}"#,
        r#"{"path":"x","size":{"a":1}}"#,
        r#"{"path":"x","size":18446744073709551615}"#,
        r#"{"path":"x","sha256":"zz"}"#,
        r#"{"path":"x","sha256":7}"#,
        r#"{"path":7}"#,
        r#"{"size":7}"#,
    ] {
        let index = json(&with_files(&format!(r#"{bad},{{"path":"good"}}"#))).unwrap_or_else(|e| panic!("{bad}: {e}"));
        assert_eq!((paths(&index), index.refused.count), (vec!["d/good"], 1), "{bad}");
    }
}

#[test]
fn two_names_that_are_one_somewhere() {
    let index =
        json(&with_files(r#"{"path":"B","size":1},{"path":"b","size":2},{"path":"c","size":3},{"path":"c","size":4}"#));
    let index = index.expect("an index");
    assert_eq!((paths(&index), index.refused.count), (vec!["d/B", "d/c"], 2));
    assert_eq!(index.listing.find("d/c").and_then(|e| e.size), Some(Length(4)));
}

#[test]
fn what_is_a_folder_is_no_file() {
    let text = r#"{"files":[{"path":"a"},{"path":"b"}],"directories":[{"path":"a","files":[{"path":"x"}]}]}"#;
    let index = json(text).expect("an index");
    assert_eq!((paths(&index), index.refused.count), (vec!["a/x", "b"], 1));
}

#[test]
fn b09_what_is_no_index() {
    let nested = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let within = with_files(&format!(r#"{{"path":"x","y":{nested}}}"#));
    for (text, told) in [
        ("", "ends before"),
        ("<html>404</html>", "byte 0 makes no sense"),
        ("[]", "it is a list"),
        ("{}", "neither files nor directories"),
        ("7", "neither files nor directories"),
        (r#"{"files":[]} x"#, "byte 13"),
        (r#"{"files":[}"#, "byte 10"),
        (r#"{"files":[{"path":"a"}"#, "ends before"),
        (r#"{"files":["#, "ends before"),
        (r#"{"files":[],}"#, "byte 12"),
        (nested.as_str(), "it is a list"),
        (within.as_str(), "nests more than 64 deep"),
    ] {
        let error = json(text).map(|_| ()).expect_err(text).to_string();
        assert!(error.contains(told), "{text:.40}: {error}");
    }
    let long = with_files(&format!(r#"{{"path":"{}"}}"#, "x".repeat(100_000)));
    for piece in [1_000, 200_000] {
        let read = read_in(Form::Json, &[Part::All], "x", long.as_bytes(), piece);
        assert_eq!(read.map(|_| ()), Err(BadIndex::TooLong { limit: json::MAX_TEXT }));
    }
}

#[test]
fn b22_an_index_of_300_000_entries_takes_little_memory() {
    let mut reader = Reader::new(Form::Json, &[part("recent/relay-descriptors")], "index.json");
    let open =
        r#"{"path":"http://x","directories":[{"path":"recent","directories":[{"path":"relay-descriptors","files":["#;
    reader.feed(open.as_bytes()).expect("fed");
    for n in 0..300_000 {
        let comma = if n == 0 { "" } else { "," };
        let file = format!(
            r#"{comma}{{"path":"2016-10-01-12-00-00-vote-{n:040X}","size":{n},"last_modified":"2016-10-01 12:03","sha256":"{n:064x}"}}"#
        );
        reader.feed(file.as_bytes()).expect("fed");
    }
    reader.feed(b"]}]}]}").expect("fed");
    let index = reader.finish().expect("an index");
    assert_eq!(index.listing.len(), 300_000);
    assert!(index.listing.footprint() < 100 << 20, "{} bytes", index.listing.footprint());
    let last = index.listing.get(299_999).expect("there");
    assert_eq!(last.digest.map(|d| d.expected().hex()), Some(format!("{:064x}", 299_999)));
}

#[test]
fn lists_of_checksums_and_metalinks() {
    let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let list = format!("{hex}  ./pool/a/x\n{hex} *pool/y\n{hex}  ../z\n# a comment\n{hex}  other/w\n");
    let index = read_in(Form::Sums, &[part("pool")], "SHA256SUMS", list.as_bytes(), 7).expect("a list");
    assert_eq!(paths(&index), ["pool/a/x", "pool/y"]);
    assert_eq!(index.folders.iter().map(String::as_str).collect::<Vec<_>>(), ["", "pool", "pool/a"]);
    assert_eq!(index.refused.count, 1);
    assert!(read_in(Form::Sums, &[Part::All], "list", list.as_bytes(), 7).is_err(), "by which algorithm?");
    let metalink = format!(
        r#"<metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="a.iso"><size>7</size>
           <hash type="sha-256">{hex}</hash><url>http://m.example/a.iso</url></file></metalink>"#
    );
    let index = read_in(Form::Metalink, &[Part::All], "x.meta4", metalink.as_bytes(), 10).expect("a metalink");
    let entry = index.listing.find("a.iso").expect("there");
    assert_eq!((entry.size, entry.digest.map(|d| d.expected().hex())), (Some(Length(7)), Some(hex.to_owned())));
    assert_eq!(index.mirrors[0].1[0].to_string(), "http://m.example/a.iso");
    assert!(read_in(Form::Metalink, &[Part::All], "x.meta4", b"<x/>", 10).is_err());
}

const NGINX: &str = "<html>\r\n<head><title>Index of /t/</title></head>\r\n<body>\r\n<h1>Index of /t/</h1><hr><pre>\
<a href=\"../\">../</a>\r\n<a href=\"sub%20dir/\">sub dir/</a>                    01-Oct-2016 12:00                   -\r\n\
<a href=\"a%26b.txt\">a&amp;b.txt</a>                01-Oct-2016 12:03                1234\r\n\
<a href=\"c%2Fd\">c/d</a>          01-Oct-2016 12:03                1\r\n</pre><hr></body>\r\n</html>\r\n";

const APACHE: &str = r#"<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN">
<html><head><title>Index of /t</title></head><body><h1>Index of /t</h1><table>
<tr><th><a href="?C=N;O=D">Name</a></th><th><a href="?C=M;O=A">Last modified</a></th></tr>
<tr><td><a href="/">Parent Directory</a></td><td>&nbsp;</td><td align="right">  - </td></tr>
<tr><td valign="top"><a href="x.iso"><img src="/i.gif"></a></td><td><a href="x.iso">x.iso</a></td><td align="right">2016-10-01 12:03  </td><td align="right">1.2K</td><td>&nbsp;</td></tr>
<tr><td><a href="s.txt">s.txt</a></td><td align="right">2016-10-01 12:04  </td><td align="right"> 91 </td></tr>
<tr><td><a href="sub/">sub/</a></td><td align="right">2016-10-01 12:03  </td><td align="right">  - </td></tr>
</table><address>Apache</address></body></html>"#;

const LIGHTTPD: &str = r#"<html xmlns="http://www.w3.org/1999/xhtml"><body><table>
<tr class="d"><td class="n"><a href="../">..</a>/</td><td class="m">&nbsp;</td><td class="s">- &nbsp;</td></tr>
<tr class="d"><td class="n"><a href="sub/">sub</a>/</td><td class="m">2016-Oct-01 12:03:04</td><td class="s">- &nbsp;</td><td class="t">Directory</td></tr>
<tr><td class="n"><a href="x.iso">x.iso</a></td><td class="m">2016-Oct-01 12:03:04</td><td class="s">1.2K</td><td class="t">application/octet-stream</td></tr>
</table></body></html>"#;

const NGINX_JSON: &str = r#"[ { "name":"sub", "type":"directory", "mtime":"Sat, 01 Oct 2016 12:00:00 GMT" },
{ "name":"x\u0041.iso", "type":"file", "mtime":"Sat, 01 Oct 2016 12:03:00 GMT", "size":1234 } ]"#;

#[test]
fn pages_of_every_server() {
    let listed = |text: &str| {
        let page = Page::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}: {text}"));
        let files: Vec<_> =
            page.files.into_iter().map(|f| (f.name, f.size.map(|s| s.0), f.modified.map(stamp::second))).collect();
        (files, page.folders)
    };
    let at = |text: &str| Some(text.to_owned());
    let file = |name: &str, size, time| (name.to_owned(), size, at(time));
    assert_eq!(
        listed(NGINX),
        (
            vec![file("a&b.txt", Some(1234), "2016-10-01 12:03:00"), file("c/d", Some(1), "2016-10-01 12:03:00")],
            vec!["sub dir".to_owned()]
        )
    );
    assert_eq!(
        listed(APACHE),
        (
            vec![file("x.iso", None, "2016-10-01 12:03:00"), file("s.txt", Some(91), "2016-10-01 12:04:00")],
            vec!["sub".to_owned()]
        )
    );
    assert_eq!(listed(LIGHTTPD), (vec![file("x.iso", None, "2016-10-01 12:03:04")], vec!["sub".to_owned()]));
    assert_eq!(listed(NGINX_JSON), (vec![file("xA.iso", Some(1234), "2016-10-01 12:03:00")], vec!["sub".to_owned()]));
    assert_eq!(listed("[]"), (vec![], vec![]));
}

#[test]
fn what_is_no_page() {
    for text in ["", "hello", "<html><body>Not found</body></html>", "[{\"name\":", &NGINX[..300]] {
        assert!(Page::parse(text.as_bytes()).is_err(), "{text:?}");
    }
}

#[test]
fn pages_are_followed_only_where_something_of_ours_may_be() {
    let mut pages = Pages::new(&[part("t/sub dir")]);
    assert_eq!(pages.take("", b"<html><a href=\"t/\">t</a><a href=\"u/\">u</a></html>").expect("a page"), ["t"]);
    assert_eq!(pages.take("t", NGINX.as_bytes()).expect("a page"), ["t/sub dir"]);
    assert_eq!(
        pages.take("t/sub dir", b"<html><a href=\"x\">x</a><a href=\"e/\">e</a></html>").expect("a page"),
        ["t/sub dir/e"]
    );
    let index = pages.finish();
    assert_eq!(paths(&index), ["t/sub dir/x"]);
    assert!(index.folders.contains("t/sub dir") && !index.folders.contains("t/sub dir/e"), "its page was not seen");
    assert_eq!(index.refused.count, 1, "a separator in a name");
}

#[test]
fn a_mark_of_the_byte_order_may_come_in_pieces_and_only_whole() {
    let index = b"{\"files\":[{\"path\":\"a\"}]}";
    let read =
        |bytes: &[u8], piece| read_in(Form::Json, &[Part::All], "x", bytes, piece).map(|index| paths(&index).join(" "));
    for piece in 1..5 {
        assert_eq!(read(&[b"\xef\xbb\xbf", &index[..]].concat(), piece), Ok("a".to_owned()), "{piece}");
        for (bad, at) in
            [(&b"\xef\xbb"[..], 2), (b"\xef", 1), (b"\xbb", 0), (b" \xef\xbb\xbf", 1), (b"\xef\xbb\xbf\xef", 3)]
        {
            assert_eq!(read(&[bad, &index[..]].concat(), piece), Err(BadIndex::Syntax { at }), "{bad:?} by {piece}");
        }
    }
}

proptest! {
    #[test]
    fn anything_may_come(text in r#"(?s)([{}\[\],:]|"(path|files|directories|size|x)"|"[a-z./]{0,3}"|[0-9]{1,3}|true|.){0,40}"#, piece in 1..9_usize) {
        let whole = json(&text).map(|index| paths(&index).join(" "));
        let pieces = read_in(Form::Json, &[Part::All], "x", text.as_bytes(), piece).map(|index| paths(&index).join(" "));
        prop_assert_eq!(whole, pieces);
        let _ = Page::parse(text.as_bytes());
        let _ = Page::parse(format!("<html><a {text}</html>").as_bytes());
    }

    #[test]
    fn json_is_what_serde_takes_for_json(text in r#"([{}\[\],: ]|"([a-z]|\\n|\\u00e9|\\")*"|-?[0-9]{1,3}(\.5)?|true|null){1,14}"#) {
        let ours = json(&format!("{{\"files\":[],\"x\":{text}}}"));
        let theirs: Result<serde_json::Value, _> = serde_json::from_str(&format!("{{\"files\":[],\"x\":{text}}}"));
        if let Ok(value) = theirs {
            let twice = value.as_object().is_some_and(|object| object.len() != 2);
            prop_assert!(ours.is_ok() || twice, "{text}: {:?}", ours.err());
        }
    }

    #[test]
    fn all_that_is_listed_can_be_created_below_a_folder(name in r"[a./\\ \u{0}-]{0,8}(\.tmp)?") {
        let text = serde_json::json!({"directories": [{"path": "d", "files": [{"path": name}]}]}).to_string();
        let index = json(&text).expect("an index");
        for entry in index.listing.iter() {
            prop_assert!(TreePath::parse(entry.path).is_ok());
        }
        prop_assert_eq!(index.listing.len() + index.refused.count, 1);
    }
}
