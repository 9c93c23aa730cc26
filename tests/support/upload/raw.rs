//! Raw: a client that sends exactly what a test says, on a connection of its own, and keeps everything that comes back.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use super::door::field;
use super::visit::Headers;
use crate::support::HANGS;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    method: String,
    address: String,
    target: String,
    headers: Headers,
    body: Option<Vec<u8>>,
    chunked: bool,
    waits: bool,
    kill_after: Option<usize>,
    pace: Option<(usize, Duration)>,
}

/// An answer, informational or final.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Headers,
    pub(crate) body: Vec<u8>,
}

/// Everything that came back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) interim: Vec<Answer>,
    /// `None` if the connection ended without one.
    pub(crate) answer: Option<Answer>,
    /// How the connection broke, where it did.
    pub(crate) failed: Option<ErrorKind>,
    /// Bytes of the body that the system took for sending.
    pub(crate) sent: usize,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        field(&self.headers, name)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Heard {
    /// The final status.
    pub(crate) fn status(&self) -> Option<u16> {
        self.answer.as_ref().map(|answer| answer.status)
    }

    /// A header of the final answer.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.answer.as_ref()?.header(name)
    }

    /// A header of the final answer that is a number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.header(name)?.parse().ok()
    }

    /// The body of the final answer.
    pub(crate) fn text(&self) -> String {
        self.answer.as_ref().map(Answer::text).unwrap_or_default()
    }
}

