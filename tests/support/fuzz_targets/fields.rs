//! Fields of an answer's head, one by one and together.

use http::HeaderMap;
use http::header::{self, HeaderName, HeaderValue};

use persxfer::core::digest::{Expected, content_digests, repr_digests};
use persxfer::core::file_xfer::{AnswerHead, Framing};
use persxfer::core::links::{MAX_DUPLICATES, described_by, duplicates, links};
use persxfer::core::name::SafeName;
use persxfer::core::range::{ContentRange, Length, content_length};
use persxfer::core::retry_after::{self, RETRY_AFTER_CAP};
use persxfer::core::time::{Delay, Epoch};
use persxfer::core::validator::{ETag, Sameness, Validators, http_date, read_http_date};
use persxfer::io::transport::UserHeader;

use super::{PLAIN, assert_harmless, assert_printable, names, text, url};
use crate::fuzz::{Target, kind};

const NOW: Epoch = Epoch::from_secs(1_800_000_000);

/// The fields that we read, and one that we do not.
const FIELDS: [&str; 16] = [
    "content-range",
    "content-length",
    "content-type",
    "content-encoding",
    "content-disposition",
    "etag",
    "last-modified",
    "date",
    "location",
    "retry-after",
    "link",
    "repr-digest",
    "content-digest",
    "digest",
    "accept-ranges",
    "x-other",
];

const DATE_WORDS: [&str; 22] = [
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun Nov  6 08:49:37 1994",
    "Mon",
    "Tue",
    "Wed",
    "Thursday",
    "Fri",
    "Sat",
    "Jan",
    "Feb",
    "Dec",
    "29 Feb 2000",
    "31 Dec 9999",
    "23:59:60",
    "24:00:00",
    " GMT",
    " UTC",
    "1969",
    "1970",
    "99999",
    "-",
];

/// A whole head: the status, and a field a line.
pub(super) const ANSWER_HEAD: Target = Target {
    name: "answer_head",
    run: answer_head,
    words: &[
        "content-range: ",
        "content-length: ",
        "content-type: ",
        "content-encoding: ",
        "content-disposition: ",
        "etag: ",
        "last-modified: ",
        "date: ",
        "location: ",
        "retry-after: ",
        "link: ",
        "repr-digest: ",
        "content-digest: ",
        "digest: ",
        "\n",
        "bytes ",
        "identity",
        "gzip",
        "text/html",
        "; charset=",
        "multipart/byteranges",
        ", ",
        "W/\"",
        "\"",
        "<",
        ">",
        "rel=duplicate",
        "sha-256=:",
        ":",
        "http://",
        "../",
        "206\n",
        "200\n",
        "416\n",
    ],
    runs: 20_000,
    grows_from: 4 << 10,
    frames: &[("200\n", ""), ("200\nlink: ", ""), ("200\ndigest: ", ""), ("200\ncontent-encoding: ", "")],
};

fn answer_head(data: &[u8]) -> u32 {
    let (status, headers) = read_head(data);
    let framing = match content_length(&headers) {
        Ok(Some(n)) => {
            assert!(n <= Length::LARGEST_FILE);
            Framing::Length(n)
        }
        Ok(None) => Framing::Marked,
        Err(bad) => {
            assert_printable(&bad);
            Framing::Close
        }
    };
    let head = AnswerHead::read(status, framing, &headers, NOW);
    check_range(ContentRange::from_headers(&headers));
    for shown in [&head.content_type, &head.coding].into_iter().flatten() {
        assert!(!shown.is_empty() && !shown.chars().any(|c| c.is_ascii_uppercase()), "{shown:?}");
        assert_printable(shown);
    }
    assert!(!head.coding.as_deref().is_some_and(|c| c.split(", ").any(|c| c == "identity")));
    check_validators(&head.validators);
    check_digests(&head.repr_digests);
    check_digests(&head.content_digests);
    if let Some(name) = SafeName::from_headers(&headers) {
        names::check_name(&name, true);
    }
    if let Some(location) = &head.location {
        names::check_join(location.as_bytes());
    }
    assert!(head.links.len() <= 256);
    let set = |there: bool| usize::from(there);
    kind(&[
        set(head.content_range.is_some()),
        set(head.content_type.is_some()),
        set(head.coding.is_some()),
        set(head.location.is_some()),
        set(head.retry_after.is_some()),
        set(head.disposition.is_some()),
        head.repr_digests.len(),
        head.content_digests.len(),
        head.links.len(),
        set(head.validators.has_strong()),
        set(head.is_html()),
        set(head.is_metalink()),
        set(head.is_multipart()),
    ])
}

