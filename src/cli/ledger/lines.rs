//! JSON lines: what is printed of records and claims, and what is read of files, words and observations.
//!
//! Times are seconds since the Unix epoch with up to six decimals, sizes bytes, digests `algorithm=hex`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cli::ledger::work;
use crate::core::ledger::class::{Class, Kind};
use crate::core::ledger::fail::Failed;
use crate::core::ledger::record::{Fact, Key, Lease, Mirror, Owner, Record, Resting, State, Token};
use crate::core::ledger::wake::Seen;
use crate::core::range::Length;
use crate::core::time::{Delay, Epoch};
use crate::core::url::MirrorUrl;
use crate::io::store::{Addition, Sighting, Whom, Word};

/// A whole record.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    key: String,
    #[serde(default)]
    host: String,
    #[serde(default)]
    mirrors: Vec<MirrorLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    state: String,
    due_at: f64,
    first_seen: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<LeaseLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    rungs: BTreeMap<String, u32>,
    #[serde(default)]
    step: f64,
    #[serde(default)]
    luck: u16,
    #[serde(default)]
    failures: u64,
    #[serde(default)]
    lost: u32,
    #[serde(default)]
    claims: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_attempt: Option<f64>,
    #[serde(default)]
    bytes_done: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    woken_at: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    alone: bool,
}

/// A mirror of a record.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct MirrorLine {
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    bad_until: Option<f64>,
}

/// A lease of a record.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct LeaseLine {
    owner: String,
    due_before: f64,
    parked: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    wake_at: Option<f64>,
}

impl Line {
    /// What is printed of a record; of a claim, with its token.
    pub(super) fn of(record: &Record, token: Option<Token>, alone: bool) -> Self {
        let secs = |at: Epoch| at.as_secs_f64();
        let state = match &record.state {
            State::Waiting => "waiting",
            State::Parked => "parked",
            State::Leased(_) => "leased",
            State::Done => "done",
        };
        let lease = record.lease().map(|lease| LeaseLine {
            owner: format!("{:016x}", lease.owner.0),
            due_before: secs(lease.due_before),
            parked: lease.before == Resting::Parked,
            wake_at: lease.wake_at.map(secs),
        });
        let mirror = |m: &Mirror| MirrorLine { url: m.url.clone(), bad_until: m.bad_until.map(secs) };
        Self {
            key: record.key.as_str().to_owned(),
            host: record.host.clone(),
            mirrors: record.mirrors.iter().map(mirror).collect(),
            checksum: record.digest.clone(),
            size: record.size.map(|size| size.0),
            state: state.to_owned(),
            due_at: secs(record.due_at),
            first_seen: secs(record.first_seen),
            token: token.map(|token| token.0),
            lease,
            class: record.class.map(|class| class.word().to_owned()),
            rungs: record.rungs.iter().map(|(class, rung)| (class.word().to_owned(), rung)).collect(),
            step: record.step.as_secs_f64(),
            luck: record.luck,
            failures: record.failures,
            lost: record.lost,
            claims: record.claims.0,
            last_attempt: record.last_attempt.map(secs),
            bytes_done: record.bytes_done.0,
            not_before: record.floor_at.map(secs),
            woken_at: record.woken_at.map(secs),
            alone,
        }
    }

    /// The record of a line that was exported.
    pub(super) fn record(self) -> Result<Record, String> {
        let at = Epoch::from_secs_f64;
        let key = Key::parse(&self.key).map_err(|why| why.to_string())?;
        let class = |word: &str| Class::of_word(word).ok_or_else(|| work::no_class(word));
        let mut record = Record::new(key, self.host, Vec::new(), at(self.first_seen));
        for MirrorLine { url, bad_until } in self.mirrors {
            record.learn(Fact::Mirror(url));
            if let (Some(mirror), Some(until)) = (record.mirrors.last_mut(), bad_until) {
                mirror.bad_until = Some(at(until));
            }
        }
        record.digest = self.checksum;
        record.size = self.size.map(Length);
        record.state = match (self.state.as_str(), self.lease) {
            ("waiting", None) => State::Waiting,
            ("parked", None) => State::Parked,
            ("done", None) => State::Done,
            ("leased", Some(lease)) => State::Leased(Lease {
                owner: Owner(u64::from_str_radix(&lease.owner, 16).map_err(|_| "its owner is no number".to_owned())?),
                due_before: at(lease.due_before),
                before: if lease.parked { Resting::Parked } else { Resting::Waiting },
                wake_at: lease.wake_at.map(at),
            }),
            (state, _) => return Err(format!("no record can be {state:?} so")),
        };
        record.due_at = at(self.due_at);
        record.class = self.class.as_deref().map(class).transpose()?;
        for (word, rung) in &self.rungs {
            record.rungs.set(class(word)?, *rung);
        }
        record.step = Delay::from_secs_f64(self.step);
        record.luck = self.luck;
        record.failures = self.failures;
        record.lost = self.lost;
        record.claims = Token(self.claims);
        record.last_attempt = self.last_attempt.map(at);
        record.bytes_done = Length(self.bytes_done);
        record.floor_at = self.not_before.map(at);
        record.woken_at = self.woken_at.map(at);
        Ok(record)
    }
}

