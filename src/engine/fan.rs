//! Over how many connections a file may come, and from which mirrors at once.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::core::mirrors::{Known, rank};
use crate::core::pers_xfer::options::Options;
use crate::core::pers_xfer::record::{Direction, Evidence, MirrorRecord, Record, XferId};
use crate::core::range::Length;
use crate::core::segments::Cuts;
use crate::core::time::{Mono, Now};
use crate::core::url::Origin;
use crate::engine::Rounds;
use crate::engine::hosts::key_of;
use crate::engine::supervisor::Supervisor;
use crate::engine::transfer::Transfer;
use crate::io::driver::{FanPlan, FanSeat};
use crate::io::limits;

/// Connections to one host for one file, at most (design section 6).
const MOST_A_HOST: usize = 16;
/// Without `--connections`: one to each host, over at most so many mirrors.
const MIRRORS_AT_ONCE: usize = 4;
/// So many other hosts are asked beside the session's own, at most; who fails makes room for the next.
const MOST_GUESTS: usize = 15;
/// Nothing is split into parts smaller than this where the user wants several connections...
const LEAST_PART: Length = Length(256 << 10);
/// ...and where we do so by ourselves.
const LEAST_PART_UNASKED: Length = Length(1 << 20);

impl Supervisor<'_> {
    /// The plan for a session with this mirror: all that may be asked beside it, with what is known of their hosts.
    ///
    /// Other hosts are asked as far as they have room for one more transfer; those that are stand in the second part, and
    /// are to be left when the session ends.
    pub(super) fn fan_plan(&mut self, id: XferId, mirror: usize, now: Now) -> Option<(FanPlan, Vec<Origin>)> {
        let transfer = self.transfers.get(&id)?;
        let record = transfer.record();
        let askable = transfer.machine.askable(now);
        // A validator speaks for the bytes of one origin: where that much is demanded, nothing is mixed.
        let demanding = record.options.require >= Evidence::Validator && record.digests.is_empty();
        let alone = self.settings.rounds == Rounds::Once || record.apart || demanding && record.pieces.is_none();
        let wanted = askable.into_iter().filter(|(i, _)| *i == mirror || !alone);
        let seats: Vec<(usize, FanSeat)> = wanted
            .filter_map(|(i, held)| Some((i, self.seat(record, i, if i == mirror { None } else { held }, now)?)))
            .collect();
        let least = if record.options.connections.is_some() { LEAST_PART } else { LEAST_PART_UNASKED };
        let options = Arc::clone(&record.options);
        let (seats, guests) = self.with_room(seats, mirror);
        let own = seats.iter().position(|(i, _)| *i == mirror)?;
        let seats: Vec<FanSeat> = seats.into_iter().map(|(_, seat)| seat).collect();
        let preferred = self.keeper.connections_of(&seats.get(own)?.url.origin());
        let (connections, per_origin) = how_many(&options, preferred, &seats);
        let connections = connections.min(limits::connections(limits::descriptors()));
        let cuts = if self.settings.rounds == Rounds::Once { Cuts::Final } else { Cuts::Mended };
        Some((FanPlan { connections, per_origin, least, cuts, seats, own }, guests))
    }

    /// The seats at hosts that have room, and which other hosts these are.
    fn with_room(&mut self, seats: Vec<(usize, FanSeat)>, own: usize) -> (Vec<(usize, FanSeat)>, Vec<Origin>) {
        let home = seats.iter().find(|(i, _)| *i == own).map(|(_, seat)| seat.url.origin());
        // One way leads to all of them, so whoever is judged by certificates of its own stays alone.
        let apart = |origin: &Origin| self.ways.own_roots(origin).is_some();
        let home_apart = home.as_ref().is_some_and(apart);
        let seats: Vec<_> = seats
            .into_iter()
            .filter(|(i, seat)| {
                *i == own || home == Some(seat.url.origin()) || !home_apart && !apart(&seat.url.origin())
            })
            .collect();
        let mut guests: Vec<Origin> = Vec::new();
        let mut full: Vec<Origin> = Vec::new();
        let mut kept = Vec::new();
        for (i, seat) in seats {
            let origin = seat.url.origin();
            if home.as_ref() != Some(&origin) && !guests.contains(&origin) && !full.contains(&origin) {
                let room = guests.len() < MOST_GUESTS && self.join_host(&origin);
                let list = if room { &mut guests } else { &mut full };
                list.push(origin.clone());
            }
            if !full.contains(&origin) {
                kept.push((i, seat));
            }
        }
        (kept, guests)
    }

    /// A place at a host that is asked beside the session's own.
    fn join_host(&mut self, origin: &Origin) -> bool {
        self.slots.set_host_limit(origin, self.keeper.sessions_of(origin));
        self.slots.join(origin)
    }

    /// Tells a transfer which of its mirrors is best now, where it has several.
    pub(super) fn rank_mirrors(&mut self, id: XferId) {
        let several = |t: &&mut Transfer| t.record().mirrors.len() > 1;
        let Some(transfer) = self.transfers.get_mut(&id).filter(several) else { return };
        if transfer.record().direction == Direction::Upload {
            // Its servers are asked as they were given.
            return;
        }
        let known = |mirror: &MirrorRecord| {
            let key = key_of(&mirror.url.origin(), Direction::Download);
            Known { rate: self.hosts.rate(&key), failures: self.hosts.failures(&key) }
        };
        let known: Vec<Known> = transfer.record().mirrors.iter().map(known).collect();
        let order = rank(&known, &mut *self.rng);
        transfer.machine.rank(order);
    }

    fn seat(&self, record: &Record, mirror: usize, held: Option<Mono>, now: Now) -> Option<FanSeat> {
        let MirrorRecord { url, named_with, corrupt_fetches: wrong, .. } = record.mirrors.get(mirror)?.clone();
        let key = key_of(&url.origin(), Direction::Download);
        let closed = self.hosts.closed(&key, now).map(|(until, _)| until);
        Some(FanSeat { rate: self.hosts.rate(&key), not_before: held.max(closed), url, named_with, wrong })
    }
}

/// Connections in all, and to one origin.
fn how_many(options: &Options, preferred: Option<u16>, seats: &[FanSeat]) -> (usize, usize) {
    let hosts: BTreeSet<_> = seats.iter().map(|seat| seat.url.origin()).collect();
    match (options.connections, preferred) {
        (Some(n), _) => (usize::from(n), MOST_A_HOST),
        (None, Some(n)) if hosts.len() == 1 => (usize::from(n), MOST_A_HOST),
        (None, _) => (hosts.len().clamp(1, MIRRORS_AT_ONCE), 1),
    }
}
