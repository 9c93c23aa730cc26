//! The network mode: while it is `never`, no session begins, those that run end with what they hold, and no transfer's time
//! counts.

use crate::core::netmode::{NetworkMode, NetworkSwitch};
use crate::core::pers_xfer::Event;
use crate::core::pers_xfer::record::XferId;
use crate::core::time::{Delay, Mono, Now};
use crate::core::units::human_delay;
use crate::engine::Notice;
use crate::engine::supervisor::Supervisor;

/// What was said of the network, and what holds because of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Network {
    pub(super) switch: NetworkSwitch,
    gate: Gate,
}

/// May sessions begin?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Gate {
    #[default]
    Open,
    Shut,
}

impl Network {
    /// Nothing may be transferred.
    pub(super) fn is_shut(&self) -> bool {
        self.gate == Gate::Shut
    }
}

impl Supervisor<'_> {
    /// When the mode changes by itself.
    pub(super) fn network_due(&self) -> Option<Mono> {
        self.network.switch.until(self.clock.now().mono)
    }

    /// A person sets the mode: for so long, or for good, where that is zero.
    pub(super) fn set_network_mode(&mut self, mode: NetworkMode, duration: Delay, now: Now) {
        self.network.switch.set(mode, duration, now.mono);
        let how_long = if duration == Delay::ZERO { String::new() } else { format!(" for {}", human_delay(duration)) };
        self.say_of_network(&format!("the network mode is {}{how_long}", mode.word()));
        self.follow_network(now);
    }

    /// A person ends a mode that was to hold for a while.
    pub(super) fn restore_network_mode(&mut self, now: Now) {
        self.network.switch.restore();
        self.say_of_network(&format!("the network mode is {} again", self.network.switch.permanent().word()));
        self.follow_network(now);
    }

    /// What runs, and what may begin, follows the mode.
    pub(super) fn follow_network(&mut self, now: Now) {
        let gate = if self.network.switch.mode(now.mono) == NetworkMode::Never { Gate::Shut } else { Gate::Open };
        if std::mem::replace(&mut self.network.gate, gate) == gate {
            return;
        }
        let ids: Vec<XferId> = self.transfers.keys().copied().collect();
        for id in ids {
            match gate {
                Gate::Shut => self.pause(id, now),
                Gate::Open => self.handle(id, Event::Unpaused, now),
            }
        }
    }

    /// Its session ends with what it holds, and no other one begins; nothing counts against it.
    pub(super) fn pause(&mut self, id: XferId, now: Now) {
        if let Some(running) = self.transfers.get(&id).and_then(|t| t.running.as_ref()) {
            running.stop.cancel();
        }
        self.handle(id, Event::Paused, now);
    }

    fn say_of_network(&mut self, text: &str) {
        (self.notices)(Notice::Remark { id: None, text: text.to_owned() });
    }
}
