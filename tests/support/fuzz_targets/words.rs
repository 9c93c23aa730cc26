//! Words that are typed: digests, durations and sizes, retry policies, addresses, proxies; and what is shown of any text.

use persxfer::core::backoff::Policy;
use persxfer::core::digest::Expected;
use persxfer::core::printable::{MAX_CHARS, is_hidden, printable, printable_bytes};
use persxfer::core::proxy::{ProxyRules, ProxyUrl};
use persxfer::core::range::Length;
use persxfer::core::time::Delay;
use persxfer::core::units::{human_bytes, human_delay, parse_duration, parse_rate, parse_size};
use persxfer::io::transport::Pin;

use super::{PLAIN, assert_harmless, assert_printable, text, url};
use crate::fuzz::{Target, kind};

/// `ALGORITHM=HEX`.
pub(super) const DIGEST: Target = Target {
    name: "digest",
    run: digest,
    words: &["md5", "sha-256", "SHA512", "crc32c", "blake3", "=", ":", " ", "d41d8cd98f00b204e9800998ecf8427e", "00"],
    ..PLAIN
};

fn digest(data: &[u8]) -> u32 {
    match Expected::parse(&text(data)) {
        Ok(read) => {
            assert_eq!(read.bytes.len(), read.algorithm.output_len());
            assert_eq!(Expected::parse(&format!("{}={}", read.algorithm.name(), read.hex())).as_ref(), Ok(&read));
            1 + u32::from(read.algorithm.strength())
        }
        Err(bad) => {
            assert_printable(&bad);
            0
        }
    }
}

/// Durations, sizes and rates.
pub(super) const UNITS: Target = Target {
    name: "units",
    run: units,
    words: &[
        "ms",
        "s",
        "m",
        "h",
        "d",
        "w",
        "k",
        "KiB",
        "MB",
        "g",
        "t",
        "p",
        "e",
        "/s",
        ".",
        "1.5",
        "0.0000001",
        "1h30m",
        " ",
        "-",
        "+",
        "1e3",
        "_",
    ],
    runs: 20_000,
    ..PLAIN
};

fn units(data: &[u8]) -> u32 {
    let text = text(data);
    let (duration, size, rate) = (parse_duration(&text), parse_size(&text), parse_rate(&text));
    if let Ok(read) = duration {
        assert!(!human_delay(read).is_empty());
        // Written in the smallest unit, and read again: nothing is lost but what is below a millisecond.
        let millis = read.as_micros() / 1000;
        assert_eq!(parse_duration(&format!("{millis}ms")), Ok(Delay::from_micros(millis * 1000)));
    }
    if let Ok(read) = size {
        assert_eq!(parse_size(&read.to_string()), Ok(read));
        assert_eq!(rate.as_ref().ok(), Some(&read.0));
        assert!(!human_bytes(Length(read.0)).is_empty());
    }
    [duration.as_ref().err(), size.as_ref().err(), rate.as_ref().err()].into_iter().flatten().for_each(assert_harmless);
    let of = |error: Option<&persxfer::core::units::BadUnit>| error.map_or(0, |bad| 1 + format!("{:?}", bad.why).len());
    kind(&[of(duration.as_ref().err()), of(size.as_ref().err()), of(rate.as_ref().err())])
}

/// Retry policies.
pub(super) const RETRY_POLICY: Target = Target {
    name: "retry_policy",
    run: retry_policy,
    words: &[
        "boinc",
        "boinc-7",
        "tor",
        "ladder",
        "ranged",
        ":",
        "exact",
        "spec",
        "base=",
        "2147483647",
        "2147483648",
        "=",
    ],
    ..PLAIN
};

fn retry_policy(data: &[u8]) -> u32 {
    match Policy::parse(&text(data)) {
        Ok(policy) => {
            let written = policy.to_string();
            assert_eq!(Policy::parse(&written).as_ref(), Ok(&policy), "{written}");
            assert!(policy.shortest() <= policy.longest() && policy.longest() > Delay::ZERO);
            kind(&[1, written.len()])
        }
        Err(bad) => {
            assert_harmless(&bad);
            0
        }
    }
}

