//! Mirrors: which one is asked next, when a pass is over, and when a doubtful one is refused.
//!
//! A pass tries every usable mirror once, in the order given, one immediately after the other (boinc.md 1.7). Each mirror
//! has a standing of its own, so that one mirror's 404 says nothing of another's 503 (design section 4). A mirror that
//! must not be asked yet is passed over and holds up nothing but itself.

mod choice;
mod own;

pub use choice::{Known, rank};
pub use own::{ask_the_tellers_again, in_turn};

use crate::core::pers_xfer::record::{MirrorRecord, Standing};
use crate::core::time::Mono;
use crate::core::url::{MirrorUrl, Origin};
use crate::core::verdict::Class;

/// In so many passes in a row must a mirror fail doubtfully before it is refused.
pub const PASSES_TO_REFUSE: u32 = 3;

/// So many whole fetches with a wrong digest make a mirror corrupt: the second one went past all caches.
pub const WRONG_DIGESTS_TO_REFUSE: u32 = 2;

/// A mirror must not be asked before this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The moment.
    pub until: Mono,
    /// By whose word.
    pub by: HeldBy,
}

/// Who says that a mirror must not be asked yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// The server, by Retry-After.
    Server,
    /// The backoff of its host as a whole.
    HostBackoff,
}

/// Which mirror is asked next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This one, at once.
    Ask(usize),
    /// None may be asked yet, and none has been in this pass; this one may be the first.
    Held(usize, Hold),
    /// Every one that may be asked has been: the pass has failed.
    PassOver,
    /// Every one is refused: nothing is left to try.
    AllRefused,
}

/// The moments before which mirrors must not be asked, by position in the record's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holds(Vec<Option<Hold>>);

impl Holds {
    /// Notes that a mirror must not be asked before `hold.until`; of two such moments the later one stays.
    pub fn add(&mut self, mirror: usize, hold: Hold) {
        if self.0.len() <= mirror {
            self.0.resize(mirror + 1, None);
        }
        if self.0[mirror].is_none_or(|old| old.until < hold.until) {
            self.0[mirror] = Some(hold);
        }
    }

    /// What holds a mirror back now.
    pub fn of(&self, mirror: usize, now: Mono) -> Option<Hold> {
        self.0.get(mirror).copied().flatten().filter(|hold| hold.until > now)
    }

    /// Forgets what hosts said, not what servers said.
    pub fn clear_host_backoffs(&mut self) {
        for hold in &mut self.0 {
            hold.take_if(|h| h.by == HeldBy::HostBackoff);
        }
    }

    /// Forgets what the host of this mirror said, not what its server said.
    pub fn clear_host_backoff(&mut self, mirror: usize) {
        if let Some(hold) = self.0.get_mut(mirror) {
            hold.take_if(|h| h.by == HeldBy::HostBackoff);
        }
    }

    /// The mirror that may be asked first of those that are usable, where none may be asked now.
    pub fn first_free(&self, mirrors: &[MirrorRecord], now: Mono) -> Option<(usize, Hold)> {
        let usable = mirrors.iter().enumerate().filter(|(_, m)| m.is_usable());
        let holds: Option<Vec<_>> = usable.map(|(i, _)| self.of(i, now).map(|hold| (i, hold))).collect();
        holds?.into_iter().min_by_key(|(_, hold)| hold.until)
    }

    fn moved(&self, to: &[usize]) -> Self {
        let mut moved = Self::default();
        for (old, new) in to.iter().enumerate() {
            if let Some(hold) = self.0.get(old).copied().flatten() {
                moved.add(*new, hold);
            }
        }
        moved
    }
}

/// Chooses the next mirror of the pass that is under way: `prefer` where it has not failed in this pass, else the first of
/// `order` (see [`in_turn`]), else the first in the order given.
pub fn next(mirrors: &[MirrorRecord], holds: &Holds, prefer: Option<usize>, order: &[usize], now: Mono) -> Next {
    let may_ask = |i: &usize| mirrors.get(*i).is_some_and(|m| m.is_usable() && !m.tried && holds.of(*i, now).is_none());
    if let Some(mirror) = prefer.into_iter().chain(order.iter().copied()).chain(0..mirrors.len()).find(may_ask) {
        return Next::Ask(mirror);
    }
    if !mirrors.iter().any(MirrorRecord::is_usable) {
        return Next::AllRefused;
    }
    match holds.first_free(mirrors, now) {
        Some((mirror, hold)) if !mirrors.iter().any(|m| m.tried && m.is_usable()) => Next::Held(mirror, hold),
        _ => Next::PassOver,
    }
}

