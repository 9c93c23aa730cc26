//! The end of a `tus` upload: the server is asked once more how much it holds, and, where that is demanded or its count is in
//! doubt, for what it holds.
//!
//! The protocol has no word for an upload that is whole and gone: a server may take it away to where it belongs, and answers from
//! then on what it answers for one that it lost (1.0, HEAD: 404, 410 or 403).

use super::{At, Tus};
use crate::core::digest::{Algorithm, Expected};
use crate::core::range::{ByteRange, ContentRange, Length, Offset};
use crate::core::upload::ask::{Answer, Keep, Method};
use crate::core::upload::failure::UpFailure;
use crate::core::upload::found::{Found, Job, Proof, Turn};
use crate::core::upload::wire::{number, wrong_size};

impl Tus {
    pub(super) fn finished(&mut self, job: &mut Job, answer: &Answer) -> Turn {
        let size = job.size().as_end();
        match self.headed(job, answer) {
            Turn::Found(Found::Confirmed(at)) if at == size && job.demands_reading() => self.compare(job),
            Turn::Found(Found::Confirmed(at)) if at == size && job.session.target.cut_within => self.look(job),
            Turn::Found(Found::Confirmed(at)) if at == size => Turn::Found(Found::Complete(Proof::Size)),
            Turn::Found(Found::Status(said)) if self.is_taken_away(job, said.code) => match job.demands_reading() {
                true => Turn::failed(UpFailure::Unread { code: said.code }),
                false => Turn::Found(Found::Complete(Proof::Status)),
            },
            Turn::Found(Found::Confirmed(at)) if at > size => Turn::failed(wrong_size(job, Some(at.as_length()))),
            other => other,
        }
    }

    /// Some servers forget an upload, or close it to us, at the very moment when it is whole. That is what its absence means in
    /// the very next answer after the one that told every byte. Where a question was lost between the two, the server may have
    /// died and come back without it, so that it is as gone as any.
    fn is_taken_away(&self, job: &Job, code: u16) -> bool {
        matches!(code, 403 | 404 | 410) && job.session.confirmed == job.size().as_end() && self.closings == 1
    }

    /// The size of what is stored, where the server lets it be read: its offset is only what it has counted.
    fn look(&mut self, job: &Job) -> Turn {
        match self.on_session(job, Method::Get) {
            Some(ask) => self.ask(At::Stored, ask.with("range", "bytes=0-0").with("cache-control", "no-cache")),
            None => Turn::Found(Found::Complete(Proof::Status)),
        }
    }

    /// Where nobody lets us look, nothing says so but the server's count, which a body that broke off may have left behind.
    pub(super) fn looked(job: &Job, answer: &Answer) -> Turn {
        let total = match answer.status {
            200 => number(answer, "content-length").map(Length),
            206 => match ContentRange::from_headers(&answer.fields) {
                Ok(Some(ContentRange::Satisfied { total, .. })) => total,
                _ => None,
            },
            _ => None,
        };
        match total {
            Some(total) if total != job.size() => Turn::failed(wrong_size(job, Some(total))),
            Some(_) => Turn::Found(Found::Complete(Proof::Size)),
            None => Turn::Found(Found::Complete(Proof::Status)),
        }
    }

    /// All of it is read back and compared.
    fn compare(&mut self, job: &Job) -> Turn {
        match &job.source.digest {
            Some(digest) => self.read_back(job, digest.algorithm),
            None => {
                let range = ByteRange::new(Offset::ZERO, job.size().as_end());
                Turn::Digest { range, algorithm: Algorithm::Sha256 }
            }
        }
    }

    /// The digest of the source that was missing for that.
    pub(super) fn known_now(&mut self, job: &mut Job, digest: &Expected) -> Turn {
        job.source.digest = Some(digest.clone());
        job.session.source.digest = Some(digest.clone());
        self.read_back(job, digest.algorithm)
    }

    fn read_back(&mut self, job: &Job, algorithm: Algorithm) -> Turn {
        let Some(mut ask) = self.on_session(job, Method::Get) else { return Turn::Found(Found::Lost) };
        ask.keep = Keep::Digest(algorithm);
        self.ask(At::ReadBack, ask.with("accept-encoding", "identity").with("cache-control", "no-cache"))
    }

    pub(super) fn was_read(job: &Job, answer: &Answer) -> Turn {
        let coded = answer.field("content-encoding").is_some_and(|c| !c.eq_ignore_ascii_case("identity"));
        match (&answer.digest, &job.source.digest) {
            (Some(found), Some(ours)) if answer.status == 200 && !coded && found.algorithm == ours.algorithm => {
                if found == ours && answer.length == job.size() {
                    return Turn::Found(Found::Complete(Proof::Digest(ours.algorithm)));
                }
                let (algorithm, ours, found) = (ours.algorithm.name(), ours.hex(), found.hex());
                Turn::failed(UpFailure::WrongDigest { algorithm, ours, found })
            }
            _ if matches!(answer.status, 408 | 423 | 425 | 429 | 500 | 502..=599) => Turn::status(answer),
            _ => Turn::failed(UpFailure::Unread { code: answer.status }),
        }
    }
}
