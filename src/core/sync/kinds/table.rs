//! The kinds that there are, as B5 of the facts lists them.

use crate::core::digest::Algorithm;

/// The kind of trees that nobody knows anything of: any bytes, whole.
pub const ANY: &str = "any";

/// What a file in a folder should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name: that of its annotation.
    pub name: &'static str,
    /// The version that we write where a source writes none; the first number must be the same.
    pub version: (u16, u16),
    /// The folder below `recent` that it belongs in; empty where it belongs nowhere by itself.
    pub folder: &'static str,
    /// One thing a file, or many.
    pub shape: Shape,
    /// How its first line begins.
    pub(super) start: Start,
    /// Lines that must be in it.
    pub(super) marks: &'static [&'static str],
    /// How it ends.
    pub(super) end: End,
    /// The line that tells its date.
    pub(super) date: DateLine,
    /// What names it.
    pub(super) identity: Identity,
    /// The digest that its file's name may end in.
    pub(super) in_name: Option<Algorithm>,
}

/// How many things are in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One: all of it is good, or nothing.
    Whole,
    /// Many: the good ones count.
    Split,
}

/// How a first line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// With anything.
    Any,
    /// With one of these words.
    Words(&'static [&'static str]),
    /// It is this line.
    Line(&'static str),
    /// It is a number: seconds since the Unix epoch.
    Number,
    /// It holds this somewhere.
    Holds(&'static str),
}

/// How something ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Nobody can tell: only size and digest reveal a cut tail.
    Open,
    /// With a signature, behind a line that begins with this word.
    Signature(&'static str),
    /// With a line that begins with this word, or a few behind it: where it is missing, the tail is.
    Word(&'static str),
}

/// Where something tells its date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DateLine {
    /// Nowhere; its file's name may.
    Name,
    /// Behind this word.
    Word(&'static str),
    /// In its first line, a number.
    First,
    /// Behind this key, seconds.
    Key(&'static str),
}

/// What names one of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// Its file.
    File,
    /// The SHA-1 of what its signature covers: up to this line, and with it.
    Sha1To(&'static str),
    /// The SHA-256 of all of it.
    Sha256,
    /// The digest behind this word.
    Told(&'static str),
    /// Who made it, and when.
    FingerprintAndDate,
}

const SIGNED: End = End::Signature("directory-signature");
const ROUTER_SIGNED: End = End::Signature("router-signature");
const SANITIZED: End = End::Word("router-digest");
const STATUS_3: Start = Start::Line("network-status-version 3");

const BASE: Kind = Kind {
    name: ANY,
    version: (1, 0),
    folder: "",
    shape: Shape::Whole,
    start: Start::Any,
    marks: &[],
    end: End::Open,
    date: DateLine::Name,
    identity: Identity::File,
    in_name: None,
};

const PUBLISHED: DateLine = DateLine::Word("published");

static KINDS: [Kind; 17] = [
    Kind {
        name: "network-status-consensus-3",
        folder: "relay-descriptors/consensuses",
        start: STATUS_3,
        marks: &["vote-status consensus"],
        end: SIGNED,
        date: DateLine::Word("valid-after"),
        ..BASE
    },
    Kind {
        name: "network-status-vote-3",
        folder: "relay-descriptors/votes",
        start: STATUS_3,
        marks: &["vote-status vote"],
        end: SIGNED,
        date: DateLine::Word("valid-after"),
        in_name: Some(Algorithm::Sha1),
        ..BASE
    },
    Kind {
        name: "network-status-microdesc-consensus-3",
        folder: "relay-descriptors/microdescs/consensus-microdesc",
        start: Start::Line("network-status-version 3 microdesc"),
        marks: &["vote-status consensus"],
        end: SIGNED,
        date: DateLine::Word("valid-after"),
        ..BASE
    },
    Kind {
        name: "microdescriptor",
        folder: "relay-descriptors/microdescs/micro",
        shape: Shape::Split,
        start: Start::Words(&["onion-key"]),
        identity: Identity::Sha256,
        ..BASE
    },
    Kind {
        name: "server-descriptor",
        folder: "relay-descriptors/server-descriptors",
        shape: Shape::Split,
        start: Start::Words(&["router"]),
        end: ROUTER_SIGNED,
        date: PUBLISHED,
        identity: Identity::Sha1To("router-signature"),
        ..BASE
    },
    Kind {
        name: "extra-info",
        folder: "relay-descriptors/extra-infos",
        shape: Shape::Split,
        start: Start::Words(&["extra-info"]),
        end: ROUTER_SIGNED,
        date: PUBLISHED,
        identity: Identity::Sha1To("router-signature"),
        ..BASE
    },
    Kind {
        name: "dir-key-certificate-3",
        folder: "relay-descriptors/certs",
        shape: Shape::Split,
        start: Start::Words(&["dir-key-certificate-version"]),
        end: End::Signature("dir-key-certification"),
        date: DateLine::Word("dir-key-published"),
        identity: Identity::FingerprintAndDate,
        ..BASE
    },
    Kind {
        name: "bandwidth-file",
        folder: "relay-descriptors/bandwidths",
        start: Start::Number,
        date: DateLine::First,
        in_name: Some(Algorithm::Sha256),
        ..BASE
    },
    Kind {
        name: "tordnsel",
        folder: "exit-lists",
        start: Start::Words(&["Downloaded", "ExitNode"]),
        marks: &["ExitNode"],
        date: DateLine::Word("Downloaded"),
        ..BASE
    },
    Kind {
        name: "bridge-network-status",
        version: (1, 2),
        folder: "bridge-descriptors/statuses",
        start: Start::Words(&["published", "flag-thresholds", "fingerprint", "r"]),
        date: PUBLISHED,
        ..BASE
    },
    Kind {
        name: "bridge-server-descriptor",
        version: (1, 2),
        folder: "bridge-descriptors/server-descriptors",
        shape: Shape::Split,
        start: Start::Words(&["router"]),
        end: SANITIZED,
        date: PUBLISHED,
        identity: Identity::Told("router-digest"),
        ..BASE
    },
    Kind {
        name: "bridge-extra-info",
        version: (1, 3),
        folder: "bridge-descriptors/extra-infos",
        shape: Shape::Split,
        start: Start::Words(&["extra-info"]),
        end: SANITIZED,
        date: PUBLISHED,
        identity: Identity::Told("router-digest"),
        ..BASE
    },
    Kind {
        name: "torperf",
        version: (1, 1),
        folder: "torperf",
        start: Start::Holds("SOURCE="),
        date: DateLine::Key("START="),
        ..BASE
    },
    Kind {
        name: "bridge-pool-assignment",
        folder: "bridge-pool-assignments",
        start: Start::Words(&["bridge-pool-assignment"]),
        date: DateLine::Word("bridge-pool-assignment"),
        ..BASE
    },
    Kind {
        name: "snowflake-stats",
        folder: "snowflakes",
        start: Start::Words(&["snowflake-stats-end"]),
        date: DateLine::Word("snowflake-stats-end"),
        ..BASE
    },
    Kind {
        name: "bridgedb-metrics",
        folder: "bridgedb-stats",
        start: Start::Words(&["bridgedb-metrics-end"]),
        date: DateLine::Word("bridgedb-metrics-end"),
        ..BASE
    },
    BASE,
];

/// The kind of that name.
pub fn named(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// All names, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

/// The kind that belongs in a file's place: by the deepest folder that is known, wherever below the root it lies.
pub fn for_folder(path: &str) -> Option<&'static Kind> {
    let below_recent = path.strip_prefix("recent/").unwrap_or(path);
    let holds =
        |kind: &&Kind| !kind.folder.is_empty() && super::super::path::below(below_recent, kind.folder).is_some();
    KINDS.iter().filter(holds).max_by_key(|kind| kind.folder.len())
}

impl Kind {
    /// Can nobody tell from its bytes alone whether its tail was cut off?
    pub const fn is_open_ended(&self) -> bool {
        matches!(self.end, End::Open)
    }

    /// The annotation that says what it is, with its line's end; nothing of what has none.
    pub fn annotation(&self) -> String {
        match self.name {
            ANY => String::new(),
            name => format!("@type {name} {}.{}\n", self.version.0, self.version.1),
        }
    }
}
