//! What is made of an answer that says no: what can be learned from it is tried once, the rest is a failure.

use super::S3;
use super::manifest;
use super::request::Authority;
use super::xml::{Element, Fault};
use crate::core::upload::ask::Answer;
use crate::core::upload::failure::UpFailure;
use crate::core::upload::found::{Call, Found, Job, Turn};
use crate::core::upload::verdict::{Row, store_row};
use crate::core::url::MirrorUrl;
use crate::core::validator::read_http_date;

/// The error that an answer carries in its body.
pub(super) fn fault_of(answer: &Answer) -> Option<Fault> {
    Element::read(&answer.body).and_then(|root| root.fault())
}

/// The failure that an error is.
pub(super) fn store_failure(call: Call, answer: &Answer, fault: Fault) -> UpFailure {
    let (code, retry_after) = (answer.status, answer.retry_after);
    UpFailure::Store { call, code, word: fault.word, retry_after, message: fault.message }
}

/// The end of a call by an error; an upload that is not known any more is lost.
pub(super) fn ended(call: Call, answer: &Answer, fault: Option<Fault>) -> Turn {
    let Some(fault) = fault else { return Turn::status(answer) };
    match store_row(call, &fault.word, answer.retry_after) {
        Some(Row::NewSession) => Turn::Found(Found::Lost),
        // Bare statuses that lose a session are none of the store's errors.
        _ => Turn::failed(store_failure(call, answer, fault)),
    }
}

/// Is it a refusal of a signed URL because its time is over?
pub(super) fn is_expired(url: &MirrorUrl, job: &Job, answer: &Answer, fault: Option<&Fault>) -> bool {
    let said = fault.is_some_and(|fault| fault.message.to_ascii_lowercase().contains("expired"));
    let past = manifest::ends(url).is_some_and(|at| at <= job.now);
    answer.status == 403 && (said || past)
}

impl S3 {
    /// What to do about an answer that says no.
    pub(super) fn refused(&mut self, job: &Job, call: Call, answer: &Answer) -> Turn {
        let fault = fault_of(answer);
        if let Some(turn) = self.learned(job, answer, fault.as_ref()) {
            return turn;
        }
        if let Authority::Manifest(manifest) = &self.authority {
            if is_expired(&manifest.complete, job, answer, fault.as_ref()) {
                return Turn::failed(UpFailure::UrlExpired);
            }
            // It cannot be begun anew: that takes new URLs.
            if let Some(fault) = fault.filter(|_| answer.status == 404) {
                return Turn::failed(store_failure(call, answer, fault));
            }
            return ended(call, answer, fault_of(answer));
        }
        ended(call, answer, fault)
    }

    /// The same request again, by what the answer taught: the server's clock, the bucket's region, another host.
    pub(super) fn learned(&mut self, job: &Job, answer: &Answer, fault: Option<&Fault>) -> Option<Turn> {
        let op = self.op;
        let Authority::Signed(signed) = &mut self.authority else { return None };
        if fault.is_some_and(|fault| fault.word == "RequestTimeTooSkewed") {
            let date = answer.field("date").and_then(read_http_date);
            return date.filter(|date| signed.learn_clock(*date, job.now)).map(|_| self.issue(job, op));
        }
        let region = answer.field("x-amz-bucket-region").or_else(|| fault.and_then(|f| f.region.as_deref()));
        if region.is_some_and(|region| signed.learn_region(job, region)) {
            return Some(self.issue(job, op));
        }
        let location = answer.field("location").filter(|_| matches!(answer.status, 301 | 302 | 307 | 308))?;
        match signed.learn_location(job, location, answer.status)? {
            Ok(()) => Some(self.issue(job, op)),
            Err(failure) => Some(Turn::failed(failure)),
        }
    }
}

/// The tag that an answer names.
pub(super) fn tag_of(answer: &Answer) -> Option<String> {
    answer.field("etag").and_then(super::xml::tag)
}

/// Objects under a key of its own have tags that look like MD5s and are none.
pub(super) fn is_encrypted(answer: &Answer) -> bool {
    let by_service = answer.field("x-amz-server-side-encryption").is_some_and(|how| how.starts_with("aws:kms"));
    by_service || answer.field("x-amz-server-side-encryption-customer-algorithm").is_some()
}
