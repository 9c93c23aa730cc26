//! JSON as it comes: bytes go in, tokens come out. Nothing is built, nothing is held but one text; bounded in depth and
//! in the length of a text.

use super::BadIndex;

/// The deepest nesting; CollecTor's own is below 20.
pub(super) const MAX_DEPTH: usize = 64;
/// The longest text or number, in bytes as written.
pub(super) const MAX_TEXT: usize = 64 << 10;

/// UTF-8's mark of the byte order.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A piece of a document. Texts are unescaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    BeginObject,
    EndObject,
    BeginArray,
    EndArray,
    Key(&'a str),
    Text(&'a str),
    Number(&'a str),
    /// `true`, `false` or `null`.
    Word,
}

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Value,
    /// Of an array that has just begun.
    ValueOrEnd,
    /// Of an object that has just begun.
    KeyOrEnd,
    Key,
    Colon,
    CommaOrEnd,
    Nothing,
}

/// What is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    Between,
    Text { escaped: bool },
    Bare,
}

/// Reads one document.
#[derive(Debug)]
pub(super) struct Tokens {
    expect: Expect,
    within: Within,
    /// Open objects (true) and arrays.
    open: Vec<bool>,
    held: Vec<u8>,
    /// Bytes before the piece that is being fed.
    before: u64,
    /// Where the text, number or word under way begins.
    token_at: u64,
    /// How many bytes of a mark of the byte order have come.
    mark: usize,
}

impl Tokens {
    pub(super) fn new() -> Self {
        let (expect, within) = (Expect::Value, Within::Between);
        Self { expect, within, open: Vec::new(), held: Vec::new(), before: 0, token_at: 0, mark: 0 }
    }

