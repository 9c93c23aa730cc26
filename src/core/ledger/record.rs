//! What the ledger knows of one file.

use crate::core::ledger::class::Class;
use crate::core::range::Length;
use crate::core::time::{Delay, Epoch};

/// The longest name of a record, in bytes.
pub const MAX_KEY: usize = 1_024;
/// So many mirrors are kept of a record.
pub const MAX_MIRRORS: usize = 32;

/// What names a file for ever: whatever its users name it by, a URL, an info hash, a path. Not empty, at most
/// [`MAX_KEY`] bytes, no control characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

/// Why a text names no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// Nothing stands there.
    #[error("a record's key must not be empty")]
    Empty,
    /// It is too long.
    #[error("the key that begins with \"{start}\" has {bytes} bytes; a record's key has at most {MAX_KEY}")]
    TooLong {
        /// How it begins, made printable.
        start: String,
        /// How long it is.
        bytes: usize,
    },
    /// It holds what no key can hold.
    #[error("the key \"{shown}\" holds a control character")]
    Control {
        /// The key, made printable.
        shown: String,
    },
}

impl Key {
    /// The key of that text.
    ///
    /// # Errors
    /// An empty one, one that is too long, one with control characters.
    pub fn parse(text: &str) -> Result<Self, BadKey> {
        let shown = || crate::core::printable::printable(&text.chars().take(40).collect::<String>()).into_owned();
        match text {
            "" => Err(BadKey::Empty),
            _ if text.len() > MAX_KEY => Err(BadKey::TooLong { start: shown(), bytes: text.len() }),
            _ if text.chars().any(char::is_control) => Err(BadKey::Control { shown: shown() }),
            _ => Ok(Self(text.to_owned())),
        }
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The number of a claim, counted by record: what its holder proves itself by. A later claim has a higher one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// Who holds a lease: drawn when a worker starts, so that no two are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u64);

/// Where a record stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits until it is due.
    Waiting,
    /// Only the [`super::class::Kinds`] of its class wake it; it is probed when it is due all the same.
    Parked,
    /// Somebody works on it; `due_at` is when the lease ends.
    Leased(Lease),
    /// The file is here.
    Done,
}

/// That somebody works on a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Who.
    pub owner: Owner,
    /// When the record was due before it was claimed.
    pub due_before: Epoch,
    /// Where it stood before it was claimed.
    pub before: Resting,
    /// Fresh activity since: when it would be due because of it.
    pub wake_at: Option<Epoch>,
}

/// Where a record stands that nobody works on and that is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resting {
    /// [`State::Waiting`].
    Waiting,
    /// [`State::Parked`].
    Parked,
}

impl From<Resting> for State {
    fn from(resting: Resting) -> Self {
        match resting {
            Resting::Waiting => Self::Waiting,
            Resting::Parked => Self::Parked,
        }
    }
}

/// Where a file can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Its URL, as it was given.
    pub url: String,
    /// It sent wrong bytes: it is not asked for this file until then.
    pub bad_until: Option<Epoch>,
}

/// What may become known of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// It can be had here.
    Mirror(String),
    /// It has this size.
    Size(Length),
    /// It has this digest, as `algorithm=hex`.
    Digest(String),
}

/// Whether something was news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// It was known.
    Nothing,
    /// It was not.
    Something,
}

/// How often a record failed in each class, since it last succeeded or was woken from above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rungs([u32; Class::ALL.len()]);

impl Rungs {
    /// The rung in this class; 0 where it has not failed so.
    pub const fn of(&self, class: Class) -> u32 {
        self.0[class as usize]
    }

    /// Sets the rung in this class.
    pub const fn set(&mut self, class: Class, rung: u32) {
        self.0[class as usize] = rung;
    }

    /// Those that are not 0.
    pub fn iter(&self) -> impl Iterator<Item = (Class, u32)> {
        Class::ALL.into_iter().map(|class| (class, self.of(class))).filter(|(_, rung)| *rung > 0)
    }
}

