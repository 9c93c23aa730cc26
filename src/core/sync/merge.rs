//! Merging: what becomes of a valid file, or descriptor, given what stands in our own tree (B8.9 and B8.10).

use super::criteria::{Candidate, Choice, Copy, Keep, Replace, Verdict};
use super::kinds::Fault;
use crate::core::time::{Delay, Epoch};

/// What stands under a name in our own tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Local {
    /// Nothing.
    Absent,
    /// A valid file.
    Valid(Copy),
    /// Something that is no valid copy: a stub, cut off. It protects nothing.
    Invalid(Fault),
}

/// What becomes of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeAction {
    /// It is added.
    Add,
    /// What stands there is no valid copy: the candidate takes its place.
    Heal(Fault),
    /// The very same bytes stand there.
    Identical,
    /// Others stand there, and stay: a conflict.
    KeepLocal,
    /// Others stand there, and go.
    Replace(String),
}

/// Decides about a candidate.
pub fn decide(local: &Local, candidate: &Candidate<'_>, chain: &[Box<dyn Replace>]) -> MergeAction {
    let local = match local {
        Local::Absent => return MergeAction::Add,
        Local::Invalid(fault) => return MergeAction::Heal(fault.clone()),
        Local::Valid(copy) => copy,
    };
    if (local.size, local.sha256) == (candidate.copy.size, candidate.copy.sha256) {
        return MergeAction::Identical;
    }
    let mut choices = chain.iter().map(|criterion| criterion.choose(local, candidate));
    let taken = choices.find_map(|choice| match choice {
        Choice::Take(why) => Some(why),
        Choice::KeepLocal => None,
    });
    taken.map_or(MergeAction::KeepLocal, MergeAction::Replace)
}

/// Asks the Keep criteria; the first that says no has the last word.
///
/// # Errors
/// [`Fault::Refused`], with its reason.
pub fn may_keep(candidate: &Candidate<'_>, chain: &[Box<dyn Keep>]) -> Result<(), Fault> {
    chain.iter().try_for_each(|criterion| match criterion.judge(candidate) {
        Verdict::Accept => Ok(()),
        Verdict::Reject(why) => Err(Fault::Refused(why)),
    })
}

/// Does something of that date belong in `recent`? What tells no date was seen just now. A date from the future is one of
/// a wrong clock, and as recent as any.
pub fn is_recent(date: Option<Epoch>, now: Epoch, window: Delay) -> bool {
    date.is_none_or(|date| date + window >= now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::range::Length;
    use crate::core::sync::criteria::replace_named;
    use crate::core::sync::kinds::Facts;

    fn copy(fill: u8, date: i64, signatures: u32) -> Copy {
        let facts = Facts { date: Some(Epoch::from_secs(date)), identity: None, signatures };
        Copy { facts, size: Length(9), sha256: [fill; 32], place: "x".into() }
    }

    fn decided(local: &Local, candidate: &Copy, chain: &[&str]) -> MergeAction {
        let chain: Vec<_> = chain.iter().map(|name| replace_named(name).expect("known")).collect();
        decide(local, &Candidate { path: "a/b", source: "s", kind: "any", copy: candidate }, &chain)
    }

    #[test]
    fn what_stands_there_decides() {
        let candidate = copy(1, 100, 1);
        assert_eq!(decided(&Local::Absent, &candidate, &["never"]), MergeAction::Add);
        assert_eq!(decided(&Local::Valid(copy(1, 1, 9)), &candidate, &["never"]), MergeAction::Identical);
        assert_eq!(decided(&Local::Valid(copy(2, 1, 0)), &candidate, &["never"]), MergeAction::KeepLocal);
        assert_eq!(decided(&Local::Invalid(Fault::Stub), &candidate, &["never"]), MergeAction::Heal(Fault::Stub));
    }

    #[test]
    fn the_criteria_of_the_program() {
        let taken = |local: &Copy, chain: &[&str]| {
            matches!(decided(&Local::Valid(local.clone()), &copy(1, 100, 5), chain), MergeAction::Replace(_))
        };
        assert!(taken(&copy(2, 99, 9), &["newer-content-date"]) && !taken(&copy(2, 100, 0), &["newer-content-date"]));
        assert!(taken(&copy(2, 200, 4), &["more-signatures"]) && !taken(&copy(2, 0, 5), &["more-signatures"]));
        assert!(taken(&copy(2, 200, 4), &["never", "newer-content-date", "more-signatures"]), "each is asked");
        assert!(!taken(&copy(2, 0, 0), &["never"]) && !taken(&copy(2, 0, 0), &[]));
    }

    #[test]
    fn recent_is_by_the_content() {
        let (now, window) = (Epoch::from_secs(1_000_000), Delay::from_hours(72));
        let recent = |date: i64| is_recent(Some(Epoch::from_secs(date)), now, window);
        assert!(recent(1_000_000 - 72 * 3_600) && !recent(1_000_000 - 72 * 3_600 - 1) && recent(2_000_000));
        assert!(is_recent(None, now, window));
    }
}
