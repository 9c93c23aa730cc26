//! The client state file as bytes: reading it, changing single transfers in it, writing it back.
//!
//! Design section 5. The form is BOINC's `client_state.xml` (elements, order and leniencies as its client has them), with
//! what BOINC has no word for in `<persxfer>` elements. Whatever we do not know survives a rewrite where it stood, byte
//! for byte. Nothing here touches a disk: `io::state_file` does.
//!
//! [`Document`] is the whole file. It keeps every part as a slice of the bytes read, parses one record when it is asked
//! for, and writes the untouched ones by copying their slices, so that a hundred thousand transfers stay cheap.

mod backoff;
mod damage;
mod decode;
mod document;
mod dossier;
mod encode;
mod history;
mod hosts;
mod index;
mod mode;
mod node;
mod options;
mod owed;
mod read;
mod reports;
mod scalar;
mod scan;
mod shape;
mod sharing;
mod tree;
mod upload;
mod words;

#[cfg(test)]
mod tests;

pub use damage::{Damage, MAX_BYTES, MAX_DEPTH, MAX_ELEMENTS, MAX_TEXT};
pub use document::{Document, Found, Kind};

/// The version of the form that this program writes; a file of a higher one is read and never written.
pub const FORMAT: u32 = 1;

/// The address of our synthetic project.
pub const MASTER_URL: &str = "https://persxfer.invalid/";

/// The name of our elements: one at top level, one in each transfer.
const OURS: &str = "persxfer";
