//! `s3`: objects in stores that speak the protocol of Amazon S3, whole or in parts, by keys or by URLs that somebody
//! signed.
//!
//! A file of more than one part is sent as a multipart upload: begun, sent part by part, closed with the list of parts,
//! looked at. What the store holds is asked by listing its parts; one counts if its size is right and its tag is the one
//! that was confirmed to us, or the MD5 of those bytes. A smaller file is one PUT.

mod answers;
mod credentials;
mod finish;
mod listing;
mod manifest;
mod parts;
mod place;
mod presigned;
mod refusal;
mod request;
mod sign;
mod signed;
mod sweep;
mod xml;

pub use credentials::{Account, BadCredentials, Credentials, Given, MAX_PROFILES, Secret, VARIABLES, files};
pub use manifest::{BadManifest, MAX_TEXT as MAX_MANIFEST, Manifest, is_signed};
pub use parts::{LEAST_PART, USUAL_PART};
pub use place::{BadPlace, Place, PlaceSettings, Style};
pub use presigned::SignedPut;
#[cfg(test)]
pub(in crate::core::upload) use request::verify_signature;
#[cfg(test)]
pub(in crate::core::upload) use sign::moment as moment_of;

use listing::Listing;
use request::{Authority, Op};
use signed::Signed;
use sweep::Sweep;

use super::ask::Answer;
use super::failure::{FoundAtServer, UpFailure};
use super::found::{Call, Found, Job, Turn};
use super::protocol::{Backward, Carries, EmptyFile, Foreign, Protocol, Redirects, UploadProtocol, Ways};
use super::session::{Phase, UploadSession};
use crate::core::digest::{Algorithm, Expected};
use crate::core::range::{ByteRange, Length, Offset};
use parts::Cuts;

/// The region that is asked where none is known: it tells where else to ask.
pub(super) const FIRST_REGION: &str = "us-east-1";

/// An object store, spoken to with keys or by a manifest of signed URLs.
#[derive(Debug)]
pub struct S3 {
    authority: Authority,
    /// The size of parts, where the file allows.
    part_size: Length,
    /// The request that is out.
    op: Op,
    /// What the digest asked for is for.
    summing: Summing,
    /// Digests of the body to be sent, or just sent.
    sums: Sums,
    listing: Listing,
    /// Bodies in a row that arrived as something else.
    spoilt: u32,
    /// The store refused the list of parts that it had confirmed.
    refused_list: bool,
    /// Can a part that the record lost be found at the store?
    finding: Finding,
    /// An upload of ours at the store that is not gone on with.
    leftover: Option<String>,
    /// The upload that is asked for is the first whose answer may be lost.
    first_asked: bool,
    /// What is looked for at the end.
    sweep: Option<Sweep>,
    /// The tag that the store gave the whole, where it says something of its content.
    whole_tag: Option<String>,
    /// The same, whatever it says.
    given_tag: Option<String>,
    /// By this digest the whole is read back.
    read_by: Option<Expected>,
}

/// What a digest is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Summing {
    /// A body, before it is sent.
    #[default]
    Body,
    /// A part that the store lists, and the record does not know.
    Listed,
    /// An object that stands there, and may be the file.
    Standing,
    /// The whole, to be read back and compared.
    ReadBack,
}

/// Whether a part is found again by the list of the store and the MD5 of its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Finding {
    /// All tags so far were MD5s of what was sent, and nobody has refused a list.
    #[default]
    ByList,
    /// There is no list for us, or its tags say nothing: the record alone knows.
    ByRecord,
}

/// Digests of one range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sums {
    md5: Option<Expected>,
    sha256: Option<Expected>,
}

impl S3 {
    /// With keys; the server's URL is that of [`Place::url`].
    pub fn signed(credentials: Credentials, region: Option<&str>) -> Self {
        Self::by(Authority::Signed(Signed::new(credentials, region.unwrap_or(FIRST_REGION))))
    }

    /// By URLs that are signed; the server's URL is that of [`Manifest::object`].
    pub fn by_manifest(manifest: Manifest) -> Self {
        Self::by(Authority::Manifest(Box::new(manifest)))
    }

