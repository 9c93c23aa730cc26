//! What the store holds of an upload in parts: its own list, page by page, compared with the record and, where that
//! does not know a part, with the file.

use std::collections::VecDeque;

use super::answers::foreign;
use super::parts::{self, MAX_PARTS, bare, md5_of};
use super::refusal::fault_of;
use super::request::{Authority, Op};
use super::xml::Element;
use super::{Finding, S3, Summing};
use crate::core::digest::{Algorithm, Expected};
use crate::core::upload::ask::Answer;
use crate::core::upload::found::{Call, Found, Job, Turn};
use crate::core::upload::session::{Part, Phase};

/// What is known of the store's list while it is read.
#[derive(Debug, Default)]
pub(super) struct Listing {
    found: Vec<Part>,
    /// Parts whose bytes have to be compared.
    doubtful: VecDeque<Part>,
    trust: Trust,
    /// The tag of an object that may be the file.
    pub(super) standing: Option<String>,
}

/// What a part counts by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Trust {
    /// By its tag, if the record has it too; else by its bytes.
    #[default]
    Record,
    /// By its bytes alone: the store refused what the record has.
    Bytes,
}

impl S3 {
    /// Is there a way to ask for the list of parts?
    pub(super) const fn has_list(&self) -> bool {
        match &self.authority {
            Authority::Signed(_) => true,
            Authority::Manifest(manifest) => manifest.list.is_some(),
        }
    }

    /// Asks what the store holds. Where it cannot be asked, the record has to do: closing the upload will show.
    pub(super) fn list(&mut self, job: &mut Job) -> Turn {
        self.listing = Listing::default();
        if self.has_list() { self.issue(job, Op::List(0)) } else { Self::by_record(job) }
    }

    /// The same after the store has refused the list of parts: nothing that it confirmed is taken for granted.
    pub(super) fn list_again(&mut self, job: &mut Job) -> Turn {
        self.listing = Listing { trust: Trust::Bytes, ..Listing::default() };
        if self.has_list() {
            return self.issue(job, Op::List(0));
        }
        job.session.parts.clear();
        Self::by_record(job)
    }

    fn by_record(job: &Job) -> Turn {
        match Self::cuts(job) {
            Some(cuts) => Turn::Found(Found::Confirmed(cuts.front(&job.session.parts))),
            None => Turn::Found(Found::Lost),
        }
    }

    pub(super) fn listed(&mut self, job: &mut Job, call: Call, marker: u32, answer: &Answer) -> Turn {
        let root = Element::read(&answer.body);
        if !answer.is_success() || fault_of(answer).is_some() {
            return self.no_list(job, call, answer);
        }
        let Some(page) = root.and_then(|root| root.page()) else {
            return foreign(answer, "it is no list of parts");
        };
        self.listing.found.extend(page.parts);
        let full = self.listing.found.len() as u64 >= MAX_PARTS;
        match (page.next, &self.authority) {
            (None, _) => self.reconcile(job, None),
            // A signed URL gives the first page only.
            (Some(next), Authority::Manifest(_)) => {
                self.finding = Finding::ByRecord;
                self.reconcile(job, Some(next))
            }
            (Some(next), _) if next > marker && !full => self.issue(job, Op::List(next)),
            _ => foreign(answer, "its list of parts does not end"),
        }
    }

    /// The upload is gone, or the list is not for us.
    fn no_list(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn {
        let word = fault_of(answer).map(|fault| fault.word).unwrap_or_default();
        let gone = word == "NoSuchUpload" || (word.is_empty() && matches!(answer.status, 404 | 410));
        if gone && job.session.phase == Phase::Finishing {
            return self.issue(job, Op::Doubt);
        }
        // A refusal that says nothing else is of the list: of the keys or the URL, the next part will hear it too.
        let bare = word.is_empty() && answer.status == 403;
        let not_for_us = bare || word == "AccessDenied" || matches!(answer.status, 405 | 501);
        if not_for_us && self.listing.found.is_empty() {
            self.finding = Finding::ByRecord;
            // Where the store has refused what the record has, nothing of it is taken for granted.
            if self.listing.trust == Trust::Bytes {
                job.session.parts.clear();
            }
            return Self::by_record(job);
        }
        self.refused(job, call, answer)
    }

    /// Which of the parts found are parts of the file? Beyond the list's end, where it was cut off, the record counts.
    fn reconcile(&mut self, job: &mut Job, cut_off: Option<u32>) -> Turn {
        let Some(cuts) = Self::cuts(job) else { return Turn::Found(Found::Lost) };
        let held = std::mem::take(&mut job.session.parts);
        let beyond = |part: &Part| cut_off.is_some_and(|last| part.number > last);
        if self.listing.found.iter().any(|part| md5_of(&part.etag).is_none()) {
            self.finding = Finding::ByRecord;
        }
        let mut kept: Vec<Part> = held.iter().filter(|part| beyond(part)).cloned().collect();
        for part in std::mem::take(&mut self.listing.found) {
            if !cuts.fits(&part) {
                continue;
            }
            let known = held.binary_search_by_key(&part.number, |one| one.number).ok().map(|at| &held[at]);
            match known.filter(|_| self.listing.trust == Trust::Record) {
                Some(known) if part.etag.is_empty() || bare(&part.etag) == bare(&known.etag) => {
                    parts::put(&mut kept, known.clone());
                }
                _ if md5_of(&part.etag).is_some() => self.listing.doubtful.push_back(part),
                _ => {}
            }
        }
        job.session.parts = kept;
        self.next_doubtful(job)
    }

    fn next_doubtful(&mut self, job: &mut Job) -> Turn {
        match (self.listing.doubtful.front(), Self::cuts(job)) {
            (Some(part), Some(cuts)) => {
                self.summing = Summing::Listed;
                Turn::Digest { range: cuts.range(part.number), algorithm: Algorithm::Md5 }
            }
            _ => Self::by_record(job),
        }
    }

    /// The bytes of a part that the store holds, as they are in the file.
    pub(super) fn compared_part(&mut self, job: &mut Job, ours: &Expected) -> Turn {
        if let Some(part) = self.listing.doubtful.pop_front()
            && md5_of(&part.etag).as_ref() == Some(ours)
        {
            parts::put(&mut job.session.parts, part);
        }
        self.next_doubtful(job)
    }
}
