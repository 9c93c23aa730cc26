//! `tus` 1.0: creation, creation with upload, expiration, checksum, termination.

mod finish;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::ask::{Answer, Ask, Body, Method};
use super::failure::{FoundAtServer, UpFailure};
use super::found::{Call, Found, Job, Turn};
use super::protocol::{Backward, EmptyFile, Foreign, Protocol, UploadProtocol, Ways};
use super::session::Handle;
use super::wire::{number, offset, session_url};
use super::{ABANDON_PATIENCE, LEAST_GROWTH};
use crate::core::digest::{Algorithm, Expected};
use crate::core::range::{ByteRange, Length, Offset};
use crate::core::validator::read_http_date;

const VERSION: &str = "1.0.0";

/// A file up to this size goes along with the request that creates it, where the server takes that. A larger one would
/// be lost with the answer that names its URL.
const WITH_CREATION: Length = Length(1 << 20);

/// A chunk under a checksum is kept whole or not at all: so much of it at most.
const CHECKED_CHUNK: Length = Length(16 << 20);

/// tus 1.0.
#[derive(Debug, Default)]
pub struct Tus {
    at: At,
    authority: Authority,
    known: Known,
    /// The digest of the chunk to be sent.
    checksum: Option<String>,
    /// The last body was answered, so that the server's count is of all that it got.
    counted: bool,
    /// How often the server was asked at the end, since the last body.
    closings: u32,
}

/// Whose scheme, host and port a session URL has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authority {
    /// Those that the server names; another host than the one asked is refused.
    #[default]
    Named,
    /// Those of our own URL, whatever the server names: for servers that do not know that they stand behind a proxy.
    Ours,
}

/// What OPTIONS told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Known {
    with_upload: bool,
    checksum: Option<(Algorithm, &'static str)>,
    max: Option<Length>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Options,
    Create,
    /// A look at a session whose time has come, before a body.
    Late,
    /// A look at what was stored, where it can be read.
    Stored,
    /// All of it is read back.
    ReadBack,
    Session,
}

impl Tus {
    /// With session URLs at this authority.
    pub fn new(authority: Authority) -> Self {
        Self { authority, ..Self::default() }
    }

    fn ask(&mut self, at: At, ask: Ask) -> Turn {
        self.at = at;
        Turn::ask(ask.with("tus-resumable", VERSION))
    }

    /// On the session's URL; without one there is nothing to speak to.
    fn on_session(&mut self, job: &Job, method: Method) -> Option<Ask> {
        job.session.url().map(|url| Ask::new(method, url))
    }

    fn options(&mut self, job: &Job, answer: &Answer) -> Turn {
        if answer.is_success() {
            let speaks = answer.field("tus-version").is_none_or(|v| listed(v, VERSION));
            if !speaks {
                return unsupported(FoundAtServer::Version);
            }
            self.known = Known::of(answer);
        }
        match self.known.max {
            Some(max) if job.size() > max => unsupported(FoundAtServer::AtMost(max)),
            _ if job.session.handle.is_some() => Turn::Found(Found::Ready(None)),
            _ => self.create(job),
        }
    }

    fn create(&mut self, job: &Job) -> Turn {
        let (name, kind) = (STANDARD.encode(&job.name), STANDARD.encode(&job.media_type));
        let ask = Ask::new(Method::Post, job.server())
            .with("upload-length", job.size().0.to_string())
            .with("upload-metadata", format!("filename {name},filetype {kind}"));
        self.at = At::Create;
        if !self.known.with_upload || job.size() > WITH_CREATION || job.size().0 == 0 {
            return self.ask(At::Create, ask);
        }
        let all = ByteRange::new(Offset::ZERO, job.size().as_end());
        let ask = ask.with("content-type", "application/offset+octet-stream").carrying(Body::Source(all));
        self.ask(At::Create, ask)
    }

    fn created(&mut self, job: &mut Job, answer: &Answer) -> Turn {
        if !answer.is_success() {
            return Turn::status(answer);
        }
        let Some(location) = answer.field("location") else {
            return foreign(answer, "it names no Location");
        };
        let keep = self.authority == Authority::Ours;
        match session_url(job.server(), location, keep) {
            Ok(url) => {
                (self.counted, self.closings) = (true, 0);
                job.session.handle = Some(Handle::Url(url));
                note_expiry(job, answer);
                let at = if self.known.with_upload { offset(answer, "upload-offset") } else { None };
                Turn::Found(Found::Ready(Some(at.unwrap_or_default())))
            }
            Err(failure) => Turn::failed(failure),
        }
    }

    /// HEAD: how far it is, if it is ours.
    fn headed(&self, job: &mut Job, answer: &Answer) -> Turn {
        if !answer.is_success() {
            return Turn::status(answer);
        }
        note_expiry(job, answer);
        if number(answer, "upload-length").is_some_and(|told| told != job.size().0) {
            return Turn::Found(Found::Lost);
        }
        match offset(answer, "upload-offset") {
            Some(at) => {
                // It may have kept more of a body that broke off than it knows: some append wherever they stand.
                job.session.target.cut_within |= !self.counted && at < job.session.reached;
                Turn::Found(Found::Confirmed(at))
            }
            None => foreign(answer, "it names no Upload-Offset (does a proxy take fields away?)"),
        }
    }

