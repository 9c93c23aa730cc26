//! Lanes: threads of our own, each with a single-threaded runtime, on which transfers run.
//!
//! A transfer stays on its lane: its chunks never cross threads, and a lane that a slow disk holds up delays nobody on
//! another lane. Each lane owns one local value, made there when the lane starts (a client with its own connections,
//! because a connection belongs to the runtime that drives it).

#[cfg(test)]
mod tests;

use std::any::Any;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinError, LocalSet};

use crate::core::time::Delay;
use crate::io::clock::Clock;

/// What remains of a deadline for threads that only have to end.
const LAST_MOMENT: Duration = Duration::from_millis(100);

/// Up to so many lanes; each is started when it is first needed. `L` is what a lane owns.
pub struct Lanes<L: 'static> {
    slots: Vec<Slot<L>>,
    make_local: Arc<dyn Fn() -> L + Send + Sync>,
    /// No thread at all: tasks run where they are started.
    here: Option<Here<L>>,
}

/// The one lane of a simulation: the thread that starts tasks.
struct Here<L> {
    local: Rc<L>,
    load: Arc<Load>,
}

/// A task on a lane. As a future it tells how the task ended; dropping it changes nothing for the task.
#[derive(Debug)]
pub struct Task(oneshot::Receiver<TaskEnd>);

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// It returned.
    Done,
    /// It panicked, with this message: a defect of ours. The lane goes on.
    Panicked(String),
    /// Its lane was shut down before it ended.
    Dropped,
}

/// A task cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no thread for transfers can be started: {detail}")]
pub struct LaneFault {
    /// What the system said.
    pub detail: String,
}

/// How a shutdown ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Every task returned by itself.
    Clean,
    /// So many tasks were dropped at the deadline, or sit on a thread that did not come back.
    Late(usize),
}

struct Slot<L> {
    load: Arc<Load>,
    lane: Mutex<Option<Lane<L>>>,
}

struct Lane<L> {
    orders: mpsc::UnboundedSender<Order<L>>,
    /// How many tasks were dropped, when the thread is about to end.
    ended: std::sync::mpsc::Receiver<usize>,
}

/// The tasks of one lane, those that wait to be started included.
#[derive(Default)]
struct Load {
    tasks: AtomicUsize,
    fewer: Notify,
}

/// One task, for as long as it exists.
struct Counted(Arc<Load>);

enum Order<L> {
    Run(Box<dyn FnOnce(Rc<L>) + Send>),
    /// Finish what runs, within this time.
    Finish(Delay),
}

impl<L: 'static> Lanes<L> {
    /// At most `count` lanes. `make_local` makes what a lane owns, on the lane's thread.
    pub fn new(count: NonZeroUsize, make_local: impl Fn() -> L + Send + Sync + 'static) -> Self {
        Self {
            slots: (0..count.get()).map(|_| Slot { load: Arc::default(), lane: Mutex::new(None) }).collect(),
            make_local: Arc::new(make_local),
            here: None,
        }
    }

    /// No threads: tasks run on the local set in which they are started, one after the other, as a simulation needs it.
    pub fn here(make_local: impl Fn() -> L + Send + Sync + 'static) -> Self {
        let here = Here { local: Rc::new(make_local()), load: Arc::default() };
        Self { slots: Vec::new(), make_local: Arc::new(make_local), here: Some(here) }
    }

    /// Starts a task on the lane that has the fewest. `make` is called there, with what the lane owns, and the task
    /// need not be able to change threads.
    ///
    /// # Errors
    /// [`LaneFault`] where the system gives no thread or no event queue.
    pub fn spawn<F>(&self, make: impl FnOnce(Rc<L>) -> F + Send + 'static) -> Result<Task, LaneFault>
    where
        F: Future<Output = ()> + 'static,
    {
        let (end, task) = oneshot::channel();
        let slot = self.slots.iter().min_by_key(|slot| slot.load.count());
        let load = slot.map(|slot| &slot.load).or(self.here.as_ref().map(|here| &here.load));
        let Some(counted) = load.map(Counted::new) else { return Ok(Task(task)) };
        let run = move |local: Rc<L>| {
            // A panic of `make` is caught like one of the task.
            let body = tokio::task::spawn_local(async move { make(local).await });
            tokio::task::spawn_local(async move {
                let how = body.await.map_or_else(ending_of, |()| TaskEnd::Done);
                drop(counted);
                // Nobody may be waiting.
                let _ = end.send(how);
            });
        };
        match (&self.here, slot) {
            (Some(here), _) => run(Rc::clone(&here.local)),
            (None, Some(slot)) => slot.order(Order::Run(Box::new(run)), &self.make_local)?,
            (None, None) => {}
        }
        Ok(Task(task))
    }

    /// Tasks that run, or wait to be started.
    pub fn running(&self) -> usize {
        let here = self.here.as_ref().map_or(0, |here| here.load.count());
        here + self.slots.iter().map(|slot| slot.load.count()).sum::<usize>()
    }

    /// Lets the tasks end, drops those that have not when `patience` is over, and joins the threads. Tell the tasks to
    /// end before. It blocks, so it must not be called on a lane.
    pub fn shutdown(self, patience: Delay) -> Shutdown {
        let clock = Clock::system();
        let deadline = clock.now().mono + patience;
        // All are told before the first is waited for.
        let started: Vec<_> = self.slots.iter().filter(|slot| slot.finish(patience)).collect();
        let left = || deadline.since(clock.now().mono).as_std() + LAST_MOMENT;
        match started.into_iter().map(|slot| slot.dropped_within(left())).sum() {
            0 => Shutdown::Clean,
            late => Shutdown::Late(late),
        }
    }
}

