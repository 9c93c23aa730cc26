//! One session's loop: what is to be kept is stored, then the move that the machine wants is made.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::aside::Aside;
use super::ask::{Whose, outgoing};
use super::source::OpenSource;
use super::{Closed, Hands, Orders, Tell, end_of, finished_of, local};
use crate::core::digest::Algorithm;
use crate::core::failure::{Failure, LocalFault};
use crate::core::file_xfer::{End, Timeouts};
use crate::core::range::{ByteRange, Length};
use crate::core::time::Epoch;
use crate::core::upload::{Ask, Event, Next, Persist, Plan, Step, UpEnd, UpFailure, UpXfer};
use crate::core::url::{MirrorUrl, Origin};
use crate::io::driver::trace;
use crate::io::transport::{Exchange, Heard};

/// Reading more than this for a digest is worth a word.
const LONG_READ: Length = Length(64 << 20);

/// By which digest a file is known again that was not read before it was sent.
const MEANWHILE: Algorithm = Algorithm::Blake3;

/// A session under way.
pub(super) struct Session {
    machine: UpXfer,
    source: Option<OpenSource>,
    hands: Hands,
    tell: Box<dyn Fn(Tell)>,
    stop: CancellationToken,
    server: MirrorUrl,
    first_origin: Origin,
    timeouts: Timeouts,
    exchange: Option<Open>,
    /// The digest of a file that has none.
    aside: Aside,
    sent: Length,
    /// The user knows that the file has changed.
    told_of_change: bool,
    /// A failure of this machine that the machine above has no word for.
    fault: Option<LocalFault>,
}

/// A request on its way.
struct Open {
    exchange: Exchange,
    /// Which bytes of the file it carries, and what stands before them.
    range: Option<ByteRange>,
    before: Length,
    /// What has gone out of its body.
    gone: Length,
}

impl Session {
    /// Opens the file and makes the machine. A file that is sent there for the first time is read for its digest: a later
    /// session is to know whether it is the same.
    pub(super) async fn open(
        orders: Orders,
        hands: Hands,
        tell: Box<dyn Fn(Tell)>,
        stop: CancellationToken,
    ) -> Result<Self, End> {
        let mut source = OpenSource::open(&orders.path, orders.known.as_ref()).map_err(local)?;
        let is_unknown = orders.saved.as_ref().is_none_or(|saved| saved.source.digest.is_none());
        if let Some(algorithm) = orders.identity.filter(|_| is_unknown) {
            if source.size() > LONG_READ {
                tell(Tell::Verifying);
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Err(End::Cancelled),
                known = source.know(algorithm) => known.map_err(local)?,
            }
        }
        let aside = match orders.identity.is_none() && is_unknown {
            true => Aside::of(Arc::clone(&source.file), source.size(), MEANWHILE),
            false => Aside::Over,
        };
        Ok(Self { aside, ..Self::new(orders, hands, tell, stop, Some(source)) })
    }

    /// One that only cleans up: the file may be gone.
    pub(super) fn to_clean_up(orders: Orders, hands: Hands, stop: CancellationToken) -> Self {
        Self::new(orders, hands, Box::new(drop), stop, None)
    }

    fn new(
        orders: Orders,
        hands: Hands,
        tell: Box<dyn Fn(Tell)>,
        stop: CancellationToken,
        source: Option<OpenSource>,
    ) -> Self {
        let as_saved = || orders.saved.as_ref().map(|saved| saved.source.clone());
        let identity = source.as_ref().map(OpenSource::identity).or_else(as_saved);
        let plan = Plan {
            protocol: orders.protocol,
            server: orders.server.clone(),
            source: identity.unwrap_or_else(nothing),
            saved: orders.saved,
            name: orders.name,
            media_type: orders.media_type,
            token: hands.token.clone(),
            read_back: orders.read_back,
            stale: orders.stale,
        };
        let machine = UpXfer::new(plan, hands.clock.now().wall);
        Self {
            machine,
            source,
            hands,
            tell,
            stop,
            server: orders.server,
            first_origin: orders.first_origin,
            timeouts: orders.timeouts,
            exchange: None,
            aside: Aside::Over,
            sent: Length::ZERO,
            told_of_change: false,
            fault: None,
        }
    }

