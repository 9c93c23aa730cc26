//! The built program as one who sends a file: how a test asks for an upload, and how it looks at what came of it.

use std::fs;

use super::door::Exchange;
use super::proxy::Proxy;
use super::tus::{Tus, TusNode};
use crate::support::{Px, Ran, World};

/// The file that is sent.
pub(crate) const FILE: &str = "f.bin";

/// A world with this to send.
pub(crate) fn with_file(data: &[u8]) -> World {
    let w = World::new();
    fs::write(w.path(FILE), data).expect("a file can be written");
    w
}

/// `persxfer upload` with these options to these servers, with delays in milliseconds and a give-up window of 30 s.
pub(crate) fn sends<'w>(w: &'w World, words: &[&str], servers: &[&str]) -> Px<'w> {
    let px = w.px(["upload"]).args(words).delays("50ms", "200ms").give_up("30s").url(FILE);
    servers.iter().fold(px, |px, server| px.url(server))
}

impl Ran {
    /// It tells that the file was uploaded, on this evidence.
    #[track_caller]
    pub(crate) fn uploaded(&self, evidence: &str) -> &Self {
        self.exits(0);
        let all = format!("{}{}", self.stdout, self.stderr);
        assert!(all.contains(&format!("evidence: {evidence}")), "no evidence {evidence} in\n{self}");
        self
    }
}

/// Method, target, bytes received and answer of each, in one line each: for messages.
pub(crate) fn story(log: &[Exchange]) -> String {
    let line = |e: &Exchange| {
        let at = e.answer_header("upload-offset").map(|at| format!(" at {at}")).unwrap_or_default();
        format!("{} {} {} {:?}{at}\n", e.method, e.target, e.received, e.answer)
    };
    log.iter().map(line).collect()
}

/// A file on its way through a proxy to a tus server.
pub(crate) struct TusLine {
    pub(crate) w: World,
    pub(crate) server: Tus,
    pub(crate) proxy: Proxy,
    pub(crate) url: String,
}

impl TusLine {
    /// This file to this server.
    pub(crate) fn new(server: Tus, data: &[u8]) -> Self {
        let proxy = Proxy::before(server.daemon.port());
        let url = format!("tus+{}", proxy.url(&server.url()));
        Self { w: with_file(data), server, proxy, url }
    }

    /// To @tus/server as it comes.
    pub(crate) fn node(data: &[u8]) -> Self {
        Self::new(TusNode::default().start(), data)
    }

    /// The upload, with these options.
    pub(crate) fn sends(&self, words: &[&str]) -> Px<'_> {
        sends(&self.w, words, &[&self.url])
    }

    /// So many bytes have come by.
    pub(crate) fn has_passed(&self, bytes: u64) -> bool {
        self.proxy.door.received() >= bytes
    }

    /// How many requests by this method came by.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.proxy.door.by(method).len()
    }

    /// It ended well, and the server holds exactly one upload, which is the file.
    #[track_caller]
    pub(crate) fn ends_right(&self, data: &[u8], ran: &Ran) {
        assert!(ran.succeeded(), "{ran}\n{}", self.story());
        // What a server counted is no evidence after a body that broke off, where it lets nobody look.
        let hides = self.proxy.door.by("GET").last().is_some_and(|e| e.answer == Some(405));
        ran.uploaded(if hides { "none" } else { "length" });
        self.holds(data, ran);
    }

    /// The server holds exactly one upload, which is the file.
    #[track_caller]
    pub(crate) fn holds(&self, data: &[u8], ran: &Ran) {
        let stored = self.server.stored();
        let sizes: Vec<_> = stored.iter().map(Vec::len).collect();
        assert!(stored == [data], "{sizes:?} of {}\n{ran}\n{}", data.len(), self.story());
    }

    pub(crate) fn story(&self) -> String {
        story(&self.proxy.door.log())
    }
}
