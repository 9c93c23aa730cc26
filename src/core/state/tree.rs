//! One element of a state file as a small tree of borrowed slices, with limits.
//!
//! The reader is BOINC's in spirit (boinc.md 2.2): attributes mean nothing, comments are passed over, tags may share a
//! line, and a bare `&` is itself, for BOINC writes names unescaped. References are the five of XML 1.0 and those to
//! characters; nothing can be declared.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::errors::{Error, IllFormedError, SyntaxError};
use quick_xml::events::Event;

use super::damage::{Damage, END_OF_FILE, MAX_DEPTH, MAX_ELEMENTS, MAX_TEXT, excerpt};

/// What separates elements, and is cut off the ends of a text.
pub(super) const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];

/// An element.
#[derive(Clone, Debug)]
pub(super) struct Element<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// What stands between name and `>`.
    pub(super) attributes: &'a str,
    /// All of it, tags included.
    pub(super) raw: &'a str,
    /// What stands between its tags.
    pub(super) inner: &'a str,
    /// Written as `<name/>`.
    pub(super) empty_tag: bool,
    /// Where it begins in the text that was parsed.
    pub(super) at: usize,
    /// What it holds, in order; nothing for an element that holds only text.
    pub(super) items: Vec<Item<'a>>,
}

/// What an element can hold besides its own text.
#[derive(Clone, Debug)]
pub(super) enum Item<'a> {
    /// Another element.
    Element(Element<'a>),
    /// A comment, a processing instruction, or stray text between elements.
    Other(&'a str),
}

/// One token of the file with its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    /// What it is.
    pub(super) what: What<'a>,
    /// All of it.
    pub(super) raw: &'a str,
    /// Where it begins.
    pub(super) at: usize,
}

/// The kinds of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What<'a> {
    /// `<name ...>`
    Start(&'a str),
    /// `<name .../>`
    Empty(&'a str),
    /// `</name>`
    End,
    /// Text, a reference, or CDATA.
    Text,
    /// A comment or a processing instruction.
    Other,
    /// `<?xml ...?>`
    Declaration,
    /// `<!DOCTYPE ...>`
    Doctype,
    /// The end of the file.
    Eof,
}

/// Reads tokens and elements, one after the other.
pub(super) struct Cursor<'a> {
    reader: Reader<&'a [u8]>,
    text: &'a str,
    elements: usize,
}

impl<'a> Element<'a> {
    /// The one element that `text` consists of.
    pub(super) fn parse(text: &'a str) -> Result<Self, Damage> {
        let mut cursor = Cursor::new(text);
        loop {
            let token = cursor.next()?;
            match token.what {
                What::Start(_) | What::Empty(_) => return cursor.element(token),
                What::Text if is_blank(token.raw) => {}
                _ => return Err(Damage::here(text, token.at, "an element")),
            }
        }
    }

    /// The elements directly inside, in order.
    pub(super) fn elements(&self) -> impl Iterator<Item = &Element<'a>> {
        self.items.iter().filter_map(|item| match item {
            Item::Element(element) => Some(element),
            Item::Other(_) => None,
        })
    }

    /// The elements of that name directly inside, in order.
    pub(super) fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s Element<'a>> {
        self.elements().filter(move |e| e.name == name)
    }

    /// The last element of that name directly inside: as in BOINC, a later one replaces an earlier one.
    pub(super) fn child(&self, name: &str) -> Option<&Element<'a>> {
        self.items.iter().rev().find_map(|item| match item {
            Item::Element(element) if element.name == name => Some(element),
            _ => None,
        })
    }

    /// Its text: blanks at the ends cut off, references resolved, comments and inner elements left out.
    pub(super) fn text(&self) -> Cow<'a, str> {
        let inner = self.inner.trim_matches(BLANK);
        if inner.contains(['<', '&']) { Cow::Owned(resolved(inner)) } else { Cow::Borrowed(inner) }
    }
}

