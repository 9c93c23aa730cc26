//! Proxy: stands before any server and does to one upload what networks, load balancers and front ends do.
//!
//! Each request goes on by a connection of its own, and each answer ends the client's. The log's `answer` is what the
//! server said, even where the client never saw it; only [`Mischief::Replaces`] puts its own there.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::door::{Door, Way, field};
use super::faults::{Faults, lock};
use super::visit::{Notes, Visit};

/// What is done to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mischief {
    /// It passes, and its answers come back as they are, informational ones too.
    None,
    /// The whole body is taken before the server hears of it: of a killed request it never does.
    Buffers,
    /// After so many bytes of the body were passed on, both sides are cut; the client sees this end.
    Cuts { after: u64, way: Way },
    /// After so many bytes of the body nothing moves, and both connections stay open.
    Stalls { after: u64 },
    /// It is passed on only after this time.
    Delays(Duration),
    /// The body is passed on at this pace: bytes at a time, and the rest between.
    Paces { bytes: usize, rest: Duration },
    /// 413 to a body longer than `limit`, from its Content-Length and before any of it is read; the connection goes on this
    /// way. With [`Way::Reset`] the answer itself may be lost, as it is on a fast line.
    TooLarge { limit: u64, way: Way },
    /// 413 to a body longer than `limit`, after all of it was read.
    TooLargeAtTheEnd { limit: u64 },
    /// All of it reaches the server, which answers; the client's connection dies instead.
    LosesAnswer,
    /// This answer instead of the server's, with a Retry-After in seconds, after the body was read.
    Answers { status: u16, retry_after: Option<u32> },
    /// This answer instead of the server's, which never hears of it, after the body was read.
    Says { status: u16, body: &'static str },
    /// All of it reaches the server, whose answer is replaced by this one.
    Replaces { status: u16, body: &'static str },
    /// As it is, but without this header (in lower case) in the request and in the answer.
    Strips(&'static str),
}

/// A running one. It stops when this is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) door: Door,
    faults: Arc<Faults<Mischief>>,
    chosen: Arc<Chosen>,
}

/// What requests meet that begin in a certain way, once each.
type Chosen = Mutex<Vec<(String, Mischief)>>;

impl Proxy {
    /// Before the server at that port of 127.0.0.1.
    pub(crate) fn before(port: u16) -> Self {
        let faults = Arc::new(Faults::new(Mischief::None));
        let chosen: Arc<Chosen> = Arc::default();
        let (theirs, server) = (Arc::clone(&faults), SocketAddr::from(([127, 0, 0, 1], port)));
        let their_chosen = Arc::clone(&chosen);
        let door = Door::open(move |visit| {
            let mischief = match take_chosen(&their_chosen, visit) {
                Some(mischief) => mischief,
                None if visit.has_body() => theirs.take(),
                None => theirs.standing(),
            };
            serve(visit, server, mischief)
        });
        Self { door, faults, chosen }
    }

    /// The same path as in `url`, by way of the proxy.
    #[track_caller]
    pub(crate) fn url(&self, url: &str) -> String {
        let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("not an http URL: {url}"));
        self.door.url(rest.find('/').map_or("", |at| &rest[at..]))
    }

    /// From now on every request meets this, also one without a body.
    pub(crate) fn now(&self, mischief: Mischief) {
        self.faults.now(mischief);
    }

    /// The next request that has a body meets this.
    pub(crate) fn next(&self, mischief: Mischief) {
        self.faults.next(mischief);
    }

    /// The next request whose method and target begin like this meets this, with a body or without: `HEAD`, or
    /// `POST /bucket/f?uploadId`.
    pub(crate) fn next_of(&self, begins: &str, mischief: Mischief) {
        lock(&self.chosen).push((begins.to_owned(), mischief));
    }
}

fn take_chosen(chosen: &Chosen, visit: &Visit) -> Option<Mischief> {
    let (line, mut chosen) = (format!("{} {}", visit.method, visit.target), lock(chosen));
    let place = chosen.iter().position(|(begins, _)| line.starts_with(begins))?;
    Some(chosen.remove(place).1)
}

