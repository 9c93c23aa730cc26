//! Failure: every way in which a session can end badly, as facts.
//!
//! What a failure *means* is decided in one place, [`crate::core::verdict`]; how it reads to a person is its `Display`,
//! which holds nothing from a server that has not been made printable, and no secret.

use std::net::IpAddr;

use crate::core::range::{ByteRange, Length, Offset};
use crate::core::time::Delay;
use crate::core::upload::UpFailure;

/// How the failure of an odd mirror begins: records are told by it.
pub const ODD_MIRROR: &str = "this mirror holds another file";

/// How a connection fails where there is no network at all.
pub const NO_NETWORK: [&str; 2] = ["the network cannot be reached", "the network is down"];

/// One way in which a session ended badly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The host's name has no address.
    #[error("the name {host} cannot be resolved: {detail}")]
    Resolve {
        /// The host asked for.
        host: String,
        /// What the resolver said.
        detail: String,
    },
    /// A mirror that a server named has an address of this machine or of a private network, and the file's own server has
    /// not. It was not asked.
    #[error("a server named the mirror {host}, which has an address in a private network ({address}); it is not asked")]
    PrivateMirror {
        /// The host.
        host: String,
        /// The address.
        address: IpAddr,
    },
    /// No connection came about.
    #[error("cannot connect: {detail}")]
    Connect {
        /// What the system said.
        detail: String,
    },
    /// The server's certificate is not one to trust.
    #[error("the certificate is not trusted: {detail}")]
    Certificate {
        /// What the TLS library said.
        detail: String,
    },
    /// No answer began in time.
    #[error("no answer within {} s", waited.as_secs_f64())]
    NoAnswer {
        /// How long was waited.
        waited: Delay,
    },
    /// The connection ended, or broke, before a whole answer was there.
    #[error("{0}")]
    Cut(Cut),
    /// The bytes came too slowly for too long.
    #[error("stalled: below {floor} B/s for {} s", window.as_secs_f64())]
    Stalled {
        /// The least rate in bytes per second.
        floor: u64,
        /// For how long it was not reached.
        window: Delay,
    },
    /// A status that is no success.
    #[error("{}", status_text(*code))]
    Status {
        /// The status code.
        code: u16,
        /// A Retry-After that could be read, from now on, not yet capped.
        retry_after: Option<Delay>,
    },
    /// A redirect that leads nowhere we go.
    #[error("{0}")]
    Redirect(RedirectFault),
    /// An answer that contradicts the request or itself; nothing of it was written.
    #[error("{0}")]
    BadAnswer(BadAnswer),
    /// The file is another one than the one begun, too many times.
    #[error("the file keeps changing on the server ({times} times), so no version of it could be had whole")]
    KeepsChanging {
        /// How many versions were seen.
        times: u32,
    },
    /// This mirror's bytes differ from those already held from another.
    #[error("{ODD_MIRROR}: its bytes differ at offset {at} from those already held")]
    OddMirror {
        /// Where they differ.
        at: Offset,
    },
    /// While the file was being fetched over several connections, one of them met another version.
    #[error(
        "the file changed on the server while it was fetched: what it sends does not belong to what is held (at offset {at})"
    )]
    ChangedMeanwhile {
        /// Where that showed.
        at: Offset,
    },
    /// The whole file has another digest than the one demanded.
    #[error("wrong checksum: {algorithm} is {found}, expected {expected}")]
    Digest {
        /// The algorithm's name as the user writes it.
        algorithm: &'static str,
        /// The digest demanded, hex.
        expected: String,
        /// The digest found, hex.
        found: String,
    },
    /// The whole file has another digest than the server itself says.
    #[error(
        "the bytes do not have the digest that the server itself names (Repr-Digest or Digest): {algorithm} is {found}, it says {named}"
    )]
    Vouched {
        /// The algorithm's name as the user writes it.
        algorithm: &'static str,
        /// The digest that the server names, hex.
        named: String,
        /// The digest found, hex.
        found: String,
    },
    /// A piece of the file has another digest than the one demanded; it is fetched again.
    #[error("piece {piece} has the wrong {algorithm} checksum")]
    Piece {
        /// Its number, from 0.
        piece: usize,
        /// The algorithm's name as the user writes it.
        algorithm: &'static str,
    },
    /// The body of an answer has another digest than that answer names; it is fetched again.
    #[error("the bytes of an answer do not have the {algorithm} that it names for them (Content-Digest)")]
    Content {
        /// The algorithm's name as the user writes it.
        algorithm: &'static str,
    },
    /// Another version was sent whole, and it has another digest than the one demanded; what is held of the first stays.
    #[error("the server sent another file, whole, and its {algorithm} is not the one expected")]
    WrongVersion {
        /// The algorithm's name as the user writes it.
        algorithm: &'static str,
    },
    /// The file is larger than the user allows.
    #[error("the file has {size} bytes, more than the {limit} allowed")]
    TooLarge {
        /// Its size.
        size: Length,
        /// What `--max-filesize` allows.
        limit: Length,
    },
    /// The file has another size than the one demanded.
    #[error("the file has {size} bytes here, and it must have {expected}")]
    OtherSize {
        /// Its size, or so much of it as told that it is longer.
        size: Length,
        /// The size that a metalink tells.
        expected: Length,
    },
    /// The evidence is weaker than `--require-evidence` demands.
    #[error("the evidence is only {found}, {required} is required")]
    Evidence {
        /// What was demanded.
        required: &'static str,
        /// What there is.
        found: &'static str,
    },
    /// Of an upload.
    #[error("{0}")]
    Upload(Box<UpFailure>),
    /// The mirror tells a size for which there is no room here, before a byte of the file is held: trouble of this machine,
    /// or a lie. Other mirrors may tell another size.
    #[error("{0}")]
    NoRoom(LocalFault),
    /// Trouble on this machine, not on the server's.
    #[error("{0}")]
    Local(LocalFault),
}

