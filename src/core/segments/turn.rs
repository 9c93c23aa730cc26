//! A turn: which links are opened, limited, extended and stopped after something happened.

use std::cmp::Ordering;

use crate::core::range::{ByteRange, Length, Offset};
use crate::core::segments::link::{Example, Link, Phase};
use crate::core::segments::machine::{Context, Stage, stop};
use crate::core::segments::roster::Yield;
use crate::core::segments::work::{Fault, Job};
use crate::core::segments::{Action, LinkId, Reach, Segments};
use crate::core::time::{Delay, Mono};

/// While a link more could be opened, but has nothing to do, the others are looked at so often.
const LOOK: Delay = Delay::from_millis(100);
/// Without a head for so long, beside others of the same origin that flow, a link is one too many.
pub(super) const UNANSWERED: Delay = Delay::from_secs(5);
/// So many times the usual wait for a head is waited in any case.
const SLOWER_THAN_USUAL: f64 = 8.0;
/// Where all places are taken and a mirror waits for one, so often.
const SELDOM: Delay = Delay::from_secs(1);

impl Segments {
    /// Opens what may be opened and helps. `reuse` is the seat of a link that has just served well: its connection is
    /// open, and idle.
    pub(super) fn plan(&mut self, reuse: Option<usize>, cx: Context<'_, '_>) {
        if self.stage == Stage::Fetching && self.is_whole() {
            self.conclude(cx);
        } else if self.stage == Stage::Fetching {
            self.read_on(cx);
            self.give_a_chance(cx);
            let mut reuse = reuse;
            while let Some((seat, job)) = self.next_job(reuse.take(), cx.now.mono) {
                self.begin(seat, job, cx);
            }
            self.make_room(cx);
            self.leave_the_unanswered(cx);
            self.extend();
            self.conclude(cx);
            self.tell(cx.out);
        }
        self.wake = self.next_wake(cx.now.mono);
    }

    /// Links that read through go on into the gap before them; one with nothing but held bytes before it is of no use.
    fn read_on(&mut self, cx: Context<'_, '_>) {
        let gaps = self.gaps();
        let missing_beyond = |at| self.held.gaps(self.total).any(|gap| gap.end > at);
        for link in &mut self.links {
            if link.reach != Reach::Through || link.phase == Phase::Stopping {
                continue;
            }
            let at = link.end.max(link.at);
            if let Some(gap) = gaps.iter().find(|gap| gap.start <= at && at < gap.end) {
                link.end = gap.end;
            } else if link.at < self.total.as_end() && !missing_beyond(link.at) {
                stop(link, cx.out);
            }
        }
    }

    fn begin(&mut self, seat: usize, job: Job, cx: Context<'_, '_>) {
        let now = cx.now.mono;
        let (range, inherited) = match job {
            Job::Gap(range) => (range, 0),
            Job::Part { victim, from } => (self.cut_off(victim, from), 0),
            Job::All { victim, why } => self.take_all(victim, why, cx),
        };
        let link = self.add(seat, range, Reach::Ranged, now);
        if let Some(link) = self.link_mut(link) {
            link.inherited = inherited;
        }
    }

    /// Takes the end of a link's range from it.
    fn cut_off(&mut self, victim: LinkId, from: Offset) -> ByteRange {
        let Some(link) = self.link_mut(victim) else { return ByteRange::new(from, from) };
        let range = ByteRange::new(from, link.end);
        link.end = from;
        range
    }

    /// Takes everything from a link; how often that was done to its range, without a byte between.
    fn take_all(&mut self, victim: LinkId, why: Fault, cx: Context<'_, '_>) -> (ByteRange, u32) {
        let now = cx.now.mono;
        let Some(at) = self.links.iter().position(|link| link.id == victim) else { return Default::default() };
        let (seat, asked) = (self.links[at].seat, self.links[at].asked);
        let others = self.links_of(seat).filter(|link| link.id != victim && link.flows(now)).count();
        let link = &mut self.links[at];
        let (range, inherited) = (link.claim(), link.inherited);
        if why == Fault::Late {
            stop(link, cx.out);
            return (range, inherited + 1);
        }
        if why == Fault::Silent || others > 0 {
            link.example = Example::Odd;
        }
        let nothing_came = link.gained == Length::ZERO;
        stop(link, cx.out);
        if why == Fault::Slow {
            self.roster.rest(seat, now);
            return (range, 0);
        }
        if nothing_came && (others > 0 || self.roster.of(seat).flows(now)) {
            // Where none flows, one has ended just now, and is asked again.
            self.roster.of_mut(seat).step_down(others);
        }
        self.roster.failed(seat, asked, now, cx.rng);
        (range, inherited + 1)
    }

    /// Gaps that nobody can take now, behind links that were limited: these may go on.
    fn extend(&mut self) {
        for gap in self.gaps() {
            let fits = |link: &&mut Link| {
                link.reach == Reach::Ranged && link.end == gap.start && link.asked_end > link.end && link.rest() > 0.0
            };
            if let Some(link) = self.links.iter_mut().find(fits) {
                link.end = gap.end.min(link.asked_end);
            }
        }
    }

