//! Requests: what is asked, read as BOINC reads it (boinc.md 2.2): a stream of tags, on one line or many, attributes and
//! comments dropped, what is not known passed over.

use crate::core::prefs::Mode;
use crate::core::time::Delay;

/// So much of a name that is not known is told back.
const NAME_TOLD: usize = 64;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A word to hash with the password.
    Auth1,
    /// The hash.
    Auth2 {
        /// As it was sent.
        hash: String,
    },
    /// Which version is spoken.
    ExchangeVersions,
    /// What may be done just now.
    GetCcStatus,
    /// All transfers.
    GetFileTransfers,
    /// Everything, of which there is little.
    GetState,
    /// The machine.
    GetHostInfo,
    /// The project.
    GetProjectStatus,
    /// How many messages there are.
    GetMessageCount,
    /// Something that a BOINC client has and we have nothing of: answered by an empty list of that kind.
    GetNothing {
        /// The element of the answer.
        list: &'static str,
    },
    /// A transfer is to be tried now.
    RetryFileTransfer(Which),
    /// A transfer is to end.
    AbortFileTransfer(Which),
    /// May anything be transferred?
    SetNetworkMode {
        /// The mode; `None` where none was said.
        mode: Option<ModeWord>,
        /// For so long; zero: for good.
        duration: Delay,
    },
    /// Every wait ends now.
    NetworkAvailable,
    /// The program is to end.
    Quit,
    /// None of these: its name, with the slash of an empty element, as BOINC tells it back.
    Unknown(String),
}

/// The mode of the network that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeWord {
    /// This one.
    Set(Mode),
    /// The one that holds for good.
    Restore,
}

/// The transfer that is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Which {
    /// The address of its project, as it was sent.
    pub project_url: String,
    /// Its name, as it was sent.
    pub filename: String,
}

impl Request {
    /// The request of a frame. Never fails: what cannot be read is [`Request::Unknown`].
    pub fn parse(frame: &[u8]) -> Self {
        let text = String::from_utf8_lossy(frame);
        let mut tags = Tags(&text);
        match tags.find(|tag| tag.name != "boinc_gui_rpc_request") {
            Some(op) => Self::named(&op, tags),
            None => Self::Unknown(String::new()),
        }
    }

    fn named(op: &Tag<'_>, tags: Tags<'_>) -> Self {
        let within = || Fields::read(op, tags);
        match op.name {
            "auth1" => Self::Auth1,
            "auth2" => Self::Auth2 { hash: within().nonce_hash },
            "exchange_versions" => Self::ExchangeVersions,
            "get_cc_status" => Self::GetCcStatus,
            "get_file_transfers" => Self::GetFileTransfers,
            "get_state" => Self::GetState,
            "get_host_info" => Self::GetHostInfo,
            "get_project_status" => Self::GetProjectStatus,
            "get_message_count" => Self::GetMessageCount,
            "retry_file_transfer" => Self::RetryFileTransfer(within().which),
            "abort_file_transfer" => Self::AbortFileTransfer(within().which),
            "set_network_mode" => {
                let Fields { mode, duration, .. } = within();
                Self::SetNetworkMode { mode, duration }
            }
            "network_available" => Self::NetworkAvailable,
            "quit" => Self::Quit,
            name => match nothing_of(name) {
                Some(list) => Self::GetNothing { list },
                None => Self::Unknown(told(op)),
            },
        }
    }

    /// May be asked without the password, from this machine (boinc.md 4.1)?
    pub const fn is_open_to_all(&self) -> bool {
        match self {
            Self::ExchangeVersions
            | Self::GetCcStatus
            | Self::GetFileTransfers
            | Self::GetState
            | Self::GetHostInfo
            | Self::GetProjectStatus
            | Self::GetMessageCount
            | Self::GetNothing { .. } => true,
            Self::Auth1
            | Self::Auth2 { .. }
            | Self::RetryFileTransfer(_)
            | Self::AbortFileTransfer(_)
            | Self::SetNetworkMode { .. }
            | Self::NetworkAvailable
            | Self::Quit
            | Self::Unknown(_) => false,
        }
    }
}

/// The empty list that answers a question about something that we have nothing of.
fn nothing_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "get_messages" => "msgs",
        "get_results" => "results",
        "get_notices" | "get_notices_public" => "notices",
        "get_statistics" => "statistics",
        "get_disk_usage" => "disk_usage_summary",
        "get_daily_xfer_history" => "daily_xfers",
        "get_simple_gui_info" => "simple_gui_info",
        _ => return None,
    })
}

/// A name that is told back: a word, and nothing that would be more in a reply.
fn told(op: &Tag<'_>) -> String {
    let word = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name: String = op.name.chars().take(NAME_TOLD).filter(word).collect();
    if op.empty { name + "/" } else { name }
}

/// What the elements within a request say; of several of one name, the last.
#[derive(Default)]
struct Fields {
    which: Which,
    nonce_hash: String,
    mode: Option<ModeWord>,
    duration: Delay,
}

impl Fields {
    fn read(op: &Tag<'_>, mut tags: Tags<'_>) -> Self {
        let mut fields = Self::default();
        if op.empty {
            return fields;
        }
        while let Some(tag) = tags.next() {
            match tag.name {
                "always" => fields.mode = Some(ModeWord::Set(Mode::Always)),
                "auto" => fields.mode = Some(ModeWord::Set(Mode::Auto)),
                "never" => fields.mode = Some(ModeWord::Set(Mode::Never)),
                "restore" => fields.mode = Some(ModeWord::Restore),
                "project_url" => fields.which.project_url = tags.text(&tag),
                "filename" => fields.which.filename = tags.text(&tag),
                "nonce_hash" => fields.nonce_hash = tags.text(&tag),
                "duration" => fields.duration = span(&tags.text(&tag)),
                _ => {}
            }
        }
        fields
    }
}

/// Seconds; nothing that is no such number counts, as with BOINC.
fn span(text: &str) -> Delay {
    let seconds = text.parse::<f64>().ok().filter(|secs| secs.is_finite() && *secs > 0.0);
    seconds.map_or(Delay::ZERO, Delay::from_secs_f64)
}

/// A tag that opens something.
struct Tag<'a> {
    name: &'a str,
    /// It closes itself.
    empty: bool,
}

/// The tags of a text, one after the other; closing ones, comments and declarations left out.
struct Tags<'a>(&'a str);

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        loop {
            let (_, rest) = self.0.split_once('<')?;
            if let Some(comment) = rest.strip_prefix("!--") {
                self.0 = comment.split_once("-->").map_or("", |(_, after)| after);
                continue;
            }
            let Some((inside, after)) = rest.split_once('>') else {
                self.0 = "";
                return None;
            };
            self.0 = after;
            if inside.starts_with(['/', '?', '!']) {
                continue;
            }
            let empty = inside.ends_with('/');
            let name = inside.split(|c: char| c.is_ascii_whitespace() || c == '/').next().unwrap_or_default();
            return Some(Tag { name, empty });
        }
    }
}

impl Tags<'_> {
    /// The text up to the end of an element. It may hold what would be markup, because `boinccmd` sends it as it was typed;
    /// where the element has no end, there is none.
    fn text(&mut self, tag: &Tag<'_>) -> String {
        if tag.empty {
            return String::new();
        }
        let end = format!("</{}>", tag.name);
        let Some((text, after)) = self.0.split_once(end.as_str()) else {
            self.0 = "";
            return String::new();
        };
        self.0 = after;
        text.trim().to_owned()
    }
}
