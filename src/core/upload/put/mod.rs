//! `put`: the whole file in one PUT (RFC 9110 9.3.4), to a temporary name that is moved into place (RFC 4918 9.9) where
//! the server can do that, and else straight to its name.

mod finish;

use super::ask::{Answer, Ask, Body, Method};
use super::found::{Call, Found, Job, Said, Turn};
use super::protocol::{Backward, EmptyFile, Foreign, Protocol, UploadProtocol, Ways};
use super::session::{Before, Phase};
use super::wire::{beside, folder, head, is_new, size_told, standing};
use crate::core::digest::{Algorithm, Expected};
use crate::core::range::{ByteRange, Length, Offset};
use crate::core::url::MirrorUrl;

/// One whole PUT.
#[derive(Debug, Default)]
pub struct Put {
    at: At,
    /// The folder has been asked for.
    folder_made: bool,
    /// The refusal that the folder was to cure, and the body that waits for it.
    refused: Option<(Said, ByteRange)>,
    /// The server told the size of what it stored, and it is the right one.
    sized: bool,
    /// The bytes stored were read back, and are those of the source.
    pub(super) read: Option<Algorithm>,
    /// What is read back stands under the final name, after the move.
    in_place: bool,
    /// What stands there has the tag of what stood there before: only its content can show that it is ours.
    doubted: bool,
}

/// Which of a call's requests was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Before,
    Stored,
    Final,
    Body,
    Folder,
    ReadBack,
    Move,
    Moved,
    Delete,
}

impl Put {
    /// The name that bytes are sent to.
    pub(super) fn place(job: &Job) -> MirrorUrl {
        job.session.target.temporary.clone().unwrap_or_else(|| job.server().clone())
    }

    fn ask(&mut self, at: At, ask: Ask) -> Turn {
        self.at = at;
        Turn::ask(ask)
    }

    /// The temporary name, unless the server has refused one, or the URL is signed for its own name only.
    fn choose_place(job: &mut Job) {
        let signed = job.server().secret_url().query().is_some();
        let temporary = beside(job.server(), &format!(".part-{}", job.token));
        let target = &mut job.session.target;
        target.direct |= signed || temporary.is_none();
        if target.temporary.is_none() && !target.direct {
            target.temporary = temporary;
        }
    }

    fn looked_before(job: &mut Job, answer: &Answer) -> Turn {
        if is_trouble(answer.status) {
            return Turn::status(answer);
        }
        job.session.target.before = Some(standing(answer));
        Self::choose_place(job);
        Turn::Found(Found::Ready(Some(Offset::ZERO)))
    }

    /// What a HEAD of the place says: the whole is there, or nothing counts.
    fn probed(&mut self, job: &Job, answer: &Answer) -> Turn {
        if is_trouble(answer.status) {
            return Turn::status(answer);
        }
        let nothing = Turn::Found(Found::Confirmed(Offset::ZERO));
        let target = &job.session.target;
        // Servers set a file's size before its bytes come: that says nothing where not all of them were sent.
        let sent = job.session.reached == job.size().as_end();
        let whole = sent && answer.is_success() && size_told(answer) == Some(job.size());
        match (self.at, &target.temporary) {
            (At::Stored, Some(_)) if whole => Turn::Found(Found::Confirmed(job.size().as_end())),
            (At::Stored, Some(_)) if job.session.phase == Phase::Finishing && answer.status == 404 => {
                self.ask(At::Final, head(job.server()))
            }
            (At::Stored, Some(_)) => nothing,
            _ if whole && is_new(&standing(answer), before(job)) => Turn::Found(Found::Confirmed(job.size().as_end())),
            _ => nothing,
        }
    }

    fn body_answered(&mut self, job: &mut Job, range: ByteRange, answer: &Answer) -> Turn {
        match answer.status {
            200 | 201 | 204 => Turn::Found(Found::Confirmed(range.end)),
            202..=299 => Turn::Found(Found::Uncertain),
            404 | 409 if !self.folder_made => self.make_folder(job, range, answer),
            400 | 401 | 403..=405 | 409 | 411 | 501 if job.session.target.temporary.is_some() => Self::go_direct(job),
            _ => Turn::status(answer),
        }
    }

