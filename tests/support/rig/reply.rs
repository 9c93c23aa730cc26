//! Reply: what the rig sends for one request, as data: head, body, framing, pace, and how it ends.

use std::io::{self, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// What becomes of the connection after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It waits for the next request.
    Keep,
    /// It is closed.
    Close,
    /// It is reset.
    Reset,
    /// It stays open, and nothing more comes.
    Hang,
}

/// How the body's end is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// By Content-Length, written by us.
    Length,
    /// By whatever headers the script gave, true or not.
    AsWritten,
    /// In chunks, with the last one.
    Chunks,
    /// In chunks, and the last one never comes.
    OpenChunks,
}

/// One reply.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    version: &'static str,
    status: u16,
    headers: Vec<(String, String)>,
    data: Arc<Vec<u8>>,
    part: Range<usize>,
    framing: Framing,
    before: Vec<u8>,
    raw: Option<Vec<u8>>,
    wait: Duration,
    pace: Option<(usize, Duration)>,
    cut: Option<usize>,
    end: End,
}

impl Reply {
    /// A status without a body.
    pub(crate) fn status(status: u16) -> Self {
        Self {
            version: "HTTP/1.1",
            status,
            headers: Vec::new(),
            data: Arc::default(),
            part: 0..0,
            framing: Framing::Length,
            before: Vec::new(),
            raw: None,
            wait: Duration::ZERO,
            pace: None,
            cut: None,
            end: End::Keep,
        }
    }

    /// A status with an HTML page.
    pub(crate) fn page(status: u16, html: &str) -> Self {
        let data = Arc::new(html.as_bytes().to_vec());
        Self::status(status).body(&data, 0..data.len()).header("Content-Type", "text/html; charset=utf-8")
    }

    /// A redirect.
    pub(crate) fn redirect(status: u16, to: &str) -> Self {
        Self::status(status).header("Location", to)
    }

