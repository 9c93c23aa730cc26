//! `ietf`: resumable uploads for HTTP (draft-ietf-httpbis-resumable-upload-12, and its interop versions 6 to 8).
//!
//! The upload is created with an empty body, so that its URL is known before the first byte; an informational 104 is
//! taken where one comes, and needed nowhere.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use sfv::{BareItem, Dictionary, Item, ListEntry, Parser};

use super::ask::{Answer, Ask, Body, Interim, Method, single};
use super::failure::{FoundAtServer, UpFailure};
use super::found::{Call, Found, Job, Proof, Turn};
use super::protocol::{Backward, EmptyFile, Foreign, Protocol, UploadProtocol, Ways};
use super::session::{Handle, Phase};
use super::wire::{number, number_in, offset, session_url, wrong_size};
use super::{ABANDON_PATIENCE, LEAST_GROWTH};
use crate::core::digest::{Algorithm, Expected, repr_digests};
use crate::core::range::{ByteRange, Length};
use crate::core::time::Delay;

const VERSION_FIELD: &str = "upload-draft-interop-version";

/// Which text is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interop {
    /// Drafts -04 and -05.
    Six,
    /// Drafts -06 to -08.
    Seven,
    /// Drafts -09 to -12.
    #[default]
    Eight,
    /// No draft: the field that names one is not sent.
    Final,
}

/// Resumable uploads of the IETF.
#[derive(Debug, Default)]
pub struct Ietf {
    interop: Interop,
    at: At,
    limits: Limits,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Head,
    /// A body after which more follow.
    Part,
    /// The body that ends the upload.
    Last,
    Other,
}

/// Upload-Limit, as far as it was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Limits {
    max: Option<u64>,
    min: Option<u64>,
    max_append: Option<u64>,
    min_append: Option<u64>,
    age: Option<u64>,
}

impl Interop {
    const fn number(self) -> Option<&'static str> {
        match self {
            Self::Six => Some("6"),
            Self::Seven => Some("7"),
            Self::Eight => Some("8"),
            Self::Final => None,
        }
    }

    /// How users write it: the number of the draft's interop version, or `final`.
    pub fn word(self) -> &'static str {
        self.number().unwrap_or("final")
    }

    /// The text of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Six, Self::Seven, Self::Eight, Self::Final].into_iter().find(|i| i.word() == word)
    }

    /// The key of Upload-Limit that tells how long an upload is kept.
    const fn age_key(self) -> &'static str {
        if matches!(self, Self::Six) { "expires" } else { "max-age" }
    }
}

impl Ietf {
    /// By this text.
    pub fn new(interop: Interop) -> Self {
        Self { interop, ..Self::default() }
    }

    fn ask(&mut self, at: At, ask: Ask) -> Turn {
        self.at = at;
        Turn::ask(match self.interop.number() {
            Some(number) => ask.with(VERSION_FIELD, number),
            None => ask,
        })
    }

    fn on_session(&mut self, job: &Job, method: Method) -> Option<Ask> {
        job.session.url().map(|url| Ask::new(method, url))
    }

    fn head(&mut self, job: &Job) -> Turn {
        match self.on_session(job, Method::Head) {
            Some(ask) => self.ask(At::Head, ask.with("cache-control", "no-store")),
            None => Turn::Found(Found::Lost),
        }
    }

    fn patch(&mut self, job: &Job, range: ByteRange) -> Turn {
        let last = range.end == job.size().as_end();
        let Some(ask) = self.on_session(job, Method::Patch) else { return Turn::Found(Found::Lost) };
        let mut ask = ask
            .with("upload-offset", range.start.0.to_string())
            .with("upload-complete", if last { "?1" } else { "?0" })
            .with("content-type", "application/partial-upload");
        if last {
            ask = ask.with("want-repr-digest", crate::core::digest::WANT_REPR_DIGEST);
        }
        let body = if range.is_empty() { Body::Bytes(Vec::new()) } else { Body::Source(range) };
        self.ask(if last { At::Last } else { At::Part }, ask.carrying(body))
    }

    fn created(&mut self, job: &mut Job, answer: &Answer) -> Turn {
        if !answer.is_success() {
            return Turn::status(answer);
        }
        if let Err(failure) = note_location(job, &answer.fields) {
            return Turn::failed(failure);
        }
        if job.session.handle.is_none() {
            // It took the empty body for the file.
            return unsupported(FoundAtServer::Version);
        }
        match self.obey(job, answer) {
            Some(failure) => Turn::failed(failure),
            None => Turn::Found(Found::Ready(Some(offset(answer, "upload-offset").unwrap_or_default()))),
        }
    }

