//! The XML of a metalink: elements one after the other, within limits, whatever is unknown passed over.
//!
//! The rest of this folder sees an element's children ([`Cursor::child`]), and takes each whole: its text, its own
//! children, or not at all. References are those to characters and the five that XML knows by itself.

use quick_xml::Reader;
use quick_xml::errors::{Error, IllFormedError};
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};

use super::error::{BadMetalink, Fault, shown};
use super::{MAX_ATTRIBUTES, MAX_DEPTH, MAX_TAG, MAX_TEXT};

/// Reads a document from its start to its end.
pub(super) struct Cursor<'a> {
    reader: Reader<&'a [u8]>,
    text: &'a str,
    /// The elements that are open.
    depth: usize,
    /// The namespace of the root and the prefix that stands for it; empty where there is none.
    space: Space,
}

/// A namespace, as the root element declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Space {
    /// What stands before the colon of a name; empty for the default namespace.
    prefix: String,
    /// Its name.
    pub(super) name: String,
}

/// The start tag of an element that is open.
#[derive(Clone, Debug)]
pub(super) struct Tag<'a> {
    start: BytesStart<'a>,
    /// Where it begins.
    pub(super) at: usize,
}

enum Token<'a> {
    Open(Tag<'a>),
    Close,
    Text(String),
    End,
}

impl<'a> Cursor<'a> {
    /// At the start of `text`.
    pub(super) fn new(text: &'a str) -> Self {
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        Self { reader, text, depth: 0, space: Space::default() }
    }