    /// Exactly these bytes, then the connection is closed.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { raw: Some(bytes.into()), end: End::Close, ..Self::status(200) }
    }

    /// Part of `data` as the body.
    pub(crate) fn body(mut self, data: &Arc<Vec<u8>>, part: Range<usize>) -> Self {
        (self.data, self.part) = (Arc::clone(data), part);
        self
    }

    /// One more header line; Content-Length among them switches off our own.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        if name.eq_ignore_ascii_case("content-length") {
            self.framing = Framing::AsWritten;
        }
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The header gets this value, or goes where it is `None`.
    pub(crate) fn instead(mut self, name: &str, value: Option<&str>) -> Self {
        self.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        match value {
            Some(value) => self.header(name, value),
            None => self,
        }
    }

    /// The body in chunks.
    pub(crate) fn chunked(mut self) -> Self {
        self.framing = Framing::Chunks;
        self
    }

    /// The body in chunks whose last never comes; then the connection is closed.
    pub(crate) fn chunked_without_end(mut self) -> Self {
        (self.framing, self.end) = (Framing::OpenChunks, End::Close);
        self
    }

    /// No word on the body's length: it ends when the connection does.
    pub(crate) fn until_close(mut self) -> Self {
        (self.framing, self.end) = (Framing::AsWritten, End::Close);
        self
    }

    /// As an HTTP/1.0 server answers: no length, then closed.
    pub(crate) fn http10(self) -> Self {
        Self { version: "HTTP/1.0", ..self.until_close() }
    }

    /// These bytes (an interim answer, say) before the head.
    pub(crate) fn after_bytes(mut self, bytes: &[u8]) -> Self {
        self.before = bytes.to_vec();
        self
    }

    /// So long, nothing is sent.
    pub(crate) fn late(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// The body in pieces of `bytes` with a pause after each.
    pub(crate) fn pace(mut self, bytes: usize, pause: Duration) -> Self {
        self.pace = Some((bytes, pause));
        self
    }

    /// It has a pace already.
    pub(crate) fn has_pace(&self) -> bool {
        self.pace.is_some()
    }

    /// After `n` bytes of the body it ends as said; a body that is no longer than that is sent whole.
    pub(crate) fn cut(mut self, n: usize, end: End) -> Self {
        if n < self.part.len() {
            (self.cut, self.end) = (Some(n), end);
        }
        self
    }

    /// After the whole reply.
    pub(crate) fn then(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// The same under another status.
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// How long the body is before it is cut.
    pub(crate) fn len(&self) -> usize {
        self.part.len()
    }

    /// The body before it is cut.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.data[self.part.clone()]
    }

    /// It lets the client wait before its head.
    pub(super) fn waits(&self) -> bool {
        !self.wait.is_zero()
    }

    /// The connection ends with it, as things stand.
    pub(crate) fn ends_by_closing(&self) -> bool {
        self.end != End::Keep
    }

    /// Sends it; `over` tells that the rig stops.
    pub(super) fn play(&self, stream: &mut TcpStream, sent: &AtomicU64, over: &dyn Fn() -> bool) -> io::Result<End> {
        let mut wire = Wire { stream, sent, over };
        wire.sleep(self.wait)?;
        if let Some(raw) = &self.raw {
            wire.send(raw)?;
        } else {
            wire.send(&self.before)?;
            wire.send(self.head().as_bytes())?;
            self.send_body(&mut wire)?;
        }
        if self.end == End::Hang {
            wire.sleep(Duration::from_secs(600))?;
        }
        Ok(self.end)
    }

    fn head(&self) -> String {
        let mut head = format!("{} {} {}\r\n", self.version, self.status, reason(self.status));
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        match self.framing {
            Framing::Length if self.status != 304 => head += &format!("Content-Length: {}\r\n", self.part.len()),
            Framing::Chunks | Framing::OpenChunks => head += "Transfer-Encoding: chunked\r\n",
            Framing::Length | Framing::AsWritten => {}
        }
        head + "\r\n"
    }

    fn send_body(&self, wire: &mut Wire<'_>) -> io::Result<()> {
        let body = &self.data[self.part.clone()];
        let body = &body[..self.cut.unwrap_or(body.len())];
        let (piece, pause) = self.pace.unwrap_or((48 << 10, Duration::ZERO));
        for bytes in body.chunks(piece) {
            match self.framing {
                Framing::Length | Framing::AsWritten => wire.send(bytes)?,
                Framing::Chunks | Framing::OpenChunks => {
                    wire.send(format!("{:x}\r\n", bytes.len()).as_bytes())?;
                    wire.send(bytes)?;
                    wire.send(b"\r\n")?;
                }
            }
            wire.sleep(pause)?;
        }
        if self.framing == Framing::Chunks && self.cut.is_none() { wire.send(b"0\r\n\r\n") } else { Ok(()) }
    }
}

/// The connection while a reply is played.
struct Wire<'a> {
    stream: &'a mut TcpStream,
    sent: &'a AtomicU64,
    over: &'a dyn Fn() -> bool,
}

impl Wire<'_> {
    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.stream.set_write_timeout(Some(Duration::from_millis(200)))?;
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(n) => {
                    self.sent.fetch_add(n as u64, Ordering::SeqCst);
                    bytes = &bytes[n..];
                }
                Err(e) if super::is_timeout(&e) => self.unless_over()?,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Sleeps in small steps, so that a rig stops soon.
    fn sleep(&self, mut span: Duration) -> io::Result<()> {
        while !span.is_zero() {
            let step = span.min(Duration::from_millis(20));
            thread::sleep(step);
            span -= step;
            self.unless_over()?;
        }
        Ok(())
    }

    fn unless_over(&self) -> io::Result<()> {
        if (self.over)() { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        302 => "Found",
        304 => "Not Modified",
        404 => "Not Found",
        416 => "Range Not Satisfiable",
        429 => "Too Many Requests",
        503 => "Service Unavailable",
        _ => "As Scripted",
    }
}
