//! One exchange: a connection, the request, a second try where that is safe, and what is told of it all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderValue, PROXY_AUTHORIZATION, TRANSFER_ENCODING,
    USER_AGENT,
};
use hyper::{Request, Uri};
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;
use url::Position;

use super::answer::{self, After};
use super::body::SendBody;
use super::line::Line;
use super::pool::Link;
use super::reach;
use super::talk::{Miss, Talk};
use super::{Heard, OutBody, Outgoing, Shared, Uplink};
use crate::core::failure::{BadAnswer, Cut, Failure};
use crate::core::range::Length;
use crate::core::time::Delay;
use crate::core::upload::{Answer, Gate, Interim, Method};
use crate::core::url::MirrorUrl;
use crate::io::transport::scripted::{Network, Outflow};
use crate::io::transport::{Throttle, explain};

/// So many informational answers wait for whoever asks; a server that sends more before one is asked for is no server.
const MOST_WAITING: usize = 256;
/// A connection that has been idle for longer carries only requests that can be sent twice: servers close idle
/// connections after five seconds and more, and one that crosses the close is lost.
const FRESH_ENOUGH: Delay = Delay::from_secs(4);
/// Expectation Failed: the server does not do `Expect: 100-continue` (RFC 9110 15.5.18).
const EXPECTATION_FAILED: u16 = 417;
const CONTINUE: u16 = 100;

/// An exchange on its way. It goes on whether it is asked or not; dropping it drops the request and its connection.
#[derive(Debug)]
pub struct Exchange {
    heard: mpsc::Receiver<Heard>,
    sent: watch::Receiver<Length>,
    flowing: Arc<Flowing>,
    _runs: AbortOnDropHandle<()>,
    is_over: bool,
}

/// How far the body is, for one who stops it.
#[derive(Debug, Default)]
struct Flowing(Mutex<Where>);

/// Where the body is.
#[derive(Debug)]
enum Where {
    /// On this connection, which may carry other requests later; it has so many bytes.
    On(Arc<Line>, Length),
    /// On its way through a script.
    Scripted(Arc<Outflow>),
    /// On none. So many bytes had gone.
    Over(Length),
}

impl Default for Where {
    fn default() -> Self {
        Self::Over(Length::ZERO)
    }
}

impl Flowing {
    fn state(&self) -> MutexGuard<'_, Where> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Not a byte more goes; so many have.
    fn stop(&self) -> Length {
        match &*self.state() {
            Where::Over(sent) => *sent,
            Where::Scripted(outflow) => outflow.stop(),
            Where::On(line, total) => {
                line.stop();
                Length(line.state().sent()).min(*total)
            }
        }
    }
}

/// What the task of an exchange has.
struct Run {
    shared: Arc<Shared>,
    request: Outgoing,
    throttle: Option<Throttle>,
    heard: mpsc::Sender<Heard>,
    sent: watch::Sender<Length>,
    flowing: Arc<Flowing>,
}

/// How a try ended.
enum Try {
    Answered(Box<Answer>),
    /// Nothing can have come of it: once more, so.
    Again(Gate),
    Broke(Failure),
}

/// Which connections may be used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reuse {
    Allowed,
    Never,
}

impl Uplink {
    /// Sends a request, which goes on by itself. Call it within a runtime: the exchange and its connection live there.
    ///
    /// `throttle` brakes the bytes that go, and those that come where they are digested.
    pub fn send(&self, request: Outgoing, throttle: Option<Throttle>) -> Exchange {
        let (heard, hears) = mpsc::channel(MOST_WAITING);
        let (sent, is_sent) = watch::channel(Length::ZERO);
        if let Some(network) = &self.0.script {
            return scripted(network, request, sent, is_sent);
        }
        let flowing = Arc::new(Flowing::default());
        let run = Run { shared: Arc::clone(&self.0), request, throttle, heard, sent, flowing: Arc::clone(&flowing) };
        let runs = AbortOnDropHandle::new(tokio::spawn(run.run()));
        Exchange { heard: hears, sent: is_sent, flowing, _runs: runs, is_over: false }
    }
}