    /// Runs the machine to its end, or until it is told to stop.
    pub(super) async fn drive(&mut self) -> UpEnd {
        let step = self.machine.start(self.now());
        self.steps(step).await
    }

    /// Cleans up what is known of the session at its server.
    pub(super) async fn clean_up(&mut self) -> UpEnd {
        let step = self.machine.abandon(self.now());
        self.steps(step).await
    }

    async fn steps(&mut self, mut step: Step) -> UpEnd {
        loop {
            self.remark_change();
            self.remark_left();
            self.remark_touched();
            let stop = self.stop.clone();
            let event = tokio::select! {
                biased;
                () = stop.cancelled(), if !matches!(step.next, Next::End(_)) => {
                    // It may have been told already, and not be stored yet.
                    self.tell_kept(Persist::Now, None);
                    Event::Stopped { sent: self.stopped() }
                }
                event = self.carry_out(step) => match event {
                    Ok(event) => event,
                    Err(end) => return end,
                },
            };
            step = self.machine.handle(event, self.now());
        }
    }

    /// Stores what is to be stored, then makes the move.
    async fn carry_out(&mut self, step: Step) -> Result<Event, UpEnd> {
        if let Next::End(end) = step.next {
            if step.persist != Persist::Not {
                self.tell_kept(step.persist, None);
            }
            return Err(end);
        }
        self.store(step.persist).await?;
        Ok(match step.next {
            Next::Ask(ask) => {
                self.ask(ask);
                self.hear().await
            }
            Next::Await => self.hear().await,
            Next::Digest { range, algorithm } => self.digest(range, algorithm).await,
            Next::Look => self.look(),
            Next::Rest(delay) => {
                tokio::time::sleep(delay.as_std()).await;
                Event::Rested
            }
            Next::End(end) => return Err(end),
        })
    }

    /// Where it must be on disk first, it is waited for.
    async fn store(&mut self, persist: Persist) -> Result<(), UpEnd> {
        match persist {
            Persist::Not => Ok(()),
            Persist::Soon => {
                self.tell_kept(persist, None);
                Ok(())
            }
            Persist::Now => {
                let (stored, is_stored) = oneshot::channel();
                self.tell_kept(persist, Some(stored));
                // Nobody is there any more to store it: then nothing is sent either.
                is_stored.await.map_err(|_| UpEnd::Stopped)
            }
        }
    }

    fn tell_kept(&self, persist: Persist, stored: Option<oneshot::Sender<()>>) {
        (self.tell)(Tell::Kept { session: Box::new(self.machine.session().clone()), persist, stored });
    }

    fn ask(&mut self, ask: Ask) {
        let range = ask.body.range();
        let before = ask.body.length().saturating_sub(range.map(|r| r.length()).unwrap_or_default());
        let whose = Whose {
            typed: &self.server,
            first_origin: &self.first_origin,
            credentials: &self.hands.credentials,
            carries: self.machine.carries(),
        };
        trace::upload(&ask, &self.server);
        let file = self.source.as_ref().map(|source| &source.file);
        let outgoing = outgoing(ask, &whose, file, self.timeouts, self.now());
        // Nothing of the file is sent where only its remains are cleaned up.
        self.exchange = outgoing.map(|outgoing| {
            let exchange = self.hands.uplink.send(outgoing, self.hands.throttle.clone());
            Open { exchange, range, before, gone: Length::ZERO }
        });
    }

    /// What is heard next of the open request.
    async fn hear(&mut self) -> Event {
        loop {
            let Some(open) = &mut self.exchange else {
                let detail = "no request is under way".to_owned();
                let failure = Failure::Cut(crate::core::failure::Cut::Broken { detail });
                return Event::Broke { sent: Length::ZERO, failure };
            };
            let heard = tokio::select! {
                biased;
                heard = open.exchange.next() => heard,
                digest = self.aside.digest() => match self.source.as_ref().map(OpenSource::look) {
                    Some(Ok(sight)) => return Event::Known { digest, sight },
                    _ => continue,
                },
            };
            match heard {
                Heard::Interim(interim) => return Event::Informed(interim),
                Heard::Sent(gone) => self.gone(gone),
                Heard::Answer(answer) => {
                    trace::upload_answer(answer.status, &answer.fields);
                    self.over();
                    return Event::Answer(answer);
                }
                Heard::Broke { sent, failure } => {
                    self.gone(sent);
                    self.over();
                    return Event::Broke { sent, failure };
                }
            }
        }
    }

