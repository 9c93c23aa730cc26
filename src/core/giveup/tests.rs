//! Suspended, offline, asleep, killed for a month, clocks that jump: told as tables.

use proptest::prelude::*;

use super::*;

const WINDOW: Delay = Delay::from_days(14);

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Both clocks run.
    Wait(Delay),
    /// The machine sleeps: the wall clock alone runs.
    Sleep(Delay),
    /// The wall clock is set ahead.
    Ahead(Delay),
    /// The wall clock is set back.
    Back(Delay),
    Start,
    Progress,
    Pause,
    Unpause,
    /// A pass fails; the next is due after this.
    Due(Delay),
    /// The record is saved, the program killed and, so much later, started again.
    Killed(Delay),
}
use Step::*;

/// A transfer, its clocks, and what its record holds beside it.
struct World {
    patience: Patience,
    now: Now,
    first: Option<Epoch>,
    next: Option<Epoch>,
}

impl World {
    fn new(window: Delay, from: GiveUpFrom) -> Self {
        let now = Now { wall: Epoch::from_secs(1_700_000_000), mono: Mono::from_micros(5_000_000) };
        Self { patience: Patience::new(window, from), now, first: None, next: None }
    }

    fn after(from: GiveUpFrom, steps: &[Step]) -> Self {
        let mut world = Self::new(WINDOW, from);
        steps.iter().for_each(|step| world.step(*step));
        world
    }

    fn step(&mut self, step: Step) {
        match step {
            Wait(d) => self.now = Now { wall: self.now.wall + d, mono: self.now.mono + d },
            Sleep(d) | Ahead(d) => self.now.wall = self.now.wall + d,
            Back(d) => self.now.wall = self.now.wall - d,
            Start => {
                self.first = self.first.or(Some(self.now.wall));
                self.patience.start(self.now);
            }
            Progress => {
                self.first = self.first.or(Some(self.now.wall));
                self.patience.progress(self.now);
            }
            Pause => {
                self.next = None;
                self.patience.pause(self.now);
            }
            Unpause => self.patience.unpause(self.now),
            Due(d) => self.next = Some(self.now.wall + d),
            Killed(away) => self.kill(away),
        }
    }

    fn kill(&mut self, away: Delay) {
        let used = self.patience.used(self.now);
        let at = self.first.map(|_| self.now.wall);
        // Another process: another monotonic clock.
        self.now = Now { wall: self.now.wall + away, mono: Mono::from_micros(77) };
        let Patience { window, from, .. } = self.patience;
        self.patience = Patience::restore(window, from, used, at, self.next, self.first, self.now);
    }

    fn used(&self) -> Delay {
        self.patience.used(self.now)
    }
    fn is_over(&self) -> bool {
        self.patience.is_over(self.now)
    }
}

const fn days(n: u64) -> Delay {
    Delay::from_days(n)
}
const fn hours(n: u64) -> Delay {
    Delay::from_hours(n)
}

#[test]
fn what_counts_from_the_last_progress() {
    let year = days(365);
    let table: [(&str, &[Step], Delay); 19] = [
        ("not begun", &[Wait(days(3))], Delay::ZERO),
        ("running", &[Wait(days(1)), Start, Wait(days(3))], days(3)),
        ("a second session", &[Start, Wait(days(3)), Start, Wait(days(1))], days(4)),
        ("progress", &[Start, Wait(days(3)), Progress, Wait(hours(2))], hours(2)),
        ("progress begins it", &[Progress, Wait(hours(2))], hours(2)),
        ("suspended or offline", &[Start, Wait(days(3)), Pause, Wait(days(30)), Unpause, Wait(days(1))], days(4)),
        ("paused twice", &[Start, Wait(days(1)), Pause, Wait(days(1)), Pause, Wait(days(1)), Unpause], days(1)),
        ("paused before it began", &[Pause, Wait(days(1)), Unpause, Wait(days(1)), Start, Wait(hours(1))], hours(1)),
        ("a session ends a pause", &[Start, Pause, Wait(days(9)), Start, Wait(hours(1))], hours(1)),
        ("progress ends a pause", &[Start, Wait(days(1)), Pause, Wait(days(9)), Progress, Wait(hours(1))], hours(1)),
        ("unpaused though not paused", &[Start, Wait(days(2)), Unpause, Wait(days(1))], days(3)),
        ("asleep", &[Start, Wait(days(1)), Sleep(days(20)), Wait(days(1))], days(2)),
        ("the clock goes a year ahead", &[Start, Wait(days(1)), Ahead(year), Wait(days(1))], days(2)),
        ("the clock goes a year back", &[Start, Wait(days(1)), Back(year), Wait(days(1))], days(2)),
        (
            "killed for a month, four hours due",
            &[Start, Wait(days(1)), Due(hours(4)), Killed(days(30))],
            days(1).saturating_add(hours(4)),
        ),
        ("killed for an hour, four hours due", &[Start, Due(hours(4)), Killed(hours(1)), Wait(hours(1))], hours(2)),
        ("killed with nothing due", &[Start, Wait(hours(1)), Killed(days(30)), Wait(hours(1))], hours(2)),
        (
            "killed, and the clock set back meanwhile",
            &[Start, Wait(hours(1)), Due(hours(4)), Back(days(9)), Killed(hours(1))],
            hours(2),
        ),
        ("killed while suspended", &[Start, Wait(hours(1)), Due(hours(4)), Pause, Killed(days(30))], hours(1)),
    ];
    for (name, steps, used) in table {
        assert_eq!(World::after(GiveUpFrom::LastProgress, steps).used(), used, "{name}");
    }
}

