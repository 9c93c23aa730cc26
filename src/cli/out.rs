//! Standard output, for data only; everything for people goes to standard error through [`super::screen`].
//!
//! A reader that has seen enough and closed the pipe (`| head`) is no error: from then on nothing is written.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Where data goes.
pub(crate) struct Out<W = io::Stdout> {
    to: Mutex<Option<W>>,
}

/// How many columns the terminal has that standard output goes to; nothing where it goes elsewhere.
pub(crate) fn stdout_columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then(|| size.ws_col.into())
}

/// The same of standard error; 80 where it does not tell.
pub(crate) fn stderr_columns() -> usize {
    let told = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col.into());
    if told > 0 { told } else { 80 }
}

impl Out {
    /// Standard output.
    pub(crate) fn stdout() -> Self {
        Self::new(io::stdout())
    }

    /// Waits so long, or until nobody reads any more; answers whether somebody still does.
    pub(crate) fn rest(&self, time: Duration) -> bool {
        self.is_open() && still_read(&io::stdout(), time)
    }
}

/// Nothing is asked of it, so that only its other end going away can end the wait.
fn still_read(fd: &impl AsFd, time: Duration) -> bool {
    let mut asked = [PollFd::new(fd, PollFlags::empty())];
    let time = Timespec::try_from(time).ok();
    match poll(&mut asked, time.as_ref()) {
        Ok(0) | Err(_) => true,
        Ok(_) => !asked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL),
    }
}

impl<W: Write> Out<W> {
    /// Any writer.
    pub(crate) fn new(to: W) -> Self {
        Self { to: Mutex::new(Some(to)) }
    }

    /// Does anybody still read?
    pub(crate) fn is_open(&self) -> bool {
        self.to.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_some()
    }

    /// Writes all of it and flushes.
    ///
    /// # Errors
    /// Whatever the system says, a broken pipe excepted.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut to = self.to.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(writer) = to.as_mut() else { return Ok(()) };
        match writer.write_all(bytes).and_then(|()| writer.flush()) {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                *to = None;
                Ok(())
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Closed(usize, io::ErrorKind);

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            self.0 += 1;
            assert_eq!(self.0, 1, "written to again");
            Err(self.1.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_no_error_and_is_left_alone() {
        let out = Out::new(Closed(0, io::ErrorKind::BrokenPipe));
        out.write(b"a").expect("no error");
        out.write(b"b").expect("no error");
    }

    #[test]
    fn a_reader_that_goes_away_ends_a_wait() {
        let (reader, writer) = io::pipe().expect("a pipe");
        assert!(still_read(&writer, Duration::from_millis(1)));
        let waits = std::thread::spawn(move || still_read(&writer, Duration::from_secs(3_600)));
        drop(reader);
        assert!(!waits.join().expect("it ended"));
    }

    #[test]
    fn a_full_disk_is_one() {
        assert!(Out::new(Closed(0, io::ErrorKind::StorageFull)).write(b"a").is_err());
    }
}
