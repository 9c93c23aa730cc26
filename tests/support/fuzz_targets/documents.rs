//! Whole documents: metalinks and the client-state file.

use std::collections::HashSet;

use persxfer::core::metalink::{LAST_PRIORITY, MAX_FILES, MAX_URLS, Metalink};
use persxfer::core::pers_xfer::record::Record;
use persxfer::core::range::Length;
use persxfer::core::state::{Document, Found, Kind};

use super::{assert_printable, names, text};
use crate::fuzz::{Target, kind};

/// Metalinks of both versions.
pub(super) const METALINK: Target = Target {
    name: "metalink",
    run: metalink,
    words: &[
        "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">",
        "</metalink>",
        "<file name=\"x\">",
        "</file>",
        "<size>",
        "</size>",
        "<hash type=\"sha-256\">",
        "</hash>",
        "<pieces type=\"sha-1\" length=\"1\">",
        "</pieces>",
        "<url priority=\"1\">",
        "</url>",
        "<url>http://a.example/x</url>",
        "<files>",
        "</files>",
        "<resources>",
        "</resources>",
        "<verification>",
        "</verification>",
        "version=\"3.0\"",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?xml version=\"1.0\"?>",
        "<!DOCTYPE x>",
        "&amp;",
        "&#x41;",
        "&x;",
        "xmlns:m=\"urn:ietf:params:xml:ns:metalink\"",
        "m:",
        " location=\"de\"",
        " preference=\"100\"",
        "/>",
        "<x>",
        "<x/>",
        "<file name=\"y\"><url>http://b.example/y</url></file>",
    ],
    runs: 8_000,
    grows_from: 4 << 10,
    frames: &[
        ("<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">", "</metalink>"),
        ("<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"x\">", "</file></metalink>"),
        ("<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file ", "/></metalink>"),
        ("", ""),
    ],
};

fn metalink(data: &[u8]) -> u32 {
    let read = match Metalink::parse(data) {
        Ok(read) => read,
        Err(bad) => {
            assert_printable(&bad);
            assert!(bad.line >= 1 && bad.column >= 1 && bad.line <= data.iter().filter(|b| **b == b'\n').count() + 1);
            let fault = format!("{:?}", bad.fault);
            let word = fault.split([' ', '(']).next().unwrap_or_default();
            return kind(&[0, word.bytes().map(usize::from).sum::<usize>() % 997]);
        }
    };
    assert!((1..=MAX_FILES).contains(&read.files.len()));
    let named: HashSet<&str> = read.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(named.len(), read.files.len());
    for file in &read.files {
        names::check_name(&file.name, true);
        assert!(file.size.is_none_or(|size| size <= Length::LARGEST_FILE) && file.urls.len() <= MAX_URLS);
        let algorithms: HashSet<_> = file.digests.iter().map(|d| d.algorithm.name()).collect();
        assert_eq!(algorithms.len(), file.digests.len());
        assert!(file.digests.iter().all(|d| d.bytes.len() == d.algorithm.output_len()));
        assert_eq!(file.law().is_some(), !file.digests.is_empty());
        assert!(file.urls.is_sorted_by_key(|u| u.priority));
        assert!(file.urls.iter().all(|u| (1..=LAST_PRIORITY).contains(&u.priority)));
        assert!(
            file.urls
                .iter()
                .flat_map(|u| &u.location)
                .all(|l| l.len() == 2 && l.bytes().all(|b| b.is_ascii_lowercase()))
        );
        let urls: HashSet<&str> = file.urls.iter().map(|u| u.url.secret_url().as_str()).collect();
        assert_eq!(urls.len(), file.urls.len());
        if let (Some(pieces), Some(size)) = (&file.pieces, file.size) {
            assert_eq!(pieces.check_count(size), Ok(()));
        }
        file.pieces_left_out.iter().for_each(assert_printable);
    }
    let urls = read.files.iter().map(|f| f.urls.len()).sum();
    let left_out = read.files.iter().map(|f| f.urls_left_out).sum();
    let pieces = read.files.iter().filter(|f| f.pieces.is_some()).count();
    kind(&[1, read.files.len(), urls, left_out, pieces, read.files.iter().map(|f| f.digests.len()).sum()])
}

/// The client-state file: read, written as it is, written with every record put again, and read back.
pub(super) const CLIENT_STATE: Target = Target {
    name: "client_state",
    run: client_state,
    words: &[
        "<client_state>",
        "</client_state>",
        "<file_info>",
        "</file_info>",
        "<file>",
        "</file>",
        "<name>",
        "</name>",
        "<persxfer>",
        "</persxfer>",
        "<id>00000000000000aa</id>",
        "<path>/a</path>",
        "<path encoding=\"percent\">%ff</path>",
        "<status>",
        "</status>",
        "<download_url>http://h.example/x</download_url>",
        "<upload_url>http://h.example/x</upload_url>",
        "<nbytes>5</nbytes>",
        "<persistent_file_xfer>",
        "</persistent_file_xfer>",
        "<is_upload/>",
        "<num_retries>3</num_retries>",
        "<mirror>",
        "</mirror>",
        "<dossier>",
        "</dossier>",
        "<part>",
        "</part>",
        "<segments>",
        "</segments>",
        "<segment>0 5</segment>",
        "<held>5</held>",
        "<failure>",
        "</failure>",
        "<finished>",
        "</finished>",
        "<options>",
        "</options>",
        "<wish>retry</wish>",
        "<owner>",
        "</owner>",
        "<pieces>",
        "</pieces>",
        "<digest>md5=d41d8cd98f00b204e9800998ecf8427e</digest>",
        "<host>",
        "</host>",
        "<origin>http://h.example</origin>",
        "<zz/>",
        "<zz>",
        "</zz>",
        "<!-- x -->",
        "<![CDATA[",
        "]]>",
        "<?zz?>",
        "<project>",
        "</project>",
        "<host_info/>",
        "&amp;",
        "&#x9;",
        "&#27;",
        "&",
        "0x10",
        "1e300",
        "nan",
        "-1",
        "<generation>7</generation>",
        "<format>2</format>",
        "<backoff><n>2</n></backoff>",
        "<uploaded/>",
        "<etag>W/\"x\"</etag>",
        "\u{feff}",
        "<x k='>'/>",
    ],
    runs: 2_500,
    // Every word in four frames, each read and written many times.
    grows_from: 1 << 10,
    frames: &[
        ("<client_state>", "</client_state>"),
        ("<client_state><file_info><name>x</name>", "</file_info></client_state>"),
        ("<client_state><file_info><persxfer>", "</persxfer></file_info></client_state>"),
        ("<client_state><persxfer>", "</persxfer></client_state>"),
    ],
};

fn client_state(data: &[u8]) -> u32 {
    let document = match Document::parse(data) {
        Ok(document) => document,
        Err(damage) => {
            assert_printable(&damage);
            assert!(damage.line >= 1 && damage.column >= 1 && damage.offset <= text(data).len());
            return kind(&[0, damage.expected.len()]);
        }
    };
    let records = consistent(&document);
    assert!(!document.is_changed() && document.fault().is_none());
    let (plain, again) = written(&document);
    assert_eq!((&records, document.hosts()), (&consistent(&again), again.hosts()), "{}", text(&plain));
    assert_eq!(text(&plain), text(&again.to_bytes()), "a rewrite changes nothing more");
    put_all(&document, &records);
    strangers_stay(data, records.len());
    kind(&[1, records.len(), document.hosts().len(), document.kind() as usize, records.iter().map(weight).sum()])
}

/// How much a record says.
fn weight(record: &Record) -> usize {
    let said = [
        record.path.is_some(),
        record.folder.is_some(),
        record.nbytes.is_some(),
        record.pieces.is_some(),
        record.finished.is_some(),
        record.owner.is_some(),
        record.apart,
        !record.wishes.is_empty(),
        !record.history.is_empty(),
        !record.digests.is_empty(),
    ];
    said.into_iter().filter(|s| *s).count() + record.mirrors.len()
}

/// Every record is found by its identity and its name, and no identity is there twice.
fn consistent(document: &Document) -> Vec<Record> {
    let records: Vec<Record> = document.transfers().collect();
    let ids: HashSet<_> = document.ids().collect();
    assert_eq!((records.len(), ids.len()), (document.len(), document.len()));
    for record in &records {
        assert_eq!(document.get(record.id).as_ref(), Some(record));
        assert_eq!(document.owner(record.id), record.owner);
        let found = document.find(&record.name);
        let is_there = matches!(&found, Found::One(id) if *id == record.id)
            || matches!(&found, Found::Many(ids) if ids.contains(&record.id));
        // Nobody can mean a transfer without a name by its name.
        assert!(is_there || record.name.is_empty(), "{:?} finds {found:?}", record.name);
        assert!(record.path.as_ref().is_none_or(|path| document.at_path(path).contains(&record.id)));
    }
    records
}

/// The bytes, and the document that is read from them.
fn written(document: &Document) -> (Vec<u8>, Document) {
    let bytes = document.to_bytes();
    let again = Document::parse(&bytes).unwrap_or_else(|damage| panic!("{damage} in {}", text(&bytes)));
    assert!(bytes.starts_with(b"<client_state>"));
    // What we write is marked as ours.
    assert_eq!(again.kind(), Kind::Ours);
    (bytes, again)
}

/// Puts every record in its place: it reads back as the same, and the second time changes nothing.
fn put_all(document: &Document, records: &[Record]) {
    let mut changed = document.clone();
    records.iter().for_each(|record| changed.put(record));
    assert!(changed.fault().is_none(), "{:?}", changed.fault());
    let (bytes, mut again) = written(&changed);
    assert_eq!(records, consistent(&again), "{}", text(&bytes));
    records.iter().for_each(|record| again.put(record));
    assert_eq!(text(&bytes), text(&again.to_bytes()), "a record put twice changes nothing more");
}

/// An element that nobody knows, at the top and in the first record, is there once after every record was put.
fn strangers_stay(data: &[u8], count: usize) {
    const STRANGER: &str = "<zzz kept=\"1\">&amp;<persxfer/></zzz>";
    let text = text(data);
    for place in ["<client_state>", "<file_info>"] {
        let Some((before, behind)) = text.split_once(place) else { continue };
        // Inside of something that is written anew, or of the XML declaration, it may go.
        let outside = before.matches("<persxfer").count() == before.matches("</persxfer>").count()
            && !before.contains("<file")
            && !before.contains("<?xml")
            // What stands in a CDATA section is text, of an element of ours perhaps, whatever it looks like.
            && before.rfind("<![CDATA[") <= before.rfind("]]>");
        let planted = format!("{before}{place}{STRANGER}{behind}");
        let Ok(mut document) = Document::parse(planted.as_bytes()) else { continue };
        if !outside || document.len() != count {
            continue;
        }
        let records: Vec<Record> = document.transfers().collect();
        records.iter().for_each(|record| document.put(record));
        let rewritten = document.to_bytes();
        let rewritten = String::from_utf8_lossy(&rewritten);
        assert_eq!(rewritten.matches(STRANGER).count(), 1, "{planted}\nbecomes\n{rewritten}");
    }
}