#[test]
fn a_clock_set_back_before_a_restart_counts_nothing() {
    let at = Epoch::from_secs(1_700_000_000);
    let now = Now { wall: at - days(40), mono: Mono::ZERO };
    let restored =
        |from| Patience::restore(WINDOW, from, days(2), Some(at), Some(at + hours(4)), Some(at - days(3)), now);
    assert_eq!(restored(GiveUpFrom::LastProgress).used(now), days(2));
    assert_eq!(restored(GiveUpFrom::FirstRequest).used(now), days(2));
}

#[test]
fn a_record_that_boinc_wrote_counts_from_now_on() {
    let now = Now { wall: Epoch::from_secs(1_700_000_000), mono: Mono::ZERO };
    let later = Now { mono: Mono::ZERO + hours(1), ..now };
    let first = now.wall - days(3);
    let restored = |from, first| Patience::restore(WINDOW, from, Delay::ZERO, None, Some(now.wall), first, now);
    assert_eq!(restored(GiveUpFrom::LastProgress, Some(first)).used(later), hours(1));
    assert_eq!(restored(GiveUpFrom::FirstRequest, Some(first)).used(later), hours(73));
    assert_eq!(restored(GiveUpFrom::FirstRequest, None).used(later), Delay::ZERO, "not begun");
}

#[test]
fn what_counts_from_the_first_request() {
    let table: [(&str, &[Step], Delay); 6] = [
        ("not begun", &[Wait(days(3))], Delay::ZERO),
        ("progress changes nothing", &[Start, Wait(days(3)), Progress, Wait(hours(2))], hours(74)),
        ("suspended or offline", &[Start, Wait(days(3)), Pause, Wait(days(30)), Unpause, Wait(days(1))], days(34)),
        ("still suspended", &[Start, Wait(days(3)), Pause, Wait(days(30))], days(33)),
        ("killed for a month", &[Start, Wait(days(1)), Due(hours(4)), Killed(days(30)), Wait(days(1))], days(32)),
        ("a jump while it runs", &[Start, Wait(days(1)), Ahead(days(365)), Wait(days(1))], days(2)),
    ];
    for (name, steps, used) in table {
        assert_eq!(World::after(GiveUpFrom::FirstRequest, steps).used(), used, "{name}");
    }
}

#[test]
fn the_window_ends_on_time_and_boincs_a_moment_later() {
    for (from, more) in [(GiveUpFrom::LastProgress, 0), (GiveUpFrom::FirstRequest, 1)] {
        let mut world = World::after(from, &[Start, Wait(days(1))]);
        assert_eq!(world.patience.left(world.now), days(13).saturating_add(Delay::from_micros(more)));
        let end = world.patience.ends_at(world.now).expect("a moment");
        world.step(Wait(Delay::from_micros(end.since(world.now.mono).as_micros() - 1)));
        assert!(!world.is_over(), "{from:?}: a microsecond before");
        world.step(Wait(Delay::from_micros(1)));
        assert!(world.is_over(), "{from:?}");
        assert_eq!(world.patience.left(world.now), Delay::ZERO);
    }
}

#[test]
fn a_transfer_that_rests_has_no_end() {
    for from in [GiveUpFrom::LastProgress, GiveUpFrom::FirstRequest] {
        for steps in [&[Wait(days(99))][..], &[Start, Pause, Wait(days(99))]] {
            let world = World::after(from, steps);
            assert_eq!(world.patience.ends_at(world.now), None, "{from:?} {steps:?}");
            assert!(!world.is_over(), "{from:?} {steps:?}");
        }
    }
}

#[test]
fn a_window_without_end_never_ends() {
    let mut world = World::new(Delay::MAX, GiveUpFrom::FirstRequest);
    [Start, Wait(Delay::MAX), Wait(Delay::MAX)].into_iter().for_each(|step| world.step(step));
    assert_eq!(world.patience.ends_at(world.now), None);
    assert!(!world.is_over());
}

