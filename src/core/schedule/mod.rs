//! Schedule: whether anything may be transferred now, how fast and how much of it, who goes next, and when to look again.
//! Nothing is polled: whatever decides also says when it may decide otherwise.
//!
//! | file | decides |
//! |---|---|
//! | `gate` | may bytes pass, by the preferences, what was used, and what people and the network say |
//! | `mode` | what a person last said of the network, for good or for a while |
//! | `history` | how much passed on which day |
//! | `offline` | is the network there at all |
//! | `slots` | who may start: how many at once, whose turn it is |
//! | `reason` | why nothing passes, in a person's words |

mod gate;
mod history;
mod mode;
mod offline;
mod reason;
mod slots;
#[cfg(test)]
mod tests;

pub use gate::{Outlook, Outside, Way, outlook};
pub use history::History;
pub use mode::{NetworkMode, SaidMode};
pub use offline::{Network, Sign, Turned, sign_of};
pub use reason::Reason;
pub use slots::{Ask, Grant, Limits, Priority, Queue, Slots};
