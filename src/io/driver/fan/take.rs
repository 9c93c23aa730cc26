//! What comes over the links: compared where it is held, written where it is not.

use bytes::Bytes;

use crate::core::failure::{Cut, Failure, LocalFault};
use crate::core::file_xfer::link::LinkEvent;
use crate::core::file_xfer::{LastWord, Place};
use crate::core::range::{ByteRange, Length, Offset};
use crate::core::segments::{Ending, Event, LinkId};
use crate::io::driver::Beside;
use crate::io::driver::content::BodyEnd;
use crate::io::driver::fan::Fan;
use crate::io::driver::fan::line::{Doing, Start};
use crate::io::driver::fan::wire::{News, Told};
use crate::io::part::Compare;

impl Fan<'_> {
    /// Something came over a wire; what is about an earlier request is late, and what is about a link that is gone, too.
    pub(super) fn hear(&mut self, told: Told) -> Result<(), LocalFault> {
        let Told { link, request, news } = told;
        if self.lines.get(&link).is_none_or(|line| line.request != request) {
            return Ok(());
        }
        match news {
            News::Head(head) => {
                self.note_content(link, &head);
                self.drive(link, LinkEvent::Answer(head))
            }
            News::Chunk(chunk) => {
                self.session.received = self.session.received + Length(chunk.len() as u64);
                self.feed_content(link, &chunk);
                if !self.content_agrees(link, BodyEnd::Open)? {
                    return Ok(());
                }
                self.arrived(link, chunk)
            }
            News::End if !self.content_agrees(link, BodyEnd::Framed)? => Ok(()),
            News::End => self.body_ended(link),
            News::Broke(failure) => self.broke(link, &failure),
        }
    }

    /// Bytes of a link's body.
    pub(super) fn arrived(&mut self, link: LinkId, chunk: Bytes) -> Result<(), LocalFault> {
        let Some(line) = self.lines.get(&link) else { return Ok(()) };
        match line.doing {
            // Late: of a body that is not wanted any more.
            Doing::Asking => Ok(()),
            Doing::Comparing { until } => self.compare(link, until, chunk),
            Doing::Taking { end } => self.take(link, end, chunk),
            Doing::ReadingOn { until } => self.tail(link, until, &chunk),
        }
    }

    fn compare(&mut self, link: LinkId, until: Offset, mut chunk: Bytes) -> Result<(), LocalFault> {
        let Some(line) = self.lines.get_mut(&link) else { return Ok(()) };
        chunk.truncate(room(line.at, until));
        let at = line.at;
        line.at = at + Length(chunk.len() as u64);
        let (through, compared) = (line.at >= until, ByteRange::new(at, line.at));
        if !self.planner.held().covers(compared) {
            // The block was given up meanwhile: it says nothing of anybody.
            return self.over(link, Ending::Cut);
        }
        let Some(store) = &mut self.session.store else { return Ok(()) };
        match store.compare(Place::Part, at, &chunk)? {
            Compare::Differs { at } => self.drive(link, LinkEvent::Differs(at)),
            Compare::Equal if through => self.drive(link, LinkEvent::Equal),
            Compare::Equal => Ok(()),
        }
    }

    fn take(&mut self, link: LinkId, end: Offset, mut chunk: Bytes) -> Result<(), LocalFault> {
        let Some(line) = self.lines.get_mut(&link) else { return Ok(()) };
        let (answer_end, end) = (end, end.min(line.range.end));
        let before = chunk.split_to(chunk.len().min(room(line.at, line.range.start)));
        if !before.is_empty() && !self.compare_before(link, &before)? {
            return Ok(());
        }
        let Some(line) = self.lines.get_mut(&link) else { return Ok(()) };
        let (start, arrived) = (line.at, chunk.clone());
        chunk.truncate(room(line.at, end));
        while !chunk.is_empty() {
            chunk = match self.take_part(link, chunk)? {
                Some(rest) => rest,
                None => return Ok(()),
            };
        }
        let now = self.session.hands.clock.now().mono;
        self.tick(now)?;
        self.open_unproven()?;
        match self.lines.get(&link) {
            Some(line) if line.at >= end.min(line.range.end) => match self.reads_on(link, answer_end) {
                Some(until) => {
                    let done = room(start, line.at).min(arrived.len());
                    self.tail(link, until, &arrived.slice(done..))
                }
                None => self.over(link, Ending::Served),
            },
            _ => Ok(()),
        }
    }

    /// What lies before the range is compared where it is held, and left where it is not: it is another link's. False where
    /// it differs: then the link has ended.
    fn compare_before(&mut self, link: LinkId, bytes: &[u8]) -> Result<bool, LocalFault> {
        let Some(at) = self.lines.get(&link).map(|line| line.at) else { return Ok(false) };
        let (mut position, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let (n, held) = self.run_at(ByteRange::new(position, position + Length(rest.len() as u64)));
            let Some(store) = &mut self.session.store else { return Ok(false) };
            if held && let Compare::Differs { at } = store.compare(Place::Part, position, &rest[..n])? {
                self.drive(link, LinkEvent::Differs(at))?;
                return Ok(false);
            }
            if !held {
                self.begins_open(link);
            }
            (position, rest) = (position + Length(n as u64), &rest[n..]);
        }
        self.step_on(link, Length(bytes.len() as u64));
        Ok(true)
    }

    /// What lay right before a link's range when it was asked for is held no more, or is not compared: nothing is proven
    /// of how it begins.
    fn begins_open(&mut self, link: LinkId) {
        if let Some(line) = self.lines.get_mut(&link).filter(|line| line.start == Start::Compared) {
            line.start = Start::Open;
            let (at, seat) = (line.range.start, line.seat);
            self.joints_begin(at, seat);
        }
    }

    /// The first bytes of a chunk, as far as all are held or none is; what is left, unless the link has ended.
    fn take_part(&mut self, link: LinkId, mut chunk: Bytes) -> Result<Option<Bytes>, LocalFault> {
        let Some(line) = self.lines.get(&link) else { return Ok(None) };
        let (at, seat, asked) = (line.at, line.seat, line.asked);
        let all = ByteRange::new(at, at + Length(chunk.len() as u64));
        let (n, held) = self.run_at(all);
        let part = chunk.split_to(n);
        let length = Length(n as u64);
        let Some(store) = &mut self.session.store else { return Ok(None) };
        let run = ByteRange::new(at, at + length);
        if held {
            if let Compare::Differs { at } = store.compare(Place::Part, at, &part)? {
                self.contradicted(link, at)?;
                return Ok(None);
            }
        } else {
            store.write(Place::Part, at, part)?;
            self.serves(seat);
            self.note_brought(seat, asked, run);
            if let Some(line) = self.lines.get_mut(&link).filter(|line| line.content.is_some()) {
                line.wrote.insert(run);
            }
        }
        self.heed_sayings(link);
        // Written or equal: it goes on from what it brought or compared before.
        self.joints_wrote(link, run);
        self.step_on(link, length);
        self.plan(Event::Arrived(link, length))?;
        if !held {
            self.check_pieces(run)?;
            self.compare_joints(run)?;
        }
        // The planner may have taken the rest away.
        let left = self.lines.get(&link).map(|line| room(line.at, line.range.end));
        Ok(left.map(|left| {
            chunk.truncate(left);
            chunk
        }))
    }

    /// How many bytes of a range, from its start, are all held, or all missing.
    fn run_at(&self, range: ByteRange) -> (usize, bool) {
        let held = self.planner.held();
        let whole = usize::try_from(range.length().0).unwrap_or(usize::MAX);
        let run = held.iter().find(|run| run.end > range.start);
        match run {
            Some(run) if run.start <= range.start => (whole.min(room(range.start, run.end)), true),
            Some(run) => (whole.min(room(range.start, run.start)), false),
            None => (whole, false),
        }
    }

    fn step_on(&mut self, link: LinkId, length: Length) {
        if let Some(line) = self.lines.get_mut(&link) {
            line.at = line.at + length;
        }
    }

    fn serves(&mut self, seat: usize) {
        if !self.served.contains(&seat) {
            self.served.push(seat);
            self.tell_beside(seat, |url| Beside::Serves { url });
        }
    }

    /// A body that is read through says that segments held behind it are of another file. It is one whole answer, and they
    /// are not: they go. But where it is read beside others that have this version, it is the odd one, unless a digest
    /// decides and it has agreed so far; and no piece that has the right digest is doubted.
    fn contradicted(&mut self, link: LinkId, at: Offset) -> Result<(), LocalFault> {
        let tried = self.planner.gained_on_trial(link);
        let is_odd = tried.is_some_and(|gained| gained == Length::ZERO || self.digest() == LastWord::Joints);
        let is_proven = self.checks.as_ref().is_some_and(|checks| checks.is_right(at));
        let is_judged = self.lines.get(&link).is_some_and(|line| line.machine.is_some());
        match (is_odd || is_proven, is_judged) {
            (true, true) => return self.drive(link, LinkEvent::Differs(at)),
            (true, false) => return self.over(link, Ending::Cut),
            (false, _) => {}
        }
        let behind: Vec<ByteRange> = self.planner.held().iter().filter(|run| run.end > at).collect();
        for run in behind {
            let wrong = ByteRange::new(run.start.max(at), run.end);
            self.lose(wrong, None)?;
        }
        // What came after the difference is asked for again.
        self.over(link, Ending::Served)
    }

    /// A body came to its framed end.
    fn body_ended(&mut self, link: LinkId) -> Result<(), LocalFault> {
        let Some(line) = self.lines.get(&link) else { return Ok(()) };
        match line.doing {
            Doing::Taking { end } if line.at >= end => self.over(link, Ending::Served),
            Doing::Taking { end } => {
                let cut = Cut::Short { got: line.at.as_length(), want: end.as_length() };
                self.broke(link, &Failure::Cut(cut))
            }
            Doing::ReadingOn { .. } => self.over(link, Ending::Served),
            Doing::Asking | Doing::Comparing { .. } => {
                let detail = "the body ended early".to_owned();
                self.broke(link, &Failure::Cut(Cut::Broken { detail }))
            }
        }
    }
}

/// The bytes from here to there, as many as memory can count.
fn room(at: Offset, to: Offset) -> usize {
    usize::try_from((to - at).0).unwrap_or(usize::MAX)
}