/// A file to be entered.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddLine {
    /// Its name; its first URL where it is missing.
    #[serde(default)]
    pub(super) key: Option<String>,
    /// Where it can be had.
    #[serde(default)]
    pub(super) urls: Vec<String>,
    /// The host whose limits it is under; that of its first URL where it is missing.
    #[serde(default)]
    pub(super) host: Option<String>,
    /// The digest that it must have.
    #[serde(default)]
    pub(super) checksum: Option<String>,
    /// The size that it must have.
    #[serde(default)]
    pub(super) size: Option<u64>,
    /// How it failed before it came here.
    #[serde(default)]
    pub(super) class: Option<String>,
}

impl AddLine {
    /// As the store takes it.
    pub(super) fn addition(self) -> Result<Addition, String> {
        let urls = self.urls.iter().map(|url| parsed(url)).collect::<Result<Vec<_>, _>>()?;
        let key = match (&self.key, urls.first()) {
            (Some(key), _) => key.clone(),
            // A password is no part of a file's name.
            (None, Some(url)) => url.without_credentials().secret_url().as_str().to_owned(),
            (None, None) => return Err("it has neither a key nor a URL".to_owned()),
        };
        let host = self.host.or_else(|| urls.first().map(|url| url.origin().host().to_owned())).unwrap_or_default();
        let class = self.class.as_deref().map(|word| Class::of_word(word).ok_or_else(|| work::no_class(word)));
        let failed =
            class.transpose()?.map(|class| Failed { class, asked: None, mirror: None, bytes_done: Length::ZERO });
        Ok(Addition {
            key: Key::parse(&key).map_err(|why| why.to_string())?,
            host,
            mirrors: urls.iter().map(|url| url.secret_url().as_str().to_owned()).collect(),
            size: self.size.map(Length),
            digest: self.checksum.as_deref().map(digest).transpose()?,
            failed,
        })
    }
}

/// The URL, if it is one of http or https.
pub(super) fn parsed(url: &str) -> Result<MirrorUrl, String> {
    MirrorUrl::parse(url).map_err(|why| why.to_string())
}

/// A digest in its one spelling.
pub(super) fn digest(text: &str) -> Result<String, String> {
    crate::core::digest::Expected::parse(text).map(|digest| digest.to_string()).map_err(|why| why.to_string())
}

/// What somebody saw.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ObserveLine {
    key: String,
    kind: String,
    /// When; now where it is missing.
    #[serde(default)]
    at: Option<f64>,
    #[serde(default)]
    source: String,
    #[serde(default)]
    mirrors: Vec<String>,
    #[serde(default)]
    checksum: Option<String>,
    #[serde(default)]
    size: Option<u64>,
}

impl ObserveLine {
    /// As the store takes it.
    pub(super) fn sighting(self, now: Epoch) -> Result<Sighting, String> {
        let kind = Kind::of_word(&self.kind).ok_or_else(|| no_kind(&self.kind))?;
        let mut facts = Vec::new();
        for url in &self.mirrors {
            facts.push(Fact::Mirror(parsed(url)?.secret_url().as_str().to_owned()));
        }
        facts.extend(self.size.map(|size| Fact::Size(Length(size))));
        facts.extend(self.checksum.as_deref().map(digest).transpose()?.map(Fact::Digest));
        Ok(Sighting {
            of: Whom::Key(Key::parse(&self.key).map_err(|why| why.to_string())?),
            seen: Seen { kind, at: self.at.map_or(now, Epoch::from_secs_f64) },
            source: self.source,
            facts,
        })
    }
}

/// The word is no kind of observation.
pub(super) fn no_kind(word: &str) -> String {
    let known: Vec<_> = Kind::ALL.into_iter().map(Kind::word).collect();
    format!("{word:?} is nothing that can be seen; known are {}", known.join(", "))
}

/// A holder's word; what else a claim's line has is not looked at.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct WordLine {
    key: String,
    token: u64,
    #[serde(default)]
    class: Option<String>,
    #[serde(default)]
    retry_after: Option<f64>,
    #[serde(default)]
    mirror: Option<String>,
    #[serde(default)]
    bytes_done: u64,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    checksum: Option<String>,
}

impl WordLine {
    /// Which claim it is about.
    pub(super) fn claim(&self) -> Result<(Key, Token), String> {
        Ok((Key::parse(&self.key).map_err(|why| why.to_string())?, Token(self.token)))
    }

    /// What it says.
    pub(super) fn says(self, command: work::Said) -> Result<Word, String> {
        match command {
            work::Said::Done => {
                let digest = self.checksum.as_deref().map(digest).transpose()?;
                Ok(Word::Done { size: self.size.map(Length), digest })
            }
            work::Said::Released => Ok(Word::Released),
            work::Said::Failed => {
                let word = self.class.as_deref().ok_or("it does not say how it failed (class)")?;
                let class =
                    Class::of_word(word).filter(|class| *class != Class::Crash).ok_or_else(|| work::no_class(word))?;
                let asked = self.retry_after.map(Delay::from_secs_f64);
                let bytes_done = Length(self.bytes_done);
                Ok(Word::Failed(Failed { class, asked, mirror: self.mirror, bytes_done }))
            }
        }
    }
}
