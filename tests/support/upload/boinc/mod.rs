//! BOINC's file_upload_handler, behind one of the web servers that it was tried with, with every answer that was seen.
//!
//! Sizes above 2 GiB wrap, a shorter file leaves the old tail, a digest is never looked at: that is the handler itself.
//! What else can go wrong is a [`BoincFault`].

mod copy;
pub(crate) mod request;

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) use self::request::Seen;
use super::door::{Door, Way};
use super::faults::{Faults, lock};
use super::visit::Visit;

/// Between the client and the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrontEnd {
    /// Data goes through; of a killed connection whole blocks of 256 KiB stay. A refusal that comes before the data is
    /// lost: the connection dies without an answer.
    Apache,
    /// The body is taken first: of a killed connection nothing stays. A refusal is a reply.
    Lighttpd,
    /// As before, but a refusal before the data is a page with 502.
    NginxBuffering,
    /// Data goes through; of a killed connection every byte stays. A refusal before the data is a page with 502.
    NginxStreaming,
}

/// Does the handler look at signatures?
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Signatures {
    Ignored,
    /// This text, byte for byte between the tags, is the only good one.
    Only(String),
}

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BoincFault {
    None,
    /// The signature is taken for a bad one: a refusal before the data.
    BadSignature,
    /// Another process has the file: status 1, for an upload before the data.
    Locked,
    /// Uploads are switched off (`stop_upload`): status 1, before the data.
    Stopped,
    /// The stored file cannot be written: the data is thrown away, and the status is 0.
    ReadOnly,
    /// The disk is full after so many bytes of data: status 1, and they stay. A query says so too.
    DiskFull {
        after: u64,
    },
    /// The connection is dead after so many bytes of data; what stays is the front end's affair.
    Cut {
        after: u64,
    },
    /// Nothing is read after so many bytes of data, and nothing is said.
    Stall {
        after: u64,
    },
    /// Everything is stored, and the connection dies before the reply.
    AnswerLost,
    /// A page of the front end with this status; the handler never ran.
    Page(u16),
    /// 200 and nothing.
    EmptyReply,
    /// A page with 200, and within it a reply that all is well and so many bytes are there; nothing is stored.
    Wrapped(u64),
    /// Such a reply with this status, and no page around it.
    WithStatus(u16, u64),
    /// A query is answered with this number, as it is.
    SizeIs(i64),
}

/// A double of the upload server. It stops when this is dropped.
#[derive(Debug)]
pub(crate) struct Boinc {
    pub(crate) door: Door,
    state: Arc<State>,
}

/// What the threads share.
#[derive(Debug)]
struct State {
    front: FrontEnd,
    signatures: Signatures,
    folder: tempfile::TempDir,
    uploads: Faults<BoincFault>,
    queries: Faults<BoincFault>,
    seen: Mutex<Vec<Seen>>,
    busy: Mutex<HashSet<String>>,
    /// The size before the last upload request, for queries that lag.
    before: Mutex<HashMap<String, u64>>,
    lagging: AtomicU32,
}

impl Boinc {
    /// Starts one that ignores signatures.
    pub(crate) fn start(front: FrontEnd) -> Self {
        Self::with(front, Signatures::Ignored)
    }

    pub(crate) fn with(front: FrontEnd, signatures: Signatures) -> Self {
        let folder = tempfile::Builder::new().prefix("persxfer-boinc-").tempdir().expect("a folder can be made");
        let state = Arc::new(State {
            front,
            signatures,
            folder,
            uploads: Faults::new(BoincFault::None),
            queries: Faults::new(BoincFault::None),
            seen: Mutex::default(),
            busy: Mutex::default(),
            before: Mutex::default(),
            lagging: AtomicU32::new(0),
        });
        let theirs = Arc::clone(&state);
        Self { door: Door::open(move |visit| theirs.serve(visit)), state }
    }

    /// The URL of the handler.
    pub(crate) fn url(&self) -> String {
        self.door.url("/project_cgi/file_upload_handler")
    }

    /// What uploads meet.
    pub(crate) fn uploads(&self) -> &Faults<BoincFault> {
        &self.state.uploads
    }

    /// What size queries meet.
    pub(crate) fn queries(&self) -> &Faults<BoincFault> {
        &self.state.queries
    }

    /// The next so many size queries tell the size from before the last upload request.
    pub(crate) fn lag(&self, queries: u32) {
        self.state.lagging.store(queries, Ordering::SeqCst);
    }

    /// Every request whose head could be read, in order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        lock(&self.state.seen).clone()
    }

    /// What was wrong with the form of all requests so far.
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.seen().into_iter().flat_map(|seen| seen.complaints).collect()
    }

    /// Where a file is stored.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.state.path(name)
    }

    /// What is stored under that name.
    pub(crate) fn stored(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.path(name)).ok()
    }

    /// Puts a file of this size there that holds nothing and needs no room.
    pub(crate) fn place_hole(&self, name: &str, size: u64) {
        let file = File::create(self.path(name)).expect("the folder can be written");
        file.set_len(size).expect("a file can have holes");
    }

    /// Puts a file there.
    pub(crate) fn place(&self, name: &str, data: &[u8]) {
        fs::write(self.path(name), data).expect("the folder can be written");
    }
}

