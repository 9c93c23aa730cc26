//! The life of links: opened, judged, ended; and what an end means for the planner.

use tokio::sync::mpsc;

use crate::core::digest::Expected;
use crate::core::failure::{Cut, Failure, LocalFault};
use crate::core::file_xfer::dossier::{Joints, Ranges};
use crate::core::file_xfer::link::{Link, LinkEnd, LinkEvent, LinkPlan, LinkStep};
use crate::core::file_xfer::{Company, Contradiction, Freshness, LastWord, OVERLAP, Place, Split};
use crate::core::range::{ByteRange, Length, Offset, RangeSet};
use crate::core::segments::{Ending, Event, LinkId, Reach, Seat};
use crate::core::time::{Delay, Mono};
use crate::core::url::Origin;
use crate::core::validator::Validators;
use crate::core::verdict::{Context, Scope, judge};
use crate::io::driver::content::BodyEnd;
use crate::io::driver::fan::joints::beyond;
use crate::io::driver::fan::line::{Doing, Line, Start};
use crate::io::driver::fan::wire::{Order, Wire};
use crate::io::driver::fan::{Fan, Opening, reach_of};
use crate::io::driver::receive::LEAST_BEGINNING;
use crate::io::driver::session::Session;
use crate::io::driver::{Beside, FanSeat};

/// How much right before its range a link asks for again, beside the session that has compared [`OVERLAP`].
const LINK_OVERLAP: Length = Length(16 << 10);
/// Where the bytes before its range are one byte repeated, it goes back so far at most to something that proves more.
const FARTHEST_OVERLAP: Length = Length(4 << 20);
/// Where the first answer is so slow that in this time no whole block has come, what there is is compared...
const SLOW_FIRST: Delay = Delay::from_secs(3);
/// ...if it is at least this.
const LEAST_PROOF: Length = LEAST_BEGINNING;
/// Where all that is held so far can prove nothing, it is looked through again after so much more.
const PROOFLESS_STEP: Length = Length(1 << 20);

