//! Word to a run that goes on: other preferences. Left from a signal handler's thread, taken by the loop at once.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::core::prefs::Preferences;

/// A handle with which a run is steered; clones are one.
#[derive(Clone, Debug, Default)]
pub struct Steer(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    preferences: Mutex<Option<Arc<Preferences>>>,
    wake: Notify,
}

impl Steer {
    /// Nobody has said anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// These preferences hold from now on, for what runs as well.
    pub fn prefer(&self, preferences: Preferences) {
        *self.0.preferences.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(preferences));
        // One permit is kept where nobody waits just now, so that nothing is missed.
        self.0.wake.notify_one();
    }

    /// What was said since it was last taken.
    pub(super) fn take(&self) -> Option<Arc<Preferences>> {
        self.0.preferences.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns when something was said.
    pub(super) async fn said(&self) {
        self.0.wake.notified().await;
    }
}
