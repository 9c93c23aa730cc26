//! Servers that take uploads: real ones that are installed, and doubles that misbehave in the ways that were seen.
//!
//! A test that wants them names this module by its path and has `mod support` beside it. Every server has a folder and a
//! port of its own, and dies with its value. One whose program is missing is a failed test that says what to install.
#![allow(dead_code, reason = "each test binary uses its own part of it")]
#![allow(unused_imports, reason = "each test binary uses its own part of it")]

pub(crate) mod boinc;
pub(crate) mod daemon;
pub(crate) mod dav;
pub(crate) mod door;
pub(crate) mod faults;
pub(crate) mod ietf;
pub(crate) mod proxy;
pub(crate) mod raw;
pub(crate) mod s3;
pub(crate) mod sender;
pub(crate) mod sending;
pub(crate) mod tools;
pub(crate) mod tus;
pub(crate) mod visit;

pub(crate) use boinc::{Boinc, BoincFault, FrontEnd, Signatures};
pub(crate) use daemon::Daemon;
pub(crate) use dav::{Dav, DavServer};
pub(crate) use door::{Door, Exchange, Way};
pub(crate) use faults::Faults;
pub(crate) use ietf::{Ietf, IetfFault, Interim, Limits, Manners};
pub(crate) use proxy::{Mischief, Proxy};
pub(crate) use raw::{Answer, Heard, Raw};
pub(crate) use s3::{Moto, S3Fs};
pub(crate) use sender::{NAME, Sender};
pub(crate) use sending::{FILE, TusLine, sends, story, with_file};
pub(crate) use tus::{Tus, TusNode, nginx_before, nginx_hiding};
