//! The header texts that carry ranges and lengths: Range, Content-Range and Content-Length (RFC 9110 14.2, 14.4, 8.6).
//!
//! What is written here is exact; what is read is taken with the slips that servers make, as long as only one reading
//! is possible (`bytes=0-99/100`, blanks, another case of the unit), and refused otherwise.

use std::str;

use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE};

use crate::core::printable::printable_bytes;
use crate::core::range::{ByteRange, Length, Offset};

/// The text of a Range header that asks for everything from a position on: `bytes=N-`.
pub fn range_from(start: Offset) -> String {
    format!("bytes={start}-")
}

/// The text of a Range header that asks for these bytes: `bytes=A-B`. None for an empty range, which cannot be asked
/// for.
pub fn range_of(range: ByteRange) -> Option<String> {
    let last = range.end.back(Length(1));
    (!range.is_empty()).then(|| format!("bytes={}-{last}", range.start))
}

/// A Content-Range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentRange {
    /// `bytes A-B/N` or `bytes A-B/*`: the body is this range.
    Satisfied {
        /// The bytes; never empty, and within `total`.
        range: ByteRange,
        /// The length of the whole, where told.
        total: Option<Length>,
    },
    /// `bytes */N`, the answer 416: no byte asked for exists.
    Unsatisfied {
        /// The length of the whole.
        total: Length,
    },
}

/// A Content-Range that cannot be relied on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the Content-Range \"{text}\" cannot be used: {fault}")]
pub struct BadContentRange {
    /// Its text, made printable.
    pub text: String,
    /// What is wrong with it.
    pub fault: ContentRangeFault,
}

/// What can be wrong with a Content-Range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentRangeFault {
    /// Nothing there.
    #[error("it is empty")]
    Empty,
    /// Another unit than bytes, or none.
    #[error("its unit is not `bytes`")]
    Unit,
    /// Neither `FIRST-LAST/TOTAL` nor `*/TOTAL`.
    #[error("it is neither `bytes FIRST-LAST/TOTAL` nor `bytes */TOTAL`")]
    Form,
    /// A number beyond [`Length::LARGEST_FILE`].
    #[error("it counts beyond the size of any file")]
    TooLarge,
    /// The last byte lies before the first.
    #[error("its last byte comes before its first")]
    Reversed,
    /// The last byte lies outside the whole.
    #[error("its last byte lies beyond its total")]
    BeyondTotal,
    /// The header stands there more than once, with other texts.
    #[error("there are several, and they differ")]
    Several,
}

impl ContentRange {
    /// Reads the value of a header.
    pub fn parse(value: impl AsRef<[u8]>) -> Result<Self, BadContentRange> {
        let bytes = value.as_ref();
        let read = str::from_utf8(bytes).map_err(|_| ContentRangeFault::Form).and_then(read_content_range);
        read.map_err(|fault| BadContentRange { text: printable_bytes(bytes), fault })
    }

    /// Reads it out of an answer's headers; `None` where there is none.
    pub fn from_headers(headers: &HeaderMap) -> Result<Option<Self>, BadContentRange> {
        let mut values = headers.get_all(CONTENT_RANGE).iter();
        let Some(first) = values.next() else { return Ok(None) };
        if values.any(|other| other != first) {
            return Err(BadContentRange { text: printable_bytes(first.as_bytes()), fault: ContentRangeFault::Several });
        }
        Self::parse(first).map(Some)
    }

    /// The length of the whole, where told.
    pub const fn total(self) -> Option<Length> {
        match self {
            Self::Satisfied { total, .. } => total,
            Self::Unsatisfied { total } => Some(total),
        }
    }
}

fn read_content_range(text: &str) -> Result<ContentRange, ContentRangeFault> {
    let text = text.trim_matches(BLANK);
    if text.is_empty() {
        return Err(ContentRangeFault::Empty);
    }
    let (unit, rest) = text.split_at(text.find([' ', '\t', '=']).unwrap_or(text.len()));
    if !unit.eq_ignore_ascii_case("bytes") {
        return Err(ContentRangeFault::Unit);
    }
    let rest = rest.trim_start_matches(BLANK);
    let rest = rest.strip_prefix('=').unwrap_or(rest);
    let (range, total) = rest.split_once('/').ok_or(ContentRangeFault::Form)?;
    match (range.trim_matches(BLANK), total.trim_matches(BLANK)) {
        ("*", total) => Ok(ContentRange::Unsatisfied { total: Length(number(total)?) }),
        (range, "*") => satisfied(range, None),
        (range, total) => satisfied(range, Some(Length(number(total)?))),
    }
}

