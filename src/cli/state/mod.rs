//! The `state` commands: what the state file holds, what is the matter with it, and forgetting.

mod check;
mod export;
mod forget;
mod json;
mod list;
pub(crate) mod pick;
mod report;
mod servers;
mod show;
mod waits;
mod watch;

use std::cell::LazyCell;
use std::path::Path;

pub(crate) use json::Held;

use crate::cli::args::StateCommand;
use crate::cli::exit::Exit;
use crate::cli::foreign::{self, Book, Contents, Warning};
use crate::cli::out::{Out, stdout_columns};
use crate::cli::screen::Screen;
use crate::cli::trouble::Trouble;
use crate::core::pers_xfer::record::{Record, Status};
use crate::core::time::{Delay, Now};
use crate::engine::Standing;

/// How things stand, once that is asked for.
pub(crate) type Lazy<'a> = LazyCell<Standing, Box<dyn FnOnce() -> Standing + 'a>>;

/// What every `state` command works with.
pub(crate) struct Desk<'a> {
    pub(crate) book: &'a dyn Book,
    pub(crate) now: Now,
    /// What keeps transfers waiting beside their own time. It is looked up when it is first asked for, after the state was read:
    /// who reads first tells of damage.
    pub(crate) standing: Lazy<'a>,
    /// The folder that relative paths are meant from.
    pub(crate) cwd: &'a Path,
    /// Data goes there.
    pub(crate) out: &'a dyn Fn(&str) -> Result<(), Trouble>,
    /// How wide the terminal is that data goes to, where it goes to one.
    pub(crate) columns: Option<usize>,
    /// Words for people go there.
    pub(crate) say: &'a dyn Fn(&str),
}

/// Runs one of them over the state file.
pub(crate) fn run(
    command: &StateCommand,
    book: &dyn Book,
    standing: &dyn Fn() -> Standing,
    cwd: &Path,
    screen: &Screen,
) -> Result<Exit, Trouble> {
    let stdout = Out::stdout();
    let out = |text: &str| {
        stdout.write(text.as_bytes()).map_err(|e| Trouble::io("write to", Path::new("standard output"), &e))
    };
    let say = |text: &str| screen.line(text);
    if let StateCommand::List { all, watch: true, .. } = command {
        return watch::run(list::Which::of(*all), book, standing, cwd, &say);
    }
    let now = foreign::now();
    dispatch(
        command,
        &Desk {
            book,
            now,
            standing: LazyCell::new(Box::new(standing)),
            cwd,
            out: &out,
            columns: stdout_columns(),
            say: &say,
        },
    )
}

fn dispatch(command: &StateCommand, desk: &Desk<'_>) -> Result<Exit, Trouble> {
    match command {
        StateCommand::List { all, json, .. } => list::run(desk, list::Which::of(*all), json::Form::of(*json)),
        StateCommand::Show { transfer, json } => show::run(desk, transfer, json::Form::of(*json)),
        StateCommand::Check { repair, json } => check::run(desk, check::Deed::of(*repair), json::Form::of(*json)),
        StateCommand::Report => report::run(desk),
        StateCommand::Export => export::run(desk),
        StateCommand::Forget { transfers } => forget::run(desk, transfers),
    }
}

/// How long an unfinished transfer still waits for its next try, where it does.
pub(crate) fn waits(record: &Record, now: Now) -> Option<Delay> {
    record.next_request_time.filter(|next| *next > now.wall).map(|next| next.since(now.wall))
}

impl Desk<'_> {
    /// What the state file holds; damage that was survived is told on the way.
    fn load(&self) -> Result<Contents, Trouble> {
        let contents = self.book.load()?;
        contents.warnings.iter().for_each(|warning: &Warning| (self.say)(&format!("persxfer: warning: {warning}")));
        Ok(contents)
    }

    /// The same, one record at a time.
    fn visit(&self, see: &mut dyn FnMut(Record)) -> Result<(), Trouble> {
        let warnings = self.book.visit(see)?;
        warnings.iter().for_each(|warning| (self.say)(&format!("persxfer: warning: {warning}")));
        Ok(())
    }

    /// What a transfer does just now, in a word. One that a process works on runs, unless its time has not come.
    fn word(&self, record: &Record) -> &'static str {
        match &record.status {
            Status::Done if self.book.is_missing(record) => "missing",
            Status::Done => "complete",
            Status::Failed { .. } => "failed",
            Status::Suspended => "suspended",
            Status::Pending if waits(record, self.now).is_some() || self.waits_for(record).is_some() => "waiting",
            Status::Pending if self.book.holder(record).is_some() => {
                if record.first_request_time.is_some() {
                    "running"
                } else {
                    "queued"
                }
            }
            Status::Pending => "ready",
        }
    }
}

#[cfg(test)]
mod tests;
