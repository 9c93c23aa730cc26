//! An answer: its head, and its body as hyper's own chunks.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};

use super::explain;
use super::scripted::Pieces;
use crate::core::failure::{BadAnswer, Failure};
use crate::core::file_xfer::Framing;
use crate::core::range::Length;
use crate::core::time::Delay;

/// An answer whose head is here and whose body is not read yet.
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The fields of the head.
    pub headers: HeaderMap,
    /// How the end of the body will be known.
    pub framing: Framing,
    /// On which connection it came.
    pub connection: Connection,
    /// The body.
    pub body: Body,
}

/// On which connection an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// One made for this request.
    Fresh,
    /// One that an earlier request had used.
    Reused,
}

/// The body of an answer. Dropping it ends the exchange at once.
pub struct Body {
    source: Source,
    framing: Framing,
}

/// Where its bytes come from.
enum Source {
    Response(Box<reqwest::Response>),
    Script(Box<dyn Pieces>),
}

impl Answer {
    /// # Errors
    /// [`BadAnswer::Framing`] where the body is in a transfer coding that was not asked for.
    pub(super) fn new(mut response: reqwest::Response, connection: Connection) -> Result<Self, Failure> {
        let headers = std::mem::take(response.headers_mut());
        let Some(framing) = framing_of(&headers, response.version()) else {
            let detail = "its body is in a transfer coding other than chunked".to_owned();
            return Err(Failure::BadAnswer(BadAnswer::Framing { detail }));
        };
        let status = response.status().as_u16();
        let body = Body { source: Source::Response(Box::new(response)), framing };
        Ok(Self { status, headers, framing, connection, body })
    }

    /// An answer of a scripted network.
    pub fn scripted(status: u16, headers: HeaderMap, framing: Framing, pieces: Box<dyn Pieces>) -> Self {
        let body = Body { source: Source::Script(pieces), framing };
        Self { status, headers, framing, connection: Connection::Fresh, body }
    }
}

impl Body {
    /// The next piece as it came off the connection, not copied; `None` at the end. Cancel-safe: a future that is
    /// dropped loses no byte.
    ///
    /// # Errors
    /// [`Failure::Cut`] where the body broke off; [`super::ended_short`] tells whether it was short of its length.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        match &mut self.source {
            Source::Response(response) => response.chunk().await.map_err(|e| explain::in_body(e, self.framing)),
            Source::Script(pieces) => pieces.next().await,
        }
    }

    /// Reads a small body that nobody wants (of a redirect, of an error) to its end, so that the connection can be
    /// used again; gives up, and the connection with it, beyond `most` bytes or `patience`.
    pub async fn discard(mut self, most: Length, patience: Delay) {
        if let Framing::Length(length) = self.framing
            && length > most
        {
            return;
        }
        let read = async {
            let mut seen = Length::ZERO;
            while let Ok(Some(chunk)) = self.chunk().await {
                seen = seen + Length(chunk.len() as u64);
                if seen > most {
                    return;
                }
            }
        };
        // Too slow is as good as too long: nothing is owed to anybody.
        let _ = tokio::time::timeout(patience.as_std(), read).await;
    }
}

/// `None` where a transfer coding other than chunked alone was used: what follows is not the bytes of the file.
pub(super) fn framing_of(headers: &HeaderMap, version: http::Version) -> Option<Framing> {
    if version == http::Version::HTTP_11 && headers.contains_key(TRANSFER_ENCODING) {
        let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
        let chunked = codings.next().is_some_and(|v| v.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"));
        return (chunked && codings.next().is_none()).then_some(Framing::Marked);
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.trim().parse().ok());
    Some(match length {
        Some(length) => Framing::Length(Length(length)),
        None if version >= http::Version::HTTP_2 => Framing::Marked,
        None => Framing::Close,
    })
}

impl std::fmt::Debug for Answer {
    /// Without the fields, which may hold cookies.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("framing", &self.framing)
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").field("framing", &self.framing).finish_non_exhaustive()
    }
}
