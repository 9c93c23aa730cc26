//! Retry policies: how long to wait after a pass over the mirrors has failed.
//!
//! One file a policy: `boinc` (BOINC's first document and, to the letter, `boinc:exact`), `boinc-7` (today's BOINC
//! client), `tor` (dir-spec 5.5), `ladder` (long-term retry), `ranged`. A [`Policy`] is what the user chose, a
//! [`Backoff`] what the record keeps of it. Each failed pass draws once; what is drawn is stored, so that a restart
//! does not draw again.
//!
//! Whatever the policy, a delay never leaves the bounds. Nor is jitter lost at them: a fleet that failed together does
//! not return together, unless the bounds leave no room, or the letter of a document wants it so (`boinc:exact`, the
//! first delay of `tor`, the cap of `tor:spec`).

pub(crate) mod draw;

mod boinc;
mod boinc7;
pub(crate) mod ladder;
mod parse;
mod ranged;
mod tor;

#[cfg(test)]
mod tests;

pub use parse::BadPolicy;

use crate::core::time::Delay;

/// The least bound that is honoured: a dead server is not asked in a busy loop, whatever `--min-delay` says.
const LEAST: Delay = Delay::from_millis(1);

/// A retry policy with its bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    kind: Kind,
    min: Option<Delay>,
    max: Option<Delay>,
}

/// The state of a retry policy, as the record keeps it: plain data. A state that was left by one policy can be
/// continued by any other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    /// Failed passes since the last progress.
    pub n: u32,
    /// The delay drawn last; zero where none was.
    pub previous: Delay,
    /// The rung reached on the ladder: `n`, unless fresh activity lowered it.
    pub position: u32,
}

/// The policies by kind.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Boinc(boinc::Form),
    Boinc7,
    Tor(tor::Tor),
    Ladder,
    Ranged,
}

/// The shortest and the longest delay, both possible; `min` is at most `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    min: Delay,
    max: Delay,
}

impl Policy {
    /// Today's BOINC client: what a whole host backs off by.
    pub(crate) const BOINC_7: Self = Self { kind: Kind::Boinc7, min: None, max: None };

    /// This policy with other bounds (`--min-delay`, `--max-delay`); `None` leaves the policy's own.
    ///
    /// A bound of the policy's own gives way to one that is given: below a longest delay shorter than the policy's
    /// shortest, the shortest is half of it, and likewise the longest is twice a shortest. A shortest delay under 1 ms
    /// counts as 1 ms.
    ///
    /// # Errors
    /// `min` above `max`, or `max` under 1 ms.
    pub fn with_bounds(self, min: Option<Delay>, max: Option<Delay>) -> Result<Self, BadPolicy> {
        if let Some(max) = max.filter(|max| *max < LEAST) {
            return Err(BadPolicy::TooShort { max });
        }
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            return Err(BadPolicy::Bounds { min, max });
        }
        Ok(Self { kind: self.kind, min: min.map(|min| min.max(LEAST)), max })
    }

    /// The shortest delay this policy can give.
    pub fn shortest(&self) -> Delay {
        self.bounds().min
    }

    /// The longest delay this policy can give: a stored time further ahead is an error of some clock, and is clamped.
    pub fn longest(&self) -> Delay {
        self.bounds().max
    }

    /// The bounds that were given by [`Policy::with_bounds`].
    pub const fn given_bounds(&self) -> (Option<Delay>, Option<Delay>) {
        (self.min, self.max)
    }

    fn bounds(&self) -> Bounds {
        let own = self.kind.own_bounds();
        match (self.min, self.max) {
            (None, None) => own,
            (Some(min), Some(max)) => Bounds { min, max },
            (Some(min), None) if min < own.max => Bounds { min, max: own.max },
            (Some(min), None) => Bounds { min, max: min.saturating_mul(2) },
            (None, Some(max)) if own.min < max => Bounds { min: own.min, max },
            (None, Some(max)) => Bounds { min: draw::half(max), max },
        }
    }

    fn draw(&self, state: &Backoff, rng: &mut dyn rand::Rng) -> Option<Delay> {
        let bounds = self.bounds();
        match &self.kind {
            Kind::Boinc(form) => Some(form.draw(state.n, bounds, rng)),
            Kind::Boinc7 => Some(boinc7::draw(state.n, bounds, rng)),
            Kind::Tor(tor) => {
                let drawn = tor.draw(state.previous, bounds, rng);
                let never = self.max.is_none() && tor.is_never(drawn);
                (!never).then_some(drawn)
            }
            Kind::Ladder => Some(ladder::draw(state.position, bounds, rng)),
            Kind::Ranged => Some(ranged::draw(state.n, bounds, rng)),
        }
    }
}

impl Backoff {
    /// One more pass failed: draws the delay before the next. `None` is never: only fresh activity, or a person, wakes
    /// the transfer (`tor:spec` alone can say so, where it reaches the infinity of dir-spec).
    pub fn fail(&mut self, policy: &Policy, rng: &mut dyn rand::Rng) -> Option<Delay> {
        self.n = self.n.saturating_add(1);
        self.position = self.position.saturating_add(1);
        let delay = policy.draw(self, rng);
        self.previous = delay.unwrap_or(policy.longest());
        delay
    }

    /// A session made progress: the exponent starts anew.
    pub fn progressed(&mut self) {
        *self = Self::default();
    }

    /// A session ended well: the next failure, if there ever is one, is a first one.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Something new is known of the file (a further mirror, a listing): what failed long ago weighs less, so a next
    /// failure is followed by the third rung of the ladder at most (recent signals outweigh old failures).
    pub fn woken(&mut self) {
        self.position = self.position.min(ladder::RUNG_WHEN_WOKEN);
    }
}

impl Kind {
    fn own_bounds(&self) -> Bounds {
        match self {
            Self::Boinc(_) => boinc::BOUNDS,
            Self::Boinc7 => boinc7::BOUNDS,
            Self::Tor(tor) => tor.own_bounds(),
            Self::Ladder => ladder::BOUNDS,
            Self::Ranged => ranged::BOUNDS,
        }
    }
}

impl Default for Kind {
    fn default() -> Self {
        Self::Boinc(boinc::Form::Spread)
    }
}

impl Bounds {
    /// A draw where the shortest delay is longer than what the policy wants: a little above the bound, up to a
    /// quarter, so that jitter survives it.
    fn spread_at_min(self, rng: &mut dyn rand::Rng) -> Delay {
        draw::between(self.min, self.min.mul_f64(1.25).min(self.max), rng)
    }

    /// The same where the longest delay is shorter: a little below the bound, down to three quarters.
    fn spread_at_max(self, rng: &mut dyn rand::Rng) -> Delay {
        draw::between(self.max.mul_f64(0.75).max(self.min), self.max, rng)
    }
}