    /// Takes note of the limits; the failure where they rule the file out.
    fn obey(&mut self, job: &mut Job, answer: &Answer) -> Option<UpFailure> {
        let limits = Limits::of(&answer.fields, self.interop)?;
        self.limits = limits;
        if let Some(age) = limits.age {
            job.session.expires = Some(job.now + Delay::from_secs(age));
        }
        let why = match limits {
            Limits { max: Some(max), .. } if job.size().0 > max => FoundAtServer::AtMost(Length(max)),
            Limits { min: Some(min), .. } if job.size().0 < min => FoundAtServer::AtLeast(Length(min)),
            _ => return None,
        };
        Some(UpFailure::Unsupported { protocol: Protocol::Ietf, why })
    }

    /// HEAD: how far it is, and whether it is closed.
    fn headed(&mut self, job: &mut Job, answer: &Answer) -> Turn {
        if !answer.is_success() {
            return Turn::status(answer);
        }
        if number(answer, "upload-length").is_some_and(|told| told != job.size().0) {
            return Turn::Found(Found::Lost);
        }
        if let Some(failure) = self.obey(job, answer) {
            return Turn::failed(failure);
        }
        let size = job.size().as_end();
        match (boolean(answer, "upload-complete"), offset(answer, "upload-offset")) {
            (Some(true), Some(at)) if at == size && job.session.reached == size => {
                Self::complete(job, answer, Proof::Size)
            }
            // Of an upload whose last body never went out to its end.
            (Some(true), Some(at)) if at == size => Turn::Found(Found::Confirmed(at)),
            (Some(true), at) => Turn::failed(wrong_size(job, at.map(|at| at.as_length()))),
            (_, Some(at)) => Turn::Found(Found::Confirmed(at)),
            (_, None) => foreign(answer, "it names no Upload-Offset"),
        }
    }

    /// Closed, and what the server says of the whole agrees.
    fn complete(job: &Job, answer: &Answer, proof: Proof) -> Turn {
        let named = repr_digests(&answer.fields);
        let Some(ours) = &job.source.digest else { return Turn::Found(Found::Complete(proof)) };
        match named.iter().find(|n| n.algorithm == ours.algorithm) {
            Some(found) if found == ours => Turn::Found(Found::Complete(Proof::Digest(ours.algorithm))),
            Some(found) => {
                let (algorithm, ours, found) = (ours.algorithm.name(), ours.hex(), found.hex());
                Turn::failed(UpFailure::WrongDigest { algorithm, ours, found })
            }
            None => Turn::Found(Found::Complete(proof)),
        }
    }

    /// The answer to a body, or to the closing request.
    fn appended(&mut self, job: &mut Job, answer: &Answer) -> Turn {
        let closed = boolean(answer, "upload-complete") == Some(true);
        let ended = self.at == At::Last;
        let size = job.size().as_end();
        match (answer.status, offset(answer, "upload-offset")) {
            (200..=299, Some(at)) if closed && ended && at != size => {
                Turn::failed(wrong_size(job, Some(at.as_length())))
            }
            (200..=299, _) if closed && ended => Self::complete(job, answer, Proof::Status),
            // Nobody has ended it.
            (200..=299, _) if closed => Turn::Found(Found::Uncertain),
            (409, Some(at)) if !closed => Turn::Found(Found::Confirmed(at)),
            // The upload was whole, and what it was for said no: nothing is left to resume.
            (code, _) if closed && ended && code >= 400 => {
                Turn::failed(UpFailure::Application { code, said: answer.said() })
            }
            (200..=299, Some(at)) => Turn::Found(Found::Confirmed(at)),
            (200..=299, None) => Turn::Found(Found::Uncertain),
            _ => Turn::status(answer),
        }
    }

    /// All bytes are there and the upload is open: it is closed, by an empty body.
    fn closing(&mut self, job: &mut Job, answer: &Answer) -> Turn {
        let end = job.size().as_end();
        match self.headed(job, answer) {
            Turn::Found(Found::Confirmed(at)) if at == end => self.patch(job, ByteRange::new(end, end)),
            other => other,
        }
    }
}

impl UploadProtocol for Ietf {
    fn protocol(&self) -> Protocol {
        Protocol::Ietf
    }

    fn ways(&self, _: &Job) -> Ways {
        Ways {
            floor: Length(self.limits.min_append.unwrap_or_default()).max(LEAST_GROWTH),
            cap: self.limits.max_append.filter(|n| *n > 0).map(Length),
            segments: true,
            empty: EmptyFile::Prepared,
            foreign: Foreign::Alien,
            backward: Backward::Void,
        }
    }

