//! One transfer in the supervisor's hands: its machine, its part files between sessions, its running session, and what
//! has been said of it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::core::failure::{Failure, LocalFault};
use crate::core::file_xfer::dossier::{Dossier, Draft};
use crate::core::file_xfer::{Company, End, Freshness, MAX_CHANGES, Outcome};
use crate::core::machine::Machine;
use crate::core::pers_xfer::record::{Direction, Finished, Record, Standing, Status, XferId};
use crate::core::pers_xfer::{PersFileXfer, Urgency, View};
use crate::core::range::Length;
use crate::core::time::{Mono, Now};
use crate::core::url::{MirrorUrl, Origin};
use crate::core::verdict::{Context, HostSign, Scope, judge};
use crate::engine::claims::Loss;
use crate::engine::ended::held_of;
use crate::engine::gate::Keeper;
use crate::engine::hosts::{HostNews, word_of};
use crate::engine::way::Way;
use crate::engine::{FailedPart, Notice, WaitReason};
use crate::io::driver::upload::Known;
use crate::io::driver::{FanPlan, FanSeat, Home, Orders, Terms};
use crate::io::part::{Clobber, PartStore, Spec};

/// A transfer of at most this size need not enter the state before its end, if that comes within the first second.
const SMALL: Length = Length(256 << 10);

/// A transfer of this run, until it is over or rests.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) machine: PersFileXfer,
    pub(super) way: Arc<Way>,
    /// The part files, while no session has them.
    pub(super) store: Option<PartStore>,
    pub(super) running: Option<Running>,
    /// The session that the machine wishes for.
    pub(super) wanted: Option<(usize, Freshness)>,
    /// The record of the finished file, which comes back where the server still has it.
    pub(super) revalidate: Option<Draft>,
    /// What came of asking.
    pub(super) asked: Asked,
    pub(super) clobber: Clobber,
    /// What stood in its way when it was taken up: to be looked at again before it starts.
    pub(super) blocked: Option<LocalFault>,
    /// It is not ours any more: it ends as soon as its session has.
    pub(super) lost: Option<Loss>,
    /// The wishes that were obeyed, until that is stored.
    pub(super) obeyed: Vec<u64>,
    pub(super) received: Length,
    /// The timer that stands for it.
    pub(super) timer: Option<Mono>,
    /// What was last said of its waiting.
    pub(super) said: Option<WaitReason>,
    /// Bytes held, as the latest session told.
    pub(super) held: Length,
    /// Of an upload: the file, as a session of this run knew it.
    pub(super) known_source: Option<Known>,
}

/// A running session.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) stop: CancellationToken,
    pub(super) host: Origin,
    /// Other hosts that are asked beside it.
    pub(super) guests: Vec<Origin>,
    /// The host has shown that it does its work.
    pub(super) answered: Answered,
}

/// What came of asking for a finished file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Nothing yet.
    Open,
    /// The server still has it.
    Unchanged,
    /// The server has another one, which is being fetched.
    Superseded,
}

/// Has a host answered in this session?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    NotYet,
    Well,
}

impl Transfer {
    pub(super) fn new(machine: PersFileXfer, way: Arc<Way>, clobber: Clobber) -> Self {
        let held = held_of(machine.record());
        Self {
            machine,
            way,
            store: None,
            running: None,
            wanted: None,
            revalidate: None,
            asked: Asked::Open,
            clobber,
            blocked: None,
            lost: None,
            obeyed: Vec::new(),
            received: Length::ZERO,
            timer: None,
            said: None,
            held,
            known_source: None,
        }
    }

    pub(super) fn record(&self) -> &Record {
        self.machine.record()
    }

    pub(super) fn id(&self) -> XferId {
        self.record().id
    }

    pub(super) fn url(&self, mirror: usize) -> Option<&MirrorUrl> {
        self.record().mirrors.get(mirror).map(|m| &m.url)
    }

