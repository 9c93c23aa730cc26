//! Uploads in the supervisor's hands: their sessions are started, what is to be kept of them is stored before they go on,
//! and what they leave at servers that are not needed any more is cleaned up.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::core::digest::Algorithm;
use crate::core::failure::LocalFault;
use crate::core::file_xfer::Outcome;
use crate::core::file_xfer::dossier::Dossier;
use crate::core::pers_xfer::Event;
use crate::core::pers_xfer::record::{Record, XferId};
use crate::core::range::Length;
use crate::core::time::{Delay, Now};
use crate::core::upload::{
    ABANDON_PATIENCE, Boinc, Ietf, Protocol, Put, PutRange, ReadBack, Tus, UploadProtocol, UploadSession,
};
use crate::core::url::MirrorUrl;
use crate::engine::keys;
use crate::engine::mail::Mail;
use crate::engine::supervisor::{Supervisor, defect, sleep_until};
use crate::engine::transfer::Transfer;
use crate::engine::way::Way;
use crate::engine::{Notice, Stop};
use crate::io::driver::Closed;
use crate::io::driver::upload::{self, Cleaned, Cleanup, Hands, Orders, Tell};

/// What a file is said to be where nobody says anything.
const MEDIA_TYPE: &str = "application/octet-stream";

/// A file up to this size is digested before it is sent for the first time.
const DIGESTED: Length = Length(256 << 20);

/// A run that was told to stop waits no longer than this for servers that are cleaned up.
const HURRIED: Delay = Delay::from_secs(1);

/// What uploads of a run need beside what all transfers need.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    /// Sessions that wait for the next write.
    waiting: Vec<oneshot::Sender<()>>,
    /// Servers that are being cleaned up.
    cleaning: usize,
}

impl Uploads {
    /// Everything is on disk: who waited for that goes on.
    pub(super) fn stored(&mut self) {
        // One that was told to stop meanwhile does not wait any more.
        for session in self.waiting.drain(..) {
            let _ = session.send(());
        }
    }
}

impl Transfer {
    /// What a session with this server is to do.
    pub(super) fn upload_orders(&self, mirror: usize) -> Result<Orders, LocalFault> {
        let record = self.record();
        let server = record.mirrors.get(mirror).ok_or_else(|| defect("an upload without a server"))?.url.clone();
        let protocol = record.options.upload.protocol_of(&server);
        let saved = record.uploads.iter().find(|s| s.server == server && s.protocol == protocol).cloned();
        orders(record, server, protocol, saved, self.known_source.clone(), &self.way)
    }
}

fn orders(
    record: &Record,
    server: MirrorUrl,
    protocol: Protocol,
    saved: Option<UploadSession>,
    known: Option<upload::Known>,
    way: &Way,
) -> Result<Orders, LocalFault> {
    let path = record.path.clone().ok_or_else(|| defect("an upload without a file"))?;
    let options = &record.options.upload;
    Ok(Orders {
        protocol: speaker(record, protocol, &server)?,
        first_origin: record.mirrors.first().map_or_else(|| server.origin(), |first| first.url.origin()),
        server,
        saved,
        known,
        identity: identity(record, protocol),
        name: options.name.clone().unwrap_or_else(|| name_of(&path)),
        path,
        media_type: options.media_type.clone().unwrap_or_else(|| MEDIA_TYPE.to_owned()),
        read_back: options.read_back.up_to(),
        stale: record.stale(),
        timeouts: way.timeouts,
    })
}

/// What cleans up after this session of a record.
pub(super) fn orders_to_clean_up(record: &Record, session: UploadSession, way: &Way) -> Result<Orders, LocalFault> {
    let (server, protocol) = (session.server.clone(), session.protocol);
    orders(record, server, protocol, Some(session), None, way)
}

fn speaker(record: &Record, protocol: Protocol, server: &MirrorUrl) -> Result<Box<dyn UploadProtocol>, LocalFault> {
    let options = &record.options.upload;
    Ok(match protocol {
        Protocol::Boinc => {
            let most = record.max_nbytes.or(record.nbytes).unwrap_or_default();
            let boinc = Boinc::new(most, record.xml_signature.clone());
            Box::new(Boinc { surplus: options.surplus, ..boinc })
        }
        Protocol::Put => Box::new(Put::default()),
        Protocol::PutRange => Box::new(PutRange::default()),
        Protocol::Tus => Box::new(Tus::new(options.authority)),
        Protocol::Ietf => Box::new(Ietf::new(options.interop)),
        Protocol::S3 => keys::store(options, server)?,
    })
}