    /// With parts of this size where nothing speaks against it; at least [`LEAST_PART`].
    #[must_use]
    pub fn with_part_size(mut self, size: Length) -> Self {
        self.part_size = size;
        self
    }

    fn by(authority: Authority) -> Self {
        Self {
            authority,
            part_size: USUAL_PART,
            op: Op::Before,
            summing: Summing::Body,
            sums: Sums::default(),
            listing: Listing::default(),
            spoilt: 0,
            refused_list: false,
            finding: Finding::ByList,
            leftover: None,
            first_asked: false,
            sweep: None,
            whole_tag: None,
            given_tag: None,
            read_by: None,
        }
    }

    /// How the file is cut, as the record says.
    fn cuts(job: &Job) -> Option<Cuts> {
        Cuts::new(job.size(), job.session.part_size?)
    }

    /// One PUT of the whole, no parts.
    fn is_single(&self, job: &Job) -> bool {
        let fits = job.session.part_size.is_some_and(|part| job.size() <= part);
        fits && matches!(self.authority, Authority::Signed(_))
    }

    /// The file is to be cut anew, where there is no record of it, or one that cannot be.
    fn cut(&self, job: &mut Job) -> Result<(), UpFailure> {
        let (size, chosen) = match &self.authority {
            Authority::Signed(_) if Self::cuts(job).is_some() => return Ok(()),
            Authority::Signed(_) => (parts::choose(job.size(), self.part_size), parts::most()),
            Authority::Manifest(manifest) => {
                let fits = manifest.cuts(job.size()).map(|_| manifest.part_size);
                (fits, manifest.at_most())
            }
        };
        let Some(size) = size else {
            let why = FoundAtServer::AtMost(chosen);
            return Err(UpFailure::Unsupported { protocol: Protocol::S3, why });
        };
        if job.session.part_size != Some(size) {
            job.session.part_size = Some(size);
            job.session.parts.clear();
            job.session.handle = None;
        }
        Ok(())
    }

    fn prepare_by_manifest(&self, job: &mut Job, manifest: &Manifest) -> Turn {
        let (handle, ends) = (manifest.handle(), manifest::ends(&manifest.complete));
        job.session.expires = ends;
        if job.session.handle.as_ref() == Some(&handle) {
            return Turn::Found(Found::Ready(None));
        }
        job.session.handle = Some(handle);
        job.session.parts.clear();
        Turn::Found(Found::Ready(Some(Offset::ZERO)))
    }

    fn prepare_signed(&mut self, job: &mut Job) -> Turn {
        match (&job.session.handle, self.is_single(job)) {
            (_, true) if job.session.reached > Offset::ZERO => Turn::Found(Found::Ready(None)),
            (_, true) => Turn::Found(Found::Ready(Some(Offset::ZERO))),
            (Some(_), false) => Turn::Found(Found::Ready(None)),
            (None, false) if self.leftover.is_some() => self.issue(job, Op::Clear),
            (None, false) if job.session.target.before.is_none() => self.issue(job, Op::Before),
            (None, false) => self.create(job),
        }
    }

    /// The body that this operation sends: its digests come first.
    fn body(&mut self, job: &Job, op: Op) -> Turn {
        self.op = op;
        let range = Self::range_of(job, op);
        let of_whole = job.source.digest.as_ref().filter(|_| range.length() == job.size());
        if self.sums.md5.is_none() {
            self.sums.md5 = of_whole.filter(|digest| digest.algorithm == Algorithm::Md5).cloned();
        }
        let wanted = match (&self.sums.md5, &self.sums.sha256) {
            (None, _) => Some(Algorithm::Md5),
            // TLS protects what is on its way; without it the signature has to.
            (_, None) if self.authority.signs_bodies(job) => Some(Algorithm::Sha256),
            _ => None,
        };
        match wanted {
            Some(algorithm) => {
                self.summing = Summing::Body;
                Turn::Digest { range, algorithm }
            }
            None => self.issue(job, op),
        }
    }

    /// Which bytes an operation sends.
    fn range_of(job: &Job, op: Op) -> ByteRange {
        match (op, Self::cuts(job)) {
            (Op::Part(number), Some(cuts)) => cuts.range(number),
            _ => ByteRange::new(Offset::ZERO, job.size().as_end()),
        }
    }
}