    /// The folder is missing, perhaps: it is made, once.
    fn make_folder(&mut self, job: &mut Job, range: ByteRange, answer: &Answer) -> Turn {
        self.folder_made = true;
        let Some(folder) = folder(job.server()) else { return self.body_answered(job, range, answer) };
        self.refused = Some((Said::of(answer), range));
        self.ask(At::Folder, Ask::new(Method::Mkcol, &folder))
    }

    fn folder_answered(&mut self, job: &mut Job, answer: &Answer) -> Turn {
        match self.refused.take() {
            Some((_, range)) if answer.is_success() => self.send(job, range),
            Some(_) if job.session.target.temporary.is_some() => Self::go_direct(job),
            Some((said, _)) => Turn::Found(Found::Status(said)),
            None => Turn::status(answer),
        }
    }

    /// No temporary name here: all again, straight to the name.
    fn go_direct(job: &mut Job) -> Turn {
        job.session.target.direct = true;
        Turn::Found(Found::Anew)
    }
}

impl UploadProtocol for Put {
    fn protocol(&self) -> Protocol {
        Protocol::Put
    }

    fn ways(&self, _: &Job) -> Ways {
        Ways {
            floor: Length::ZERO,
            cap: None,
            segments: false,
            empty: EmptyFile::Sent,
            foreign: Foreign::Unproven,
            backward: Backward::Follow,
        }
    }

    fn prepare(&mut self, job: &mut Job) -> Turn {
        match job.session.target.before {
            Some(_) => Turn::Found(Found::Ready(None)),
            None => self.ask(At::Before, head(job.server())),
        }
    }

    fn probe(&mut self, job: &mut Job) -> Turn {
        self.ask(At::Stored, head(&Self::place(job)))
    }

    fn send(&mut self, job: &mut Job, range: ByteRange) -> Turn {
        (self.read, self.in_place, self.doubted) = (None, false, false);
        job.session.phase = Phase::Sending;
        let ask = Ask::new(Method::Put, &Self::place(job)).with("content-type", job.media_type.clone());
        self.ask(At::Body, ask.carrying(Body::Source(range)))
    }

    fn finish(&mut self, job: &mut Job) -> Turn {
        job.session.phase = Phase::Finishing;
        (self.in_place, self.doubted) = (false, false);
        let place = Self::place(job);
        self.ask(At::Stored, look(job, &place))
    }

    fn abandon(&mut self, job: &mut Job) -> Turn {
        match &job.session.target.temporary {
            Some(temporary) => Turn::ask(delete(temporary)),
            // Under the final name may stand what others want.
            None => Turn::Found(Found::Lost),
        }
    }

    fn answered(&mut self, job: &mut Job, call: Call, answer: &Answer) -> Turn {
        match call {
            Call::Prepare => Self::looked_before(job, answer),
            Call::Probe => self.probed(job, answer),
            Call::Send(_) if self.at == At::Folder => self.folder_answered(job, answer),
            Call::Send(range) | Call::Challenge(range) => self.body_answered(job, range, answer),
            Call::Finish => self.finishing(job, answer),
            Call::Abandon => Turn::Found(Found::Lost),
        }
    }

    fn digested(&mut self, job: &mut Job, _: Call, digest: &Expected) -> Turn {
        job.source.digest = Some(digest.clone());
        job.session.source.digest = Some(digest.clone());
        self.read_back(job, digest.algorithm)
    }
}

/// A question about what was stored. A HEAD of an empty file is answered without its length by some servers, which a GET of it
/// tells.
fn look(job: &Job, url: &MirrorUrl) -> Ask {
    let ask = head(url);
    if job.size() == Length::ZERO { Ask { method: Method::Get, ..ask } } else { ask }
}

/// A request to remove a name, which must not take long.
pub(super) fn delete(url: &MirrorUrl) -> Ask {
    let mut ask = Ask::new(Method::Delete, url);
    ask.patience = super::ABANDON_PATIENCE;
    ask
}

/// What stood under the final name before.
fn before(job: &Job) -> &Before {
    job.session.target.before.as_ref().unwrap_or(&Before::Untold)
}

/// A status that is not about the question: busy, broken, wait, log in to the proxy.
pub(super) const fn is_trouble(code: u16) -> bool {
    matches!(code, 300..=399 | 407 | 408 | 423 | 425 | 429 | 500 | 502..=599)
}
