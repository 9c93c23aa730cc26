//! Bytes on their way in: each run of bytes is gathered in strides, and written out at its own place.

use bytes::Bytes;

use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::core::range::{Length, Offset};
use crate::io::part::PartStore;
use crate::io::part::draft::Draft;
use crate::io::part::gather::STRIDE;
use crate::io::part::islands::MOST;

impl PartStore {
    /// Takes bytes that follow what is held; in the part also such as begin, or follow, a range held beyond a gap.
    /// They are written in strides of 1 MiB, at the latest by the first [`PartStore::tick`] after 250 ms. When a gap
    /// closes, what lay beyond it counts at once as held from the start.
    ///
    /// At most 4096 ranges are held beyond gaps: where one more begins, the shortest is forgotten.
    ///
    /// # Errors
    /// [`LocalFault::Io`] where some of the bytes are held already, and nothing is taken. [`LocalFault::DiskFull`] and
    /// [`LocalFault::Io`] where they cannot be written; [`PartStore::segments`] then tells what is held.
    pub fn write(&mut self, place: Place, at: Offset, bytes: Bytes) -> Result<(), LocalFault> {
        let draft = self.draft_mut(place)?;
        let (held, end) = (draft.held(), at.0.saturating_add(bytes.len() as u64));
        let beyond = at.0 != held;
        if (beyond && place == Place::Rival) || !draft.is_free(at.0, end) {
            return Err(misplaced(draft, at, end));
        }
        if beyond && !bytes.is_empty() {
            self.find_island(at.0)?;
        }
        if place == Place::Part {
            self.beat.took(bytes.len() as u64);
        }
        let (mut at, mut rest) = (at.0, bytes);
        while !rest.is_empty() {
            let draft = self.draft_mut(place)?;
            let Some(gather) = draft.gather_ending_at(at) else { return Err(misplaced(draft, Offset(at), end)) };
            let before = rest.len();
            rest = gather.take(rest);
            at += (before - rest.len()) as u64;
            if gather.is_full() {
                self.write_out_run(place, at)?;
            }
        }
        self.join(place, at)
    }

    /// Writes out what waits; gives what is held from the start. Afterwards a kill loses nothing of it, once there is a
    /// journal.
    ///
    /// # Errors
    /// As [`PartStore::write`].
    pub fn settle(&mut self, place: Place) -> Result<Length, LocalFault> {
        self.write_out(place)?;
        self.tell_segments()?;
        Ok(self.held(place))
    }

    /// Writes out all that waits of a draft.
    pub(super) fn write_out(&mut self, place: Place) -> Result<(), LocalFault> {
        self.write_out_start(place)?;
        let waiting = self.draft_mut(place)?.islands.waiting();
        waiting.into_iter().try_for_each(|end| self.write_out_run(place, end))
    }

    pub(super) fn settle_all(&mut self) -> Result<(), LocalFault> {
        let part = self.write_out(Place::Part);
        let rival = if self.rival.is_some() { self.write_out(Place::Rival) } else { Ok(()) };
        part.and(rival)
    }

    /// Writes out the run of bytes that ends here.
    fn write_out_run(&mut self, place: Place, end: u64) -> Result<(), LocalFault> {
        let draft = self.draft_mut(place)?;
        if draft.gather.end() == end {
            return self.write_out_start(place);
        }
        self.declare_gaps()?;
        let written = self.part.settle_island(end);
        self.beat.written(*written.as_ref().unwrap_or(&0), self.part.waits());
        written.map(|_| ())
    }

    fn write_out_start(&mut self, place: Place) -> Result<(), LocalFault> {
        let draft = self.draft_mut(place)?;
        // A small file that is here at once needs no journal: should we be killed meanwhile, it is fetched again.
        if draft.gather.end() >= STRIDE && !draft.gather.is_empty() {
            self.mark_journal()?;
        }
        let draft = self.draft_mut(place)?;
        let written = draft.settle();
        let waits = draft.islands.wait();
        self.beat.written(*written.as_ref().unwrap_or(&0), waits);
        written.map(|_| ())
    }

    /// Begins an island here, unless one ends here that goes on.
    fn find_island(&mut self, at: u64) -> Result<(), LocalFault> {
        if self.part.islands.ending_at(at).is_some() {
            return Ok(());
        }
        if self.part.islands.count() >= MOST {
            self.forget_shortest()?;
        }
        self.part.islands.begin(at);
        Ok(())
    }

    /// A gap has closed at `at`, perhaps: what touches there becomes one.
    fn join(&mut self, place: Place, at: u64) -> Result<(), LocalFault> {
        if !self.draft_mut(place)?.islands.begins_at(at) {
            return Ok(());
        }
        self.write_out_run(place, at)?;
        self.draft_mut(place)?.join(at);
        Ok(())
    }
}

fn misplaced(draft: &Draft, at: Offset, end: u64) -> LocalFault {
    let detail = format!("{at}..{end} is held in part, or follows nothing that is held; please report this");
    LocalFault::Io { doing: "write", path: draft.path.display().to_string(), detail }
}
