//! Answers over GUI RPC (boinc.md 4.3): the transfers as the loop sees them, and what people want of them and of the network.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::core::pers_xfer::record::{Record, XferId};
use crate::core::pers_xfer::sharing::Wanted;
use crate::core::pers_xfer::{Event, Urgency};
use crate::core::rpc::{
    CcStatus, FileTransfer, ModeWord, Reply, Request, Session, Suspension, Which, file_transfers, is_our_project,
};
use crate::core::schedule::Reason;
use crate::core::state::Found;
use crate::core::time::{Delay, Mono, Now};
use crate::core::units::human_delay;
use crate::engine::control::{Told, control};
use crate::engine::desk::Quit;
use crate::engine::ended::held_of;
use crate::engine::hosts::key_of;
use crate::engine::supervisor::Supervisor;
use crate::engine::{EngineError, Notice};

/// So many transfers are listed, those that run first: BOINC's tools read the whole list, again and again.
const MOST_LISTED: usize = 2_000;

impl Supervisor<'_> {
    /// Answers a request that was admitted.
    pub(super) fn answer_rpc(&mut self, request: Request, now: Now) -> Reply {
        match request {
            Request::ExchangeVersions => Reply::versions(),
            Request::GetCcStatus => Reply::cc_status(&self.cc_status(now)),
            Request::GetFileTransfers => self.list_transfers(now),
            Request::GetState => Reply::state(),
            Request::GetHostInfo => Reply::host_info(),
            Request::GetProjectStatus => Reply::projects(),
            Request::GetMessageCount => Reply::message_count(),
            Request::GetNothing { list } => Reply::empty(list),
            Request::RetryFileTransfer(which) => self.say_to(&which, &Wanted::Retry),
            Request::AbortFileTransfer(which) => self.say_to(&which, &Wanted::Abort),
            Request::SetNetworkMode { mode, duration } => self.switch_network(mode, duration, now),
            Request::NetworkAvailable => self.try_everything(now),
            Request::Quit => {
                self.desk.quit = Quit::Asked;
                self.desk.stop.request();
                Reply::success()
            }
            Request::Unknown(name) => Reply::unrecognized(&name),
            // The guard of the connection answers these.
            Request::Auth1 | Request::Auth2 { .. } => Reply::error("not here"),
        }
    }

    fn cc_status(&self, now: Now) -> CcStatus {
        let mode = self.network_mode();
        CcStatus {
            mode: mode.current(now.mono),
            permanent: mode.permanent(),
            left: mode.until(now.mono).map_or(Delay::ZERO, |(_, until)| until.since(now.mono)),
            suspended: self.keeper.reason().and_then(|reason| match reason {
                Reason::Suspended { .. } => Some(Suspension::UserRequest),
                Reason::Hours { .. } => Some(Suspension::TimeOfDay),
                Reason::Quota { .. } => Some(Suspension::Quota),
                Reason::Offline { .. } => None,
            }),
        }
    }

    fn switch_network(&mut self, mode: Option<ModeWord>, duration: Delay, now: Now) -> Reply {
        match mode {
            Some(ModeWord::Set(mode)) => {
                self.set_network_mode(mode, duration);
                let how_long =
                    if duration == Delay::ZERO { String::new() } else { format!(" for {}", human_delay(duration)) };
                self.say_of_network(&format!("the network mode is {}{how_long}", mode.word()));
            }
            Some(ModeWord::Restore) => {
                self.restore_network_mode();
                self.say_of_network(&format!("the network mode is {} again", self.network_mode().permanent().word()));
            }
            None => return Reply::error("Missing mode"),
        }
        // What runs follows before the answer goes out.
        self.ask_the_gate(now);
        Reply::success()
    }

    fn say_of_network(&mut self, text: &str) {
        (self.notices)(Notice::Remark { id: None, text: text.to_owned() });
    }

    fn list_transfers(&mut self, now: Now) -> Reply {
        // What we have written ourselves since is read where that is soon done; else what is not ours to run is left out.
        if self.seen.len() <= MOST_LISTED && self.persist.claims.is_older(&self.seen) {
            // Where it cannot be read, what was seen is told.
            let _ = self.read_again();
        }
        let records: Vec<Cow<'_, Record>> =
            self.listed().into_iter().filter_map(|id| self.record_of(id)).filter(|r| r.status.is_open()).collect();
        file_transfers(records.iter().map(|record| self.as_file_transfer(record, now)), now.wall)
    }

    /// Those that run, then all others that are not over, in the order of the file.
    fn listed(&self) -> Vec<XferId> {
        let running = self.transfers.iter().filter(|(_, transfer)| transfer.running.is_some()).map(|(id, _)| *id);
        let mut ids: Vec<XferId> = running.collect();
        let first: BTreeSet<XferId> = ids.iter().copied().collect();
        let stale = self.persist.claims.is_older(&self.seen);
        // These cannot be over without our knowing.
        let open: BTreeSet<XferId> = if stale { self.watch.not_ours().collect() } else { BTreeSet::new() };
        let stands =
            |id: &XferId| !stale || self.transfers.contains_key(id) || self.fresh.contains(id) || open.contains(id);
        let others = self.seen.perhaps_unfinished().filter(|id| !first.contains(id) && stands(id));
        ids.extend(others.take(MOST_LISTED));
        ids.truncate(MOST_LISTED);
        ids
    }

    fn record_of(&self, id: XferId) -> Option<Cow<'_, Record>> {
        match self.transfers.get(&id) {
            Some(transfer) => Some(Cow::Borrowed(transfer.record())),
            None => self.seen.get(id).map(Cow::Owned),
        }
    }

    fn as_file_transfer<'r>(&self, record: &'r Record, now: Now) -> FileTransfer<'r> {
        let live = self.transfers.get(&record.id);
        let tally = self.desk.tally.borrow();
        let meter = live.filter(|transfer| transfer.running.is_some()).and(tally.meter(record.id));
        let session = meter.map(|meter| Session {
            url: meter.url.clone(),
            from: meter.from,
            at: meter.at,
            lasts: now.mono.since(meter.since),
        });
        let held = live.map_or_else(|| held_of(record), |transfer| transfer.held);
        FileTransfer { record, held, session, backoff: self.closed_for(record, now) }
    }

    /// For how long no mirror of it may be asked, as far as its hosts go.
    fn closed_for(&self, record: &Record, now: Now) -> Delay {
        let closed = |origin| self.hosts.closed(&key_of(&origin, record.direction), now).map(|(until, _)| until);
        let usable = record.mirrors.iter().filter(|mirror| mirror.is_usable());
        let until = usable.map(|mirror| closed(mirror.url.origin()).unwrap_or(Mono::ZERO)).min();
        until.map_or(Delay::ZERO, |until| until.since(now.mono))
    }

    /// A word to a transfer goes the way of all such words: into the state file, for whoever runs it.
    fn say_to(&mut self, which: &Which, wanted: &Wanted) -> Reply {
        if !is_our_project(&which.project_url) {
            return Reply::error("No such project");
        }
        if which.filename.is_empty() {
            return Reply::error("Missing filename");
        }
        let id = match self.find(&which.filename) {
            Ok(Found::One(id)) => id,
            Ok(Found::None) => return Reply::error("No such file"),
            Ok(Found::Many(_)) => return Reply::error("Several files of that name"),
            Err(error) => return Reply::error(&error.to_string()),
        };
        let told = control(self.persist.path(), &[id], wanted);
        self.watch.look_now();
        match told.map(|told| told.into_iter().next()) {
            Ok(Some(Told::Done | Told::Left(_))) => Reply::success(),
            Ok(Some(Told::Nothing(_))) => Reply::error("No such transfer waiting"),
            Ok(Some(Told::Gone) | None) => Reply::error("No such file"),
            Err(error) => Reply::error(&error.to_string()),
        }
    }

    /// The transfer of that name; others may have added it a moment ago.
    fn find(&mut self, name: &str) -> Result<Found, EngineError> {
        let found = self.seen.find(name);
        if found == Found::None {
            self.read_again()?;
            return Ok(self.seen.find(name));
        }
        Ok(found)
    }

    /// The network is there: every wait that is not a server's own wish ends.
    fn try_everything(&mut self, now: Now) -> Reply {
        self.network_available();
        self.slots.tick(Mono::ZERO + Delay::MAX);
        let waiting = self.transfers.iter().filter(|(_, transfer)| transfer.running.is_none());
        let ids: Vec<XferId> = waiting.map(|(id, _)| *id).collect();
        for id in ids {
            self.ask_hosts_at_once(id);
            self.handle(id, Event::Retry, now);
            self.persist.mark(id, Urgency::Later, now.mono);
        }
        Reply::success()
    }
}