/// By which digest a file is known again: the fastest, or the one that the protocol has a use for. A large file is known by
/// its size, times and inode alone, unless what is stored is to be read back anyway: reading it once more only for this would
/// cost more than sending it over a fast line. If it is moved or touched meanwhile, it is sent anew.
fn identity(record: &Record, protocol: Protocol) -> Option<Algorithm> {
    let small = record.nbytes.is_some_and(|n| n <= DIGESTED);
    match protocol {
        Protocol::Ietf => Some(Algorithm::Sha256),
        _ if small || record.options.upload.read_back == ReadBack::Always => Some(Algorithm::Blake3),
        Protocol::Boinc | Protocol::Put | Protocol::PutRange | Protocol::Tus | Protocol::S3 => None,
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

impl Supervisor<'_> {
    /// Starts a session of an upload.
    pub(super) fn spawn_upload(&mut self, id: XferId, orders: Orders, way: &Arc<Way>, stop: CancellationToken) {
        let outbox = self.mailbox.outbox.clone();
        let (hands, way) = (self.upload_hands(way), Arc::clone(way));
        let task = self.lanes.spawn(move |clients| {
            let hands = hands(clients.of(&way).uplink());
            let tell_box = outbox.clone();
            // The loop outlives its sessions, or nobody is interested any more.
            let tell = Box::new(move |tell| drop(tell_box.send((id, Mail::Upload(tell)))));
            async move {
                let closed = upload::run(orders, hands, tell, stop).await;
                drop(outbox.send((id, Mail::UploadClosed(Box::new(closed)))));
            }
        });
        self.look_after(id, task);
    }

    fn upload_hands(&mut self, way: &Arc<Way>) -> impl FnOnce(crate::io::transport::Uplink) -> Hands + Send + use<> {
        let (credentials, clock, throttle) = (
            way.credentials.clone(),
            self.clock.clone(),
            self.brake(crate::core::pers_xfer::record::Direction::Upload),
        );
        let word: u64 = rand::RngExt::random(&mut *self.rng);
        move |uplink| Hands { uplink, credentials, throttle, clock, token: format!("{word:016x}") }
    }

    pub(super) fn told_of_upload(&mut self, id: XferId, tell: Tell, now: Now) {
        match tell {
            Tell::Kept { session, persist, stored } => {
                let confirmed = session.confirmed.as_length();
                if confirmed > Length::ZERO {
                    self.host_answered(id, now);
                }
                self.handle(id, Event::Kept(session, persist), now);
                let Some(transfer) = self.transfers.get_mut(&id) else { return };
                if std::mem::replace(&mut transfer.held, confirmed) != confirmed {
                    (self.notices)(Notice::Progress { id, held: confirmed });
                }
                self.uploads.waiting.extend(stored);
            }
            Tell::Sending(at) => (self.notices)(Notice::Sending { id, at }),
            Tell::Verifying => (self.notices)(Notice::Verifying { id }),
            Tell::Remark(text) => (self.notices)(Notice::Remark { id: Some(id), text }),
        }
    }

    pub(super) fn upload_closed(&mut self, id: XferId, closed: upload::Closed, now: Now) {
        let upload::Closed { end, finished, known, sent } = closed;
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        transfer.known_source = known.or_else(|| transfer.known_source.take());
        let origin = transfer.running.as_ref().map(|running| running.host.clone());
        let outcome = Outcome { dossier: Dossier::default(), origin, end };
        self.closed(id, Closed { outcome, finished, store: None, received: sent, rate: None }, now);
    }

    /// Nobody goes on with what a record still has at servers: it is cleaned up, as well as can be. The record knows of it until
    /// that is done, so that it can be asked for again.
    pub(super) fn clean_up_after(&mut self, record: &Record, way: &Arc<Way>) {
        for session in record.abandoned() {
            match orders_to_clean_up(record, session.clone(), way) {
                Ok(orders) => self.clean_up(record.id, orders, Arc::clone(way)),
                Err(fault) => {
                    self.tell_of_leftovers(record.id, &session.server, &format!("was not asked to drop it: {fault}"))
                }
            }
        }
    }

    fn tell_of_leftovers(&mut self, id: XferId, server: &MirrorUrl, why: &str) {
        let text = format!("{server} {why}; what was sent there may still lie there: `persxfer abort {id}` asks again");
        (self.notices)(Notice::Remark { id: Some(id), text });
    }

    fn clean_up(&mut self, id: XferId, orders: Orders, way: Arc<Way>) {
        let hands = self.upload_hands(&way);
        let outbox = self.mailbox.outbox.clone();
        let task = self.lanes.spawn(move |clients| {
            let hands = hands(clients.of(&way).uplink());
            async move {
                let cleaned = upload::abandon(orders, hands).await;
                drop(outbox.send((id, Mail::Cleaned(cleaned))));
            }
        });
        if task.is_ok() {
            self.uploads.cleaning += 1;
        }
    }

    pub(super) fn cleaned(&mut self, id: XferId, cleaned: &Cleaned) {
        self.uploads.cleaning = self.uploads.cleaning.saturating_sub(1);
        match &cleaned.how {
            Cleanup::Done => self.forget_session(id, cleaned),
            Cleanup::Refused(why) => {
                self.tell_of_leftovers(id, &cleaned.server, &format!("did not drop what it has ({why})"));
            }
            Cleanup::OutOfTime => self.tell_of_leftovers(id, &cleaned.server, "did not answer in time"),
        }
    }

    /// It is cleaned up: the record need not know of it.
    fn forget_session(&mut self, id: XferId, cleaned: &Cleaned) {
        let gone = |session: &UploadSession| session.server == cleaned.server && session.protocol == cleaned.protocol;
        if let Err(error) = self.persist.forget_session(id, gone) {
            tracing::warn!(%error, "what was cleaned up at a server is still in the state file");
        }
    }

    /// Waits for servers that are being cleaned up.
    pub(super) async fn finish_cleaning(&mut self, stop: &Stop) {
        let begun = self.clock.now().mono;
        let mut until = begun + ABANDON_PATIENCE + HURRIED;
        let mut hurried = false;
        while self.uploads.cleaning > 0 {
            let now = self.clock.now().mono;
            if now >= until {
                return;
            }
            tokio::select! {
                biased;
                () = stop.requested(), if !hurried => {
                    hurried = true;
                    until = until.min(now + HURRIED);
                }
                mail = self.mailbox.recv() => self.receive(mail),
                () = sleep_until(Some(until), now) => {}
            }
        }
    }
}
