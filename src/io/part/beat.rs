//! The beat: what has waited long enough is written out, told to the journal, flushed.

use crate::core::failure::LocalFault;
use crate::core::file_xfer::Place;
use crate::core::time::{Delay, Mono};
use crate::io::part::draft::{Draft, Gaps};
use crate::io::part::flush::{Begun, Checkpoint, lock, try_lock};
use crate::io::part::hasher::Hasher;
use crate::io::part::known::before;
use crate::io::part::lagging::CatchUp;
use crate::io::part::summing::Summed;
use crate::io::part::{Marked, PartStore};

/// A checkpoint is due after so many new bytes: 64 MiB.
const CHECKPOINT_BYTES: u64 = 64 << 20;
/// A checkpoint is due after so long, if there are new bytes; and so often block sums catch up.
const CHECKPOINT_TIME: Delay = Delay::from_secs(5);
/// Bytes wait so long at most before they are written out.
const GATHER_TIME: Delay = Delay::from_millis(250);
/// Of a file with gaps, what is not told is lost by a kill: it is written out and told after so long...
const TELL_TIME: Delay = Delay::from_millis(50);
/// ...or after so many new bytes, 256 KiB, and this time.
const TELL_BYTES: u64 = 256 << 10;
const LEAST_TELL_TIME: Delay = Delay::from_millis(5);
/// What a full disk takes from the part for the journal: 64 KiB, a block of any file system.
const JOURNAL_ROOM: u64 = 64 << 10;
/// Block sums catch up by so much at most at one checkpoint, on its thread: 1 GiB.
const CATCH_UP: u64 = 1 << 30;
/// And by so much when a session ends, which waits for it: 256 MiB.
pub(super) const LAST_CATCH_UP: u64 = 256 << 20;
/// So much gets its sums in passing, while bytes flow: 16 MiB, at every 250 ms. What comes faster waits for a checkpoint.
const IN_PASSING: u64 = 16 << 20;

/// What has been done lately, as far as ticks tell the time.
#[derive(Debug)]
pub(super) struct Beat {
    /// Bytes written out since the last checkpoint.
    fresh: u64,
    /// When the last checkpoint began, or the first tick came.
    checkpoint_at: Option<Mono>,
    /// When block sums last began to catch up, or the first tick came.
    sums_at: Option<Mono>,
    /// When sums were last made in passing.
    summed_at: Option<Mono>,
    /// Has everything that was written out its sum?
    summed: Summed,
    /// Since when bytes wait.
    waiting_since: Option<Mono>,
    /// Does the journal know of all that was written out?
    told: Told,
    /// Bytes taken since the journal was last told what is held of a file with gaps.
    untold: u64,
    /// When that was.
    told_at: Option<Mono>,
}

/// Does the journal know of all that was written out? Of interest only while the part has gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    All,
    NotAll,
}

impl Beat {
    pub(super) const fn new() -> Self {
        Self {
            fresh: 0,
            checkpoint_at: None,
            sums_at: None,
            summed_at: None,
            summed: Summed::NotAll,
            waiting_since: None,
            told: Told::All,
            untold: 0,
            told_at: None,
        }
    }

    /// So many bytes were written out; others still wait, perhaps.
    pub(super) const fn written(&mut self, n: u64, waits: bool) {
        if !waits {
            self.waiting_since = None;
        }
        self.fresh += n;
        self.told = Told::NotAll;
        self.summed = Summed::NotAll;
    }

    /// So many bytes came.
    pub(super) const fn took(&mut self, n: u64) {
        self.untold = self.untold.saturating_add(n);
    }

    fn is_telling_due(&self, now: Mono) -> bool {
        let pause = if self.untold >= TELL_BYTES { LEAST_TELL_TIME } else { TELL_TIME };
        self.told_at.is_none_or(|last| now.since(last) >= pause)
    }

    /// The journal has been told all.
    pub(super) const fn told(&mut self) {
        self.told = Told::All;
    }

    fn is_checkpoint_due(&mut self, now: Mono) -> bool {
        let last = *self.checkpoint_at.get_or_insert(now);
        let late = self.fresh > 0 && now.since(last) >= CHECKPOINT_TIME;
        late || self.fresh >= CHECKPOINT_BYTES
    }

    fn is_summing_due(&mut self, now: Mono) -> bool {
        let last = *self.summed_at.get_or_insert(now);
        self.summed == Summed::NotAll && now.since(last) >= GATHER_TIME
    }

    fn catch_up_now(&mut self, now: Mono) -> CatchUp {
        if now.since(*self.sums_at.get_or_insert(now)) < CHECKPOINT_TIME {
            return CatchUp::No;
        }
        self.sums_at = Some(now);
        CatchUp::By(CATCH_UP)
    }
}

