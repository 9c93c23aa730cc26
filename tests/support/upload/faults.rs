//! Faults: what a double does wrong, from now on or once.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What stands from now on, and what comes once before that. Each double says which of its requests take one.
#[derive(Debug)]
pub(crate) struct Faults<F> {
    standing: Mutex<F>,
    once: Mutex<VecDeque<F>>,
}

impl<F: Clone> Faults<F> {
    pub(crate) fn new(standing: F) -> Self {
        Self { standing: Mutex::new(standing), once: Mutex::default() }
    }

    /// From now on it does this, and what was to come once is forgotten.
    pub(crate) fn now(&self, fault: F) {
        lock(&self.once).clear();
        *lock(&self.standing) = fault;
    }

    /// The next request that carries data meets this, once; several are met in the order in which they were said.
    pub(crate) fn next(&self, fault: F) {
        lock(&self.once).push_back(fault);
    }

    /// What a request meets that carries data.
    pub(crate) fn take(&self) -> F {
        let once = lock(&self.once).pop_front();
        once.unwrap_or_else(|| self.standing())
    }

    /// What one meets that carries none.
    pub(crate) fn standing(&self) -> F {
        lock(&self.standing).clone()
    }
}

/// The value behind a lock, whoever panicked while holding it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
