//! Slots: limits, turns, silence; and under random treatment, what must always hold.

use std::collections::BTreeMap as Map;

use proptest::prelude::*;

use super::*;

fn host(name: &str) -> Origin {
    Origin::parse(&format!("http://{name}.example")).expect("an origin")
}

fn limits(all: usize, per_host: usize) -> Limits {
    let quiet = Some(Delay::from_secs(1));
    Limits { all, per_host, per_direction: PerDirection::default(), silent: all, quiet }
}

fn at(secs: u64) -> Mono {
    Mono::ZERO + Delay::from_secs(secs)
}

fn ask(name: &str, id: u64) -> Ask {
    let key = HostKey { origin: host(name), direction: Direction::Download };
    Ask { id: XferId(id), key, queue: Queue::Movable, priority: Priority::default() }
}

fn slots(limits: Limits, waiting: &[(&str, u64)]) -> Slots {
    let mut slots = Slots::new(limits);
    waiting.iter().for_each(|(h, id)| slots.wait(ask(h, *id)));
    slots
}

fn started(slots: &mut Slots, now: Mono) -> Vec<u64> {
    std::iter::from_fn(|| slots.next(now)).map(|grant| grant.ask.id.0).collect()
}

#[test]
fn hosts_take_turns_within_all_limits() {
    let mut slots = slots(limits(3, 2), &[("a", 1), ("a", 2), ("a", 3), ("b", 4), ("b", 5)]);
    assert_eq!(started(&mut slots, at(0)), [1, 4, 2], "one of each first");
    slots.free(XferId(4));
    assert_eq!(started(&mut slots, at(0)), [5], "a has no room");
    slots.free(XferId(1));
    assert_eq!(started(&mut slots, at(0)), [3]);
    assert_eq!(slots.running(), 3);
}

#[test]
fn ten_thousand_files_of_one_host_delay_another_by_one_session() {
    let mut slots = Slots::new(limits(1, 1));
    (0..10_000).for_each(|id| slots.wait(ask("many", id)));
    assert_eq!(started(&mut slots, at(0)), [0]);
    slots.wait(ask("few", 10_000));
    slots.free(XferId(0));
    // The line of the many became ready again after the other one came.
    assert_eq!(started(&mut slots, at(0)), [10_000]);
    slots.free(XferId(10_000));
    assert_eq!(started(&mut slots, at(0)), [1]);
}

#[test]
fn a_higher_priority_goes_first() {
    let mut slots = slots(limits(1, 1), &[("a", 1), ("b", 2)]);
    slots.wait(Ask { priority: Priority(1), ..ask("c", 3) });
    slots.wait(Ask { priority: Priority(2), ..ask("a", 4) });
    let mut order = Vec::new();
    while let Some(grant) = slots.next(at(0)) {
        order.push(grant.ask.id.0);
        slots.free(grant.ask.id);
    }
    assert_eq!(order, [4, 3, 2, 1], "then whose turn is longest ago");
}

#[test]
fn directions_have_limits_of_their_own() {
    let mut limits = limits(9, 9);
    limits.per_direction = PerDirection { up: Some(0), down: Some(2) };
    let mut slots = slots(limits, &[("a", 1), ("b", 2), ("c", 3)]);
    let up = HostKey { origin: host("a"), direction: Direction::Upload };
    slots.wait(Ask { key: up, ..ask("a", 4) });
    assert_eq!(started(&mut slots, at(0)), [1, 2]);
    limits.per_direction.up = None;
    slots.set_limits(limits);
    assert_eq!(started(&mut slots, at(0)), [4]);
    slots.free(XferId(1));
    assert_eq!(started(&mut slots, at(0)), [3]);
}

#[test]
fn a_host_may_have_a_limit_of_its_own() {
    let mut slots = slots(limits(9, 1), &[("a", 1), ("a", 2), ("a", 3), ("b", 4), ("b", 5)]);
    slots.set_host_limit(&host("a"), Some(2));
    assert_eq!(started(&mut slots, at(0)), [1, 4, 2]);
    slots.set_host_limit(&host("a"), None);
    slots.free(XferId(1));
    assert_eq!(started(&mut slots, at(0)), [0; 0], "one is still there");
}