fn satisfied(range: &str, total: Option<Length>) -> Result<ContentRange, ContentRangeFault> {
    let (first, last) = range.split_once('-').ok_or(ContentRangeFault::Form)?;
    let (first, last) = (number(first.trim_matches(BLANK))?, number(last.trim_matches(BLANK))?);
    if last < first {
        return Err(ContentRangeFault::Reversed);
    }
    if total.is_some_and(|total| total.0 <= last) {
        return Err(ContentRangeFault::BeyondTotal);
    }
    // `number` is far below the largest u64.
    Ok(ContentRange::Satisfied { range: ByteRange::new(Offset(first), Offset(last + 1)), total })
}

/// The blanks that HTTP knows (RFC 9110 5.6.3).
const BLANK: [char; 2] = [' ', '\t'];

/// Digits only, at most [`Length::LARGEST_FILE`].
fn number(text: &str) -> Result<u64, ContentRangeFault> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ContentRangeFault::Form);
    }
    let n: u64 = text.parse().map_err(|_| ContentRangeFault::TooLarge)?;
    if n > Length::LARGEST_FILE.0 { Err(ContentRangeFault::TooLarge) } else { Ok(n) }
}

/// A Content-Length that cannot be relied on: the whole answer must be refused (RFC 9112 6.3).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadContentLength {
    /// No number.
    #[error("the Content-Length \"{text}\" is no number of bytes")]
    NoNumber {
        /// Its text, made printable.
        text: String,
    },
    /// Beyond [`Length::LARGEST_FILE`].
    #[error("the Content-Length \"{text}\" is beyond the size of any file")]
    TooLarge {
        /// Its text, made printable.
        text: String,
    },
    /// It stands there more than once, with other numbers.
    #[error("the answer has two lengths, {first} and {second}")]
    Contradiction {
        /// The one.
        first: Length,
        /// The other.
        second: Length,
    },
}

