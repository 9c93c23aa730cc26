//! giveup

/// What the give-up window counts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GiveUpFrom {
    /// The last progress, or the first session where there was none; idle time does not count.
    #[default]
    LastProgress,
    /// The first session, wall time: BOINC's own rule.
    FirstRequest,
}