    /// Takes the next bytes; `see` is given each token that is complete.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        see: &mut dyn FnMut(Token<'_>) -> Result<(), BadIndex>,
    ) -> Result<(), BadIndex> {
        let mut at = 0;
        while at < bytes.len() {
            at += match self.within {
                Within::Text { escaped } => self.text(&bytes[at..], escaped, see)?,
                Within::Bare => self.bare(&bytes[at..], see)?,
                Within::Between => {
                    self.between(bytes[at], at, see)?;
                    1
                }
            };
            if self.held.len() > MAX_TEXT {
                return Err(BadIndex::TooLong { limit: MAX_TEXT });
            }
        }
        self.before += bytes.len() as u64;
        Ok(())
    }

    /// The document has ended.
    pub(super) fn finish(mut self, see: &mut dyn FnMut(Token<'_>) -> Result<(), BadIndex>) -> Result<(), BadIndex> {
        if self.within == Within::Bare {
            self.end_bare(see)?;
        }
        match (self.expect, self.within) {
            (Expect::Nothing, Within::Between) => Ok(()),
            _ => Err(BadIndex::Ended),
        }
    }

    fn between(
        &mut self,
        byte: u8,
        at: usize,
        see: &mut dyn FnMut(Token<'_>) -> Result<(), BadIndex>,
    ) -> Result<(), BadIndex> {
        use Expect::{Colon, CommaOrEnd, Key, KeyOrEnd, Value, ValueOrEnd};
        if self.is_mark(byte, at) {
            return Ok(());
        }
        if (1..MARK.len()).contains(&self.mark) {
            return Err(BadIndex::Syntax { at: self.before + at as u64 });
        }
        match (byte, self.expect) {
            (b' ' | b'\t' | b'\r' | b'\n', _) => Ok(()),
            (b'{', Value | ValueOrEnd) => self.begin(true, see),
            (b'[', Value | ValueOrEnd) => self.begin(false, see),
            (b'}', KeyOrEnd | CommaOrEnd) if self.open.last() == Some(&true) => self.end(see),
            (b']', ValueOrEnd | CommaOrEnd) if self.open.last() == Some(&false) => self.end(see),
            (b'"', Value | ValueOrEnd | Key | KeyOrEnd) => {
                self.within = Within::Text { escaped: false };
                self.token_at = self.before + at as u64;
                Ok(())
            }
            (b':', Colon) => {
                self.expect = Value;
                Ok(())
            }
            (b',', CommaOrEnd) => {
                self.expect = if self.open.last() == Some(&true) { Key } else { Value };
                Ok(())
            }
            (b'-' | b'0'..=b'9' | b'a'..=b'z', Value | ValueOrEnd) => {
                self.within = Within::Bare;
                self.token_at = self.before + at as u64;
                self.held.push(byte);
                Ok(())
            }
            _ => Err(BadIndex::Syntax { at: self.before + at as u64 }),
        }
    }

    /// A mark of the byte order is nothing, also where it should not be: once, and before everything else.
    fn is_mark(&mut self, byte: u8, at: usize) -> bool {
        let next = self.before + at as u64 == self.mark as u64 && MARK.get(self.mark) == Some(&byte);
        self.mark += usize::from(next);
        next
    }

    fn begin(&mut self, object: bool, see: &mut dyn FnMut(Token<'_>) -> Result<(), BadIndex>) -> Result<(), BadIndex> {
        if self.open.len() >= MAX_DEPTH {
            return Err(BadIndex::Deep { limit: MAX_DEPTH });
        }
        self.open.push(object);
        self.expect = if object { Expect::KeyOrEnd } else { Expect::ValueOrEnd };
        see(if object { Token::BeginObject } else { Token::BeginArray })
    }

    fn end(&mut self, see: &mut dyn FnMut(Token<'_>) -> Result<(), BadIndex>) -> Result<(), BadIndex> {
        let object = self.open.pop() == Some(true);
        self.value_done();
        see(if object { Token::EndObject } else { Token::EndArray })
    }

    fn value_done(&mut self) {
        self.expect = if self.open.is_empty() { Expect::Nothing } else { Expect::CommaOrEnd };
    }

    /// Within quotes; gives how many bytes it took.
    fn text(
        &mut self,
        bytes: &[u8],
        escaped: bool,
        see: &mut dyn FnMut(Token<'_>) -> Result<(), BadIndex>,
    ) -> Result<usize, BadIndex> {
        if escaped {
            self.held.push(bytes[0]);
            self.within = Within::Text { escaped: false };
            return Ok(1);
        }
        let end = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
        let room = MAX_TEXT.saturating_sub(self.held.len()) + 1;
        self.held.extend_from_slice(&bytes[..end.min(room)]);
        match bytes.get(end) {
            None => {}
            Some(b'\\') => {
                self.held.push(b'\\');
                self.within = Within::Text { escaped: true };
            }
            Some(_) => self.end_text(see)?,
        }
        Ok((end + 1).min(bytes.len()))
    }

    fn end_text(&mut self, see: &mut dyn FnMut(Token<'_>) -> Result<(), BadIndex>) -> Result<(), BadIndex> {
        self.within = Within::Between;
        if self.held.len() > MAX_TEXT {
            return Err(BadIndex::TooLong { limit: MAX_TEXT });
        }
        let held = std::mem::take(&mut self.held);
        let text = unescaped(&held).ok_or(BadIndex::Syntax { at: self.token_at })?;
        let is_key = matches!(self.expect, Expect::Key | Expect::KeyOrEnd);
        if is_key {
            self.expect = Expect::Colon;
        } else {
            self.value_done();
        }
        see(if is_key { Token::Key(&text) } else { Token::Text(&text) })?;
        self.held = held;
        self.held.clear();
        Ok(())
    }

    /// A number, or a word; gives how many bytes it took.
    fn bare(
        &mut self,
        bytes: &[u8],
        see: &mut dyn FnMut(Token<'_>) -> Result<(), BadIndex>,
    ) -> Result<usize, BadIndex> {
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || b"+-.".contains(b);
        let end = bytes.iter().position(|b| !is_part(b)).unwrap_or(bytes.len());
        let room = MAX_TEXT.saturating_sub(self.held.len()) + 1;
        self.held.extend_from_slice(&bytes[..end.min(room)]);
        if end < bytes.len() {
            self.end_bare(see)?;
        }
        Ok(end)
    }

    fn end_bare(&mut self, see: &mut dyn FnMut(Token<'_>) -> Result<(), BadIndex>) -> Result<(), BadIndex> {
        self.within = Within::Between;
        let held = std::mem::take(&mut self.held);
        self.value_done();
        match held.as_slice() {
            b"true" | b"false" | b"null" => see(Token::Word),
            number if number.iter().all(|b| b.is_ascii_digit() || b"+-.eE".contains(b)) => {
                // Nothing but ASCII.
                see(Token::Number(std::str::from_utf8(number).unwrap_or_default()))
            }
            _ => Err(BadIndex::Syntax { at: self.token_at }),
        }
    }
}

/// A text without its escapes; nothing where it is none.
fn unescaped(raw: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    let text = std::str::from_utf8(raw).ok()?;
    if text.bytes().any(|b| b < 0x20) {
        return None;
    }
    if !text.contains('\\') {
        return Some(text.into());
    }
    // The text has no quote that is not escaped, so that this is one JSON text.
    serde_json::from_str::<String>(&format!("\"{text}\"")).ok().map(Into::into)
}
