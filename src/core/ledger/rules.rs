//! All rules of a ledger in one place: what its store and its workers are given.

use crate::core::ledger::host::Courtesy;
use crate::core::ledger::lease::Terms;
use crate::core::ledger::pace::Bucket;
use crate::core::ledger::table::Table;
use crate::core::ledger::wake::Manners;

/// The rules of a ledger.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// What the classes of failures mean.
    pub table: Table,
    /// How wakes are taken.
    pub manners: Manners,
    /// How many wakes have an effect at once.
    pub wakes: Bucket,
    /// How long leases last.
    pub terms: Terms,
    /// How hosts are treated.
    pub courtesy: Courtesy,
    /// How many records are handed out.
    pub dispatch: Bucket,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            table: Table::default(),
            manners: Manners::default(),
            wakes: Bucket::new(100.0, 1_000),
            terms: Terms::default(),
            courtesy: Courtesy::default(),
            dispatch: Bucket::new(50.0, 200),
        }
    }
}