fn serve(visit: &mut Visit, server: SocketAddr, mischief: Mischief) -> Way {
    let length = visit.number("content-length").unwrap_or(0);
    match mischief {
        Mischief::TooLarge { limit, way } if length > limit => {
            visit.answer(413, &[], "too large\n");
            return way;
        }
        Mischief::TooLargeAtTheEnd { limit } if length > limit => {
            return visit.drain().map_or(Way::Close, |_| visit.answer(413, &[], "too large\n"));
        }
        Mischief::Answers { status, retry_after } => {
            let wait = retry_after.map(|seconds| ("Retry-After", seconds.to_string()));
            let fields: Vec<_> = wait.into_iter().collect();
            return visit.drain().map_or(Way::Close, |_| visit.answer(status, &fields, "not now\n"));
        }
        Mischief::Says { status, body } => {
            return visit.drain().map_or(Way::Close, |_| visit.answer(status, &[], body));
        }
        Mischief::Delays(time) => thread::sleep(time),
        _ => {}
    }
    Passage { server, mischief }.pass(visit).unwrap_or(Way::Close)
}

/// One request on its way to the server.
struct Passage {
    server: SocketAddr,
    mischief: Mischief,
}

impl Passage {
    fn pass(&self, visit: &mut Visit) -> io::Result<Way> {
        let buffers = self.mischief == Mischief::Buffers;
        let early = if buffers { whole_body(visit)? } else { Vec::new() };
        // The server itself tells a client that waits to go on.
        visit.goes_on = false;
        let Ok(server) = TcpStream::connect(self.server) else { return Ok(visit.answer(502, &[], "no server\n")) };
        (&server).write_all(self.head(visit, buffers.then_some(early.len())).as_bytes())?;
        let answers = self.bring_back(visit, &server)?;
        let passed = if buffers {
            (&server).write_all(&early).map(|()| None).map_err(|_| Broke::Server)
        } else {
            self.carry(visit, &server)
        };
        match passed {
            Ok(Some(way)) => {
                if way == Way::Silence {
                    visit.hang();
                }
                let _ = server.shutdown(Shutdown::Both);
                let _ = answers.join();
                return Ok(way);
            }
            // The client is gone: so is the server's connection.
            Err(Broke::Client) => {
                let _ = server.shutdown(Shutdown::Both);
            }
            Ok(None) | Err(Broke::Server) => {}
        }
        let answered = answers.join().unwrap_or(false);
        if let Mischief::Replaces { status, body } = self.mischief {
            return Ok(visit.answer(status, &[], body));
        }
        let lost = self.mischief == Mischief::LosesAnswer || !answered;
        Ok(if lost { Way::Close } else { Way::Linger })
    }

    /// The request's head, as the server gets it.
    fn head(&self, visit: &Visit, length: Option<usize>) -> String {
        let mut text = format!("{} {} HTTP/1.1\r\n", visit.method, visit.target);
        for (name, value) in &visit.headers {
            let framing = matches!(name.as_str(), "content-length" | "transfer-encoding" | "expect");
            if name != "connection" && !(framing && length.is_some()) && !self.strips(name) {
                let _ = write!(text, "{name}: {value}\r\n");
            }
        }
        if let Some(length) = length {
            let _ = write!(text, "Content-Length: {length}\r\n");
        }
        text + "Connection: close\r\n\r\n"
    }

    fn strips(&self, name: &str) -> bool {
        matches!(self.mischief, Mischief::Strips(which) if which == name)
    }