impl Fan<'_> {
    /// The session's own answer becomes the first link.
    pub(super) fn adopt(&mut self, split: &Split, now: Mono) -> Result<(), LocalFault> {
        let reach = reach_of(self.session.machine.ways(&split.origin).ranges);
        // What is held behind the first gap need not come again, where the answer need not be read through.
        let gap = self.planner.held().gaps(split.total).find(|gap| gap.end > split.at);
        let (mut end, mut own_end) = (split.end, split.end);
        if reach == Reach::Ranged {
            // What is read beyond the range is not claimed.
            let read_on = beyond(&self.session.orders, split.end, split.total).min(split.end - split.at);
            own_end = own_end.back(read_on);
            end = gap.map_or(own_end, |gap| gap.end.min(own_end));
        }
        let link = self.planner.adopt(self.own, split.at, own_end, reach, now);
        let Some(open) = self.session.open.take() else { return self.plan(Event::Ended(link, Ending::Cut)) };
        let range = ByteRange::new(split.at, end);
        let mut line = self.line(link, self.own, None, range, Some(open.body));
        line.doing = Doing::Taking { end: split.end };
        line.content = open.content;
        self.lines.insert(link, line);
        self.plan(Event::Opened(link))?;
        match open.pending {
            Some(_) if !self.content_agrees(link, BodyEnd::Open)? => Ok(()),
            Some(chunk) => self.arrived(link, chunk),
            None => Ok(()),
        }
    }

    /// Opens a link; one that has nothing yet by which its origin could prove itself waits for that.
    pub(super) fn open(&mut self, opening: Opening) -> Result<(), LocalFault> {
        let Opening { link, seat, range, reach } = opening;
        let Some((url, named_by)) = self.session.orders.fan.seats.get(seat).map(FanSeat::asked) else {
            return self.plan(Event::Ended(link, Ending::Odd));
        };
        let version = self.session.machine.version().clone();
        let vouched = version.validators.iter().any(|(origin, v)| *origin == url.origin() && v.has_strong());
        let overlap = self.overlap(range.start)?;
        let plan = LinkPlan {
            url,
            first_origin: self.session.orders.first_origin.clone(),
            named_by,
            range,
            beyond: beyond(&self.session.orders, range.end, self.total),
            reach,
            overlap,
            proof: if overlap > Length::ZERO { None } else { self.proof(vouched)? },
            version,
            notes: self.session.machine.dossier().origins.clone(),
            digest: self.digest(),
            judge: self.session.orders.terms.last_word(),
            freshness: self.freshness(seat),
        };
        if !plan.can_be_proven() {
            self.unproven.push(opening);
            return Ok(());
        }
        let asked = plan.freshness;
        let mut line = self.line(link, seat, Some(Link::new(plan)), range, None);
        line.asked = asked;
        if reach == Reach::Ranged && overlap == Length::ZERO {
            line.start = Start::Open;
            self.joints_begin(range.start, seat);
        }
        self.lines.insert(link, line);
        let step = self.lines.get_mut(&link).and_then(|line| line.machine.as_mut()).map(Link::start);
        step.map_or(Ok(()), |step| self.step(link, step))
    }

    /// Those that waited for a first block: is there one now?
    pub(super) fn open_unproven(&mut self) -> Result<(), LocalFault> {
        if self.unproven.is_empty() || self.proof(true)?.is_none() {
            return Ok(());
        }
        for opening in std::mem::take(&mut self.unproven) {
            self.open(opening)?;
        }
        Ok(())
    }

    /// What the first answer must bring soon: others that could be asked wait for it, to show that they have the same file.
    fn beginning(&self) -> Option<Length> {
        let held = self.planner.held().head();
        let waits = self.digest() == LastWord::Joints && held < LEAST_PROOF;
        (waits && self.session.orders.unasked == Company::Others).then_some(LEAST_PROOF)
    }

    /// How many bytes right before a place are held, where they can prove something.
    pub(super) fn overlap(&mut self, start: Offset) -> Result<Length, LocalFault> {
        let before = Offset(start.0.saturating_sub(1));
        let run = self.planner.held().iter().find(|run| run.start <= before && before < run.end);
        let (Some(run), Some(store)) = (run.filter(|run| run.start < start), &mut self.session.store) else {
            return Ok(Length::ZERO);
        };
        // One byte repeated is also found elsewhere in the file: the comparison begins where something else stands.
        let mut reach = LINK_OVERLAP;
        loop {
            let block = ByteRange::new(start.back(reach).max(run.start), start);
            if store.informative(Place::Part, block)? {
                return Ok(block.length());
            }
            if block.start == run.start || reach >= FARTHEST_OVERLAP {
                return Ok(Length::ZERO);
            }
            reach = Length(reach.0 * 2);
        }
    }

    /// A block held that can prove something, drawn anew each time. Where something else vouches for the origin too, or a
    /// digest decides in the end, any will do.
    fn proof(&mut self, vouched: bool) -> Result<Option<ByteRange>, LocalFault> {
        let any_will_do = vouched || self.digest() == LastWord::Digest;
        let Some(store) = &mut self.session.store else { return Ok(None) };
        let held = store.held(Place::Part).as_end();
        let is_late = self.session.hands.clock.now().mono.since(self.began) >= SLOW_FIRST;
        if is_late && self.proofless == Length::ZERO && (LEAST_PROOF..OVERLAP).contains(&held.as_length()) {
            let all = ByteRange::new(Offset::ZERO, held);
            return Ok(store.informative(Place::Part, all)?.then_some(all));
        }
        if held < OVERLAP.as_end() {
            return Ok(None);
        }
        let tail = ByteRange::new(held.back(OVERLAP), held);
        if held < self.proofless.as_end() + OVERLAP {
            return Ok(any_will_do.then_some(tail));
        }
        let drawn = Offset(rand::RngExt::random_range(&mut self.rng, OVERLAP.0..=held.0));
        let block = store.nearest_informative(Place::Part, drawn, OVERLAP)?;
        let block = match block {
            None => store.nearest_informative(Place::Part, held, OVERLAP)?,
            found => found,
        };
        if block.is_none() {
            self.proofless = held.as_length() + PROOFLESS_STEP;
        }
        Ok(block.or_else(|| any_will_do.then_some(tail)))
    }

    /// Who has sent a wrong piece is asked past all caches.
    fn freshness(&self, seat: usize) -> Freshness {
        if self.doubted.contains_key(&seat) { Freshness::NoCache } else { self.session.orders.freshness }
    }

    pub(super) fn digest(&self) -> LastWord {
        if self.session.orders.terms.digests.is_empty() { LastWord::Joints } else { LastWord::Digest }
    }

    fn line(
        &mut self,
        id: LinkId,
        seat: usize,
        machine: Option<Link>,
        range: ByteRange,
        body: Option<crate::io::transport::Body>,
    ) -> Line {
        let (orders, inbox) = mpsc::unbounded_channel();
        let session = &self.session;
        let typed = session.orders.fan.seats.get(seat).map_or_else(|| session.orders.url.clone(), |s| s.url.clone());
        let wire = Wire {
            id,
            hands: session.hands.clone(),
            typed,
            first_origin: session.orders.first_origin.clone(),
            timeouts: session.orders.timeouts,
            orders: inbox,
            news: self.news.0.clone(),
            request: 0,
            beginning: body.as_ref().and(self.beginning()),
        };
        let task = self.wires.spawn_local(wire.run(body));
        Line {
            machine,
            seat,
            range,
            at: range.start,
            doing: Doing::Asking,
            start: Start::Compared,
            asked: self.session.orders.freshness,
            tail: Vec::new(),
            content: None,
            wrote: RangeSet::new(),
            orders,
            request: 0,
            task,
        }
    }

    /// Tells a link's machine what happened, and does what it wants.
    pub(super) fn drive(&mut self, link: LinkId, event: LinkEvent) -> Result<(), LocalFault> {
        let machine = self.lines.get_mut(&link).and_then(|line| line.machine.as_mut());
        match machine.map(|machine| machine.handle(event)) {
            Some(step) => self.step(link, step),
            None => Ok(()),
        }
    }

    fn step(&mut self, link: LinkId, step: LinkStep) -> Result<(), LocalFault> {
        let Some(line) = self.lines.get_mut(&link) else { return Ok(()) };
        match step {
            LinkStep::Ask(ask) => {
                line.doing = Doing::Asking;
                line.order(Order::Ask(Box::new(ask)));
                Ok(())
            }
            LinkStep::Compare { at, until } => {
                (line.at, line.doing) = (at, Doing::Comparing { until });
                line.order(Order::Read);
                Ok(())
            }
            LinkStep::Take { at, end, joint } => {
                (line.at, line.doing) = (at, Doing::Taking { end });
                let answering = line.machine.as_ref().and_then(Link::answering).cloned();
                line.order(Order::Read);
                match self.joined(link, answering, joint) {
                    Some(apart) => self.ended(link, LinkEnd::Apart(Box::new(apart))),
                    None => self.plan(Event::Opened(link)),
                }
            }
            LinkStep::End(end) => self.ended(link, end),
        }
    }

    /// A link is about to bring bytes: what vouches for them is stored before they are. Not where another link has meanwhile
    /// brought bytes of a version that its origin contradicts.
    fn joined(
        &mut self,
        link: LinkId,
        answering: Option<(Origin, Validators)>,
        joint: Joints,
    ) -> Option<Contradiction> {
        let (origin, validators) = answering?;
        if let Some(apart) = self.session.machine.contradicted_beside(&origin, &validators) {
            return Some(apart);
        }
        self.session.machine.joined_beside(&origin, &validators, joint);
        self.take_notes(link);
        self.session.learn();
        None
    }

    fn take_notes(&mut self, link: LinkId) {
        let notes = self.lines.get(&link).and_then(|line| line.machine.as_ref()).map(|m| m.notes().to_vec());
        for notes in notes.unwrap_or_default() {
            self.session.machine.noted_beside(&notes);
        }
    }

    /// A link's machine has no more use for it.
    fn ended(&mut self, link: LinkId, end: LinkEnd) -> Result<(), LocalFault> {
        self.take_notes(link);
        match end {
            LinkEnd::RangesIgnored => self.over(link, Ending::RangesIgnored),
            LinkEnd::Apart(apart) => {
                tracing::debug!(%apart, "a connection is dropped");
                self.session.machine.keep_apart(&apart);
                self.session.tell_apart();
                self.session.learn();
                self.contradicts(link)
            }
            LinkEnd::Changed(failure) => {
                tracing::debug!(%failure, "a connection is dropped");
                self.failed(link, &failure);
                self.contradicts(link)
            }
            LinkEnd::OtherVersion(failure) => {
                tracing::debug!(%failure, "a connection is dropped");
                let others = self.lines.get(&link).is_some_and(|line| line.seat != self.own);
                let failure = match failure {
                    Failure::ChangedMeanwhile { at } if others && self.digest() == LastWord::Joints => {
                        Failure::OddMirror { at }
                    }
                    failure => failure,
                };
                self.failed(link, &failure);
                self.contradicts(link)
            }
            LinkEnd::Failed(failure) => self.broke(link, &failure),
        }
    }

    /// A link's origin has another version than what is held. Where it is the session's own, that may be one of several that
    /// answer under one name: it is asked over one connection from then on, by which one version comes. Any other mirror is
    /// left alone, and what it brought goes, unless a digest has the last word.
    fn contradicts(&mut self, link: LinkId) -> Result<(), LocalFault> {
        let Some(seat) = self.lines.get(&link).map(|line| line.seat) else { return Ok(()) };
        if seat == self.own {
            let origin = self.session.machine.origin().cloned();
            origin.iter().for_each(|origin| self.session.machine.bears(origin, 1));
            return self.over(link, Ending::Refused { retry_after: None });
        }
        if let Some(origin) = self.lines.get(&link).and_then(|line| line.machine.as_ref()).map(Link::origin) {
            self.session.machine.unsaid(&origin);
        }
        self.over(link, Ending::Odd)?;
        if self.digest() == LastWord::Digest || self.checks.is_some() {
            return Ok(());
        }
        for run in self.brought.remove(&seat).unwrap_or_default().iter().collect::<Vec<_>>() {
            self.lose(run, Some(seat))?;
        }
        Ok(())
    }

    /// A link broke off, or was refused.
    pub(super) fn broke(&mut self, link: LinkId, failure: &Failure) -> Result<(), LocalFault> {
        tracing::debug!(%failure, "a connection ended");
        if self.lines.get(&link).is_some_and(|line| matches!(line.doing, Doing::ReadingOn { .. })) {
            // All that it was to bring is here.
            return self.over(link, Ending::Cut);
        }
        let began = self.lines.get(&link).is_some_and(|line| line.doing != Doing::Asking);
        self.failed(link, failure);
        self.over(link, ending_of(failure, began))
    }

    pub(super) fn over(&mut self, link: LinkId, ending: Ending) -> Result<(), LocalFault> {
        self.drop_line(link);
        self.plan(Event::Ended(link, ending))
    }

    /// Remembers a failure; where no other link of that mirror is open, its mirror answers for it.
    fn failed(&mut self, link: LinkId, failure: &Failure) {
        let Some(line) = self.lines.get(&link) else { return };
        let (seat, origin) =
            (line.seat, line.machine.as_ref().and_then(|m| m.answering()).map(|(origin, _)| origin.clone()));
        self.failures.insert(seat, failure.clone());
        let company = self.lines.iter().any(|(id, other)| *id != link && other.seat == seat);
        let others = self.lines.len() > 1;
        let odd = matches!(failure, Failure::OddMirror { .. });
        if odd || !company && others {
            let failure = failure.clone();
            self.tell_beside(seat, |url| Beside::Failed { url, failure, origin });
        }
    }
}

