//! Listening: GUI RPC and the metrics, on ports of this machine.
//!
//! One thread of its own serves all connections, so that none of them holds up a transfer or the loop. What only the loop can
//! answer goes there as an [`Ask`]; each connection has at most one under way. Connections are few, requests are short, and
//! everything has a deadline.

mod http;
mod rpc;
mod seats;
mod stream;

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::core::failure::LocalFault;
use crate::core::metrics::Reach;
use crate::core::printable::plain_error;
use crate::core::rpc::{Reply, Request};
use crate::io::listen::seats::{Seat, Seats};

/// Connections of each kind at a time; for a further one, another has to go.
const MOST_CONNECTIONS: usize = 16;
/// After a connection could not be taken (too many descriptors), so long passes before the next try.
const AFTER_A_FAULT: Duration = Duration::from_millis(200);

/// Where to listen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doors {
    /// For GUI RPC; an address that only this machine reaches.
    pub gui_rpc: Option<SocketAddr>,
    /// For the metrics.
    pub metrics: Option<SocketAddr>,
}

/// What a connection wants to know, and how it is told.
#[derive(Debug)]
pub enum Ask {
    /// A request that was admitted.
    Rpc(Request, oneshot::Sender<Reply>),
    /// The metrics, as text.
    Metrics(oneshot::Sender<String>),
}

/// The thread that serves; it ends when this is dropped.
#[derive(Debug)]
pub struct Listening {
    /// Where, with the port that the system gave where none was asked for.
    pub doors: Doors,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

/// What serves a kind of connection.
#[derive(Clone, Debug)]
enum Kind {
    /// GUI RPC, with its password.
    Rpc(Arc<str>),
    /// The metrics.
    Metrics(Reach),
}

impl Listening {
    /// Listens from now on. Connections are served as soon as somebody reads the asks.
    ///
    /// # Errors
    /// What the system said of an address, or that it gives no thread.
    pub fn begin(doors: Doors, password: &str) -> Result<(Self, mpsc::Receiver<Ask>), LocalFault> {
        let (asks, asked) = mpsc::channel(2 * MOST_CONNECTIONS);
        let rpc = doors.gui_rpc.map(|at| open(at, Kind::Rpc(password.into()))).transpose()?;
        let metrics = doors.metrics.map(|at| open(at, Kind::Metrics(reach_of(at)))).transpose()?;
        let at = |door: &Option<Door>| door.as_ref().map(|door| door.at);
        let doors = Doors { gui_rpc: at(&rpc), metrics: at(&metrics) };
        let stop = CancellationToken::new();
        let (until, served) = (stop.clone(), [rpc, metrics].into_iter().flatten().collect::<Vec<_>>());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| fault("serve", &"connections", &e))?;
        let serve = move || runtime.block_on(serve(served, asks, until));
        let thread = std::thread::Builder::new().name("listen".into()).spawn(serve);
        let thread = Some(thread.map_err(|e| fault("serve", &"connections", &e))?);
        Ok((Self { doors, stop, thread }, asked))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.cancel();
        // It waits for nothing but this.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A port on which somebody listens.
struct Door {
    listener: StdListener,
    at: SocketAddr,
    kind: Kind,
}

fn open(at: SocketAddr, kind: Kind) -> Result<Door, LocalFault> {
    let listener = StdListener::bind(at).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok((listener.local_addr()?, listener))
    });
    let (at, listener) = listener.map_err(|e| fault("listen on", &at, &e))?;
    Ok(Door { listener, at, kind })
}

fn reach_of(at: SocketAddr) -> Reach {
    if at.ip().is_loopback() { Reach::ThisMachine } else { Reach::Network }
}

fn fault(doing: &'static str, what: &dyn std::fmt::Display, error: &std::io::Error) -> LocalFault {
    LocalFault::Io { doing, path: what.to_string(), detail: plain_error(error) }
}

async fn serve(doors: Vec<Door>, asks: mpsc::Sender<Ask>, until: CancellationToken) {
    for door in doors {
        tokio::spawn(take_all(door, asks.clone()));
    }
    // The connections end with the runtime. A reply that is being written has a moment.
    until.cancelled().await;
    tokio::time::sleep(Duration::from_millis(20)).await;
}

async fn take_all(door: Door, asks: mpsc::Sender<Ask>) {
    let Ok(listener) = TcpListener::from_std(door.listener) else { return };
    let seats = Seats::new(MOST_CONNECTIONS);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(attend(stream, door.kind.clone(), asks.clone(), seats.take()))),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(AFTER_A_FAULT).await;
            }
        }
    }
}

async fn attend(stream: TcpStream, kind: Kind, asks: mpsc::Sender<Ask>, seat: Seat) {
    let served = async {
        match kind {
            Kind::Rpc(password) => rpc::attend(stream, &password, &asks, &seat).await,
            Kind::Metrics(reach) => http::attend(stream, reach, &asks, &seat).await,
        }
    };
    let ended = tokio::select! {
        ended = served => ended,
        () = seat.is_needed() => Err(std::io::Error::other("its place was needed")),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}