/// The exchange goes by a script, on the local set that it is started in.
fn scripted(
    network: &Arc<dyn Network>,
    request: Outgoing,
    sent: watch::Sender<Length>,
    is_sent: watch::Receiver<Length>,
) -> Exchange {
    let (tell, heard) = mpsc::channel(1);
    let outflow = Arc::new(Outflow::new(sent));
    let flowing = Arc::new(Flowing(Mutex::new(Where::Scripted(Arc::clone(&outflow)))));
    let ends = network.send(request, outflow);
    let runs = async move {
        // Where nobody listens any more, nobody needs it.
        let _ = tell.send(ends.await).await;
    };
    Exchange {
        heard,
        sent: is_sent,
        flowing,
        _runs: AbortOnDropHandle::new(tokio::task::spawn_local(runs)),
        is_over: false,
    }
}

impl Exchange {
    /// What is heard next. Nothing is heard after [`Heard::Answer`] or [`Heard::Broke`]: then this waits for ever.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Heard {
        if self.is_over {
            return std::future::pending().await;
        }
        let heard = tokio::select! {
            biased;
            heard = self.heard.recv() => heard.unwrap_or_else(|| {
                let detail = "the exchange was dropped".to_owned();
                Heard::Broke { sent: *self.sent.borrow(), failure: Failure::Cut(Cut::Broken { detail }) }
            }),
            Ok(()) = self.sent.changed() => Heard::Sent(*self.sent.borrow_and_update()),
        };
        self.is_over = matches!(heard, Heard::Answer(_) | Heard::Broke { .. });
        heard
    }

    /// Ends the body: not a byte of it goes from here on. So many had been handed to the connection.
    pub fn stop(&self) -> Length {
        self.flowing.stop()
    }
}

impl Run {
    async fn run(self) {
        let mut reuse = Reuse::Allowed;
        let mut gate = self.request.gate;
        if self.request.body.length() == Length::ZERO {
            gate = Gate::Open;
        }
        let (end, sent) = loop {
            let (tried, sent) = self.attempt(reuse, gate).await;
            let end = match tried {
                Try::Again(next) => {
                    (reuse, gate) = (Reuse::Never, next);
                    tracing::debug!(url = %self.request.url, "nothing came of the request; once more on a new connection");
                    continue;
                }
                Try::Answered(answer) => Heard::Answer(answer),
                Try::Broke(failure) => Heard::Broke { sent, failure },
            };
            break (end, sent);
        };
        if *self.sent.borrow() != sent {
            let _ = self.heard.send(Heard::Sent(sent)).await;
        }
        // Nobody may be waiting.
        let _ = self.heard.send(end).await;
    }

    /// One try, and how much of the body went out in it.
    async fn attempt(&self, reuse: Reuse, gate: Gate) -> (Try, Length) {
        match self.link(reuse).await {
            Ok((link, used)) => self.talk(link, used, gate).await,
            Err(failure) => (Try::Broke(failure), Length::ZERO),
        }
    }

    async fn link(&self, reuse: Reuse) -> Result<(Link, Used), Failure> {
        let (shared, url) = (&self.shared, &self.request.url);
        if reuse == Reuse::Allowed {
            let most = if self.can_be_sent_twice() { Delay::MAX } else { FRESH_ENOUGH };
            if let Some(link) = shared.pool.take(&url.origin(), shared.clock.now().mono, most).await {
                return Ok((link, Used::Before));
            }
        }
        let stream = reach::reach(shared, url).await?;
        Ok((Link::over(stream).await?, Used::Never))
    }

    async fn talk(&self, mut link: Link, used: Used, gate: Gate) -> (Try, Length) {
        let mut talk = Talk::new(&self.request, gate, &link.line, &self.shared.clock, &self.sent);
        let request = match self.request(&link.line, gate) {
            Ok(request) => request,
            Err(failure) => return (Try::Broke(failure), Length::ZERO),
        };
        *self.flowing.state() = Where::On(Arc::clone(&link.line), self.request.body.length());
        let outcome = talk.head(link.send(request)).await;
        let sent = talk.sent();
        // The connection may be another's next.
        *self.flowing.state() = Where::Over(sent);
        let again = used == Used::Before && talk.interims() == 0;
        let response = match outcome {
            Ok(response) => response,
            Err(Miss::Unsent) if again => return (Try::Again(gate), sent),
            Err(Miss::Broke(Failure::Cut(_))) if again && self.can_be_sent_twice() => return (Try::Again(gate), sent),
            Err(Miss::Broke(failure)) => return (Try::Broke(failure), sent),
            Err(Miss::Unsent) => {
                let detail = "closed by the server".to_owned();
                return (Try::Broke(Failure::Cut(Cut::Broken { detail })), sent);
            }
        };
        if response.status().as_u16() == EXPECTATION_FAILED && gate != Gate::Open {
            return (Try::Again(Gate::Open), sent);
        }
        let clock = &self.shared.clock;
        let tried = match answer::read(response, &self.request, sent, self.throttle.as_ref(), clock).await {
            Ok((answer, after)) => {
                if after == After::Free {
                    self.shared.pool.keep(self.request.url.origin(), clock.now().mono, link).await;
                }
                Try::Answered(Box::new(answer))
            }
            Err(failure) => Try::Broke(failure),
        };
        (tried, sent)
    }

