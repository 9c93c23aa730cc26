//! A failure is not told before it is clear what follows: often the next line says the same once more, and says it whole.

use crate::core::pers_xfer::record::XferId;
use crate::engine::{Ending, Notice};

/// The latest failure, until the next notice.
#[derive(Debug, Default)]
pub(crate) struct Untold(Option<Failed>);

/// A failure that is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// Of which transfer.
    pub(crate) id: XferId,
    /// The line for it.
    pub(crate) line: String,
    /// The failure alone, printable.
    pub(crate) text: String,
    /// How many mirrors the transfer has.
    pub(crate) mirrors: usize,
}

impl Untold {
    /// Keeps it back until the next notice, which the engine gives in the same turn.
    pub(crate) fn keep(&mut self, failed: Failed) {
        self.0 = Some(failed);
    }

    /// What is due before this notice: nothing where that is the end of the same transfer, and tells the failure too.
    pub(crate) fn due(&mut self, next: &Notice) -> Option<Failed> {
        let failed = self.0.take()?;
        match next {
            Notice::Ended(report) if report.id == failed.id && failed.is_in(&report.ending) => None,
            _ => Some(failed),
        }
    }
}

impl Failed {
    /// A transfer that failed for good tells what each mirror said; one that stopped tells only the last thing, without
    /// the mirror's name.
    fn is_in(&self, ending: &Ending) -> bool {
        match ending {
            Ending::Failed { message, .. } => message.contains(&self.text),
            Ending::Stopped { why, .. } => self.mirrors <= 1 && *why == self.text,
            Ending::Local(fault) => fault.to_string() == self.text,
            Ending::Complete { .. } | Ending::Unchanged { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::samples::{self, id};
    use crate::engine::Report;

    fn due(ending: Option<Ending>, mirrors: usize) -> bool {
        let mut untold = Untold::default();
        let text = "the server answered 503 Service Unavailable".to_owned();
        untold.keep(Failed { id: id(1), line: format!("f: {text}"), text, mirrors });
        let next = match ending {
            Some(ending) => Notice::Ended(Report { id: id(1), ..samples::report(ending) }),
            None => Notice::Verifying { id: id(1) },
        };
        let due = untold.due(&next).is_some();
        assert_eq!(untold.due(&next), None, "once is enough");
        due
    }

    #[test]
    fn an_end_that_says_the_same_is_enough() {
        assert!(due(None, 1));
        assert!(!due(Some(samples::stopped()), 1));
        assert!(due(Some(samples::stopped()), 2), "the mirror would not be named");
        assert!(due(Some(samples::failed()), 1), "it failed for another reason");
        assert!(due(Some(samples::local()), 1));
    }
}
