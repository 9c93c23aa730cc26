//! Door: the listening side of every double. It takes connections, records requests and counts the bytes of bodies.
//!
//! What a request means is decided by a function from a [`Visit`] to a [`Way`]: how the connection goes on.

use std::collections::HashMap;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use super::faults::lock;
pub(crate) use super::visit::{Headers, Visit};

/// One request, and what became of it so far.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    /// How many requests came before it.
    pub(crate) n: usize,
    /// How many connections came before its own.
    pub(crate) connection: u64,
    pub(crate) method: String,
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: Headers,
    /// Its Content-Length.
    pub(crate) length: Option<u64>,
    /// Bytes of the body that were taken in, without the framing of chunks.
    pub(crate) received: u64,
    /// Did the body come to its end?
    pub(crate) whole: bool,
    /// Informational answers that were sent.
    pub(crate) interim: Vec<u16>,
    /// The status that was sent; `None` if there was no answer, or not yet.
    pub(crate) answer: Option<u16>,
    /// The header of that answer, names in lower case.
    pub(crate) answered: Headers,
    /// When its head was complete.
    pub(crate) at: Instant,
}

impl Exchange {
    /// The value of a header of the request.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        field(&self.headers, name)
    }

    /// The value of a header of the answer.
    pub(crate) fn answer_header(&self, name: &str) -> Option<&str> {
        field(&self.answered, name)
    }
}

/// How a connection goes on after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It takes another request.
    Stay,
    /// It is closed. If something is unread, the client sees a reset.
    Close,
    /// Nothing more is sent, and what still comes is read for a second: an early answer is not lost.
    Linger,
    /// It is reset at once; answers on their way are lost.
    Reset,
    /// It stays open, and nothing happens on it until the server dies.
    Silence,
}

/// A running double's listener. It stops when this is dropped.
pub(crate) struct Door {
    address: SocketAddr,
    inner: Arc<Inner>,
    running: Mutex<Option<Running>>,
}

struct Running {
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

type Serve = dyn Fn(&mut Visit) -> Way + Send + Sync;

pub(super) struct Inner {
    serve: Box<Serve>,
    pub(super) log: Mutex<Vec<Exchange>>,
    connections: AtomicU64,
    /// A copy of each open connection, by its number: to end it.
    streams: Mutex<HashMap<u64, TcpStream>>,
    /// Connections that are attended to.
    attended: AtomicU64,
}

impl Door {
    /// Opens one on a free port of 127.0.0.1; `serve` answers every request, several at a time.
    pub(crate) fn open(serve: impl Fn(&mut Visit) -> Way + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("a bound socket has an address");
        let inner = Arc::new(Inner {
            serve: Box::new(serve),
            log: Mutex::default(),
            connections: AtomicU64::new(0),
            streams: Mutex::default(),
            attended: AtomicU64::new(0),
        });
        let running = Mutex::new(Some(Running::start(listener, &inner)));
        Self { address, inner, running }
    }

    /// `http://127.0.0.1:PORT` and the path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Every request so far, in order.
    pub(crate) fn log(&self) -> Vec<Exchange> {
        lock(&self.inner.log).clone()
    }

    /// The requests so far by this method.
    pub(crate) fn by(&self, method: &str) -> Vec<Exchange> {
        self.log().into_iter().filter(|exchange| exchange.method == method).collect()
    }

    /// Bytes of bodies that were taken in so far.
    pub(crate) fn received(&self) -> u64 {
        lock(&self.inner.log).iter().map(|exchange| exchange.received).sum()
    }

    /// Connections so far.
    pub(crate) fn connections(&self) -> u64 {
        self.inner.connections.load(Ordering::SeqCst)
    }

    /// It dies, with every connection: from now on, connecting is refused, and what it stores no longer changes.
    pub(crate) fn kill(&self) {
        self.stop();
        let from = Instant::now();
        while self.inner.attended.load(Ordering::SeqCst) > 0 && from.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn stop(&self) {
        let Some(running) = lock(&self.running).take() else { return };
        running.over.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which then drops its listener.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        let _ = running.thread.join();
        for (_, stream) in lock(&self.inner.streams).drain() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// It comes back on its old port.
    pub(crate) fn revive(&self) {
        self.kill();
        let from = Instant::now();
        let listener = loop {
            match TcpListener::bind(self.address) {
                Ok(listener) => break listener,
                Err(e) if e.kind() == io::ErrorKind::AddrInUse && from.elapsed() < Duration::from_secs(10) => {
                    thread::sleep(Duration::from_millis(20));
                }
                Err(e) => panic!("{} cannot be had again: {e}", self.address),
            }
        };
        *lock(&self.running) = Some(Running::start(listener, &self.inner));
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}, {} requests", self.address, lock(&self.inner.log).len())
    }
}

impl Running {
    fn start(listener: TcpListener, inner: &Arc<Inner>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (inner, until) = (Arc::clone(inner), Arc::clone(&over));
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if until.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                inner.admit(stream);
            }
        });
        Self { over, thread }
    }
}

impl Inner {
    fn admit(self: &Arc<Self>, stream: TcpStream) {
        let connection = self.connections.fetch_add(1, Ordering::SeqCst);
        let _ = stream.set_nodelay(true);
        if let Ok(copy) = stream.try_clone() {
            lock(&self.streams).insert(connection, copy);
        }
        let inner = Arc::clone(self);
        inner.attended.fetch_add(1, Ordering::SeqCst);
        thread::spawn(move || {
            let stream = inner.attend(stream, connection);
            // The copy that was kept to end it must not hold it open.
            lock(&inner.streams).remove(&connection);
            drop(stream);
            inner.attended.fetch_sub(1, Ordering::SeqCst);
        });
    }

    /// Requests on one connection, one after the other.
    fn attend(self: &Arc<Self>, stream: TcpStream, connection: u64) -> TcpStream {
        let mut ahead = Vec::new();
        loop {
            let Some(mut visit) = Visit::read(self, &stream, std::mem::take(&mut ahead), connection) else {
                return stream;
            };
            let way = (self.serve)(&mut visit);
            if way == Way::Silence {
                visit.hang();
            }
            ahead = visit.left();
            match way {
                Way::Stay => continue,
                Way::Close | Way::Silence => {}
                Way::Linger => linger(&stream),
                Way::Reset => reset(&stream),
            }
            return stream;
        }
    }

    pub(super) fn end(&self, connection: u64) {
        if let Some(stream) = lock(&self.streams).remove(&connection) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Until the server dies or the client is gone. What is sent stays unread.
    pub(super) fn silence(&self, stream: &TcpStream, connection: u64) {
        while lock(&self.streams).contains_key(&connection) && !matches!(stream.peek(&mut [0]), Ok(0) | Err(_)) {
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The value of a header, by its name in lower case.
pub(super) fn field<'a>(headers: &'a Headers, name: &str) -> Option<&'a str> {
    headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
}

fn linger(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
    let from = Instant::now();
    let mut buffer = vec![0; 64 << 10];
    while from.elapsed() < Duration::from_secs(1) {
        match io::Read::read(&mut &*stream, &mut buffer) {
            Ok(n) if n > 0 => {}
            _ => return,
        }
    }
}

fn reset(stream: &TcpStream) {
    let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}
