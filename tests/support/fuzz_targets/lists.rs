//! Files that people keep: lists of checksums, netrc, cookies.

use http::HeaderValue;

use persxfer::core::cookies::Cookies;
use persxfer::core::digest::{Algorithm, Sums};
use persxfer::core::netrc::Netrc;
use persxfer::core::time::Epoch;

use super::{PLAIN, assert_printable, text, url};
use crate::fuzz::{Target, kind};

/// SHA256SUMS and its relatives.
pub(super) const CHECKSUMS: Target = Target {
    name: "checksums",
    run: checksums,
    words: &[
        "d41d8cd98f00b204e9800998ecf8427e",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "  ",
        " *",
        "\n",
        "\r\n",
        "\\",
        "\\n",
        "SHA256 (",
        ") = ",
        "MD5(",
        "SHA384 (x) = 00",
        "./",
        "#",
        "file.iso",
        "\u{feff}",
        "/",
    ],
    runs: 15_000,
    ..PLAIN
};

fn checksums(data: &[u8]) -> u32 {
    let mut outcome = Vec::new();
    for algorithm in [None, Some(Algorithm::Sha256), Some(Algorithm::Md5)] {
        match Sums::parse(data, algorithm) {
            Ok(sums) => {
                let (mut found, mut refused) = (0, 0);
                for name in ["file.iso", "./file.iso", "dir/file.iso", "", "x\u{1b}[2J"] {
                    match sums.find(name) {
                        Ok(all) => {
                            found += all.len();
                            assert!(!all.is_empty());
                            assert!(all.iter().all(|d| d.bytes.len() == d.algorithm.output_len()));
                            let distinct = |i: usize| all[..i].iter().all(|d| d.algorithm != all[i].algorithm);
                            assert!((0..all.len()).all(distinct), "{all:?}");
                        }
                        Err(none) => {
                            refused += 1;
                            assert_printable(&none);
                        }
                    }
                }
                outcome.extend([1, found, refused]);
            }
            Err(bad) => {
                assert_printable(&bad);
                outcome.push(0);
            }
        }
    }
    let told = Algorithm::of_list_name(&text(data));
    outcome.push(told.map_or(0, |a| 1 + usize::from(a.strength())));
    kind(&outcome)
}

/// A netrc file.
pub(super) const NETRC: Target = Target {
    name: "netrc",
    run: netrc,
    words: &[
        "machine ",
        "default ",
        "login ",
        "password ",
        "account ",
        "macdef ",
        "\n",
        "\n\n",
        "\"",
        "\\\"",
        "#",
        "h.example",
        "[::1]",
        ".",
    ],
    ..PLAIN
};

fn netrc(data: &[u8]) -> u32 {
    match Netrc::parse(&text(data)) {
        Ok(netrc) => {
            let found = netrc.lookup("h.example");
            assert_eq!(netrc.lookup("H.EXAMPLE."), found);
            assert_eq!(netrc.lookup("[::1]"), netrc.lookup("::1"));
            // Whoever has an entry of his own never gets that of others.
            let other = netrc.lookup("nobody.example.invalid");
            kind(&[1, usize::from(found.is_some()), usize::from(other.is_some()), usize::from(other == found)])
        }
        Err(bad) => {
            assert_printable(&bad);
            0
        }
    }
}

/// A file of cookies.
pub(super) const COOKIES: Target = Target {
    name: "cookies",
    run: cookies,
    words: &[
        "\t",
        "TRUE",
        "FALSE",
        "#HttpOnly_",
        "#",
        "\n",
        ".h.example",
        "h.example",
        "/",
        "/a",
        "a=b",
        ";",
        "0",
        "4000000000",
    ],
    runs: 30_000,
    ..PLAIN
};

fn cookies(data: &[u8]) -> u32 {
    let text = text(data);
    let cookies = Cookies::parse(&text);
    assert!(cookies.skipped() <= text.lines().count());
    let now = Epoch::from_secs(1_800_000_000);
    let of = |address: &str| {
        let found = cookies.header_for(&url(address), now);
        assert!(found.as_deref().is_none_or(|v| !v.is_empty() && HeaderValue::from_str(v).is_ok()), "{found:?}");
        found.map_or(0, |v| v.split("; ").count())
    };
    let (plain, tls) = (of("http://h.example/a/b"), of("https://h.example/a/b"));
    // TLS opens more, and another host gets nothing of this one.
    assert!(tls >= plain);
    let others = of("https://other.invalid/");
    assert!(others == 0 || text.to_ascii_lowercase().contains("invalid"));
    kind(&[cookies.skipped(), plain, tls, usize::from(cookies.is_empty())])
}
