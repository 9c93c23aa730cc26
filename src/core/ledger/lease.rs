//! Claims and leases: whoever claims a record works on it alone for a while, and proves with the token of the claim that
//! it still may speak for it.
//!
//! A lease bounds waiting, not correctness: a holder may sleep longer than its lease and wake late, so the store refuses
//! what comes with an old token. An expired lease is simply due again; nobody has to sweep.

use crate::core::ledger::class::Class;
use crate::core::ledger::record::{Lease, Owner, Record, Resting, State, Token};
use crate::core::ledger::table::Table;
use crate::core::time::{Delay, Epoch};

/// How long leases last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// So long a holder may work without a word.
    pub lease: Delay,
}

impl Default for Terms {
    fn default() -> Self {
        Self { lease: Delay::from_mins(10) }
    }
}

impl Terms {
    /// A lease is given to another only a little after its end, for two clocks are never alike: a twentieth later.
    pub fn until(&self, now: Epoch) -> Epoch {
        now + self.longest()
    }

    /// From a claim, or a beat, until another may claim.
    pub fn longest(&self) -> Delay {
        self.lease.saturating_add(self.lease.mul_f64(0.05))
    }

    /// How often a holder says that it lives: three times a lease.
    pub fn beat(&self) -> Delay {
        self.lease.mul_f64(1.0 / 3.0)
    }
}

/// So many holders that vanish in a row, and the record is held to be what kills them.
pub const POISON: u32 = 3;

/// What came of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// It is the claimant's.
    Yes {
        /// What it proves itself by.
        token: Token,
        /// Is it to be worked on beside others?
        company: Company,
    },
    /// Not yet, it is not due, or somebody works on it, or it is done.
    No,
    /// Too many holders vanished with it: it rests as one that crashes them.
    Rests,
}

/// Whether a record is worked on beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Company {
    /// As usual.
    Others,
    /// Alone: it may be what kills its holders.
    Alone,
}

/// The claim is not the sender's any more: what it did has no effect. No failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease of \"{key}\" (claim {}) is lost: {now}", token.0)]
pub struct LeaseLost {
    /// Of which record.
    pub key: String,
    /// With which token it was tried.
    pub token: Token,
    /// What became of the record meanwhile.
    pub now: Whose,
}

/// Whose a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Whose {
    /// It was claimed again.
    #[error("it was claimed again since")]
    Anothers,
    /// Nobody's: it waits.
    #[error("it was given back since")]
    Nobodys,
    /// It is done.
    #[error("it is done by now")]
    Done,
    /// It was forgotten.
    #[error("it was forgotten since")]
    Forgotten,
}

impl Record {
    /// Somebody wants to work on it.
    pub fn claim(&mut self, owner: Owner, terms: Terms, now: Epoch, table: &Table, rng: &mut dyn rand::Rng) -> Claimed {
        if self.due_at > now {
            return Claimed::No;
        }
        let (before, due_before) = match &self.state {
            State::Done => return Claimed::No,
            State::Waiting => (Resting::Waiting, self.due_at),
            State::Parked => (Resting::Parked, self.due_at),
            State::Leased(held) => {
                let before = (held.before, held.due_before);
                self.lost = self.lost.saturating_add(1);
                if self.lost >= POISON {
                    self.crash(now, table, rng);
                    return Claimed::Rests;
                }
                before
            }
        };
        self.lease_to(owner, terms, now, before, due_before)
    }

    /// The same, of one that is named: whether it is due or not, unless somebody works on it.
    pub fn claim_early(&mut self, owner: Owner, terms: Terms, now: Epoch) -> Claimed {
        let before = match &self.state {
            State::Done | State::Leased(_) => return Claimed::No,
            State::Waiting => Resting::Waiting,
            State::Parked => Resting::Parked,
        };
        self.lease_to(owner, terms, now, before, self.due_at)
    }

    fn lease_to(&mut self, owner: Owner, terms: Terms, now: Epoch, before: Resting, due_before: Epoch) -> Claimed {
        self.claims = Token(self.claims.0.saturating_add(1));
        self.state = State::Leased(Lease { owner, due_before, before, wake_at: None });
        self.due_at = terms.until(now);
        // One that was lost twice is given alone: if it is lost again, no other's fault has taken it along.
        let company =
            if self.class == Some(Class::Crash) || self.lost + 1 >= POISON { Company::Alone } else { Company::Others };
        Claimed::Yes { token: self.claims, company }
    }

    /// The holder says that it lives.
    ///
    /// # Errors
    /// It is not the holder any more.
    pub fn beat(&mut self, token: Token, terms: Terms, now: Epoch) -> Result<(), LeaseLost> {
        self.held_by(token)?;
        self.due_at = self.due_at.max(terms.until(now));
        Ok(())
    }

    /// The holder gives it back untried, or unfinished for a reason of its own: it costs the record nothing.
    ///
    /// # Errors
    /// It is not the holder any more.
    pub fn release(&mut self, token: Token) -> Result<(), LeaseLost> {
        let lease = self.held_by(token)?;
        self.given_back(&lease);
        Ok(())
    }

    /// Its holder is known to be dead, without having lost anything but its life: as if it had never been claimed.
    pub fn restore(&mut self, dead: Owner) -> bool {
        let Some(lease) = self.lease().filter(|lease| lease.owner == dead).cloned() else { return false };
        self.given_back(&lease);
        true
    }

    fn given_back(&mut self, lease: &Lease) {
        let due = lease.wake_at.map_or(lease.due_before, |wake| wake.min(lease.due_before));
        self.rest(lease.before, due);
    }

    /// The file is here and right.
    ///
    /// # Errors
    /// The sender is not the holder any more.
    pub fn complete(&mut self, token: Token, now: Epoch) -> Result<(), LeaseLost> {
        self.held_by(token)?;
        let key = self.key.clone();
        *self = Self {
            state: State::Done,
            due_at: now,
            last_attempt: Some(now),
            size: self.size,
            digest: self.digest.take(),
            failures: self.failures,
            claims: self.claims,
            first_seen: self.first_seen,
            mirrors: std::mem::take(&mut self.mirrors),
            ..Self::new(key, std::mem::take(&mut self.host), Vec::new(), now)
        };
        Ok(())
    }

    /// The lease that this token proves.
    pub(super) fn held_by(&self, token: Token) -> Result<Lease, LeaseLost> {
        let now = match &self.state {
            State::Leased(lease) if self.claims == token => return Ok(lease.clone()),
            State::Leased(_) => Whose::Anothers,
            State::Waiting | State::Parked => Whose::Nobodys,
            State::Done => Whose::Done,
        };
        Err(LeaseLost { key: self.key.as_str().to_owned(), token, now })
    }
}
