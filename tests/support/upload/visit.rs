//! Visit: one request at a double, from its head over its body to what is answered.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

use super::door::{Exchange, Inner, Way, field};
use super::faults::lock;

/// Names and values, in order.
pub(crate) type Headers = Vec<(String, String)>;

/// No head that a client sends us is longer.
const MAX_HEAD: usize = 64 << 10;

/// A request while it is answered.
pub(crate) struct Visit {
    inner: Arc<Inner>,
    stream: TcpStream,
    /// Read, and not yet looked at.
    ahead: Vec<u8>,
    n: usize,
    connection: u64,
    pub(crate) method: String,
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: Headers,
    /// Is a client that waits for 100 told to go on when its body is first read?
    pub(crate) goes_on: bool,
    framing: Framing,
}

/// The record of one request.
pub(super) struct Notes {
    inner: Arc<Inner>,
    n: usize,
}

impl Notes {
    pub(super) fn note(&self, change: impl FnOnce(&mut Exchange)) {
        if let Some(exchange) = lock(&self.inner.log).get_mut(self.n) {
            change(exchange);
        }
    }
}

/// What is left of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// So many bytes.
    Length(u64),
    /// Chunks: so many bytes of the one that is read.
    Chunks(u64),
    Done,
}

impl Visit {
    /// Reads the head of the next request; `None` where the connection has ended or none can be read.
    pub(super) fn read(inner: &Arc<Inner>, stream: &TcpStream, ahead: Vec<u8>, connection: u64) -> Option<Self> {
        let mut visit = Self {
            inner: Arc::clone(inner),
            stream: stream.try_clone().ok()?,
            ahead,
            n: 0,
            connection,
            method: String::new(),
            target: String::new(),
            headers: Vec::new(),
            goes_on: true,
            framing: Framing::Done,
        };
        let head = visit.read_head()?;
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        (visit.method, visit.target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let fields = lines.filter_map(|line| line.split_once(':'));
        visit.headers = fields.map(|(n, v)| (n.to_ascii_lowercase(), v.trim().to_owned())).collect();
        let length = visit.header("content-length").and_then(|v| v.parse().ok());
        visit.framing = match (visit.header("transfer-encoding"), length) {
            (Some(_), _) => Framing::Chunks(0),
            (None, Some(n)) if n > 0 => Framing::Length(n),
            _ => Framing::Done,
        };
        visit.enter(length);
        Some(visit)
    }

    fn read_head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.ahead.windows(4).position(|w| w == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.ahead[..end]).into_owned();
                self.ahead.drain(..end + 4);
                return Some(head);
            }
            if self.ahead.len() > MAX_HEAD || self.fill().ok()? == 0 {
                return None;
            }
        }
    }

    fn enter(&mut self, length: Option<u64>) {
        let mut log = lock(&self.inner.log);
        self.n = log.len();
        log.push(Exchange {
            n: self.n,
            connection: self.connection,
            method: self.method.clone(),
            target: self.target.clone(),
            headers: self.headers.clone(),
            length,
            received: 0,
            whole: self.framing == Framing::Done,
            interim: Vec::new(),
            answer: None,
            answered: Vec::new(),
            at: Instant::now(),
        });
    }

    /// Changes what is recorded of this request.
    pub(super) fn note(&self, change: impl FnOnce(&mut Exchange)) {
        self.notes().note(change);
    }

    /// What is recorded of this request, for another thread.
    pub(super) fn notes(&self) -> Notes {
        Notes { inner: Arc::clone(&self.inner), n: self.n }
    }

    /// A value of the request's header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        field(&self.headers, name)
    }

    /// A value that is a number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.header(name)?.parse().ok()
    }

    /// Is there more of the body?
    pub(crate) fn has_body(&self) -> bool {
        self.framing != Framing::Done
    }

    /// The path without what the query says.
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Bytes of the body; 0 at its end.
    ///
    /// # Errors
    /// The connection ended or broke before the body did.
    pub(crate) fn take(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.go_on()?;
        let left = match self.framing {
            Framing::Done => return Ok(0),
            Framing::Length(left) => left,
            Framing::Chunks(0) => match self.next_chunk()? {
                0 => return Ok(0),
                n => n,
            },
            Framing::Chunks(left) => left,
        };
        if self.ahead.is_empty() && self.fill()? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let n = self.ahead.len().min(into.len()).min(usize::try_from(left).unwrap_or(usize::MAX));
        into[..n].copy_from_slice(&self.ahead[..n]);
        self.ahead.drain(..n);
        self.took(n as u64, left);
        Ok(n)
    }

    fn took(&mut self, n: u64, left: u64) {
        self.framing = match self.framing {
            Framing::Length(_) if n == left => Framing::Done,
            Framing::Length(_) => Framing::Length(left - n),
            Framing::Chunks(_) => Framing::Chunks(left - n),
            Framing::Done => Framing::Done,
        };
        let whole = self.framing == Framing::Done;
        self.note(|exchange| {
            exchange.received += n;
            exchange.whole = whole;
        });
    }

    /// The size of the next chunk, 0 for the last.
    fn next_chunk(&mut self) -> io::Result<u64> {
        // What ends the chunk before stands in front of all but the first.
        let mut line = self.line()?;
        if line.is_empty() {
            line = self.line()?;
        }
        let size = line.split(';').next().and_then(|n| u64::from_str_radix(n.trim(), 16).ok());
        let size = size.ok_or(ErrorKind::InvalidData)?;
        self.framing = Framing::Chunks(size);
        if size == 0 {
            while !self.line()?.is_empty() {}
            self.framing = Framing::Done;
            self.note(|exchange| exchange.whole = true);
        }
        Ok(size)
    }

    fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.ahead.windows(2).position(|w| w == b"\r\n") {
                let line = String::from_utf8_lossy(&self.ahead[..end]).into_owned();
                self.ahead.drain(..end + 2);
                return Ok(line);
            }
            if self.fill()? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads the body to its end and forgets it; how many bytes were left.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(crate) fn drain(&mut self) -> io::Result<u64> {
        let (mut buffer, mut all) = (vec![0; 64 << 10], 0);
        loop {
            match self.take(&mut buffer)? {
                0 => return Ok(all),
                n => all += n as u64,
            }
        }
    }

    /// Tells a client to go on that waits for that, as the server does it when it wants the body.
    pub(crate) fn go_on(&mut self) -> io::Result<()> {
        let waits = self.header("expect").is_some_and(|v| v.eq_ignore_ascii_case("100-continue"));
        if std::mem::replace(&mut self.goes_on, false) && waits && self.has_body() {
            self.interim(100, &[])?;
        }
        Ok(())
    }

    /// Sends an informational answer.
    pub(crate) fn interim(&mut self, status: u16, headers: &[(&str, String)]) -> io::Result<()> {
        self.note(|exchange| exchange.interim.push(status));
        let text = head(status, headers);
        self.stream.write_all(text.as_bytes())
    }

    /// Sends the answer, and says how the connection goes on: it stays if the body was read and the client wants that.
    pub(crate) fn answer(&mut self, status: u16, headers: &[(&str, String)], body: &str) -> Way {
        let stays = !self.has_body() && !self.header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"));
        let mut all = headers.to_vec();
        if status != 204 && status >= 200 {
            all.push(("Content-Length", body.len().to_string()));
        }
        if !stays {
            all.push(("Connection", "close".to_owned()));
        }
        let answered = all.iter().map(|(n, v)| (n.to_ascii_lowercase(), v.clone())).collect();
        self.note(|exchange| (exchange.answer, exchange.answered) = (Some(status), answered));
        let mut text = head(status, &all);
        if self.method != "HEAD" && status != 204 {
            text.push_str(body);
        }
        match self.stream.write_all(text.as_bytes()) {
            Ok(()) if stays => Way::Stay,
            Ok(()) => Way::Linger,
            Err(_) => Way::Close,
        }
    }

    /// The number of the connection that it came by.
    pub(super) fn connection(&self) -> u64 {
        self.connection
    }

    /// Ends another connection of the same double.
    pub(super) fn end_connection(&self, connection: u64) {
        self.inner.end(connection);
    }

    /// Nothing happens until the client is gone or the server dies.
    pub(super) fn hang(&self) -> Way {
        self.inner.silence(&self.stream, self.connection);
        Way::Close
    }

    /// The connection itself, for one who passes on what comes.
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// What was read beyond this request.
    pub(super) fn left(self) -> Vec<u8> {
        self.ahead
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut buffer = [0; 16 << 10];
        let n = self.stream.read(&mut buffer)?;
        self.ahead.extend_from_slice(&buffer[..n]);
        Ok(n)
    }
}

fn head(status: u16, headers: &[(&str, String)]) -> String {
    let mut text = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    text + "\r\n"
}

fn reason(status: u16) -> &'static str {
    let known = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    known.unwrap_or(if status == 104 { "Upload Resumption Supported" } else { "As It Is" })
}