/// What is known of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its name.
    pub key: Key,
    /// The host whose limits it is under: that of its first mirror; empty where it has none.
    pub host: String,
    /// Where it can be had, in the order in which they are asked.
    pub mirrors: Vec<Mirror>,
    /// The digest that the file must have, as `algorithm=hex`.
    pub digest: Option<String>,
    /// The size that the file must have.
    pub size: Option<Length>,
    /// When it was first heard of. Nothing changes it.
    pub first_seen: Epoch,
    /// Where it stands.
    pub state: State,
    /// When it may be handed out again; of a leased one, when its lease ends.
    pub due_at: Epoch,
    /// A server's word: not before then, whatever happens.
    pub floor_at: Option<Epoch>,
    /// The class of its last failure; none where it never failed, or succeeded since.
    pub class: Option<Class>,
    /// How far it climbed in each class.
    pub rungs: Rungs,
    /// The wait that was drawn last, jitter and all.
    pub step: Delay,
    /// Where in the window of [`super::wake::Manners::spread`] a wake puts it, in 65536ths: drawn with each failure, so that
    /// several wakes in whatever order come to the same.
    pub luck: u16,
    /// Failures that were reported, ever.
    pub failures: u64,
    /// Leases in a row that ended without a word from their holder.
    pub lost: u32,
    /// How often it was claimed, ever: the token of the latest claim.
    pub claims: Token,
    /// When the latest attempt ended, or was claimed if it never did.
    pub last_attempt: Option<Epoch>,
    /// So many bytes were held after it.
    pub bytes_done: Length,
    /// The newest observation that woke it since the last attempt: its place among those that are served first.
    pub woken_at: Option<Epoch>,
}

impl Record {
    /// A file that was heard of at `now`, and never tried: due at once.
    pub fn new(key: Key, host: String, mirrors: Vec<String>, now: Epoch) -> Self {
        let mirrors = mirrors.into_iter().take(MAX_MIRRORS).map(|url| Mirror { url, bad_until: None }).collect();
        Self {
            key,
            host,
            mirrors,
            digest: None,
            size: None,
            first_seen: now,
            state: State::Waiting,
            due_at: now,
            floor_at: None,
            class: None,
            rungs: Rungs::default(),
            step: Delay::ZERO,
            luck: 0,
            failures: 0,
            lost: 0,
            claims: Token::default(),
            last_attempt: None,
            bytes_done: Length::ZERO,
            woken_at: None,
        }
    }

    /// Something more is known of the file. A mirror that is new goes behind the others; a digest that is another one means
    /// that no mirror's bytes are known to be wrong any more.
    pub fn learn(&mut self, fact: Fact) -> Learned {
        match fact {
            Fact::Mirror(url) => {
                if self.mirrors.iter().any(|m| m.url == url) || self.mirrors.len() >= MAX_MIRRORS {
                    return Learned::Nothing;
                }
                self.mirrors.push(Mirror { url, bad_until: None });
            }
            Fact::Size(size) => {
                if self.size.replace(size) == Some(size) {
                    return Learned::Nothing;
                }
            }
            Fact::Digest(digest) => {
                if self.digest.as_ref() == Some(&digest) {
                    return Learned::Nothing;
                }
                self.digest = Some(digest);
                self.mirrors.iter_mut().for_each(|m| m.bad_until = None);
            }
        }
        Learned::Something
    }

    /// The mirrors that may be asked at `now`.
    pub fn usable(&self, now: Epoch) -> impl Iterator<Item = &str> {
        self.mirrors.iter().filter(move |m| m.bad_until.is_none_or(|until| until <= now)).map(|m| m.url.as_str())
    }

    /// Its lease, where somebody works on it.
    pub const fn lease(&self) -> Option<&Lease> {
        match &self.state {
            State::Leased(lease) => Some(lease),
            _ => None,
        }
    }

    /// It goes to rest. Its floor holds.
    pub(super) fn rest(&mut self, resting: Resting, due_at: Epoch) {
        self.state = resting.into();
        self.due_at = self.floor_at.map_or(due_at, |floor| due_at.max(floor));
    }
}