    /// Tells what this turn made of the ends of links, and which are new.
    fn tell(&mut self, out: &mut Vec<Action>) {
        let live = |link: &&mut Link| link.phase != Phase::Stopping;
        for link in self.links.iter_mut().filter(live).filter(|link| link.reach == Reach::Ranged) {
            let (id, end) = (link.id, link.end);
            match link.told.map(|told| end.cmp(&told)) {
                Some(Ordering::Less) => out.push(Action::Limit { link: id, end }),
                Some(Ordering::Greater) => out.push(Action::Extend { link: id, end }),
                Some(Ordering::Equal) | None => continue,
            }
            link.told = Some(end);
        }
        for link in self.links.iter_mut().filter(|link| link.told.is_none()) {
            if link.reach == Reach::Ranged {
                link.asked_end = link.end;
            }
            link.told = Some(link.asked_end);
            let range = ByteRange::new(link.at, link.asked_end);
            out.push(Action::Open { link: link.id, seat: link.seat, range, reach: link.reach });
        }
    }

    /// Where all places are taken, a link that is much too slow makes room for a seat whose origin has none.
    fn make_room(&mut self, cx: Context<'_, '_>) {
        let now = cx.now.mono;
        let victim = self.challenger(now).and_then(|seat| self.outpaced_by(seat, now));
        if let Some(link) = victim.and_then(|victim| self.link_mut(victim)) {
            let seat = link.seat;
            stop(link, cx.out);
            self.roster.rest(seat, now);
        }
    }

    /// Links without a head for much too long. Where their origin has sent bytes to others since they were asked for, it
    /// answers so many, and leaves one more waiting. Where it is known to do so, one that came too early is asked for anew.
    fn leave_the_unanswered(&mut self, cx: Context<'_, '_>) {
        let now = cx.now.mono;
        let late = |link: &Link| link.phase == Phase::Opening && link.told.is_some();
        while let Some(at) = self.links.iter().position(|link| late(link) && self.is_unanswered(link, now)) {
            let (seat, asked) = (self.links[at].seat, self.links[at].asked);
            if self.roster.of(seat).flowed_since(asked) {
                let flowing = self.links_of(seat).filter(|link| link.flows(now)).count();
                self.roster.of_mut(seat).step_down(flowing);
                self.roster.breathe(seat, Yield::Fair, now, cx.rng);
            } else {
                self.roster.failed(seat, asked, now, cx.rng);
            }
            stop(&mut self.links[at], cx.out);
        }
    }

    fn is_unanswered(&self, link: &Link, now: Mono) -> bool {
        let origin = self.roster.of(link.seat);
        now >= self.gives_up_waiting(link) && (origin.flowed_since(link.asked) || origin.leaves_waiting())
    }

    /// When a link that has no head yet has waited for too long, beside others that have one.
    fn gives_up_waiting(&self, link: &Link) -> Mono {
        let usual = self.roster.of(link.seat).head().unwrap_or(0.0);
        link.asked + UNANSWERED.max(Delay::from_secs_f64(usual * SLOWER_THAN_USUAL))
    }

    pub(super) fn read_through_or_end(&mut self, cx: Context<'_, '_>) {
        let now = cx.now.mono;
        let (ranged, through): (Vec<usize>, Vec<usize>) = (0..self.roster.len())
            .filter(|seat| self.roster.is_ready_soon(*seat, now))
            .partition(|seat| self.roster.is_ranged(*seat));
        if !ranged.is_empty() {
            return;
        }
        let ready = through.iter().filter(|seat| self.roster.ready_at(**seat).is_some_and(|at| at <= now));
        if let Some(seat) = ready.min_by_key(|seat| self.rank(**seat, now)).copied() {
            self.read_through(seat, now);
        } else if through.is_empty() {
            self.stage = Stage::Over;
            cx.out.push(Action::Over);
        }
    }

    fn next_wake(&self, now: Mono) -> Option<Mono> {
        if self.stage != Stage::Fetching {
            return None;
        }
        let idle = !self.links.is_empty() && !self.places(&self.candidates(None, now)).is_empty();
        let pauses = (0..self.roster.len()).filter_map(|seat| self.roster.ready_at(seat)).filter(|at| *at > now);
        let challenged = self.challenger(now).is_some();
        let opening = self.links.iter().filter(|link| link.phase == Phase::Opening);
        let unanswered = opening.map(|link| self.gives_up_waiting(link)).filter(|at| *at > now);
        let pauses = pauses.chain(unanswered).chain(self.chance_wake(now));
        let late = self.links.iter().filter_map(|link| self.late_at(link)).filter(|at| idle && *at > now);
        pauses.chain(late).chain(idle.then(|| now + LOOK)).chain(challenged.then(|| now + SELDOM)).min()
    }
}
