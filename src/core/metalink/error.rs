//! What can be wrong with a metalink, and where.

use super::{MAX_ATTRIBUTES, MAX_BYTES, MAX_DEPTH, MAX_FILES, MAX_TAG, MAX_TEXT, MAX_URLS};
use crate::core::digest::{Algorithm, BadDigest};
use crate::core::name::SafeName;
use crate::core::printable::printable;

/// The first place at which a metalink cannot be read, or contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {fault}")]
pub struct BadMetalink {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong with a metalink. Texts in it are printable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Too many bytes.
    #[error("a metalink has at most {MAX_BYTES} bytes, this one has more")]
    TooLarge,
    /// Another encoding.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// No well-formed XML.
    #[error("it is no well-formed XML: {detail}")]
    Xml {
        /// What the reader said.
        detail: String,
    },
    /// It ends too soon.
    #[error("it ends before </{name}>")]
    Ended {
        /// The element that is open.
        name: String,
    },
    /// A document type: entities are not declared here.
    #[error("it declares a document type, which is not accepted")]
    Doctype,
    /// A reference to an entity that XML does not know by itself.
    #[error("it refers to the entity \"{name}\", which is not known")]
    Reference {
        /// Its name.
        name: String,
    },
    /// Elements within elements.
    #[error("elements stand more than {MAX_DEPTH} deep")]
    Depth,
    /// A start tag without end.
    #[error("a tag is longer than {MAX_TAG} bytes")]
    LongTag,
    /// More attributes than anything needs.
    #[error("an element has more than {MAX_ATTRIBUTES} attributes")]
    Attributes,
    /// A text that is too long.
    #[error("the text of <{name}> is longer than {MAX_TEXT} bytes")]
    LongText {
        /// Its element.
        name: String,
    },
    /// Another document.
    #[error("it is no metalink of version 3 or 4: {found} stands where <metalink> is expected")]
    NotMetalink {
        /// What stands there.
        found: String,
    },
    /// Nothing to fetch.
    #[error("it lists no file")]
    NoFile,
    /// Too many files.
    #[error("it lists more than {MAX_FILES} files")]
    Files,
    /// Too many URLs.
    #[error("a file has more than {MAX_URLS} URLs")]
    Urls,
    /// A file without a name.
    #[error("a file has no name")]
    NoName,
    /// A name that no file can have.
    #[error("\"{text}\" is no name for a file")]
    Name {
        /// The name.
        text: String,
    },
    /// Two files of one name.
    #[error("two of its files would be named {name} (folders in a name are left out)")]
    SameName {
        /// The name.
        name: SafeName,
    },
    /// A size that is none.
    #[error("\"{text}\" is no size in bytes")]
    Size {
        /// The text.
        text: String,
    },
    /// Two sizes.
    #[error("the file has another size here than before")]
    TwoSizes,
    /// A digest that is none.
    #[error("{0}")]
    Digest(#[from] BadDigest),
    /// Two digests by one algorithm.
    #[error("the file has another {algorithm} here than before")]
    TwoDigests {
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// Pieces without a length that can be read.
    #[error("\"{text}\" is no length of a piece")]
    PieceLength {
        /// The text.
        text: String,
    },
}

impl BadMetalink {
    /// At byte `offset` of `text`; an offset inside a character counts as that character's start.
    pub(super) fn at(text: &str, offset: usize, fault: Fault) -> Self {
        let before = &text[..text.floor_char_boundary(offset.min(text.len()))];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let (line, column) = (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1);
        Self { line, column, fault }
    }
}

/// A text as an error shows it.
pub(super) fn shown(text: &str) -> String {
    printable(text.trim()).into_owned()
}
