//! What a failure means: its class, and from it what becomes of the mirror, the transfer, the host. One table, here.

/// The class of a failure: the word a user, the ledger and the JSON events see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The connection broke off, stalled, or brought less than announced.
    Interrupted,
    /// No name, no route, no connection, no answer in time.
    Unreachable,
    /// The server is busy or asks to wait: 408, 425, 429, 5xx.
    Throttled,
    /// 404: not there, perhaps not yet.
    Missing,
    /// 410: not there any more.
    Gone,
    /// 401, 403, 407, 451, a certificate that is not trusted.
    Denied,
    /// The server or the file is of a kind that we cannot use: other 4xx, 501, 505, a coded answer, redirects that lead nowhere.
    Unsupported,
    /// The whole file has the wrong digest.
    Corrupt,
    /// The file is another one than before, or than the other mirrors have.
    Changed,
    /// Trouble on this machine.
    LocalFault,
    /// The give-up window has passed.
    GaveUp,
    /// A person said so.
    Aborted,
}

impl Class {
    /// The word for it, in XML, JSON and tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::Unreachable => "unreachable",
            Self::Throttled => "throttled",
            Self::Missing => "missing",
            Self::Gone => "gone",
            Self::Denied => "denied",
            Self::Unsupported => "unsupported",
            Self::Corrupt => "corrupt",
            Self::Changed => "changed",
            Self::LocalFault => "local-fault",
            Self::GaveUp => "gave-up",
            Self::Aborted => "aborted",
        }
    }

    /// Every class.
    pub const ALL: [Self; 12] = [
        Self::Interrupted,
        Self::Unreachable,
        Self::Throttled,
        Self::Missing,
        Self::Gone,
        Self::Denied,
        Self::Unsupported,
        Self::Corrupt,
        Self::Changed,
        Self::LocalFault,
        Self::GaveUp,
        Self::Aborted,
    ];

    /// The class of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.word() == word)
    }
}
