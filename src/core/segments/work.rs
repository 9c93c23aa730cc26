//! What a new link would best do: a gap, a silent link's range, a part of a busy one's.

use crate::core::backoff::draw::doubled;
use crate::core::range::{ByteRange, Length, Offset, RangeSet};
use crate::core::segments::link::{Link, Phase, Rescue};
use crate::core::segments::{LinkId, Reach, Segments};
use crate::core::time::{Delay, Mono};

/// A head takes so many seconds where nothing is known.
pub(super) const USUAL_HEAD: f64 = 0.05;
/// A link this many times slower than another may lose its whole range to it.
pub(super) const MUCH_SLOWER: f64 = 4.0;
/// A range is taken over whole only where that makes it end so many times sooner.
const WORTH_IT: f64 = 2.0;

/// A link that takes so many seconds longer gives up its range to one of which nothing is known yet.
pub(super) const CHANCE: f64 = 10.0;
/// So few bytes per second make it worth stopping a link for a mirror of which nothing is known.
pub(super) const TRICKLE: f64 = 16_384.0;
/// The last bytes of a link are fetched by another if none has come for so long, and for so many times what a head takes.
const LATE: Delay = Delay::from_millis(25);
const LATE_HEADS: f64 = 4.0;
/// No more than so many bytes are the last of a link, and none that could be shared.
const TAIL: f64 = 786_432.0;
/// Nor more than this part of the file: what a server has sent of them already is sent twice.
const TAILS: f64 = 256.0;
/// A byte within this time.
const LIVELY: Delay = Delay::from_millis(500);
/// Where all ends within so many seconds, nothing is taken for a seat that has just failed.
const PROBATION: f64 = 4.0;

/// Work for a new link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Bytes that nobody fetches.
    Gap(ByteRange),
    /// The end of what another link has to fetch.
    Part {
        /// Whose.
        victim: LinkId,
        /// Where it begins.
        from: Offset,
    },
    /// All that another link has to fetch.
    All {
        /// Whose.
        victim: LinkId,
        /// Why.
        why: Fault,
    },
}

/// What costs a link all of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing has come from it for too long.
    Silent,
    /// Another would be done much sooner.
    Slow,
    /// Its last bytes are missing, and another would have brought them by now. Nobody's fault.
    Late,
}

/// A link that might be opened.
#[derive(Clone, Copy, Debug)]
struct Thief {
    /// Bytes per second, as expected.
    rate: f64,
    /// The expectation rests on something that was measured at its origin.
    proven: bool,
    /// Seconds until its first byte, as expected.
    head: f64,
    crowd: Crowd,
}

/// Who else is to get work in the same turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Crowd {
    /// Nobody.
    Alone,
    /// Links that would bring so many bytes per second, with this one.
    Of(f64),
}

impl Segments {
    /// What a link from this seat would do.
    pub(super) fn job_for(&self, seat: usize, crowd: Crowd, now: Mono) -> Option<Job> {
        if let Some(gap) = self.gaps().first() {
            return Some(Job::Gap(*gap));
        }
        if let Some(victim) = self.silent_for(seat, now) {
            return Some(Job::All { victim, why: Fault::Silent });
        }
        let thief = self.thief(seat, crowd, now);
        self.share_for(seat, thief, now).or_else(|| self.tail_for(thief, now))
    }

    fn thief(&self, seat: usize, crowd: Crowd, now: Mono) -> Thief {
        Thief {
            rate: self.expected_rate(seat, now),
            proven: self.is_rated(seat, now),
            head: self.expected_head(seat, now),
            crowd,
        }
    }

    /// Seconds until the head of an answer, as expected. Where no rate is known, they tell nothing.
    fn expected_head(&self, seat: usize, now: Mono) -> f64 {
        let head = self.roster.of(seat).head().unwrap_or(USUAL_HEAD);
        if self.common_rate(now).is_some() { head } else { 0.0 }
    }

    /// The runs of bytes that are neither held nor claimed, in order.
    pub(super) fn gaps(&self) -> Vec<ByteRange> {
        let mut taken: RangeSet = self.held.clone();
        self.links.iter().for_each(|link| taken.insert(link.claim()));
        taken.gaps(self.total).collect()
    }

