//! What can be wrong with a file, or with one descriptor in it.

use crate::core::digest::Algorithm;

/// Why something is not what it should be. Texts in it are printable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Nothing is in it.
    #[error("it is empty")]
    Empty,
    /// Its annotation names another kind.
    #[error("it says that it is of the type {found}, where {wanted} belongs")]
    OtherKind {
        /// The annotation's text.
        found: String,
        /// The kind of that folder.
        wanted: String,
    },
    /// Its annotation cannot be read.
    #[error("its @type line cannot be read")]
    Annotation,
    /// Its first line is not one that begins such a thing.
    #[error("it begins with \"{found}\", and not as a {kind} does")]
    Start {
        /// Its first line.
        found: String,
        /// The kind.
        kind: &'static str,
    },
    /// A line that must be in it is not.
    #[error("it has no line {line:?}")]
    Missing {
        /// How the line begins.
        line: &'static str,
    },
    /// It does not end as such a thing does: its tail was cut off.
    #[error("its end is missing; it should end with {end:?}")]
    End {
        /// How it should end.
        end: &'static str,
    },
    /// It ends within a line.
    #[error("it ends within a line")]
    CutLine,
    /// It is nothing but annotations.
    #[error("there is nothing behind its annotations")]
    Stub,
    /// Longer than anything of its kind.
    #[error("a line, or a descriptor, in it is longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The name tells another digest.
    #[error("its {algorithm} is {found}, and its name says {named}")]
    Digest {
        /// By which algorithm.
        algorithm: Algorithm,
        /// Its digest, hex.
        found: String,
        /// What the name says, hex.
        named: String,
    },
    /// What names it cannot be read.
    #[error("the line that tells its identity cannot be read")]
    Identity,
    /// Its time cannot be read.
    #[error("the time in it cannot be read: \"{text}\"")]
    Date {
        /// The text.
        text: String,
    },
    /// Something of the user's own said no.
    #[error("{0}")]
    Refused(String),
}
