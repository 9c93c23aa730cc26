//! The end of an upload: it is closed, and what was stored is looked at. An answer of 200 may be an error, and an upload
//! that is gone may have been closed by a request whose answer was lost.

use super::answers::{foreign, is_busy};
use super::parts::{bare, composite, is_composite, md5_of};
use super::refusal::{fault_of, is_encrypted, store_failure, tag_of};
use super::request::{Authority, Op};
use super::xml::{Element, tag};
use super::{S3, Summing};
use crate::core::digest::{Algorithm, Expected};
use crate::core::range::{ByteRange, Offset};
use crate::core::upload::ask::Answer;
use crate::core::upload::failure::UpFailure;
use crate::core::upload::found::{Call, Found, Job, Proof, Turn};
use crate::core::upload::session::Before;
use crate::core::upload::verdict::{Row, store_row};
use crate::core::upload::wire::{is_later, is_new, is_untouched, size_told, standing, wrong_size};

/// What the tag of the whole says.
enum Tag {
    /// It is made of the MD5s of what was sent.
    Ours,
    /// It is made of others.
    Other(UpFailure),
    /// It is of a kind that says nothing.
    Mute,
}

impl S3 {
    /// The answer to the closing request.
    pub(super) fn closed(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn {
        let fault = fault_of(answer);
        let word = fault.as_ref().map(|fault| fault.word.clone()).unwrap_or_default();
        if word == "NoSuchUpload" || (fault.is_none() && matches!(answer.status, 404 | 410)) {
            return self.doubt(job, call, answer);
        }
        if let Some(fault) = fault.filter(|_| store_row(call, &word, None) == Some(Row::Probe)) {
            if self.refused_list {
                return Turn::failed(store_failure(call, answer, fault));
            }
            self.refused_list = true;
            return self.list_again(job);
        }
        if !answer.is_success() || !word.is_empty() {
            return self.refused(job, call, answer);
        }
        let root = Element::read(&answer.body).filter(|root| root.answers("CompleteMultipartUpload"));
        // The parts may all be there still: the next session asks.
        let Some(root) = root else { return foreign(answer, "it does not say that the upload is closed") };
        self.given(root.value("ETag").and_then(tag), answer);
        if self.can_look() { self.issue(job, Op::Head) } else { self.unseen(job, answer) }
    }

    /// The tag that the store gave the whole.
    pub(super) fn given(&mut self, tag: Option<String>, answer: &Answer) {
        self.whole_tag = tag.clone().filter(|_| !is_encrypted(answer));
        self.given_tag = tag;
    }

    /// Was it closed by a request whose answer was lost?
    fn doubt(&mut self, job: &Job, call: Call, answer: &Answer) -> Turn {
        if self.can_look() { self.issue(job, Op::Doubt) } else { self.refused(job, call, answer) }
    }

    fn can_look(&self) -> bool {
        match &self.authority {
            Authority::Signed(_) => true,
            Authority::Manifest(manifest) => manifest.head.is_some(),
        }
    }

    /// What stands there after it was closed.
    pub(super) fn headed(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn {
        if let Some(turn) = self.learned(job, answer, None) {
            return turn;
        }
        let told = size_told(answer);
        match answer.status {
            200..=299 if told.is_some_and(|told| told != job.size()) => Turn::failed(wrong_size(job, told)),
            200..=299 => match self.tag_says(job, tag_of(answer).as_deref(), is_encrypted(answer)) {
                Tag::Ours => Turn::Found(Found::Complete(Proof::Digest(Algorithm::Md5))),
                Tag::Other(failure) => Turn::failed(failure),
                Tag::Mute if job.demands_reading() || self.is_as_before(job, answer) => self.compare(job, answer),
                Tag::Mute if told.is_some() => Turn::Found(Found::Complete(Proof::Size)),
                Tag::Mute => Turn::Found(Found::Complete(Proof::Status)),
            },
            404 | 410 => Turn::failed(wrong_size(job, None)),
            // Who may write need not be allowed to look.
            401 | 403 | 405 | 501 => self.unseen(job, answer),
            _ => self.refused(job, call, answer),
        }
    }

    /// What stands there has the tag of what stood there before, and neither one that the store gave what was sent nor a later
    /// time: it is the old object, or one of the same content where tags are made of that.
    fn is_as_before(&self, job: &Job, answer: &Answer) -> bool {
        let (now, before) = (standing(answer), job.session.target.before.as_ref().unwrap_or(&Before::Untold));
        let given =
            tag_of(answer).is_some_and(|tag| self.given_tag.as_deref().is_some_and(|ours| bare(ours) == bare(&tag)));
        !given && !is_later(&now, before) && is_untouched(&now, before)
    }

    /// Only its content tells, so it is read.
    fn compare(&mut self, job: &Job, answer: &Answer) -> Turn {
        if matches!(self.authority, Authority::Manifest(_)) {
            return Turn::failed(unread(job, answer));
        }
        match job.source.digest.clone() {
            Some(digest) => self.read_back(job, digest),
            None => {
                self.summing = Summing::ReadBack;
                let range = ByteRange::new(Offset::ZERO, job.size().as_end());
                Turn::Digest { range, algorithm: Algorithm::Sha256 }
            }
        }
    }

    pub(super) fn read_back(&mut self, job: &Job, by: Expected) -> Turn {
        self.read_by = Some(by);
        self.issue(job, Op::Read)
    }

    /// The content of what stands there.
    pub(super) fn was_read(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn {
        if is_busy(answer.status) {
            return self.refused(job, call, answer);
        }
        match (&answer.digest, &self.read_by) {
            (Some(found), Some(ours)) if answer.status == 200 && found.algorithm == ours.algorithm => {
                if found == ours && answer.length == job.size() {
                    return Turn::Found(Found::Complete(Proof::Digest(ours.algorithm)));
                }
                let (algorithm, ours, found) = (ours.algorithm.name(), ours.hex(), found.hex());
                Turn::failed(UpFailure::WrongDigest { algorithm, ours, found })
            }
            _ => Turn::failed(unread(job, answer)),
        }
    }

    /// Nobody lets us look: the tag that the store gave the whole has to do, where it gave one.
    fn unseen(&self, job: &Job, answer: &Answer) -> Turn {
        match self.tag_says(job, self.whole_tag.as_deref(), false) {
            Tag::Ours => Turn::Found(Found::Complete(Proof::Digest(Algorithm::Md5))),
            Tag::Other(failure) => Turn::failed(failure),
            Tag::Mute if job.demands_reading() => Turn::failed(unread(job, answer)),
            Tag::Mute => Turn::Found(Found::Complete(Proof::Status)),
        }
    }

    /// The upload is gone: it counts as closed only if what stands there is the file, by its tag, or by its size where
    /// the tag says nothing and something else stood there before.
    pub(super) fn in_doubt(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn {
        if let Some(turn) = self.learned(job, answer, None) {
            return turn;
        }
        if is_busy(answer.status) {
            return self.refused(job, call, answer);
        }
        let before = job.session.target.before.as_ref().unwrap_or(&Before::Untold);
        if !answer.is_success() || size_told(answer) != Some(job.size()) {
            return self.gone();
        }
        match self.tag_says(job, tag_of(answer).as_deref(), is_encrypted(answer)) {
            Tag::Ours => Turn::Found(Found::Complete(Proof::Digest(Algorithm::Md5))),
            Tag::Mute if is_new(&standing(answer), before) && job.demands_reading() => self.compare(job, answer),
            Tag::Mute if is_new(&standing(answer), before) => Turn::Found(Found::Complete(Proof::Size)),
            Tag::Mute | Tag::Other(_) => self.gone(),
        }
    }

    /// Begins anew, where that is possible.
    fn gone(&self) -> Turn {
        match self.authority {
            Authority::Signed(_) => Turn::Found(Found::Lost),
            Authority::Manifest(_) => Turn::failed(UpFailure::UrlExpired),
        }
    }

    fn tag_says(&self, job: &Job, told: Option<&str>, encrypted: bool) -> Tag {
        let (Some(told), false) = (told, encrypted) else { return Tag::Mute };
        let parts = &job.session.parts;
        let ours = if self.is_single(job) {
            let told = parts.first().map(|part| bare(&part.etag).to_owned()).filter(|tag| md5_of(tag).is_some());
            // Of the body that was sent in this session it is known, whatever the store said of it.
            self.sums.md5.as_ref().map(Expected::hex).or(told)
        } else {
            composite(parts)
        };
        let comparable = match self.is_single(job) {
            true => md5_of(told).is_some(),
            false => is_composite(told),
        };
        match ours.filter(|_| comparable) {
            Some(ours) if ours.eq_ignore_ascii_case(bare(told)) => Tag::Ours,
            Some(ours) => {
                let (algorithm, found) = (Algorithm::Md5.name(), bare(told).to_owned());
                Tag::Other(UpFailure::WrongDigest { algorithm, ours, found })
            }
            None => Tag::Mute,
        }
    }
}

/// Only the content could tell, and it cannot be read.
fn unread(job: &Job, answer: &Answer) -> UpFailure {
    if job.demands_reading() { UpFailure::Unread { code: answer.status } } else { UpFailure::Untouched }
}
