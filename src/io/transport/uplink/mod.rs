//! Requests with bodies, by HTTP/1.1 only, on hyper: informational answers are heard as they come, a body can wait for
//! `100 (Continue)`, and an answer that comes while the body still flows is preferred to the break that may follow it
//! (RFC 9110 10.1.1 and 15.2, RFC 9112 9.3 and 9.5).
//!
//! [`Uplink::send`] starts an exchange, which goes on by itself; [`Exchange::next`] tells what is heard. Nothing is
//! followed, decoded or answered behind our back. A request is sent a second time only where nothing can have come of
//! the first: hyper says that it never reached a connection that was used before; a GET, HEAD or OPTIONS was lost on
//! one; or the answer is 417, which refuses nothing but the question whether to go on.
//!
//! | file | what |
//! |---|---|
//! | `exchange` | one request, its second try, what is told of it |
//! | `talk` | one request on one connection: gate, stall rule, patience |
//! | `answer` | the answer's head and body |
//! | `body`, `buffers` | the bytes that go out |
//! | `line` | the connection as hyper sees it: counts, and outlives a failed write |
//! | `direct` | the part of a body that the kernel sends from the file |
//! | `stream` | what a connection is made of |
//! | `reach` | a new connection: names, proxies, TLS |
//! | `pool` | idle connections |

mod answer;
mod body;
mod buffers;
mod direct;
mod exchange;
mod line;
mod pool;
mod reach;
mod stream;
mod talk;

use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;

use self::buffers::Buffers;
use self::pool::Pool;
use super::client::Setup;
use super::scripted::Network;
use super::tls;
use crate::core::failure::Failure;
use crate::core::file_xfer::Timeouts;
use crate::core::range::{ByteRange, Length};
use crate::core::time::Delay;
use crate::core::upload::{Answer, Gate, Interim, Keep, Method};
use crate::core::url::MirrorUrl;
use crate::io::clock::Clock;

pub use self::exchange::Exchange;

/// Sends requests with bodies. Clones share connections, which live on the runtime that made them.
#[derive(Clone)]
pub struct Uplink(Arc<Shared>);

/// What the clones share.
struct Shared {
    setup: Arc<Setup>,
    /// As for downloads, but without HTTP/2: hyper tells no 1xx there.
    tls: Arc<rustls::ClientConfig>,
    pool: Pool,
    buffers: Arc<Buffers>,
    clock: Clock,
    /// What requests go to in place of sockets.
    script: Option<Arc<dyn Network>>,
}

/// A request made ready: a core `Ask` with credentials and an open file.
#[derive(Clone)]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// Where to. User-info in it is not sent.
    pub url: MirrorUrl,
    /// All that goes out beside Host, Content-Length, Expect, User-Agent and `Accept-Encoding: identity`.
    pub headers: HeaderMap,
    /// The body.
    pub body: OutBody,
    /// May the body flow at once?
    pub gate: Gate,
    /// What is kept of the answer's body.
    pub keep: Keep,
    /// How long the answer is waited for, from the end of the body on; a 1xx begins the wait anew, up to ten times in
    /// all. The answer's body may take as long again, where it is kept.
    pub patience: Delay,
    /// The stall rule, for the body that goes and the one that comes; `first_byte` has no meaning here.
    pub stall: Timeouts,
}

/// The body of a request: its Content-Length is always told, and it is never chunked.
#[derive(Clone, Debug)]
pub enum OutBody {
    /// None; Content-Length is 0 where the method wants one.
    Nothing,
    /// These bytes.
    Bytes(Bytes),
    /// These bytes, then this range of the file. The file's own position is neither used nor moved.
    Source {
        /// What comes first; may be empty.
        before: Bytes,
        /// The source.
        file: Arc<File>,
        /// Of it; may be empty.
        range: ByteRange,
    },
}

/// What is heard of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// An informational answer: any number of them, in order.
    Interim(Interim),
    /// So many bytes of the body have been handed to the connection; told at most ten times a second.
    Sent(Length),
    /// The final answer. It may have come while the body still flowed, which then stopped for good: [`Answer::sent`].
    ///
    /// Its body has been read to its end, or so far as 4 MiB where only its first bytes are kept. Where it broke off,
    /// a status of 300 or more is an answer all the same, for the head is the word and what came of the body is kept
    /// ([`Answer::digest`] is none then); one of 2xx is [`Heard::Broke`].
    Answer(Box<Answer>),
    /// No whole answer came.
    Broke {
        /// So many bytes of the body had been handed to the connection.
        sent: Length,
        /// Why.
        failure: Failure,
    },
}

impl Uplink {
    pub(super) fn new(setup: Arc<Setup>, script: Option<Arc<dyn Network>>) -> Self {
        let mut tls = setup.tls.clone();
        tls::without_http_2(&mut tls);
        let (pool, buffers, clock) = (Pool::default(), Arc::default(), Clock::system());
        Self(Arc::new(Shared { setup, tls: Arc::new(tls), pool, buffers, clock, script }))
    }
}

impl OutBody {
    /// How many bytes it has: the Content-Length.
    pub fn length(&self) -> Length {
        match self {
            Self::Nothing => Length::ZERO,
            Self::Bytes(bytes) => Length(bytes.len() as u64),
            Self::Source { before, range, .. } => Length(before.len() as u64) + range.length(),
        }
    }
}

impl std::fmt::Debug for Uplink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uplink").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Outgoing {
    /// Without path, query and fields, which may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Outgoing");
        shown.field("method", &self.method).field("origin", &self.url.origin()).field("length", &self.body.length());
        shown.field("gate", &self.gate).finish_non_exhaustive()
    }
}
