//! Numbers, times and texts as they stand in the state file.
//!
//! Numbers are read by C's rules, as BOINC does (boinc.md 2.2): `0x10` is 16, a leading 0 is octal for integers, doubles
//! may have an exponent, an empty text is 0, a malformed one counts as absent. What we wrote ourselves is read exactly,
//! without a detour over floating point.
//!
//! XML 1.0 cannot hold control characters, nor bytes that are no UTF-8. A text or a path that has them is written in
//! percent code, with the attribute `encoding="percent"`.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};

use super::tree::{BLANK, Element};
use crate::core::pers_xfer::record::XferId;
use crate::core::range::Length;
use crate::core::time::{Delay, Epoch};

/// What is percent-coded once percent code is used at all; everything beyond ASCII is, too.
const CODED: &AsciiSet = &CONTROLS.add(b'%').add(b' ').add(b'<').add(b'>').add(b'&');

/// The attribute that says so.
const PERCENT: &str = "encoding=\"percent\"";

/// A text ready to stand between tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Escaped {
    /// The text.
    pub(super) text: String,
    /// The attributes that it needs.
    pub(super) attributes: Option<&'static str>,
}

impl Escaped {
    /// From any text.
    pub(super) fn text(text: &str) -> Self {
        if text.chars().any(|c| !xml_can_hold(c)) {
            return Self::percent(text.as_bytes());
        }
        Self { text: escape(text), attributes: None }
    }

    /// From the bytes of a path.
    pub(super) fn path(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::text(text),
            None => Self::percent(path.as_os_str().as_bytes()),
        }
    }

    fn percent(bytes: &[u8]) -> Self {
        Self { text: percent_encode(bytes, CODED).to_string(), attributes: Some(PERCENT) }
    }
}