/// The head that a transport would hand over: what cannot be in one is left out.
fn read_head(data: &[u8]) -> (u16, HeaderMap) {
    let mut lines = data.split(|b| *b == b'\n');
    let status = lines.next().and_then(|line| std::str::from_utf8(line).ok()?.trim().parse().ok()).unwrap_or(200);
    let mut headers = HeaderMap::new();
    for line in lines.take(200) {
        let Some(colon) = line.iter().position(|b| *b == b':') else { continue };
        let name = line[..colon].to_ascii_lowercase();
        let known = FIELDS.iter().find(|field| field.as_bytes() == name).map(|field| HeaderName::from_static(field));
        if let (Some(name), Ok(value)) = (known, HeaderValue::from_bytes(line[colon + 1..].trim_ascii())) {
            headers.append(name, value);
        }
    }
    (status, headers)
}

/// The headers of a field that stands there once, or twice where a line break is in it.
fn field(name: &'static str, data: &[u8]) -> HeaderMap {
    let values = data.split(|b| *b == b'\n').take(100).filter_map(|line| HeaderValue::from_bytes(line).ok());
    values.map(|value| (HeaderName::from_static(name), value)).collect()
}

/// Content-Range and, as it is of the same numbers, Content-Length.
pub(super) const CONTENT_RANGE: Target = Target {
    name: "content_range",
    run: content_range,
    words: &["bytes", "Bytes", " ", "=", "\t", "*", "/", "-", "0-0/1", "*/", "/*", "items ", ", ", "\n", "+", "0x"],
    ..PLAIN
};

fn content_range(data: &[u8]) -> u32 {
    let length = content_length(&field("content-length", data));
    let of_length = match &length {
        Ok(None) => 0,
        Ok(Some(n)) => {
            assert!(*n <= Length::LARGEST_FILE);
            // The same number twice is once, and another one is a contradiction.
            let twice = field("content-length", format!("{n}\n{n}").as_bytes());
            assert_eq!(content_length(&twice), Ok(Some(*n)));
            1
        }
        Err(bad) => {
            assert_printable(bad);
            2
        }
    };
    let read = ContentRange::parse(data);
    let outcome = match &read {
        Ok(ContentRange::Satisfied { total, .. }) => 1 + usize::from(total.is_some()),
        Ok(ContentRange::Unsatisfied { .. }) => 3,
        Err(bad) => 4 + bad.fault as usize,
    };
    check_range(read.map(Some));
    check_range(ContentRange::from_headers(&field("content-range", data)));
    kind(&[outcome, of_length])
}

fn check_range(read: Result<Option<ContentRange>, impl std::fmt::Display>) {
    let again = match &read {
        Ok(None) => return,
        Ok(Some(ContentRange::Satisfied { range, total })) => {
            assert!(range.start < range.end && range.end.as_length() <= Length(Length::LARGEST_FILE.0 + 1));
            assert!(total.is_none_or(|total| range.end <= total.as_end() && total <= Length::LARGEST_FILE));
            let total = total.map_or("*".to_owned(), |total| total.to_string());
            format!("bytes {}-{}/{total}", range.start, range.end.0 - 1)
        }
        Ok(Some(ContentRange::Unsatisfied { total })) => {
            assert!(*total <= Length::LARGEST_FILE);
            format!("bytes */{total}")
        }
        Err(bad) => return assert_printable(bad),
    };
    assert_eq!(ContentRange::parse(&again).ok(), read.ok().flatten(), "{again}");
}

