//! Joints: where one link's bytes end and another's begin. A link that could not compare what lies right before its range
//! has proven itself elsewhere only, and an origin that was right there may still be wrong here. So whoever comes to such
//! a place from before reads on a little, and that is compared with what stands behind the joint.
//!
//! The start of the file, which the session has compared, is where trust begins: what contradicts the bytes before it is
//! fetched again once everything before is proven. Where a digest decides, of the whole or of pieces, none of this is needed.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::core::failure::{Cut, Failure, LocalFault};
use crate::core::file_xfer::{BesideEnd, Place};
use crate::core::range::{ByteRange, Length, Offset, RangeSet};
use crate::core::segments::{Ending, Event, LinkId};
use crate::core::time::{Delay, Mono};
use crate::io::driver::Orders;
use crate::io::driver::fan::Fan;
use crate::io::driver::fan::line::{Doing, Line, Start};
use crate::io::part::{Compare, PartStore};

/// So much is read beyond the end of a range.
const TAIL: Length = Length(4 << 10);
/// When every byte is here, what is still read beyond a range gets so long.
const PATIENCE: Delay = Delay::from_secs(2);
/// So often are joints fetched again that nobody came to from before; then the session ends.
const MOST_ROUNDS: u32 = 4;

/// How much is asked for beyond a range that ends here, in a download by these orders.
pub(super) fn beyond(orders: &Orders, end: Offset, total: Length) -> Length {
    if needed(orders) { TAIL.min(total.as_end() - end) } else { Length::ZERO }
}

fn needed(orders: &Orders) -> bool {
    orders.terms.digests.is_empty() && orders.terms.pieces.is_none()
}

/// The joints that are not proven yet.
#[derive(Debug, Default)]
pub(super) struct OpenJoints {
    open: BTreeMap<Offset, Joint>,
    rounds: u32,
    /// Since when every byte is here, and some are still to be compared.
    waiting: Option<Mono>,
}

/// What is known of one.
#[derive(Debug, Default)]
struct Joint {
    /// Who brought what stands behind it, in this session.
    seat: Option<usize>,
    /// What stands there for those who came from before.
    tail: Option<Bytes>,
}

/// What came of looking at the joints when every byte is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// All are proven.
    Yes,
    /// Some links still read.
    NotYet,
    /// Bytes are fetched again.
    Again,
    /// It does not come to an end.
    Never(BesideEnd),
}

impl OpenJoints {
    /// Those of what earlier sessions left: each island begins with one.
    pub(super) fn of(orders: &Orders, held: &RangeSet) -> Self {
        let starts = held.iter().map(|run| run.start).filter(|start| *start > Offset::ZERO && needed(orders));
        Self { open: starts.map(|start| (start, Joint::default())).collect(), ..Self::default() }
    }

    fn begin(&mut self, at: Offset, seat: usize) {
        self.open.entry(at).or_default().seat = Some(seat);
    }

    /// Somebody who began before, or compared what lies before, wrote this.
    fn passed(&mut self, run: ByteRange) {
        let passed: Vec<Offset> = self.open.range(run.start..run.end).map(|(at, _)| *at).collect();
        passed.iter().for_each(|at| _ = self.open.remove(at));
    }

    /// Those with bytes to compare that reach into these.
    fn near(&self, run: ByteRange) -> Vec<Offset> {
        let near = self.open.range(run.start.back(TAIL)..run.end);
        near.filter(|(_, joint)| joint.tail.is_some()).map(|(at, _)| *at).collect()
    }

    /// The first one, where there are bytes to compare.
    fn first(&self) -> Option<Offset> {
        self.open.first_key_value().filter(|(_, joint)| joint.tail.is_some()).map(|(at, _)| *at)
    }

    /// What stands behind a joint is no joint's other side any more.
    fn forget_tail(&mut self, at: Offset) {
        if let Some(joint) = self.open.get_mut(&at) {
            joint.tail = None;
        }
    }

    /// The next joint behind this one.
    fn after(&self, at: Offset) -> Option<Offset> {
        self.open.range(at..).map(|(next, _)| *next).find(|next| *next > at)
    }
}

