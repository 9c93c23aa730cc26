//! `put-range`: PUT with Content-Range (RFC 9110 14.5), for servers that have shown on a name of no worth that they
//! append. Many ignore the field and take the slice for the file, so nothing is believed that a HEAD does not show.

use super::LEAST_GROWTH;
use super::ask::{Answer, Ask, Body, Method};
use super::found::{Call, Found, Job, Turn};
use super::protocol::{Foreign, Protocol, UploadProtocol, Ways};
use super::put::{Put, delete, is_trouble};
use super::session::{Phase, RangesHere};
use super::wire::{beside, head, size_told};
use crate::core::digest::Expected;
use crate::core::range::{ByteRange, Length, Offset};
use crate::core::url::MirrorUrl;

/// What the trial writes: two bytes, and one behind them.
const TRIAL: &[u8; 3] = b"abc";

/// PUT in pieces where the server can, in one piece where it cannot.
#[derive(Debug, Default)]
pub struct PutRange {
    put: Put,
    at: At,
    /// A body that was to be appended is out and not answered.
    appending: bool,
}

/// Which request was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    /// One of the whole PUT's.
    #[default]
    Put,
    TryTwo,
    TryThird,
    TryRead,
    TryDelete,
    Empty,
    Piece,
    Size,
}

impl PutRange {
    fn ask(&mut self, at: At, ask: Ask) -> Turn {
        self.at = at;
        Turn::ask(ask)
    }

    /// By whole PUT from here on.
    fn whole(&mut self) -> &mut Put {
        self.at = At::Put;
        &mut self.put
    }

    /// Ranges are no use here: all again, in one piece.
    fn broken(job: &mut Job) -> Turn {
        job.session.target.ranges = RangesHere::Broken;
        Turn::Found(Found::Anew)
    }

    fn in_pieces(job: &Job) -> bool {
        job.session.target.ranges == RangesHere::Proven && job.session.target.temporary.is_some()
    }

    fn tried(&mut self, job: &mut Job, answer: &Answer) -> Turn {
        if is_trouble(answer.status) {
            return Turn::status(answer);
        }
        let Some(place) = trial_place(job) else { return self.after_trial(job, RangesHere::Broken) };
        match self.at {
            At::TryTwo if answer.is_success() => {
                let third = Ask::new(Method::Put, &place).with("content-range", "bytes 2-2/3");
                self.ask(At::TryThird, third.carrying(Body::Bytes(TRIAL[2..].to_vec())))
            }
            At::TryThird if answer.is_success() => {
                let mut read = head(&place);
                read.method = Method::Get;
                self.ask(At::TryRead, read)
            }
            At::TryRead if answer.is_success() && answer.body == TRIAL => {
                job.session.target.ranges = RangesHere::Proven;
                self.ask(At::TryDelete, delete(&place))
            }
            At::TryThird | At::TryRead => {
                job.session.target.ranges = RangesHere::Broken;
                self.ask(At::TryDelete, delete(&place))
            }
            _ => {
                let found = job.session.target.ranges;
                self.after_trial(job, if found == RangesHere::Proven { found } else { RangesHere::Broken })
            }
        }
    }

    fn after_trial(&mut self, job: &mut Job, found: RangesHere) -> Turn {
        job.session.target.ranges = found;
        self.whole().prepare(job)
    }

    /// The piece, with the range that it is.
    fn piece(&mut self, job: &mut Job, range: ByteRange) -> Turn {
        let last = range.end.0.saturating_sub(1);
        let field = format!("bytes {}-{last}/{}", range.start.0, job.size().0);
        let ask = Ask::new(Method::Put, &Put::place(job)).with("content-type", job.media_type.clone());
        self.appending = range.start.0 > 0;
        self.ask(At::Piece, ask.with("content-range", field).carrying(Body::Source(range)))
    }

