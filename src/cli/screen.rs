//! Standard error, for people: lines of text that never tear the bars, which live there too.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::MultiProgress;

use crate::cli::foreign::printable;
use crate::cli::report::Weight;

/// Standard error, shared by everybody who writes there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Screen {
    bars: Arc<Mutex<Option<MultiProgress>>>,
}

impl Screen {
    /// Can bars be drawn there? Not on a terminal that calls itself dumb (`TERM`).
    pub(crate) fn can_draw() -> bool {
        io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
    }

    /// One line; whatever in it could move a cursor is made visible instead.
    pub(crate) fn line(&self, text: &str) {
        self.raw(format!("{}\n", printable(text)).as_bytes());
    }

    /// One line, unless it is news and nobody wants any.
    pub(crate) fn say(&self, quiet: bool, weight: Weight, text: &str) {
        if !(quiet && weight == Weight::News) {
            self.line(text);
        }
    }

    /// One line from a thread that panics, perhaps while it holds the screen: never waits.
    pub(crate) fn last_words(&self, text: &str) {
        match self.bars.try_lock() {
            Ok(free) => {
                drop(free);
                self.line(text);
            }
            Err(_) => drop(writeln!(io::stderr(), "{}", printable(text))),
        }
    }

    /// From now on bars are there, or no longer.
    pub(crate) fn set_bars(&self, bars: Option<MultiProgress>) {
        *self.bars.lock().unwrap_or_else(PoisonError::into_inner) = bars;
    }

    /// Bytes as they are. Where standard error cannot be written, there is nobody left to tell.
    fn raw(&self, bytes: &[u8]) {
        let write = || drop(io::stderr().lock().write_all(bytes));
        match self.bars.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(bars) => bars.suspend(write),
            None => write(),
        }
    }
}

/// For the log, which hands over one whole event at a time.
impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.raw(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
