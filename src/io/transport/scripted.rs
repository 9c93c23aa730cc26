//! A network that a simulation scripts: requests go to it in place of sockets (`docs/testing.md`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::watch;

use super::{Answer, Heard, Outgoing};
use crate::core::failure::Failure;
use crate::core::range::Length;
use crate::core::time::Delay;
use crate::core::url::MirrorUrl;

/// What a script answers with, when it does.
pub type Soon<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Servers, names and lines, all in one.
pub trait Network: Send + Sync {
    /// As [`super::Client::get`]. Dropping the future ends the request.
    ///
    /// # Errors
    /// As [`super::Client::get`].
    fn get(&self, url: &MirrorUrl, headers: HeaderMap, first_byte: Delay) -> Soon<'static, Result<Answer, Failure>>;

    /// As [`super::Uplink::send`]: how it ends, by an answer or without one. Dropping the future ends the request.
    fn send(&self, request: Outgoing, body: Arc<Outflow>) -> Soon<'static, Heard>;
}

/// The body of a scripted request on its way.
#[derive(Debug)]
pub struct Outflow {
    sent: watch::Sender<Length>,
    stopped: AtomicBool,
}

impl Outflow {
    /// None of it has gone.
    pub(super) fn new(sent: watch::Sender<Length>) -> Self {
        Self { sent, stopped: AtomicBool::new(false) }
    }

    /// So many more bytes go out; `false` where they do not, for the body was stopped.
    pub fn put(&self, bytes: Length) -> bool {
        let goes = !self.stopped.load(Ordering::SeqCst);
        if goes {
            self.sent.send_modify(|sent| *sent = *sent + bytes);
        }
        goes
    }

    /// So many have gone.
    pub fn sent(&self) -> Length {
        *self.sent.borrow()
    }

    /// Not a byte more goes; so many have.
    pub(super) fn stop(&self) -> Length {
        self.stopped.store(true, Ordering::SeqCst);
        self.sent()
    }
}

/// The body of an answer, piece by piece. Dropping it ends the exchange.
pub trait Pieces {
    /// As [`super::Body::chunk`].
    ///
    /// # Errors
    /// As [`super::Body::chunk`].
    fn next(&mut self) -> Soon<'_, Result<Option<Bytes>, Failure>>;
}
