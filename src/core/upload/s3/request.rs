//! The requests of S3, as those with keys send them and as a manifest has them signed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::manifest::Manifest;
use super::sign::{UNSIGNED, encoded, sha256_hex};
use super::signed::Signed;
use super::{S3, xml};
use crate::core::upload::ask::{Ask, Body, Keep, Method};
use crate::core::upload::found::{Found, Job, Turn};
use crate::core::upload::session::Handle;
use crate::core::upload::source::Likeness;
use crate::core::upload::wire::head;
use crate::core::upload::{ABANDON_PATIENCE, BODY_PATIENCE};
use crate::core::url::MirrorUrl;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// HEAD, to know what stood there.
    Before,
    /// CreateMultipartUpload.
    Create,
    /// UploadPart.
    Part(u32),
    /// PutObject.
    Whole,
    /// HEAD: does the file stand there already?
    Standing,
    /// ListParts, those after this number.
    List(u32),
    /// CompleteMultipartUpload.
    Complete,
    /// HEAD, to see what was stored.
    Head,
    /// HEAD: the upload is gone; was it closed?
    Doubt,
    /// GET: the content of what was stored.
    Read,
    /// AbortMultipartUpload.
    Abort,
    /// The same for one that is not gone on with.
    Clear,
    /// ListMultipartUploads of this key.
    Uploads,
    /// ListParts of one that may be ours: has it any?
    Peek,
}

/// By what right requests are made.
#[derive(Debug)]
pub(super) enum Authority {
    /// With keys.
    Signed(Signed),
    /// By URLs that are signed.
    Manifest(Box<Manifest>),
}

impl Authority {
    /// Do signatures cover bodies?
    pub(super) fn signs_bodies(&self, job: &Job) -> bool {
        matches!(self, Self::Signed(signed) if !signed.url(job).is_https())
    }

    /// An upload whose URLs are signed cannot be begun anew: of another version of the file its parts are sent again.
    pub(super) fn may_abort(&self, job: &Job) -> bool {
        match self {
            Self::Signed(_) => true,
            Self::Manifest(_) => !matches!(job.source.likeness(&job.session.source), Likeness::Changed(_)),
        }
    }
}

impl Op {
    pub(super) const fn method(self) -> Method {
        match self {
            Self::Before | Self::Standing | Self::Head | Self::Doubt => Method::Head,
            Self::Create | Self::Complete => Method::Post,
            Self::Part(_) | Self::Whole => Method::Put,
            Self::List(_) | Self::Uploads | Self::Peek | Self::Read => Method::Get,
            Self::Abort | Self::Clear => Method::Delete,
        }
    }
}

impl S3 {
    /// Sends this request, signed now. One that cannot be made means that the upload cannot be gone on with.
    pub(super) fn issue(&mut self, job: &Job, op: Op) -> Turn {
        self.op = op;
        match self.request(job, op) {
            Some(ask) => Turn::ask(ask),
            None => Turn::Found(Found::Lost),
        }
    }

    fn request(&self, job: &Job, op: Op) -> Option<Ask> {
        let url = match &self.authority {
            Authority::Signed(signed) => self.url_of(job, signed.url(job), op)?,
            Authority::Manifest(manifest) => manifest.url_of(op)?.clone(),
        };
        let mut ask = match op.method() {
            Method::Head => head(&url),
            method => Ask::new(method, &url),
        };
        ask = ask.carrying(self.body_of(job, op));
        match op {
            Op::Read => ask.keep = Keep::Digest(self.read_by.as_ref()?.algorithm),
            // A store joins the parts before it answers.
            Op::Complete => ask.patience = BODY_PATIENCE,
            Op::Abort | Op::Clear | Op::Uploads | Op::Peek => ask.patience = ABANDON_PATIENCE,
            _ => {}
        }
        match &self.authority {
            Authority::Manifest(_) => Some(ask),
            Authority::Signed(signed) => {
                let ask = self.described(job, op, ask);
                let payload = self.payload(job, &ask);
                signed.sign(ask, &payload, job.now)
            }
        }
    }

