//! How things stand for whoever asks without a run: what preferences and the state file say of the network and of hosts.

use std::path::Path;

use crate::core::civil::Zone;
use crate::core::hosts::HostRecord;
use crate::core::prefs::{Left, PerDirection, Preferences};
use crate::core::schedule::{NetworkMode, Outside, Reason, SaidMode, Way, outlook};
use crate::core::time::{Epoch, Now};
use crate::io::clock::{self, Clock};
use crate::io::state_file::StateFile;

/// How things stand. By default nothing keeps anybody waiting.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Of each direction.
    pub ways: PerDirection<Passage>,
    /// Hosts that back off, or have asked to wait.
    pub hosts: Vec<HostRecord>,
    /// How local clocks stand.
    pub zone: Zone,
}

/// May bytes pass one way?
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// Why not, where they may not.
    pub shut: Option<Closed>,
    /// What a quota leaves, where there is one.
    pub left: Option<QuotaLeft>,
}

/// Why nothing may pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// In a word: `suspended`, `hours` or `quota`.
    pub reason: &'static str,
    /// One line for people.
    pub text: String,
    /// Until when, as far as it is known.
    pub until: Option<Epoch>,
}

/// What a quota leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaLeft {
    /// Bytes that may pass.
    pub bytes: u64,
    /// Bytes that may pass in a whole period.
    pub of: u64,
    /// From when on there are more.
    pub more: Option<Epoch>,
    /// One line for people.
    pub text: String,
}

/// How things stand by these preferences and by what the state file says. Whether there is a network, and what people said to a
/// run for a while only, that run alone knows.
pub fn standing(state_file: &Path, prefs: &Preferences) -> Standing {
    let now = Clock::system().now();
    let zone = clock::zone(now.wall);
    let Ok(loaded) = StateFile::at(state_file).load() else {
        return Standing { zone, ..Standing::default() };
    };
    let document = loaded.document;
    let mode = NetworkMode::lasting(SaidMode::holding(document.network_mode(), prefs.mode));
    let outlook = outlook(prefs, &Outside { history: document.history(), mode, offline: None, zone }, now);
    let PerDirection { up, down } = &outlook.ways;
    let ways = PerDirection { up: passage(up, &zone, now), down: passage(down, &zone, now) };
    Standing { ways, hosts: document.hosts().to_vec(), zone }
}

fn passage(way: &Way, zone: &Zone, now: Now) -> Passage {
    match way {
        Way::Shut { reason, until } => {
            let (word, left) = match reason {
                Reason::Suspended { .. } => ("suspended", None),
                Reason::Hours { .. } => ("hours", None),
                Reason::Quota { of, more } => ("quota", Some(Left { bytes: Default::default(), of: *of, more: *more })),
                Reason::Offline { .. } => ("offline", None),
            };
            let until = until.map(|until| now.wall_of(until));
            let shut = Some(Closed { reason: word, text: reason.text(zone, now.wall), until });
            Passage { shut, left: left.map(|left| quota_left(left, zone, now)) }
        }
        Way::Open { left, .. } => Passage { shut: None, left: left.map(|left| quota_left(left, zone, now)) },
    }
}

fn quota_left(Left { bytes, of, more }: Left, zone: &Zone, now: Now) -> QuotaLeft {
    let text = Reason::quota_left(bytes, more, zone, now.wall);
    QuotaLeft { bytes: bytes.0, of: of.0, more: more.map(|day| zone.first(day.start())), text }
}
