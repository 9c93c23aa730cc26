//! Exit statuses (design section 6): what a run as a whole came to, from the reports of its transfers.

use crate::engine::{Ending, Report};

/// The exit statuses, each with its one meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything asked for is complete.
    Complete = 0,
    /// An error of ours.
    Ours = 1,
    /// Wrong use.
    Usage = 2,
    /// A transfer failed for good, or `state check` found damage.
    Failed = 3,
    /// Stopped with work left; the state is saved.
    Left = 4,
    /// Trouble on this machine.
    Local = 5,
    /// Interrupted by Ctrl-C; the state is saved.
    Interrupted = 130,
}

/// The signal that ended a run early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, or the terminal went away.
    Terminate,
}

impl Exit {
    /// As the operating system wants it.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The status of a run: of several endings 5 before 3 before 4, and an interrupt that left work before all of them.
pub(crate) fn of_run(reports: &[Report], signal: Option<Signal>) -> Exit {
    let left = reports.iter().any(|r| matches!(r.ending, Ending::Stopped { .. }));
    match signal {
        Some(Signal::Interrupt) if left => Exit::Interrupted,
        _ => worst(reports.iter().map(|r| of_ending(&r.ending))),
    }
}

/// Of several, 5 before 3 before 4 before 0.
pub(crate) fn worst(exits: impl IntoIterator<Item = Exit>) -> Exit {
    let rank = |exit: &Exit| match exit {
        Exit::Complete => 0,
        Exit::Left => 1,
        Exit::Failed => 2,
        Exit::Local => 3,
        Exit::Interrupted => 4,
        Exit::Usage => 5,
        Exit::Ours => 6,
    };
    exits.into_iter().max_by_key(rank).unwrap_or(Exit::Complete)
}

const fn of_ending(ending: &Ending) -> Exit {
    match ending {
        Ending::Complete { .. } | Ending::Unchanged { .. } => Exit::Complete,
        Ending::Failed { .. } => Exit::Failed,
        Ending::Stopped { .. } => Exit::Left,
        Ending::Local(_) => Exit::Local,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::samples;

    fn exit(endings: &[Ending], signal: Option<Signal>) -> u8 {
        let reports: Vec<_> = endings.iter().cloned().map(samples::report).collect();
        of_run(&reports, signal).code()
    }

    #[test]
    fn five_before_three_before_four() {
        let (done, failed, left, local) =
            (samples::complete(), samples::failed(), samples::stopped(), samples::local());
        for (endings, code) in [
            (vec![], 0),
            (vec![done.clone(), done.clone()], 0),
            (vec![done.clone(), left.clone()], 4),
            (vec![left.clone(), failed.clone(), done.clone()], 3),
            (vec![failed.clone(), local.clone(), left.clone()], 5),
            (vec![local.clone(), failed.clone()], 5),
        ] {
            assert_eq!(exit(&endings, None), code, "{endings:?}");
            let backwards: Vec<_> = endings.iter().rev().cloned().collect();
            assert_eq!(exit(&backwards, None), code, "backwards: {endings:?}");
        }
    }

    #[test]
    fn an_interrupt_counts_where_it_left_work() {
        let (done, left, local) = (samples::complete(), samples::stopped(), samples::local());
        assert_eq!(exit(&[done.clone(), left.clone(), local], Some(Signal::Interrupt)), 130);
        assert_eq!(exit(std::slice::from_ref(&done), Some(Signal::Interrupt)), 0, "it came too late to matter");
        assert_eq!(exit(&[done, left], Some(Signal::Terminate)), 4);
    }
}
