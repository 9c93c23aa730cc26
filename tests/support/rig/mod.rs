//! Rig: an HTTP server that does what a script says, on a raw socket, so that it can send any bytes at all.
//!
//! A test hands it a function from what was [`Asked`] to a [`Reply`]. The rig records every request, counts every byte it
//! sends and every connection it takes, and plays each reply to the end that the reply wishes: kept open, closed, reset,
//! or silent. It knows nothing of files, ranges or validators; [`served`] does.

pub(crate) mod reply;
pub(crate) mod served;

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use reply::{End, Reply};
pub(crate) use served::Served;

/// No head that a client sends us is longer.
const MAX_HEAD: usize = 64 << 10;
/// Small, so that what is counted as sent is not far ahead of what the client took.
const SEND_BUFFER: usize = 64 << 10;

/// A request as it came in.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// How many requests other than HEAD came before it, at this rig.
    pub(crate) n: usize,
    pub(crate) method: String,
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// When its head was complete.
    pub(crate) at: Instant,
    /// How many other answers were under way then, without those that let the client wait.
    pub(crate) beside: usize,
}

/// A running server; it stops when this is dropped.
#[derive(Debug)]
pub(crate) struct Rig {
    address: SocketAddr,
    inner: Arc<Inner>,
}

type Script = Arc<dyn Fn(&Asked) -> Reply + Send + Sync>;

struct Inner {
    script: Mutex<Script>,
    asked: Mutex<Vec<Asked>>,
    heads: AtomicU64,
    sent: AtomicU64,
    connections: AtomicU64,
    playing: AtomicUsize,
    over: AtomicBool,
}

impl Rig {
    /// Starts one on a free port of 127.0.0.1. Each request but HEAD, which gets 405, is answered by `script`.
    pub(crate) fn start(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let _ = rustix::net::sockopt::set_socket_send_buffer_size(&listener, SEND_BUFFER);
        let address = listener.local_addr().expect("a bound socket has an address");
        let inner = Arc::new(Inner {
            script: Mutex::new(Arc::new(script)),
            asked: Mutex::new(Vec::new()),
            heads: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            playing: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&inner);
        thread::spawn(move || accept(&listener, &theirs));
        Self { address, inner }
    }

    /// From now on, requests are answered by `script`; replies under way go on as they began.
    pub(crate) fn now(&self, script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) {
        *lock(&self.inner.script) = Arc::new(script);
    }

    /// `http://127.0.0.1:PORT` and the path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Bytes sent so far, heads included.
    pub(crate) fn sent(&self) -> u64 {
        self.inner.sent.load(Ordering::SeqCst)
    }

    /// That many bytes were sent, and the client has had a moment to put them away.
    pub(crate) fn has_sent(&self, bytes: usize) -> bool {
        let enough = self.sent() >= bytes as u64;
        if enough {
            thread::sleep(Duration::from_millis(300));
        }
        enough
    }

    /// Connections taken so far.
    pub(crate) fn connections(&self) -> u64 {
        self.inner.connections.load(Ordering::SeqCst)
    }

    /// Every request so far but HEAD, in order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        lock(&self.inner.asked).clone()
    }

    /// Did a request after the first `n` ask for the rest from beyond `offset`?
    pub(crate) fn resumed(&self, n: usize, offset: usize) -> bool {
        self.froms()[n..].iter().any(|from| *from > offset)
    }

    /// The first byte that each request asked for.
    pub(crate) fn froms(&self) -> Vec<usize> {
        self.asked().iter().map(Asked::from).collect()
    }

    /// How many requests so far, HEAD left out.
    pub(crate) fn count(&self) -> usize {
        lock(&self.inner.asked).len()
    }

    /// How many HEAD requests so far.
    pub(crate) fn heads(&self) -> u64 {
        self.inner.heads.load(Ordering::SeqCst)
    }

