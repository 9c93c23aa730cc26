//! The connection as hyper sees it.
//!
//! It counts the bytes of the body that the connection has taken, and it outlives a failed write: a server that refuses
//! a body answers, closes, and the next write fails, at which hyper would give up the answer that is already here. So a
//! write that fails is remembered, later ones go nowhere, and the reading goes on until it ends by itself.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use crate::core::failure::Failure;

/// A connection, whatever it is made of.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// What the connection, the body and the exchange know of the one request that is on its way.
#[derive(Debug, Default)]
pub(super) struct Line {
    state: Mutex<State>,
    /// Something happened that the exchange should look at.
    pub(super) changed: Notify,
}

/// The state of a request.
#[derive(Debug, Default)]
pub(super) struct State {
    /// How much of the blank line that ends the head has been written.
    head: u8,
    /// Bytes of the body that the connection has taken.
    pub(super) sent: u64,
    /// May the body flow?
    pub(super) flow: Flow,
    /// The body waits to be woken.
    waiting: Option<Waker>,
    /// A write failed so.
    pub(super) broken: Option<io::Error>,
    /// The body cannot be read.
    pub(super) fault: Option<Failure>,
    /// Does a rate limit hold the body up?
    pub(super) braking: Braking,
    /// Informational answers that came.
    pub(super) interims: u64,
}

/// May the body flow?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Flow {
    /// It may.
    #[default]
    Open,
    /// Not before the server's word.
    Gated,
    /// Never again: the answer is here.
    Over,
}

/// Does a rate limit hold the body up?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Braking {
    /// No.
    #[default]
    Not,
    /// Yes.
    Now,
    /// It did, since this was last looked at.
    Lately,
}

/// The blank line, and the end of the line before it.
const HEAD_END: &[u8; 4] = b"\r\n\r\n";

impl Line {
    /// Another request begins.
    pub(super) fn begin(&self, flow: Flow) {
        *self.state() = State { flow, ..State::default() };
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The body may flow, unless it is over.
    pub(super) fn open(&self) {
        let waiting = {
            let mut state = self.state();
            if state.flow == Flow::Gated {
                state.flow = Flow::Open;
            }
            state.waiting.take()
        };
        if let Some(waker) = waiting {
            waker.wake();
        }
    }

    /// The body never flows again.
    pub(super) fn stop(&self) {
        self.state().flow = Flow::Over;
    }

    /// May the body go on? If not, it is woken when it may.
    pub(super) fn may_flow(&self, cx: &Context<'_>) -> bool {
        let mut state = self.state();
        if state.flow == Flow::Open && state.broken.is_none() {
            return true;
        }
        state.waiting = Some(cx.waker().clone());
        false
    }

    /// The body cannot be read.
    pub(super) fn fail(&self, failure: Failure) {
        self.state().fault = Some(failure);
    }

    /// An informational answer came.
    pub(super) fn informed(&self) {
        self.state().interims += 1;
        self.changed.notify_one();
    }

    fn is_broken(&self) -> bool {
        self.state().broken.is_some()
    }

    fn broke(&self, error: io::Error) {
        self.state().broken = Some(error);
        self.changed.notify_one();
    }
}

impl State {
    fn wrote(&mut self, mut bytes: &[u8]) {
        while usize::from(self.head) < HEAD_END.len() {
            let Some((first, rest)) = bytes.split_first() else { return };
            let awaited = HEAD_END[usize::from(self.head)];
            self.head = match *first {
                byte if byte == awaited => self.head + 1,
                b'\r' => 1,
                _ => 0,
            };
            bytes = rest;
        }
        self.sent += bytes.len() as u64;
    }
}

/// The stream below hyper.
pub(super) struct Wire {
    stream: Box<dyn Stream>,
    line: Arc<Line>,
}

impl Wire {
    pub(super) fn new(stream: Box<dyn Stream>, line: Arc<Line>) -> Self {
        Self { stream, line }
    }

    /// A failure is remembered, and looks like a success from above.
    fn outlive<T>(&self, outcome: Poll<io::Result<T>>, gone: T) -> Poll<io::Result<T>> {
        match outcome {
            Poll::Ready(Err(error)) => {
                self.line.broke(error);
                Poll::Ready(Ok(gone))
            }
            other => other,
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.line.is_broken() {
            return Poll::Ready(Ok(buf.len()));
        }
        let outcome = Pin::new(&mut self.stream).poll_write(cx, buf);
        if let Poll::Ready(Ok(taken)) = outcome {
            self.line.state().wrote(&buf[..taken.min(buf.len())]);
        }
        self.outlive(outcome, buf.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let all = bufs.iter().map(|b| b.len()).sum();
        if self.line.is_broken() {
            return Poll::Ready(Ok(all));
        }
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        if let Poll::Ready(Ok(mut taken)) = outcome {
            let mut state = self.line.state();
            for buf in bufs {
                let part = taken.min(buf.len());
                state.wrote(&buf[..part]);
                taken -= part;
            }
        }
        self.outlive(outcome, all)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.line.is_broken() {
            return Poll::Ready(Ok(()));
        }
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        self.outlive(outcome, ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.line.is_broken() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_the_body_are_told_from_those_of_the_head_however_they_are_cut() {
        let text = b"PUT / HTTP/1.1\r\nA: b\r\r\nC: d\r\n\r\nbody\r\n\r\nbody";
        for cut in 0..text.len() {
            let mut state = State::default();
            state.wrote(&text[..cut]);
            state.wrote(&text[cut..]);
            assert_eq!(state.sent, 12, "cut at {cut}");
        }
    }
}
