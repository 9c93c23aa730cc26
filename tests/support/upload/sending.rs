//! The built program as one who sends a file: how a test asks for an upload, and how it looks at what came of it.

use std::fs;

use super::door::Exchange;
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
    let line = |e: &Exchange| format!("{} {} {} {:?}\n", e.method, e.target, e.received, e.answer);
    log.iter().map(line).collect()
}
