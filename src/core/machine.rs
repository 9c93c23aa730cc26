//! What every machine of this floor looks like from outside.
//!
//! A machine takes one event at a time together with a context, changes its state, and leaves actions: wishes that
//! somebody else carries out and answers with further events. It reads no clock, draws no randomness of its own,
//! opens no socket and touches no file, so weeks of its life run in a test within a millisecond.

use crate::core::time::{Mono, Now};

/// What a machine may see of the world during one turn, and where it leaves its wishes.
pub struct Cx<'a, A> {
    /// The time of this turn, read once by whoever drives the machine.
    pub now: Now,
    /// Randomness from the driver. What is drawn is stored, so that a restart does not draw again.
    pub rng: &'a mut dyn rand::Rng,
    /// The actions wished for, in order.
    pub out: &'a mut Vec<A>,
}

impl<A: std::fmt::Debug> std::fmt::Debug for Cx<'_, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cx").field("now", &self.now).field("out", &self.out).finish_non_exhaustive()
    }
}

/// A decision maker without effects.
///
/// `handle` never fails and never waits: an event that makes no sense in the present state is ignored on purpose, or
/// becomes an action that says so.
pub trait Machine {
    /// What can happen to it.
    type Event;
    /// What it can wish for.
    type Action;
    /// Takes one event.
    fn handle(&mut self, event: Self::Event, cx: &mut Cx<'_, Self::Action>);
    /// The next moment at which it wants to be driven although nothing happened; `None` for never.
    fn wake_at(&self) -> Option<Mono>;
}
