//! Hashing beside the transfer: the first mebibyte of a session inline, then on a thread of its own.
//!
//! The thread is *fed* the very bytes that were written, through a queue bounded in bytes. When a session resumes and
//! much must be read first, it is *behind*: it reads the file by itself, nothing is queued and nobody waits for it, until
//! it is near enough to be fed. Where it fails, its run is begun anew by whoever asks for the digests, and what made it
//! fail shows there.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use bytes::Bytes;

use crate::core::failure::LocalFault;
use crate::io::part::Slow;
use crate::io::part::run::{Run, Snapshot};

/// Bytes hashed inline before a thread is worth it: 1 MiB.
const INLINE: u64 = 1 << 20;
/// Bytes that may wait for the thread: 16 MiB.
const QUEUE: u64 = 16 << 20;
/// So near to the bytes that come, the thread is fed instead of reading: 4 MiB.
const NEAR: u64 = 4 << 20;

/// The digests of one draft under way.
#[derive(Debug)]
pub(super) struct Hasher {
    home: Home,
    /// Bytes fed inline so far.
    inline: u64,
    slow: Slow,
    /// A snapshot that the thread was asked for, by whom does not wait.
    asked: Option<Receiver<Option<Snapshot>>>,
}

/// Where the run is.
#[derive(Debug)]
enum Home {
    Here(Box<Run>),
    Away(Box<Beside>),
}

/// A snapshot that was asked for.
#[derive(Debug)]
pub(super) enum Mark {
    /// This one, or none.
    Ready(Option<Snapshot>),
    /// The thread sends it when it has come so far.
    Coming(Receiver<Option<Snapshot>>),
}

impl Hasher {
    pub(super) fn new(run: Run, slow: Slow) -> Self {
        Self { home: Home::Here(Box::new(run)), inline: 0, slow, asked: None }
    }

    /// Takes `pieces`, which have just been written at `at`.
    pub(super) fn feed(&mut self, at: u64, pieces: Vec<Bytes>) {
        let length: u64 = pieces.iter().map(|b| b.len() as u64).sum();
        if self.is_long() {
            self.send_away(at);
        }
        match &mut self.home {
            Home::Away(beside) => beside.feed(at, length, pieces),
            Home::Here(run) if run.hashed() == Some(at) => {
                pieces.iter().for_each(|b| run.feed(b));
                self.inline += length;
            }
            // Behind, and not worth a thread yet: read when the digests are asked for.
            Home::Here(_) => self.inline += length,
        }
    }

    /// The bytes up to `to` are in the file, and will not be fed: they came before those that lie in front of them.
    pub(super) fn jump(&mut self, from: u64, to: u64) {
        match &mut self.home {
            Home::Away(beside) => beside.jump(to),
            Home::Here(_) => {
                self.inline += to.saturating_sub(from);
                if self.is_long() {
                    self.send_away(to);
                }
            }
        }
    }

    /// Is a thread worth it?
    fn is_long(&self) -> bool {
        self.inline >= INLINE && self.slow == Slow::Beside
    }

    /// Asks where the digests stand at the end of what was fed.
    pub(super) fn mark(&mut self) -> Mark {
        match &self.home {
            Home::Here(run) => Mark::Ready(run.snapshot()),
            Home::Away(beside) => beside.mark(),
        }
    }

    /// Where the digests stood a moment ago, without waiting; `None` where nobody has said since the last time.
    pub(super) fn latest(&mut self) -> Option<Snapshot> {
        let Some(asked) = self.asked.take() else {
            match self.mark() {
                Mark::Ready(snapshot) => return snapshot,
                Mark::Coming(receiver) => self.asked = Some(receiver),
            }
            return None;
        };
        match asked.try_recv() {
            Ok(snapshot) => snapshot,
            Err(TryRecvError::Empty) => {
                self.asked = Some(asked);
                None
            }
            Err(TryRecvError::Disconnected) => None,
        }
    }

    /// Ends the thread, once it has hashed what it was fed, and gives the run.
    pub(super) fn come_home(&mut self) -> &mut Run {
        if let Home::Away(beside) = &mut self.home {
            self.home = Home::Here(Box::new(beside.join()));
            self.inline = 0;
        }
        match &mut self.home {
            Home::Here(run) => run,
            Home::Away(beside) => &mut beside.spare,
        }
    }

    /// Lets a thread go on, for a file that holds `written` bytes; the run stays here where no thread can be had.
    fn send_away(&mut self, written: u64) {
        let Home::Here(run) = &mut self.home else { return };
        let (spare, stand_in) = (run.afresh(), run.afresh());
        let run = std::mem::replace(run.as_mut(), stand_in);
        self.inline = 0;
        self.home = match Beside::start(run, spare, written) {
            Ok(beside) => Home::Away(Box::new(beside)),
            Err(run) => Home::Here(run),
        };
    }
}

/// The thread, seen from outside. Dropping it ends the thread and waits for that.
#[derive(Debug)]
struct Beside {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<Run, LocalFault>>>,
    /// The run to begin with where the thread failed.
    spare: Run,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<Work>,
    /// Bytes in the queue.
    queued: u64,
    feeding: Feeding,
    /// The file holds so much.
    written: u64,
    /// The thread has taken up everything before this position; `None` while it verifies.
    taken: Option<u64>,
    stop: Stop,
}

