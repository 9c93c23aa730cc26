//! The end of a `put`: what is stored is looked at, read back where that is cheap, moved into place, and looked at again.

use super::{At, Put, before, delete, is_trouble, look};
use crate::core::digest::Algorithm;
use crate::core::range::{ByteRange, Offset};
use crate::core::upload::ask::{Answer, Ask, Keep, Method};
use crate::core::upload::failure::UpFailure;
use crate::core::upload::found::{Found, Job, Proof, Turn};
use crate::core::upload::session::RangesHere;
use crate::core::upload::wire::{head, is_new, size_told, standing, wrong_size};

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
            200..=299 => self.check(job),
            // A server that is not to be asked: what it said of the body has to do.
            _ => self.publish(job),
        }
    }

    fn check(&mut self, job: &mut Job) -> Turn {
        let wanted = job.size() <= job.read_back || job.session.target.cut_within;
        if job.size().0 == 0 || !wanted || self.read.is_some() {
            return self.publish(job);
        }
        match &job.source.digest {
            Some(digest) => self.read_back(job, digest.algorithm),
            None => {
                let range = ByteRange::new(Offset::ZERO, job.size().as_end());
                Turn::Digest { range, algorithm: Algorithm::Sha256 }
            }
        }
    }

    pub(super) fn read_back(&mut self, job: &Job, algorithm: Algorithm) -> Turn {
        let mut ask = head(&Self::place(job));
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
                self.publish(job)
            }
            // Pieces were joined over a cut, and nothing can show that they fit: all again, in one piece.
            _ if job.session.target.cut_within => {
                job.session.target.ranges = RangesHere::Broken;
                Turn::Found(Found::Anew)
            }
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
    fn in_place(&self, job: &Job, answer: &Answer) -> Turn {
        let told = size_told(answer);
        match answer.status {
            200..=299 if told == Some(job.size()) => Turn::Found(Found::Complete(self.proof(Proof::Size))),
            200..=299 if told.is_some() => Turn::failed(wrong_size(job, told)),
            404 | 410 => Turn::failed(wrong_size(job, None)),
            _ => Turn::Found(Found::Complete(self.proof(Proof::Status))),
        }
    }

    /// What stands under the final name, when the temporary one is gone: a move whose answer was lost, or nothing of ours.
    fn in_doubt(&self, job: &Job, answer: &Answer) -> Turn {
        let ours = answer.is_success() && size_told(answer) == Some(job.size());
        if ours && is_new(&standing(answer), before(job)) {
            return Turn::Found(Found::Complete(self.proof(Proof::Size)));
        }
        Turn::Found(Found::Anew)
    }
}