impl<L: 'static> Slot<L> {
    fn lane(&self) -> MutexGuard<'_, Option<Lane<L>>> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an order to the lane, which is started where there is none.
    fn order(&self, order: Order<L>, make_local: &Arc<dyn Fn() -> L + Send + Sync>) -> Result<(), LaneFault> {
        let mut lane = self.lane();
        let lane = match &mut *lane {
            Some(lane) => lane,
            none => none.insert(Lane::start(Arc::clone(&self.load), Arc::clone(make_local))?),
        };
        // A lane that is gone drops the order, and its task tells so.
        let _ = lane.orders.send(order);
        Ok(())
    }

    /// Tells the lane to finish; false where there is none.
    fn finish(&self, patience: Delay) -> bool {
        self.lane().as_ref().is_some_and(|lane| lane.orders.send(Order::Finish(patience)).is_ok())
    }

    /// How many tasks the lane dropped; those of a thread that does not come back count as well.
    fn dropped_within(&self, limit: Duration) -> usize {
        let ended = self.lane().as_ref().map(|lane| lane.ended.recv_timeout(limit));
        match ended {
            Some(Ok(dropped)) => dropped,
            Some(Err(RecvTimeoutError::Timeout)) => self.load.count().max(1),
            Some(Err(RecvTimeoutError::Disconnected)) | None => 0,
        }
    }
}

impl<L: 'static> Lane<L> {
    fn start(load: Arc<Load>, make_local: Arc<dyn Fn() -> L + Send + Sync>) -> Result<Self, LaneFault> {
        let fault = |e: std::io::Error| LaneFault { detail: e.to_string() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(fault)?;
        let (orders, inbox) = mpsc::unbounded_channel();
        let (end, ended) = std::sync::mpsc::channel();
        let body = move || {
            let tasks = LocalSet::new();
            let dropped = tasks.block_on(&runtime, serve(inbox, Rc::new(make_local()), load));
            drop(tasks);
            // A name lookup may hang in the system for long; nothing is lost by leaving it.
            runtime.shutdown_background();
            let _ = end.send(dropped);
        };
        thread::Builder::new().name("lane".to_owned()).spawn(body).map_err(fault)?;
        Ok(Self { orders, ended })
    }
}

/// The life of a lane; tells how many tasks are left at its end.
async fn serve<L>(mut inbox: mpsc::UnboundedReceiver<Order<L>>, local: Rc<L>, load: Arc<Load>) -> usize {
    while let Some(order) = inbox.recv().await {
        match order {
            Order::Run(run) => run(Rc::clone(&local)),
            Order::Finish(patience) => {
                // Out of time: who is left is dropped.
                let _ = tokio::time::timeout(patience.as_std(), load.none_left()).await;
                return load.count();
            }
        }
    }
    load.count()
}

impl Load {
    fn count(&self) -> usize {
        self.tasks.load(Ordering::Acquire)
    }
    async fn none_left(&self) {
        while self.count() > 0 {
            self.fewer.notified().await;
        }
    }
}

impl Counted {
    fn new(load: &Arc<Load>) -> Self {
        load.tasks.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(load))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.tasks.fetch_sub(1, Ordering::AcqRel);
        self.0.fewer.notify_one();
    }
}

impl Future for Task {
    type Output = TaskEnd;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<TaskEnd> {
        Pin::new(&mut self.0).poll(cx).map(|end| end.unwrap_or(TaskEnd::Dropped))
    }
}

impl Task {
    /// Waits on a thread that has no runtime.
    pub fn wait(self) -> TaskEnd {
        self.0.blocking_recv().unwrap_or(TaskEnd::Dropped)
    }
}

fn ending_of(error: JoinError) -> TaskEnd {
    match error.try_into_panic() {
        Ok(payload) => TaskEnd::Panicked(message_of(&*payload)),
        Err(_) => TaskEnd::Dropped,
    }
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_owned()
}

impl<L> std::fmt::Debug for Lanes<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lanes").field("at_most", &self.slots.len()).finish_non_exhaustive()
    }
}