/// What a list of URLs changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Some URL was not known before.
    pub fresh: Freshly,
    /// Where each mirror that was known stands now.
    pub moved_to: Vec<usize>,
}

/// Did a list of URLs bring something new?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshly {
    /// At least one URL was not known.
    Listed,
    /// All were known.
    Nothing,
}

/// Puts `urls` first, in their order; mirrors already known keep what is known of them, and those not among `urls` stay,
/// behind.
pub fn merge(mirrors: &mut Vec<MirrorRecord>, holds: &mut Holds, urls: &[MirrorUrl]) -> Merged {
    let mut order: Vec<MirrorUrl> = Vec::new();
    for url in urls.iter().chain(mirrors.iter().map(|m| &m.url)) {
        if !order.contains(url) {
            order.push(url.clone());
        }
    }
    let unknown = urls.iter().any(|url| mirrors.iter().all(|m| m.url != *url));
    let fresh = if unknown { Freshly::Listed } else { Freshly::Nothing };
    let place = |m: &MirrorRecord| order.iter().position(|url| *url == m.url).unwrap_or_default();
    let moved_to: Vec<usize> = mirrors.iter().map(place).collect();
    let known = std::mem::take(mirrors);
    *holds = holds.moved(&moved_to);
    *mirrors = order
        .iter()
        .map(|url| known.iter().find(|m| m.url == *url).cloned().unwrap_or_else(|| MirrorRecord::new(url.clone())))
        .collect();
    // What a server named and somebody now lists is that person's.
    mirrors.iter_mut().filter(|m| urls.contains(&m.url)).for_each(|m| m.named_with = None);
    Merged { fresh, moved_to }
}

/// The positions of the mirrors that an origin's word concerns: the one that was asked, and every other of that origin.
pub fn of_origin(mirrors: &[MirrorRecord], asked: usize, origin: Option<&Origin>) -> Vec<usize> {
    let concerned = |(i, m): &(usize, &MirrorRecord)| *i == asked || origin.is_some_and(|o| m.url.origin() == *o);
    mirrors.iter().enumerate().filter(concerned).map(|(i, _)| i).collect()
}

/// What became of a mirror by a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It may be asked again.
    Kept,
    /// It is refused from now on.
    Refused,
}

impl MirrorRecord {
    /// May it be asked at all?
    pub const fn is_usable(&self) -> bool {
        matches!(self.standing, Standing::Usable)
    }

    /// It failed in a way that may pass: it is done with in this pass, and it is no longer in a row of doubtful ones.
    pub const fn failed(&mut self) -> Fate {
        self.tried = true;
        self.missing_passes = 0;
        Fate::Kept
    }

    /// It failed in a way that looks final: refused when it has done so in [`PASSES_TO_REFUSE`] passes in a row.
    pub fn doubted(&mut self, class: Class, why: &str) -> Fate {
        self.tried = true;
        self.missing_passes += 1;
        if self.missing_passes < PASSES_TO_REFUSE { Fate::Kept } else { self.refuse(class, why) }
    }

    /// It served a whole file of the wrong digest: refused the second time. It is not done with in this pass.
    pub fn served_wrong(&mut self, why: &str) -> Fate {
        self.missing_passes = 0;
        self.corrupt_fetches += 1;
        if self.corrupt_fetches < WRONG_DIGESTS_TO_REFUSE { Fate::Kept } else { self.refuse(Class::Corrupt, why) }
    }

    /// It is refused for this life.
    pub fn refuse(&mut self, class: Class, why: &str) -> Fate {
        self.standing = Standing::Refused { class, why: why.to_owned() };
        Fate::Refused
    }
}

#[cfg(test)]
mod tests;
