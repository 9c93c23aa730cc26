//! How an upload to one server can end badly, as facts. What each means is in [`super::judge`].

use super::found::Call;
use super::protocol::Protocol;
use super::source::Change;
use crate::core::failure::{Failure, LocalFault};
use crate::core::range::Length;
use crate::core::time::Delay;

/// One way in which a session ended badly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpFailure {
    /// Of the line, of TLS, of a redirect, or of this machine: as with downloads.
    #[error("{0}")]
    Transfer(Failure),
    /// A status that says no.
    #[error("{}{}", Failure::Status { code: *code, retry_after: None }, said_text(said))]
    Status {
        /// By which protocol.
        protocol: Protocol,
        /// To which call.
        call: Call,
        /// The status code.
        code: u16,
        /// A Retry-After that could be read.
        retry_after: Option<Delay>,
        /// What the body said, made printable.
        said: String,
    },
    /// BOINC's reply says: not now.
    #[error("the server says: not now{}", said_text(message))]
    Later {
        /// Its message, made printable.
        message: String,
    },
    /// BOINC's reply says: never.
    #[error("the server refuses the file{}", said_text(message))]
    Never {
        /// Its message, made printable.
        message: String,
    },
    /// An answer that is not of this protocol.
    #[error("an answer ({code}) that is not of the protocol {}: {what}", protocol.word())]
    Foreign {
        /// Which protocol was spoken.
        protocol: Protocol,
        /// The status code.
        code: u16,
        /// What was missing or wrong.
        what: &'static str,
    },
    /// Somebody else's request holds the upload.
    #[error("the upload is locked at the server, for {} s by now", waited.as_secs())]
    Busy {
        /// How long was waited in this session.
        waited: Delay,
    },
    /// The source is not the file that the upload was begun with, and bytes of it have been sent in this session.
    #[error("the file changed while it was sent: {0}")]
    SourceChanged(Change),
    /// The source is gone, or cannot be read.
    #[error("the file to be sent cannot be read: {detail}")]
    SourceGone {
        /// What the system said.
        detail: String,
    },
    /// The server holds more than the file has.
    #[error("the server holds {told} bytes under this name, more than the {ours} of the file: it is another file")]
    Conflict {
        /// What the server tells.
        told: Length,
        /// The size of the source.
        ours: Length,
    },
    /// The server said yes before it can have had the whole request.
    #[error("the server said yes after {sent} of {whole} bytes of the request had been sent: that counts for nothing")]
    Early {
        /// So many bytes of the request's body had been handed to the connection.
        sent: Length,
        /// So many it has.
        whole: Length,
    },
    /// The server claims bytes that were never sent there.
    #[error("the server claims to hold {told} bytes, and at most {sent} can have reached it")]
    Overclaimed {
        /// What the server tells.
        told: Length,
        /// What has left this machine.
        sent: Length,
    },
    /// Bodies were answered, and the server confirmed nothing more.
    #[error("the server answers and confirms no further byte ({times} times)")]
    NoGrowth {
        /// How many times.
        times: u32,
    },
    /// The server keeps forgetting the session.
    #[error("the server forgot the upload {times} times within a day")]
    KeepsForgetting {
        /// How many times.
        times: u32,
    },
    /// What stands at the server in the end has another size.
    #[error("the server stored {} bytes of {ours}", .told.map_or_else(|| "an unknown number of".to_owned(), |n| n.to_string()))]
    WrongSize {
        /// What it tells.
        told: Option<Length>,
        /// The size of the source.
        ours: Length,
    },
    /// What stands at the server in the end has another digest.
    #[error("the server stored something else: {algorithm} there is {found}, of the file {ours}")]
    WrongDigest {
        /// The algorithm's name as the user writes it.
        algorithm: &'static str,
        /// The digest of the source, hex.
        ours: String,
        /// The digest of what was stored, or what the server says it is.
        found: String,
    },
    /// What stands under the name in the end is, by its tag, what stood there before.
    #[error("the server says that it stored the file, and what stands there has the tag of what stood there before")]
    Untouched,
    /// What was stored was to be read back and compared, and cannot be.
    #[error("what was stored cannot be read back and compared (the answer is {code}), as --verify always demands")]
    Unread {
        /// The status code; a success where what came is coded, or not the whole.
        code: u16,
    },
    /// The server cannot do what the protocol needs.
    #[error("the server cannot take this file by the protocol {}: {why}", protocol.word())]
    Unsupported {
        /// Which protocol was spoken.
        protocol: Protocol,
        /// Why not.
        why: FoundAtServer,
    },
    /// The server's application looked at the whole upload and refused it.
    #[error("the upload was complete, and what it was for refused it: {}{}", Failure::Status { code: *code, retry_after: None }, said_text(said))]
    Application {
        /// The status code.
        code: u16,
        /// What the body said, made printable.
        said: String,
    },
    /// A store's own word for what is wrong, which says more than its status.
    #[error("the store says {word}{}", said_text(message))]
    Store {
        /// To which call.
        call: Call,
        /// The status code; below 300 where the error came in the body of what looked like success.
        code: u16,
        /// Its code for the error: letters, digits and dots.
        word: String,
        /// A Retry-After that could be read.
        retry_after: Option<Delay>,
        /// Its message, made printable.
        message: String,
    },
    /// A URL that was signed for some time only, which is over.
    #[error("the signed URL is not valid any more: a new one is needed")]
    UrlExpired,
    /// A session URL that would send the bytes to somebody else.
    #[error("the server names a session at another place ({to}), which is not followed")]
    ElsewhereNamed {
        /// Its origin.
        to: String,
    },
}

impl UpFailure {
    /// The same among all failures. Trouble of this machine is that, whoever it was that noticed it.
    pub fn into_failure(self, source: &str) -> Failure {
        match self {
            Self::Transfer(local @ Failure::Local(_)) => local,
            Self::SourceGone { detail } => {
                Failure::Local(LocalFault::Io { doing: "read", path: source.to_owned(), detail })
            }
            other => Failure::Upload(Box::new(other)),
        }
    }
}

/// What was found of a server that rules it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoundAtServer {
    /// It takes no file so large.
    #[error("it takes at most {0} bytes")]
    AtMost(Length),
    /// It takes no file so small.
    #[error("it takes at least {0} bytes")]
    AtLeast(Length),
    /// Another version of the protocol.
    #[error("it speaks another version")]
    Version,
    /// The protocol has no way to write such a name.
    #[error("the protocol cannot carry the file's name")]
    Name,
}

fn said_text(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(" ({said})") }
}
