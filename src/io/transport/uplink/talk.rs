//! One request on one connection, until the head of its answer: the gate, the stall rule, the patience.

use std::pin::pin;
use std::sync::Arc;

use http::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use tokio::sync::watch;

use super::Outgoing;
use super::body::SendBody;
use super::line::{Braking, Flow, Line};
use crate::core::failure::Failure;
use crate::core::file_xfer::Timeouts;
use crate::core::pacer::{self, StallMeter};
use crate::core::range::Length;
use crate::core::time::{Delay, Mono};
use crate::core::upload::Gate;
use crate::io::clock::Clock;
use crate::io::transport::client::GRACE;
use crate::io::transport::explain;

/// While the body flows, so often is looked how far it is, and told.
const BEAT: Delay = Delay::from_millis(100);
/// After a write has failed, an answer is still waited for so long: it may be in what has come, or on its way.
const AFTER_A_FAILED_WRITE: Delay = Delay::from_secs(2);
/// Informational answers prolong the wait for the final one to this many times the patience.
const MOST_PATIENCES: u64 = 10;

/// A request on its way.
pub(super) struct Talk<'a> {
    clock: &'a Clock,
    line: Arc<Line>,
    told: &'a watch::Sender<Length>,
    /// How long the body is.
    total: u64,
    patience: Delay,
    stall: Timeouts,
    meter: StallMeter,
    /// When the gate opens by itself.
    opens: Mono,
    /// Bytes of the body that the meter knows of; `None` before the body may flow.
    metered: Option<u64>,
    /// When the whole body was out.
    out: Option<Mono>,
    /// When a write failed.
    broken: Option<Mono>,
    /// Informational answers seen, and when the last was.
    interims: u64,
    word: Option<Mono>,
    graced: bool,
}

/// No head came.
#[derive(Debug)]
pub(super) enum Miss {
    /// The request never reached the connection, which had ended.
    Unsent,
    /// It broke.
    Broke(Failure),
}

impl<'a> Talk<'a> {
    /// A request that begins now, on a connection that stands.
    pub(super) fn new(
        request: &Outgoing,
        gate: Gate,
        line: &Arc<Line>,
        clock: &'a Clock,
        told: &'a watch::Sender<Length>,
    ) -> Self {
        let now = clock.now().mono;
        let (flow, wait) = match gate {
            Gate::Open => (Flow::Open, Delay::ZERO),
            Gate::Continue(wait) => (Flow::Gated, wait),
        };
        line.begin(flow);
        let stall = request.stall;
        Self {
            clock,
            line: Arc::clone(line),
            told,
            total: request.body.length().0,
            patience: request.patience,
            stall,
            meter: StallMeter::new(stall.stall_rate, stall.stall),
            opens: now + wait,
            metered: None,
            out: None,
            broken: None,
            interims: 0,
            word: None,
            graced: false,
        }
    }

    /// Waits for the head of the answer. The body stops when it has come.
    pub(super) async fn head(
        &mut self,
        answer: impl Future<Output = Result<Response<Incoming>, TrySendError<Request<SendBody>>>>,
    ) -> Result<Response<Incoming>, Miss> {
        let mut answer = pin!(answer);
        loop {
            let wait = self.look(self.clock.now().mono).map_err(Miss::Broke)?;
            let line = Arc::clone(&self.line);
            tokio::select! {
                // An answer that is here goes before whatever else is over.
                biased;
                outcome = &mut answer => {
                    self.line.stop();
                    return outcome.map_err(|error| self.miss(error));
                }
                () = line.changed.notified() => {}
                () = tokio::time::sleep(wait.as_std()) => {}
            }
        }
    }

    /// Bytes of the body that the connection has taken.
    pub(super) fn sent(&self) -> Length {
        Length(self.line.state().sent().min(self.total))
    }

    /// Informational answers that came.
    pub(super) fn interims(&self) -> u64 {
        self.line.state().interims
    }

    fn miss(&self, mut error: TrySendError<Request<SendBody>>) -> Miss {
        if error.take_message().is_some() {
            return Miss::Unsent;
        }
        let fault = self.line.state().fault.take();
        Miss::Broke(fault.unwrap_or_else(|| explain::in_exchange(&error.into_error())))
    }

    /// What has changed, what is over, and when to look again.
    fn look(&mut self, now: Mono) -> Result<Delay, Failure> {
        let line = Arc::clone(&self.line);
        let mut state = line.state();
        if let Some(failure) = state.fault.take() {
            return Err(failure);
        }
        if let Some(error) = &state.broken {
            let waited = now.since(*self.broken.get_or_insert(now));
            let left = AFTER_A_FAILED_WRITE.saturating_sub(waited);
            return if left > Delay::ZERO { Ok(left) } else { Err(explain::in_exchange(error)) };
        }
        if state.interims != self.interims {
            self.interims = state.interims;
            self.word = Some(now);
        }
        let (sent, flow) = (state.sent().min(self.total), state.flow);
        let braking = state.braking;
        if braking == Braking::Lately {
            state.braking = Braking::Not;
        }
        drop(state);
        self.told.send_if_modified(|told| std::mem::replace(told, Length(sent)) != Length(sent));
        if flow == Flow::Gated && self.total > 0 {
            if now < self.opens {
                return Ok(self.opens.since(now));
            }
            line.open();
        }
        if sent < self.total { self.flowing(now, sent, braking) } else { self.waiting(now) }
    }

    /// The body flows: fast enough?
    fn flowing(&mut self, now: Mono, sent: u64, braking: Braking) -> Result<Delay, Failure> {
        // The meter's time begins with the first byte that it is fed: here it begins with the body.
        let news = self.metered.map_or(1, |known| sent - known);
        self.metered = Some(sent);
        if braking != Braking::Not {
            self.meter.excuse(now);
        }
        match self.meter.feed(now, news) {
            pacer::Flow::Flowing => Ok(BEAT),
            pacer::Flow::Stalled => Err(Failure::Stalled { floor: self.stall.stall_rate, window: self.stall.stall }),
        }
    }

    /// The whole request is out: is it too long ago?
    fn waiting(&mut self, now: Mono) -> Result<Delay, Failure> {
        let out = *self.out.get_or_insert(now);
        let most = out + self.patience.saturating_mul(MOST_PATIENCES);
        let from = self.word.map_or(out, |word| word.max(out));
        let until = (from + self.patience).min(most);
        if now < until {
            return Ok(until.since(now));
        }
        // That a timer has run out proves nothing where our own process stood still.
        if !self.graced {
            self.graced = true;
            return Ok(Delay::from(GRACE));
        }
        Err(Failure::NoAnswer { waited: now.since(out) })
    }
}
