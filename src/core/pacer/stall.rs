//! The stall rule: a body that comes more slowly than so many bytes a second, for so long, is given up.

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

/// The bytes that a whole window must bring, at least one where the rule is on.
fn demanded(floor: u64, window: Delay) -> u64 {
    let bytes = u128::from(floor) * u128::from(window.as_micros());
    u64::try_from(bytes.div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