/// How a body, or the wait for one, broke off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cut {
    /// Closed before the length that was announced.
    #[error("the body ended early: {got} of {want} bytes, short by {}", want.saturating_sub(*got))]
    Short {
        /// Position reached in the file.
        got: Length,
        /// The file's whole length.
        want: Length,
    },
    /// Any other break: a reset, a chunked body without its end, TLS closed without notice.
    #[error("the connection broke off: {detail}")]
    Broken {
        /// What the transport said.
        detail: String,
    },
}

/// Why a redirect was not followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedirectFault {
    /// More than the limit.
    #[error("more than {limit} redirects")]
    TooMany {
        /// The limit.
        limit: u32,
    },
    /// The same request again.
    #[error("a redirect loop")]
    Loop,
    /// No Location, or one that is no URL.
    #[error("a redirect ({code}) without a usable Location")]
    NoLocation {
        /// The status code.
        code: u16,
    },
    /// To a scheme other than http and https.
    #[error("a redirect to the scheme {scheme:?}, which is not followed")]
    Scheme {
        /// The scheme, made printable.
        scheme: String,
    },
    /// From a public host into a private network, by a mirror that a server named.
    #[error("a redirect from a public mirror that a server named to a private host, which is not followed")]
    Inward,
    /// From https to http.
    #[error("a redirect from https to http, which is not followed")]
    Downgrade,
}

/// How an answer contradicts the request or itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// 206 without a Content-Range that can be read.
    #[error("206 with an unreadable Content-Range: {text:?}")]
    ContentRange {
        /// Its text, made printable.
        text: String,
    },
    /// 206 for a range that does not hold the first byte asked for.
    #[error("206 with the range {got:?}, asked from offset {asked}")]
    OtherRange {
        /// What was asked for.
        asked: Offset,
        /// What came.
        got: ByteRange,
    },
    /// 206 although no range was asked for.
    #[error("206 although no range was asked for")]
    Unasked206,
    /// Bytes from an origin that has not shown that it has the same file.
    #[error("the server's file could not be compared with what is held")]
    Unproven,
    /// A multipart answer to a single range.
    #[error("a multipart answer to a single range")]
    Multipart,
    /// A Content-Encoding although identity was asked for.
    #[error("the server sends the file coded as {coding:?} although identity was asked for")]
    Coded {
        /// The coding, made printable.
        coding: String,
    },
    /// An HTML page where the file was.
    #[error("the server sent an HTML page (a login or error page?) in place of the file")]
    HtmlPage,
    /// A list of mirrors where the file was asked for.
    #[error(
        "the server sent a metalink (a list of mirrors) in place of the file; to have the metalink itself, name it with the \
         ending .meta4 (--output)"
    )]
    Metalink,
    /// The version that the validator names, with another length than before.
    #[error("the server gives the same validator to a file of {known} bytes and to one of {told}")]
    SameTagOtherLength {
        /// The length known.
        known: Length,
        /// The length told now.
        told: Length,
    },
    /// Something shorter where the file was, and no strong validator that speaks for it.
    #[error(
        "the server sends {told} bytes where {known} were known, and nothing that vouches for them; if that is the file \
         now, forget the transfer (persxfer state forget) and begin anew"
    )]
    Shrunk {
        /// The length known, or held.
        known: Length,
        /// The length told now.
        told: Length,
    },
    /// 200, the whole file, with a Content-Range that names a part of it.
    #[error("200 with the Content-Range {text:?}, which names a part")]
    PartOf200 {
        /// Its text, made printable.
        text: String,
    },
    /// A success status that brings no file (204, 203 without a body, ...).
    #[error("an answer of status {code}, which brings no file")]
    NoFile {
        /// The status code.
        code: u16,
    },
    /// Not HTTP, or beyond the limits on heads.
    #[error("an answer that is no valid HTTP: {detail}")]
    Framing {
        /// What the transport said, made printable.
        detail: String,
    },
    /// 416 that cannot be: it gives no total, or one that holds the start asked for.
    #[error("416 to a range that exists ({detail})")]
    Unsatisfiable {
        /// What was wrong with it.
        detail: String,
    },
}

/// Trouble on this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocalFault {
    /// No room for the file.
    #[error("no space left on the disk for {path}: {detail}")]
    DiskFull {
        /// The file.
        path: String,
        /// How much is needed or what the system said.
        detail: String,
    },
    /// The file would become larger than any may be here: by the limit of this process, or of the file system.
    #[error("{path} cannot grow: {detail}")]
    FileTooLarge {
        /// The file.
        path: String,
        /// Which limit, and what to do.
        detail: String,
    },
    /// The system refuses.
    #[error("cannot {doing} {path}: {detail}")]
    Io {
        /// What was being done: a verb.
        doing: &'static str,
        /// The file or folder.
        path: String,
        /// What the system said.
        detail: String,
    },
    /// Something stands where our file should, and it is not ours.
    #[error("{path} {why}")]
    NotOurs {
        /// The file.
        path: String,
        /// What is the matter with it, and what to do.
        why: String,
    },
    /// Another process works on it.
    #[error("{path} is in use by process {holder}")]
    InUse {
        /// The file.
        path: String,
        /// The process, or "another".
        holder: String,
    },
}

/// The status with its name, for people.
fn status_text(code: u16) -> String {
    let reason = http::StatusCode::from_u16(code).ok().and_then(|s| s.canonical_reason());
    match reason {
        Some(reason) => format!("the server answered {code} {reason}"),
        None => format!("the server answered {code}"),
    }
}
