//! One PUT to a URL that somebody signed: the whole at once, under its own name, with nothing to resume and nothing to
//! ask. The tag in the answer, where it is an MD5, is the evidence.

use super::manifest::is_signed_field;
use super::parts::{LARGEST_PART, md5_of};
use super::refusal::{ended, fault_of, is_encrypted, is_expired, tag_of};
use crate::core::digest::{Algorithm, Expected};
use crate::core::range::{ByteRange, Length, Offset};
use crate::core::upload::ask::{Answer, Ask, Body, Method};
use crate::core::upload::failure::{FoundAtServer, UpFailure};
use crate::core::upload::found::{Call, Found, Job, Proof, Turn};
use crate::core::upload::protocol::{Backward, Carries, EmptyFile, Foreign, Protocol, UploadProtocol, Ways};

/// One PUT to a signed URL, which is the server's URL.
#[derive(Debug, Default)]
pub struct SignedPut {
    /// The MD5 of the file.
    md5: Option<Expected>,
    /// What the answer proved.
    proof: Option<Proof>,
}

impl SignedPut {
    /// For a URL that [`super::is_signed`].
    pub fn new() -> Self {
        Self::default()
    }

    fn put(&self, job: &Job, range: ByteRange) -> Turn {
        let mut ask = Ask::new(Method::Put, job.server());
        // A field more than was signed for can void the signature, and so can one less.
        if is_signed_field(job.server(), "content-type") {
            ask = ask.with("content-type", job.media_type.clone());
        }
        Turn::ask(ask.carrying(Body::Source(range)))
    }

    fn sent(&mut self, job: &Job, call: Call, answer: &Answer) -> Turn {
        let fault = fault_of(answer);
        if is_expired(job.server(), job, answer, fault.as_ref()) {
            return Turn::failed(UpFailure::UrlExpired);
        }
        if !answer.is_success() || fault.is_some() {
            return ended(call, answer, fault);
        }
        let told = tag_of(answer).filter(|_| !is_encrypted(answer)).and_then(|tag| md5_of(&tag));
        self.proof = Some(match (told, &self.md5) {
            (Some(told), Some(ours)) if told == *ours => Proof::Digest(Algorithm::Md5),
            (Some(told), Some(ours)) => {
                let (algorithm, ours, found) = (Algorithm::Md5.name(), ours.hex(), told.hex());
                return Turn::failed(UpFailure::WrongDigest { algorithm, ours, found });
            }
            _ => Proof::Status,
        });
        Turn::Found(Found::Confirmed(job.size().as_end()))
    }
}

impl UploadProtocol for SignedPut {
    fn protocol(&self) -> Protocol {
        Protocol::S3
    }

    fn ways(&self, _: &Job) -> Ways {
        Ways {
            floor: Length::ZERO,
            cap: None,
            segments: false,
            empty: EmptyFile::Sent,
            foreign: Foreign::Welcome,
            backward: Backward::Follow,
        }
    }

    fn carries(&self) -> Carries {
        Carries::Nothing
    }

    fn prepare(&mut self, job: &mut Job) -> Turn {
        if job.size() > LARGEST_PART {
            let why = FoundAtServer::AtMost(LARGEST_PART);
            return Turn::failed(UpFailure::Unsupported { protocol: Protocol::S3, why });
        }
        job.session.expires = super::manifest::ends(job.server());
        Turn::Found(Found::Ready(Some(Offset::ZERO)))
    }

    fn probe(&mut self, _: &mut Job) -> Turn {
        Turn::Found(Found::Confirmed(Offset::ZERO))
    }

    fn send(&mut self, job: &mut Job, range: ByteRange) -> Turn {
        let known = job.source.digest.clone().filter(|digest| digest.algorithm == Algorithm::Md5);
        self.md5 = known;
        match self.md5 {
            Some(_) => self.put(job, range),
            None => Turn::Digest { range, algorithm: Algorithm::Md5 },
        }
    }

    fn finish(&mut self, _: &mut Job) -> Turn {
        Turn::Found(Found::Complete(self.proof.unwrap_or(Proof::Status)))
    }

    fn abandon(&mut self, _: &mut Job) -> Turn {
        Turn::Found(Found::Lost)
    }

    fn answered(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn {
        self.sent(job, call, answer)
    }

    fn digested(&mut self, job: &mut Job, _: Call, digest: &Expected) -> Turn {
        self.md5 = Some(digest.clone());
        let range = ByteRange::new(Offset::ZERO, job.size().as_end());
        self.put(job, range)
    }
}
