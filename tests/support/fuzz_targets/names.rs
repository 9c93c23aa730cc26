//! Names of files and places: what a server or a person says where something goes, or where it is.

use std::path::{Component, Path};

use persxfer::core::name::{
    Giver, SAFE_MAX, SafeName, boinc_name, is_working_name, journal_file_name, part_file_name, rival_file_name,
};
use persxfer::core::printable::is_hidden;
use persxfer::core::url::{MirrorUrl, Origin};

use super::{PLAIN, assert_printable, text, url};
use crate::fuzz::{Target, kind};

/// Content-Disposition.
pub(super) const DISPOSITION: Target = Target {
    name: "disposition",
    run: disposition,
    words: &[
        "attachment",
        "inline",
        "; filename=",
        "; filename*=",
        "UTF-8''",
        "iso-8859-1'en'",
        "%2e%2e%2f",
        "%00",
        "%e2%80%ae",
        "\"",
        "\\\"",
        "\\\\",
        "../",
        "..\\",
        "/",
        ".bashrc",
        "CON",
        ".persxfer-part",
        ".persxfer-journal",
        "=?utf-8?b?",
        ";",
        "\u{202e}",
        "-rf",
        " ",
        ".tar.gz",
        "~",
    ],
    runs: 40_000,
    grows_from: 4 << 10,
    frames: &[("", ""), ("attachment; filename=\"", "\""), ("attachment; filename*=UTF-8''", "")],
};

fn disposition(data: &[u8]) -> u32 {
    let Some(name) = SafeName::from_disposition(data) else { return 0 };
    check_name(&name, true);
    kind(&[1, name.as_str().len(), usize::from(name.as_str().is_ascii())])
}

/// Names from anywhere, and the names of the files beside them.
pub(super) const FILE_NAME: Target = Target {
    name: "file_name",
    run: file_name,
    words: &[
        "/",
        "\\",
        "..",
        ".",
        " ",
        "-",
        "CON",
        "nul.",
        "COM1",
        "LPT\u{b9}",
        ".persxfer-part",
        ".PERSXFER-PART2",
        ".persxfer-journal",
        "~0123abcd",
        "\u{202e}",
        "\u{feff}",
        "\0",
        "\n",
        "%",
        "%2f",
        ".tar.gz",
        ".tar.",
        "\u{1f600}",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ],
    runs: 30_000,
    ..PLAIN
};

fn file_name(data: &[u8]) -> u32 {
    let raw = text(data);
    let (user, server) = (SafeName::new(&raw, Giver::Url), SafeName::new(&raw, Giver::Server));
    assert_eq!(user.is_some(), server.is_some());
    user.iter().for_each(|name| check_name(name, false));
    server.iter().for_each(|name| check_name(name, true));
    let boinc = boinc_name(&raw);
    assert!(!boinc.is_empty() && boinc.len() <= 240 && !boinc.contains(['%', '<', '&', '/']) && !boinc.contains(".."));
    assert_eq!((boinc_name(&boinc), boinc.trim()), (boinc.clone(), &*boinc));
    assert!(!boinc.chars().any(is_hidden), "{boinc:?}");
    kind(&[usize::from(user.is_some()), user.map_or(0, |n| n.as_str().len()), usize::from(raw.is_ascii())])
}

/// One safe component, which leaves room for the names beside it, and which is safe already when it comes again.
pub(super) fn check_name(name: &SafeName, from_server: bool) {
    let text = name.as_str();
    let parts: Vec<_> = Path::new(text).components().collect();
    assert!(matches!(parts.as_slice(), [Component::Normal(one)] if one.to_str() == Some(text)), "{text:?}");
    assert!(text.len() <= SAFE_MAX && !text.contains(['/', '\\']), "{text:?}");
    assert!(!text.chars().any(is_hidden) && !text.starts_with('-') && text.trim_start() == text, "{text:?}");
    assert!(!text.ends_with('.') && !is_working_name(text), "{text:?}");
    assert!(!from_server || !text.starts_with('.'), "{text:?}");
    let again = SafeName::new(text, if from_server { Giver::Server } else { Giver::Url });
    assert_eq!(again.as_ref(), Some(name));
    let beside = [part_file_name(text), rival_file_name(text), journal_file_name(text)];
    assert!(beside.iter().all(|b| b.len() <= 255 && is_working_name(b)), "{beside:?}");
    assert!(beside[0] != beside[1] && beside[1] != beside[2] && beside[0] != beside[2]);
}

/// Location, joined to where the answer came from.
pub(super) const LOCATION: Target =
    Target { name: "location", run: |data| check_join(data), words: &URL_WORDS, runs: 30_000, ..PLAIN };

const URL_WORDS: [&str; 34] = [
    "http://",
    "https://",
    "HTTPS:",
    "ftp://",
    "file:///",
    "javascript:",
    "data:",
    "//",
    "/",
    "\\",
    "..",
    ".",
    "?",
    "#",
    "@",
    "user:pass@",
    "%",
    "%2e%2e",
    "%00",
    ":",
    ":0",
    ":65535",
    ":65536",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "127.1",
    "0x7f.1",
    "localhost",
    "example.org",
    "xn--",
    "\u{fc}.example",
    "\u{3002}",
    "\t",
    "&sig=",
];

pub(super) fn check_join(data: &[u8]) -> u32 {
    let base = url("https://user:secret@files.example.org:8443/a/b/c.iso?x=1");
    match base.join(data, 302) {
        Ok(url) => {
            check_url(&url);
            1 + u32::from(url.origin() == base.origin())
        }
        Err(fault) => {
            assert_printable(format!("{fault:?}"));
            4
        }
    }
}

/// URLs as they are typed, listed or stored.
pub(super) const URL: Target = Target { name: "url", run: mirror_url, words: &URL_WORDS, runs: 30_000, ..PLAIN };

fn mirror_url(data: &[u8]) -> u32 {
    let text = text(data);
    match MirrorUrl::parse(&text) {
        Ok(url) => {
            check_url(&url);
            kind(&[1, usize::from(url.is_public_host()), usize::from(url.credentials().is_some())])
        }
        Err(bad) => {
            assert_printable(&bad);
            0
        }
    }
}

fn check_url(url: &MirrorUrl) {
    let whole = url.secret_url();
    assert!(matches!(whole.scheme(), "http" | "https") && whole.fragment().is_none() && !url.host().is_empty());
    assert_eq!(MirrorUrl::parse(whole.as_str()).as_ref(), Ok(url));
    assert_eq!(Origin::parse(url.origin().as_str()), Some(url.origin()), "{}", url.origin());
    let bare = url.without_credentials();
    assert!(bare.credentials().is_none() && bare.origin() == url.origin());
    let shown = url.redacted();
    assert!(!shown.chars().any(is_hidden), "{shown:?}");
    let read = MirrorUrl::parse(&shown).unwrap_or_else(|e| panic!("{shown}: {e}"));
    assert!(read.credentials().is_none() && read.redacted() == shown, "{shown}");
    let values = read.secret_url().query().unwrap_or_default().split('&');
    assert!(
        values.map(|pair| pair.split_once('=').map_or(pair, |(_, v)| v)).all(|v| v.is_empty() || v == "***"),
        "{shown}"
    );
    check_name(&SafeName::from_url(url), false);
}