    /// Passes the body on; how both connections end where the mischief says so.
    fn carry(&self, visit: &mut Visit, mut server: &TcpStream) -> Result<Option<Way>, Broke> {
        let (mut until, way) = match self.mischief {
            Mischief::Cuts { after, way } => (after, way),
            Mischief::Stalls { after } => (after, Way::Silence),
            _ => (u64::MAX, Way::Close),
        };
        let (step, rest) = match self.mischief {
            Mischief::Paces { bytes, rest } => (bytes.max(1), rest),
            _ => (64 << 10, Duration::ZERO),
        };
        let chunked = visit.header("transfer-encoding").is_some();
        let mut buffer = vec![0; step];
        while visit.has_body() {
            let most = step.min(usize::try_from(until).unwrap_or(usize::MAX));
            if most == 0 {
                return Ok(Some(way));
            }
            let n = visit.take(&mut buffer[..most]).map_err(|_| Broke::Client)?;
            let part = &buffer[..n];
            // The end of the body is a chunk of nothing, and the empty line behind it.
            let framed =
                if chunked { [format!("{n:x}\r\n").as_bytes(), part, b"\r\n"].concat() } else { part.to_vec() };
            server.write_all(&framed).map_err(|_| Broke::Server)?;
            until -= n as u64;
            thread::sleep(rest);
        }
        Ok(None)
    }

    /// Passes answers back as they come, on a thread of its own, until the last is whole or the server's connection ends.
    /// Was there one?
    fn bring_back(&self, visit: &Visit, server: &TcpStream) -> io::Result<JoinHandle<bool>> {
        let (server, client) = (server.try_clone()?, visit.stream().try_clone()?);
        let (mischief, is_head) = (self.mischief, visit.method == "HEAD");
        let notes = visit.notes();
        Ok(thread::spawn(move || {
            let mut answers = Answers { notes, mischief, is_head, answer: None, left: None };
            let _ = answers.pass(&server, &client);
            answers.answer.is_some()
        }))
    }
}

enum Broke {
    Client,
    Server,
}

/// What the server says, on its way back.
struct Answers {
    notes: Notes,
    mischief: Mischief,
    is_head: bool,
    answer: Option<u16>,
    /// Bytes of the final answer's body that are still to come, where that is known.
    left: Option<usize>,
}

impl Answers {
    fn pass(&mut self, mut server: &TcpStream, mut client: &TcpStream) -> io::Result<()> {
        let loses = matches!(self.mischief, Mischief::LosesAnswer | Mischief::Replaces { .. });
        let (mut all, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        loop {
            while self.answer.is_none() {
                let Some(end) = all.windows(4).position(|w| w == b"\r\n\r\n") else { break };
                let head = self.head(&String::from_utf8_lossy(&all[..end]));
                all.drain(..end + 4);
                if !loses || self.answer.is_none() {
                    client.write_all(head.as_bytes())?;
                }
            }
            if self.answer.is_some() {
                self.left = self.left.map(|left| left.saturating_sub(all.len()));
                if !loses {
                    client.write_all(&all)?;
                }
                all.clear();
            }
            if self.left == Some(0) {
                return Ok(());
            }
            match server.read(&mut buffer)? {
                0 => return Ok(()),
                n => all.extend_from_slice(&buffer[..n]),
            }
        }
    }

    /// Takes note of an answer's head, and gives it as the client gets it.
    fn head(&mut self, head: &str) -> String {
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let status = first.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
        let (mut text, mut headers) = (format!("{first}\r\n"), Vec::new());
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let lower = name.to_ascii_lowercase();
            let stripped = matches!(self.mischief, Mischief::Strips(which) if which == lower);
            if !matches!(lower.as_str(), "connection" | "keep-alive") && !stripped {
                let _ = write!(text, "{name}:{value}\r\n");
            }
            headers.push((lower, value.trim().to_owned()));
        }
        if status < 200 {
            self.notes.note(|exchange| exchange.interim.push(status));
            return text + "\r\n";
        }
        let length = field(&headers, "content-length").and_then(|n| n.parse().ok());
        self.left = if self.is_head || matches!(status, 204 | 304) { Some(0) } else { length };
        self.answer = Some(status);
        self.notes.note(|exchange| (exchange.answer, exchange.answered) = (Some(status), headers));
        text + "Connection: close\r\n\r\n"
    }
}

/// All of the body, before the server hears of it.
fn whole_body(visit: &mut Visit) -> io::Result<Vec<u8>> {
    let (mut all, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match visit.take(&mut buffer)? {
            0 => return Ok(all),
            n => all.extend_from_slice(&buffer[..n]),
        }
    }
}