    /// Its session is over; what it was, and the part files, come back.
    pub(super) fn session_closed(&mut self, store: Option<PartStore>, received: Length) -> Option<Running> {
        let running = self.running.take()?;
        self.store = store;
        self.received = self.received + received;
        Some(running)
    }

    /// What the machine is told of a session's end. Where the server still has the finished file, everything known of that
    /// file comes back.
    pub(super) fn settle(&mut self, outcome: Outcome, finished: Option<Finished>) -> (Outcome, Option<Finished>) {
        if self.record().direction == Direction::Download {
            self.held = outcome.dossier.part.in_all();
        }
        match (&outcome.end, &self.revalidate) {
            (End::Unchanged, Some(draft)) => {
                self.asked = Asked::Unchanged;
                let dossier = Dossier { part: draft.clone(), ..Dossier::default() };
                (Outcome { dossier, ..outcome }, self.record().finished.clone())
            }
            _ => (outcome, finished),
        }
    }

    /// What a session's end says of its host.
    pub(super) fn host_news(&self, outcome: &Outcome) -> HostNews {
        match &outcome.end {
            End::Complete { .. } | End::Unchanged => HostNews::Good,
            End::Cancelled => HostNews::Nothing,
            End::Failed(failure) => self.news_of_failure(failure),
        }
    }

    /// What a failure says of the host at which it happened.
    pub(super) fn news_of_failure(&self, failure: &Failure) -> HostNews {
        let verdict = judge(failure, Context { served: false, retry_on: &self.record().options.retry_on });
        let word = || word_of(failure, verdict.class);
        match (verdict.host, &verdict.scope) {
            (HostSign::Failing, Scope::Transient { floor }) => HostNews::Failing { floor: *floor, word: word() },
            (HostSign::Failing, _) => HostNews::Failing { floor: None, word: word() },
            (HostSign::Answering, _) => HostNews::Good,
            (HostSign::Nothing, _) => HostNews::Nothing,
        }
    }

    /// How soon a change of its record must be stored: a small file that may be here within its first second waits.
    pub(super) fn how_soon(&self, urgency: Urgency) -> Urgency {
        if self.record().direction == Direction::Upload {
            return urgency;
        }
        let small = self.record().nbytes.is_some_and(|n| n <= SMALL);
        let calm = self.record().num_retries == 0;
        if small && calm { Urgency::Later } else { urgency }
    }

    /// A new version of the finished file begins to come: from now on it is a download like any other.
    pub(super) fn is_superseded(&mut self) {
        if self.asked == Asked::Open {
            self.asked = Asked::Superseded;
        }
    }

    /// A finished file is asked about, and nothing has taken its place: whatever the server says, its record stays.
    pub(super) fn only_asks(&self) -> bool {
        self.revalidate.is_some() && self.asked == Asked::Open
    }

    /// Does its record belong in the state at the end of the run, changed or not?
    pub(super) fn is_to_be_stored(&self) -> bool {
        self.lost.is_none() && !self.only_asks()
    }

    /// The bytes held are known to be wrong.
    pub(super) fn drop_bytes(&mut self) -> Result<(), LocalFault> {
        self.held = Length::ZERO;
        match self.store.take() {
            Some(store) => store.discard(),
            None => Ok(()),
        }
    }

    /// It is over: the part files are closed, and removed where the user wants no remains.
    pub(super) fn let_go(&mut self) {
        let failed = matches!(self.record().status, Status::Failed { .. });
        let Some(store) = self.store.take() else { return };
        let closed = match self.record().options.failed_part {
            FailedPart::Delete if failed => store.discard(),
            _ => store.close(),
        };
        if let Err(fault) = closed {
            tracing::warn!(%fault, "the part files were not closed");
        }
    }