    /// The body, after its digest where the server checks one.
    fn body(&mut self, job: &Job, range: ByteRange) -> Turn {
        match self.known.checksum {
            Some((algorithm, _)) => Turn::Digest { range, algorithm },
            None => self.patch(job, range),
        }
    }

    /// Its time has come, and it is still there?
    fn late(&mut self, job: &mut Job, range: ByteRange, answer: &Answer) -> Turn {
        match self.headed(job, answer) {
            Turn::Found(Found::Confirmed(at)) if at == range.start => self.body(job, range),
            other => other,
        }
    }

    fn patch(&mut self, job: &Job, range: ByteRange) -> Turn {
        (self.counted, self.closings) = (false, 0);
        let checksum = self.checksum.take();
        let Some(ask) = self.on_session(job, Method::Patch) else { return Turn::Found(Found::Lost) };
        let mut ask = ask
            .with("upload-offset", range.start.0.to_string())
            .with("content-type", "application/offset+octet-stream");
        if let Some(checksum) = checksum {
            ask = ask.with("upload-checksum", checksum);
        }
        self.ask(At::Session, ask.carrying(Body::Source(range)))
    }

    /// A 2xx can mean a part of it: only the offset counts.
    fn patched(&mut self, job: &mut Job, answer: &Answer) -> Turn {
        self.counted = true;
        if !answer.is_success() {
            return Turn::status(answer);
        }
        note_expiry(job, answer);
        Turn::Found(offset(answer, "upload-offset").map_or(Found::Uncertain, Found::Confirmed))
    }
}

impl UploadProtocol for Tus {
    fn protocol(&self) -> Protocol {
        Protocol::Tus
    }

    fn ways(&self, _: &Job) -> Ways {
        Ways {
            floor: LEAST_GROWTH,
            cap: self.known.checksum.map(|_| CHECKED_CHUNK),
            segments: true,
            empty: EmptyFile::Prepared,
            foreign: Foreign::Alien,
            backward: Backward::Follow,
        }
    }

    fn prepare(&mut self, job: &mut Job) -> Turn {
        self.ask(At::Options, Ask::new(Method::Options, job.server()))
    }

    fn probe(&mut self, job: &mut Job) -> Turn {
        match self.on_session(job, Method::Head) {
            Some(ask) => self.ask(At::Session, ask.with("cache-control", "no-store")),
            None => Turn::Found(Found::Lost),
        }
    }

    fn send(&mut self, job: &mut Job, range: ByteRange) -> Turn {
        match (job.session.is_past(job.now), job.session.url()) {
            (true, Some(url)) => self.ask(At::Late, Ask::new(Method::Head, url)),
            _ => self.body(job, range),
        }
    }

    fn finish(&mut self, job: &mut Job) -> Turn {
        self.closings += 1;
        self.probe(job)
    }

    fn abandon(&mut self, job: &mut Job) -> Turn {
        match self.on_session(job, Method::Delete) {
            Some(mut ask) => {
                ask.patience = ABANDON_PATIENCE;
                self.ask(At::Session, ask)
            }
            None => Turn::Found(Found::Lost),
        }
    }

    fn answered(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn {
        match (self.at, call) {
            (At::Options, _) => self.options(job, answer),
            (At::Create, _) => self.created(job, answer),
            (At::Late, Call::Send(range)) => self.late(job, range, answer),
            (At::Late, _) => self.headed(job, answer),
            (At::Session, Call::Probe) => self.headed(job, answer),
            (At::Stored, _) => Self::looked(job, answer),
            (At::ReadBack, _) => Self::was_read(job, answer),
            (At::Session, Call::Finish) => self.finished(job, answer),
            (At::Session, Call::Abandon) => Turn::Found(Found::Lost),
            (At::Session, _) => self.patched(job, answer),
        }
    }

    fn digested(&mut self, job: &mut Job, call: Call, digest: &Expected) -> Turn {
        let Call::Send(range) = call else { return self.known_now(job, digest) };
        let name = self.known.checksum.map(|(_, name)| name);
        self.checksum = name.map(|name| format!("{name} {}", STANDARD.encode(&digest.bytes)));
        self.patch(job, range)
    }
}

impl Known {
    fn of(answer: &Answer) -> Self {
        let extensions = answer.field("tus-extension").unwrap_or_default();
        let algorithms = answer.field("tus-checksum-algorithm").unwrap_or_default();
        let ours = [(Algorithm::Sha256, "sha256"), (Algorithm::Sha1, "sha1"), (Algorithm::Md5, "md5")];
        let checksum = ours.into_iter().find(|(_, name)| listed(algorithms, name));
        Self {
            with_upload: listed(extensions, "creation-with-upload"),
            checksum: checksum.filter(|_| listed(extensions, "checksum")),
            max: number(answer, "tus-max-size").map(Length),
        }
    }
}

/// Is it in a list with commas?
fn listed(list: &str, word: &str) -> bool {
    list.split(',').any(|one| one.trim() == word)
}

fn note_expiry(job: &mut Job, answer: &Answer) {
    if let Some(at) = answer.field("upload-expires").and_then(read_http_date) {
        job.session.expires = Some(at);
    }
}

fn unsupported(why: FoundAtServer) -> Turn {
    Turn::failed(UpFailure::Unsupported { protocol: Protocol::Tus, why })
}

fn foreign(answer: &Answer, what: &'static str) -> Turn {
    Turn::failed(UpFailure::Foreign { protocol: Protocol::Tus, code: answer.status, what })
}