    fn url_of(&self, job: &Job, object: &MirrorUrl, op: Op) -> Option<MirrorUrl> {
        let upload = || match &job.session.handle {
            Some(Handle::Id(id)) => Some(encoded(id)),
            _ => None,
        };
        let query = match op {
            Op::Before | Op::Whole | Op::Standing | Op::Head | Op::Doubt | Op::Read => return Some(object.clone()),
            Op::Uploads => return Self::uploads_url(job, object),
            Op::Peek => format!("max-parts=1&uploadId={}", encoded(self.leftover.as_deref()?)),
            Op::Create => "uploads=".to_owned(),
            Op::Part(number) => format!("partNumber={number}&uploadId={}", upload()?),
            Op::List(marker) => format!("max-parts=1000&part-number-marker={marker}&uploadId={}", upload()?),
            Op::Complete | Op::Abort => format!("uploadId={}", upload()?),
            Op::Clear => format!("uploadId={}", encoded(self.leftover.as_deref()?)),
        };
        let mut url = object.secret_url().clone();
        url.set_query(Some(&query));
        MirrorUrl::parse(url.as_str()).ok()
    }

    fn body_of(&self, job: &Job, op: Op) -> Body {
        match op {
            Op::Part(_) | Op::Whole => Body::Source(Self::range_of(job, op)),
            Op::Complete => Body::Bytes(xml::closing(&job.session.parts).into_bytes()),
            _ => Body::Nothing,
        }
    }

    /// What those with keys add: the type, and the digest that the store is to check. What a URL was signed for is not
    /// known, so that nothing is added there.
    fn described(&self, job: &Job, op: Op, ask: Ask) -> Ask {
        let ask = match op {
            Op::Create | Op::Whole => ask.with("content-type", job.media_type.clone()),
            Op::Complete => ask.with("content-type", "application/xml"),
            _ => ask,
        };
        match (op, &self.sums.md5) {
            (Op::Part(_) | Op::Whole, Some(md5)) => ask.with("content-md5", STANDARD.encode(&md5.bytes)),
            _ => ask,
        }
    }

    /// What the signature says of the body.
    fn payload(&self, job: &Job, ask: &Ask) -> String {
        match &ask.body {
            Body::Nothing => sha256_hex(""),
            Body::Bytes(bytes) => sha256_hex(bytes),
            Body::Source(_) | Body::Framed { .. } => match &self.sums.sha256 {
                Some(sha256) if self.authority.signs_bodies(job) => sha256.hex(),
                _ => UNSIGNED.to_owned(),
            },
        }
    }
}

impl Manifest {
    fn url_of(&self, op: Op) -> Option<&MirrorUrl> {
        match op {
            Op::Part(number) => self.parts.get(number.checked_sub(1)? as usize),
            Op::Complete => Some(&self.complete),
            Op::Abort => self.abort.as_ref(),
            // What is signed cannot ask for another page.
            Op::List(0) => self.list.as_ref(),
            Op::Head | Op::Doubt | Op::Standing => self.head.as_ref(),
            Op::List(_) | Op::Before | Op::Create | Op::Whole | Op::Read | Op::Clear | Op::Uploads | Op::Peek => None,
        }
    }
}

/// For the server in memory: is the request signed with these keys, for this region?
#[cfg(test)]
pub(in crate::core::upload) fn verify_signature(ask: &Ask, credentials: &super::Credentials, region: &str) -> bool {
    let Some(at) = ask.field("x-amz-date").and_then(super::sign::moment) else { return false };
    let signing = super::sign::Signing { credentials, region, service: "s3", at };
    let payload = ask.field("x-amz-content-sha256").unwrap_or_default();
    let Some((names, signature)) = signing.of_ask(ask, payload) else { return false };
    let proof = ask.field("authorization").unwrap_or_default();
    let token = credentials.token.as_ref().map(super::Secret::expose);
    proof.ends_with(&format!("SignedHeaders={names}, Signature={signature}"))
        && ask.field("x-amz-security-token") == token
}
