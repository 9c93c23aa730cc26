//! The end of a `put`: what is stored is looked at, read back where that is cheap, moved into place, and looked at again.

use super::{At, Put, before, delete, is_trouble, look};
use crate::core::digest::Algorithm;
use crate::core::range::{ByteRange, Offset};
use crate::core::upload::ask::{Answer, Ask, Keep, Method};
use crate::core::upload::failure::UpFailure;
use crate::core::upload::found::{Found, Job, Proof, Turn};
use crate::core::upload::session::RangesHere;
use crate::core::upload::wire::{head, is_new, is_untouched, size_told, standing, wrong_size};

impl Put {
    pub(super) fn finishing(&mut self, job: &mut Job, answer: &Answer) -> Turn {
        if self.at != At::Delete && is_trouble(answer.status) && !(self.at == At::Move && answer.status == 502) {
            return Turn::status(answer);
        }
        match self.at {
            At::Stored => self.stored(job, answer),
            At::Final => self.in_doubt(job, answer),
            At::Moved => self.in_place(job, answer),
            At::ReadBack => self.was_read(job, answer),
            At::Move => self.moved(job, answer),
            _ => Self::go_direct(job),
        }
    }

    /// What stands where the bytes were sent.
    fn stored(&mut self, job: &mut Job, answer: &Answer) -> Turn {
        let told = size_told(answer);
        self.sized = answer.is_success() && told == Some(job.size());
        match answer.status {
            // Moved already, and the answer was lost? What is under the final name tells.
            404 | 410 if job.session.target.temporary.is_some() => self.ask(At::Final, head(job.server())),
            200..=299 if told.is_some_and(|told| told != job.size()) => Turn::failed(wrong_size(job, told)),
            404 | 410 => Turn::failed(wrong_size(job, None)),
            200..=299 => {
                self.doubted = job.session.target.temporary.is_none() && is_untouched(&standing(answer), before(job));
                self.check(job)
            }
            _ if job.demands_reading() => self.check(job),
            // A server that is not to be asked: what it said of the body has to do.
            _ => self.publish(job),
        }
    }

    /// Reads back what stands where the bytes were sent, where that is wanted, so that nothing spoilt is moved into place.
    fn check(&mut self, job: &mut Job) -> Turn {
        let wanted = job.size() <= job.read_back || job.session.target.cut_within || self.doubted;
        if !wanted || self.read.is_some() || (job.size().0 == 0 && self.sized) {
            return self.publish(job);
        }
        if job.size().0 == 0 && !job.demands_reading() {
            return self.publish(job);
        }
        self.compare(job)
    }

    fn compare(&mut self, job: &Job) -> Turn {
        match &job.source.digest {
            Some(digest) => self.read_back(job, digest.algorithm),
            None => {
                let range = ByteRange::new(Offset::ZERO, job.size().as_end());
                Turn::Digest { range, algorithm: Algorithm::Sha256 }
            }
        }
    }

    pub(super) fn read_back(&mut self, job: &Job, algorithm: Algorithm) -> Turn {
        let place = if self.in_place { job.server().clone() } else { Self::place(job) };
        let mut ask = head(&place);
        (ask.method, ask.keep) = (Method::Get, Keep::Digest(algorithm));
        self.ask(At::ReadBack, ask)
    }

    fn was_read(&mut self, job: &mut Job, answer: &Answer) -> Turn {
        let coded = answer.field("content-encoding").is_some_and(|c| !c.eq_ignore_ascii_case("identity"));
        match (&answer.digest, &job.source.digest) {
            (Some(found), Some(ours)) if answer.status == 200 && !coded && found.algorithm == ours.algorithm => {
                if found != ours || answer.length != job.size() {
                    let (algorithm, ours, found) = (ours.algorithm.name(), ours.hex(), found.hex());
                    return Turn::failed(UpFailure::WrongDigest { algorithm, ours, found });
                }
                self.read = Some(ours.algorithm);
                if self.in_place { Turn::Found(Found::Complete(self.proof(Proof::Size))) } else { self.publish(job) }
            }
            _ if self.doubted => Turn::failed(UpFailure::Untouched),
            _ if self.in_place => Turn::failed(UpFailure::Unread { code: answer.status }),
            // Pieces were joined over a cut, and nothing can show that they fit: all again, in one piece.
            _ if job.session.target.cut_within => {
                job.session.target.ranges = RangesHere::Broken;
                Turn::Found(Found::Anew)
            }
            _ if job.demands_reading() => Turn::failed(UpFailure::Unread { code: answer.status }),
            _ => self.publish(job),
        }
    }

    /// Under its own name already, or to be moved there.
    fn publish(&mut self, job: &Job) -> Turn {
        match &job.session.target.temporary {
            None => Turn::Found(Found::Complete(self.proof(if self.sized { Proof::Size } else { Proof::Status }))),
            Some(temporary) => {
                let to = job.server().without_credentials().secret_url().to_string();
                let ask = Ask::new(Method::Move, temporary).with("destination", to).with("overwrite", "T");
                self.ask(At::Move, ask)
            }
        }
    }

    fn proof(&self, otherwise: Proof) -> Proof {
        self.read.map_or(otherwise, Proof::Digest)
    }

    fn moved(&mut self, job: &Job, answer: &Answer) -> Turn {
        match answer.status {
            200 | 201 | 204 => self.ask(At::Moved, look(job, job.server())),
            // It cannot: the temporary file goes, and the bytes go straight to the name.
            _ => {
                let temporary = Self::place(job);
                self.ask(At::Delete, delete(&temporary))
            }
        }
    }

    /// What stands under the final name after a move that was answered.
    fn in_place(&mut self, job: &Job, answer: &Answer) -> Turn {
        let told = size_told(answer);
        self.doubted = is_untouched(&standing(answer), before(job));
        match answer.status {
            200..=299 if told == Some(job.size()) => self.arrived(job, Proof::Size),
            200..=299 if told.is_some() => Turn::failed(wrong_size(job, told)),
            404 | 410 => Turn::failed(wrong_size(job, None)),
            _ => self.arrived(job, Proof::Status),
        }
    }

    /// It is under its final name, as far as was told: there it is read where that is demanded, or where what stands there may be
    /// what stood there before.
    fn arrived(&mut self, job: &Job, proof: Proof) -> Turn {
        let nothing_to_read = job.size().0 == 0 && proof == Proof::Size;
        if nothing_to_read || !(self.doubted || job.demands_reading()) {
            return Turn::Found(Found::Complete(self.proof(proof)));
        }
        self.in_place = true;
        self.compare(job)
    }

    /// What stands under the final name, when the temporary one is gone: a move whose answer was lost, or nothing of ours.
    fn in_doubt(&mut self, job: &Job, answer: &Answer) -> Turn {
        let ours = answer.is_success() && size_told(answer) == Some(job.size());
        if ours && is_new(&standing(answer), before(job)) {
            return self.arrived(job, Proof::Size);
        }
        Turn::Found(Found::Anew)
    }
}
