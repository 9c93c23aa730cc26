//! A wire: a task that sends one link's requests and hands on what comes back, as far as it is wanted. It decides nothing.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::core::failure::Failure;
use crate::core::file_xfer::{AnswerHead, Ask, Timeouts};
use crate::core::pacer::BodyMeter;
use crate::core::range::Length;
use crate::core::segments::LinkId;
use crate::core::url::{MirrorUrl, Origin};
use crate::io::driver::Hands;
use crate::io::driver::receive::stalled;
use crate::io::transport::{Body, Brake, Hop, WantDigest};

/// So often is the stall rule looked at while nothing arrives.
const BEAT: Duration = Duration::from_millis(500);

/// What a wire is told.
#[derive(Debug)]
pub(super) enum Order {
    /// Drop the open answer, and send this.
    Ask(Box<Ask>),
    /// Read the open answer's body.
    Read,
}

/// What a wire tells, of which request.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) link: LinkId,
    /// Requests are counted; what is told of an earlier one is late.
    pub(super) request: u32,
    pub(super) news: News,
}

/// What a wire tells.
#[derive(Debug)]
pub(super) enum News {
    /// An answer began; its body waits.
    Head(Box<AnswerHead>),
    /// The next bytes of the body.
    Chunk(Bytes),
    /// The body came to its framed end.
    End,
    /// No answer came, or the body broke off.
    Broke(Failure),
}

/// One link's connection.
pub(super) struct Wire {
    pub(super) id: LinkId,
    pub(super) hands: Hands,
    pub(super) typed: MirrorUrl,
    pub(super) first_origin: Origin,
    pub(super) timeouts: Timeouts,
    pub(super) orders: mpsc::UnboundedReceiver<Order>,
    pub(super) news: mpsc::Sender<Told>,
    /// Requests so far.
    pub(super) request: u32,
    /// So much of the body that is open already must come soon, where others wait for it.
    pub(super) beginning: Option<Length>,
}

/// What interrupts the reading of a body.
enum Next {
    Order(Option<Order>),
    /// The body has come to its end, good or bad.
    Ended,
}

impl Wire {
    /// Works until nobody orders any more; with an answer that is open already, from that on.
    pub(super) async fn run(mut self, mut body: Option<Body>) {
        loop {
            let order = match body.take() {
                Some(open) => match self.read(open).await {
                    Next::Order(order) => order,
                    Next::Ended => self.orders.recv().await,
                },
                None => self.orders.recv().await,
            };
            match order {
                Some(Order::Ask(ask)) => body = self.ask(*ask).await,
                // Nothing is open to be read.
                Some(Order::Read) => {}
                None => return,
            }
        }
    }

    /// Sends a request; the body of its answer, once it is wanted.
    async fn ask(&mut self, ask: Ask) -> Option<Body> {
        let mut ask = ask;
        loop {
            let body = self.send(&ask).await?;
            match self.orders.recv().await? {
                Order::Read => return Some(body),
                Order::Ask(next) => ask = *next,
            }
        }
    }

    async fn send(&mut self, ask: &Ask) -> Option<Body> {
        self.request += 1;
        let hop = Hop { ask, typed: &self.typed, first_origin: &self.first_origin, want: WantDigest::Yes };
        match self.hands.get(&hop, self.timeouts.first_byte).await {
            Ok((head, body)) => {
                self.tell(News::Head(Box::new(head))).await;
                Some(body)
            }
            Err(failure) => {
                self.tell(News::Broke(failure)).await;
                None
            }
        }
    }

    /// Reads to the end, or until something else is ordered.
    async fn read(&mut self, mut body: Body) -> Next {
        let mut stall = BodyMeter::new(self.timeouts.stall_rate, self.timeouts.stall, self.beginning.take());
        let (began, mut came) = (self.hands.clock.now().mono, Length::ZERO);
        loop {
            let chunk = tokio::select! {
                biased;
                order = self.orders.recv() => return Next::Order(order),
                chunk = tokio::time::timeout(BEAT, body.chunk()) => chunk,
            };
            let now = self.hands.clock.now().mono;
            let length = match &chunk {
                Ok(Ok(Some(bytes))) => Length(bytes.len() as u64),
                _ => Length::ZERO,
            };
            let slow = stall.feed(now, length.0).map(stalled);
            came = came + length;
            let news = match chunk {
                Ok(Ok(None)) => News::End,
                Ok(Err(failure)) => News::Broke(failure),
                Ok(Ok(Some(bytes))) => slow.map_or(News::Chunk(bytes), News::Broke),
                // A head without a body does not hold us for ever.
                Err(_beat)
                    if slow.is_none() && came == Length::ZERO && now.since(began) >= self.timeouts.first_byte =>
                {
                    News::Broke(Failure::NoAnswer { waited: now.since(began) })
                }
                Err(_beat) => match slow {
                    Some(failure) => News::Broke(failure),
                    None => continue,
                },
            };
            let last = matches!(news, News::End | News::Broke(_));
            // Both are done, whatever came of the first: what is not told is lost.
            let brakes = [self.pass(length).await, self.tell(news).await];
            if brakes.contains(&Brake::Waited) {
                stall.excuse(self.hands.clock.now().mono);
            }
            if last {
                return Next::Ended;
            }
        }
    }

    async fn pass(&self, length: Length) -> Brake {
        match &self.hands.throttle {
            Some(throttle) if length > Length::ZERO => throttle.pass(length.0).await,
            _ => Brake::Free,
        }
    }

    /// Hands on; whoever reads may be slower than the network.
    async fn tell(&self, news: News) -> Brake {
        let (permit, brake) = match self.news.try_reserve() {
            Ok(permit) => (Some(permit), Brake::Free),
            Err(_) => (self.news.reserve().await.ok(), Brake::Waited),
        };
        if let Some(permit) = permit {
            permit.send(Told { link: self.id, request: self.request, news });
        }
        brake
    }
}