/// The text of an element, percent code resolved.
pub(super) fn text(element: &Element<'_>) -> String {
    if !is_percent(element) {
        return element.text().into_owned();
    }
    String::from_utf8(bytes(element)).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// The path that stands in an element.
pub(super) fn path(element: &Element<'_>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes(element)))
}

fn bytes(element: &Element<'_>) -> Vec<u8> {
    let text = element.text();
    if is_percent(element) { percent_decode_str(&text).collect() } else { text.into_owned().into_bytes() }
}

fn is_percent(element: &Element<'_>) -> bool {
    matches!(element.attributes, PERCENT | "encoding='percent'")
}

/// May stand in XML 1.0 (its production 2; a `String` holds no surrogates).
fn xml_can_hold(c: char) -> bool {
    !matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// Writes references for what is markup, for carriage returns (XML turns them into newlines), and for blanks at the ends
/// (readers cut them off).
fn escape(text: &str) -> String {
    let core = text.trim_matches(BLANK);
    if core.len() == text.len() && !text.contains(['<', '>', '&', '\r']) {
        return text.to_owned();
    }
    let start = text.len() - text.trim_start_matches(BLANK).len();
    let end = start + core.len();
    let mut out = String::with_capacity(text.len() + 16);
    for (i, c) in text.char_indices() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\r' => out.push_str("&#13;"),
            c if !(start..end).contains(&i) => out.push_str(&format!("&#{};", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// An integer by C's `strtol` with base 0.
pub(super) fn integer(text: &str) -> Option<i64> {
    let text = text.trim_matches(BLANK);
    if text.is_empty() {
        return Some(0);
    }
    let (negative, digits) = signed(text);
    let magnitude = if let Some(hex) = hexadecimal(digits) {
        i128::from_str_radix(hex, 16)
    } else if digits.len() > 1 && digits.starts_with('0') {
        i128::from_str_radix(plain(&digits[1..])?, 8)
    } else {
        plain(digits)?.parse()
    };
    let magnitude = magnitude.ok()?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// A double by C's `strtod`, finite ones only.
pub(super) fn double(text: &str) -> Option<f64> {
    let text = text.trim_matches(BLANK);
    if text.is_empty() {
        return Some(0.0);
    }
    let (negative, digits) = signed(text);
    let magnitude = match hexadecimal(digits) {
        Some(hex) => u64::from_str_radix(hex, 16).ok()? as f64,
        // Rust also reads "inf" and "nan", and a second sign.
        None if digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') => digits.parse().ok()?,
        None => return None,
    };
    let value = if negative { -magnitude } else { magnitude };
    value.is_finite().then_some(value)
}

/// A number of bytes; a negative one is 0.
pub(super) fn length(text: &str) -> Option<Length> {
    let text = text.trim_matches(BLANK);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let exact = fraction.bytes().all(|b| b == b'0').then(|| plain(whole)?.parse().ok()).flatten();
    // The cast saturates.
    exact.or_else(|| double(text).map(|n| n as u64)).map(Length)
}

/// A counter; out of range, its nearest end.
pub(super) fn count(text: &str) -> Option<u32> {
    integer(text).map(|n| u32::try_from(n.max(0)).unwrap_or(u32::MAX))
}

/// A moment: seconds since the Unix epoch.
pub(super) fn time(text: &str) -> Option<Epoch> {
    match micros(text) {
        Some(exact) => i64::try_from(exact).ok().map(Epoch::from_micros),
        None => double(text).map(Epoch::from_secs_f64),
    }
}

/// A span: seconds. A negative one is zero.
pub(super) fn span(text: &str) -> Option<Delay> {
    match micros(text) {
        Some(exact) => u64::try_from(exact.max(0)).ok().map(Delay::from_micros),
        None => double(text).map(Delay::from_secs_f64),
    }
}

/// Decimal seconds with at most six decimals, exactly.
fn micros(text: &str) -> Option<i128> {
    let (negative, digits) = signed(text.trim_matches(BLANK));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    if whole.len() > 18 || fraction.len() > 6 {
        return None;
    }
    let fraction: i128 = format!("{:0<6}", plain(fraction)?).parse().ok()?;
    let micros = plain(whole)?.parse::<i128>().ok()? * 1_000_000 + fraction;
    Some(if negative { -micros } else { micros })
}

/// The identity of a transfer: 16 hex digits.
pub(super) fn id(text: &str) -> Option<XferId> {
    let digits = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(text, 16).ok()).flatten().map(XferId)
}

/// A flag: `<x/>`, or `<x>0|1</x>`.
pub(super) fn flag(element: Option<&Element<'_>>) -> bool {
    element.is_some_and(|e| e.empty_tag || integer(&e.text()).unwrap_or(0) != 0)
}

fn signed(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn hexadecimal(digits: &str) -> Option<&str> {
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"))?;
    (!hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit())).then_some(hex)
}

/// Decimal digits and nothing else.
fn plain(digits: &str) -> Option<&str> {
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_by_the_rules_of_c() {
        let cases = [("16", 16), (" 0x10 ", 16), ("010", 8), ("-224", -224), ("", 0), ("0", 0), ("+7", 7)];
        for (text, value) in cases {
            assert_eq!(integer(text), Some(value), "{text:?}");
        }
        for bad in ["08", "1x", "0x", "--1", "1 2", "1.0", "99999999999999999999", "+-1", "0-1"] {
            assert_eq!(integer(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn doubles_by_the_rules_of_c() {
        let cases = [("1.5e3", 1500.0), ("", 0.0), ("0x10", 16.0), ("010", 10.0), ("-.5", -0.5), ("5.", 5.0)];
        for (text, value) in cases {
            assert_eq!(double(text), Some(value), "{text:?}");
        }
        for bad in ["inf", "nan", "1e999", "x", "1,5", "--1"] {
            assert_eq!(double(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn sizes_and_times_are_exact() {
        assert_eq!(length("18446744073709551615.000000"), Some(Length(u64::MAX)));
        assert_eq!(length("9007199254740993"), Some(Length(9_007_199_254_740_993)));
        assert_eq!(length("1e6"), Some(Length(1_000_000)));
        assert_eq!(length("-5"), Some(Length(0)));
        for micros in [i64::MIN + 1, -1, 0, 1_767_218_400_250_001, i64::MAX] {
            assert_eq!(time(&Epoch::from_micros(micros).to_string()), Some(Epoch::from_micros(micros)));
        }
        assert_eq!(span(&Delay::MAX.to_string()), Some(Delay::MAX));
        assert_eq!(time("1.767218400250000e9"), Some(Epoch::from_micros(1_767_218_400_250_000)));
        assert_eq!(time("1030665725"), Some(Epoch::from_secs(1_030_665_725)));
        assert_eq!(span("-3"), Some(Delay::ZERO));
    }

    #[test]
    fn identities_are_sixteen_hex_digits() {
        assert_eq!(id("00000000000000ff"), Some(XferId(255)));
        assert_eq!((id("ff"), id("+0000000000000ff")), (None, None));
    }

    #[test]
    fn blanks_at_the_ends_survive() {
        assert_eq!(escape(" a b\t"), "&#32;a b&#9;");
        assert_eq!(escape("  "), "&#32;&#32;");
        assert_eq!(escape("a\r\nb"), "a&#13;\nb");
    }
}
