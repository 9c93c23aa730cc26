//! Replies: the exact bytes that BOINC's tools read (boinc.md 4.3). Each element stands on a line of its own.

use std::fmt::{Display, Write};

use crate::core::prefs::Mode;
use crate::core::rpc::SPOKEN_VERSION;
use crate::core::rpc::frame::END;
use crate::core::rpc::project::PROJECT_NAME;
use crate::core::state::MASTER_URL;
use crate::core::time::Delay;

/// What stands between the tags of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply(pub(super) String);

/// What may be done just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CcStatus {
    /// The mode of the network.
    pub mode: Mode,
    /// The one that holds for good.
    pub permanent: Mode,
    /// How long the mode still holds, where it holds for a while.
    pub left: Delay,
    /// Why nothing may be transferred, where nothing may.
    pub suspended: Option<Suspension>,
}

/// Why nothing may be transferred, by BOINC's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspension {
    /// A person said so.
    UserRequest,
    /// Outside the hours of the network.
    TimeOfDay,
    /// The quota is used up.
    Quota,
}

impl Reply {
    /// As it goes over the connection.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = format!("<boinc_gui_rpc_reply>\n{}</boinc_gui_rpc_reply>\n", self.0).into_bytes();
        bytes.push(END);
        bytes
    }

    /// It was done.
    pub fn success() -> Self {
        Self("<success/>\n".into())
    }

    /// It was not, and why: BOINC's words, where it has some.
    pub fn error(why: &str) -> Self {
        Self(format!("<error>{}</error>\n", escaped(why)))
    }

    /// Nobody knows what that is.
    pub fn unrecognized(name: &str) -> Self {
        Self::error(&format!("unrecognized op: {name}"))
    }

    pub(super) fn nonce(nonce: &str) -> Self {
        Self(format!("<nonce>{nonce}</nonce>\n"))
    }

    pub(super) fn authorized() -> Self {
        Self("<authorized/>\n".into())
    }

    pub(super) fn unauthorized() -> Self {
        Self("<unauthorized/>\n".into())
    }

    /// The version of BOINC that is spoken, and who speaks.
    pub fn versions() -> Self {
        let (major, minor, release) = SPOKEN_VERSION;
        let mut lines = Lines::default();
        lines.open(0, "server_version");
        lines.put(1, "major", major);
        lines.put(1, "minor", minor);
        lines.put(1, "release", release);
        lines.put(1, "name", concat!("persxfer ", env!("CARGO_PKG_VERSION")));
        lines.close(0, "server_version");
        lines.into()
    }

    /// What may be done just now. There are no tasks: they run as they like.
    pub fn cc_status(status: &CcStatus) -> Self {
        let mut lines = Lines::default();
        lines.open(0, "cc_status");
        lines.put(1, "network_status", 0);
        lines.put(1, "ams_password_error", 0);
        for kind in ["task", "gpu"] {
            lines.put(1, &format!("{kind}_suspend_reason"), 0);
            lines.modes(kind, Mode::Auto, Mode::Auto, Delay::ZERO);
        }
        lines.put(1, "network_suspend_reason", status.suspended.map_or(0, Suspension::code));
        lines.modes("network", status.mode, status.permanent, status.left);
        lines.put(1, "disallow_attach", 1);
        lines.put(1, "simple_gui_only", 0);
        lines.put(1, "max_event_log_lines", 0);
        lines.close(0, "cc_status");
        lines.into()
    }

    /// The least that makes sense of the rest: the project, and the version that is spoken.
    pub fn state() -> Self {
        let (major, minor, release) = SPOKEN_VERSION;
        let mut lines = Lines::default();
        lines.open(0, "client_state");
        lines.project();
        lines.put(1, "platform_name", "persxfer");
        lines.put(1, "core_client_major_version", major);
        lines.put(1, "core_client_minor_version", minor);
        lines.put(1, "core_client_release", release);
        lines.put(1, "executing_as_daemon", 0);
        lines.close(0, "client_state");
        lines.into()
    }

    /// The one project.
    pub fn projects() -> Self {
        let mut lines = Lines::default();
        lines.open(0, "projects");
        lines.project();
        lines.close(0, "projects");
        lines.into()
    }

    /// The machine, of which nothing is told.
    pub fn host_info() -> Self {
        let mut lines = Lines::default();
        lines.open(0, "host_info");
        lines.put(1, "timezone", 0);
        lines.put(1, "p_ncpus", 0);
        lines.close(0, "host_info");
        lines.into()
    }

    /// There are no messages.
    pub fn message_count() -> Self {
        Self("<seqno>0</seqno>\n".into())
    }

    /// A list with nothing in it.
    pub fn empty(list: &str) -> Self {
        let mut lines = Lines::default();
        lines.open(0, list);
        lines.close(0, list);
        lines.into()
    }
}

impl Suspension {
    const fn code(self) -> u32 {
        match self {
            Self::UserRequest => 4,
            Self::TimeOfDay => 8,
            Self::Quota => 2048,
        }
    }
}

const fn code_of(mode: Mode) -> u32 {
    match mode {
        Mode::Always => 1,
        Mode::Auto => 2,
        Mode::Never => 3,
    }
}

/// Elements, one a line.
#[derive(Debug, Default)]
pub(super) struct Lines(String);

impl Lines {
    pub(super) fn open(&mut self, depth: usize, name: &str) {
        self.line(depth, format_args!("<{name}>"));
    }

    pub(super) fn close(&mut self, depth: usize, name: &str) {
        self.line(depth, format_args!("</{name}>"));
    }

    /// An element with a text that needs no escape.
    pub(super) fn put(&mut self, depth: usize, name: &str, text: impl Display) {
        self.line(depth, format_args!("<{name}>{text}</{name}>"));
    }

    /// An element with any text.
    pub(super) fn text(&mut self, depth: usize, name: &str, text: &str) {
        self.put(depth, name, escaped(text));
    }

    fn line(&mut self, depth: usize, text: std::fmt::Arguments<'_>) {
        // A String takes everything.
        let _ = writeln!(self.0, "{:1$}{text}", "", 4 * depth);
    }

    fn modes(&mut self, kind: &str, mode: Mode, permanent: Mode, left: Delay) {
        self.put(1, &format!("{kind}_mode"), code_of(mode));
        self.put(1, &format!("{kind}_mode_perm"), code_of(permanent));
        self.put(1, &format!("{kind}_mode_delay"), left);
    }

    fn project(&mut self) {
        self.open(0, "project");
        self.put(1, "master_url", MASTER_URL);
        self.put(1, "project_name", PROJECT_NAME);
        self.put(1, "user_name", "");
        self.put(1, "hostid", 0);
        self.put(1, "resource_share", "100.000000");
        self.close(0, "project");
    }
}

impl From<Lines> for Reply {
    fn from(lines: Lines) -> Self {
        Self(lines.0)
    }
}

/// Text between tags. What would end the reply, or a line of it, becomes `_`.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push('_'),
            c => out.push(c),
        }
    }
    out
}
