//! Reading and writing with deadlines.

use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// So long an answer may take to be taken by the other end.
const WRITE: Duration = Duration::from_secs(30);

/// What has come, at least a byte; nothing once the other end has closed.
pub(super) async fn read<'b>(stream: &TcpStream, buffer: &'b mut [u8], until: Instant) -> Result<&'b [u8]> {
    loop {
        in_time(until, stream.readable()).await?;
        match stream.try_read(buffer) {
            Ok(n) => return Ok(&buffer[..n]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
    }
}

/// Writes all of it.
pub(super) async fn write(stream: &TcpStream, mut bytes: &[u8]) -> Result<()> {
    let until = Instant::now() + WRITE;
    while !bytes.is_empty() {
        in_time(until, stream.writable()).await?;
        match stream.try_write(bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

async fn in_time<T>(until: Instant, what: impl Future<Output = Result<T>>) -> Result<T> {
    timeout_at(until, what).await.unwrap_or_else(|_| Err(Error::from(ErrorKind::TimedOut)))
}
