//! Mail: what reaches the loop from sessions.

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::core::pers_xfer::record::XferId;
use crate::io::driver::report::NotTaken;
use crate::io::driver::{Closed, Tell, upload};

/// What reaches the loop from a session.
#[derive(Debug)]
pub(super) enum Mail {
    Tell(Tell),
    Closed(Box<Closed>),
    Upload(upload::Tell),
    UploadClosed(Box<upload::Closed>),
    Cleaned(upload::Cleaned),
    Reported(Result<(), NotTaken>),
    Panicked(String),
}

/// The two ends of the inbox.
pub(super) struct Mailbox {
    pub(super) outbox: UnboundedSender<(XferId, Mail)>,
    inbox: UnboundedReceiver<(XferId, Mail)>,
}

impl Mailbox {
    pub(super) fn new() -> Self {
        let (outbox, inbox) = unbounded_channel();
        Self { outbox, inbox }
    }

    pub(super) async fn recv(&mut self) -> Option<(XferId, Mail)> {
        self.inbox.recv().await
    }

    /// What has come already.
    pub(super) fn try_recv(&mut self) -> Option<(XferId, Mail)> {
        self.inbox.try_recv().ok()
    }
}