    /// What is to be said where another version of the file was begun: before, there had been so many changes.
    pub(super) fn changed_since(&self, changes: u32) -> Option<String> {
        let now = self.record().dossier.changes;
        (changes < now && now <= MAX_CHANGES).then(|| {
            format!(
                "the file changed on the server; its new version is fetched (change {now} of at most {MAX_CHANGES})"
            )
        })
    }

    /// When its machine wants to be driven.
    pub(super) fn wake_at(&self) -> Option<Mono> {
        self.machine.wake_at()
    }

    /// What a session with this mirror is to do.
    pub(super) fn orders(&mut self, mirror: usize, freshness: Freshness, spec: &Spec, fan: FanPlan) -> Option<Orders> {
        let record = self.machine.record();
        let asked = record.mirrors.get(mirror)?;
        let (url, named_with) = (asked.url.clone(), asked.named_with.clone());
        let first_origin = record.mirrors.first()?.url.origin();
        let others = record.mirrors.iter().enumerate().any(|(i, m)| i != mirror && m.standing == Standing::Usable);
        let may = |n: usize, seat: &FanSeat| n != fan.own && seat.not_before.is_none();
        let unasked = fan.seats.iter().enumerate().any(|(n, s)| may(n, s) && self.machine.is_unasked(&s.url));
        Some(Orders {
            url,
            named_with,
            first_origin,
            dossier: record.dossier.clone(),
            home: self.home()?,
            store: self.store.take(),
            terms: self.terms(spec),
            unasked: if unasked { Company::Others } else { Company::Alone },
            company: if others { Company::Others } else { Company::Alone },
            freshness,
            revalidate: self.revalidate.clone(),
            max_filesize: record.max_nbytes,
            expected: record.expected,
            timeouts: self.way.timeouts,
            fan,
        })
    }

    fn home(&self) -> Option<Home> {
        let record = self.record();
        match (&record.path, &record.folder) {
            (Some(path), _) => Some(Home::File(path.clone())),
            (None, Some(folder)) => Some(Home::Folder(folder.clone())),
            (None, None) => None,
        }
    }

    fn terms(&self, spec: &Spec) -> Terms {
        let record = self.record();
        Terms {
            digests: record.digests.clone(),
            pieces: record.pieces.clone(),
            require: record.options.require,
            clobber: self.clobber,
            mtime: record.options.mtime,
            spec: Spec { algorithms: record.digests.iter().map(|d| d.algorithm).collect(), ..spec.clone() },
        }
    }

    /// What is to be said of its waiting now, if that is news.
    pub(super) fn waiting(&mut self, keeper: &Keeper, now: Now) -> Option<Notice> {
        let (until, reason) = match self.machine.view() {
            View::Paused => {
                keeper.shut(self.record().direction, now).map(|(why, until)| (until, WaitReason::Network(why)))?
            }
            view => wait_of(&view)?,
        };
        if self.said.as_ref() == Some(&reason) {
            return None;
        }
        self.said = Some(reason.clone());
        let delay = until.map(|u| u.since(now.mono));
        Some(Notice::Waiting { id: self.id(), delay, until: until.map(|u| now.wall_of(u)), reason })
    }
}

/// Until when a transfer waits, and why; nothing where it does not.
fn wait_of(view: &View) -> Option<(Option<Mono>, WaitReason)> {
    Some(match view.clone() {
        View::Backoff { until, retries, last } => {
            (Some(until), WaitReason::Backoff { retries, last: last.unwrap_or_default() })
        }
        View::Resuming { until } => (Some(until), WaitReason::Resuming),
        View::RetryAfter { origin, until } => (Some(until), WaitReason::RetryAfter(origin)),
        View::Host { origin, until } => (Some(until), WaitReason::Host(origin)),
        View::Local { fault, until } => (Some(until), WaitReason::Local(fault)),
        View::Slot { .. } => (None, WaitReason::Slot),
        View::Suspended => (None, WaitReason::Suspended),
        View::Running { .. } | View::Ready | View::Paused | View::Over => return None,
    })
}