#[test]
fn dead_hosts_do_not_hold_the_slots() {
    let mut slots = Slots::new(limits(4, 2));
    (0..10_000).for_each(|n| slots.wait(ask(if n % 2 == 0 { "dead" } else { "gone" }, n)));
    (20_000..20_100).for_each(|n| slots.wait(ask("well", n)));
    (30_000..30_100).for_each(|n| slots.wait(ask("good", n)));
    assert_eq!(started(&mut slots, at(0)), [0, 1, 20_000, 30_000]);
    [20_000, 30_000].into_iter().for_each(|n| slots.heard(XferId(n), at(1)));
    assert_eq!(slots.wake_at(), Some(at(1)));
    slots.tick(at(1));
    assert_eq!(slots.silent(), 2);
    assert_eq!(started(&mut slots, at(1)), [2, 3], "each dead host may have two in all");
    [20_000, 30_000].into_iter().for_each(|n| slots.heard(XferId(n), at(2)));
    slots.tick(at(2));
    assert_eq!((slots.silent(), started(&mut slots, at(2))), (4, vec![20_001, 30_001]), "the others have all the room");
    [20_000, 30_000, 20_001, 30_001].into_iter().for_each(|n| slots.heard(XferId(n), at(3)));
    slots.tick(at(3));
    assert_eq!(slots.running(), 8);
}

#[test]
fn one_that_is_heard_of_late_goes_on_and_holds_back_those_to_come() {
    let mut slots = slots(limits(1, 9), &[("a", 1), ("b", 2), ("b", 3)]);
    assert_eq!(started(&mut slots, at(0)), [1]);
    slots.tick(at(1));
    assert_eq!(started(&mut slots, at(1)), [2]);
    slots.heard(XferId(1), at(1));
    slots.free(XferId(2));
    assert_eq!(started(&mut slots, at(1)), [0; 0], "the first one is busy again");
    slots.free(XferId(1));
    assert_eq!(started(&mut slots, at(1)), [3]);
    assert_eq!(slots.silent(), 0);
}

#[test]
fn nobody_is_woken_for_a_place_that_nobody_wants() {
    let mut slots = slots(limits(1, 1), &[("a", 1)]);
    assert_eq!(started(&mut slots, at(0)), [1]);
    assert_eq!(slots.wake_at(), None);
    slots.wait(ask("a", 2));
    assert_eq!(slots.wake_at(), None, "its host has no room");
    slots.wait(ask("b", 3));
    assert_eq!(slots.wake_at(), Some(at(1)));
}

#[test]
fn a_closed_host_keeps_those_who_have_no_other() {
    let mut slots = Slots::new(limits(9, 9));
    (1..=3).for_each(|n| slots.wait(Ask { queue: Queue::Bound, ..ask("a", n) }));
    slots.wait(ask("a", 4));
    let first = slots.next(at(0)).expect("one");
    slots.shut(first, at(9));
    assert_eq!(started(&mut slots, at(0)), [4], "who can go elsewhere is let out to do so");
    assert_eq!(slots.wake_at(), Some(at(9)));
    slots.tick(at(8));
    assert_eq!(started(&mut slots, at(8)), [0; 0]);
    slots.tick(at(9));
    assert_eq!((started(&mut slots, at(9)), slots.wake_at()), (vec![1, 2, 3], None));
}

#[test]
fn guests_take_what_room_is_left_and_no_more_than_that() {
    let (mut slots, a) = (slots(limits(3, 2), &[("a", 1)]), host("a"));
    assert!(!slots.join(&a), "one of its own is about to start");
    assert_eq!(started(&mut slots, at(0)), [1]);
    assert_eq!([slots.join(&a), slots.join(&a)], [true, false], "two at a time from one host");
    slots.wait(ask("a", 2));
    assert_eq!(started(&mut slots, at(0)), [0; 0], "a guest counts");
    slots.leave(&a);
    assert!(!slots.join(&a), "its own go before guests");
    assert_eq!(started(&mut slots, at(0)), [2]);
    assert!(!slots.join(&a));
    [1, 2].into_iter().for_each(|id| slots.free(XferId(id)));
    assert!(slots.join(&a));
    slots.leave(&a);
    assert!(slots.hosts.is_empty());
}

#[test]
fn one_that_runs_gets_no_second_slot() {
    let mut slots = slots(limits(9, 9), &[("a", 1), ("b", 1), ("b", 2)]);
    assert_eq!(started(&mut slots, at(0)), [1, 2]);
    slots.free(XferId(1));
    assert_eq!(slots.running(), 1);
}

