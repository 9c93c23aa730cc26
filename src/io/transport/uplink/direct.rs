//! The part of a body that goes from a file to the socket within the kernel (`sendfile`), and is not copied through here.
//!
//! hyper goes on counting and framing it, with pieces of [`FILLER`] in its place: memory that no write may touch. The
//! connection tells filler from bytes by its *address*, and where the file's part of the body lies by *counting*; only
//! where both agree does anything go out, and for filler that is always the file's bytes. So a mistake above ends the
//! connection, and cannot put filler on the wire.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::buffers::PIECE;
use super::line::Progress;

/// A shorter part is better read, and written together with the head.
pub(super) const LEAST: u64 = 256 << 10;
/// So much is read at once where the kernel does not do it.
const READ: usize = 64 << 10;

/// Stands for bytes of a file. It is on the heap because nobody reads it, so that it takes no memory.
static FILLER: LazyLock<Vec<u8>> = LazyLock::new(|| vec![0; PIECE]);

/// Can this system send from a file to a socket?
pub(super) const IS_THERE: bool = cfg!(target_os = "linux");

/// The part of one body that goes so.
#[derive(Debug)]
pub(super) struct Direct {
    file: Arc<File>,
    /// Where in the body.
    part: Range<u64>,
    /// Where in the file it begins.
    start: u64,
    way: Way,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By the kernel.
    Kernel,
    /// By reading: the kernel does not do it for this file system.
    Read,
}

/// What is to be done with a write of hyper's.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The first so many buffers are written as they are.
    Own(usize),
    /// So many bytes are sent from the file.
    File(usize),
}

/// Filler is not where the file's part is, or bytes are where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the parts of the body do not fit together")]
pub(super) struct Misfit;

/// Nothing was sent.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The file cannot be read there.
    Source(io::Error),
    /// The connection does not take it.
    Connection(io::Error),
}

/// A piece of so many bytes, [`PIECE`] at most, that stands for bytes of the file.
pub(super) fn filler(length: usize) -> Bytes {
    Bytes::from_static(&FILLER[..length.min(PIECE)])
}

fn is_filler(bytes: &[u8]) -> bool {
    FILLER.as_ptr_range().contains(&bytes.as_ptr())
}

/// Whose turn it is where the connection has taken so much and hyper writes these.
pub(super) fn turn(direct: Option<&Direct>, gone: Progress, bufs: &[IoSlice<'_>]) -> Result<Turn, Misfit> {
    // An empty buffer may have any address.
    let lead = bufs.iter().position(|b| !b.is_empty() && is_filler(b)).unwrap_or(bufs.len());
    let (own, rest) = bufs.split_at(lead);
    let after = own.iter().fold(gone, |gone, buf| gone.after(buf));
    if own.iter().any(|b| !b.is_empty()) || rest.is_empty() {
        let fits = direct.is_none_or(|d| after == gone || after.sent <= d.part.start);
        return if fits { Ok(Turn::Own(lead)) } else { Err(Misfit) };
    }
    let count = rest.iter().take_while(|b| b.is_empty() || is_filler(b)).map(|b| b.len()).sum();
    let fits = direct.is_some_and(|d| gone.is_in_body() && d.holds(gone.sent, count));
    if fits { Ok(Turn::File(count)) } else { Err(Misfit) }
}

impl Direct {
    /// Behind `before` bytes of the body, these of the file.
    pub(super) fn new(before: u64, file: &Arc<File>, range: Range<u64>) -> Self {
        let part = before..before + range.end.saturating_sub(range.start);
        Self { file: Arc::clone(file), part, start: range.start, way: Way::Kernel }
    }

    fn holds(&self, sent: u64, count: usize) -> bool {
        sent >= self.part.start && sent.checked_add(count as u64).is_some_and(|end| end <= self.part.end)
    }

    /// Sends up to `count` bytes from where the body stands, and says how many the socket has taken: at least one.
    pub(super) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        to: &TcpStream,
        sent: u64,
        count: usize,
    ) -> Poll<Result<usize, Trouble>> {
        // Proven by `turn`; what is not so must not go out.
        if !self.holds(sent, count) {
            return Poll::Ready(Err(Trouble::Source(io::Error::other(Misfit))));
        }
        let at = self.start + (sent - self.part.start);
        loop {
            if let Err(error) = ready!(to.poll_write_ready(cx)) {
                return Poll::Ready(Err(Trouble::Connection(error)));
            }
            match self.attempt(to, at, count) {
                Err(Trouble::Connection(error)) if error.kind() == ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    fn attempt(&mut self, to: &TcpStream, at: u64, count: usize) -> Result<usize, Trouble> {
        if self.way == Way::Read {
            return self.by_reading(to, at, count);
        }
        match to.try_io(Interest::WRITABLE, || by_the_kernel(to, &self.file, at, count)) {
            Ok(0) => Err(Trouble::Source(ErrorKind::UnexpectedEof.into())),
            Ok(taken) => Ok(taken),
            Err(error) if is_not_done(&error) => {
                self.way = Way::Read;
                self.by_reading(to, at, count)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(Trouble::Connection(error)),
            Err(error) => Err(self.whose(error, at)),
        }
    }

    fn by_reading(&self, to: &TcpStream, at: u64, count: usize) -> Result<usize, Trouble> {
        let mut bytes = vec![0; count.min(READ)];
        let read = rustix::io::retry_on_intr(|| rustix::io::pread(&self.file, bytes.as_mut_slice(), at));
        match read {
            Ok(0) => Err(Trouble::Source(ErrorKind::UnexpectedEof.into())),
            // What was not read is not there to be written.
            Ok(read) => to.try_write(&bytes[..read]).map_err(Trouble::Connection),
            Err(error) => Err(Trouble::Source(error.into())),
        }
    }

    /// The kernel does not say which of the two failed: a file that can be read there did not.
    fn whose(&self, error: io::Error, at: u64) -> Trouble {
        match self.file.read_exact_at(&mut [0], at) {
            Ok(()) => Trouble::Connection(error),
            Err(error) => Trouble::Source(error),
        }
    }
}

/// Is it the way that is refused, by the file system, the system or a sandbox?
fn is_not_done(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    // The last two are one number on Linux, and two elsewhere.
    [Errno::INVAL, Errno::NOSYS, Errno::PERM, Errno::OPNOTSUPP, Errno::NOTSUP].map(Some).contains(&errno)
        || error.kind() == ErrorKind::Unsupported
}

#[cfg(target_os = "linux")]
fn by_the_kernel(to: &TcpStream, file: &File, at: u64, count: usize) -> io::Result<usize> {
    let mut at = at;
    Ok(rustix::io::retry_on_intr(|| rustix::fs::sendfile(to, file, Some(&mut at), count))?)
}

#[cfg(not(target_os = "linux"))]
fn by_the_kernel(_: &TcpStream, _: &File, _: u64, _: usize) -> io::Result<usize> {
    Err(ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests;
