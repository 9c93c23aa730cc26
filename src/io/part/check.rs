//! Are the bytes held still those that were written? Where a file does not look as it was left, what has sums is read and
//! compared with them before a session goes on; what differs is held no more, and fetched again.
//!
//! Between a kill and the next session anything may have happened to a file, and the length does not tell. Where nothing
//! is found, bytes without sums are believed as before. Where something is, they are not: nothing vouches for them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::core::range::{ByteRange, Length, Offset, RangeSet};
use crate::io::part::PartStore;
use crate::io::part::beat::LAST_CATCH_UP;
use crate::io::part::draft::{Draft, Trust};
use crate::io::part::fault::on;
use crate::io::part::flush::lock;
use crate::io::part::seen::Seen;
use crate::io::part::spans::Span;

/// Bytes read at once: 1 MiB.
const CHUNK: usize = 1 << 20;

/// How a comparison with the sums ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// With a look at everything: this was damaged, and is held no more.
    Through(Vec<Damage>),
    /// It was told to stop.
    Stopped,
}

/// What was found damaged in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, as the user knows it.
    pub path: String,
    /// Bytes in blocks that do not have their sum.
    pub differs: Length,
    /// Bytes that went with them, since nothing tells whether they are right.
    pub unvouched: Length,
}

/// What became of a look at one file.
enum Looked {
    /// The bytes that do not have their sum.
    Through(RangeSet),
    Stopped,
}

impl PartStore {
    /// A session leaves the files to a later one of this process. Everything must have been written out; what has no sum
    /// yet gets one, 256 MiB at most.
    pub fn leave(&mut self) {
        if let Err(fault) = self.sum_up(LAST_CATCH_UP) {
            tracing::debug!(%fault, "no sums were told");
        }
        for draft in std::iter::once(&mut self.part).chain(&mut self.rival) {
            if draft.trust == Trust::Yes {
                draft.trust = Trust::Left(Seen::now(&draft.file));
            }
        }
    }

    /// How many bytes a [`PartStore::check`] would read: none where the files look as they were left, or nothing has sums.
    pub fn doubted(&mut self) -> Length {
        let mut doubted = Length::ZERO;
        for place in [Place::Part, Place::Rival] {
            let spans = self.vouched(place);
            let Ok(draft) = self.draft_mut(place) else { continue };
            draft.look_again();
            if draft.trust == Trust::No && spans.is_empty() {
                // There is nothing to compare, as in a file that was made a moment ago.
                draft.trust = Trust::Yes;
            }
            if draft.trust == Trust::No {
                doubted = spans.iter().fold(doubted, |sum, span| sum + span.range.length());
            }
        }
        doubted
    }

    /// Compares what may have been changed with its sums, and drops what differs. `go_on` is told how many bytes were read
    /// since the last time, after each MiB at most, and says whether to go on.
    ///
    /// # Errors
    /// [`LocalFault::Io`] and [`LocalFault::DiskFull`].
    pub fn check(&mut self, go_on: &mut dyn FnMut(Length) -> bool) -> Result<Checked, LocalFault> {
        let mut found = Vec::new();
        for place in [Place::Part, Place::Rival] {
            let spans = self.vouched(place);
            let Ok(draft) = self.draft_mut(place) else { continue };
            if draft.trust != Trust::No {
                continue;
            }
            let path = draft.path.clone();
            let looked = look_at(&draft.file, &spans, go_on).map_err(on("read", &path))?;
            let Looked::Through(wrong) = looked else { return Ok(Checked::Stopped) };
            if !wrong.is_empty() {
                let (differs, path) = (wrong.length(), path.display().to_string());
                let unvouched = self.drop_damaged(place, &wrong, &spans)?.saturating_sub(differs);
                found.push(Damage { path, differs, unvouched });
            }
            self.draft_mut(place)?.trust = Trust::Yes;
        }
        Ok(Checked::Through(found))
    }

    /// Drops these bytes, and what has no sum; gives how much that was.
    fn drop_damaged(&mut self, place: Place, wrong: &RangeSet, spans: &[Span]) -> Result<Length, LocalFault> {
        let before = self.draft_mut(place)?.written();
        let mut left: RangeSet = spans.iter().map(|span| span.range).collect();
        wrong.iter().for_each(|range| left.remove(range));
        let kept = match place {
            Place::Part => {
                self.retain(left)?;
                self.part.written().length()
            }
            Place::Rival => {
                self.cut(place, left.head())?;
                self.held(place)
            }
        };
        Ok(before.length().saturating_sub(kept))
    }

    /// What of a draft's file has sums.
    fn vouched(&self, place: Place) -> Vec<Span> {
        let Some(draft) = self.draft(place) else { return Vec::new() };
        lock(&self.journal).known(place).vouched(draft.inode, &draft.written())
    }
}

impl Draft {
    /// Is it as it was left?
    fn look_again(&mut self) {
        if let Trust::Left(seen) = self.trust {
            // Where times are too coarse, a process is not held up at each of its sessions.
            let as_left = seen.is_none() || Seen::now(&self.file) == seen;
            self.trust = if as_left { Trust::Yes } else { Trust::No };
        }
    }
}

/// The bytes that do not have the sum that they were written with. `go_on` is told how many bytes were read.
fn look_at(file: &File, spans: &[Span], go_on: &mut dyn FnMut(Length) -> bool) -> io::Result<Looked> {
    let (mut wrong, mut buffer) = (RangeSet::new(), Vec::new());
    for span in spans {
        match sum_of(file, span.range, &mut buffer, go_on) {
            Ok(Some(sum)) if sum == span.sum => {}
            Ok(None) => return Ok(Looked::Stopped),
            Ok(Some(_)) => wrong.insert(span.range),
            Err(error) if is_damage(&error) => wrong.insert(span.range),
            Err(error) => return Err(error),
        }
    }
    Ok(Looked::Through(wrong))
}

/// The same, however long it takes.
pub(super) fn wrong_spans(file: &File, spans: &[Span]) -> io::Result<RangeSet> {
    match look_at(file, spans, &mut |_| true)? {
        Looked::Through(wrong) => Ok(wrong),
        Looked::Stopped => Ok(RangeSet::new()),
    }
}

/// What the disk cannot read any more, or what was cut off.
fn is_damage(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof || error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

/// The sum of these bytes; `None` where it was told to stop.
pub(super) fn sum_of(
    file: &File,
    range: ByteRange,
    buffer: &mut Vec<u8>,
    go_on: &mut dyn FnMut(Length) -> bool,
) -> io::Result<Option<u32>> {
    buffer.resize(CHUNK, 0);
    let (mut sum, mut at) = (0, range.start);
    while at < range.end {
        // At most a MiB.
        let n = (range.end.0 - at.0).min(CHUNK as u64) as usize;
        file.read_exact_at(&mut buffer[..n], at.0)?;
        sum = crc32c::crc32c_append(sum, &buffer[..n]);
        at = Offset(at.0 + n as u64);
        if !go_on(Length(n as u64)) {
            return Ok(None);
        }
    }
    Ok(Some(sum))
}