#[test]
fn nothing_is_left_of_what_is_over() {
    let mut slots = slots(limits(3, 2), &[("a", 1), ("b", 2)]);
    assert_eq!(started(&mut slots, at(0)), [1, 2]);
    slots.tick(at(5));
    [1, 2, 3].into_iter().for_each(|id| slots.free(XferId(id)));
    assert!(slots.hosts.is_empty() && slots.ready.down.is_empty() && slots.checks.is_empty());
    assert_eq!((slots.busy, slots.silent), (PerDirection::default(), 0));
}

/// What can happen to slots.
#[derive(Clone, Debug)]
enum Step {
    Wait { host: u8, up: bool, bound: bool, priority: i8 },
    Start,
    Free(usize),
    Heard(usize),
    Time(u64),
    Shut(u64),
    Open { host: u8, up: bool },
    Limit { all: usize, per_host: usize, up: Option<usize> },
    Join { host: u8 },
    Leave,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..4_u8, any::<bool>(), any::<bool>(), -1..2_i8)
            .prop_map(|(host, up, bound, priority)| Step::Wait { host, up, bound, priority }),
        4 => Just(Step::Start),
        2 => any::<usize>().prop_map(Step::Free),
        2 => any::<usize>().prop_map(Step::Heard),
        2 => (0..3_000_u64).prop_map(Step::Time),
        1 => (1..9_000_u64).prop_map(Step::Shut),
        1 => (0..4_u8, any::<bool>()).prop_map(|(host, up)| Step::Open { host, up }),
        2 => (0..4_u8).prop_map(|host| Step::Join { host }),
        2 => Just(Step::Leave),
        1 => (1..5_usize, 1..3_usize, proptest::option::of(0..3_usize))
            .prop_map(|(all, per_host, up)| Step::Limit { all, per_host, up }),
    ];
    proptest::collection::vec(step, 0..120)
}

/// Slots, and what a naive reader knows of them.
struct Model {
    slots: Slots,
    waiting: Map<XferId, HostKey>,
    running: Map<XferId, HostKey>,
    guests: Vec<Origin>,
    now: Mono,
    born: u64,
}

impl Model {
    fn key(host: u8, up: bool) -> HostKey {
        let direction = if up { Direction::Upload } else { Direction::Download };
        HostKey { origin: self::host(&format!("h{host}")), direction }
    }

    fn start(&mut self) -> Option<Grant> {
        let (limits, before) = (self.slots.limits(), self.slots.busy);
        let grant = self.slots.next(self.now)?;
        let key = grant.ask.key.clone();
        assert!(before.up + before.down < limits.all, "no more than so many busy ones when one starts");
        assert!(limits.per_direction.of(key.direction).is_none_or(|most| *before.of(key.direction) < most));
        assert_eq!(self.waiting.remove(&grant.ask.id), Some(key.clone()), "it waited for this, and has not started");
        let with_host = self.with(&key.origin);
        assert!(with_host < limits.per_host, "{with_host} of {}", limits.per_host);
        self.running.insert(grant.ask.id, key);
        Some(grant)
    }

    /// Transfers that ask this host.
    fn with(&self, origin: &Origin) -> usize {
        let own = self.running.values().filter(|key| key.origin == *origin).count();
        own + self.guests.iter().filter(|guest| *guest == origin).count()
    }