/// The Content-Length of an answer; `None` where there is none. The same number repeated counts once (RFC 9110 8.6).
pub fn content_length(headers: &HeaderMap) -> Result<Option<Length>, BadContentLength> {
    let mut found = None;
    for value in headers.get_all(CONTENT_LENGTH) {
        for item in value.as_bytes().split(|b| *b == b',') {
            let length = one_length(item)?;
            match found.replace(length) {
                Some(first) if first != length => {
                    return Err(BadContentLength::Contradiction { first, second: length });
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

fn one_length(item: &[u8]) -> Result<Length, BadContentLength> {
    let text = || printable_bytes(item.trim_ascii());
    let digits = str::from_utf8(item).map_err(|_| BadContentLength::NoNumber { text: text() })?;
    number(digits.trim_matches(BLANK)).map(Length).map_err(|fault| match fault {
        ContentRangeFault::TooLarge => BadContentLength::TooLarge { text: text() },
        _ => BadContentLength::NoNumber { text: text() },
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn satisfied(first: u64, last: u64, total: Option<u64>) -> ContentRange {
        let range = ByteRange::new(Offset(first), Offset(last + 1));
        ContentRange::Satisfied { range, total: total.map(Length) }
    }

    #[test]
    fn requests_count_the_last_byte_in() {
        assert_eq!(range_from(Offset(5)), "bytes=5-");
        assert_eq!(range_of(ByteRange::new(Offset(5), Offset(10))).as_deref(), Some("bytes=5-9"));
        assert_eq!(range_of(ByteRange::new(Offset(5), Offset(5))), None);
        assert_eq!(range_of(ByteRange::new(Offset(9), Offset(5))), None);
    }

    #[test]
    fn the_three_forms() {
        assert_eq!(ContentRange::parse("bytes 0-99/100"), Ok(satisfied(0, 99, Some(100))));
        assert_eq!(ContentRange::parse("bytes 5-5/*"), Ok(satisfied(5, 5, None)));
        assert_eq!(ContentRange::parse("bytes */0"), Ok(ContentRange::Unsatisfied { total: Length(0) }));
        assert_eq!(ContentRange::parse("bytes */47").map(ContentRange::total), Ok(Some(Length(47))));
    }

    #[test]
    fn slips_with_one_reading_are_forgiven() {
        for text in [
            "bytes=0-99/100",
            "Bytes 0-99/100",
            " BYTES  0 - 99 / 100 ",
            "bytes\t0-99/100",
            "bytes = 0-99/100",
            "bytes 000-099/0100",
        ] {
            assert_eq!(ContentRange::parse(text), Ok(satisfied(0, 99, Some(100))), "{text:?}");
        }
        assert_eq!(ContentRange::parse("bytes=*/7"), Ok(ContentRange::Unsatisfied { total: Length(7) }));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        use ContentRangeFault as F;
        for (text, fault) in [
            ("", F::Empty),
            (" \t ", F::Empty),
            ("0-99/100", F::Unit),
            ("items 0-99/100", F::Unit),
            ("bytes0-99/100", F::Unit),
            ("bytes", F::Form),
            ("bytes 0-99", F::Form),
            ("bytes */*", F::Form),
            ("bytes -5-99/100", F::Form),
            ("bytes 0--1/100", F::Form),
            ("bytes 0-99/-1", F::Form),
            ("bytes +0-99/100", F::Form),
            ("bytes 0-9 9/100", F::Form),
            ("bytes 0x0-99/100", F::Form),
            ("bytes 0-99/100, bytes 0-99/100", F::Form),
            ("bytes 0-99/100/200", F::Form),
            ("bytes ==0-99/100", F::Form),
            ("bytes ٠-٩/١٠", F::Form),
            ("bytes 9-3/100", F::Reversed),
            ("bytes 0-100/100", F::BeyondTotal),
            ("bytes 0-0/0", F::BeyondTotal),
            ("bytes 0-18446744073709551615/*", F::TooLarge),
            ("bytes 0-9/18446744073709551616", F::TooLarge),
            ("bytes 0-9/99999999999999999999999999", F::TooLarge),
        ] {
            let bad = ContentRange::parse(text).expect_err(text);
            assert_eq!(bad.fault, fault, "{text:?}");
            assert_eq!(bad.text, text.replace('\t', "\\u{9}"));
        }
    }

    #[test]
    fn the_error_keeps_a_printable_text() {
        let bad = ContentRange::parse(b"bytes \x1b[2J\xff").expect_err("no range");
        assert_eq!(bad.text, "bytes \\u{1b}[2J\\xff");
    }

    #[test]
    fn several_headers_must_agree() {
        let mut headers = HeaderMap::new();
        assert_eq!(ContentRange::from_headers(&headers), Ok(None));
        headers.append(CONTENT_RANGE, HeaderValue::from_static("bytes 0-9/10"));
        headers.append(CONTENT_RANGE, HeaderValue::from_static("bytes 0-9/10"));
        assert_eq!(ContentRange::from_headers(&headers), Ok(Some(satisfied(0, 9, Some(10)))));
        headers.append(CONTENT_RANGE, HeaderValue::from_static("bytes 1-9/10"));
        let bad = ContentRange::from_headers(&headers).expect_err("two ranges");
        assert_eq!(bad.fault, ContentRangeFault::Several);
    }

    fn length_of(values: &[&'static str]) -> Result<Option<Length>, BadContentLength> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(CONTENT_LENGTH, HeaderValue::from_static(value));
        }
        content_length(&headers)
    }

    #[test]
    fn one_length_or_the_same_again() {
        assert_eq!(length_of(&[]), Ok(None));
        assert_eq!(length_of(&["0"]), Ok(Some(Length(0))));
        assert_eq!(length_of(&["42, 42"]), Ok(Some(Length(42))));
        assert_eq!(length_of(&["42", " 42 "]), Ok(Some(Length(42))));
        assert_eq!(
            length_of(&["42", "43"]),
            Err(BadContentLength::Contradiction { first: Length(42), second: Length(43) })
        );
        assert!(length_of(&["42,43"]).is_err());
    }

    #[test]
    fn strange_lengths_are_refused() {
        for text in ["", "-1", "+1", "1e3", "0x10", "4 2", "42,", "abc"] {
            assert!(matches!(length_of(&[text]), Err(BadContentLength::NoNumber { .. })), "{text:?}");
        }
        for text in ["9223372036854775807", "9223372036854775808", "18446744073709551616", "4611686018427387905"] {
            assert!(matches!(length_of(&[text]), Err(BadContentLength::TooLarge { .. })), "{text:?}");
        }
        assert_eq!(length_of(&["4611686018427387904"]), Ok(Some(Length::LARGEST_FILE)));
    }

    proptest! {
        #[test]
        fn anything_may_come(bytes: Vec<u8>) {
            let _ = ContentRange::parse(&bytes);
        }

        #[test]
        fn nearly_right_texts_keep_the_invariants(
            text in "(bytes|Bytes|octets)?[ =]{0,2}[0-9]{0,21}[- ]{0,2}[0-9*]{0,21}/[0-9*]{0,21}",
        ) {
            if let Ok(ContentRange::Satisfied { range, total }) = ContentRange::parse(&text) {
                prop_assert!(!range.is_empty());
                prop_assert!(total.is_none_or(|total| range.end <= total.as_end()));
            }
        }

        #[test]
        fn what_is_written_is_read_back(first in 0..1_u64 << 40, more in 0..1_u64 << 40, rest in 0..1_u64 << 40) {
            let (last, total) = (first + more, first + more + 1 + rest);
            let text = format!("bytes {first}-{last}/{total}");
            prop_assert_eq!(ContentRange::parse(&text), Ok(satisfied(first, last, Some(total))));
        }
    }
}
