//! The upload itself: what is refused before the data, how the data is taken, and what stays of it.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

use super::super::door::Way;
use super::super::faults::lock;
use super::super::visit::Visit;
use super::{BoincFault, FrontEnd, STOPPED, Said, Seen, Signatures, State, is_good, locked};

/// The handler writes so much at a time.
const BLOCK: usize = 256 << 10;

/// The connection is over, and nothing is said.
const GONE: Said = Said::Nothing(Way::Close);

/// The data of a request: what was read with the head, then what comes.
struct Data<'a> {
    visit: &'a mut Visit,
    behind: Vec<u8>,
    /// Bytes until the fault ends it.
    until: u64,
    taken: u64,
}

/// How taking the data ended.
enum Ended {
    /// The body's end, or everything that was asked for.
    Whole,
    /// The client is gone.
    Broken,
    /// The fault is due.
    Due,
}

/// What was asked for, in whole bytes.
struct Asked {
    name: String,
    nbytes: u64,
    offset: u64,
}

impl State {
    pub(super) fn upload(&self, visit: &mut Visit, seen: &mut Seen, behind: Vec<u8>) -> Said {
        let fault = self.uploads.take();
        let page = match fault {
            BoincFault::Page(status) => Some(Said::Page(status)),
            BoincFault::EmptyReply => Some(Said::Empty),
            BoincFault::Wrapped(size) => Some(Said::Wrapped(size)),
            BoincFault::WithStatus(status, size) => Some(Said::WithStatus(status, size)),
            _ => None,
        };
        if let Some(page) = page {
            return visit.drain().map_or(GONE, |_| page);
        }
        let until = match fault {
            BoincFault::Cut { after } | BoincFault::Stall { after } | BoincFault::DiskFull { after } => after,
            _ => u64::MAX,
        };
        let mut data = Data { visit, behind, until, taken: 0 };
        let said = match self.refusal(seen, fault) {
            Some((status, message)) => self.refuse(&mut data, status, message),
            None => self.accept(&mut data, seen, fault),
        };
        seen.data = data.taken;
        match said.status() {
            Some(status) if fault == BoincFault::AnswerLost => Said::Lost(status),
            _ => said,
        }
    }

    /// What the handler says before it looks at the data.
    fn refusal(&self, seen: &Seen, fault: BoincFault) -> Option<(i32, String)> {
        let refused = |status, message: &str| Some((status, message.to_owned()));
        let Some(name) = &seen.name else { return refused(-1, "no file name") };
        let bad = match &self.signatures {
            Signatures::Only(good) => seen.signature.as_ref() != Some(good),
            Signatures::Ignored => false,
        };
        match fault {
            BoincFault::Stopped => return refused(1, STOPPED),
            BoincFault::Locked => return refused(1, &locked(name)),
            BoincFault::BadSignature => return refused(-1, "invalid signature"),
            _ => {}
        }
        if bad {
            return refused(-1, "invalid signature");
        }
        if !seen.has_data || !is_good(name) {
            return refused(-1, "no data, or a bad file name");
        }
        let Some(nbytes) = seen.nbytes.filter(|n| *n >= 0.0) else { return refused(-1, "nbytes missing or negative") };
        let Some(max) = seen.max_nbytes else { return refused(-1, "no max_nbytes") };
        let (offset, size) = (seen.offset.unwrap_or(0.0), self.size(name));
        if lock(&self.busy).contains(name) {
            return refused(1, &locked(name));
        }
        if nbytes <= max && offset < nbytes && offset > whole_to_float(size) {
            return refused(1, &format!("length of file {name} {size} bytes < offset {offset} bytes"));
        }
        None
    }

    /// How a refusal before the data arrives depends on the front end, and on whether there is data.
    fn refuse(&self, data: &mut Data<'_>, status: i32, message: String) -> Said {
        let mut first = vec![0; BLOCK];
        let Ok(n) = data.take(&mut first) else { return GONE };
        match self.front {
            _ if n == 0 => Said::Reply(status, message),
            FrontEnd::Apache => GONE,
            FrontEnd::NginxStreaming => Said::Page(502),
            FrontEnd::NginxBuffering if data.drain().is_ok() => Said::Page(502),
            FrontEnd::Lighttpd if data.drain().is_ok() => Said::Reply(status, message),
            FrontEnd::NginxBuffering | FrontEnd::Lighttpd => GONE,
        }
    }