impl Raw {
    /// A request without a body for an `http` URL.
    #[track_caller]
    pub(crate) fn new(method: &str, url: &str) -> Self {
        let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("not an http URL: {url}"));
        let (address, target) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Self {
            method: method.to_owned(),
            address: address.to_owned(),
            target: if target.is_empty() { "/".to_owned() } else { target.to_owned() },
            headers: Vec::new(),
            body: None,
            chunked: false,
            waits: false,
            kill_after: None,
            pace: None,
        }
    }

    pub(crate) fn header(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    /// With a body and its Content-Length, also where that is 0.
    pub(crate) fn body(mut self, body: &[u8]) -> Self {
        self.body = Some(body.to_vec());
        self
    }

    /// The body goes in chunks, without a Content-Length.
    pub(crate) fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    /// Asks for 100 and waits a second for it, or for a final answer: then the body is kept back.
    pub(crate) fn waits(mut self) -> Self {
        self.waits = true;
        self
    }

    /// Is dead after so many bytes of the body.
    pub(crate) fn killed_after(mut self, bytes: usize) -> Self {
        self.kill_after = Some(bytes);
        self
    }

    /// Sends so many bytes at a time, with a rest between.
    pub(crate) fn pace(mut self, bytes: usize, rest: Duration) -> Self {
        self.pace = Some((bytes, rest));
        self
    }

    /// Sends it, and reads until the final answer or the end of the connection.
    ///
    /// # Panics
    /// Where nobody listens, or nothing ends.
    #[track_caller]
    pub(crate) fn send(&self) -> Heard {
        let stream = TcpStream::connect(&self.address).unwrap_or_else(|e| panic!("{}: {e}", self.address));
        stream.set_read_timeout(Some(HANGS)).expect("a socket takes a timeout");
        let (copy, is_head) = (stream.try_clone().expect("a socket can be shared"), self.method == "HEAD");
        let (told, tells) = std::sync::mpsc::channel();
        let reader = thread::spawn(move || listen(copy, is_head, &told));
        let mut sent = 0;
        let broke = self.speak(&stream, &tells, &mut sent).err();
        let killed = self.kill_after.is_some_and(|n| sent >= n);
        if killed {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let mut heard = reader.join().expect("a reader does not panic");
        heard.sent = sent;
        heard.failed = heard.failed.or_else(|| broke.map(|e| e.kind()));
        heard
    }

    fn speak(
        &self,
        mut stream: &TcpStream,
        tells: &std::sync::mpsc::Receiver<u16>,
        sent: &mut usize,
    ) -> io::Result<()> {
        stream.write_all(self.head().as_bytes())?;
        let Some(body) = &self.body else { return Ok(()) };
        if self.waits && tells.recv_timeout(Duration::from_secs(1)).is_ok_and(|status| status >= 200) {
            return Ok(());
        }
        let end = self.kill_after.unwrap_or(body.len()).min(body.len());
        let step = self.pace.map_or(64 << 10, |(bytes, _)| bytes).max(1);
        for part in body[..end].chunks(step) {
            if self.chunked {
                write!(stream, "{:x}\r\n", part.len())?;
            }
            stream.write_all(part)?;
            if self.chunked {
                stream.write_all(b"\r\n")?;
            }
            *sent += part.len();
            thread::sleep(self.pace.map_or(Duration::ZERO, |(_, rest)| rest));
        }
        if self.chunked && self.kill_after.is_none() {
            stream.write_all(b"0\r\n\r\n")?;
        }
        Ok(())
    }

    fn head(&self) -> String {
        let mut text = format!("{} {} HTTP/1.1\r\nHost: {}\r\n", self.method, self.target, self.address);
        for (name, value) in &self.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        match &self.body {
            Some(_) if self.chunked => text.push_str("Transfer-Encoding: chunked\r\n"),
            Some(body) => {
                let _ = write!(text, "Content-Length: {}\r\n", body.len());
            }
            None => {}
        }
        if self.waits {
            text.push_str("Expect: 100-continue\r\n");
        }
        text + "Connection: close\r\n\r\n"
    }
}

/// Reads everything that comes, and tells each status as it does.
fn listen(mut stream: TcpStream, is_head: bool, told: &std::sync::mpsc::Sender<u16>) -> Heard {
    let (mut heard, mut all) = (Heard::default(), Vec::new());
    let mut buffer = vec![0; 64 << 10];
    loop {
        while heard.answer.is_none() {
            let Some((answer, used)) = read_head(&all) else { break };
            all.drain(..used);
            let _ = told.send(answer.status);
            if answer.status < 200 {
                heard.interim.push(answer);
            } else {
                heard.answer = Some(answer);
            }
        }
        if heard.answer.as_ref().is_some_and(|answer| is_whole(answer, is_head, &all)) {
            break;
        }
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => all.extend_from_slice(&buffer[..n]),
            Err(e) => {
                heard.failed = Some(e.kind());
                break;
            }
        }
    }
    if let Some(answer) = &mut heard.answer {
        answer.body = if answer.header("transfer-encoding").is_some() { unchunked(&all) } else { all };
    }
    heard
}

fn read_head(all: &[u8]) -> Option<(Answer, usize)> {
    let end = all.windows(4).position(|w| w == b"\r\n\r\n")?;
    let text = String::from_utf8_lossy(&all[..end]).into_owned();
    let mut lines = text.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let fields = lines.filter_map(|line| line.split_once(':'));
    let headers = fields.map(|(n, v)| (n.to_ascii_lowercase(), v.trim().to_owned())).collect();
    Some((Answer { status, headers, body: Vec::new() }, end + 4))
}

fn is_whole(answer: &Answer, is_head: bool, body: &[u8]) -> bool {
    let length = answer.header("content-length").and_then(|v| v.parse::<usize>().ok());
    is_head || matches!(answer.status, 204 | 304) || length.is_some_and(|n| body.len() >= n)
}

/// What chunks hold, as far as they go.
fn unchunked(mut all: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(end) = all.windows(2).position(|w| w == b"\r\n") {
        let size = usize::from_str_radix(String::from_utf8_lossy(&all[..end]).trim(), 16).unwrap_or(0);
        let from = end + 2;
        if size == 0 || all.len() < from + size + 2 {
            break;
        }
        out.extend_from_slice(&all[from..from + size]);
        all = &all[from + size + 2..];
    }
    out
}
