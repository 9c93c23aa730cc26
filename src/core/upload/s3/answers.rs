//! The answers before the end: what stood there, an upload that was begun, bytes that arrived.

use super::parts::{self, md5_of};
use super::refusal::{fault_of, is_encrypted, tag_of};
use super::request::Op;
use super::xml::Element;
use super::{Finding, S3, Summing};
use crate::core::digest::{Algorithm, Expected};
use crate::core::range::{ByteRange, Offset};
use crate::core::upload::ask::Answer;
use crate::core::upload::failure::UpFailure;
use crate::core::upload::found::{Call, Found, Job, Turn};
use crate::core::upload::protocol::Protocol;
use crate::core::upload::session::{Handle, Part};
use crate::core::upload::wire::{size_told, standing};

/// So often may the same body arrive as something else.
const MAX_SPOILT: u32 = 3;

/// No name of an upload is longer.
const MAX_UPLOAD: usize = 2048;

impl S3 {
    /// What stood under the key before. Who may write need not be allowed to look, and a HEAD does not say why it is
    /// refused: the next request will.
    pub(super) fn looked_before(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn {
        if let Some(turn) = self.learned(job, answer, None) {
            return turn;
        }
        if is_busy(answer.status) {
            return self.refused(job, call, answer);
        }
        job.session.target.before = Some(standing(answer));
        self.create(job)
    }

    pub(super) fn created(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn {
        self.heard_of_creation(job);
        if !answer.is_success() || fault_of(answer).is_some() {
            return self.refused(job, call, answer);
        }
        let root = Element::read(&answer.body).filter(|root| root.answers("InitiateMultipartUpload"));
        let named = root.as_ref().and_then(|root| root.value("UploadId"));
        let fits = |id: &&str| (1..=MAX_UPLOAD).contains(&id.len()) && !id.chars().any(char::is_control);
        match named.filter(fits) {
            Some(id) => {
                job.session.handle = Some(Handle::Id(id.to_owned()));
                job.session.parts.clear();
                Turn::Found(Found::Ready(Some(Offset::ZERO)))
            }
            None => foreign(answer, "it names no upload"),
        }
    }

    pub(super) fn part_sent(&mut self, job: &mut Job, call: Call, number: u32, answer: &Answer) -> Turn {
        if !answer.is_success() {
            return self.refused(job, call, answer);
        }
        let Some(tag) = tag_of(answer) else { return foreign(answer, "it names no ETag of the part") };
        if let Some(failure) = self.spoilt_body(&tag, answer) {
            return self.again_or(job, Op::Part(number), failure);
        }
        self.spoilt = 0;
        if self.sums.md5.is_none() || md5_of(&tag) != self.sums.md5 {
            self.finding = Finding::ByRecord;
        }
        let Some(cuts) = Self::cuts(job) else { return Turn::Found(Found::Lost) };
        parts::put(&mut job.session.parts, Part { number, size: cuts.range(number).length(), etag: tag });
        Turn::Found(Found::Confirmed(cuts.front(&job.session.parts)))
    }

    pub(super) fn whole_sent(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn {
        if !answer.is_success() || fault_of(answer).is_some() {
            return self.refused(job, call, answer);
        }
        let tag = tag_of(answer);
        if let Some(failure) = tag.as_deref().and_then(|tag| self.spoilt_body(tag, answer)) {
            return self.again_or(job, Op::Whole, failure);
        }
        self.spoilt = 0;
        self.given(tag.clone(), answer);
        Self::whole_is_there(job, tag)
    }

    /// The whole is confirmed, under this tag.
    fn whole_is_there(job: &mut Job, tag: Option<String>) -> Turn {
        let size = job.size();
        job.session.parts = tag.map(|etag| Part { number: 1, size, etag }).into_iter().collect();
        Turn::Found(Found::Confirmed(size.as_end()))
    }

    /// A tag that looks like an MD5 and is not that of what was sent.
    fn spoilt_body(&self, tag: &str, answer: &Answer) -> Option<UpFailure> {
        let (told, ours) = (md5_of(tag)?, self.sums.md5.as_ref()?);
        (told != *ours && !is_encrypted(answer)).then(|| UpFailure::WrongDigest {
            algorithm: Algorithm::Md5.name(),
            ours: ours.hex(),
            found: told.hex(),
        })
    }

    /// The body is read and sent again; after the third time it is said.
    fn again_or(&mut self, job: &Job, op: Op, failure: UpFailure) -> Turn {
        self.spoilt += 1;
        self.sums = super::Sums::default();
        if self.spoilt < MAX_SPOILT {
            return self.body(job, op);
        }
        self.spoilt = 0;
        if let (Op::Part(_), Some(Handle::Id(id))) = (op, &job.session.handle) {
            self.leftover = Some(id.clone());
        }
        Turn::failed(failure)
    }

    /// Does the file stand there already, sent by a request whose answer was lost?
    pub(super) fn stands(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn {
        if let Some(turn) = self.learned(job, answer, None) {
            return turn;
        }
        if is_busy(answer.status) {
            return self.refused(job, call, answer);
        }
        let there = answer.is_success() && size_told(answer) == Some(job.size()) && !is_encrypted(answer);
        let tag = tag_of(answer).filter(|tag| there && md5_of(tag).is_some());
        let Some(tag) = tag else { return Turn::Found(Found::Confirmed(Offset::ZERO)) };
        self.listing.standing = Some(tag);
        let known = job.source.digest.clone().filter(|digest| digest.algorithm == Algorithm::Md5);
        match self.sums.md5.clone().or(known) {
            Some(md5) => self.compared_whole(job, &md5),
            None => {
                self.summing = Summing::Standing;
                let range = ByteRange::new(Offset::ZERO, job.size().as_end());
                Turn::Digest { range, algorithm: Algorithm::Md5 }
            }
        }
    }

    pub(super) fn compared_whole(&mut self, job: &mut Job, ours: &Expected) -> Turn {
        match self.listing.standing.take() {
            Some(tag) if md5_of(&tag).as_ref() == Some(ours) => Self::whole_is_there(job, Some(tag)),
            _ => Turn::Found(Found::Confirmed(Offset::ZERO)),
        }
    }
}

/// A status that says nothing about the object: it is asked another time.
pub(super) const fn is_busy(code: u16) -> bool {
    matches!(code, 408 | 425 | 429 | 300..=399 | 407 | 500 | 502..=599)
}

/// An answer that is none of S3's.
pub(super) fn foreign(answer: &Answer, what: &'static str) -> Turn {
    Turn::failed(UpFailure::Foreign { protocol: Protocol::S3, code: answer.status, what })
}
