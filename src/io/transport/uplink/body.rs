//! The bytes that go out: read by position as hyper asks for them, braked, held back and stopped by the [`Line`]; or
//! filler in the place of bytes that the kernel sends ([`direct`]).

use std::fs::File;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::OutBody;
use super::buffers::{Buffers, PIECE};
use super::direct::{self, Direct};
use super::line::{Braking, Line};
use crate::core::failure::{Failure, LocalFault};
use crate::io::transport::{Brake, Throttle};

/// The least that is handed on at once where a rate limit cuts the pieces down.
const LEAST_PIECE: u64 = 1 << 10;

/// One body on its way; it is made anew for a second try.
pub(super) struct SendBody {
    line: Arc<Line>,
    buffers: Arc<Buffers>,
    before: Bytes,
    file: Option<Source>,
    brake: Option<(Throttle, Braked)>,
}

struct Source {
    file: Arc<File>,
    at: u64,
    end: u64,
    by: By,
}

/// Who reads the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// We do.
    Us,
    /// The kernel, as it sends: filler goes in its place.
    Kernel,
}

enum Braked {
    /// Nothing is asked of the rate limit.
    Idle,
    /// So many bytes are, and it is waited for.
    Asked { piece: usize, pass: Pin<Box<dyn Future<Output = Brake> + Send>> },
}

/// The reason is kept by the [`Line`].
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the source cannot be read")]
pub(super) struct Unreadable;

impl SendBody {
    pub(super) fn new(body: &OutBody, line: Arc<Line>, buffers: Arc<Buffers>, throttle: Option<Throttle>) -> Self {
        let (before, file) = match body {
            OutBody::Nothing => (Bytes::new(), None),
            OutBody::Bytes(bytes) => (bytes.clone(), None),
            OutBody::Source { before, file, range } => {
                let (at, end) = (range.start.0, range.end.0);
                let part = || Direct::new(before.len() as u64, file, at..end);
                let by = if range.length().0 >= direct::LEAST && line.takes(part) { By::Kernel } else { By::Us };
                (before.clone(), Some(Source { file: Arc::clone(file), at, end, by }))
            }
        };
        Self { line, buffers, before, file, brake: throttle.map(|t| (t, Braked::Idle)) }
    }

    fn left(&self) -> u64 {
        self.before.len() as u64 + self.file.as_ref().map_or(0, Source::left)
    }

    /// How much goes next.
    fn piece(&self) -> usize {
        let burst = self.brake.as_ref().map_or(u64::MAX, |(throttle, _)| throttle.burst().max(LEAST_PIECE));
        let most = usize::try_from(burst).unwrap_or(PIECE).min(PIECE);
        let there = match self.before.len() {
            0 => usize::try_from(self.file.as_ref().map_or(0, Source::left)).unwrap_or(PIECE),
            length => length,
        };
        there.min(most)
    }

    /// The size of the piece that may go now.
    fn poll_brake(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        let wanted = self.piece();
        let Some((throttle, braked)) = &mut self.brake else { return Poll::Ready(wanted) };
        loop {
            match braked {
                Braked::Idle => {
                    let throttle = throttle.clone();
                    let pass = Box::pin(async move { throttle.pass(wanted as u64).await });
                    *braked = Braked::Asked { piece: wanted, pass };
                }
                Braked::Asked { piece, pass } => {
                    let piece = *piece;
                    let Poll::Ready(brake) = pass.as_mut().poll(cx) else {
                        self.line.state().braking = Braking::Now;
                        return Poll::Pending;
                    };
                    *braked = Braked::Idle;
                    if brake == Brake::Waited {
                        self.line.state().braking = Braking::Lately;
                    }
                    return Poll::Ready(piece);
                }
            }
        }
    }

    fn next(&mut self, piece: usize) -> io::Result<Bytes> {
        if !self.before.is_empty() {
            return Ok(self.before.split_to(piece.min(self.before.len())));
        }
        let Some(source) = &mut self.file else { return Ok(Bytes::new()) };
        let bytes = match source.by {
            By::Kernel => direct::filler(piece),
            By::Us => {
                let mut buffer = self.buffers.take(piece);
                source.file.read_exact_at(buffer.room(), source.at)?;
                buffer.into_bytes()
            }
        };
        source.at += bytes.len() as u64;
        Ok(bytes)
    }
}

impl Source {
    fn left(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }
}

impl Body for SendBody {
    type Data = Bytes;
    type Error = Unreadable;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Unreadable>>> {
        let this = self.get_mut();
        if this.left() == 0 {
            return Poll::Ready(None);
        }
        if !this.line.may_flow(cx) {
            return Poll::Pending;
        }
        let Poll::Ready(piece) = this.poll_brake(cx) else { return Poll::Pending };
        Poll::Ready(Some(this.next(piece).map(Frame::data).map_err(|error| {
            this.line.fail(unreadable(&error));
            Unreadable
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left())
    }
}

/// Why the source cannot be sent.
pub(super) fn unreadable(error: &io::Error) -> Failure {
    let detail = match error.kind() {
        ErrorKind::UnexpectedEof => "it became shorter while it was sent".to_owned(),
        _ => error.to_string(),
    };
    Failure::Local(LocalFault::Io { doing: "read", path: "the source".to_owned(), detail })
}