impl Fan<'_> {
    /// A link is going to begin here, without a comparison of what lies right before.
    pub(super) fn joints_begin(&mut self, at: Offset, seat: usize) {
        if needed(&self.session.orders) && at > Offset::ZERO {
            self.joints.begin(at, seat);
        }
    }

    /// A link wrote these bytes.
    pub(super) fn joints_wrote(&mut self, link: LinkId, run: ByteRange) {
        let Some(line) = self.lines.get(&link) else { return };
        let proven = match line.start {
            Start::Compared => run,
            Start::Open => ByteRange::new(run.start.max(line.range.start + Length(1)), run.end),
        };
        self.joints.passed(proven);
    }

    /// Up to where a link that has come to its end reads on, where that helps.
    pub(super) fn reads_on(&self, link: LinkId, answer_end: Offset) -> Option<Offset> {
        let line = self.lines.get(&link)?;
        let end = line.range.end;
        let joint = self.joints.open.get(&end).is_some_and(|joint| joint.tail.is_none());
        let until = answer_end.min(end + TAIL);
        // Only all of its body says whether that has the digest that the answer names.
        let checks = line.content.is_some() && until == answer_end;
        ((joint || checks) && line.at == end && until > end).then_some(until)
    }

    /// A link that is to stop because every byte is here, and stands before one of the last joints: its answer can show what
    /// belongs behind.
    pub(super) fn stays_to_read_on(&mut self, link: LinkId) -> bool {
        let is_whole = self.planner.held().first_gap(self.total).is_none();
        let Some(line) = self.lines.get_mut(&link) else { return false };
        let Doing::Taking { end } = line.doing else { return false };
        let joint = self.joints.open.get(&line.at).filter(|joint| joint.tail.is_none());
        if !is_whole || joint.is_none() || line.at >= end {
            return false;
        }
        line.range.end = line.at;
        line.doing = Doing::ReadingOn { until: end.min(line.at + TAIL) };
        true
    }

    /// Bytes from beyond the range of a link.
    pub(super) fn tail(&mut self, link: LinkId, until: Offset, chunk: &Bytes) -> Result<(), LocalFault> {
        let Some(line) = self.lines.get_mut(&link) else { return Ok(()) };
        let wanted = usize::try_from((until - line.range.end).0).unwrap_or(usize::MAX);
        line.doing = Doing::ReadingOn { until };
        line.tail.extend_from_slice(&chunk[..chunk.len().min(wanted - line.tail.len().min(wanted))]);
        if line.tail.len() < wanted {
            return Ok(());
        }
        let (at, tail) = (line.range.end, std::mem::take(&mut line.tail).into());
        if let Some(joint) = self.joints.open.get_mut(&at) {
            joint.tail = Some(tail);
        }
        self.over(link, Ending::Served)?;
        self.compare_joints(ByteRange::new(at, at + TAIL))
    }

    /// Compares what can be compared since these bytes came. What is equal is proven; what is not counts when everything
    /// before it is proven: it is looked at again when it is the first.
    pub(super) fn compare_joints(&mut self, came: ByteRange) -> Result<(), LocalFault> {
        for at in self.joints.near(came) {
            if self.compare_joint(at)? == Some(Compare::Equal) {
                self.joints.open.remove(&at);
            }
        }
        while let Some(first) = self.joints.first() {
            match self.compare_joint(first)? {
                Some(Compare::Equal) => _ = self.joints.open.remove(&first),
                Some(Compare::Differs { .. }) if self.planner.held().head().as_end() >= first => {
                    self.joint_is_wrong(first)?;
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    fn compare_joint(&mut self, at: Offset) -> Result<Option<Compare>, LocalFault> {
        let Some(tail) = self.joints.open.get(&at).and_then(|joint| joint.tail.clone()) else { return Ok(None) };
        let all = ByteRange::new(at, at + Length(tail.len() as u64));
        let Some(store) = self.session.store.as_mut().filter(|_| self.planner.held().covers(all)) else {
            return Ok(None);
        };
        store.compare(Place::Part, at, &tail).map(Some)
    }

    /// What stands behind a joint does not go on with what stands before it: it goes, and is asked for again.
    fn joint_is_wrong(&mut self, at: Offset) -> Result<(), LocalFault> {
        let seat = self.joints.open.remove(&at).and_then(|joint| joint.seat);
        let next = self.joints.after(at);
        let run = self.planner.held().iter().find(|run| run.start <= at && at < run.end);
        let held_to = run.map_or(at, |run| run.end);
        let end = next.map_or(held_to, |next| next.min(held_to));
        tracing::debug!(%at, %end, "the bytes behind a joint do not belong to those before it");
        if let Some(next) = next {
            self.joints.forget_tail(next);
        }
        if let Some(seat) = seat {
            self.failures.insert(seat, Failure::ChangedMeanwhile { at });
        }
        let within = |start: Offset| at <= start && next.is_none_or(|next| start < next);
        let others: Vec<_> = self.lines.iter().filter(|(_, l)| within(l.range.start)).map(|(id, _)| *id).collect();
        // The bytes go first: a link that is opened as these end must not be compared with them.
        self.lose(ByteRange::new(at, end), seat)?;
        others.into_iter().try_for_each(|link| self.over(link, Ending::Cut))
    }

    /// These bytes are held no more. What was joined to their end is not any longer.
    pub(super) fn lose(&mut self, range: ByteRange, seat: Option<usize>) -> Result<(), LocalFault> {
        let behind = self.brought.iter().find(|(_, bytes)| bytes.contains(range.end)).map(|(seat, _)| *seat);
        self.brought.values_mut().chain(self.doubted.values_mut()).for_each(|bytes| bytes.remove(range));
        if let Some(store) = &mut self.session.store {
            store.drop_range(range)?;
        }
        self.lines.values_mut().for_each(|line| line.wrote.remove(range));
        let severed = self.sever(range, behind);
        self.plan(Event::Lost(range, seat))?;
        severed.into_iter().try_for_each(|link| self.over(link, Ending::Cut))
    }

    /// Opens a joint where bytes that go had others behind them. The links that stand there with nothing before them now,
    /// after they brought something: they begin anew.
    fn sever(&mut self, range: ByteRange, behind: Option<usize>) -> Vec<LinkId> {
        if !needed(&self.session.orders) {
            return Vec::new();
        }
        if range.end < self.total.as_end() && self.planner.held().contains(range.end) {
            let joint = self.joints.open.entry(range.end).or_default();
            joint.seat = joint.seat.or(behind);
        }
        let touches = |at: Offset| range.start < at && at <= range.end;
        let fresh = |line: &Line| line.at <= line.range.start || line.doing == Doing::Asking;
        let fresh_here = |line: &&mut Line| touches(line.range.start) && fresh(line) && line.start == Start::Compared;
        for line in self.lines.values_mut().filter(fresh_here) {
            line.start = Start::Open;
            self.joints.begin(line.range.start, line.seat);
        }
        let severed = |(_, line): &(&LinkId, &Line)| touches(line.at) && !fresh(line);
        self.lines.iter().filter(severed).map(|(id, _)| *id).collect()
    }

    /// Every byte is here: what of the joints is not proven is compared, or fetched again with what stands around it.
    pub(super) fn settle_joints(&mut self, now: Mono) -> Result<Settled, LocalFault> {
        self.compare_joints(ByteRange::new(Offset::ZERO, self.total.as_end()))?;
        if self.planner.held().first_gap(self.total).is_some() {
            return Ok(Settled::Again);
        }
        if self.joints.open.is_empty() {
            return Ok(Settled::Yes);
        }
        let readers = self.lines.iter().filter(|(_, line)| matches!(line.doing, Doing::ReadingOn { .. }));
        let readers: Vec<_> = readers.map(|(id, _)| *id).collect();
        let since = *self.joints.waiting.get_or_insert(now);
        if !readers.is_empty() && now.since(since) < PATIENCE {
            return Ok(Settled::NotYet);
        }
        self.joints.waiting = None;
        for link in readers {
            self.over(link, Ending::Cut)?;
        }
        self.fetch_joints_again()
    }

    fn fetch_joints_again(&mut self) -> Result<Settled, LocalFault> {
        self.joints.rounds += 1;
        let markers = self.markers()?;
        if markers.is_empty() {
            return Ok(Settled::Yes);
        }
        if self.joints.rounds > MOST_ROUNDS {
            let detail = "what two connections brought could not be compared where they meet".to_owned();
            return Ok(Settled::Never(BesideEnd::Failed(Failure::Cut(Cut::Broken { detail }))));
        }
        for marker in markers {
            let seat = self.joints.open.remove(&marker.start).and_then(|joint| joint.seat);
            if marker.end < self.total.as_end() {
                self.joints.open.entry(marker.end).or_insert(Joint { seat, tail: None });
            }
            self.lose(marker, None)?;
        }
        Ok(Settled::Again)
    }

    /// The first bytes behind each joint that has bytes on both sides, where those before it can prove something.
    fn markers(&mut self) -> Result<Vec<ByteRange>, LocalFault> {
        let mut markers = Vec::new();
        for at in self.joints.open.keys().copied().collect::<Vec<_>>() {
            let marker = ByteRange::new(at, (at + TAIL).min(self.total.as_end()));
            let end = self.joints.after(at).map_or(marker.end, |next| next.min(marker.end));
            if self.planner.held().contains(at) && self.overlap(at)? > Length::ZERO {
                markers.push(ByteRange::new(at, end));
            }
        }
        Ok(markers)
    }

    /// The session ends before all is proven: gaps are left at the joints, so that the next one looks at them.
    pub(super) fn leave_joints_open(&mut self) -> Result<(), LocalFault> {
        for marker in self.markers()? {
            if let Some(store) = &mut self.session.store {
                store.drop_range(marker)?;
            }
        }
        Ok(())
    }
}

/// Up to where the session's own request asks, where links are going to fetch what lies behind: to what is held there, or
/// its share, and what is read beyond.
pub(in crate::io::driver) fn own_share(orders: &Orders, store: &PartStore) -> Option<Offset> {
    let total = orders.dossier.part.total.filter(|_| orders.dossier.rival.is_none())?;
    let gap = store.segments().first_gap(total)?;
    let links = u64::try_from(orders.fan.connections.max(1)).unwrap_or(u64::MAX);
    let share = Length(gap.length().0.div_ceil(links).max(orders.fan.least.0));
    let end = gap.end.min(gap.start + share);
    let asked = end + beyond(orders, end, total);
    (end < total.as_end()).then_some(asked)
}