impl UploadProtocol for S3 {
    fn protocol(&self) -> Protocol {
        Protocol::S3
    }

    fn ways(&self, job: &Job) -> Ways {
        let part = job.session.part_size.unwrap_or(self.part_size);
        let single = self.is_single(job);
        Ways {
            floor: part,
            cap: (!single).then_some(part),
            segments: !single,
            empty: EmptyFile::Sent,
            foreign: Foreign::Proven,
            backward: Backward::Follow,
        }
    }

    fn redirects(&self) -> Redirects {
        match self.authority {
            Authority::Signed(_) => Redirects::Told,
            Authority::Manifest(_) => Redirects::Followed,
        }
    }

    fn carries(&self) -> Carries {
        Carries::Nothing
    }

    /// From the second part on: of the first, the record is stored, for it shows that something was sent.
    fn tells_again(&self, kept: &UploadSession, now: &UploadSession) -> bool {
        let grown = !kept.parts.is_empty() && now.parts.len() >= kept.parts.len();
        grown && self.finding == Finding::ByList && self.has_list()
    }

    fn prepare(&mut self, job: &mut Job) -> Turn {
        if let Err(failure) = self.cut(job) {
            return Turn::failed(failure);
        }
        match &self.authority {
            Authority::Manifest(manifest) => self.prepare_by_manifest(job, manifest),
            Authority::Signed(_) => self.prepare_signed(job),
        }
    }

    fn probe(&mut self, job: &mut Job) -> Turn {
        if self.is_single(job) {
            return self.issue(job, Op::Standing);
        }
        self.list(job)
    }

    fn send(&mut self, job: &mut Job, range: ByteRange) -> Turn {
        job.session.phase = Phase::Sending;
        self.sums = Sums::default();
        match Self::cuts(job) {
            Some(_) if self.is_single(job) => self.body(job, Op::Whole),
            Some(cuts) => self.body(job, Op::Part(cuts.at(range.start))),
            None => Turn::Found(Found::Lost),
        }
    }

    fn finish(&mut self, job: &mut Job) -> Turn {
        if let Some(turn) = self.cut_short() {
            return turn;
        }
        if self.is_single(job) {
            return self.issue(job, Op::Head);
        }
        job.session.phase = Phase::Finishing;
        self.issue(job, Op::Complete)
    }

    fn abandon(&mut self, job: &mut Job) -> Turn {
        let begun = job.session.handle.is_some() && !self.is_single(job);
        match begun && self.authority.may_abort(job) {
            true => self.issue(job, Op::Abort),
            false => self.and_swept(job, Call::Abandon, Turn::Found(Found::Lost)),
        }
    }

    fn answered(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn {
        let turn = match self.op {
            Op::Uploads | Op::Peek => self.swept(job, answer),
            Op::Clear if self.sweep.is_some() => self.swept(job, answer),
            Op::Abort => self.learned(job, answer, None).unwrap_or(Turn::Found(Found::Lost)),
            Op::Clear => {
                self.leftover = None;
                self.prepare(job)
            }
            Op::Before => self.looked_before(job, call, answer),
            Op::Create => self.created(job, call, answer),
            Op::Part(number) => self.part_sent(job, call, number, answer),
            Op::Whole => self.whole_sent(job, call, answer),
            Op::Standing => self.stands(job, call, answer),
            Op::List(marker) => self.listed(job, call, marker, answer),
            Op::Complete => self.closed(job, call, answer),
            Op::Head => self.headed(job, call, answer),
            Op::Doubt => self.in_doubt(job, call, answer),
            Op::Read => self.was_read(job, call, answer),
        };
        self.and_swept(job, call, turn)
    }

    fn digested(&mut self, job: &mut Job, _: Call, digest: &Expected) -> Turn {
        match self.summing {
            Summing::Listed => self.compared_part(job, digest),
            Summing::Standing => self.compared_whole(job, digest),
            Summing::ReadBack => self.read_back(job, digest.clone()),
            Summing::Body => {
                match digest.algorithm {
                    Algorithm::Md5 => self.sums.md5 = Some(digest.clone()),
                    _ => self.sums.sha256 = Some(digest.clone()),
                }
                self.body(job, self.op)
            }
        }
    }
}