#[test]
fn a_window_that_passed_while_the_program_was_away_leaves_time_for_one_try() {
    let nearly = [Start, Wait(days(13)), Wait(hours(23)), Due(hours(4)), Killed(days(365))];
    let boinc = [Start, Wait(days(1)), Due(hours(4)), Killed(days(365))];
    for (from, steps) in [(GiveUpFrom::LastProgress, nearly.as_slice()), (GiveUpFrom::FirstRequest, &boinc)] {
        let mut world = World::after(from, steps);
        assert!(!world.is_over(), "{from:?}: ended by a clock's word");
        assert_eq!(world.patience.left(world.now), Delay::from_mins(1), "{from:?}");
        world.step(Wait(Delay::from_mins(1)));
        assert!(world.is_over(), "{from:?}: the grace is over");
    }
}

#[test]
fn the_grace_is_not_given_twice() {
    // As with `--once` from a timer: each run tries once and ends at once.
    let mut world = World::after(GiveUpFrom::FirstRequest, &[Start, Due(hours(4)), Killed(days(15))]);
    assert!(!world.is_over());
    world.step(Killed(hours(1)));
    assert!(world.is_over());
}

#[test]
fn the_grace_of_a_short_window_is_short() {
    let mut world = World::new(Delay::from_secs(3), GiveUpFrom::LastProgress);
    [Start, Wait(Delay::from_secs(2)), Due(Delay::from_secs(2)), Killed(hours(1))]
        .into_iter()
        .for_each(|s| world.step(s));
    assert_eq!(world.patience.left(world.now), Delay::from_millis(300));
}

#[test]
fn boincs_rule_lets_a_long_suspended_transfer_try_once_more() {
    let mut world = World::after(GiveUpFrom::FirstRequest, &[Start, Pause, Wait(days(30)), Unpause]);
    assert!(!world.is_over());
    world.step(Wait(Delay::from_mins(1)));
    assert!(world.is_over());
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let span = || (0_u64..5_000_000).prop_map(Delay::from_secs);
    let step = prop_oneof![
        3 => span().prop_map(Wait), 1 => span().prop_map(Sleep), 1 => span().prop_map(Ahead), 1 => span().prop_map(Back),
        2 => Just(Start), 1 => Just(Progress), 1 => Just(Pause), 1 => Just(Unpause),
        2 => (0_u64..20_000).prop_map(Delay::from_secs).prop_map(Due), 1 => span().prop_map(Killed),
    ];
    proptest::collection::vec(step, 0..30)
}

proptest! {
    /// Whatever the clocks do, no more is used than the monotonic clock has told and the waits that were due when the
    /// program was killed.
    #[test]
    fn only_time_in_which_something_could_be_tried_counts(steps in steps()) {
        let mut world = World::new(WINDOW, GiveUpFrom::LastProgress);
        let mut most = Delay::ZERO;
        for step in steps {
            let due = world.next.map_or(Delay::ZERO, |next| next.since(world.now.wall));
            match step {
                Wait(d) => most = most.saturating_add(d),
                Killed(away) => most = most.saturating_add(away.min(due)),
                Progress => most = Delay::ZERO,
                _ => {}
            }
            world.step(step);
            prop_assert!(world.used() <= most, "{step:?}: {} used, at most {most}", world.used());
        }
    }

    /// The timer and the question agree, and a jump of the wall clock changes neither.
    #[test]
    fn the_timer_is_right(steps in steps(), jump in any::<i64>(), boinc in any::<bool>()) {
        let from = if boinc { GiveUpFrom::FirstRequest } else { GiveUpFrom::LastProgress };
        let mut world = World::after(from, &steps);
        let jumped = Now { wall: Epoch::from_micros(jump), ..world.now };
        prop_assert_eq!(world.patience.ends_at(jumped), world.patience.ends_at(world.now));
        prop_assert_eq!(world.patience.used(jumped), world.used());
        let Some(end) = world.patience.ends_at(world.now) else {
            prop_assert!(!world.is_over());
            return Ok(());
        };
        prop_assert_eq!(world.is_over(), end <= world.now.mono);
        world.step(Wait(end.since(world.now.mono)));
        prop_assert!(world.is_over());
    }

    /// A restart, whatever the clock says after it, never ends a transfer whose window had not passed.
    #[test]
    fn no_restart_ends_a_transfer(steps in steps(), wall in any::<i64>(), boinc in any::<bool>()) {
        let from = if boinc { GiveUpFrom::FirstRequest } else { GiveUpFrom::LastProgress };
        let world = World::after(from, &steps);
        let used = world.used();
        if used < WINDOW {
            let at = world.first.map(|_| world.now.wall);
            let now = Now { wall: Epoch::from_micros(wall), mono: Mono::ZERO };
            let restored = Patience::restore(WINDOW, from, used, at, world.next, world.first, now);
            prop_assert!(!restored.is_over(now));
            prop_assert!(restored.used(now) >= used);
        }
    }
}
