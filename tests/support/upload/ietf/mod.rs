//! Resumable uploads of the IETF (draft-ietf-httpbis-resumable-upload-12, interop versions 6, 7, 8, and none).
//!
//! Uploads are created at any path but those below `/uploads/`, where they then live. A request without the draft's fields
//! is a plain upload, as at a server that knows nothing of them.

mod fields;
mod serve;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

pub(crate) use self::fields::Limits;
use super::door::Door;
use super::faults::{Faults, lock};

/// How the server does what the draft leaves open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manners {
    /// Which interop version it speaks: 6, 7 or 8; `None` where no field names one.
    pub(crate) interop: Option<u8>,
    pub(crate) limits: Limits,
    pub(crate) interim: Interim,
    /// Do its answers to bodies tell the offset?
    pub(crate) tells_offset: bool,
    /// Does Location hold a path only? It is a whole URL otherwise.
    pub(crate) relative_location: bool,
    /// Does it tell the SHA-256 of an upload that is complete?
    pub(crate) repr_digest: bool,
}

/// When 104 is sent while a body comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interim {
    Never,
    /// Once for an upload that is created with a body, with its Location, before 100.
    Location,
    /// So too, and then with the offset whenever so many bytes more are stored.
    Progress {
        every: u64,
    },
}

impl Default for Manners {
    /// Interop 8 without limits, 104 with Location and at every MiB, offsets told.
    fn default() -> Self {
        Self {
            interop: Some(8),
            limits: Limits::default(),
            interim: Interim::Progress { every: 1 << 20 },
            tells_offset: true,
            relative_location: false,
            repr_digest: false,
        }
    }
}

/// What goes wrong with a request that carries a body (of an upload; or an empty one that closes it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IetfFault {
    None,
    /// The connection is dead after so many bytes of the body, which stay.
    Cut {
        after: u64,
    },
    /// The connection is dead after so many bytes of the body, and none of them stays.
    Loses {
        after: u64,
    },
    /// Nothing is read after so many bytes, which stay, and nothing is said.
    Stall {
        after: u64,
    },
    /// Everything is stored, and closed where that was asked; the connection dies before the answer.
    AnswerLost,
    /// The body ends for the server after so many bytes: 204 with an offset short of what was sent.
    TakesPart {
        bytes: u64,
    },
    /// 409 with the right offset, whatever offset was named.
    Conflict,
    /// This status, after the body was read; nothing is stored.
    Answers(u16),
    /// Its 104s name this interop version.
    OtherInterop(u8),
}

/// An upload at the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upload {
    pub(crate) offset: u64,
    pub(crate) length: Option<u64>,
    pub(crate) complete: bool,
    /// The connection by which a body comes in.
    busy: Option<u64>,
}

/// A double of such a server. It stops when this is dropped.
#[derive(Debug)]
pub(crate) struct Ietf {
    pub(crate) door: Door,
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    manners: Manners,
    folder: tempfile::TempDir,
    faults: Faults<IetfFault>,
    /// By the last part of their paths, which sort as they were created.
    uploads: Mutex<BTreeMap<String, Upload>>,
    created: Mutex<u32>,
    gone: Mutex<Option<u16>>,
    application: Mutex<(u16, String)>,
    lies: Mutex<bool>,
    complaints: Mutex<Vec<String>>,
}

impl Ietf {
    pub(crate) fn start(manners: Manners) -> Self {
        let folder = tempfile::Builder::new().prefix("persxfer-ietf-").tempdir().expect("a folder can be made");
        let state = Arc::new(State {
            manners,
            folder,
            faults: Faults::new(IetfFault::None),
            uploads: Mutex::default(),
            created: Mutex::default(),
            gone: Mutex::default(),
            application: Mutex::new((200, "stored\n".to_owned())),
            lies: Mutex::default(),
            complaints: Mutex::default(),
        });
        let theirs = Arc::clone(&state);
        Self { door: Door::open(move |visit| theirs.serve(visit)), state }
    }

    /// Where uploads are created.
    pub(crate) fn url(&self) -> String {
        self.door.url("/new")
    }

    /// What bodies meet.
    pub(crate) fn faults(&self) -> &Faults<IetfFault> {
        &self.state.faults
    }

    /// What the application answers when an upload is complete; 200 at first.
    pub(crate) fn application(&self, status: u16, body: &str) {
        *lock(&self.state.application) = (status, body.to_owned());
    }

    /// Every upload loses so many bytes of its end, as if they had never been written: its offset goes back.
    pub(crate) fn set_back(&self, bytes: u64) {
        for (id, upload) in lock(&self.state.uploads).iter_mut().filter(|(_, upload)| !upload.complete) {
            upload.offset = upload.offset.saturating_sub(bytes);
            let file = fs::File::options().write(true).open(self.state.path(id)).expect("an upload has a file");
            file.set_len(upload.offset).expect("it can be cut");
        }
    }

    /// Every upload is forgotten; what is asked of it is answered with this status (404 or 410).
    pub(crate) fn forget(&self, status: u16) {
        lock(&self.state.uploads).clear();
        *lock(&self.state.gone) = Some(status);
    }

    /// From now on the digest that it tells is a wrong one.
    pub(crate) fn tells_wrong_digests(&self) {
        *lock(&self.state.lies) = true;
    }

    /// Every upload that it knows, in the order in which they were created.
    pub(crate) fn uploads(&self) -> Vec<Upload> {
        lock(&self.state.uploads).values().cloned().collect()
    }

    /// What every upload that it knows holds, in the same order.
    pub(crate) fn stored(&self) -> Vec<Vec<u8>> {
        let ids: Vec<_> = lock(&self.state.uploads).keys().cloned().collect();
        ids.iter().map(|id| fs::read(self.state.path(id)).unwrap_or_default()).collect()
    }

    /// What clients did that the draft forbids.
    pub(crate) fn complaints(&self) -> Vec<String> {
        lock(&self.state.complaints).clone()
    }
}

impl State {
    fn path(&self, id: &str) -> PathBuf {
        self.folder.path().join(id)
    }

    fn complain(&self, what: &str) {
        lock(&self.complaints).push(what.to_owned());
    }

    /// A copy of what is known of an upload.
    fn known(&self, id: &str) -> Option<Upload> {
        lock(&self.uploads).get(id).cloned()
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Upload)) {
        if let Some(upload) = lock(&self.uploads).get_mut(id) {
            change(upload);
        }
    }
}
