//! A driver in memory: it carries out the machine's steps against a server, over a line that can be cut anywhere, with
//! answers that can be lost and a client that can be killed between any two steps.

use std::collections::VecDeque;

use http::{HeaderMap, HeaderName, HeaderValue};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sha2::Digest as _;

use super::super::*;
use crate::core::digest::{Algorithm, Expected};
use crate::core::failure::{Cut, Failure};
use crate::core::range::{ByteRange, Offset};
use crate::core::time::Epoch;
use crate::core::url::MirrorUrl;

pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;

/// A request as it arrives.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) ask: Ask,
    /// What came of the body.
    pub(super) body: Vec<u8>,
    /// It broke off before its end.
    pub(super) cut: bool,
    pub(super) now: Epoch,
}

/// A server in memory.
pub(super) trait Server {
    /// Takes a request; `None` hangs up without an answer. What is returned for a cut request reaches nobody.
    fn serve(&mut self, request: &Request) -> Option<Answer>;
    /// Informational answers that come before the body.
    fn informs(&mut self, _request: &Ask) -> Vec<Interim> {
        Vec::new()
    }
    /// The finished file.
    fn stored(&self) -> Option<&[u8]>;
}

/// How a session ended, or that the client was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Came {
    End(UpEnd),
    Killed,
}

pub(super) struct Sim<S> {
    pub(super) server: S,
    pub(super) make: Box<dyn Fn() -> Box<dyn UploadProtocol>>,
    pub(super) source: Vec<u8>,
    pub(super) stamp: Stamp,
    pub(super) mark: Option<Mark>,
    pub(super) name: Named,
    pub(super) digest: Option<Expected>,
    pub(super) url: MirrorUrl,
    pub(super) read_back: Length,
    pub(super) token: &'static str,
    /// The record on disk.
    pub(super) disk: Option<UploadSession>,
    pub(super) now: Epoch,
    /// Bytes of the source that went out.
    pub(super) sent: u64,
    /// The line is cut when so many have, in all.
    pub(super) cuts: VecDeque<u64>,
    /// What a server says to a body that was cut arrives: it did not wait for the rest.
    pub(super) early: bool,
    /// Of a hundred answers so many are lost.
    pub(super) lost_answers: u32,
    /// Of a thousand steps so many are the last of their process.
    pub(super) kills: u32,
    pub(super) rng: StdRng,
    /// Method and status of every exchange; 0 where no answer came.
    pub(super) log: Vec<(Method, u16)>,
    /// Bodies: the ranges begun.
    pub(super) bodies: Vec<ByteRange>,
    pub(super) restarted: Option<Change>,
    /// The source is edited when a request with this many before it has gone.
    pub(super) edit_at: Option<usize>,
    pub(super) rested: Delay,
    /// So often the record had to be on disk before the next move.
    pub(super) awaited: usize,
}

/// Bytes that do not repeat, made fast also where nothing is optimised.
pub(super) fn bytes(count: u64, seed: u64) -> Vec<u8> {
    let mut word = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut all = vec![0; usize::try_from(count).expect("fits")];
    for eight in all.chunks_mut(8) {
        word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        eight.copy_from_slice(&(word ^ (word >> 32)).to_le_bytes()[..eight.len()]);
    }
    all
}

pub(super) fn digest_of(algorithm: Algorithm, bytes: &[u8]) -> Expected {
    let bytes = match algorithm {
        Algorithm::Sha256 => sha2::Sha256::digest(bytes).to_vec(),
        Algorithm::Sha1 => sha1::Sha1::digest(bytes).to_vec(),
        Algorithm::Md5 => md5::Md5::digest(bytes).to_vec(),
        other => panic!("no test wants {other}"),
    };
    Expected { algorithm, bytes }
}

/// An answer with these fields and this body.
pub(super) fn answer(status: u16, fields: &[(&str, &str)], body: &[u8]) -> Answer {
    Answer {
        status,
        fields: header_map(fields),
        length: Length(body.len() as u64),
        body: body.to_vec(),
        ..Answer::default()
    }
}

pub(super) fn header_map(fields: &[(&str, &str)]) -> HeaderMap {
    let name = |n: &str| HeaderName::from_bytes(n.as_bytes()).expect("a name");
    fields.iter().map(|(n, v)| (name(n), HeaderValue::from_str(v).expect("a value"))).collect()
}

pub(super) fn url(text: &str) -> MirrorUrl {
    MirrorUrl::parse(text).expect(text)
}

pub(super) fn path(url: &MirrorUrl) -> String {
    url.secret_url().path().to_owned()
}

impl<S: Server> Sim<S> {
    pub(super) fn new(
        server: S,
        to: &str,
        source: Vec<u8>,
        make: impl Fn() -> Box<dyn UploadProtocol> + 'static,
    ) -> Self {
        let stamp = Stamp { size: Length(source.len() as u64), mtime_ns: 1 };
        Self {
            server,
            make: Box::new(make),
            source,
            stamp,
            mark: None,
            name: Named::Open,
            digest: None,
            url: url(to),
            read_back: Length(0),
            token: "t0k3n",
            disk: None,
            now: Epoch::from_secs(1_000_000),
            sent: 0,
            cuts: VecDeque::new(),
            early: false,
            lost_answers: 0,
            kills: 0,
            rng: StdRng::seed_from_u64(7),
            log: Vec::new(),
            bodies: Vec::new(),
            restarted: None,
            edit_at: None,
            rested: Delay::ZERO,
            awaited: 0,
        }
    }

