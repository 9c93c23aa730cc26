//! `retry`, `suspend`, `resume`, `abort`: a word to transfers, whichever process runs them.

use std::path::Path;

use crate::cli::args::Chosen;
use crate::cli::exit::Exit;
use crate::cli::foreign::{self, Book, Told, Wanted, printable};
use crate::cli::leftovers::{After, clean_up_at_servers};
use crate::cli::state::pick;
use crate::cli::trouble::Trouble;
use crate::core::pers_xfer::record::{Direction, Record, Status};

/// What is to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Retry,
    Suspend,
    Resume,
    Abort,
}

/// What a control command works with.
pub(crate) struct Desk<'a> {
    pub(crate) book: &'a dyn Book,
    /// The folder that relative paths are meant from.
    pub(crate) cwd: &'a Path,
    /// A line for people.
    pub(crate) say: &'a dyn Fn(&str),
}

/// Says it to each transfer that was chosen; where one is unknown or ambiguous, to none.
pub(crate) fn run(verb: Verb, chosen: &Chosen, desk: &Desk<'_>) -> Result<Exit, Trouble> {
    let contents = desk.book.load()?;
    contents.warnings.iter().for_each(|warning| (desk.say)(&format!("persxfer: warning: {warning}")));
    let records = chosen_ones(verb, chosen, &contents.records, desk.cwd)?;
    if records.is_empty() {
        (desk.say)(&format!("no transfer to {}", verb.wanted().word()));
        return Ok(Exit::Complete);
    }
    let ids: Vec<_> = records.iter().map(|record| record.id).collect();
    let told = foreign::control(desk.book.path(), &ids, &verb.wanted())?;
    for (record, told) in records.iter().zip(&told) {
        (desk.say)(&format!("{}: {}", pick::place(record), verb.line(told, record.direction)));
    }
    if verb == Verb::Abort {
        // Whoever runs one that was told to end sees to its servers itself. One that is over, and whose servers did not clean up then, is asked for again.
        let left = |record: &Record, told: &Told| matches!(told, Told::Nothing(_)) && !record.abandoned().is_empty();
        let ended = records.iter().zip(&told).filter(|(record, told)| **told == Told::Done || left(record, told));
        let ended: Vec<_> = ended.map(|(record, _)| *record).collect();
        clean_up_at_servers(desk.book.path(), &ended, After::Abort, desk.say);
    }
    // One that was forgotten since is unknown, as it would have been a moment later.
    Ok(if told.contains(&Told::Gone) { Exit::Usage } else { Exit::Complete })
}

fn chosen_ones<'a>(verb: Verb, chosen: &Chosen, records: &'a [Record], cwd: &Path) -> Result<Vec<&'a Record>, Trouble> {
    if chosen.all {
        // One that has been told something and has not heard it yet may be of any status by then.
        let chosen = |record: &&Record| verb.is_for(&record.status) || !record.wishes.is_empty();
        return Ok(records.iter().filter(chosen).collect());
    }
    let mut found: Vec<&Record> = Vec::new();
    for word in &chosen.transfers {
        let record = pick::one(records, word, cwd)?;
        if !found.iter().any(|other| other.id == record.id) {
            found.push(record);
        }
    }
    Ok(found)
}

impl Verb {
    fn wanted(self) -> Wanted {
        match self {
            Self::Retry => Wanted::Retry,
            Self::Suspend => Wanted::Suspend,
            Self::Resume => Wanted::Resume,
            Self::Abort => Wanted::Abort,
        }
    }

    /// Is a transfer of this status among `--all`? What a person suspended stays so until it is resumed.
    fn is_for(self, status: &Status) -> bool {
        self.wanted().concerns(status) && !(self == Self::Retry && *status == Status::Suspended)
    }

    fn line(self, told: &Told, direction: Direction) -> String {
        match told {
            Told::Done if self == Self::Abort && direction == Direction::Upload => {
                "aborted; `persxfer state forget` drops it, and leaves its file alone".to_owned()
            }
            Told::Done => self.done().to_owned(),
            Told::Left(holder) => format!("process {holder} was told to {} it", self.wanted().word()),
            Told::Nothing(Status::Done) if direction == Direction::Upload => "sent already".to_owned(),
            Told::Nothing(Status::Done) => "complete already".to_owned(),
            Told::Nothing(Status::Failed { message, .. }) => format!("has failed already: {}", printable(message)),
            Told::Nothing(Status::Suspended) => "suspended already".to_owned(),
            Told::Nothing(Status::Pending) => "not suspended".to_owned(),
            Told::Gone => "forgotten meanwhile".to_owned(),
        }
    }

    const fn done(self) -> &'static str {
        match self {
            Self::Retry => "to be tried now: `persxfer run`, or the same command again, does so",
            Self::Suspend => "suspended",
            Self::Resume => "resumed: `persxfer run`, or the same command again, goes on with it",
            Self::Abort => "aborted; `persxfer state forget` deletes what is left of it",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_who_it_can_concern() {
        let failed = Status::Failed { code: -224, message: String::new() };
        let statuses = [Status::Pending, Status::Suspended, Status::Done, failed];
        let concerned = |verb: Verb| statuses.iter().map(|s| verb.is_for(s)).collect::<Vec<_>>();
        assert_eq!(concerned(Verb::Retry), [true, false, false, true]);
        assert_eq!(concerned(Verb::Suspend), [true, false, false, false]);
        assert_eq!(concerned(Verb::Resume), [false, true, false, false]);
        assert_eq!(concerned(Verb::Abort), [true, true, false, false]);
    }
}