impl<'a> Cursor<'a> {
    /// At the start of `text`.
    pub(super) fn new(text: &'a str) -> Self {
        let mut reader = Reader::from_str(text);
        reader.config_mut().allow_dangling_amp = true;
        Self { reader, text, elements: 0 }
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Result<Token<'a>, Damage> {
        let at = self.position();
        let event = self.reader.read_event().map_err(|e| self.syntax(&e))?;
        let raw = self.text.get(at..self.position()).unwrap_or_default();
        if raw.len() > MAX_TEXT {
            return Err(Damage::at(self.text, at, format!("at most {MAX_TEXT} bytes of text"), "more"));
        }
        // The name of a tag follows its `<` directly.
        let name = |length: usize| raw.get(1..=length).unwrap_or_default();
        let what = match event {
            Event::Start(tag) => What::Start(name(tag.name().as_ref().len())),
            Event::Empty(tag) => What::Empty(name(tag.name().as_ref().len())),
            Event::End(_) => What::End,
            Event::GeneralRef(reference) if character(&reference).is_none() => {
                return Err(Damage::here(self.text, at, "a character or one of &lt; &gt; &amp; &quot; &apos;"));
            }
            Event::Text(_) | Event::GeneralRef(_) | Event::CData(_) => What::Text,
            Event::Comment(_) | Event::PI(_) => What::Other,
            Event::Decl(_) => What::Declaration,
            Event::DocType(_) => What::Doctype,
            Event::Eof => What::Eof,
        };
        if matches!(what, What::Start("") | What::Empty("")) {
            return Err(Damage::here(self.text, at, "the name of an element after \"<\""));
        }
        Ok(Token { what, raw, at })
    }