    fn prepare(&mut self, job: &mut Job) -> Turn {
        if job.session.handle.is_some() {
            return Turn::Found(Found::Ready(None));
        }
        let mut ask = Ask::new(Method::Post, job.server())
            .with("upload-complete", "?0")
            .with("upload-length", job.size().0.to_string())
            .with("content-type", job.media_type.clone());
        if let Some(digest) = job.source.digest.as_ref().and_then(digest_field) {
            ask = ask.with("repr-digest", digest);
        }
        self.ask(At::Other, ask.carrying(Body::Bytes(Vec::new())))
    }

    fn probe(&mut self, job: &mut Job) -> Turn {
        self.head(job)
    }

    fn send(&mut self, job: &mut Job, range: ByteRange) -> Turn {
        job.session.phase = Phase::Sending;
        self.patch(job, range)
    }

    fn finish(&mut self, job: &mut Job) -> Turn {
        // If the closing request was sent before, it may have been heard: a look first.
        if std::mem::replace(&mut job.session.phase, Phase::Finishing) == Phase::Finishing {
            return self.head(job);
        }
        let end = job.size().as_end();
        self.patch(job, ByteRange::new(end, end))
    }

    fn abandon(&mut self, job: &mut Job) -> Turn {
        match self.on_session(job, Method::Delete) {
            Some(mut ask) => {
                ask.patience = ABANDON_PATIENCE;
                self.ask(At::Other, ask)
            }
            None => Turn::Found(Found::Lost),
        }
    }

    fn informed(&mut self, job: &mut Job, interim: &Interim) {
        let ours = self.interop.number();
        if interim.status != 104 || (ours.is_some() && single(&interim.fields, VERSION_FIELD) != ours) {
            return;
        }
        if job.session.handle.is_none() {
            // One that leads elsewhere is judged when the final answer repeats it.
            let _ = note_location(job, &interim.fields);
        }
        if let Some(at) = number_in(&interim.fields, "upload-offset") {
            let at = crate::core::range::Offset(at).min(job.session.reached);
            job.session.confirmed = job.session.confirmed.max(at);
        }
    }

    fn answered(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn {
        match (call, self.at) {
            (Call::Prepare, _) => self.created(job, answer),
            (Call::Abandon, _) => Turn::Found(Found::Lost),
            (Call::Finish, At::Head) => self.closing(job, answer),
            (_, At::Head) => self.headed(job, answer),
            (_, At::Part | At::Last | At::Other) => self.appended(job, answer),
        }
    }

    fn digested(&mut self, _: &mut Job, _: Call, _: &Expected) -> Turn {
        Turn::Found(Found::Uncertain)
    }
}

impl Limits {
    /// The limits of an answer. A value of another type than a whole number voids the field; unknown keys are none.
    fn of(fields: &HeaderMap, interop: Interop) -> Option<Self> {
        let dictionary: Dictionary = Parser::new(single(fields, "upload-limit")?).parse().ok()?;
        let mut limits = Self::default();
        for (key, entry) in &dictionary {
            let place = match key.as_str() {
                "max-size" => &mut limits.max,
                "min-size" => &mut limits.min,
                "max-append-size" => &mut limits.max_append,
                "min-append-size" => &mut limits.min_append,
                key if key == interop.age_key() => &mut limits.age,
                _ => continue,
            };
            *place = Some(whole(entry)?);
        }
        Some(limits)
    }
}

fn whole(entry: &ListEntry) -> Option<u64> {
    let ListEntry::Item(item) = entry else { return None };
    let BareItem::Integer(number) = item.bare_item else { return None };
    u64::try_from(i64::from(number)).ok()
}

/// A field that is `?0` or `?1`.
fn boolean(answer: &Answer, name: &str) -> Option<bool> {
    let item: Item = Parser::new(answer.field(name)?).parse().ok()?;
    match item.bare_item {
        BareItem::Boolean(value) => Some(value),
        _ => None,
    }
}

/// The URL of the session, where a Location names one that may be followed.
fn note_location(job: &mut Job, fields: &HeaderMap) -> Result<(), UpFailure> {
    if let Some(location) = single(fields, "location") {
        job.session.handle = Some(Handle::Url(session_url(job.server(), location, false)?));
    }
    Ok(())
}

/// The digest of the whole as a field (RFC 9530), by the algorithms that it has.
fn digest_field(digest: &Expected) -> Option<String> {
    let name = match digest.algorithm {
        Algorithm::Sha256 => "sha-256",
        Algorithm::Sha512 => "sha-512",
        _ => return None,
    };
    Some(format!("{name}=:{}:", STANDARD.encode(&digest.bytes)))
}

fn unsupported(why: FoundAtServer) -> Turn {
    Turn::failed(UpFailure::Unsupported { protocol: Protocol::Ietf, why })
}

fn foreign(answer: &Answer, what: &'static str) -> Turn {
    Turn::failed(UpFailure::Foreign { protocol: Protocol::Ietf, code: answer.status, what })
}
