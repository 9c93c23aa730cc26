//! Connections: one that is used, and those that wait to be used again.

use std::sync::{Arc, Mutex, PoisonError};

use http::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio_util::task::AbortOnDropHandle;

use super::body::SendBody;
use super::line::{Line, Wire};
use super::stream::Stream;
use crate::core::failure::Failure;
use crate::core::time::{Delay, Mono};
use crate::core::url::Origin;
use crate::io::transport::client::POOL_IDLE;
use crate::io::transport::explain;

/// So many wait at most, in all.
const MOST_IDLE: usize = 16;
/// After an answer, a connection that hyper has not made ready for another request in this time is not kept.
const UNTIL_READY: Delay = Delay::from_millis(100);

/// A connection. Dropping it closes it.
pub(super) struct Link {
    sender: SendRequest<SendBody>,
    pub(super) line: Arc<Line>,
    _runs: AbortOnDropHandle<()>,
}

/// The connections that wait.
#[derive(Default)]
pub(super) struct Pool(Mutex<Vec<Idle>>);

struct Idle {
    to: Origin,
    since: Mono,
    link: Link,
}

impl Link {
    /// Over a stream that stands, on the runtime that runs now.
    pub(super) async fn over(stream: Stream) -> Result<Self, Failure> {
        let line = Arc::new(Line::of(&stream));
        let wire = Wire::new(stream, Arc::clone(&line));
        let made = http1::Builder::new().handshake(TokioIo::new(wire)).await;
        let (sender, connection) = made.map_err(|e| explain::in_exchange(&e))?;
        let runs = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended badly");
            }
        });
        Ok(Self { sender, line, _runs: AbortOnDropHandle::new(runs) })
    }

    /// Sends a request: the future gives the head of its answer.
    pub(super) fn send(
        &mut self,
        request: Request<SendBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<SendBody>>>> + use<> {
        self.sender.try_send_request(request)
    }

    /// Can it carry another request, now that an answer has been read?
    async fn is_free(&mut self) -> bool {
        matches!(tokio::time::timeout(UNTIL_READY.as_std(), self.sender.ready()).await, Ok(Ok(())))
    }
}

impl Pool {
    /// The connection to this origin that was used last, unless that is longer ago than `most`.
    pub(super) async fn take(&self, to: &Origin, now: Mono, most: Delay) -> Option<Link> {
        // Twice round: the runtime looks at the sockets, and the connections at what has come. So one that the server
        // has closed by now is known to be.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|i| now.since(i.since) < Delay::from(POOL_IDLE) && i.link.sender.is_ready());
        let at = idle.iter().rposition(|i| i.to == *to && now.since(i.since) <= most)?;
        Some(idle.remove(at).link)
    }

    /// Keeps a connection whose answer has been read, if it can be used again.
    pub(super) async fn keep(&self, to: Origin, since: Mono, mut link: Link) {
        if !link.is_free().await {
            return;
        }
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= MOST_IDLE {
            idle.remove(0);
        }
        idle.push(Idle { to, since, link });
    }
}