    /// So much of the body has gone out.
    fn gone(&mut self, gone: Length) {
        let Some(open) = &mut self.exchange else { return };
        self.sent = self.sent + gone.saturating_sub(open.gone);
        open.gone = gone.max(open.gone);
        if let Some(range) = open.range {
            let of_file = open.gone.saturating_sub(open.before).min(range.length());
            (self.tell)(Tell::Sending(range.start.as_length() + of_file));
        }
    }

    /// Not a byte more goes out of the open request; so many of its body have.
    fn stopped(&mut self) -> Length {
        let Some(open) = &self.exchange else { return Length::ZERO };
        let sent = open.exchange.stop();
        self.gone(sent);
        self.over();
        sent
    }

    fn over(&mut self) {
        self.exchange = None;
    }

    async fn digest(&mut self, range: ByteRange, algorithm: Algorithm) -> Event {
        let Some(source) = &mut self.source else { return Event::SourceGone("it is not open".to_owned()) };
        if range.length() > LONG_READ {
            (self.tell)(Tell::Verifying);
        }
        match source.digest_of(range, algorithm).await {
            Ok(digest) => Event::Digested(digest),
            Err(fault) => {
                let detail =
                    if let LocalFault::Io { detail, .. } = &fault { detail.clone() } else { fault.to_string() };
                self.fault = Some(fault);
                Event::SourceGone(detail)
            }
        }
    }

    fn look(&self) -> Event {
        match self.source.as_ref().map(OpenSource::look) {
            Some(Ok(sight)) => Event::Looked(sight),
            Some(Err(detail)) => Event::SourceGone(detail),
            None => Event::SourceGone("it is not open".to_owned()),
        }
    }

    /// The file is not the one that the upload was begun with: said once.
    fn remark_change(&mut self) {
        if let Some(change) = self.machine.restarted().filter(|_| !self.told_of_change) {
            self.told_of_change = true;
            let text = format!(
                "the file changed since its upload to {} was begun ({change}); what was sent of it is given up, and it is \
                 sent anew",
                self.server
            );
            (self.tell)(Tell::Remark(text));
        }
    }

    /// What an older version left at the server is still there.
    fn remark_left(&mut self) {
        if let Some(failure) = self.machine.take_left() {
            let text = format!(
                "{} did not drop what was sent of the old file ({failure}): it may still lie there",
                self.server
            );
            (self.tell)(Tell::Remark(text));
        }
    }

    /// A file whose content is read again while it is sent takes its time: why is said.
    fn remark_touched(&mut self) {
        if self.machine.take_touched() {
            let text = "the file was touched while it was sent (a link or another mode does that); its content is the \
                        same, by its digest, and the upload goes on";
            (self.tell)(Tell::Remark(text.to_owned()));
        }
    }

    fn now(&self) -> Epoch {
        self.hands.clock.now().wall
    }

    /// What came of it all.
    pub(super) fn close(mut self, end: UpEnd, path: &str, at: Epoch) -> Closed {
        let inode = self.source.as_ref().map(OpenSource::inode).unwrap_or_default();
        let finished = finished_of(&end, self.machine.session(), inode, at);
        let end = match (end, self.fault.take()) {
            (UpEnd::Failed(UpFailure::SourceGone { .. }), Some(fault)) => local(fault),
            (end, _) => end_of(end, path),
        };
        let known = self.source.as_ref().and_then(OpenSource::known);
        Closed { end, finished, known, sent: self.sent }
    }
}

/// The identity of no file at all.
fn nothing() -> crate::core::upload::Source {
    let stamp = crate::core::upload::Stamp { size: Length::ZERO, mtime_ns: 0 };
    crate::core::upload::Source { stamp, mark: None, digest: None }
}
