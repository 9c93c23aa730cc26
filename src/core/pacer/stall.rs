//! The stall rule: a body that comes more slowly than so many bytes a second, for so long, is given up.

use crate::core::range::Length;
use crate::core::time::{Delay, Mono};

/// How often the driver feeds the meter at least, with zero bytes where none came.
pub const LOOK_EVERY: Delay = Delay::from_secs(1);

/// When nobody has looked for so long, it was we who stood still (stopped by a signal, or starved), not the server:
/// what was measured before says nothing.
const BLIND: Delay = Delay::from_secs(2);

/// Measures one body against a least rate.
///
/// Time counts from the first byte of the body. A window ends well as soon as it has brought what the least rate
/// demands of a whole window, and a new one begins; it ends badly when its time is over first.
#[derive(Clone, Debug)]
pub struct StallMeter {
    floor: u64,
    window: Delay,
    state: Option<Window>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    since: Mono,
    bytes: u64,
    looked: Mono,
}

/// What the meter says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Fast enough, or too early to tell.
    Flowing,
    /// Below the floor for the whole window.
    Stalled,
}

impl StallMeter {
    /// Below `floor` bytes per second for `window` is a stall. A floor or a window of zero switches the rule off.
    pub fn new(floor: u64, window: Delay) -> Self {
        Self { floor, window, state: None }
    }

    /// So many bytes came, now; zero where it is only time to look.
    pub fn feed(&mut self, now: Mono, bytes: u64) -> Flow {
        let Some(window) = &mut self.state else {
            if bytes > 0 {
                self.restart(now);
            }
            return Flow::Flowing;
        };
        let blind = now.since(window.looked) >= BLIND;
        window.looked = now;
        window.bytes = window.bytes.saturating_add(bytes);
        if blind || window.bytes >= demanded(self.floor, self.window) {
            self.restart(now);
            return Flow::Flowing;
        }
        if now.since(window.since) < self.window { Flow::Flowing } else { Flow::Stalled }
    }

    /// The driver did not read on purpose (a rate limit, a slow disk): measuring begins anew.
    pub fn excuse(&mut self, now: Mono) {
        if self.state.is_some() {
            self.restart(now);
        }
    }

    fn restart(&mut self, now: Mono) {
        self.state = Some(Window { since: now, bytes: 0, looked: now });
    }
}

/// What a body must bring: what the stall rule says, and where others could be asked instead, so much at its beginning within
/// a quarter of the rule's window.
#[derive(Clone, Debug)]
pub struct BodyMeter {
    rule: StallMeter,
    beginning: Option<StallMeter>,
    /// What is still missing of the beginning.
    missing: u64,
}

/// A rate that was not reached, for so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSlow {
    /// In bytes per second.
    pub floor: u64,
    /// For how long.
    pub window: Delay,
}

impl BodyMeter {
    /// By the stall rule; `beginning` is what must come within a quarter of its window, where anything must.
    pub fn new(floor: u64, window: Delay, beginning: Option<Length>) -> Self {
        let quarter = Delay::from_micros(window.as_micros() / 4);
        let least = beginning.filter(|_| quarter > Delay::ZERO).map(|length| {
            let a_second = u128::from(length.0) * 1_000_000 / u128::from(quarter.as_micros());
            StallMeter::new(u64::try_from(a_second).unwrap_or(u64::MAX), quarter)
        });
        Self { rule: StallMeter::new(floor, window), beginning: least, missing: beginning.unwrap_or_default().0 }
    }

    /// So many bytes came, now; zero where it is only time to look. What was not reached, where it is too slow.
    pub fn feed(&mut self, now: Mono, bytes: u64) -> Option<TooSlow> {
        self.missing = self.missing.saturating_sub(bytes);
        if self.missing == 0 {
            self.beginning = None;
        }
        let meters = self.beginning.iter_mut().chain([&mut self.rule]);
        let slow = |meter: &mut StallMeter| {
            let told = TooSlow { floor: meter.floor, window: meter.window };
            (meter.feed(now, bytes) == Flow::Stalled).then_some(told)
        };
        // Each is fed, whatever the other says.
        meters.filter_map(slow).reduce(|first, _| first)
    }

    /// As [`StallMeter::excuse`].
    pub fn excuse(&mut self, now: Mono) {
        self.beginning.iter_mut().chain([&mut self.rule]).for_each(|meter| meter.excuse(now));
    }
}

/// The bytes that a whole window must bring, at least one where the rule is on.
fn demanded(floor: u64, window: Delay) -> u64 {
    let bytes = u128::from(floor) * u128::from(window.as_micros());
    u64::try_from(bytes.div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
