//! The connection as hyper sees it.
//!
//! It counts the bytes of the body that the connection has taken, and it outlives a failed write: a server that refuses
//! a body answers, closes, and the next write fails, at which hyper would give up the answer that is already here. So a
//! write that fails is remembered, later ones go nowhere, and the reading goes on until it ends by itself.
//!
//! Where the kernel sends a part of the body from its file ([`Direct`]), what hyper hands over for that part is filler,
//! and never written.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use super::body::unreadable;
use super::direct::{self, Direct, Misfit, Trouble, Turn};
use super::stream::Stream;
use crate::core::failure::Failure;

/// What the connection, the body and the exchange know of the one request that is on its way.
#[derive(Debug, Default)]
pub(super) struct Line {
    state: Mutex<State>,
    /// Something happened that the exchange should look at.
    pub(super) changed: Notify,
    /// Can the kernel send files on it?
    takes_files: bool,
}

/// The state of a request.
#[derive(Debug, Default)]
pub(super) struct State {
    gone: Progress,
    /// The part of the body that the kernel sends.
    direct: Option<Direct>,
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

/// How far a request has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// How much of the blank line that ends the head has been written.
    head: u8,
    /// Bytes of the body that the connection has taken.
    pub(super) sent: u64,
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
    /// For this connection.
    pub(super) fn of(stream: &Stream) -> Self {
        Self { takes_files: direct::IS_THERE && stream.plain().is_some(), ..Self::default() }
    }

    /// Has the kernel send this part of the body that begins, if it can; then filler is to be handed over for it.
    pub(super) fn takes(&self, part: impl FnOnce() -> Direct) -> bool {
        if self.takes_files {
            self.state().direct = Some(part());
        }
        self.takes_files
    }

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

    /// The body never flows again, and what hyper still holds of it is not written any more: what has been counted is
    /// all that went.
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

    /// Writes go nowhere any more. A head is always written to its end.
    fn is_deaf(&self) -> bool {
        let state = self.state();
        state.broken.is_some() || (state.flow == Flow::Over && state.gone.is_in_body())
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
    /// Bytes of the body that the connection has taken.
    pub(super) fn sent(&self) -> u64 {
        self.gone.sent
    }
}

impl Progress {
    /// When these have been written as well.
    pub(super) fn after(mut self, mut bytes: &[u8]) -> Self {
        while !self.is_in_body() {
            let Some((first, rest)) = bytes.split_first() else { return self };
            let awaited = HEAD_END[usize::from(self.head)];
            self.head = match *first {
                byte if byte == awaited => self.head + 1,
                b'\r' => 1,
                _ => 0,
            };
            bytes = rest;
        }
        self.sent += bytes.len() as u64;
        self
    }

    /// Is the head out?
    pub(super) fn is_in_body(self) -> bool {
        usize::from(self.head) >= HEAD_END.len()
    }
}

/// The stream below hyper.
pub(super) struct Wire {
    stream: Stream,
    line: Arc<Line>,
}

impl Wire {
    pub(super) fn new(stream: Stream, line: Arc<Line>) -> Self {
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

    /// Writes bytes of hyper's as they are.
    fn poll_own(&mut self, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let mut taken = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, bufs))?;
        let all = taken;
        let mut state = self.line.state();
        for buf in bufs {
            let part = taken.min(buf.len());
            state.gone = state.gone.after(&buf[..part]);
            taken -= part;
        }
        Poll::Ready(Ok(all))
    }

    /// Sends bytes of the file in the place of as many of hyper's. That they belong there, and that they have gone, is
    /// one step for all who look.
    fn poll_file(&self, cx: &mut Context<'_>, count: usize) -> Poll<Result<usize, Trouble>> {
        let mut state = self.line.state();
        let State { direct, gone, .. } = &mut *state;
        let (Some(direct), Some(tcp)) = (direct, self.stream.plain()) else {
            return Poll::Ready(Err(Trouble::Source(io::Error::other(Misfit))));
        };
        let taken = ready!(direct.poll_send(cx, tcp, gone.sent, count))?;
        gone.sent += taken as u64;
        Poll::Ready(Ok(taken))
    }

    /// Without its source, the request can only end, and with it the connection.
    fn give_up(&self, error: io::Error) -> Poll<io::Result<usize>> {
        self.line.fail(unreadable(&error));
        Poll::Ready(Err(error))
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let all = bufs.iter().map(|b| b.len()).sum();
        if self.line.is_deaf() {
            return Poll::Ready(Ok(all));
        }
        let turn = {
            let state = self.line.state();
            direct::turn(state.direct.as_ref(), state.gone, bufs)
        };
        let outcome = match turn {
            Ok(Turn::Own(count)) => self.poll_own(cx, &bufs[..count]),
            Ok(Turn::File(count)) => match ready!(self.poll_file(cx, count)) {
                Ok(taken) => Poll::Ready(Ok(taken)),
                Err(Trouble::Connection(error)) => Poll::Ready(Err(error)),
                Err(Trouble::Source(error)) => return self.give_up(error),
            },
            Err(misfit) => return self.give_up(io::Error::other(misfit)),
        };
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
            let gone = Progress::default().after(&text[..cut]).after(&text[cut..]);
            assert!(gone.is_in_body());
            assert_eq!(gone.sent, 12, "cut at {cut}");
        }
    }
}
