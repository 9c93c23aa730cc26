//! The shared brake of `--limit-rate` and of the preferences: the pacer with a clock and a queue. It counts what passes, and
//! says when a number of bytes that was set has passed.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::core::pacer::{Grant, Pacer};
use crate::io::clock::Clock;

/// One limit for all who hold a clone of it, on whatever thread: first come, first served.
#[derive(Clone, Debug)]
pub struct Throttle(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Clock,
    pacer: Mutex<Pacer>,
    /// Who waits for bytes holds this, so that a large wish is not overtaken for ever by small ones.
    turn: tokio::sync::Mutex<()>,
    changed: Notify,
    /// A limit that this one is a part of.
    outer: Option<Throttle>,
    passed: AtomicU64,
    /// When so many have passed, whoever waits for that is told.
    mark: AtomicU64,
    marked: Notify,
}

/// Did taking bytes cost time?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brake {
    /// No: nobody waited.
    Free,
    /// Yes: the stall rule should be told ([`crate::core::pacer::StallMeter::excuse`]).
    Waited,
}

impl Throttle {
    /// A limit in bytes per second, or none.
    pub fn new(rate: Option<NonZeroU64>, clock: Clock) -> Self {
        Self::made(rate, clock, None)
    }

    /// One without a limit of its own yet, whose bytes count against another one too.
    pub fn within(outer: Option<Self>, clock: Clock) -> Self {
        Self::made(None, clock, outer)
    }

    fn made(rate: Option<NonZeroU64>, clock: Clock, outer: Option<Self>) -> Self {
        let pacer = Mutex::new(Pacer::new(rate, clock.now().mono));
        Self(Arc::new(Inner {
            clock,
            pacer,
            turn: tokio::sync::Mutex::new(()),
            changed: Notify::new(),
            outer,
            passed: AtomicU64::new(0),
            mark: AtomicU64::new(u64::MAX),
            marked: Notify::new(),
        }))
    }

    /// How many bytes have passed, or wait to.
    pub fn passed(&self) -> u64 {
        self.0.passed.load(Ordering::Relaxed)
    }

    /// Whoever waits in [`Throttle::reached`] is told when so many bytes have passed in all; `None` for never.
    pub fn set_mark(&self, passed: Option<u64>) {
        let mark = passed.unwrap_or(u64::MAX);
        self.0.mark.store(mark, Ordering::Relaxed);
        // What passed meanwhile has not told anybody.
        if self.passed() >= mark {
            self.0.marked.notify_one();
        }
    }

    /// Returns when the mark has been passed; what came while nobody waited is told as well.
    pub async fn reached(&self) {
        self.0.marked.notified().await;
    }

    fn count(&self, bytes: u64) {
        let before = self.0.passed.fetch_add(bytes, Ordering::Relaxed);
        let mark = self.0.mark.load(Ordering::Relaxed);
        if before < mark && before.saturating_add(bytes) >= mark {
            self.0.marked.notify_one();
        }
    }

    /// Another limit, which holds at once, for those who wait as well.
    pub fn set_rate(&self, rate: Option<NonZeroU64>) {
        let now = self.0.clock.now().mono;
        self.with_pacer(|pacer| pacer.set_rate(now, rate));
        self.0.changed.notify_waiters();
    }

    /// How many bytes can pass at once on top of the rate; `u64::MAX` without a limit.
    pub fn burst(&self) -> u64 {
        let outer = self.0.outer.as_ref().map_or(u64::MAX, Self::burst);
        self.with_pacer(|pacer| pacer.burst()).min(outer)
    }

    /// Waits until `bytes` may pass. Call it with what came, before asking for more. Dropping the future takes nothing.
    pub async fn pass(&self, bytes: u64) -> Brake {
        self.count(bytes);
        let own = self.pass_here(bytes).await;
        let outer = match &self.0.outer {
            Some(outer) => outer.pass_here(bytes).await,
            None => Brake::Free,
        };
        if own == Brake::Waited { own } else { outer }
    }

    async fn pass_here(&self, bytes: u64) -> Brake {
        if self.with_pacer(|pacer| pacer.rate().is_none()) {
            return Brake::Free;
        }
        let (_turn, mut brake) = match self.0.turn.try_lock() {
            Ok(turn) => (turn, Brake::Free),
            Err(_) => (self.0.turn.lock().await, Brake::Waited),
        };
        loop {
            let changed = self.0.changed.notified();
            let now = self.0.clock.now().mono;
            let Grant::Wait(delay) = self.with_pacer(|pacer| pacer.take(now, bytes)) else { return brake };
            brake = Brake::Waited;
            tokio::select! {
                () = tokio::time::sleep(delay.as_std()) => {}
                () = changed => {}
            }
        }
    }

    fn with_pacer<T>(&self, look: impl FnOnce(&mut Pacer) -> T) -> T {
        look(&mut self.0.pacer.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::Delay;

    #[tokio::test]
    async fn bytes_pass_at_the_rate_and_not_before() {
        let clock = Clock::system();
        let throttle = Throttle::new(NonZeroU64::new(100_000), clock.clone());
        let start = clock.now().mono;
        assert_eq!(throttle.pass(10_000).await, Brake::Free);
        assert_eq!(throttle.pass(10_000).await, Brake::Waited);
        assert!(clock.now().mono.since(start) >= Delay::from_millis(95), "10 kB at 100 kB/s after a burst of as much");
    }

    #[tokio::test]
    async fn what_passes_one_passes_the_other_and_is_counted() {
        let clock = Clock::system();
        let outer = Throttle::new(NonZeroU64::new(100_000), clock.clone());
        let up = Throttle::within(Some(outer.clone()), clock.clone());
        let down = Throttle::within(Some(outer), clock);
        down.set_mark(Some(20_000));
        assert_eq!((up.pass(10_000).await, up.burst()), (Brake::Free, 10_000));
        assert_eq!(down.pass(10_000).await, Brake::Waited, "both have one limit");
        assert!(tokio::time::timeout(std::time::Duration::from_millis(1), down.reached()).await.is_err());
        down.pass(10_000).await;
        down.reached().await;
        assert_eq!((up.passed(), down.passed()), (10_000, 20_000));
    }

    #[tokio::test]
    async fn lifting_the_limit_frees_who_waits() {
        let throttle = Throttle::new(NonZeroU64::new(1), Clock::system());
        assert_eq!(throttle.pass(1 << 20).await, Brake::Free, "the burst lets one large piece through");
        let waiting = {
            let throttle = throttle.clone();
            tokio::spawn(async move { throttle.pass(1).await })
        };
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        assert!(!waiting.is_finished(), "a million seconds of debt are not over yet");
        throttle.set_rate(None);
        assert_eq!(waiting.await.unwrap(), Brake::Waited);
    }
}
