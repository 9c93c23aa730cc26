//! Jobs that come while a run goes on, from another thread.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::engine::Job;

/// Where jobs are put for a run that goes on until it is closed. Clones are one.
#[derive(Clone, Debug, Default)]
pub struct Feed(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    queue: Mutex<Queue>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    fed: VecDeque<Fed>,
    is_closed: bool,
}

/// What is said to a run.
#[derive(Debug)]
pub(super) enum Fed {
    /// This is to be done as well.
    Job(Box<Job>),
    /// The download to this path is nobody's business any more: its session ends, what it holds stays.
    LetGo(PathBuf),
}

impl Feed {
    /// Nothing has been said yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more job.
    pub fn add(&self, job: Job) {
        self.say(Fed::Job(Box::new(job)));
    }

    /// The download to this path is to end here and now, as if its run did.
    pub fn let_go(&self, path: PathBuf) {
        self.say(Fed::LetGo(path));
    }

    /// Nothing more comes: the run ends when all is over.
    pub fn close(&self) {
        self.queue().is_closed = true;
        self.0.wake.notify_one();
    }

    fn say(&self, fed: Fed) {
        self.queue().fed.push_back(fed);
        // One permit is kept where nobody waits just now.
        self.0.wake.notify_one();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whatever has been said since it was last asked.
    pub(super) fn take(&self) -> VecDeque<Fed> {
        std::mem::take(&mut self.queue().fed)
    }

    /// May more come, or is there more already?
    pub(super) fn is_open(&self) -> bool {
        let queue = self.queue();
        !queue.is_closed || !queue.fed.is_empty()
    }

    /// Returns once something is said.
    pub(super) async fn said(&self) {
        self.0.wake.notified().await;
    }
}