    /// The root element, which must have this local name; its namespace is ours from here on.
    pub(super) fn root(&mut self, name: &str) -> Result<Tag<'a>, BadMetalink> {
        loop {
            let at = self.position();
            match self.next(Wanted::Nothing)? {
                Token::Open(tag) if tag.local() == name => {
                    self.space = self.space_of(&tag)?;
                    return Ok(tag);
                }
                Token::Open(tag) => {
                    return Err(self.bad(at, Fault::NotMetalink { found: format!("<{}>", shown(tag.name())) }));
                }
                Token::Text(text) if text.is_empty() => {}
                Token::Text(_) => return Err(self.bad(at, Fault::NotMetalink { found: "text".to_owned() })),
                Token::Close | Token::End => {
                    return Err(self.bad(at, Fault::NotMetalink { found: "the end".to_owned() }));
                }
            }
        }
    }

    /// The namespace of the document.
    pub(super) fn space(&self) -> &Space {
        &self.space
    }

    /// The next element of our namespace inside the one that is open, with its local name; `None` where that one ends.
    /// The caller takes it whole: by [`Cursor::text`], [`Cursor::skip`], or asking for its children until there is none.
    pub(super) fn child(&mut self) -> Result<Option<(String, Tag<'a>)>, BadMetalink> {
        loop {
            match self.next(Wanted::Nothing)? {
                Token::Open(tag) if self.is_ours(&tag)? => return Ok(Some((tag.local().to_owned(), tag))),
                Token::Open(_) => self.skip()?,
                Token::Text(_) => {}
                Token::Close | Token::End => return Ok(None),
            }
        }
    }

    /// Passes over the rest of the element that is open.
    pub(super) fn skip(&mut self) -> Result<(), BadMetalink> {
        let outside = self.depth.saturating_sub(1);
        while self.depth > outside {
            self.next(Wanted::Nothing)?;
        }
        Ok(())
    }

    /// The text of the element that `tag` opened, blanks at its ends cut off, elements in it left out; takes it whole.
    pub(super) fn text(&mut self, tag: &Tag<'_>) -> Result<String, BadMetalink> {
        let mut whole = String::new();
        loop {
            match self.next(Wanted::Text)? {
                Token::Text(part) if whole.len() + part.len() > MAX_TEXT => {
                    return Err(self.bad(tag.at, Fault::LongText { name: shown(tag.name()) }));
                }
                Token::Text(part) => whole.push_str(&part),
                Token::Open(_) => self.skip()?,
                Token::Close | Token::End => return Ok(whole.trim().to_owned()),
            }
        }
    }

    /// The value of an attribute without a prefix.
    pub(super) fn attribute(&self, tag: &Tag<'_>, name: &str) -> Result<Option<String>, BadMetalink> {
        let mut found = None;
        for (i, attribute) in tag.start.attributes().enumerate() {
            if i >= MAX_ATTRIBUTES {
                return Err(self.bad(tag.at, Fault::Attributes));
            }
            let attribute = attribute.map_err(|e| self.bad(tag.at, xml(&e)))?;
            if attribute.key.as_ref() == name {
                let raw = attribute.value.as_ref();
                found = Some(unescape(raw).map_err(|_| self.bad(tag.at, reference(raw)))?.into_owned());
            }
        }
        Ok(found)
    }

    /// The end of the document, behind its root.
    pub(super) fn end(&mut self) -> Result<(), BadMetalink> {
        loop {
            let at = self.position();
            match self.next(Wanted::Nothing)? {
                Token::End => return Ok(()),
                Token::Text(text) if text.is_empty() => {}
                _ => return Err(self.bad(at, Fault::Xml { detail: "something follows </metalink>".to_owned() })),
            }
        }
    }

    /// A fault at byte `at`.
    pub(super) fn bad(&self, at: usize, fault: Fault) -> BadMetalink {
        BadMetalink::at(self.text, at, fault)
    }

    fn position(&self) -> usize {
        usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    /// The namespace that a root element declares for itself.
    fn space_of(&self, tag: &Tag<'_>) -> Result<Space, BadMetalink> {
        let prefix = tag.prefix().to_owned();
        let name = self.attribute(tag, &declaration(&prefix))?.unwrap_or_default();
        Ok(Space { prefix, name })
    }

    /// Is this an element of the document's own namespace? What stands in one of another is passed over whole, so that
    /// only a declaration on the element itself can have changed what its prefix means.
    fn is_ours(&self, tag: &Tag<'_>) -> Result<bool, BadMetalink> {
        if tag.prefix() != self.space.prefix {
            return Ok(false);
        }
        let declared = self.attribute(tag, &declaration(&self.space.prefix))?;
        Ok(declared.is_none_or(|name| name == self.space.name))
    }

    fn next(&mut self, wanted: Wanted) -> Result<Token<'a>, BadMetalink> {
        loop {
            let at = self.position();
            let event = self.reader.read_event().map_err(|e| self.syntax(&e))?;
            let text = |part: &str| if wanted == Wanted::Text { part.to_owned() } else { first_of(part) };
            return Ok(match event {
                Event::Start(start) => Token::Open(self.opened(start, at)?),
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    Token::Close
                }
                Event::Text(part) => Token::Text(text(&part)),
                Event::CData(part) => Token::Text(text(&part)),
                Event::GeneralRef(name) => Token::Text(self.referred(&name, at)?),
                Event::DocType(_) => return Err(self.bad(at, Fault::Doctype)),
                Event::Eof if self.depth > 0 => return Err(self.bad(at, Fault::Ended { name: self.open_name() })),
                Event::Eof => Token::End,
                // Empty tags are given as two.
                Event::Comment(_) | Event::PI(_) | Event::Decl(_) | Event::Empty(_) => continue,
            });
        }
    }

    fn opened(&mut self, start: BytesStart<'a>, at: usize) -> Result<Tag<'a>, BadMetalink> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.bad(at, Fault::Depth));
        }
        if start.len() > MAX_TAG {
            return Err(self.bad(at, Fault::LongTag));
        }
        Ok(Tag { start, at })
    }

    fn referred(&self, name: &str, at: usize) -> Result<String, BadMetalink> {
        let raw = format!("&{};", name.get(..name.len().min(MAX_TEXT)).unwrap_or_default());
        unescape(&raw).map(|c| c.into_owned()).map_err(|_| self.bad(at, reference(&raw)))
    }

    /// The root's name, for a document that breaks off.
    fn open_name(&self) -> String {
        if self.space.prefix.is_empty() {
            "metalink".to_owned()
        } else {
            shown(&format!("{}:metalink", self.space.prefix))
        }
    }

    fn syntax(&self, error: &Error) -> BadMetalink {
        let at = usize::try_from(self.reader.error_position()).unwrap_or(usize::MAX);
        match error {
            Error::IllFormed(IllFormedError::MissingEndTag(name)) => self.bad(at, Fault::Ended { name: shown(name) }),
            other => self.bad(at, xml(other)),
        }
    }
}

/// What the caller does with text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Reads it.
    Text,
    /// Passes over it: it may be megabytes.
    Nothing,
}

impl Tag<'_> {
    fn name(&self) -> &str {
        let length = self.start.name().as_ref().len();
        self.start.get(..length).unwrap_or_default()
    }

    fn prefix(&self) -> &str {
        self.name().split_once(':').map_or("", |(prefix, _)| prefix)
    }

    fn local(&self) -> &str {
        self.name().split_once(':').map_or(self.name(), |(_, local)| local)
    }
}

/// The attribute that says what a prefix stands for.
fn declaration(prefix: &str) -> String {
    if prefix.is_empty() { "xmlns".to_owned() } else { format!("xmlns:{prefix}") }
}

/// Enough of a text to tell whether it is blank.
fn first_of(text: &str) -> String {
    text.trim_start().chars().take(1).collect()
}

fn xml(error: &impl std::fmt::Display) -> Fault {
    Fault::Xml { detail: shown(&error.to_string()) }
}

/// The fault of the first reference in a text that cannot be resolved.
fn reference(raw: &str) -> Fault {
    let names = raw.split('&').skip(1).map(|rest| rest.split(';').next().unwrap_or_default());
    let unknown = names.into_iter().find(|name| unescape(&format!("&{name};")).is_err()).unwrap_or_default();
    Fault::Reference { name: shown(unknown) }
}
