//! The final answer: its head, and its body, read to the end as far as that is worth it.

use bytes::Buf;
use http::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::Outgoing;
use crate::core::digest::Expected;
use crate::core::failure::{BadAnswer, Failure};
use crate::core::file_xfer::{Framing, Timeouts};
use crate::core::pacer::{Flow, LOOK_EVERY, StallMeter};
use crate::core::range::Length;
use crate::core::retry_after;
use crate::core::time::Delay;
use crate::core::upload::{Answer, Keep};
use crate::core::validator::Validators;
use crate::io::clock::Clock;
use crate::io::part::Digests;
use crate::io::transport::body::framing_of;
use crate::io::transport::{Brake, Throttle, explain};

/// Of a body whose first bytes are kept, no more than this is read: the rest is not worth its time.
const MOST_READ: u64 = 4 * Answer::MOST_KEPT as u64;
/// The body of an answer that came while ours still flowed is waited for so long: a reset may come any moment.
const EARLY_PATIENCE: Delay = Delay::from_secs(10);

/// When did the answer come?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timing {
    /// After the whole request was out.
    InTurn,
    /// While the body still flowed: it was stopped, so the connection cannot be used again.
    Early,
}

/// What can follow on the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Another request.
    Free,
    /// Nothing.
    Spent,
}

/// How the reading of a body ended.
enum End {
    Whole,
    /// Enough was read.
    Enough,
    Broken(Failure),
}

/// What has been read of a body.
struct Reading {
    kept: Vec<u8>,
    digests: Option<Digests>,
    length: Length,
}

/// Reads the answer, before whose head `sent` bytes of the body went; see [`super::Heard::Answer`] for what a break means.
pub(super) async fn read(
    response: Response<Incoming>,
    request: &Outgoing,
    sent: Length,
    throttle: Option<&Throttle>,
    clock: &Clock,
) -> Result<(Answer, After), Failure> {
    let status = response.status().as_u16();
    if status < 200 {
        let detail = format!("status {status}, which was not asked for");
        return Err(Failure::BadAnswer(BadAnswer::Framing { detail }));
    }
    let timing = if sent < request.body.length() { Timing::Early } else { Timing::InTurn };
    let (head, mut body) = response.into_parts();
    let Some(framing) = framing_of(&head.headers, head.version) else {
        let detail = "its body is in a transfer coding other than chunked".to_owned();
        return Err(Failure::BadAnswer(BadAnswer::Framing { detail }));
    };
    // Of a refusal the text is wanted, whatever was hoped for.
    let mut reading = Reading::new(if status < 300 { request.keep } else { Keep::Small });
    let throttle = throttle.filter(|_| reading.digests.is_some());
    let end = reading.read(&mut body, request, timing, framing, throttle, clock).await;
    let after = match &end {
        End::Whole if timing == Timing::InTurn => After::Free,
        _ => After::Spent,
    };
    let is_whole = matches!(end, End::Whole);
    match end {
        End::Broken(failure) if status < 300 => return Err(failure),
        End::Whole | End::Enough | End::Broken(_) => {}
    }
    let date = Validators::from_headers(&head.headers).date;
    let retry_after = retry_after::told(&head.headers, date, clock.now().wall);
    let digest = reading.digests.filter(|_| is_whole).and_then(|d| only(&d));
    let (length, body) = (reading.length, reading.kept);
    Ok((Answer { status, fields: head.headers, body, length, digest, retry_after, sent }, after))
}

fn only(digests: &Digests) -> Option<Expected> {
    let (algorithm, bytes) = digests.finish().pop()?;
    Expected::from_bytes(algorithm, bytes)
}

impl Reading {
    fn new(keep: Keep) -> Self {
        let digests = match keep {
            Keep::Small => None,
            Keep::Digest(algorithm) => Some(Digests::new(&[algorithm])),
        };
        Self { kept: Vec::new(), digests, length: Length::ZERO }
    }

    async fn read(
        &mut self,
        body: &mut Incoming,
        request: &Outgoing,
        timing: Timing,
        framing: Framing,
        throttle: Option<&Throttle>,
        clock: &Clock,
    ) -> End {
        let begun = clock.now().mono;
        let mut meter = StallMeter::new(request.stall.stall_rate, request.stall.stall);
        // Its time begins with the body, whether a byte of it comes or none.
        meter.feed(begun, 1);
        loop {
            let (frame, now) = (tokio::time::timeout(LOOK_EVERY.as_std(), body.frame()).await, clock.now().mono);
            let came = match frame {
                Ok(None) => return End::Whole,
                Ok(Some(Err(error))) => return End::Broken(explain::in_any_body(&error, framing)),
                Ok(Some(Ok(frame))) => self.take(frame.into_data().unwrap_or_default().chunk()),
                Err(_) => 0,
            };
            if meter.feed(now, came) == Flow::Stalled {
                let Timeouts { stall_rate: floor, stall: window, .. } = request.stall;
                return End::Broken(Failure::Stalled { floor, window });
            }
            if let Some(throttle) = throttle
                && throttle.pass(came).await == Brake::Waited
            {
                meter.excuse(clock.now().mono);
            }
            if self.digests.is_none()
                && let Some(end) = self.is_too_much(request, timing, now.since(begun))
            {
                return end;
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> u64 {
        match &mut self.digests {
            Some(digests) => digests.update(bytes),
            None => {
                let room = Answer::MOST_KEPT - self.kept.len();
                self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
        }
        self.length = self.length + Length(bytes.len() as u64);
        bytes.len() as u64
    }

    fn is_too_much(&self, request: &Outgoing, timing: Timing, waited: Delay) -> Option<End> {
        if self.length.0 > MOST_READ {
            return Some(End::Enough);
        }
        let patience = match timing {
            Timing::InTurn => request.patience,
            Timing::Early => request.patience.min(EARLY_PATIENCE),
        };
        (waited > patience).then_some(End::Broken(Failure::NoAnswer { waited }))
    }
}
