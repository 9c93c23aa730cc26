//! A planner driven by hand, and short words for what it wishes.

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;

/// A planner driven by hand, from its first request on.
pub(super) struct Bench {
    pub(super) planner: Segments,
    rng: StdRng,
    /// Milliseconds.
    pub(super) now: u64,
}

pub(super) const FORBIDDEN: Ending = Ending::Refused { retry_after: None };

impl Bench {
    pub(super) fn new(total: u64, seats: Vec<Seat>, rules: Rules) -> Self {
        Self::holding(total, &[], seats, rules)
    }

    pub(super) fn holding(total: u64, held: &[ByteRange], seats: Vec<Seat>, rules: Rules) -> Self {
        let held = held.iter().copied().collect();
        Self { planner: Segments::new(Length(total), held, seats, rules), rng: StdRng::seed_from_u64(1), now: 10_000 }
    }

    /// So many seats, each of another origin.
    pub(super) fn mirrors(total: u64, count: usize, rules: Rules) -> Self {
        Self::new(total, (0..count).map(|n| seat(n, n)).collect(), rules)
    }

    pub(super) fn mono(&self) -> Mono {
        Mono::ZERO + Delay::from_millis(self.now)
    }

    pub(super) fn adopt(&mut self, seat: usize, at: u64, end: u64, reach: Reach) -> Vec<Action> {
        let now = self.mono();
        self.planner.adopt(seat, Offset(at), Offset(end), reach, now);
        self.wake()
    }

    pub(super) fn tell(&mut self, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        self.planner.handle(event, &mut Cx { now: at(self.mono()), rng: &mut self.rng, out: &mut out });
        out
    }

    pub(super) fn wake(&mut self) -> Vec<Action> {
        self.tell(Event::Wake)
    }

    pub(super) fn open(&mut self, link: u32) -> Vec<Action> {
        self.tell(Event::Opened(LinkId(link)))
    }

    pub(super) fn bytes(&mut self, link: u32, count: u64) -> Vec<Action> {
        self.tell(Event::Arrived(LinkId(link), Length(count)))
    }

    pub(super) fn end(&mut self, link: u32, ending: Ending) -> Vec<Action> {
        self.tell(Event::Ended(LinkId(link), ending))
    }

    /// Lets time pass, with every wake that was asked for, while these links bring so many bytes per millisecond.
    pub(super) fn pass(&mut self, millis: u64, flows: &[(u32, u64)]) -> Vec<Action> {
        let mut out = Vec::new();
        for _ in 0..millis / 10 {
            self.now += 10;
            for (link, rate) in flows {
                out.extend(self.bytes(*link, rate * 10));
            }
            if self.planner.wake_at().is_some_and(|at| at <= self.mono()) {
                out.extend(self.wake());
            }
        }
        out
    }

    pub(super) fn bears(&self, origin: usize) -> Option<usize> {
        self.planner.learned().nth(origin).and_then(|learned| learned.connections)
    }
}

pub(super) fn open(link: u32, seat: usize, start: u64, end: u64) -> Action {
    Action::Open { link: LinkId(link), seat, range: range(start, end), reach: Reach::Ranged }
}

pub(super) fn limit(link: u32, end: u64) -> Action {
    Action::Limit { link: LinkId(link), end: Offset(end) }
}

pub(super) fn stop(link: u32) -> Action {
    Action::Stop { link: LinkId(link) }
}
