//! The reader: bytes of a file go in as they come, descriptors come out, each with a verdict.
//!
//! A file that splits does so at the next annotation, or at the next line that begins a descriptor; a bad one leaves the
//! others alone (B5). Bytes are never changed: what is kept is kept as it was sent.

use super::fault::Fault;
use super::segment::Segment;
use super::table::{ANY, Kind, Shape, Start};
use crate::core::sync::kinds::draft::Draft;

/// The longest line, in bytes.
pub(super) const MAX_LINE: usize = 1 << 20;
/// The longest descriptor of a kind that splits, in bytes.
pub(super) const MAX_SEGMENT: usize = 16 << 20;

/// Reads one file.
#[derive(Debug)]
pub struct Reader<'n> {
    kind: &'static Kind,
    /// Its file's name.
    name: &'n str,
    line: Vec<u8>,
    /// Where the line under way begins.
    at: u64,
    /// The descriptor under way.
    draft: Option<Draft>,
    /// No line may be longer; the file is given up.
    burst: bool,
}

impl<'n> Reader<'n> {
    /// Of a file of this name that should be of this kind.
    pub const fn new(kind: &'static Kind, name: &'n str) -> Self {
        Self { kind, name, line: Vec::new(), at: 0, draft: None, burst: false }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8], found: &mut Vec<Segment>) {
        if self.kind.name == ANY {
            // Bytes that may be anything have no lines.
            if !bytes.is_empty() {
                self.draft.get_or_insert_with(|| Draft::new(self.kind, 0)).pass(bytes.len());
            }
            return;
        }
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            if self.burst {
                return;
            }
            if self.line.len() + piece.len() > MAX_LINE {
                self.burst = true;
                self.draft_here().fail(Fault::TooLong { limit: MAX_LINE });
                return;
            }
            if self.line.is_empty() && piece.ends_with(b"\n") {
                self.take(piece, found);
                continue;
            }
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.take(&line, found);
                self.line = line;
                self.line.clear();
            }
        }
    }

    /// The file has ended.
    pub fn finish(mut self, found: &mut Vec<Segment>) {
        if !self.line.is_empty() && !self.burst {
            let line = std::mem::take(&mut self.line);
            let tail = self.draft_here();
            tail.line(&line);
            tail.fail(Fault::CutLine);
        }
        match self.draft.take() {
            Some(draft) => found.push(draft.finish(self.name)),
            None if found.is_empty() && self.at == 0 => found.push(Segment {
                at: 0,
                length: 0,
                bytes: Vec::new(),
                annotated: false,
                verdict: Err(Fault::Empty),
            }),
            None => {}
        }
    }

    /// A whole line, its end included.
    fn take(&mut self, line: &[u8], found: &mut Vec<Segment>) {
        if self.begins_another(line)
            && let Some(draft) = self.draft.take()
        {
            found.push(draft.finish(self.name));
        }
        self.draft_here().line(line);
        self.at += line.len() as u64;
    }

    fn draft_here(&mut self) -> &mut Draft {
        let (kind, at) = (self.kind, self.at);
        self.draft.get_or_insert_with(|| Draft::new(kind, at))
    }

    fn begins_another(&self, line: &[u8]) -> bool {
        let Some(draft) = self.draft.as_ref().filter(|draft| draft.has_body()) else { return false };
        let begins = line.starts_with(b"@") || (!draft.is_foreign() && self.kind.start.is(line));
        self.kind.shape == Shape::Split && begins
    }
}

impl Start {
    /// Does this line begin such a thing?
    pub(super) fn is(self, line: &[u8]) -> bool {
        let line = line.trim_ascii_end();
        match self {
            Self::Any => true,
            Self::Words(words) => words.iter().any(|word| behind(line, word).is_some()),
            Self::Line(wanted) => line == wanted.as_bytes(),
            Self::Number => !line.is_empty() && line.iter().all(u8::is_ascii_digit),
            Self::Holds(what) => line.windows(what.len()).any(|part| part == what.as_bytes()),
        }
    }
}

/// What stands behind a word that begins a line; nothing of it may be a longer word.
pub(super) fn behind<'l>(line: &'l [u8], word: &str) -> Option<&'l [u8]> {
    let rest = line.strip_prefix(word.as_bytes())?;
    match rest.first() {
        None => Some(rest),
        Some(b) if b.is_ascii_whitespace() => Some(rest.trim_ascii()),
        Some(_) => None,
    }
}