    pub(super) fn xfer(&self) -> UpXfer {
        let source = Source { stamp: self.stamp, mark: self.mark, digest: self.digest.clone() };
        let plan = Plan {
            protocol: (self.make)(),
            server: self.url.clone(),
            saved: self.disk.clone(),
            source,
            name: "f.bin".to_owned(),
            media_type: "application/octet-stream".to_owned(),
            token: self.token.to_owned(),
            read_back: self.read_back,
            stale: Offset::ZERO,
        };
        UpXfer::new(plan, self.now)
    }

    /// What a look at the source shows.
    pub(super) fn sight(&self) -> Sight {
        Sight { stamp: self.stamp, mark: self.mark, name: self.name }
    }

    /// One session, to its end.
    pub(super) fn session(&mut self) -> Came {
        let mut xfer = self.xfer();
        let mut step = xfer.start(self.now);
        for _ in 0..5_000 {
            self.persist(&xfer, &step);
            if self.rng.random_range(0..1000) < self.kills {
                return Came::Killed;
            }
            let events = match step.next {
                Next::End(end) => {
                    self.restarted = self.restarted.or(xfer.restarted());
                    if matches!(end, UpEnd::Stored { .. } | UpEnd::Abandoned) {
                        self.disk = None;
                    }
                    return Came::End(end);
                }
                Next::Ask(ask) => self.exchange(&ask),
                Next::Digest { range, algorithm } => vec![Event::Digested(digest_of(algorithm, self.slice(range)))],
                Next::Look => vec![Event::Looked(self.sight())],
                Next::Rest(delay) => {
                    self.now = self.now + delay;
                    self.rested = self.rested.saturating_add(delay);
                    vec![Event::Rested]
                }
                Next::Await => panic!("nothing was asked"),
            };
            let mut last = None;
            for event in events {
                let next = xfer.handle(event, self.now);
                if next.next == Next::Await {
                    self.persist(&xfer, &next);
                } else {
                    last = Some(next);
                }
            }
            step = last.expect("every step is answered");
        }
        panic!("no end: {:?}", &self.log[..40.min(self.log.len())]);
    }

    /// Sessions until one ends otherwise than by a fault that may pass; at most so many.
    pub(super) fn run(&mut self, most: u32) -> UpEnd {
        let mut last = None;
        for _ in 0..most {
            match self.session() {
                Came::Killed => {}
                Came::End(UpEnd::Failed(failure)) if may_pass(&failure) => last = Some(UpEnd::Failed(failure)),
                Came::End(end) => return end,
            }
            self.now = self.now + Delay::from_secs(60);
        }
        last.expect("a failure")
    }

    fn persist(&mut self, xfer: &UpXfer, step: &Step) {
        self.awaited += usize::from(step.persist == Persist::Now);
        match step.persist {
            Persist::Now => self.disk = Some(xfer.session().clone()),
            // It may come too late.
            Persist::Soon if self.rng.random_bool(0.5) => self.disk = Some(xfer.session().clone()),
            _ => {}
        }
        if let Next::Ask(ask) = &step.next
            && ask.body.range().is_some()
        {
            assert_ne!(self.disk, None, "the record is on disk before the first byte of the source");
        }
    }

    fn slice(&self, range: ByteRange) -> &[u8] {
        let at = |o: Offset| usize::try_from(o.0).expect("fits");
        &self.source[at(range.start)..at(range.end)]
    }

    /// One request over the line.
    fn exchange(&mut self, ask: &Ask) -> Vec<Event> {
        if self.edit_at == Some(self.log.len()) {
            self.stamp.mtime_ns += 1;
        }
        let (framing, range) = match &ask.body {
            Body::Nothing => (Vec::new(), ByteRange::default()),
            Body::Bytes(bytes) => (bytes.clone(), ByteRange::default()),
            Body::Source(range) => (Vec::new(), *range),
            Body::Framed { before, range } => (before.clone(), *range),
        };
        if !range.is_empty() {
            self.bodies.push(range);
        }
        let mut body = framing;
        let through = match self.cuts.front() {
            Some(cut) if self.sent + range.length().0 > *cut => Some(cut.saturating_sub(self.sent)),
            _ => None,
        };
        let got = through.unwrap_or(range.length().0);
        body.extend_from_slice(self.slice(ByteRange::new(range.start, range.start + Length(got))));
        self.sent += got;
        let cut = through.is_some();
        if cut {
            self.cuts.pop_front();
        }
        let mut events: Vec<Event> = self.server.informs(ask).into_iter().map(Event::Informed).collect();
        let answer = self.server.serve(&Request { ask: ask.clone(), body, cut, now: self.now });
        let lost = (cut && !self.early) || self.rng.random_range(0..100) < self.lost_answers;
        let answer = answer.filter(|_| !lost);
        self.log.push((ask.method, answer.as_ref().map_or(0, |a| a.status)));
        events.push(match answer {
            Some(answer) => {
                let sent = ask.body.length().saturating_sub(range.length().saturating_sub(Length(got)));
                Event::Answer(Box::new(Answer { sent, ..kept(answer, ask) }))
            }
            None => broke(ask.body.length().0 - (range.length().0 - got)),
        });
        events
    }
}

/// What the driver keeps of a body.
fn kept(mut answer: Answer, ask: &Ask) -> Answer {
    if let Keep::Digest(algorithm) = ask.keep {
        answer.digest = Some(digest_of(algorithm, &answer.body));
        answer.length = Length(answer.body.len() as u64);
        answer.body.clear();
    }
    answer
}

pub(super) fn broke(sent: u64) -> Event {
    let failure = Failure::Cut(Cut::Broken { detail: "reset".to_owned() });
    Event::Broke { sent: Length(sent), failure }
}

/// Is it a failure after which the same server is asked again?
pub(super) fn may_pass(failure: &UpFailure) -> bool {
    matches!(judge(failure).scope, UpScope::Transient { .. } | UpScope::Attention | UpScope::Doubtful)
}
