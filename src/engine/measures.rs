//! What the metrics tell (`docs/gui-rpc.md`): how the loop stands, and what was counted since the process began.

use std::collections::BTreeMap;

use crate::core::metrics::{Family, text};
use crate::core::pers_xfer::View;
use crate::core::pers_xfer::record::Direction;
use crate::core::prefs::Mode;
use crate::core::time::Now;
use crate::engine::supervisor::Supervisor;
use crate::engine::tally::Tally;

impl Supervisor<'_> {
    /// Everything, as text.
    pub(super) fn measures(&mut self, now: Now) -> String {
        let hosts = self.hosts_backing_off(now);
        let mut families = vec![self.transfers_by_state(), hosts, self.next_wakeup(now), self.network_modes(now)];
        families.extend(counted(&self.desk.tally.borrow()));
        text(&families)
    }

    fn transfers_by_state(&self) -> Family {
        let mut states: BTreeMap<&'static str, usize> = STATES.iter().map(|state| (*state, 0)).collect();
        for transfer in self.transfers.values() {
            *states.entry(state_of(&transfer.machine.view())).or_default() += 1;
        }
        *states.entry("queued").or_default() += self.fresh.len() + self.watch.waiting();
        states.insert("elsewhere", self.watch.elsewhere());
        let name = "persxfer_transfers";
        let family = Family::gauge(name, "Transfers of the state file that are not over, by what they do or wait for.");
        states.into_iter().fold(family, |family, (state, count)| family.with([("state", state)], count as f64))
    }

    fn hosts_backing_off(&mut self, now: Now) -> Family {
        let mut closed: BTreeMap<Direction, u32> = [(Direction::Download, 0), (Direction::Upload, 0)].into();
        for host in self.hosts.snapshot(now) {
            let until = host.closed_until.max(host.not_before);
            *closed.entry(host.key.direction).or_default() += u32::from(until.is_some_and(|until| until > now.wall));
        }
        let family = Family::gauge(
            "persxfer_hosts_backing_off",
            "Hosts that are left alone for now, by the direction of transfers.",
        );
        closed.into_iter().fold(family, |family, (way, n)| family.with([("direction", word(way))], n.into()))
    }

    /// Of a transfer: the loop itself looks at the state file twice a second.
    fn next_wakeup(&self, now: Now) -> Family {
        let help = "Until the time of the next transfer that waits comes; not there while none waits.";
        let family = Family::gauge("persxfer_next_wakeup_seconds", help);
        match self.next_timer() {
            Some(at) => family.of(at.since(now.mono).as_secs_f64()),
            None => family,
        }
    }

    fn network_modes(&self, now: Now) -> Family {
        let holds = self.network_mode().current(now.mono);
        let family = Family::gauge("persxfer_network_mode", "1 for the network mode that holds.");
        let modes = [Mode::Always, Mode::Auto, Mode::Never];
        modes.into_iter().fold(family, |f, mode| f.with([("mode", mode.word())], f64::from(u8::from(mode == holds))))
    }
}

/// The states that are told of, also while nothing is in them.
const STATES: [&str; 9] =
    ["running", "queued", "backoff", "host_backoff", "retry_after", "resuming", "local", "paused", "elsewhere"];

const fn state_of(view: &View) -> &'static str {
    match view {
        View::Running { .. } => "running",
        View::Ready | View::Slot { .. } => "queued",
        View::Backoff { .. } => "backoff",
        View::Host { .. } => "host_backoff",
        View::RetryAfter { .. } => "retry_after",
        View::Resuming { .. } => "resuming",
        View::Local { .. } => "local",
        View::Suspended | View::Paused => "paused",
        // It is about to be taken out.
        View::Over => "resuming",
    }
}

const fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Download => "download",
        Direction::Upload => "upload",
    }
}

fn counted(tally: &Tally) -> Vec<Family> {
    let sessions = Family::counter("persxfer_sessions_total", "Sessions that began.");
    let sessions = tally.sessions.iter().fold(sessions, |f, (way, n)| f.with([("direction", word(*way))], *n as f64));
    let failures = Family::counter("persxfer_failures_total", "Sessions that failed, by the class of the failure.");
    let failures = tally.failures.iter().fold(failures, |f, (class, n)| f.with([("class", *class)], *n as f64));
    let ended = Family::counter("persxfer_transfers_ended_total", "Transfers that ended in this run, by how.");
    let ended = tally.ended.iter().fold(ended, |f, (result, n)| f.with([("result", *result)], *n as f64));
    let retries = Family::counter("persxfer_retries_total", "Passes over all mirrors of a transfer that failed.");
    let received = "Bytes of downloads that were written, by the host of the session.";
    let sent = "Bytes of uploads that servers confirmed, by the host of the session.";
    vec![
        sessions,
        failures,
        retries.of(tally.retries as f64),
        ended,
        bytes(tally, Direction::Download, Family::counter("persxfer_received_bytes_total", received)),
        bytes(tally, Direction::Upload, Family::counter("persxfer_sent_bytes_total", sent)),
    ]
}

fn bytes(tally: &Tally, way: Direction, family: Family) -> Family {
    let all = tally.bytes.iter().filter(|((direction, _), _)| *direction == way);
    all.fold(family, |family, ((_, host), n)| family.with([("host", host.as_str())], *n as f64))
}
