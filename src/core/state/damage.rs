//! Damage: where a state file is broken, and what should have stood there; and the limits that keep a hostile one harmless.

use crate::core::printable::printable;

/// The largest state file that is read or written, in bytes: some 300,000 transfers with full histories.
pub const MAX_BYTES: usize = 1 << 30;
/// The deepest nesting of elements, `<client_state>` included. Ours need 6.
pub const MAX_DEPTH: usize = 64;
/// The longest run of text, or the longest single tag or comment, in bytes.
pub const MAX_TEXT: usize = 1 << 20;
/// The most elements within one element of the top level, itself included.
pub const MAX_ELEMENTS: usize = 100_000;

/// The first place at which a state file is no state file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: expected {expected}, found {found}")]
pub struct Damage {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// Bytes before the place.
    pub offset: usize,
    /// What should stand there, for people; printable.
    pub expected: String,
    /// What stands there, printable and short.
    pub found: String,
}

/// What is found where a file breaks off.
pub(super) const END_OF_FILE: &str = "the end of the file";

impl Damage {
    /// At byte `offset` of `text`; an offset inside a character counts as that character's start.
    pub(super) fn at(text: &str, offset: usize, expected: impl Into<String>, found: impl Into<String>) -> Self {
        let offset = text.floor_char_boundary(offset.min(text.len()));
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            offset,
            // The name of an element stands in it, which may hold anything.
            expected: printable(&expected.into()).into_owned(),
            found: found.into(),
        }
    }

    /// The damage of a file that has so many bytes, where those are too many: it need not be read at all.
    pub fn too_large(bytes: u64) -> Option<Self> {
        let expected = format!("a file of at most {MAX_BYTES} bytes");
        (bytes > MAX_BYTES as u64).then(|| Self::at("", 0, expected, bytes.to_string()))
    }

    /// At byte `offset` of `text`, where something else stands: the text from there on is quoted.
    pub(super) fn here(text: &str, offset: usize, expected: impl Into<String>) -> Self {
        let offset = text.floor_char_boundary(offset.min(text.len()));
        Self::at(text, offset, expected, excerpt(&text[offset..]))
    }
}

/// The first characters of a text, printable and in quotes.
pub(super) fn excerpt(text: &str) -> String {
    const SHOWN: usize = 24;
    if text.is_empty() {
        return END_OF_FILE.to_owned();
    }
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("\"{}\"", shown.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_in_lines_and_characters() {
        let text = "<a>\n  ünï <b>";
        let damage = Damage::here(text, text.find("<b>").expect("there"), "</a>");
        assert_eq!(damage.to_string(), "line 2, column 7: expected </a>, found \"<b>\"");
    }

    #[test]
    fn what_is_expected_is_short_and_printable_too() {
        let damage = Damage::at("", 0, format!("</{}\u{1b}[2J>", "x".repeat(10)), END_OF_FILE);
        assert_eq!(damage.expected, "</xxxxxxxxxx\\u{1b}[2J>");
        assert!(Damage::at("", 0, "y".repeat(1 << 20), END_OF_FILE).expected.len() <= 200);
    }

    #[test]
    fn what_is_found_is_short_and_printable() {
        assert_eq!(excerpt(""), END_OF_FILE);
        assert_eq!(excerpt("\u{1b}[2J\n"), "\"\\u{1b}[2J\\n\"");
        assert!(excerpt(&"x".repeat(1000)).len() < 40);
    }
}
