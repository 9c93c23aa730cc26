//! The wish that a run should end: made from a signal handler's thread, seen by the loop at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// A handle with which a run is asked to stop; clones are one.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    requested: AtomicBool,
    wake: Notify,
}

impl Stop {
    /// Not yet asked for.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the run to stop: sessions end, the state is saved, within two seconds.
    pub fn request(&self) {
        self.0.requested.store(true, Ordering::SeqCst);
        // One permit is kept where nobody waits just now, so the wish is not missed.
        self.0.wake.notify_one();
    }

    /// Has it been asked for?
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::SeqCst)
    }

    /// Returns once it has been asked for.
    pub(super) async fn requested(&self) {
        while !self.is_requested() {
            self.0.wake.notified().await;
        }
    }
}
