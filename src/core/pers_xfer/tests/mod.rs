//! The rules of a transfer's life, one test each, on a bench with clocks of its own.

mod bench;
mod clocks;
mod digests;
mod named;
mod passes;
mod people;
mod sessions;
mod uploads;
mod window;
mod wishes;