#[derive(Debug)]
enum Work {
    Bytes(Bytes),
    /// Read on towards this position.
    ReadTo(u64),
    /// Read up to this position, where bytes follow.
    CatchUp(u64),
    Mark(SyncSender<Option<Snapshot>>),
    End,
}

/// How bytes reach the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feeding {
    Behind,
    Fed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// Works.
    No,
    /// Shall end when the queue is empty.
    Wanted,
    /// Has ended, well or badly; nobody waits for it.
    Done,
}

impl Beside {
    /// Gives the run back where no thread can be had.
    fn start(run: Run, spare: Run, written: u64) -> Result<Self, Box<Run>> {
        let state = State {
            queue: VecDeque::new(),
            queued: 0,
            feeding: Feeding::Behind,
            written,
            taken: run.hashed(),
            stop: Stop::No,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        // Through a slot, so that the run is not lost with a closure that never runs.
        let slot = Arc::new(Mutex::new(Some(run)));
        let (theirs, taken) = (Arc::clone(&shared), Arc::clone(&slot));
        let spawned = std::thread::Builder::new().name("hash".into()).spawn(move || {
            let _done = Done(&theirs);
            match lock(&taken).take() {
                Some(run) => work(&theirs, run),
                None => Err(thread_lost()),
            }
        });
        let left = if spawned.is_err() { lock(&slot).take() } else { None };
        match (spawned, left) {
            (Ok(thread), _) => Ok(Self { shared, thread: Some(thread), spare }),
            (Err(_), left) => Err(Box::new(left.unwrap_or(spare))),
        }
    }

    fn feed(&self, at: u64, length: u64, pieces: Vec<Bytes>) {
        let mut state = self.shared.lock();
        state.written = at + length;
        if state.feeding == Feeding::Behind && state.taken.is_some_and(|t| at.saturating_sub(t) <= NEAR) {
            state.feeding = Feeding::Fed;
            state.queue.push_back(Work::CatchUp(at));
        }
        if state.feeding == Feeding::Fed {
            state = self.wait_for_room(state, length);
        }
        if state.feeding == Feeding::Fed && state.stop == Stop::No {
            state.queued += length;
            state.queue.extend(pieces.into_iter().map(Work::Bytes));
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// From here on the thread reads by itself again, after what it has been fed.
    fn jump(&self, to: u64) {
        let mut state = self.shared.lock();
        state.written = to;
        state.feeding = Feeding::Behind;
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Waits while the queue is full; the thread empties it, or ends.
    fn wait_for_room<'a>(&'a self, mut state: MutexGuard<'a, State>, length: u64) -> MutexGuard<'a, State> {
        while state.queued > 0 && state.queued + length > QUEUE && state.stop != Stop::Done {
            state = self.shared.wait(state);
        }
        state
    }

    fn mark(&self) -> Mark {
        let mut state = self.shared.lock();
        if state.feeding == Feeding::Behind || state.stop == Stop::Done {
            return Mark::Ready(None);
        }
        let (sender, receiver) = sync_channel(1);
        state.queue.push_back(Work::Mark(sender));
        drop(state);
        self.shared.changed.notify_all();
        Mark::Coming(receiver)
    }

    fn join(&mut self) -> Run {
        {
            let mut state = self.shared.lock();
            if state.stop == Stop::No {
                state.stop = Stop::Wanted;
            }
        }
        self.shared.changed.notify_all();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Ok(run))) => run,
            _ => self.spare.afresh(),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // What waits is of no use to anybody.
        self.shared.lock().queue.clear();
        let _ = self.join();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// What the thread does next; waits where there is nothing.
    fn next(&self, run: &Run) -> Work {
        let mut state = self.lock();
        state.taken = run.hashed();
        loop {
            if let Some(work) = state.queue.pop_front() {
                if let Work::Bytes(bytes) = &work {
                    state.queued = state.queued.saturating_sub(bytes.len() as u64);
                    self.changed.notify_all();
                }
                return work;
            }
            if state.stop != Stop::No {
                return Work::End;
            }
            if state.feeding == Feeding::Behind && run.hashed().is_none_or(|at| at < state.written) {
                return Work::ReadTo(state.written);
            }
            state = self.wait(state);
        }
    }
}

/// Tells everybody that the thread has ended, however it did.
struct Done<'a>(&'a Shared);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        // Whoever waits for a mark in the queue is told, too: its sender goes.
        state.queue.clear();
        state.queued = 0;
        state.stop = Stop::Done;
        drop(state);
        self.0.changed.notify_all();
    }
}

fn work(shared: &Shared, mut run: Run) -> Result<Run, LocalFault> {
    loop {
        match shared.next(&run) {
            Work::Bytes(bytes) => run.feed(&bytes),
            // Behind, it looks up after each step: it may be told to stop, or to be fed.
            Work::ReadTo(limit) => run.step(limit)?,
            Work::CatchUp(limit) => run.catch_up(limit, &mut |_| ())?,
            // Nobody may be waiting any more.
            Work::Mark(sender) => _ = sender.try_send(run.snapshot()),
            Work::End => return Ok(run),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn thread_lost() -> LocalFault {
    LocalFault::Io { doing: "hash", path: String::new(), detail: "the thread found nothing to do".into() }
}
