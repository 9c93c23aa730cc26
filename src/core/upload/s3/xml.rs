//! The XML of S3: answers read within limits, and the list of parts that closes an upload.
//!
//! Names are compared without their prefix; elements that are not asked for are passed over.

use quick_xml::Reader;
use quick_xml::escape::{escape, unescape};
use quick_xml::events::Event;

use crate::core::printable::printable;
use crate::core::range::Length;
use crate::core::upload::session::Part;
use crate::core::upload::wire::digits;

/// A page of a thousand parts has some ten elements each.
const MAX_ELEMENTS: usize = 40_000;

const MAX_DEPTH: usize = 8;

const MAX_TEXT: usize = 4_096;

/// A longer tag is none.
const MAX_TAG: usize = 256;

/// An element: its name, its text, and what is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    name: String,
    text: String,
    children: Vec<Element>,
}

/// An error as a store words it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fault {
    /// Its code: letters and digits.
    pub(super) word: String,
    /// What it says, made printable.
    pub(super) message: String,
    /// The region that the bucket is in, in some of them.
    pub(super) region: Option<String>,
}

/// One page of a list of parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// The parts; the tag is empty where the store names none.
    pub(super) parts: Vec<Part>,
    /// Where the next page begins; `None` on the last.
    pub(super) next: Option<u32>,
}

/// An upload that is open, in a list of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OpenUpload {
    pub(super) key: String,
    pub(super) id: String,
    /// When it was begun, as the store writes it.
    pub(super) initiated: String,
}

impl Element {
    /// Reads a document; `None` where it is none within the limits.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let text = str::from_utf8(bytes).ok()?.trim_start_matches('\u{feff}').trim();
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        let (mut open, mut count) = (vec![Self::default()], 0);
        loop {
            match reader.read_event().ok()? {
                Event::Start(start) => {
                    count += 1;
                    if count > MAX_ELEMENTS || open.len() > MAX_DEPTH {
                        return None;
                    }
                    let name = start.local_name().as_ref().to_owned();
                    open.push(Self { name, ..Self::default() });
                }
                Event::End(_) => {
                    let closed = open.pop()?;
                    open.last_mut()?.children.push(closed);
                }
                Event::Text(part) => open.last_mut()?.add(&part)?,
                Event::CData(part) => open.last_mut()?.add(&part)?,
                Event::GeneralRef(name) => {
                    let whole = format!("&{};", name.get(..name.len().min(16))?);
                    open.last_mut()?.add(&unescape(&whole).ok()?)?;
                }
                Event::DocType(_) => return None,
                Event::Eof => break,
                Event::Comment(_) | Event::PI(_) | Event::Decl(_) | Event::Empty(_) => {}
            }
        }
        // One root, and nothing left open.
        let top = if open.len() == 1 { open.pop()? } else { return None };
        (top.children.len() == 1).then(|| top.children.into_iter().next()).flatten()
    }

    fn add(&mut self, text: &str) -> Option<()> {
        // Blanks keep a slow answer alive, and may be many.
        let text = if self.text.is_empty() { text.trim_start() } else { text };
        self.text.push_str(text);
        (self.text.len() <= MAX_TEXT).then_some(())
    }

    /// The text of the first element of that name in this one.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.children.iter().find(|child| child.name == name).map(|child| child.text.trim())
    }

    fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// Is this the answer to that operation? Stores differ in how they call it.
    pub(super) fn answers(&self, operation: &str) -> bool {
        let rest = self.name.strip_prefix(operation);
        rest.is_some_and(|rest| matches!(rest, "Result" | "Response" | "Output"))
    }

    /// The error that it is.
    pub(super) fn fault(&self) -> Option<Fault> {
        // Some wrap it.
        let error = if self.is("Error") { self } else { self.children.iter().find(|child| child.is("Error"))? };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '.';
        let word = error.value("Code")?.chars().filter(|c| plain(*c)).take(64).collect();
        let message = printable(error.value("Message").unwrap_or_default()).into_owned();
        Some(Fault { word, message, region: error.value("Region").map(str::to_owned) })
    }

    /// The page that it is; `None` where it is none, or tells no way on to the next.
    pub(super) fn page(&self) -> Option<Page> {
        if !self.answers("ListParts") {
            return None;
        }
        let parts =
            self.children.iter().filter(|child| child.is("Part")).map(Self::part).collect::<Option<Vec<_>>>()?;
        let more = self.value("IsTruncated") == Some("true");
        let named = self.value("NextPartNumberMarker").and_then(|text| text.parse().ok());
        let next = named.or_else(|| parts.iter().map(|part| part.number).max());
        if more { Some(Page { parts, next: Some(next?) }) } else { Some(Page { parts, next: None }) }
    }

    /// The uploads that it lists.
    pub(super) fn uploads(&self) -> Vec<OpenUpload> {
        let text = |one: &Self, name: &str| one.value(name).unwrap_or_default().to_owned();
        let of = |one: &Self| OpenUpload {
            key: text(one, "Key"),
            id: text(one, "UploadId"),
            initiated: text(one, "Initiated"),
        };
        self.children.iter().filter(|child| child.is("Upload")).map(of).filter(|open| !open.id.is_empty()).collect()
    }

    fn part(&self) -> Option<Part> {
        let number = self.value("PartNumber")?.parse().ok()?;
        let etag = self.value("ETag").and_then(tag).unwrap_or_default();
        Some(Part { number, size: Length(digits(self.value("Size")?)?), etag })
    }
}

/// A tag that can be kept and sent back.
pub(super) fn tag(text: &str) -> Option<String> {
    let plain = !text.is_empty() && text.len() <= MAX_TAG && text.bytes().all(|b| b.is_ascii_graphic());
    plain.then(|| text.to_owned())
}

/// The body that closes an upload.
pub(super) fn closing(parts: &[Part]) -> String {
    let part = |part: &Part| {
        let (number, tag) = (part.number, escape(part.etag.as_str()));
        format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>")
    };
    let all: String = parts.iter().map(part).collect();
    format!(
        "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{all}</CompleteMultipartUpload>"
    )
}

#[cfg(test)]
mod tests;
