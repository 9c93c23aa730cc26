//! A network that a simulation scripts: requests go to it in place of sockets (`docs/testing.md`).

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::HeaderMap;

use super::Answer;
use crate::core::failure::Failure;
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
}

/// The body of an answer, piece by piece. Dropping it ends the exchange.
pub trait Pieces {
    /// As [`super::Body::chunk`].
    ///
    /// # Errors
    /// As [`super::Body::chunk`].
    fn next(&mut self) -> Soon<'_, Result<Option<Bytes>, Failure>>;
}
