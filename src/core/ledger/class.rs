//! The classes of failures, and the kinds of observations.

use crate::core::verdict;

/// Why an attempt failed. What follows from it stands in the [`super::Table`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The connection broke off, or brought less than announced.
    Interrupted,
    /// No name, no route, no connection, no answer.
    Unreachable,
    /// The server asks to wait (429, 503).
    Throttled,
    /// 404: not there, perhaps not yet.
    Missing,
    /// 410: not there any more.
    Gone,
    /// The server or its protocol cannot be used by us.
    Unsupported,
    /// The whole file has the wrong digest.
    Corrupt,
    /// 401, 403: nobody without the right credentials gets it.
    Denied,
    /// Trouble on the worker's own machine: nothing is counted.
    LocalFault,
    /// Three holders in a row vanished with it.
    Crash,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 10] = [
        Self::Interrupted,
        Self::Unreachable,
        Self::Throttled,
        Self::Missing,
        Self::Gone,
        Self::Unsupported,
        Self::Corrupt,
        Self::Denied,
        Self::LocalFault,
        Self::Crash,
    ];

    /// The word for it, in JSON, in tables and in the store.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::Unreachable => "unreachable",
            Self::Throttled => "throttled",
            Self::Missing => "missing",
            Self::Gone => "gone",
            Self::Unsupported => "unsupported",
            Self::Corrupt => "corrupt",
            Self::Denied => "denied",
            Self::LocalFault => "local-fault",
            Self::Crash => "crash",
        }
    }

    /// The class of that word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.word() == word)
    }

    /// The class of a transfer's failure. A file that keeps changing is like one whose bytes are wrong; a transfer that
    /// ran out of time without a reason of its own could not reach anybody; what a person stopped is no failure.
    pub const fn of(class: verdict::Class) -> Option<Self> {
        match class {
            verdict::Class::Interrupted => Some(Self::Interrupted),
            verdict::Class::Unreachable | verdict::Class::GaveUp => Some(Self::Unreachable),
            verdict::Class::Throttled => Some(Self::Throttled),
            verdict::Class::Missing => Some(Self::Missing),
            verdict::Class::Gone => Some(Self::Gone),
            verdict::Class::Denied => Some(Self::Denied),
            verdict::Class::Unsupported => Some(Self::Unsupported),
            verdict::Class::Corrupt | verdict::Class::Changed => Some(Self::Corrupt),
            verdict::Class::LocalFault => Some(Self::LocalFault),
            verdict::Class::Aborted => None,
        }
    }
}

/// What somebody saw of a file, or of what stands between us and it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Somebody offers it, somewhere: an announcement, a peer, a tracker's word.
    Announce,
    /// An index or a listing names it.
    Listed,
    /// A further mirror is known.
    Mirror,
    /// Its digest is known, or is another one.
    Digest,
    /// Its host answers again.
    HostUp,
    /// The network is back.
    NetworkBack,
    /// Credentials were given or changed.
    Credential,
    /// The configuration changed.
    Config,
    /// The program can do more than before.
    Capability,
    /// There is room on the disk again.
    Space,
    /// Another version of the program was started.
    Version,
    /// A person said: try it.
    User,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 12] = [
        Self::Announce,
        Self::Listed,
        Self::Mirror,
        Self::Digest,
        Self::HostUp,
        Self::NetworkBack,
        Self::Credential,
        Self::Config,
        Self::Capability,
        Self::Space,
        Self::Version,
        Self::User,
    ];

    /// The word for it, in JSON, in tables and in the store.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Announce => "announce",
            Self::Listed => "listed",
            Self::Mirror => "mirror",
            Self::Digest => "digest",
            Self::HostUp => "host-up",
            Self::NetworkBack => "network-back",
            Self::Credential => "credential",
            Self::Config => "config",
            Self::Capability => "capability",
            Self::Space => "space",
            Self::Version => "version",
            Self::User => "user",
        }
    }

    /// The kind of that word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// A set of kinds: which observations wake a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    /// Whatever is seen.
    pub const ANY: Self = Self((1 << Kind::ALL.len() as u16) - 1);

    /// These.
    pub const fn of(kinds: &[Kind]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < kinds.len() {
            bits |= kinds[at].bit();
            at += 1;
        }
        Self(bits)
    }

    /// Is this one among them?
    pub const fn holds(self, kind: Kind) -> bool {
        self.0 & kind.bit() != 0
    }

    /// Those it holds.
    pub fn iter(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| self.holds(*kind))
    }
}