impl State {
    fn path(&self, name: &str) -> PathBuf {
        Path::new(self.folder.path()).join(name)
    }

    fn size(&self, name: &str) -> u64 {
        fs::metadata(self.path(name)).map_or(0, |m| m.len())
    }

    fn serve(&self, visit: &mut Visit) -> Way {
        if visit.method != "POST" {
            return visit.answer(405, &[], "only POST\n");
        }
        let Ok((mut seen, behind)) = Seen::read(visit) else { return Way::Close };
        let place = {
            let mut all = lock(&self.seen);
            all.push(seen.clone());
            all.len() - 1
        };
        let said = match seen.query.clone() {
            Some(name) => self.query(&name),
            None => self.upload(visit, &mut seen, behind),
        };
        // Known before the client knows it.
        seen.reply = said.status();
        lock(&self.seen)[place] = seen;
        said.say(visit)
    }

    fn query(&self, name: &str) -> Said {
        match self.queries.take() {
            BoincFault::Locked => return Said::reply(1, locked(name)),
            BoincFault::Stopped => return Said::reply(1, STOPPED),
            BoincFault::DiskFull { .. } => return Said::reply(1, "the upload disk is full"),
            BoincFault::Page(status) => return Said::Page(status),
            BoincFault::EmptyReply => return Said::Empty,
            BoincFault::Wrapped(size) => return Said::Wrapped(size),
            BoincFault::WithStatus(status, size) => return Said::WithStatus(status, size),
            BoincFault::Cut { .. } | BoincFault::AnswerLost => return Said::Nothing(Way::Close),
            BoincFault::Stall { .. } => return Said::Nothing(Way::Silence),
            BoincFault::SizeIs(size) => return Said::Size(size),
            _ => {}
        }
        if !is_good(name) {
            return Said::reply(-1, "bad file name");
        }
        if lock(&self.busy).contains(name) {
            return Said::reply(1, locked(name));
        }
        let lags = self.lagging.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
        let before = lock(&self.before).get(name).copied().filter(|_| lags);
        let size = before.unwrap_or_else(|| self.size(name));
        // Printed as a C int: of the number, the lower half counts.
        let low = u32::try_from(size & u64::from(u32::MAX)).expect("that many bits fit");
        Said::Size(i64::from(low.cast_signed()))
    }
}

/// What becomes of a request.
#[derive(Debug)]
enum Said {
    /// A reply of the protocol, which is 200 whatever it says.
    Reply(i32, String),
    /// The reply to a size query.
    Size(i64),
    /// A page by the front end itself.
    Page(u16),
    /// 200 without a body.
    Empty,
    /// A reply of success and this size, within a page.
    Wrapped(u64),
    /// The same with this status, and no page.
    WithStatus(u16, u64),
    /// No answer.
    Nothing(Way),
    /// A reply of this status that nobody hears.
    Lost(i32),
}

impl Said {
    fn reply(status: i32, message: impl Into<String>) -> Self {
        Self::Reply(status, message.into())
    }

    fn status(&self) -> Option<i32> {
        match self {
            Self::Reply(status, _) | Self::Lost(status) => Some(*status),
            Self::Size(_) => Some(0),
            Self::Page(_) | Self::Empty | Self::Wrapped(_) | Self::WithStatus(..) | Self::Nothing(_) => None,
        }
    }

    fn say(self, visit: &mut Visit) -> Way {
        let (code, text) = match self {
            Self::Reply(status, message) => (200, lines(status, "message", &message)),
            Self::Size(size) => (200, lines(0, "file_size", &size.to_string())),
            Self::Page(status) => (status, "An error occurred while reading the reply\n".to_owned()),
            Self::Empty => (200, String::new()),
            Self::Wrapped(size) => {
                (200, format!("<html><body>\n{}</body></html>\n", lines(0, "file_size", &size.to_string())))
            }
            Self::WithStatus(status, size) => (status, lines(0, "file_size", &size.to_string())),
            Self::Nothing(way) => return way,
            Self::Lost(_) => return Way::Close,
        };
        visit.answer(code, &[("Content-Type", "text/plain".to_owned())], &text)
    }
}

/// A reply with at most one more element.
fn lines(status: i32, tag: &str, value: &str) -> String {
    let more = if value.is_empty() { String::new() } else { format!("    <{tag}>{value}</{tag}>\n") };
    format!("<data_server_reply>\n    <status>{status}</status>\n{more}</data_server_reply>\n")
}

const STOPPED: &str = "file uploads are switched off for now";

fn locked(name: &str) -> String {
    format!("{name} is locked by PID 4711")
}

/// Would the handler open a file by that name?
fn is_good(name: &str) -> bool {
    !name.is_empty() && !name.contains("..") && !name.starts_with('/') && !name.chars().any(char::is_control)
}
