//! Sync's hands: indexes unpacked, files looked at, manifests on disk, trees in which nothing half is ever seen.
//!
//! What is read goes through the machines of [`crate::core::sync`], which decide; nothing is decided here. Whatever this
//! program keeps for itself in a tree stands in one folder at its root, [`OWN`], whose name no index can have.

mod batch;
mod book;
mod command;
mod index_file;
mod look;
mod own_index;
#[cfg(test)]
mod tests;
mod unpack;

pub use batch::{Batch, Piece, Placed, Staged, set_time};
pub use book::Book;
pub use command::{CommandKeep, CommandReplace, run_hook};
pub use index_file::{ReadFault, read_index, read_small};
pub use look::{Looked, is_free, look, standing};
pub use own_index::{OwnIndex, files_below, write_own_index};
pub use unpack::unpacked;

/// The folder at the root of a tree that is ours alone.
pub const OWN: &str = ".persxfer-sync";
