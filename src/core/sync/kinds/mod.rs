//! Kinds of descriptors (B5 of the facts): what a file in a folder should be, and a reader that says so in one pass.
//!
//! A validator for an archive is structural: annotation, first line, last line, digests that names and lines tell. It does
//! not judge what a client of the network would (signatures, proposals of a certain year), because what was once good
//! stays worth keeping. In memory there is one line, and of kinds that split one descriptor.

mod draft;
mod fault;
mod reader;
mod segment;
mod table;
#[cfg(test)]
mod tests;

pub use fault::Fault;
pub use reader::Reader;
pub use segment::{Facts, Segment};
pub use table::{ANY, Kind, Shape, for_folder, named, names};