/// What the end of a link means for who fetches what.
fn ending_of(failure: &Failure, began: bool) -> Ending {
    let verdict = judge(failure, Context { served: true, retry_on: &[] });
    match (failure, verdict.scope) {
        (_, Scope::RefuseMirror) => Ending::Odd,
        (Failure::Status { .. }, Scope::Transient { floor }) => Ending::Refused { retry_after: floor },
        (Failure::Status { .. } | Failure::Connect { .. } | Failure::NoAnswer { .. }, _) => {
            Ending::Refused { retry_after: None }
        }
        (Failure::Cut(_), _) if !began => Ending::Refused { retry_after: None },
        _ => Ending::Cut,
    }
}

/// A mirror that a server named counts only where the digest that it was named with has the last word. One that is known to
/// have another version is kept in reserve, unless a digest judges.
pub(super) fn leave_out_strangers(session: &mut Session) {
    let law = &session.orders.terms.digests;
    let vouched = session.machine.version().vouched().filter(|_| law.is_empty());
    let counts = |digest: &Expected| law.contains(digest) || vouched == Some(digest);
    let judged = session.orders.terms.last_word() == LastWord::Digest;
    let version = session.machine.version();
    let in_reserve = |seat: &FanSeat| !judged && version.keeps_in_reserve(&seat.url.origin());
    let fan = &mut session.orders.fan;
    let own = fan.seats.get(fan.own).map(|seat| seat.url.clone());
    let stays = |seat: &FanSeat| {
        Some(&seat.url) == own.as_ref() || seat.named_with.as_ref().is_none_or(counts) && !in_reserve(seat)
    };
    fan.seats.retain(stays);
    fan.own = fan.seats.iter().position(|seat| Some(&seat.url) == own.as_ref()).unwrap_or_default();
}

/// The seats of the mirrors that may be asked, and which of them is the session's own: it is there in any case.
pub(super) fn seats(session: &Session, answering: &Origin) -> (Vec<Seat>, usize) {
    let fan = &session.orders.fan;
    let seat = |(n, seat): (usize, &FanSeat)| {
        let origin = if n == fan.own { answering.clone() } else { seat.url.origin() };
        let ways = session.machine.ways(&origin);
        Seat {
            mirror: n,
            most: ways.most.and_then(|most| usize::try_from(most).ok()),
            ranges: if n == fan.own && ways.ranges == Ranges::Broken { Ranges::Broken } else { ways.ranges },
            rate: seat.rate,
            not_before: seat.not_before,
            blames: seat.wrong,
            origin,
        }
    };
    (fan.seats.iter().enumerate().map(seat).collect(), fan.own)
}

/// No link, and nobody said why.
pub(super) fn nobody_left() -> Failure {
    Failure::Cut(Cut::Broken { detail: "no connection is left that could go on".to_owned() })
}
