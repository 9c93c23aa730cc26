//! A server that does what a test says, byte by byte.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A server on the loopback interface; its threads end with the test's process.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    heads: Mutex<Receiver<String>>,
}

/// One connection to it.
pub(super) struct Peer {
    pub(super) stream: TcpStream,
    /// How many connections came before this one.
    pub(super) number: usize,
    seen: std::sync::mpsc::Sender<String>,
}

impl Server {
    /// Runs `script` for every connection, on a thread of its own.
    pub(super) fn start(script: impl Fn(Peer) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, heads) = channel();
        let script = Arc::new(script);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let Ok(stream) = stream else { return };
                let peer = Peer { stream, number, seen: seen.clone() };
                let script = Arc::clone(&script);
                thread::spawn(move || script(peer));
            }
        });
        Self { address, heads: Mutex::new(heads) }
    }

    /// Gives this answer to the first request of every connection, and closes it.
    pub(super) fn answering(answer: &'static [u8]) -> Self {
        Self::start(move |mut peer| {
            if peer.request().is_some() {
                peer.send(answer);
            }
        })
    }

    pub(super) fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The head of the next request that came, waited for.
    pub(super) fn head(&self) -> String {
        self.heads.lock().unwrap().recv_timeout(Duration::from_secs(20)).expect("a request came")
    }

    /// No request came but those already taken.
    pub(super) fn is_quiet(&self) -> bool {
        self.heads.lock().unwrap().try_recv().is_err()
    }
}

impl Peer {
    /// The head of the next request on this connection; `None` when the client has closed it.
    pub(super) fn request(&mut self) -> Option<String> {
        let head = read_head(&mut self.stream)?;
        let _ = self.seen.send(head.clone());
        Some(head)
    }
    pub(super) fn send(&mut self, bytes: &[u8]) {
        // A client that has gone is no fault of the server's.
        let _ = self.stream.write_all(bytes);
    }
    /// Closes with a reset: bytes of the request are left unread.
    pub(super) fn reset_without_reading(self) {
        thread::sleep(Duration::from_millis(50));
        drop(self.stream);
    }
}

pub(super) fn read_head(stream: &mut impl Read) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}