    /// A request of which it does not matter whether it came once or twice, and that takes nothing along.
    fn can_be_sent_twice(&self) -> bool {
        matches!(self.request.method, Method::Get | Method::Head | Method::Options)
            && matches!(self.request.body, OutBody::Nothing)
    }

    fn request(&self, line: &Arc<Line>, gate: Gate) -> Result<Request<SendBody>, Failure> {
        let buffers = Arc::clone(&self.shared.buffers);
        let body = SendBody::new(&self.request.body, Arc::clone(line), buffers, self.throttle.clone());
        let mut request = Request::new(body);
        *request.method_mut() = method(self.request.method);
        *request.uri_mut() = uri(&self.shared, &self.request.url)?;
        *request.headers_mut() = self.headers(gate);
        let (line, heard) = (Arc::clone(line), self.heard.clone());
        hyper::ext::on_informational(&mut request, move |answer| {
            let interim = Interim { status: answer.status().as_u16(), fields: answer.headers().clone() };
            if interim.status == CONTINUE {
                line.open();
            }
            if heard.try_send(Heard::Interim(interim)).is_err() {
                let detail = "more informational answers than anybody can hear".to_owned();
                line.fail(Failure::BadAnswer(BadAnswer::Framing { detail }));
            }
            line.informed();
        });
        Ok(request)
    }

    fn headers(&self, gate: Gate) -> HeaderMap {
        let (request, shared) = (&self.request, &self.shared);
        let mut headers = request.headers.clone();
        if let Ok(host) = HeaderValue::from_str(&request.url.secret_url()[Position::BeforeHost..Position::AfterPort]) {
            headers.entry(HOST).or_insert(host);
        }
        headers.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        if let Some(agent) = reach::agent(shared) {
            headers.entry(USER_AGENT).or_insert(agent);
        }
        if let Some(value) = reach::asked_whole(shared, &request.url).and_then(reach::authorization) {
            headers.entry(PROXY_AUTHORIZATION).or_insert(value);
        }
        headers.remove(TRANSFER_ENCODING);
        let length = request.body.length();
        let wants_length = matches!(request.method, Method::Post | Method::Put | Method::Patch);
        if length > Length::ZERO || wants_length {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length.0));
        }
        if gate != Gate::Open {
            headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
        }
        headers
    }
}

/// Has a connection carried a request before?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Used {
    Before,
    Never,
}

/// The target of the request line (RFC 9112 3.2): without user-info, whole where a proxy is asked for it.
fn uri(shared: &Shared, url: &MirrorUrl) -> Result<Uri, Failure> {
    let bare = url.without_credentials();
    let whole = reach::asked_whole(shared, url).is_some();
    let from = if whole { Position::BeforeScheme } else { Position::BeforePath };
    let text = &bare.secret_url()[from..Position::AfterQuery];
    text.parse().map_err(|e: http::uri::InvalidUri| explain::no_request(&e.to_string()))
}

fn method(method: Method) -> http::Method {
    match method {
        Method::Get => http::Method::GET,
        Method::Head => http::Method::HEAD,
        Method::Options => http::Method::OPTIONS,
        Method::Post => http::Method::POST,
        Method::Put => http::Method::PUT,
        Method::Patch => http::Method::PATCH,
        Method::Delete => http::Method::DELETE,
        // Both are tokens.
        Method::Move | Method::Mkcol => http::Method::from_bytes(method.as_str().as_bytes()).unwrap_or_default(),
    }
}