    fn sent(&mut self, job: &mut Job, range: ByteRange, answer: &Answer) -> Turn {
        match (self.at, answer.status) {
            (At::Empty, 200..=299) => self.piece(job, range),
            (At::Empty, _) => {
                job.session.target.ranges = RangesHere::Broken;
                self.whole().send(job, ByteRange::new(Offset::ZERO, job.size().as_end()))
            }
            (At::Piece, 200..=299) => {
                self.appending = false;
                self.ask(At::Size, head(&Put::place(job)))
            }
            (At::Piece, 413) => Turn::status(answer),
            (_, code) if is_trouble(code) => Turn::status(answer),
            (At::Size, 200..=299) if size_told(answer) == Some(range.end.as_length()) => {
                Turn::Found(Found::Confirmed(range.end))
            }
            // Refused, or accepted and not done.
            _ => Self::broken(job),
        }
    }

    /// The size of what is there is where to go on, as far as it can be ours.
    fn probed(&mut self, job: &mut Job, answer: &Answer) -> Turn {
        let session = &job.session;
        if answer.status == 404 && session.phase == Phase::Finishing {
            return self.whole().probe(job);
        }
        match size_told(answer) {
            _ if is_trouble(answer.status) => Turn::status(answer),
            _ if answer.status == 404 => Turn::Found(Found::Confirmed(Offset::ZERO)),
            Some(told) if answer.is_success() => {
                let at = told.as_end();
                let slice = at < session.confirmed || at > session.reached;
                if slice { Self::broken(job) } else { Turn::Found(Found::Confirmed(at)) }
            }
            // Of an empty file Apache tells no length in answer to HEAD. From the start it goes on whatever is there: an
            // empty body comes first.
            None if answer.is_success() && session.confirmed == Offset::ZERO => {
                Turn::Found(Found::Confirmed(Offset::ZERO))
            }
            _ => Self::broken(job),
        }
    }
}

impl UploadProtocol for PutRange {
    fn protocol(&self) -> Protocol {
        Protocol::PutRange
    }

    fn ways(&self, job: &Job) -> Ways {
        let whole = self.put.ways(job);
        if Self::in_pieces(job) {
            Ways { floor: LEAST_GROWTH, segments: true, foreign: Foreign::Welcome, ..whole }
        } else {
            whole
        }
    }

    fn prepare(&mut self, job: &mut Job) -> Turn {
        // Whatever was on its way when the last session ended may have been a piece.
        job.session.target.cut_within |= Self::in_pieces(job) && job.session.reached.0 > 0;
        match (job.session.target.ranges, trial_place(job)) {
            (RangesHere::Unknown, Some(place)) if job.size() > Length(TRIAL.len() as u64) => {
                let two = Ask::new(Method::Put, &place).carrying(Body::Bytes(TRIAL[..2].to_vec()));
                self.ask(At::TryTwo, two)
            }
            _ => self.whole().prepare(job),
        }
    }

    fn probe(&mut self, job: &mut Job) -> Turn {
        job.session.target.cut_within |= std::mem::take(&mut self.appending);
        if Self::in_pieces(job) {
            return self.ask(At::Size, head(&Put::place(job)));
        }
        self.whole().probe(job)
    }

    fn send(&mut self, job: &mut Job, range: ByteRange) -> Turn {
        if !Self::in_pieces(job) {
            return self.whole().send(job, range);
        }
        job.session.phase = Phase::Sending;
        if range.start.0 > 0 {
            return self.piece(job, range);
        }
        // Servers append to what is there; some keep nothing of a file that a cut body was to begin.
        let empty = Ask::new(Method::Put, &Put::place(job)).with("content-type", job.media_type.clone());
        self.ask(At::Empty, empty.carrying(Body::Bytes(Vec::new())))
    }

    fn finish(&mut self, job: &mut Job) -> Turn {
        self.whole().finish(job)
    }

    fn abandon(&mut self, job: &mut Job) -> Turn {
        self.whole().abandon(job)
    }

    fn answered(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn {
        match (self.at, call) {
            (At::Put, _) => self.put.answered(job, call, answer),
            (_, Call::Send(range)) => self.sent(job, range, answer),
            (_, Call::Probe) => self.probed(job, answer),
            _ => self.tried(job, answer),
        }
    }

    fn digested(&mut self, job: &mut Job, call: Call, digest: &Expected) -> Turn {
        self.put.digested(job, call, digest)
    }
}

/// A name of no worth.
fn trial_place(job: &Job) -> Option<MirrorUrl> {
    let signed = job.server().secret_url().query().is_some();
    if signed || job.session.target.direct { None } else { beside(job.server(), &format!(".try-{}", job.token)) }
}
