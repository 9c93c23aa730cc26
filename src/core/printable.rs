//! Text from a server, made harmless: what terminals and logs may show of it.
//!
//! A header or a name can carry escape sequences that repaint a terminal, line breaks that forge a log line, and marks
//! that turn the reading direction around. Such characters are shown as `\u{1b}`, bytes that are no UTF-8 as `\xff`,
//! and the whole is limited in length. Joiners that scripts and emoji need (U+200C, U+200D) are left alone.

use std::borrow::Cow;

/// The most characters that are shown; a longer text ends in `...`, which are the last three of them.
pub const MAX_CHARS: usize = 200;

const ELLIPSIS: &str = "...";

/// The text with every dangerous or invisible character escaped, at most [`MAX_CHARS`] characters. Applying it twice
/// changes nothing more.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().take(MAX_CHARS + 1).count() <= MAX_CHARS && !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = Shown::default();
    shown.push_str(text);
    Cow::Owned(shown.text)
}

/// The same for bytes that may be no UTF-8.
pub fn printable_bytes(bytes: &[u8]) -> String {
    let mut shown = Shown::default();
    for chunk in bytes.utf8_chunks() {
        shown.push_str(chunk.valid());
        for byte in chunk.invalid() {
            shown.push(&format!("\\x{byte:02x}"));
        }
        if shown.full {
            break;
        }
    }
    shown.text
}

/// What the system said of an error, without the number that only programmers want: `Permission denied`.
pub fn plain_error(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) if text.ends_with(')') => text[..at].to_owned(),
        _ => text,
    }
}

/// A character that does something to a terminal or a reader other than to be seen: controls (C0, DEL, C1), marks of
/// reading direction, separators of lines, invisible and tag characters.
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// A text that grows up to the limit, and can always be cut between two pieces.
#[derive(Default)]
struct Shown {
    text: String,
    chars: usize,
    /// Where to cut so that the ellipsis still fits.
    cut: usize,
    full: bool,
}

impl Shown {
    fn push_str(&mut self, text: &str) {
        let mut buffer = [0; 4];
        for c in text.chars() {
            if self.full {
                return;
            }
            match is_hidden(c) {
                true => self.push(&c.escape_unicode().to_string()),
                false => self.push(c.encode_utf8(&mut buffer)),
            }
        }
    }

    /// Adds a piece that is shown whole or not at all.
    fn push(&mut self, piece: &str) {
        if self.full {
            return;
        }
        self.chars += piece.chars().count();
        if self.chars > MAX_CHARS {
            self.text.truncate(self.cut);
            self.text.push_str(ELLIPSIS);
            self.full = true;
            return;
        }
        self.text.push_str(piece);
        if self.chars <= MAX_CHARS - ELLIPSIS.len() {
            self.cut = self.text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn harmless_text_is_not_touched() {
        for text in ["", "plain", "Größe 文件 \u{1f600}", "a\\b \"c\"", "family: \u{1f468}\u{200d}\u{1f469}"] {
            assert!(matches!(printable(text), Cow::Borrowed(t) if t == text));
            assert_eq!(printable_bytes(text.as_bytes()), text);
        }
    }

    #[test]
    fn dangerous_characters_are_shown_as_escapes() {
        assert_eq!(printable("\x1b[31mred\x07"), "\\u{1b}[31mred\\u{7}");
        assert_eq!(printable("a\r\nb\0\x7f\u{9b}"), "a\\u{d}\\u{a}b\\u{0}\\u{7f}\\u{9b}");
        assert_eq!(printable("x\u{202e}gpj.exe\u{2066}\u{2028}"), "x\\u{202e}gpj.exe\\u{2066}\\u{2028}");
        assert_eq!(printable_bytes(b"caf\xe9 \xff\x1b"), "caf\\xe9 \\xff\\u{1b}");
    }

    #[test]
    fn a_long_text_ends_in_an_ellipsis_and_within_the_limit() {
        assert_eq!(printable(&"x".repeat(200)), "x".repeat(200));
        assert_eq!(printable(&"x".repeat(201)), format!("{}...", "x".repeat(197)));
        assert_eq!(printable_bytes(&[b'x'; 100_000]), format!("{}...", "x".repeat(197)));
    }

    #[test]
    fn an_escape_is_never_cut_in_two() {
        let shown = printable_bytes(&[0xff; 300]);
        assert_eq!(shown, format!("{}...", "\\xff".repeat(49)));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_harmless(bytes: Vec<u8>) {
            let shown = printable_bytes(&bytes);
            prop_assert!(!shown.chars().any(is_hidden));
            prop_assert!(shown.chars().count() <= MAX_CHARS);
        }

        #[test]
        fn twice_is_once(text in "(?s).{0,400}") {
            let once = printable(&text).into_owned();
            prop_assert_eq!(printable(&once).into_owned(), once.clone());
            prop_assert_eq!(printable_bytes(text.as_bytes()), once);
        }
    }
}