    fn pick(&self, n: usize) -> Option<XferId> {
        self.running.keys().nth(n % self.running.len().max(1)).copied()
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Wait { host, up, bound, priority } => {
                self.born += 1;
                let (id, key) = (XferId(self.born), Self::key(host, up));
                self.waiting.insert(id, key.clone());
                let queue = if bound { Queue::Bound } else { Queue::Movable };
                self.slots.wait(Ask { id, key, queue, priority: Priority(priority) });
            }
            Step::Start => drop(self.start()),
            Step::Free(n) => {
                if let Some(id) = self.pick(n) {
                    self.running.remove(&id);
                    self.slots.free(id);
                }
            }
            Step::Heard(n) => {
                let id = self.pick(n).unwrap_or(XferId(0));
                self.slots.heard(id, self.now);
            }
            Step::Time(millis) => {
                self.now = self.now + Delay::from_millis(millis);
                self.slots.tick(self.now);
            }
            Step::Shut(millis) => {
                if let Some(grant) = self.start() {
                    let Ask { id, key, .. } = grant.ask.clone();
                    self.running.remove(&id);
                    self.waiting.insert(id, key);
                    self.slots.shut(grant, self.now + Delay::from_millis(millis));
                }
            }
            Step::Join { host } => {
                let origin = Self::key(host, false).origin;
                let before = self.with(&origin);
                if self.slots.join(&origin) {
                    assert!(before < self.slots.limits().per_host);
                    self.guests.push(origin);
                }
            }
            Step::Leave => self.guests.pop().into_iter().for_each(|guest| self.slots.leave(&guest)),
            Step::Open { host, up } => self.slots.open(&Self::key(host, up)),
            Step::Limit { all, per_host, up } => {
                let per_direction = PerDirection { up, down: None };
                self.slots.set_limits(Limits { all, per_host, per_direction, ..self.slots.limits() });
            }
        }
    }

    fn check(&self) {
        assert_eq!(self.slots.running(), self.running.len());
        let states = |state| self.slots.sessions.values().filter(|s| s.state == state).count();
        assert_eq!(states(State::Silent), self.slots.silent);
        assert_eq!(states(State::Busy), self.slots.busy.up + self.slots.busy.down);
        assert_eq!(self.slots.checks.len(), states(State::Busy), "each busy one is looked at, and no other");
        assert!(self.slots.silent <= 5 + self.slots.limits().silent);
    }
}

proptest! {
    /// However they are treated: no limit is ever passed by a start, nobody starts twice, and in the end everybody has.
    #[test]
    fn limits_hold_and_nobody_is_forgotten(steps in steps()) {
        let slots = Slots::new(limits(3, 2));
        let mut model = Model { slots, waiting: Map::new(), running: Map::new(), guests: Vec::new(), now: at(0), born: 0 };
        for step in steps {
            model.take(step);
            model.check();
        }
        model.take(Step::Limit { all: 2, per_host: 1, up: None });
        model.take(Step::Time(20_000));
        (0..model.guests.len()).for_each(|_| model.take(Step::Leave));
        loop {
            let running: Vec<XferId> = model.running.keys().copied().collect();
            running.iter().for_each(|id| { model.running.remove(id); model.slots.free(*id); });
            if model.start().is_none() { break }
        }
        prop_assert!(model.waiting.is_empty(), "{:?} never started", model.waiting);
        prop_assert!(model.slots.hosts.is_empty(), "something is left: {:?}", model.slots);
    }

    /// Never more sessions than busy and silent ones may be together, whatever answers late.
    #[test]
    fn there_are_never_more_sessions_than_both_kinds_may_be(steps in steps()) {
        let slots = Slots::new(limits(3, 2));
        let mut model = Model { slots, waiting: Map::new(), running: Map::new(), guests: Vec::new(), now: at(0), born: 0 };
        for step in steps.into_iter().filter(|step| !matches!(step, Step::Limit { .. })) {
            model.take(step);
            prop_assert!(model.slots.running() <= 6);
        }
    }

    /// Between two grants to a host, every other host that had somebody waiting all the time gets one.
    #[test]
    fn hosts_with_somebody_waiting_take_turns(lines in proptest::collection::vec(1..30_usize, 2..6), all in 1..4_usize) {
        let mut slots = Slots::new(limits(all, 3));
        let mut left: Vec<usize> = lines.clone();
        let mut id = 0;
        for (h, count) in lines.iter().enumerate() {
            for _ in 0..*count { id += 1; slots.wait(ask(&format!("h{h}"), id)); }
        }
        let mut since: Vec<usize> = vec![0; lines.len()];
        let mut running = std::collections::VecDeque::new();
        loop {
            while let Some(grant) = slots.next(at(0)) {
                let name = grant.ask.key.origin.host();
                let h = (0..lines.len()).find(|h| name == format!("h{h}.example")).expect("a host of ours");
                left[h] -= 1;
                running.push_back(grant.ask.id);
                for (other, waited) in since.iter_mut().enumerate() {
                    *waited = if other == h || left[other] == 0 { 0 } else { *waited + 1 };
                    prop_assert!(*waited < lines.len(), "h{other} was passed over {waited} times");
                }
            }
            let Some(id) = running.pop_front() else { break };
            slots.free(id);
        }
        prop_assert!(left.iter().all(|n| *n == 0));
    }
}
