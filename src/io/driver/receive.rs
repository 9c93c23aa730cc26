//! Reading a body: compare what is held, append the rest, watch the rate, tell how far it is.

use std::time::Duration;

use bytes::Bytes;

use crate::core::failure::{Cut, Failure, LocalFault};
use crate::core::file_xfer::{Company, Event, OVERLAP, Receive};
use crate::core::pacer::{BodyMeter, TooSlow};
use crate::core::range::{Length, Offset};
use crate::core::time::{Delay, Mono};
use crate::io::driver::Tell;
use crate::io::driver::content::BodyEnd;
use crate::io::driver::session::Session;
use crate::io::part::Compare;
use crate::io::transport::Brake;

/// How often the part file is written out and the stall rule looked at while nothing arrives.
const BEAT: Duration = Duration::from_millis(250);

/// Progress is told at most so often.
const TELL_EVERY: Delay = Delay::from_millis(100);

/// With less of an answer no other mirror can show that it has the same file.
pub(super) const LEAST_BEGINNING: Length = Length(4 << 10);

/// One reading of a body.
struct Reading {
    plan: Receive,
    at: Offset,
    stall: BodyMeter,
    told: Mono,
    /// When this reading began, and what had been received then: a head without a body does not hold us for ever.
    began: Mono,
    before: Length,
}

/// What the wait for a chunk brought.
enum Arrived {
    Chunk(Bytes),
    End,
    Broken(Failure),
}

impl Session {
    /// Reads the open body until something happens that the machine must hear of.
    pub(super) async fn receive(&mut self, plan: Receive) -> Result<Event, LocalFault> {
        let now = self.hands.clock.now().mono;
        let timeouts = self.orders.timeouts;
        let stall = BodyMeter::new(timeouts.stall_rate, timeouts.stall, self.beginning(plan));
        let mut reading = Reading { plan, at: plan.at, stall, told: now, began: now, before: self.received };
        loop {
            if self.has_joined(&reading) {
                return Ok(Event::Joined);
            }
            if plan.end.is_some_and(|end| reading.at >= end) {
                return self.ended(&reading, BodyEnd::Open);
            }
            match self.arrive(&mut reading).await? {
                Arrived::Chunk(chunk) => {
                    if let Some(event) = self.take(&mut reading, chunk)? {
                        return Ok(event);
                    }
                }
                Arrived::End => return self.ended(&reading, BodyEnd::Framed),
                Arrived::Broken(failure) => {
                    self.tell_progress(&reading)?;
                    return Ok(Event::Broke(reading.at, failure));
                }
            }
        }
    }

    /// The comparison is through, and the machine has not heard of it yet.
    fn has_joined(&mut self, reading: &Reading) -> bool {
        let Some(open) = &mut self.open else { return false };
        let through = reading.at == reading.plan.compare_until && reading.at > Offset::ZERO;
        let news = through && !open.joined;
        open.joined |= through;
        news
    }

    fn ended(&mut self, reading: &Reading, end: BodyEnd) -> Result<Event, LocalFault> {
        if let Some(failure) = self.content_fault(end) {
            return self.take_back(reading, failure);
        }
        self.tell_progress(reading)?;
        Ok(match reading.plan.end {
            Some(end) if reading.at < end => {
                Event::Broke(reading.at, Failure::Cut(Cut::Broken { detail: "the body ended early".to_owned() }))
            }
            _ => Event::Ended(reading.at),
        })
    }

    fn content_fault(&self, end: BodyEnd) -> Option<Failure> {
        self.open.as_ref()?.content.as_ref()?.fault(end)
    }

    /// The bytes of this answer are wrong: what it appended goes.
    fn take_back(&mut self, reading: &Reading, failure: Failure) -> Result<Event, LocalFault> {
        let from = reading.at.min(reading.plan.compare_until);
        if let Some(store) = self.store.as_mut().filter(|_| reading.at > from) {
            store.cut(reading.plan.place, from.as_length())?;
        }
        Ok(Event::Broke(from, failure))
    }