    /// Bytes per second that one link of a seat is known to bring.
    pub(super) fn known_rate(&self, seat: usize, now: Mono) -> Option<f64> {
        let origin = self.roster.of(seat);
        let flowing = || {
            let rates = self.links_of(seat).filter(|link| link.flows(now) && link.meter.is_grown(now));
            rates.map(|link| link.meter.rate(now)).max_by(f64::total_cmp)
        };
        origin.measured().or_else(flowing).or_else(|| origin.told_rate())
    }

    /// The mean over all seats of which something is known.
    fn common_rate(&self, now: Mono) -> Option<f64> {
        let rates: Vec<f64> = (0..self.roster.len()).filter_map(|seat| self.known_rate(seat, now)).collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    }

    /// Bytes per second to expect from a new link of a seat; 1 where nothing at all is known, so that rates compare.
    pub(super) fn expected_rate(&self, seat: usize, now: Mono) -> f64 {
        self.known_rate(seat, now).or_else(|| self.common_rate(now)).unwrap_or(1.0).max(1.0)
    }

    /// Something is known of the rate of a seat.
    pub(super) fn is_rated(&self, seat: usize, now: Mono) -> bool {
        self.known_rate(seat, now).is_some()
    }

    /// Bytes per second of an open link, never nought.
    fn rate_of(&self, link: &Link, now: Mono) -> f64 {
        if Self::is_measured(link, now) { link.meter.rate(now).max(1.0) } else { self.expected_rate(link.seat, now) }
    }

    /// Its rate is known and not only that of a link that pauses: silence has a patience of its own.
    fn is_known_and_lively(&self, link: &Link, now: Mono) -> bool {
        if Self::is_measured(link, now) {
            now.since(link.last) < LIVELY
        } else {
            self.roster.of(link.seat).measured().is_some()
        }
    }

    /// The rate of a link can be told from its own bytes.
    fn is_measured(link: &Link, now: Mono) -> bool {
        link.phase == Phase::Flowing && link.meter.is_grown(now)
    }

    /// The silent link with most to fetch that a new link of this seat may relieve.
    fn silent_for(&self, seat: usize, now: Mono) -> Option<LinkId> {
        let rescue = |link: &Link| {
            let elsewhere = self.roster.origin(link.seat) != self.roster.origin(seat);
            match () {
                () if elsewhere && self.roster.is_on_probation(link.seat) => Rescue::Sure,
                () if elsewhere || self.roster.of(link.seat).flows(now) => Rescue::Likely,
                () => Rescue::Doubtful,
            }
        };
        let silent =
            |link: &&Link| link.rest() > 0.0 && link.is_silent(now, self.roster.of(link.seat).head(), rescue(link));
        let most = self.links.iter().filter(silent).max_by(|a, b| a.rest().total_cmp(&b.rest()));
        most.map(|link| link.id)
    }

    /// A share of the work of the link that would be busy longest, or of the next one where that does not suit.
    fn share_for(&self, seat: usize, thief: Thief, now: Mono) -> Option<Job> {
        let mut victims: Vec<(f64, &Link)> = self.links.iter().map(|link| (self.left(link, now), link)).collect();
        victims.retain(|(_, link)| link.rest() > 0.0);
        victims.sort_by(|a, b| b.0.total_cmp(&a.0));
        let end = self.common_end(thief, now);
        if self.roster.is_on_probation(seat) && end < PROBATION {
            return None;
        }
        victims.into_iter().find_map(|(left, link)| self.deal(thief, link, left, end, now))
    }

    /// The last bytes of a link that pauses, where they are too few to share. A server that paces what it sends, and a lost
    /// packet, hold up the end of the whole otherwise.
    fn tail_for(&self, thief: Thief, now: Mono) -> Option<Job> {
        let is_late = |link: &&Link| {
            let takes = thief.head + link.rest() / thief.rate;
            self.late_at(link).is_some_and(|at| at <= now) && Delay::from_secs_f64(takes) <= now.since(link.last)
        };
        let most = |a: &&Link, b: &&Link| a.rest().total_cmp(&b.rest());
        let late = thief.proven.then(|| self.links.iter().filter(is_late).max_by(most)).flatten()?;
        Some(Job::All { victim: late.id, why: Fault::Late })
    }