/// Last-Modified and Date.
pub(super) const HTTP_DATE: Target = Target { name: "http_date", run: date, words: &DATE_WORDS, ..PLAIN };

fn date(data: &[u8]) -> u32 {
    let Some(at) = read_http_date(&text(data)) else { return 0 };
    assert!(at >= Epoch::ZERO && at.as_micros() % 1_000_000 == 0);
    let written = http_date(at).unwrap_or_else(|| panic!("{at:?} cannot be written"));
    assert_eq!(read_http_date(&written), Some(at), "{written}");
    assert!(HeaderValue::from_str(&written).is_ok());
    1 + (at > NOW) as u32
}

/// Retry-After.
pub(super) const RETRY_AFTER: Target = Target { name: "retry_after", run: after, words: &DATE_WORDS, ..PLAIN };

fn after(data: &[u8]) -> u32 {
    let value = text(data);
    let read = retry_after::parse(&value, None, NOW);
    let Some(wait) = read else { return 0 };
    assert!(retry_after::capped(wait) <= RETRY_AFTER_CAP);
    let digits = value.trim_matches([' ', '\t']);
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        // Seconds have nothing to do with any clock.
        assert_eq!(retry_after::parse(&value, Some(Epoch::ZERO), Epoch::from_secs(5)), read);
        return 1;
    }
    // A date is worth as much longer as the clock is behind.
    assert!(wait > Delay::ZERO);
    assert_eq!(retry_after::parse(&value, Some(NOW), Epoch::ZERO), read);
    2
}

/// ETag.
pub(super) const ETAG: Target = Target {
    name: "etag",
    run: etag,
    words: &["W/", "w/", "\"", "\"\"", "\"x\"", "-gzip", " ", "\t", "\\\"", "\u{1b}[2J", "\u{e9}", "\u{202e}"],
    ..PLAIN
};

fn etag(data: &[u8]) -> u32 {
    let Some(tag) = ETag::parse(&text(data)) else { return 0 };
    assert_eq!(ETag::parse(&tag.to_string()).as_ref(), Some(&tag), "{tag}");
    let validators = Validators { etag: Some(tag.clone()), last_modified: None, date: None };
    check_validators(&validators);
    assert_eq!(validators.strong_etag().is_some(), tag.is_strong());
    assert!(!(tag.weak && tag.is_strong()));
    // A tag with and without W/ is one version, which W/ alone does not prove.
    let weak = Validators { etag: Some(ETag { weak: true, ..tag.clone() }), ..validators.clone() };
    assert_eq!(validators.compare(&weak), Sameness::Unknown);
    1 + u32::from(tag.weak)
}

fn check_validators(validators: &Validators) {
    let same = validators.compare(validators);
    assert_eq!(same == Sameness::Same, validators.has_strong(), "{validators:?}");
    assert_ne!(same, Sameness::Different, "{validators:?}");
    if let Some(tag) = &validators.etag {
        assert!(tag.opaque.len() <= 1024);
        assert_eq!(ETag::parse(&tag.to_string()).as_ref(), Some(tag));
    }
    if let Some(tag) = validators.strong_etag() {
        let value = HeaderValue::from_str(&tag.to_string()).unwrap_or_else(|e| panic!("{tag}: {e}"));
        let sent: HeaderMap = [(header::ETAG, value)].into_iter().collect();
        assert_eq!(Validators::from_headers(&sent).etag.as_ref(), Some(tag));
    }
    for mode in [persxfer::core::file_xfer::dossier::IfRange::Best, persxfer::core::file_xfer::dossier::IfRange::Date] {
        let value = validators.if_range(mode);
        assert!(value.as_deref().is_none_or(|v| HeaderValue::from_str(v).is_ok() && !v.starts_with("W/")), "{value:?}");
    }
    assert_eq!(validators.unless().is_some(), validators.has_strong());
}