    /// Takes no more connections and breaks off what is under way: from now on, connecting is refused.
    pub(crate) fn stop(&self) {
        if !self.inner.over.swap(true, Ordering::SeqCst) {
            // Wakes the accepting thread, which then drops its listener.
            let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Inner {
    fn over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("asked", &self.asked).field("sent", &self.sent).finish_non_exhaustive()
    }
}

impl Asked {
    /// The value of a header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// First and last byte of a single range, as the header counts them.
    pub(crate) fn range(&self) -> Option<(usize, Option<usize>)> {
        let (first, last) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse().ok()?, if last.is_empty() { None } else { Some(last.parse().ok()?) }))
    }

    /// The first byte asked for: zero without a range.
    pub(crate) fn from(&self) -> usize {
        self.range().map_or(0, |(first, _)| first)
    }

    fn read(head: &str, n: usize, beside: usize) -> Option<Self> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let header = |line: &str| line.split_once(':').map(|(n, v)| (n.to_ascii_lowercase(), v.trim().to_owned()));
        Some(Self { n, method, target, headers: lines.filter_map(header).collect(), at: Instant::now(), beside })
    }
}

fn accept(listener: &TcpListener, inner: &Arc<Inner>) {
    for stream in listener.incoming() {
        if inner.over() {
            return;
        }
        let Ok(stream) = stream else { continue };
        inner.connections.fetch_add(1, Ordering::SeqCst);
        let inner = Arc::clone(inner);
        thread::spawn(move || serve(stream, &inner));
    }
}

/// Answers one request after the other until a reply, the client or the rig ends the connection.
fn serve(mut stream: TcpStream, inner: &Inner) {
    let mut early = Vec::new();
    while let Some(head) = read_head(&mut stream, &mut early, inner) {
        let Some(reply) = answer(&head, inner) else { return };
        let counted = usize::from(!reply.waits());
        inner.playing.fetch_add(counted, Ordering::SeqCst);
        let end = reply.play(&mut stream, &inner.sent, &|| inner.over());
        inner.playing.fetch_sub(counted, Ordering::SeqCst);
        match end {
            Ok(End::Keep) => {}
            Ok(End::Reset) => return reset(&stream),
            Ok(End::Close | End::Hang) | Err(_) => return,
        }
    }
}

fn answer(head: &str, inner: &Inner) -> Option<Reply> {
    let asked = {
        let mut all = lock(&inner.asked);
        let asked = Asked::read(head, all.len(), inner.playing.load(Ordering::SeqCst))?;
        if asked.method == "HEAD" {
            inner.heads.fetch_add(1, Ordering::SeqCst);
            return Some(Reply::status(405).header("Allow", "GET").header("Content-Length", "0"));
        }
        all.push(asked.clone());
        asked
    };
    let script = Arc::clone(&lock(&inner.script));
    Some(script(&asked))
}

/// The next request's head without its empty line; what came behind it stays in `early`.
fn read_head(stream: &mut TcpStream, early: &mut Vec<u8>, inner: &Inner) -> Option<String> {
    stream.set_read_timeout(Some(Duration::from_millis(100))).ok()?;
    let mut chunk = [0; 4096];
    loop {
        if let Some(end) = early.windows(4).position(|w| w == b"\r\n\r\n") {
            let rest = early.split_off(end + 4);
            let head = std::mem::replace(early, rest);
            return Some(String::from_utf8_lossy(&head[..end]).into_owned());
        }
        match stream.read(&mut chunk) {
            Ok(0) => return None,
            Ok(n) => early.extend_from_slice(&chunk[..n]),
            Err(e) if is_timeout(&e) && !inner.over() => {}
            Err(_) => return None,
        }
        if early.len() > MAX_HEAD {
            return None;
        }
    }
}

fn is_timeout(e: &std::io::Error) -> bool {
    matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut | std::io::ErrorKind::Interrupted)
}

/// The connection is dropped without a farewell: the client sees "connection reset".
fn reset(stream: &TcpStream) {
    let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

/// A test that panics while it holds a lock must not hide its reason behind a second panic.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