    fn accept(&self, data: &mut Data<'_>, seen: &Seen, fault: BoincFault) -> Said {
        let (nbytes, max) = (whole(seen.nbytes), whole(seen.max_nbytes));
        let asked = Asked { name: seen.name.clone().unwrap_or_default(), nbytes, offset: whole(seen.offset) };
        if nbytes > max {
            let message = format!("file size {nbytes} is greater than the limit {max}");
            return data.drain().map_or(GONE, |()| Said::Reply(-1, message));
        }
        let nothing_to_do = asked.offset >= nbytes && nbytes > 0;
        if nothing_to_do || fault == BoincFault::ReadOnly || self.is_read_only(&asked.name) {
            return data.drain().map_or(GONE, |()| Said::reply(0, ""));
        }
        let streams = matches!(self.front, FrontEnd::Apache | FrontEnd::NginxStreaming);
        // Until this returns, which is before anything is said.
        let _busy = streams.then(|| Busy::enter(&self.busy, &asked.name));
        lock(&self.before).insert(asked.name.clone(), self.size(&asked.name));
        let file = File::options().create(true).truncate(false).write(true).open(self.path(&asked.name));
        let Ok(file) = file else { return Said::reply(1, "the file cannot be opened") };
        match (self.copy(data, &asked, &file, fault), fault) {
            (Ok((written, Ended::Whole)), _) => settle(data, &asked, written),
            (Ok((written, Ended::Due)), BoincFault::DiskFull { .. }) => {
                Said::Reply(1, format!("write failed after {written} bytes: no space left"))
            }
            (Ok((_, Ended::Due)), BoincFault::Stall { .. }) => Said::Nothing(data.visit.hang()),
            (Ok((_, Ended::Due)), _) => Said::Nothing(Way::Reset),
            (Ok((_, Ended::Broken)) | Err(_), _) => GONE,
        }
    }

    fn is_read_only(&self, name: &str) -> bool {
        std::fs::metadata(self.path(name)).is_ok_and(|m| m.permissions().readonly())
    }

    /// Writes what comes; how much was written, and how it ended.
    fn copy(&self, data: &mut Data<'_>, asked: &Asked, file: &File, fault: BoincFault) -> io::Result<(u64, Ended)> {
        let streams = matches!(self.front, FrontEnd::Apache | FrontEnd::NginxStreaming);
        let (mut held, mut written) = (Vec::new(), 0);
        let mut buffer = vec![0; BLOCK];
        let ended = loop {
            let got = match data.take(&mut buffer) {
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::TimedOut => break Ended::Due,
                Err(_) => break Ended::Broken,
            };
            let room = asked.nbytes - asked.offset - written - held.len() as u64;
            held.extend_from_slice(&buffer[..got.min(usize::try_from(room).unwrap_or(usize::MAX))]);
            while streams && held.len() >= BLOCK {
                file.write_all_at(&held[..BLOCK], asked.offset + written)?;
                held.drain(..BLOCK);
                written += BLOCK as u64;
            }
            if got == 0 || written + held.len() as u64 == asked.nbytes - asked.offset {
                break Ended::Whole;
            }
        };
        // Of a dead connection the handler has written what it had together, or never ran.
        let full = matches!(fault, BoincFault::DiskFull { .. }) && matches!(ended, Ended::Due);
        if matches!(ended, Ended::Whole) || self.front == FrontEnd::NginxStreaming || full {
            file.write_all_at(&held, asked.offset + written)?;
            written += held.len() as u64;
        }
        Ok((written, ended))
    }
}

/// The reply when the body has ended or enough has come.
fn settle(data: &mut Data<'_>, asked: &Asked, written: u64) -> Said {
    let wanted = asked.nbytes - asked.offset;
    if written < wanted {
        return Said::Reply(1, format!("EOF on socket read: asked for {wanted}, got {written}"));
    }
    // More than was announced is read and forgotten.
    data.drain().map_or(GONE, |()| Said::reply(0, ""))
}

impl Data<'_> {
    /// Bytes of the data, 0 at the end; `TimedOut` where the fault is due.
    fn take(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.until - self.taken).unwrap_or(usize::MAX);
        if left == 0 {
            return Err(ErrorKind::TimedOut.into());
        }
        let most = into.len().min(left);
        let n = if self.behind.is_empty() {
            self.visit.take(&mut into[..most])?
        } else {
            let n = self.behind.len().min(most);
            into[..n].copy_from_slice(&self.behind[..n]);
            self.behind.drain(..n);
            n
        };
        self.taken += n as u64;
        Ok(n)
    }

    fn drain(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 64 << 10];
        while self.take(&mut buffer)? > 0 {}
        Ok(())
    }
}

/// The name of a file that is being written, for as long as it is.
struct Busy<'a> {
    names: &'a Mutex<HashSet<String>>,
    name: String,
}

impl<'a> Busy<'a> {
    fn enter(names: &'a Mutex<HashSet<String>>, name: &str) -> Self {
        lock(names).insert(name.to_owned());
        Self { names, name: name.to_owned() }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        lock(self.names).remove(&self.name);
    }
}

/// A number of the request in whole bytes. It is none below 0 and has no fraction: a C program casts it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "below 0 and beyond the range it is cut off"
)]
fn whole(number: Option<f64>) -> u64 {
    number.unwrap_or(0.0) as u64
}

#[expect(clippy::cast_precision_loss, reason = "no file in a test is that large")]
fn whole_to_float(size: u64) -> f64 {
    size as f64
}