/// Link.
pub(super) const LINK: Target = Target {
    name: "link",
    run: link,
    words: &[
        "<",
        ">",
        ";",
        ",",
        "\"",
        "\\",
        "\n",
        "=",
        "rel=duplicate",
        "rel=\"describedby\"",
        "; pri=",
        "; geo=gb",
        "; pref",
        "type=\"application/metalink4+xml\"",
        "anchor=",
        "http://m.example/x",
        "https://user:pw@m.example/",
        "//127.0.0.1/",
        "http://[::1]/",
        "ftp://",
        "../",
        "<http://a.example/>; rel=duplicate,",
        "http://10.0.0.1/",
        "#f",
    ],
    runs: 30_000,
    grows_from: 4 << 10,
    frames: &[("", ""), ("<a>;", ""), ("<a>;rel=\"", "\""), ("", ">; rel=duplicate")],
};

fn link(data: &[u8]) -> u32 {
    let base = url("https://files.example.org/a/b.iso");
    let all = links(&field("link", data));
    assert!(all.len() <= 256);
    for link in &all {
        assert!((1..=999_999).contains(&link.pri()));
        assert!(link.geo().is_none_or(|geo| geo.len() == 2 && geo.bytes().all(|b| b.is_ascii_lowercase())));
        assert!(link.media_type().is_none_or(|t| !t.is_empty() && !t.contains(';')));
    }
    let found = duplicates(&all, &base);
    assert!(found.len() <= MAX_DUPLICATES && found.is_sorted_by_key(|d| d.pri));
    for (i, one) in found.iter().enumerate() {
        assert!(one.url.credentials().is_none() && one.url.is_public_host() && one.url != base, "{}", one.url);
        assert!(found[..i].iter().all(|other| other.url != one.url));
    }
    let described = described_by(&all, &base, "application/metalink4+xml");
    assert!(described.as_ref().is_none_or(|u| u.credentials().is_none() && u.is_public_host()));
    kind(&[all.len(), found.len(), usize::from(described.is_some())])
}

/// Repr-Digest, Content-Digest and Digest.
pub(super) const DIGEST_FIELDS: Target = Target {
    name: "digest_fields",
    run: digest_fields,
    words: &[
        "sha-256=",
        "sha-512=",
        "md5=",
        "SHA-256=",
        "SHA=",
        "crc32c=",
        "blake3=",
        ":",
        ", ",
        ";q=1",
        "\n",
        "=",
        "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "1B2M2Y8AsgTpgAmY7PhCfg==",
        "?1",
        "(",
        ")",
        "\"",
        "1.5",
        "@0",
        "%\"",
    ],
    ..PLAIN
};

fn digest_fields(data: &[u8]) -> u32 {
    let (repr, old) = (repr_digests(&field("repr-digest", data)), repr_digests(&field("digest", data)));
    let content = content_digests(&field("content-digest", data));
    assert_eq!(repr, content);
    check_digests(&repr);
    check_digests(&old);
    kind(&[repr.len(), old.len()])
}

fn check_digests(all: &[Expected]) {
    for (i, one) in all.iter().enumerate() {
        assert_eq!(one.bytes.len(), one.algorithm.output_len());
        assert!(all[..i].iter().all(|other| other.algorithm != one.algorithm), "two by {}: {all:?}", one.algorithm);
    }
}

/// Headers as users write them.
pub(super) const HEADER_TEXT: Target = Target {
    name: "header_text",
    run: header_text,
    words: &[
        "X-Token",
        ": ",
        ":",
        ";",
        "Range",
        "If-Range",
        "Authorization",
        "Cookie",
        "\r\n",
        "Host",
        "Content-Length",
    ],
    ..PLAIN
};

fn header_text(data: &[u8]) -> u32 {
    match UserHeader::parse(&text(data)) {
        Ok(header) => {
            assert!(![header::RANGE, header::IF_RANGE, header::CONTENT_LENGTH].contains(header.name()));
            assert!(!header.secret_value().as_bytes().iter().any(|b| matches!(b, b'\r' | b'\n' | 0)));
            assert_printable(format!("{header:?}"));
            1 + u32::from(header.is_for_one_origin())
        }
        Err(bad) => {
            assert_harmless(&bad);
            3
        }
    }
}
