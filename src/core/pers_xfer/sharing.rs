//! Sharing: several processes work with one state file (design section 5). Who works on a transfer, and what others want
//! of it.
//!
//! A process that runs transfers has an [`OwnerId`], and holds a lock on a file of that name for as long as it lives. A
//! record with that id is its own: nobody else writes it. Others leave a [`Wish`], which the owner obeys and takes out.
//! A record whose owner is dead belongs to nobody; the next who touches it obeys what is left in it.

use std::fmt;

use crate::core::machine::{Cx, Machine};
use crate::core::pers_xfer::machine::State;
use crate::core::pers_xfer::record::{Record, Status};
use crate::core::pers_xfer::{Action, Event, PersFileXfer, Rules};
use crate::core::time::{Epoch, Now};
use crate::core::url::MirrorUrl;

/// A process that runs transfers: random, never reused, printed as 16 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(pub u64);

/// What somebody wants of a transfer that another process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Which one: random, so that it is obeyed exactly once.
    pub serial: u64,
    /// When it was left.
    pub at: Epoch,
    /// What is wanted.
    pub what: Wanted,
}

/// What can be wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Try now; where it failed for good, a new life.
    Retry,
    /// Rest until resumed.
    Suspend,
    /// Go on.
    Resume,
    /// Be gone: it fails with BOINC's -197.
    Abort,
    /// These are the URLs of the file, in order.
    Mirrors(Vec<MirrorUrl>),
}

impl Wanted {
    /// The word for it, in the state file and for people.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Suspend => "suspend",
            Self::Resume => "resume",
            Self::Abort => "abort",
            Self::Mirrors(_) => "mirrors",
        }
    }

    /// What the machine is told. One that a person wants now is no longer suspended.
    pub fn events(&self) -> Vec<Event> {
        match self {
            Self::Retry => vec![Event::Resume, Event::Retry],
            Self::Suspend => vec![Event::Suspend],
            Self::Resume => vec![Event::Resume],
            Self::Abort => vec![Event::Abort],
            Self::Mirrors(urls) => vec![Event::Mirrors(urls.clone())],
        }
    }

    /// Would it change anything?
    pub fn concerns(&self, status: &Status) -> bool {
        match self {
            Self::Retry => *status != Status::Done,
            Self::Suspend => *status == Status::Pending,
            Self::Resume => *status == Status::Suspended,
            Self::Abort => matches!(status, Status::Pending | Status::Suspended),
            Self::Mirrors(_) => true,
        }
    }
}

/// A record that nobody runs, after what is wanted of it, the wishes left in it first. No wish is left in it, and no owner.
pub fn obeyed(mut record: Record, more: &[Wanted], now: Now, rng: &mut dyn rand::Rng) -> Record {
    let left: Vec<Wanted> = std::mem::take(&mut record.wishes).into_iter().map(|wish| wish.what).collect();
    record.owner = None;
    let wanted: Vec<&Wanted> = left.iter().chain(more).collect();
    // Of the first that changes something on: those before it must not even touch the record.
    let Some(first) = wanted.iter().position(|wanted| wanted.concerns(&record.status)) else { return record };
    let rules = Rules::of(&record.options);
    let mut machine = PersFileXfer::from_record(record, rules, now);
    // Nobody carries out what it wishes for: it is not run here.
    let mut out = Vec::new();
    let mut cx = Cx { now, rng, out: &mut out };
    machine.handle(Event::Paused, &mut cx);
    obey(&mut machine, wanted.into_iter().skip(first), &mut cx);
    *machine.into_record()
}

/// A machine is told what is wanted of it, in order. What it leaves to be done is what the last of it comes to: where an
/// abort was followed by a retry, nothing is over.
pub fn obey<'w>(machine: &mut PersFileXfer, wanted: impl IntoIterator<Item = &'w Wanted>, cx: &mut Cx<'_, Action>) {
    let from = cx.out.len();
    for wanted in wanted {
        if wanted.concerns(&machine.record().status) {
            wanted.events().into_iter().for_each(|event| machine.handle(event, cx));
        }
    }
    let mut end = None;
    for action in cx.out.split_off(from) {
        match action {
            Action::Over | Action::Rest(_) => end = Some(action),
            other => cx.out.push(other),
        }
    }
    let holds = matches!(
        (&end, &machine.state),
        (Some(Action::Over), State::Over) | (Some(Action::Rest(_)), State::Resting(_))
    );
    cx.out.extend(end.filter(|_| holds));
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerId({self})")
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::core::pers_xfer::record::{XferId, error_code};
    use crate::core::time::Mono;

    const NOW: Now = Now { wall: Epoch::from_secs(1_767_225_600), mono: Mono::ZERO };

    fn record(status: Status) -> Record {
        let url = MirrorUrl::parse("http://h.example/f").expect("a URL");
        Record { status, ..Record::download(XferId(1), "f".into(), &[url]) }
    }

    fn after(status: Status, wanted: &[Wanted]) -> Status {
        obeyed(record(status), wanted, NOW, &mut rand::rngs::StdRng::seed_from_u64(1)).status
    }

    #[test]
    fn what_nobody_runs_is_changed_at_once() {
        let failed = || Status::Failed { code: -224, message: "refused".into() };
        assert_eq!(after(Status::Pending, &[Wanted::Suspend]), Status::Suspended);
        assert_eq!(after(Status::Suspended, &[Wanted::Resume]), Status::Pending);
        assert_eq!(after(Status::Suspended, &[Wanted::Retry]), Status::Pending);
        assert_eq!(after(failed(), &[Wanted::Retry]), Status::Pending);
        assert!(matches!(after(Status::Pending, &[Wanted::Abort]), Status::Failed { code: error_code::ABORTED, .. }));
        assert!(matches!(after(Status::Suspended, &[Wanted::Abort]), Status::Failed { code: error_code::ABORTED, .. }));
        assert_eq!(after(Status::Done, &[Wanted::Abort, Wanted::Retry, Wanted::Suspend]), Status::Done);
        assert_eq!(after(failed(), &[Wanted::Abort, Wanted::Resume]), failed());
    }

    #[test]
    fn wishes_left_by_others_come_first_and_are_gone() {
        let mut record = record(Status::Pending);
        record.owner = Some(OwnerId(7));
        record.wishes = vec![Wish { serial: 1, at: NOW.wall, what: Wanted::Abort }];
        record.next_request_time = Some(NOW.wall + crate::core::time::Delay::from_secs(60));
        let record = obeyed(record, &[Wanted::Retry], NOW, &mut rand::rngs::StdRng::seed_from_u64(1));
        assert_eq!((record.status, record.owner, record.wishes), (Status::Pending, None, vec![]));
        assert_eq!(record.next_request_time, None);
    }
}