    /// When another may fetch the last bytes of a link, if it brings none before.
    pub(super) fn late_at(&self, link: &Link) -> Option<Mono> {
        let most = TAIL.min(3.0 * self.rules.least.0.max(1) as f64).min(self.total.0 as f64 / TAILS);
        let is_tail = link.rest() > 0.0 && link.rest() < most;
        if !is_tail || link.phase != Phase::Flowing || link.reach != Reach::Ranged || link.told.is_none() {
            return None;
        }
        let heads = Delay::from_secs_f64(LATE_HEADS * self.roster.of(link.seat).head()?);
        Some(link.last + doubled(LATE.max(heads), link.inherited))
    }

    /// Seconds that a link has still to go, as expected.
    fn left(&self, link: &Link, now: Mono) -> f64 {
        link.rest() / self.rate_of(link, now)
    }

    /// In how many seconds all would end together, if every link that may be opened were.
    fn common_end(&self, thief: Thief, now: Mono) -> f64 {
        let new = match thief.crowd {
            Crowd::Alone => thief.rate,
            Crowd::Of(rate) => rate,
        };
        let busy = self.links.iter().filter(|link| link.rest() > 0.0);
        let (rest, rate) = busy
            .fold((0.0, 0.0), |(rest, rate), link| (rest + self.cost_of(link, now), rate + self.rate_of(link, now)));
        (rest + new * thief.head) / (rate + new)
    }

    /// What a link has to bring, and what it would have brought in the time until its head comes.
    fn cost_of(&self, link: &Link, now: Mono) -> f64 {
        let head = if link.phase == Phase::Opening { self.expected_head(link.seat, now) } else { 0.0 };
        let waits = (head - now.since(link.asked).as_secs_f64()).max(0.0);
        link.rest() + self.rate_of(link, now) * waits
    }

    /// What a thief takes of one link, if that helps.
    fn deal(&self, thief: Thief, link: &Link, left: f64, end: f64, now: Mono) -> Option<Job> {
        if left <= 2.0 * thief.head {
            return None;
        }
        let (rest, rate, least) = (link.rest(), self.rate_of(link, now), self.rules.least.0.max(1) as f64);
        let both = thief.rate * (rest - rate * thief.head) / (thief.rate + rate);
        let share = match thief.crowd {
            Crowd::Alone => both,
            Crowd::Of(_) => (rest - rate * end).min(thief.rate * (end - thief.head)),
        };
        if share >= least && rest - share >= least {
            // Less than the rest, so it lies behind the link's own position.
            let from = link.end.back(Length(share.round() as u64));
            return Some(Job::Part { victim: link.id, from });
        }
        self.gives_up(thief, link, left, now).then_some(Job::All { victim: link.id, why: Fault::Slow })
    }

    /// Would all that a link has to fetch be here much sooner from a thief?
    fn gives_up(&self, thief: Thief, link: &Link, left: f64, now: Mono) -> bool {
        if link.told.is_none() || !self.is_known_and_lively(link, now) {
            return false;
        }
        if thief.proven {
            let takes = thief.head + link.rest() / thief.rate;
            self.rate_of(link, now) * MUCH_SLOWER < thief.rate && takes * WORTH_IT < left
        } else {
            left > CHANCE
        }
    }

    /// A link that should make room, where all places are taken, for one from this seat.
    pub(super) fn outpaced_by(&self, seat: usize, now: Mono) -> Option<LinkId> {
        let thief = self.thief(seat, Crowd::Alone, now);
        let slow = |link: &&Link| {
            let trickles = thief.proven || self.rate_of(link, now) < TRICKLE;
            link.rest() > 0.0 && trickles && self.gives_up(thief, link, self.left(link, now), now)
        };
        let slowest = self.links.iter().filter(slow).max_by(|a, b| self.left(a, now).total_cmp(&self.left(b, now)));
        slowest.map(|link| link.id)
    }

    /// The links of a seat's origin.
    pub(super) fn links_of(&self, seat: usize) -> impl Iterator<Item = &Link> {
        let origin = self.roster.origin(seat);
        self.links.iter().filter(move |link| self.roster.origin(link.seat) == origin)
    }
}