impl PartStore {
    /// To be called often while bytes flow: writes out what has waited for 250 ms, and begins a checkpoint after 64 MiB
    /// or 5 s of new data (`true`). The flushing goes on beside.
    ///
    /// # Errors
    /// As [`PartStore::write`]; also what an earlier checkpoint met.
    pub fn tick(&mut self, now: Mono) -> Result<bool, LocalFault> {
        let was_busy = self.flusher.is_busy();
        self.flusher.reap()?;
        if was_busy && !self.flusher.is_busy() {
            self.end_gaps()?;
        }
        self.beat.sums_at.get_or_insert(now);
        self.write_out_late(now)?;
        self.tell_segments_late(now)?;
        if self.beat.is_summing_due(now) {
            (self.beat.summed_at, self.beat.summed) = (Some(now), self.sum_up(IN_PASSING)?);
        }
        if !self.beat.is_checkpoint_due(now) || self.flusher.is_busy() {
            return Ok(false);
        }
        let catch_up = self.beat.catch_up_now(now);
        let checkpoint = self.prepare_checkpoint(catch_up)?;
        let begun = self.flusher.start(checkpoint, self.spec.slow);
        self.beat.checkpoint_at = Some(now);
        Ok(begun == Begun::Yes)
    }

    /// Writes out, flushes and records everything held, and waits for that.
    ///
    /// # Errors
    /// As [`PartStore::tick`].
    pub fn checkpoint(&mut self) -> Result<(), LocalFault> {
        self.checkpoint_now(CatchUp::No)
    }

    /// Ends the session: nothing held is lost. Files that hold nothing are removed.
    ///
    /// # Errors
    /// As [`PartStore::tick`].
    pub fn close(mut self) -> Result<(), LocalFault> {
        if self.part.segments().is_empty() && self.rival.is_none() {
            return self.discard();
        }
        let settled = self.settle_all();
        for draft in std::iter::once(&mut self.part).chain(&mut self.rival) {
            // So that the journal tells how far the digests have really come.
            draft.hasher.as_mut().map(Hasher::come_home);
        }
        let summed = self.sum_up(LAST_CATCH_UP);
        self.checkpoint_now(CatchUp::By(LAST_CATCH_UP)).and(settled)?;
        summed?;
        self.note_seen()
    }

    fn checkpoint_now(&mut self, catch_up: CatchUp) -> Result<(), LocalFault> {
        // Even where an earlier checkpoint failed, this one says what it can.
        let earlier = self.flusher.wait();
        self.prepare_checkpoint(catch_up)?.run()?;
        self.end_gaps()?;
        earlier
    }

    fn write_out_late(&mut self, now: Mono) -> Result<(), LocalFault> {
        let waits = self.part.waits() || self.rival.as_ref().is_some_and(Draft::waits);
        // What was written out early, by a session's end or beside bytes that were given up, counts after a kill as well.
        let unknown = self.marked == Marked::No && self.beat.fresh > 0;
        if !waits && !unknown {
            return Ok(());
        }
        let since = *self.beat.waiting_since.get_or_insert(now);
        if now.since(since) < GATHER_TIME {
            return Ok(());
        }
        self.mark_journal()?;
        self.settle_all()
    }

    /// While the part has gaps, its length tells nothing after a kill: the journal is told instead.
    fn tell_segments_late(&mut self, now: Mono) -> Result<(), LocalFault> {
        let news = self.beat.told == Told::NotAll || self.part.waits();
        // Gaps that are not told of yet are in memory only: they are when enough waits there.
        let early = !self.part.islands.is_empty() && self.beat.untold >= TELL_BYTES;
        if self.part.gaps == Gaps::No && !early || !news || !self.beat.is_telling_due(now) {
            return Ok(());
        }
        self.write_out(Place::Part)?;
        // A checkpoint that is just flushing the journal is not waited for.
        if let Some(mut journal) = try_lock(&self.journal) {
            journal.append(&[self.part.told_segments()])?;
            self.beat.told();
            (self.beat.untold, self.beat.told_at) = (0, Some(now));
        }
        Ok(())
    }

    /// The same at once, where there is news.
    pub(super) fn tell_segments(&mut self) -> Result<(), LocalFault> {
        if self.part.gaps == Gaps::Told && self.beat.told == Told::NotAll {
            lock(&self.journal).append(&[self.part.told_segments()])?;
            self.beat.told();
        }
        Ok(())
    }

    fn prepare_checkpoint(&mut self, catch_up: CatchUp) -> Result<Checkpoint, LocalFault> {
        self.mark_journal()?;
        self.settle_all()?;
        self.tell_segments()?;
        let mut checkpoint = Checkpoint::new(&self.journal, self.spec.sync, catch_up);
        checkpoint.add(Place::Part, &mut self.part);
        if let Some(rival) = &mut self.rival {
            checkpoint.add(Place::Rival, rival);
        }
        self.beat.fresh = 0;
        Ok(checkpoint)
    }

    /// On a full disk the journal takes the room of the last bytes of the part: without a journal none of them would count.
    fn make_room_for_the_journal(&mut self, full: LocalFault) -> Result<(), LocalFault> {
        let written = self.part.written();
        let end = written.head().0.saturating_sub(JOURNAL_ROOM);
        // Bytes that wait belong behind those that are written, and the session that brings them still runs.
        if end == 0 || self.part.waits() {
            return Err(full);
        }
        // It reads the file.
        self.part.hasher = None;
        self.part.keep(&before(written, end))?;
        self.begin_digests(Place::Part)?;
        lock(&self.journal).begin()
    }

    pub(super) fn mark_journal(&mut self) -> Result<(), LocalFault> {
        if self.marked == Marked::No {
            let begun = lock(&self.journal).begin();
            match begun {
                Err(full @ LocalFault::DiskFull { .. }) => self.make_room_for_the_journal(full)?,
                other => other?,
            }
            self.marked = Marked::Yes;
        }
        Ok(())
    }
}