    /// The next chunk. The part file is written out and the stall rule looked at meanwhile.
    async fn arrive(&mut self, reading: &mut Reading) -> Result<Arrived, LocalFault> {
        if let Some(chunk) = self.open.as_mut().and_then(|open| open.pending.take()) {
            return Ok(Arrived::Chunk(chunk));
        }
        loop {
            let Some(open) = &mut self.open else { return Ok(Arrived::End) };
            let waited = tokio::time::timeout(BEAT, open.body.chunk()).await;
            let now = self.hands.clock.now().mono;
            match waited {
                Ok(Ok(Some(chunk))) => {
                    let length = Length(chunk.len() as u64);
                    self.received = self.received + length;
                    if let Some(content) = &mut open.content {
                        content.feed(&chunk);
                    }
                    if let Some(slow) = reading.stall.feed(now, length.0) {
                        return Ok(Arrived::Broken(stalled(slow)));
                    }
                    if let Some(throttle) = &self.hands.throttle
                        && throttle.pass(length.0).await == Brake::Waited
                    {
                        reading.stall.excuse(self.hands.clock.now().mono);
                    }
                    return Ok(Arrived::Chunk(chunk));
                }
                Ok(Ok(None)) => return Ok(Arrived::End),
                Ok(Err(failure)) => return Ok(Arrived::Broken(failure)),
                Err(_beat) => {
                    self.tell_progress(reading)?;
                    if let Some(store) = &mut self.store {
                        store.tick(now)?;
                    }
                    if let Some(slow) = reading.stall.feed(now, 0) {
                        return Ok(Arrived::Broken(stalled(slow)));
                    }
                    let waited = now.since(reading.began);
                    if self.received == reading.before && waited >= self.orders.timeouts.first_byte {
                        return Ok(Arrived::Broken(Failure::NoAnswer { waited }));
                    }
                }
            }
        }
    }

    /// What must come soon where others could be asked instead: what is compared brings nothing, however long it takes.
    fn beginning(&self, plan: Receive) -> Option<Length> {
        let compared = plan.compare_until.as_length().saturating_sub(plan.at.as_length());
        let needed = if compared > Length::ZERO { compared.min(OVERLAP) } else { LEAST_BEGINNING };
        (self.orders.unasked == Company::Others).then_some(needed)
    }

    /// Uses a chunk: compares, then appends. An event where the machine must decide.
    fn take(&mut self, reading: &mut Reading, mut chunk: Bytes) -> Result<Option<Event>, LocalFault> {
        if let Some(end) = reading.plan.end {
            let room = usize::try_from((end - reading.at).0).unwrap_or(usize::MAX);
            chunk.truncate(room);
        }
        let compared = (reading.plan.compare_until - reading.at).0;
        if compared > 0 {
            let part = chunk.split_to(chunk.len().min(usize::try_from(compared).unwrap_or(usize::MAX)));
            if let Some(event) = self.compare(reading, part, &chunk)? {
                return Ok(Some(event));
            }
            self.keep(chunk);
            return Ok(None);
        }
        let end = reading.at + Length(chunk.len() as u64);
        if let Some(limit) = self.orders.max_filesize.filter(|limit| end.as_length() > *limit) {
            let failure = Failure::TooLarge { size: end.as_length(), limit };
            return Ok(Some(Event::Broke(reading.at, failure)));
        }
        if let Some(expected) = self.orders.expected.filter(|expected| end.as_length() > *expected) {
            let failure = Failure::OtherSize { size: end.as_length(), expected };
            return Ok(Some(Event::Broke(reading.at, failure)));
        }
        self.append(reading, chunk)?;
        Ok(None)
    }

    fn compare(&mut self, reading: &mut Reading, part: Bytes, rest: &Bytes) -> Result<Option<Event>, LocalFault> {
        let Some(store) = &mut self.store else { return Ok(None) };
        match store.compare(reading.plan.place, reading.at, &part)? {
            Compare::Equal => {
                reading.at = reading.at + Length(part.len() as u64);
                Ok(None)
            }
            Compare::Differs { at } => {
                let equal = usize::try_from((at - reading.at).0).unwrap_or(usize::MAX).min(part.len());
                let differing = [&part[equal..], rest].concat();
                self.keep(Bytes::from(differing));
                if let Some(open) = &mut self.open {
                    open.joined = true;
                }
                Ok(Some(Event::Differs(at)))
            }
        }
    }

    fn append(&mut self, reading: &mut Reading, chunk: Bytes) -> Result<(), LocalFault> {
        let length = Length(chunk.len() as u64);
        let now = self.hands.clock.now().mono;
        if let Some(store) = &mut self.store {
            store.write(reading.plan.place, reading.at, chunk)?;
            store.tick(now)?;
        }
        reading.at = reading.at + length;
        if now.since(reading.told) >= TELL_EVERY {
            reading.told = now;
            self.tell_progress(reading)?;
        }
        Ok(())
    }

    /// What is left of a chunk comes first next time.
    fn keep(&mut self, rest: Bytes) {
        if let Some(open) = self.open.as_mut().filter(|_| !rest.is_empty()) {
            open.pending = Some(rest);
        }
    }

    /// Tells how far it is, if that is news: so the silence that follows is counted from the last byte.
    fn tell_progress(&mut self, reading: &Reading) -> Result<(), LocalFault> {
        let Some(store) = &mut self.store else { return Ok(()) };
        let held = store.held(reading.plan.place);
        if self.told_received == self.received {
            return Ok(());
        }
        self.told_received = self.received;
        (self.tell)(Tell::Progress { held, received: self.received });
        Ok(())
    }
}

pub(super) fn stalled(TooSlow { floor, window }: TooSlow) -> Failure {
    Failure::Stalled { floor, window }
}