    /// The whole element that `open`, the token just read, begins. The limit on elements counts anew.
    pub(super) fn element(&mut self, open: Token<'a>) -> Result<Element<'a>, Damage> {
        self.elements = 0;
        // The root is outside of it.
        self.nested(open, 2)
    }

    fn nested(&mut self, open: Token<'a>, depth: usize) -> Result<Element<'a>, Damage> {
        self.elements += 1;
        if self.elements > MAX_ELEMENTS {
            return Err(Damage::at(self.text, open.at, format!("at most {MAX_ELEMENTS} elements in one"), "more"));
        }
        if depth > MAX_DEPTH {
            return Err(Damage::at(self.text, open.at, format!("at most {MAX_DEPTH} levels of elements"), "more"));
        }
        let mut element = opened(open);
        if !element.empty_tag {
            self.fill(&mut element, depth)?;
        }
        Ok(element)
    }

    /// Reads up to the end tag of `element`.
    fn fill(&mut self, element: &mut Element<'a>, depth: usize) -> Result<(), Damage> {
        let inner_start = self.position();
        // Text that is no text of ours unless an element stands beside it; leaves keep no items at all.
        let mut loose: Option<&'a str> = None;
        loop {
            let token = self.next()?;
            let item = match token.what {
                What::Start(_) | What::Empty(_) => Item::Element(self.nested(token, depth + 1)?),
                What::Other => Item::Other(token.raw),
                What::Text if is_blank(token.raw) => continue,
                What::Text if element.items.is_empty() && loose.is_none() => {
                    loose = Some(token.raw);
                    continue;
                }
                What::Text => Item::Other(token.raw),
                What::End => {
                    element.inner = self.text.get(inner_start..token.at).unwrap_or_default();
                    element.raw = self.text.get(element.at..self.position()).unwrap_or_default();
                    return Ok(());
                }
                What::Eof => return Err(self.ended(&format!("</{}>", element.name))),
                What::Declaration | What::Doctype => {
                    return Err(Damage::here(self.text, token.at, format!("elements or </{}>", element.name)));
                }
            };
            element.items.extend(loose.take().map(Item::Other));
            element.items.push(item);
        }
    }

    /// The damage of a file that breaks off before `expected`.
    pub(super) fn ended(&self, expected: &str) -> Damage {
        Damage::at(self.text, self.text.len(), expected, END_OF_FILE)
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> usize {
        usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    fn syntax(&self, error: &Error) -> Damage {
        let at = usize::try_from(self.reader.error_position()).unwrap_or(usize::MAX);
        match error {
            Error::IllFormed(IllFormedError::MismatchedEndTag { expected, found }) => {
                Damage::at(self.text, at, format!("</{expected}>"), excerpt(&format!("</{found}>")))
            }
            Error::IllFormed(IllFormedError::UnmatchedEndTag(found)) => {
                Damage::at(self.text, at, "an element", excerpt(&format!("</{found}>")))
            }
            Error::Syntax(SyntaxError::InvalidBangMarkup) => Damage::here(self.text, at, "a comment"),
            // The others are tags and comments that do not end before the file does.
            _ => {
                let begun = excerpt(self.text.get(at..).unwrap_or_default());
                Damage::at(self.text, at, format!("the end of {begun}"), END_OF_FILE)
            }
        }
    }
}

/// Nothing but blanks.
pub(super) fn is_blank(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'))
}

/// The element of a start tag or an empty tag, as yet without content.
fn opened(tag: Token<'_>) -> Element<'_> {
    let (name, empty_tag) = match tag.what {
        What::Empty(name) => (name, true),
        What::Start(name) => (name, false),
        _ => ("", true),
    };
    let rest = tag.raw.get(1 + name.len()..).unwrap_or_default();
    let attributes = rest.trim_end_matches('>').trim_end_matches('/').trim();
    Element { name, attributes, raw: tag.raw, inner: "", empty_tag, at: tag.at, items: Vec::new() }
}

/// The character that the name of a reference stands for.
fn character(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => numbered(name.strip_prefix('#')?),
    }
}

/// The character of a number as it stands in a reference: decimal, or `x` and hexadecimal.
fn numbered(number: &str) -> Option<char> {
    let code = match number.strip_prefix('x') {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => number.parse().ok()?,
    };
    char::from_u32(code).filter(|c| *c != '\0')
}

/// A text with references resolved and everything but text and CDATA left out. It was parsed before, so what cannot be
/// read ends it.
fn resolved(inner: &str) -> String {
    let mut reader = Reader::from_str(inner);
    reader.config_mut().allow_dangling_amp = true;
    let (mut text, mut depth) = (String::with_capacity(inner.len()), 0_usize);
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Text(part) if depth == 0 => text.push_str(&part),
            Event::CData(part) if depth == 0 => text.push_str(&part),
            Event::GeneralRef(name) if depth == 0 => text.extend(character(&name)),
            Event::Eof => break,
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn damage(text: &str) -> String {
        Element::parse(text).expect_err("damaged").to_string()
    }

    #[test]
    fn slices_are_exact() {
        let text = "  <a k=\"v\"> <b> x &amp; y </b><!-- c --><d/>stray</a>";
        let a = Element::parse(text).expect("parses");
        assert_eq!((a.name, a.attributes, a.at), ("a", "k=\"v\"", 2));
        assert_eq!(a.raw, text.trim_start());
        let raws: Vec<&str> = a
            .items
            .iter()
            .map(|i| match i {
                Item::Element(e) => e.raw,
                Item::Other(raw) => raw,
            })
            .collect();
        assert_eq!(raws, ["<b> x &amp; y </b>", "<!-- c -->", "<d/>", "stray"]);
        assert_eq!(a.child("b").expect("b").text(), "x & y");
        assert!(a.child("d").expect("d").empty_tag);
    }

    #[test]
    fn texts_resolve_what_xml_defines_and_nothing_else() {
        let text = |t: &str| Element::parse(t).map(|e| e.text().into_owned()).ok();
        assert_eq!(text("<a>&lt;&#65;&#x42;&quot;<![CDATA[&amp;]]></a>").as_deref(), Some("<AB\"&amp;"));
        assert_eq!(text("<a>R&D 1 & 2</a>").as_deref(), Some("R&D 1 & 2"));
        assert_eq!(text("<a>1<!-- one --><b>x</b>2</a>").as_deref(), Some("12"));
        assert_eq!(text("<a>&#32;x&#10;</a>").as_deref(), Some(" x\n"));
        for bad in ["<a>&nbsp;</a>", "<a>&#0;</a>", "<a>&#xD800;</a>", "<a>&#;</a>"] {
            assert!(text(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn damage_names_what_was_expected() {
        assert_eq!(damage("<a>\n<b></a>"), "line 2, column 4: expected </b>, found \"</a>\"");
        assert_eq!(damage("<a><b>x"), "line 1, column 8: expected </b>, found the end of the file");
        assert_eq!(damage("<a><b"), "line 1, column 4: expected the end of \"<b\", found the end of the file");
        assert!(damage("<a><></></a>").contains("the name of an element"));
        assert!(damage("<a><!DOCTYPE x></a>").contains("elements or </a>"));
    }

    #[test]
    fn limits_hold() {
        let deep = "<a>".repeat(MAX_DEPTH) + &"</a>".repeat(MAX_DEPTH);
        assert!(damage(&deep).contains("levels"));
        let long = format!("<a>{}</a>", "x".repeat(MAX_TEXT + 1));
        assert!(damage(&long).contains("bytes of text"));
        let many = format!("<a>{}</a>", "<b/>".repeat(MAX_ELEMENTS));
        assert!(damage(&many).contains("elements in one"));
    }
}
