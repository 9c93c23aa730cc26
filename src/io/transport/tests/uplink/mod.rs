//! Requests with bodies, against raw servers.

mod answers;
mod early;
mod files;
mod gates;
mod patience;
mod requests;
mod reuse;
mod ways;

use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use bytes::Bytes;

use super::server::{Peer, Server};
use super::*;
use crate::core::failure::{BadAnswer, Cut, LocalFault};
use crate::core::file_xfer::Timeouts;
use crate::core::range::{ByteRange, Length, Offset};
use crate::core::upload::{Answer as Final, Gate, Interim, Keep, Method};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const CREATED: &[u8] = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n";
/// More than all the buffers between two sockets on one machine hold.
const LARGE: usize = 32 << 20;

const TIMEOUTS: Timeouts = Timeouts { first_byte: PATIENT, stall: PATIENT, stall_rate: 10 };

fn uplink() -> Uplink {
    client().uplink()
}

fn outgoing(method: Method, at: &str, body: OutBody) -> Outgoing {
    Outgoing {
        method,
        url: url(at),
        headers: HeaderMap::new(),
        body,
        gate: Gate::Open,
        keep: Keep::Small,
        patience: PATIENT,
        stall: TIMEOUTS,
    }
}

fn bytes(text: &'static str) -> OutBody {
    OutBody::Bytes(Bytes::from_static(text.as_bytes()))
}

/// Bytes of which no two stretches are alike.
fn pattern(length: usize) -> Vec<u8> {
    (0..length as u64 / 8 + 1)
        .flat_map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes())
        .take(length)
        .collect()
}

/// An open file that holds this, and is nowhere in the file system any more.
fn file(content: &[u8]) -> Arc<File> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    Arc::new(file)
}

fn source(before: &'static [u8], file: &Arc<File>, start: usize, end: usize) -> OutBody {
    let range = ByteRange::new(Offset(start as u64), Offset(end as u64));
    OutBody::Source { before: Bytes::from_static(before), file: Arc::clone(file), range }
}

/// What is heard until the end; `Sent` is left out.
async fn listen(mut exchange: Exchange) -> (Vec<Interim>, Heard) {
    let mut interims = Vec::new();
    loop {
        match exchange.next().await {
            Heard::Interim(interim) => interims.push(interim),
            Heard::Sent(_) => {}
            end => return (interims, end),
        }
    }
}

async fn send(uplink: &Uplink, request: Outgoing) -> Heard {
    listen(uplink.send(request, None)).await.1
}

#[track_caller]
fn answer(heard: Heard) -> Final {
    match heard {
        Heard::Answer(answer) => *answer,
        other => panic!("an answer was expected, not {other:?}"),
    }
}

#[track_caller]
fn failure(heard: Heard) -> Failure {
    match heard {
        Heard::Broke { failure, .. } => failure,
        other => panic!("a break was expected, not {other:?}"),
    }
}

/// A place for a server to leave what it saw.
fn drop_box<T>() -> (Sender<T>, Receiver<T>) {
    channel()
}

impl Peer {
    fn body(&mut self, length: usize) -> Vec<u8> {
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        body
    }

    /// Whatever comes until the client closes, or nothing has come for so long.
    fn rest(&mut self, quiet: std::time::Duration) -> Vec<u8> {
        self.stream.set_read_timeout(Some(quiet)).unwrap();
        let mut all = Vec::new();
        let mut piece = [0; 1 << 16];
        while let Ok(count @ 1..) = self.stream.read(&mut piece) {
            all.extend_from_slice(&piece[..count]);
        }
        all
    }
}
