//! Which connection a request rides on: a new one, or one that was open.
//!
//! A layer around the connector sees every connection that comes about. It finds the request that wanted it through a
//! task-local, because the connector runs inside that request's own future.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

tokio::task_local! {
    static RIDE: Arc<Ride>;
}

/// One request on its way.
#[derive(Debug)]
pub(super) struct Ride {
    /// Hosts and ports that may have to be looked up for it: the proxy's first, where there is one.
    places: Vec<(String, u16)>,
    /// Where a server named its URL: whose file it is of.
    guard: Option<Guard>,
    stage: Mutex<Stage>,
}

/// A request that must not go to a private address, unless the server that the file is of has one too.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    /// The host that is asked.
    pub(super) host: String,
    /// The host of the file's own server.
    pub(super) of: Arc<str>,
}

/// How far its connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No new connection has been begun for it.
    Pooled,
    /// One is being made.
    Connecting,
    /// One was made for it, at this moment.
    Connected(Instant),
}

impl Ride {
    pub(super) fn new(places: Vec<(String, u16)>, guard: Option<Guard>) -> Arc<Self> {
        Arc::new(Self { places, guard, stage: Mutex::new(Stage::Pooled) })
    }
    pub(super) fn stage(&self) -> Stage {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Runs a request so that its connection and its name lookups find it.
    pub(super) async fn along<F: Future>(self: Arc<Self>, request: F) -> F::Output {
        RIDE.scope(self, request).await
    }
    fn set(&self, stage: Stage) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }
}

/// The port for which the running request looks this host up, where that is known.
pub(super) fn port_wanted(host: &str) -> Option<u16> {
    let port = |ride: &Arc<Ride>| ride.places.iter().find(|(name, _)| name == host).map(|(_, port)| *port);
    RIDE.try_with(port).ok().flatten()
}

/// The guard of the running request, where this is the host that it asks.
pub(super) fn guard_of(host: &str) -> Option<Guard> {
    RIDE.try_with(|ride| ride.guard.clone()).ok().flatten().filter(|guard| guard.host == host)
}

/// The layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch;

/// A connector that is watched.
#[derive(Clone, Debug)]
pub(super) struct Watched<S>(S);

impl<S> Layer<S> for Watch {
    type Service = Watched<S>;
    fn layer(&self, inner: S) -> Watched<S> {
        Watched(inner)
    }
}

impl<S, R> Service<R> for Watched<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let ride = RIDE.try_with(Arc::clone).ok();
        if let Some(ride) = &ride {
            ride.set(Stage::Connecting);
        }
        let connecting = self.0.call(request);
        Box::pin(async move {
            let connection = connecting.await;
            if let (Some(ride), true) = (ride, connection.is_ok()) {
                ride.set(Stage::Connected(Instant::now()));
            }
            connection
        })
    }
}