/// `--resolve`.
pub(super) const PIN: Target = Target {
    name: "pin",
    run: pin,
    words: &["host.example", ":", "443", "65536", "127.0.0.1", "[::1]", "2001:db8::1", ",", "*", "+", ".", "%1"],
    ..PLAIN
};

fn pin(data: &[u8]) -> u32 {
    match Pin::parse(&text(data)) {
        Ok(pin) => {
            assert!(!pin.host.is_empty() && !pin.addresses.is_empty() && !pin.host.contains(':'));
            let addresses: Vec<_> = pin.addresses.iter().map(ToString::to_string).collect();
            let again = Pin::parse(&format!("{}:{}:{}", pin.host, pin.port, addresses.join(",")));
            let again = again.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!((&again.host, again.port, &again.addresses), (&pin.host, pin.port, &pin.addresses));
            kind(&[1, pin.addresses.len()])
        }
        Err(bad) => {
            assert_harmless(&bad);
            0
        }
    }
}

/// A proxy, and what goes past it: two lines.
pub(super) const PROXY: Target = Target {
    name: "proxy",
    run: proxy,
    words: &[
        "http://",
        "https://",
        "socks5://",
        "socks5h://",
        "ftp://",
        "user:pa55word@",
        "p.example",
        ":3128",
        "[::1]",
        "\n",
        ",",
        "*",
        "h.example",
        ".example",
        "10.0.0.0/8",
        "::/0",
        "/33",
        ":443",
        " ",
        "/129",
        "0.0.0.0/0",
    ],
    runs: 30_000,
    grows_from: 4 << 10,
    frames: &[("", ""), ("p.example\n", "")],
};

fn proxy(data: &[u8]) -> u32 {
    let all = text(data);
    let (proxy, exempt) = all.split_once('\n').unwrap_or((&all, ""));
    match ProxyUrl::parse(proxy, "--proxy") {
        Ok(read) => {
            let shown = read.to_string();
            assert!(!shown.chars().any(is_hidden) && !shown.contains('@'), "{shown:?}");
            let again = ProxyUrl::parse(read.secret_url().as_str(), "");
            assert_eq!(again.as_ref(), Ok(&read), "{}", read.secret_url());
            let rules = ProxyRules::all(read, Some(exempt));
            let through = |address: &str| usize::from(rules.proxy_for(&url(address)).is_some());
            let past =
                ["http://h.example/", "https://a.h.example:8443/", "http://10.1.2.3/", "http://[::1]/"].map(through);
            assert!(!exempt.trim().is_empty() || past == [1; 4], "nothing is exempt");
            kind(&[&[1], &past[..]].concat())
        }
        Err(bad) => {
            assert_harmless(&bad);
            0
        }
    }
}

/// What terminals and logs see of a text.
pub(super) const PRINTABLE: Target = Target {
    name: "printable",
    run: shown,
    words: &[
        "\u{1b}[2J",
        "\r",
        "\n",
        "\0",
        "\u{7f}",
        "\u{9b}",
        "\u{202e}",
        "\u{200d}",
        "\u{e0041}",
        "\u{feff}",
        "\\u{1b}",
        "...",
        "\u{1f600}",
    ],
    ..PLAIN
};

fn shown(data: &[u8]) -> u32 {
    let of_bytes = printable_bytes(data);
    let text = text(data);
    let of_text = printable(&text);
    for shown in [&*of_bytes, &*of_text] {
        assert!(!shown.chars().any(is_hidden) && shown.chars().count() <= MAX_CHARS, "{shown:?}");
        assert_eq!(printable(shown), shown);
    }
    if std::str::from_utf8(data).is_ok() {
        assert_eq!(of_bytes, of_text);
    }
    kind(&[of_bytes.chars().count(), usize::from(of_text == text), usize::from(of_bytes == of_text)])
}
